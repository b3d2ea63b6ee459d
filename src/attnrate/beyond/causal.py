"""A causal mask gives the Transformer the RNN's blindness: what it must miss of y = M z, section 6.1.

A model that sees z(0) … z(t) misses at least E Var(y(t) | z(≤ t)) = (1/12) Σ_{s > t} M(t, s)², for z(s) ~ U[0, 1]
independent; with a position encoding it can come as near as it likes, since it may treat each t by itself.
"""

import numpy as np

from attnrate.linear.floors import VARIANCE


def floor(matrix: np.ndarray) -> float:
    """The least error of a causal model, the mean over t: (τ, τ) → number."""
    return float(VARIANCE * (np.triu(matrix, 1) ** 2).sum() / len(matrix))
