"""Complexity measures (12), (14), (15) and the bound (17) for the POD targets of section 5.1.

F = f = identity, φ_i = √2 sin 2πix, ψ_i = φ_p(i), σ_i = i^-α on [0, 1].

The feed-forward rate (13) is that of linear interpolation on m even knots, which a ReLU network of one hidden
layer of width m performs: sup |g - ĝ| ≤ sup |g''| / (8 m²). So β = 2, C_FF(g) = sup |g''| / 8, which is 0 for the
identity and √2 (2πi)² / 8 for φ_i.
"""

import math

import numpy as np

BETA = 2


def tail_sum(sigma: np.ndarray, mh: int) -> float:
    """Σ_{i > m_h} σ_i², the squared error of the best rank-m_h kernel, eq. (11)."""
    return float(np.sum(sigma[mh:] ** 2))


def c0(corrected: bool = True) -> float:
    """Eq. (15): K_F ‖f‖ (sup ‖ψ_i‖ + ‖φ_i‖) and 1; printed with inf, which is 1, but the proof needs the max."""
    return max(2 * math.sqrt(2), 1.0) if corrected else min(2 * math.sqrt(2), 1.0)


def c1(sigma: np.ndarray, alpha: float) -> float:
    """Eq. (12): the least c with σ_s ≤ c s^-α, s ≥ 1."""
    return float(np.max(sigma * np.arange(1, len(sigma) + 1) ** alpha))


def c_ff(i: int) -> float:
    """C_FF(φ_i) = √2 (2πi)² / 8 for β = 2."""
    return math.sqrt(2) * (2 * math.pi * i) ** 2 / 8


def c2(mh: int, frequencies: np.ndarray) -> float:
    """Eq. (14): C_FF(F) = C_FF(f) = 0 and Σ C_FF(φ_i) + C_FF(ψ_i) over the terms that are there; ψ's frequencies."""
    return sum(c_ff(i) + c_ff(p) for i, p in enumerate(frequencies[:mh], 1))


READINGS = ("literal", "constants", "root")


def first_term(sigma: np.ndarray, alpha: float, mh: int, tau: int, reading: str) -> float:
    """That of (17), what remains of it for m_FF → ∞."""
    first = c1(sigma, alpha) / mh ** (2 * alpha - 1)
    if reading != "literal":
        first *= c1(sigma, alpha) / (2 * alpha - 1)
    if reading == "root":
        first = math.sqrt(first)
    return tau**2 * c0(corrected=reading != "literal") * first


def bound(
    sigma: np.ndarray, frequencies: np.ndarray, alpha: float, mh: int, width: int, tau: int, reading: str
) -> float:
    """Right-hand side of (17) in one of three readings, for the σ_i and the frequencies of the ψ_i.

    literal: as printed. constants: the maximum in (15), and C_1² / (2α - 1) for the tail sum where (52) has C_1.
    root: also the square root of the tail sum, since (46) to (50) bound an L1 error and Cauchy-Schwarz leaves one.
    """
    second = c2(mh, frequencies) * mh ** (BETA + 1) / width**BETA
    return first_term(sigma, alpha, mh, tau, reading) + tau**2 * c0(corrected=reading != "literal") * second
