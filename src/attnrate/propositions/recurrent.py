"""C_RNN of (76) to (78), Proposition 6.3 and the rate of D.1.

At a fixed γ the norm C_γ(ρ) = γ sup_s e^(s/γ) |ρ(s)| says what the proof of Proposition 6.3 says:
  (96)     ρ̃(s) = Σ_j θ_j ρ(s+j)   C_γ(ρ̃) ≤ C_γ(ρ) Σ_j |θ_j| e^(-j/γ), at most ‖θ‖₁ C_γ(ρ)
  causal   k(s) = Σ_j θ_j ρ(s-j)   C_γ(k) ≤ C_γ(ρ) Σ_j |θ_j| e^(j/γ)
With C_1 as the kernel's own rate it fails: C_2 is a supremum with the weight e^(t/C_1), and (99) bounds the one with
e^(t/γ). See COUNTER_EXAMPLES.

D.1, the rate d C_RNN / m: m units have a Hankel matrix ρ̂(i+j) of rank m, so that Σ_s |ρ(s) - ρ̂(s)| is at least
σ_{m+1} of ρ(i+j), which Adamyan, Arov and Krein show to be attained in the Hankel norm; m units that remember the last
m inputs have Σ_{s ≥ m} |ρ(s)|. The best error lies between the two. At γ = 1 the second is at most
C_γ e^-m / (1 - e^-1) < 0.6 C_γ / m, and the rate holds. For slow kernels without smoothness, ± e^(-s/γ), it fails:
their σ_k are of the size of √γ up to k of the size of γ, while C_RNN = γ. Over inputs in [0, 1] the largest error of
an output is at least half of Σ_s |ρ(s) - ρ̂(s)|.
"""

import math

import numpy as np
from scipy.linalg import hankel, svdvals

from attnrate.linear.complexity import GAMMA
from attnrate.linear.targets import FILTER_LENGTH, draw_filter

Modes = dict[float, tuple[float, float]]  # λ: (c, d) is the kernel Σ_λ (c + d s) e^-λs

LENGTH = 64  # e^-64 is nothing in double precision
UNITS = np.arange(1, 17)  # m
ROUGH = (16, 64, 256)  # γ of ± e^(-s/γ)

# Kernels with |ρ(s)| ≤ e^-s, γ = 1, and filters with ‖θ‖₁ = 1. The first is 3/2 in (76) as printed, and has no finite
# C_2 without "1 +". The second has C_RNN = 1 without "1 +", and its filter cancels e^-s, which leaves the first.
COUNTER_EXAMPLES: dict[str, tuple[Modes, np.ndarray]] = {
    "(1+s) e^-2s": ({2.0: (1.0, 1.0)}, np.array([0.9, 0.1])),
    "(e^-s + (1+s) e^-2s) / 2": ({1.0: (0.5, 0.0), 2.0: (0.5, 0.5)}, np.array([-1, math.e]) / (1 + math.e)),
}


def norm(rho: np.ndarray) -> float:
    """C_γ."""
    return float(GAMMA * np.max(np.exp(np.arange(len(rho)) / GAMMA) * np.abs(rho)))


