"""Exact errors of linear models on linear targets y = M z with z(t) ~ U[0, 1] independent.

A linear time-invariant causal model gives ŷ(t) = Σ_s k(s) z(t-s) + o(t). With D = M - K̂ its mean squared error is
exactly (1/τ) Σ_t [ |D(t, ·)|² / 12 + (Σ_s D(t, s) / 2 - o(t))² ]: U[0, 1] has mean 1/2 and variance 1/12. It is
quadratic in k, so the best kernel and its error, the floor, are the solution of a linear system.
"""

from dataclasses import dataclass

import numpy as np

VARIANCE, MEAN = 1 / 12, 1 / 2
OFFSETS = ("none", "constant", "free")  # o = 0; o(t) = b; o(t) anything: a hidden bias gives the last


@dataclass(frozen=True)
class Floor:
    kernel: np.ndarray  # (τ,): the best k
    mse: float  # the least error
    hessian: np.ndarray  # (τ, τ): error(k) = mse + (k - kernel)ᵀ hessian (k - kernel)


def floor(matrix: np.ndarray, offset: str = "none") -> Floor:
    tau = len(matrix)
    lags = [np.diagonal(matrix, -s) for s in range(tau)]  # M(t, t-s) for t = s … τ-1
    # Variance: the kernel value k(s) meets each entry of its diagonal.
    hessian = VARIANCE * np.diag([float(len(d)) for d in lags])
    gradient = VARIANCE * np.array([d.sum() for d in lags])
    constant = VARIANCE * (matrix**2).sum()
    # Mean: Σ_s k(s) [s ≤ t] against the row sum of M, up to the offset.
    if offset != "free":
        seen = np.tril(np.ones((tau, tau)))  # (t, s)
        rows = matrix.sum(1)
        if offset == "constant":  # the best constant removes the average over t
            seen, rows = seen - seen.mean(0), rows - rows.mean()
        hessian += MEAN**2 * seen.T @ seen
        gradient += MEAN**2 * seen.T @ rows
        constant += MEAN**2 * (rows**2).sum()
    kernel = np.linalg.solve(hessian, gradient)
    rest = constant - kernel @ gradient
    return Floor(kernel, rest / tau if rest > 1e-12 * constant else 0.0, hessian / tau)  # below that it is rounding


def constant_predictor(matrix: np.ndarray) -> float:
    """Error of the best single constant, what a dead start learns: the variance of y over t and z."""
    means = MEAN * matrix.sum(1)
    return float(VARIANCE * (matrix**2).sum(1).mean() + means.var())
