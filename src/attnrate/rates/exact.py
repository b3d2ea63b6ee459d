"""What of section 5 needs no network: the POD truncation far beyond the head sizes of Figure 1, and sampled matrices.

The truncation is a kernel alone, m_FF = ∞ in (17): its error is that of the first term. Draws of the pairing are its
replicates, and it is cheap enough for many of them.
"""

import itertools

import numpy as np

from attnrate.laws.powerlaw import loglog_slope
from attnrate.rates.pod import coupling, pair, singular_values, softmax_average
from attnrate.rates.theory import first_term, tail_sum

VALUES = 8  # singular values that the decay of a sampled matrix is read from


def truncations(
    pairing: str, alphas: list[float], sizes: list[int], *, terms: int, tau: int, size: int, seed: int
) -> list[dict]:
    """At r = ∞ and each m_h: squared and L1 error with s = t in the sum and the squared error without, eq. (46)."""
    x, p = np.random.default_rng(seed).random((size, tau)), pair(pairing, terms)
    rows = []
    for alpha in alphas:
        sigma = singular_values(alpha, "inf", terms)
        edges = [0, *sizes, terms]
        parts = [  # ρ of the terms a+1 … b, so that each m_h adds one
            coupling_between(sigma, p, x, a, b) for a, b in itertools.pairwise(edges)
        ]
        whole = sum(parts)
        exact = {diagonal: softmax_average(whole, x, diagonal) for diagonal in (True, False)}
        rho = np.zeros_like(whole)
        for mh, part in zip(sizes, parts, strict=False):
            rho = rho + part
            error, apart = (softmax_average(rho, x, diagonal) - exact[diagonal] for diagonal in (True, False))
            rows.append(
                {
                    "pairing": pairing,
                    "alpha": alpha,
                    "mh": mh,
                    "mse": (error**2).mean(),
                    "mse_without_diagonal": (apart**2).mean(),
                    "l1": np.abs(error).mean(0).sum(),
                    "tail_sum": tail_sum(sigma, mh),
                    **{r: first_term(sigma, alpha, mh, tau, r) for r in ("literal", "root")},
                }
            )
    return rows


def coupling_between(sigma: np.ndarray, p: np.ndarray, x: np.ndarray, a: int, b: int) -> np.ndarray:
    """The terms a+1 … b of ρ(x(t), x(s)): (N, τ, τ)."""
    i = np.arange(a + 1, b + 1)
    left, right = (2**0.5 * np.sin(2 * np.pi * x[..., None] * f) for f in (i, p[a:b]))
    return (left * sigma[a:b]) @ right.swapaxes(-1, -2)


def sampled_decay(pairing: str, alpha: float, tau: int, inputs: int, seed: int, terms: int) -> float:
    """Section 5.2: slope of log σ_k against log k of the matrix ρ(x(t), x(s)) / τ, values averaged over inputs."""
    x = np.random.default_rng([seed, tau]).random((inputs, tau))
    rho = coupling(singular_values(alpha, "inf", terms), pair(pairing, terms), x)
    mean = np.linalg.svd(rho / tau, compute_uv=False).mean(0)[:VALUES]
    return loglog_slope(np.arange(1, len(mean) + 1), mean)["slope"]
