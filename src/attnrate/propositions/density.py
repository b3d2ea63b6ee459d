"""A.2, Theorem A.3: the target space (9) is dense. The printed F fails; blocks of f repair it.

F sees the sum (27) alone, while (28) subtracts ψ_{q,t}(x_t), which F must first read off that sum. For τ = 2, d = 1,
ψ_{q,1} = a_q and ψ_{q,2} = 2 - 2 a_q with a_q : [0, 1] → [1/2, 1], the sum at t = 1 is
2 a_q(x_1) + 2 - 2 a_q(x_2) = 2 wherever x_1 = x_2, for every q, while the argument of g_q in (24) is 2 - a_q(x_1).
For generic a_q these ψ are a family of Theorem A.1: its proof by category asks of the factors 1 and -2 only that
r - 2 r' tell the pairs (r, r') of finitely many generic values apart.

Repair, with n = τ d and the weights of (25): block s of f(x) holds x, moved to [3/4, 1]^d, when x ∈ I^(s), and is 0
otherwise. F gets every block once and block t twice, [3/2, 2]^d, so it can tell t and every x(s). With uniform weights
it could tell the x(s) but not t, and all H_t would be equal.
"""

import numpy as np

TAU = 2
TERMS = 2 * TAU + 1  # q = 0 … 2τd with d = 1


def a(x: float) -> np.ndarray:
    """a_q(x), increasing, in [1/2, 1]: (q,)."""
    return (1 + x ** np.arange(1, TERMS + 1)) / 2


def needed(x1: float, x2: float) -> np.ndarray:
    """Σ_s ψ_{q,s}(x_s), the arguments of g_q in (24): (q,)."""
    return a(x1) + (2 - 2 * a(x2))


def seen(x1: float, x2: float) -> np.ndarray:
    """(27) at t = 1 without its last entry b_1 + Σ_s b_s, which is the same for all inputs: (q,)."""
    return a(x1) + needed(x1, x2)


def encode(x: np.ndarray) -> np.ndarray:
    """x(s) ∈ [0, 1]^d to I^(s) = [2s, 2s + 1]^d, disjoint as in (7): (N, τ, d) → (N, τ, d)."""
    return x + 2 * np.arange(x.shape[1])[:, None]


def f(z: np.ndarray) -> np.ndarray:
    """Pointwise: x ∈ I^(s) to block s of τ: (N, τ, d) → (N, τ, τ, d)."""
    s = z // 2
    block = s[..., :1] == np.arange(z.shape[1])  # (N, τ, τ)
    return block[..., None] * ((3 + z - 2 * s) / 4)[:, :, None]


def F(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The time t and the inputs x(1) … x(τ) from the average alone: (N, τ, d) → (N,), (N, τ, d)."""
    u = (u.shape[1] + 1) * u
    t = u[..., 0].argmax(1)
    twice = np.arange(u.shape[1]) == t[:, None]  # (N, τ)
    return t, 4 * u / (1 + twice[..., None]) - 3


def average(blocks: np.ndarray, t: int) -> np.ndarray:
    """(25): 2 / (τ+1) of f(x(t)), 1 / (τ+1) of every other f(x(s)): (N, τ, τ, d) → (N, τ, d)."""
    return (blocks[:, t] + blocks.sum(1)) / (blocks.shape[1] + 1)


def check(size: int = 1000, tau: int = 8, d: int = 3) -> dict:
    one, other = (0.2, 0.2), (0.7, 0.7)
    x = np.random.default_rng(0).random((size, tau, d))
    found = [F(average(f(encode(x)), t)) for t in range(tau)]
    return {
        "collision": np.abs(seen(*one) - seen(*other)).max(),
        "inputs_apart": abs(one[0] - other[0]),
        "needed_apart": np.abs(needed(*one) - needed(*other)).max(),
        "recovered": max(np.abs(inputs - x).max() for _, inputs in found),
        "times_recovered": np.mean([time == t for t, (time, _) in enumerate(found)]),
    }
