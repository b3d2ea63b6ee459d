"""When does mixing hurt? Filters whose mixed kernel k = θ * ρ has a given share of negative mass.

    ν = Σ |k⁻(s)| / Σ |k(s)|,   k(s) = Σ_j θ(j) ρ(s - j),   ρ(s) = e^-s

Softmax weights are positive: where k has signs, F̂ must supply them. -θ has 1 - ν and is as hard.
"""

import numpy as np

from attnrate.linear.targets import LinearTarget, alter, draw_filter

CLOSE = 0.01  # how near a filter comes to the ν that was asked for


def negative_mass(kernel: np.ndarray) -> float:
    return float(-kernel[kernel < 0].sum() / np.abs(kernel).sum())


def kernel(target: LinearTarget) -> np.ndarray:
    """k of a causal target: the first column of its matrix."""
    return target.matrix[:, 0]


def spanning(shares: list[float], tau: int, seed: int) -> list[LinearTarget]:
    """For each ν the first filter of N(0, 1)^5, from that seed on, that comes within CLOSE of it; all different."""
    rho, targets = np.exp(-np.arange(tau)), []
    for draw, share in enumerate(shares):
        while True:
            theta, seed = draw_filter("signed", seed), seed + 1
            matrix = alter(rho, rho[:0], "causal", theta)
            if abs(negative_mass(matrix[:, 0]) - share) <= CLOSE:
                break
        targets.append(LinearTarget(2, "exp", "causal", "signed", rho, matrix, draw))
    return targets