def shifted(rho: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """(96): (N + l - 1,), (l,) → (N,)."""
    return np.correlate(rho, theta, "valid")


def causal(rho: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """θ * ρ: (N,), (l,) → (N,)."""
    return np.convolve(rho, theta)[: len(rho)]


def filter_row(filter: str, seed: int) -> dict:
    """Both inequalities for e^-s, and the share of negative values in the causal kernel."""
    theta, j = draw_filter(filter, seed), np.arange(FILTER_LENGTH)
    rho = np.exp(-np.arange(LENGTH + FILTER_LENGTH - 1.0))
    k = causal(rho, theta)
    return {
        "filter": filter,
        "seed": seed,
        "norm1": np.abs(theta).sum(),
        "ratio_96": norm(shifted(rho, theta)) / norm(rho),
        "bound_96": np.abs(theta) @ np.exp(-j / GAMMA),
        "ratio_causal": norm(k) / norm(rho),
        "bound_causal": np.abs(theta) @ np.exp(j / GAMMA),
        "negative_mass": np.maximum(-k, 0).sum() / np.abs(k).sum(),
    }


def values(modes: Modes, s: np.ndarray) -> np.ndarray:
    return sum((c + d * s) * np.exp(-rate * s) for rate, (c, d) in modes.items())


def mixed(modes: Modes, theta: np.ndarray) -> Modes:
    """(96), mode by mode; modes that θ cancels are left out."""
    j, result = np.arange(len(theta)), {}
    for rate, (c, d) in modes.items():
        weights = theta * np.exp(-rate * j)
        pair = (float(weights @ (c + d * j)), float(weights.sum() * d))
        if max(map(abs, pair)) > 1e-12:
            result[rate] = pair
    return result


def c_rnn(modes: Modes, corrected: bool) -> float:
    """(78), with "1 +" in (76) as printed or, corrected, without."""
    slowest = min(modes)  # the infimum in (76) is 1 / λ, with or without the factor s
    if corrected and modes[slowest][1]:
        return math.inf  # e^(t/C_1) |ρ(t)| grows as t
    c1 = 1 / slowest + (not corrected)
    s = np.arange(LENGTH)
    return float(c1 * np.max(np.exp(s / c1) * np.abs(values(modes, s))))


def counter_examples() -> dict[str, dict]:
    """C_RNN of ρ and of (96) in both readings against γ, which Proposition 6.3 allows; ∞ is null in JSON."""
    rows = {}
    for name, (modes, theta) in COUNTER_EXAMPLES.items():
        row = {"gamma": GAMMA, "norm1": np.abs(theta).sum()}
        row["envelope"] = norm(values(modes, np.arange(LENGTH))) / GAMMA  # at most 1: |ρ(s)| ≤ e^(-s/γ)
        for reading in ("literal", "corrected"):
            before, after = (c_rnn(m, reading == "corrected") for m in (modes, mixed(modes, theta)))
            row[reading] = {
                "before": before,
                "after": after,
                "in_space": before < math.inf,  # (79), which the proposition assumes
                "exceeds": after > GAMMA,  # what the proposition allows after mixing
            }
        rows[name] = row
    return rows


def hankel_values(rho: np.ndarray) -> np.ndarray:
    """σ_1, σ_2, … of ρ(i+j), i, j < N: (2 N,) → (N,). For a longer ρ they are lower bounds."""
    n = len(rho) // 2
    return svdvals(hankel(rho[:n], rho[n - 1 : -1]))


def rate(rho: np.ndarray) -> dict:
    """Largest m σ_{m+1} / C_γ and m Σ_{s ≥ m} |ρ(s)| / C_γ over m = 1 … 16; a rank is that of double precision."""
    sigma = hankel_values(rho)
    tails = np.cumsum(np.abs(rho)[::-1])[::-1]  # Σ_{s ≥ m} |ρ(s)| at m
    return {
        "c_gamma": norm(rho),
        "hankel": float(np.max(UNITS * sigma[UNITS]) / norm(rho)),  # counted from 0: σ_{m+1}
        "memory": float(np.max(UNITS * tails[UNITS]) / norm(rho)),
        "rank": int((sigma > 1e-12 * sigma[0]).sum()),
    }


def rough(gamma: int) -> float:
    """Largest m σ_{m+1} / C_RNN over all m for ± e^(-s/γ), C_RNN = γ, with the signs of Rudin and Shapiro."""
    s = np.arange(4 * gamma)
    signs = np.array([(-1) ** (k & k >> 1).bit_count() for k in range(len(s))])
    sigma = hankel_values(signs * np.exp(-s / gamma))
    return float(np.max(np.arange(len(sigma)) * sigma) / gamma)


def rates(filters: list[tuple[str, int]]) -> dict[str, dict]:
    """For each kernel; for the causal mixtures of e^-s the largest values over the filters of a name."""
    s = np.arange(2.0 * LENGTH)
    kernels = {"e^-s": np.exp(-s), "(1+s) e^-2s": (1 + s) * np.exp(-2 * s), "e^-s / (1+s)": np.exp(-s) / (1 + s)}
    rows = {name: rate(rho) for name, rho in kernels.items()}
    for name in dict(filters):
        drawn = [rate(causal(np.exp(-s), draw_filter(n, seed))) for n, seed in filters if n == name]
        rows[f"causal/{name}"] = {key: max(row[key] for row in drawn) for key in drawn[0]}
    return rows
