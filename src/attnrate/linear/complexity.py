"""The RNN's complexity measures (76) to (78), for kernels whose tail decays like e^-s/γ.

A kernel known for s < τ needs a stated continuation: e^-s goes on as e^-s, and so do kernels made from it; the random
kernel of Table 3 is continued from its last value by e^-(s-τ+1). Either way the decay rate in (76) is γ = 1.

literal: C_1 = 1 + γ as printed. corrected: C_1 = γ, without which Proposition 6.3 (C_RNN ≤ γ) fails already for e^-s.
"""

import math

import numpy as np

from attnrate.linear.floors import OFFSETS, constant_predictor, floor
from attnrate.linear.targets import LinearTarget, toeplitz

GAMMA = 1.0


def c_rnn(matrix: np.ndarray, corrected: bool = True) -> float:
    """C_RNN = C_1 C_2 of the target y = M z, or ∞ if it is not a causal convolution (eq. 75)."""
    kernel = matrix[:, 0]  # M(s, 0) = ρ(s)
    lag = np.subtract.outer(np.arange(len(kernel)), np.arange(len(kernel)))
    if not np.allclose(matrix, np.where(lag >= 0, kernel[np.maximum(lag, 0)], 0), atol=1e-12):
        return math.inf
    c1 = GAMMA if corrected else 1 + GAMMA
    return float(c1 * np.max(np.exp(np.arange(len(kernel)) / c1) * np.abs(kernel)))


def depends_on_future(matrix: np.ndarray) -> bool:
    """Proposition 6.1: some output depends on a later input."""
    return bool(np.abs(np.triu(matrix, 1)).max() > 0)


def singular_value_change(matrix: np.ndarray, altered: np.ndarray) -> float:
    """Proposition 6.2: largest change of a singular value of the coupling between outputs and inputs."""
    values = [np.linalg.svd(m, compute_uv=False) for m in (matrix, altered)]
    return float(np.abs(values[0] - values[1]).max())


def row(target: LinearTarget) -> dict:
    """The exact floors, the variance and the complexities of a target."""
    matrix = target.matrix
    return {
        "table": target.table,
        "target": target.kernel,
        "alteration": target.alteration,
        "filter": target.filter,
        "draw": target.draw,
        **{f"floor_{o}": floor(matrix, o).mse for o in OFFSETS},
        "variance": constant_predictor(matrix),
        "c_rnn": c_rnn(matrix),
        "c_rnn_literal": c_rnn(matrix, corrected=False),
        "future": depends_on_future(matrix),
        "singular_value_change": singular_value_change(toeplitz(target.rho), matrix),
    }
