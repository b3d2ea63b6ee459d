"""Linear targets of section 6, H_t(x) = Σ_s ρ(s) x(t-s) (eq. 69), and their alterations.

Every one is a matrix: the model sees z ∈ [0, 1]^τ and must give y = M z. Unaltered, M(t, t-s) = ρ(s).

ordering: the model sees z = x ∘ p while y = H(x) stays, so M = K Pᵀ (section 6.1)
  exchange        p swaps the first and the last 10 inputs (appendix C, section 6)
  roll            p moves the first 10 inputs to the end (appendix C, real-world data)
  permute-kernel  ρ itself is permuted, its first and last 10 values swapped (main text)
mixing: the model sees z = x while y = H(θ * x), with a filter θ of length 5 (section 6.2)
  causal          (θ * x)(t) = Σ_j θ(j) x(t-j)
  literal         (θ * x)(t) = Σ_j θ(j) x(t+j), as printed; zero beyond the end
  altered-kernel  M has the kernel ρ̃(s) = Σ_j θ(j) ρ(s+j) of eqs. (96) to (98), where (94) → (96) dropped future inputs

Filters: `positive` is U[0, 1]^5 divided by its sum, `signed` is N(0, 1)^5. Filters and the kernel of Table 3 are drawn
several times: the draws are the replicates of what is measured on them.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from attnrate.core import files

ORDERINGS = ("exchange", "roll", "permute-kernel")
MIXINGS = ("causal", "literal", "altered-kernel")
FILTERS = ("positive", "signed")
SHIFT, FILTER_LENGTH = 10, 5
KERNELS = ("exp", "uniform")
ALTERATIONS = [("original", ""), *((o, "") for o in ORDERINGS), *((m, f) for m in MIXINGS for f in FILTERS)]


def name(kernel: str, alteration: str, filter: str) -> str:
    return "/".join(part for part in (kernel, alteration, filter) if part)


NAMES = [name(k, a, f) for k in KERNELS for a, f in ALTERATIONS]


@dataclass(frozen=True)
class LinearTarget:
    table: int  # 2 or 3, the paper's
    kernel: str  # "exp" (e^-s) or "uniform" (ρ ~ U[0, 1])
    alteration: str
    filter: str  # "" where nothing is mixed
    rho: np.ndarray  # (τ,): the kernel of the original target
    matrix: np.ndarray  # (τ, τ): y = matrix z
    draw: int = 0  # of its kernel and filter, from 0

    @property
    def name(self) -> str:
        return name(self.kernel, self.alteration, self.filter)


def toeplitz(rho: np.ndarray) -> np.ndarray:
    """K(t, t-s) = ρ(s), lower triangular: (τ,) → (τ, τ)."""
    lag = np.subtract.outer(np.arange(len(rho)), np.arange(len(rho)))
    return np.where(lag >= 0, rho[np.maximum(lag, 0)], 0.0)


def permutation(name: str, tau: int) -> np.ndarray:
    """p with (x ∘ p)(t) = x(p(t))."""
    t = np.arange(tau)
    if name == "roll":
        return np.roll(t, -SHIFT)
    middle = t[SHIFT : tau - SHIFT]
    return np.concatenate([t[tau - SHIFT :], middle, t[:SHIFT]])  # exchange


def draw_filter(name: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if name == "signed":
        return rng.standard_normal(FILTER_LENGTH)
    theta = rng.random(FILTER_LENGTH)
    return theta / theta.sum()


def mixing_matrix(name: str, theta: np.ndarray, tau: int) -> np.ndarray:
    """Θ with (θ * x) = Θ x for `causal` (x(t-j)) and `literal` (x(t+j)): (τ, τ)."""
    sign = -1 if name == "causal" else 1
    return sum(value * np.eye(tau, k=sign * j) for j, value in enumerate(theta))


def alter(rho: np.ndarray, beyond: np.ndarray, alteration: str, theta: np.ndarray | None) -> np.ndarray:
    """The matrix of an altered target; `beyond` continues ρ to s = τ, τ+1, … for the altered kernel."""
    tau = len(rho)
    if alteration == "original":
        return toeplitz(rho)
    if alteration == "permute-kernel":
        return toeplitz(rho[permutation("exchange", tau)])
    if alteration in ORDERINGS:
        return toeplitz(rho) @ np.eye(tau)[permutation(alteration, tau)].T  # z = P x, x = Pᵀ z
    if alteration == "altered-kernel":
        longer = np.concatenate([rho, beyond])
        return toeplitz(sum(value * longer[j : j + tau] for j, value in enumerate(theta)))
    return toeplitz(rho) @ mixing_matrix(alteration, theta, tau)


def make_all(tau: int, kernel_seed: int, filter_seed: int, draws: int = 1) -> list[LinearTarget]:
    """Every reading of both tables; what is random as often as `draws` says, from that seed on."""
    s = np.arange(tau + FILTER_LENGTH - 1)
    targets = []
    for kernel, (alteration, filter) in itertools.product(KERNELS, ALTERATIONS):
        for draw in range(draws if kernel == "uniform" or filter else 1):
            if kernel == "exp":  # e^-s goes on beyond τ; the random kernel ends there
                table, rho, beyond = 2, np.exp(-s[:tau]), np.exp(-s[tau:])
            else:
                rng = np.random.default_rng(kernel_seed + draw)
                table, rho, beyond = 3, rng.random(tau), np.zeros(FILTER_LENGTH - 1)
            theta = draw_filter(filter, filter_seed + draw) if filter else None
            matrix = alter(rho, beyond, alteration, theta)
            targets.append(LinearTarget(table, kernel, alteration, filter, rho, matrix, draw))
    return targets


def replicates(targets: list[LinearTarget], names: list[str], seeds: list[int]) -> list[tuple[LinearTarget, int]]:
    """For each name and seed the target to train on: the i-th seed meets the i-th draw, where there are draws."""
    drawn = {name: [t for t in targets if t.name == name] for name in names}
    return [(own[i if len(own) > 1 else 0], seed) for own in drawn.values() for i, seed in enumerate(seeds)]


KEYS = ("table", "kernel", "alteration", "filter", "rho", "matrix", "draw")


def save(path, targets: list[LinearTarget]) -> None:
    files.write_npz(path, {k: np.stack([np.asarray(getattr(t, k)) for t in targets]) for k in KEYS})


def load(path) -> list[LinearTarget]:
    z = files.read_npz(path)
    with files.reading(path):
        rows = zip(*(z[k] for k in KEYS), strict=True)
        return [LinearTarget(int(t), str(k), str(a), str(f), r, m, int(d)) for t, k, a, f, r, m, d in rows]
