"""Proposition 6.2: what a permutation p of the inputs does to the coupling ρ at F = f = identity.

With z = x ∘ p the altered target is H̃_t(z) = H_t(z ∘ p⁻¹) = Σ_u softmax_u[ρ(z(p⁻¹(t)), z(u))] z(u): its query is
z(p⁻¹(t)), where (8) offers z(t). (90) turns the one into the other by moving the pieces φ^(t), but φ̃(x(p(t))) is a
function of x(p(t)) and φ^(t)(x(t)) one of x(t).

Does any ρ̃ do, even one that knows t and u? Its weights G_u = exp ρ̃ > 0 must give Σ_u G_u(z_t, z_u) (z_u - H̃_t(z)) = 0
for all z. With z_t = a fixed and K values for each of the others, these are K^(τ-1) homogeneous linear equations for
the 1 + (τ-1) K numbers G_t and G_u(v_k): no ρ̃ exists unless the smallest singular value is 0.

A coupling of the positions alone, ρ(t, s), can be altered: ρ̃(t, u) = ρ(t, p(u)). A query from outside, such as a class
token, needs no change when ρ does not depend on the position.
"""

import itertools
from collections.abc import Callable

import numpy as np

from attnrate.linear.targets import permutation
from attnrate.rates.pod import phi, softmax_average

Coupling = Callable[[np.ndarray, np.ndarray], np.ndarray]

POINTS = 8  # K
FIXED = 0.3  # a
LENGTHS = (3, 4)  # τ of the linear systems
TAU = 32  # of the random inputs


def pod_coupling(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(10) of rank 2, σ_i = i^-2, ψ_i = φ_i = √2 sin 2πix."""
    i = np.arange(1, 3)
    return (i**-2.0 * phi(i, u) * phi(i, v)).sum(-1)


def separable(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """a(u) + b(v), whose softmax does not depend on the query."""
    return np.exp(u) + np.sin(5 * v)


def system(rho: Coupling, p: np.ndarray) -> np.ndarray:
    """The equations for t = 0, one row for each z: (K^(τ-1), 1 + (τ-1) K)."""
    tau, query = len(p), np.argsort(p)[0]  # p⁻¹(0)
    index = np.array(list(itertools.product(range(POINTS), repeat=tau - 1)))  # (E, τ-1)
    z = np.insert((index + 0.5) / POINTS, 0, FIXED, axis=1)  # (E, τ)
    y = softmax_average(rho(z[:, query, None], z)[:, None], z)  # (E, 1)
    others = (z - y)[:, 1:, None] * np.eye(POINTS)[index]  # (E, τ-1, K)
    return np.concatenate([(z - y)[:, :1], others.reshape(len(z), -1)], 1)


def solve(rho: Coupling, p: np.ndarray) -> dict:
    """Smallest over largest singular value, and whether its vector has one sign, as G must."""
    _, values, vectors = np.linalg.svd(system(rho, p), full_matrices=False)
    signs = np.sign(vectors[-1])
    return {"ratio": values[-1] / values[0], "one_sign": bool(abs(signs.sum()) == len(signs))}


def of_positions(name: str) -> float:
    """Largest |H̃(x ∘ p) - H(x)| for random ρ(t, s), with ρ̃(t, u) = ρ(t, p(u))."""
    rng, p = np.random.default_rng(0), permutation(name, TAU)
    rho, x = rng.standard_normal((TAU, TAU)), rng.random((256, TAU))
    return np.abs(softmax_average(rho[:, p], x[:, p]) - softmax_average(rho, x)).max()


def from_outside(name: str) -> float:
    """Largest |H(x ∘ p) - H(x)| for H(x) = Σ_s softmax_s[ρ(a, x(s))] x(s)."""
    x = np.random.default_rng(0).random((256, TAU))
    outputs = [softmax_average(pod_coupling(np.array(FIXED), z)[:, None], z) for z in (x, x[:, permutation(name, TAU)])]
    return np.abs(outputs[0] - outputs[1]).max()


def rows() -> list[dict]:
    cases = [
        *(("moved", pod_coupling, np.roll(np.arange(tau), -1)) for tau in LENGTHS),
        *(("not moved", pod_coupling, np.arange(tau)) for tau in LENGTHS),
        *(("separable", separable, np.roll(np.arange(tau), -1)) for tau in LENGTHS),
    ]
    return [
        *({"case": case, "tau": len(p), **solve(rho, p)} for case, rho, p in cases),
        *({"case": f"positions/{name}", "tau": TAU, "deviation": of_positions(name)} for name in ("exchange", "roll")),
        *({"case": f"outside/{name}", "tau": TAU, "deviation": from_outside(name)} for name in ("exchange", "roll")),
    ]
