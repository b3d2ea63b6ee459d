"""(92) to (98): is H_t(θ * x) of the form (75) with the kernel θ * ρ?

causal, (θ * x)(t) = Σ_j θ_j x(t-j): yes, K Θ is the Toeplitz matrix of θ * ρ.
As printed, x(t+j): no. (94) holds θ_j ρ(s) x(t-s+j), an input after t wherever j > s. (96) drops these, and adds
θ_j ρ(s+j) x(t-s) where s + j > t, which is not in (94).
"""

import numpy as np

from attnrate.linear.targets import draw_filter, mixing_matrix, toeplitz
from attnrate.propositions.recurrent import causal, shifted


def row(filter: str, seed: int, tau: int) -> dict:
    """For ρ(s) = e^-s; `future` is the share of the squared entries of (94) above the diagonal."""
    theta = draw_filter(filter, seed)
    rho = np.exp(-np.arange(tau + len(theta) - 1.0))  # (96) reads beyond τ
    k = toeplitz(rho[:tau])
    literal = k @ mixing_matrix("literal", theta, tau)  # (94)
    difference = toeplitz(shifted(rho, theta)) - literal  # (96) - (94)
    return {
        "filter": filter,
        "seed": seed,
        "causal_deviation": np.abs(k @ mixing_matrix("causal", theta, tau) - toeplitz(causal(rho[:tau], theta))).max(),
        "future": (np.triu(literal, 1) ** 2).sum() / (literal**2).sum(),
        "deviation_96": np.abs(difference).max(),
        "deviation_96_past": np.abs(np.tril(difference)).max(),
    }
