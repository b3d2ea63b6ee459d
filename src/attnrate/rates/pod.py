"""Targets of eq. (8) with prescribed POD (eqs. 10 and 68), F and f the identity, scalar x ~ U[0, 1].

    H_t(x) = Σ_s softmax[ρ(x(t), x(·))](s) x(s),   ρ(u, v) = Σ_{i ≤ r} σ_i φ_i(u) φ_i(v),
    φ_i(x) = √2 sin 2πix,   σ_i = i^-α

The φ_i are orthonormal on [0, 1], so the σ_i are exactly the singular values of ρ. Rank r = ∞ is cut at
a stated number of terms R.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from attnrate.core import files
from attnrate.core.params import Group

Rank = int | str  # a number of terms, or "inf"


def phi(i: np.ndarray, x: np.ndarray) -> np.ndarray:
    """φ_i(x) = √2 sin 2πix: (r,), (...) → (..., r)."""
    return np.sqrt(2) * np.sin(2 * np.pi * x[..., None] * i)


def singular_values(alpha: float, rank: Rank, terms: int) -> np.ndarray:
    """σ_i = i^-α for i = 1 … r, or … R when r = ∞."""
    return np.arange(1, (terms if rank == "inf" else rank) + 1, dtype=np.float64) ** -alpha


def coupling(sigma: np.ndarray, x: np.ndarray) -> np.ndarray:
    """ρ(x(t), x(s)) for sequences x: (r,), (N, τ) → (N, τ, τ)."""
    basis = phi(np.arange(1, len(sigma) + 1), x)  # (N, τ, r)
    return (basis * sigma) @ basis.swapaxes(-1, -2)


def softmax_average(rho: np.ndarray, x: np.ndarray, diagonal: bool = True) -> np.ndarray:
    """Σ_s softmax[ρ(t, ·)](s) x(s): (N, τ, τ), (N, τ) → (N, τ); diagonal=False leaves s = t out of the sum."""
    if not diagonal:
        rho = np.where(np.eye(rho.shape[-1], dtype=bool), -np.inf, rho)
    weights = np.exp(rho - rho.max(-1, keepdims=True))
    return (weights @ x[..., None])[..., 0] / weights.sum(-1)


@dataclass(frozen=True)
class PodTarget:
    alpha: float
    rank: Rank
    sigma: np.ndarray  # (r or R,)
    x: np.ndarray  # (N, τ): the evaluation set
    y: np.ndarray  # (N, τ): H_t(x)

    @property
    def name(self) -> str:
        return f"alpha{self.alpha:g}_rank{self.rank}"

    def truncated(self, mh: int, diagonal: bool = True) -> np.ndarray:
        """The target with only the first m_h terms of its POD, on the evaluation set."""
        return softmax_average(coupling(self.sigma[:mh], self.x), self.x, diagonal)

    def save(self, path) -> None:
        np.savez(path, alpha=self.alpha, rank=str(self.rank), sigma=self.sigma, x=self.x, y=self.y)

    @classmethod
    def load(cls, path) -> "PodTarget":
        z = files.read_npz(path)
        with files.reading(path):
            rank = str(z["rank"])
            if z["x"].ndim != 2 or z["x"].shape != z["y"].shape or z["sigma"].ndim != 1:
                raise ValueError("its arrays are not those of a target")
            return cls(
                float(z["alpha"]),
                rank if rank == "inf" else int(rank),
                z["sigma"],
                z["x"].astype(np.float64),
                z["y"].astype(np.float64),
            )


def make(alpha: float, rank: Rank, *, terms: int, tau: int, size: int, seed: int) -> PodTarget:
    """One target with an evaluation set; the inputs x are the same for every target of a seed."""
    x = np.random.default_rng(seed).random((size, tau), dtype=np.float32)
    sigma = singular_values(alpha, rank, terms)
    y = softmax_average(coupling(sigma, x.astype(np.float64)), x.astype(np.float64))
    return PodTarget(alpha, rank, sigma, x, y.astype(np.float32))


def make_grid(
    *, alphas: list[float], ranks: list[Rank], terms: int, tau: int, eval_size: int, eval_seed: int
) -> Iterator[PodTarget]:
    for alpha, rank in itertools.product(alphas, ranks):
        yield make(alpha, rank, terms=terms, tau=tau, size=eval_size, seed=eval_seed)


def of_rank(alpha: float, rank: int, x: np.ndarray) -> PodTarget:
    """A target of that rank on given inputs, in double precision."""
    sigma = singular_values(alpha, rank, rank)
    return PodTarget(alpha, rank, sigma, x, softmax_average(coupling(sigma, x), x))


def load_grid(folder, target: Group) -> list[PodTarget]:
    """The targets of the grid in params.yaml, and no others that may lie in the folder."""
    grid = itertools.product(target.alphas, target.ranks)
    return [PodTarget.load(folder / f"alpha{alpha:g}_rank{rank}.npz") for alpha, rank in grid]
