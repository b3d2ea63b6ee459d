"""What of section 5 needs no network: the POD truncation far beyond the head sizes of Figure 1, and sampled matrices.

The truncation is a kernel alone, m_FF = ∞ in (17): its error is that of the first term. Draws of the pairing are its
replicates, and it is cheap enough for many of them.
"""

import itertools

import numpy as np

from attnrate.laws.powerlaw import loglog_slope
from attnrate.rates.pod import coupling, pair, phi, singular_values, softmax_average
from attnrate.rates.theory import first_term, tail_sum

VALUES = 8  # singular values that the decay of a sampled matrix is read from


def truncations(
    pairing: str, alphas: list[float], sizes: list[int], *, terms: int, tau: int, size: int, seed: int
) -> list[dict]:
    """At r = ∞ and each m_h: squared and L1 error with s = t in the sum and the squared error without, eq. (46)."""
    x, p = np.random.default_rng(seed).random((size, tau)), pair(pairing, terms)
    sigma = {alpha: singular_values(alpha, "inf", terms) for alpha in alphas}
    parts = {alpha: [] for alpha in alphas}  # ρ between two sizes, so that each m_h adds one
    for a, b in itertools.pairwise([0, *sizes, terms]):
        left, right = phi(np.arange(a + 1, b + 1), x), phi(p[a:b], x).swapaxes(-1, -2)
        for alpha in alphas:
            parts[alpha].append((left * sigma[alpha][a:b]) @ right)  # (N, τ, τ)
    rows = []
    for alpha in alphas:
        whole, rho = sum(parts[alpha]), np.zeros((size, tau, tau))
        exact = {diagonal: softmax_average(whole, x, diagonal) for diagonal in (True, False)}
        for mh, part in zip(sizes, parts[alpha], strict=False):
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
                    "tail_sum": tail_sum(sigma[alpha], mh),
                    **{r: first_term(sigma[alpha], alpha, mh, tau, r) for r in ("literal", "root")},
                }
            )
    return rows


def sampled_decay(pairing: str, alpha: float, tau: int, inputs: int, seed: int, terms: int) -> float:
    """Section 5.2: slope of log σ_k against log k of the matrix ρ(x(t), x(s)) / τ, values averaged over inputs."""
    x = np.random.default_rng([seed, tau]).random((inputs, tau))
    rho = coupling(singular_values(alpha, "inf", terms), pair(pairing, terms), x)
    mean = np.linalg.svd(rho / tau, compute_uv=False).mean(0)[:VALUES]
    return loglog_slope(np.arange(1, len(mean) + 1), mean)["slope"]
