"""Targets of eq. (8) with prescribed POD (eqs. 10 and 68), F and f the identity, scalar x ~ U[0, 1].

    H_t(x) = Σ_s softmax[ρ(x(t), x(·))](s) x(s),   ρ(u, v) = Σ_{i ≤ r} σ_i φ_i(u) ψ_i(v),
    φ_i(x) = √2 sin 2πix,   ψ_i = φ_p(i),   σ_i = i^-α

The φ_i are orthonormal on [0, 1] and p is a permutation, so the σ_i are exactly the singular values of ρ. Rank
r = ∞ is cut at a stated number of terms R. The paper names the set that the ψ_i come from, but not p, the pairing:
`same` is ψ_i = φ_i; `dyadic-N` draws p from the seed N inside the blocks {1}, {2, 3}, {4 … 7}, … of 1 … R.
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


def pair(pairing: str, terms: int) -> np.ndarray:
    """p(1) … p(R), the frequencies of ψ_1 … ψ_R."""
    i = np.arange(1, terms + 1)
    if pairing == "same":
        return i
    rng = np.random.default_rng(int(pairing.removeprefix("dyadic-")))
    blocks = np.split(i, 2 ** np.arange(1, terms.bit_length()) - 1)  # the last may be incomplete
    return np.concatenate([rng.permutation(block) for block in blocks])


def coupling(sigma: np.ndarray, frequencies: np.ndarray, x: np.ndarray) -> np.ndarray:
    """ρ(x(t), x(s)) for sequences x, with the frequencies of the ψ_i: (r,), (r,), (N, τ) → (N, τ, τ)."""
    i = np.arange(1, len(sigma) + 1)
    return (phi(i, x) * sigma) @ phi(frequencies, x).swapaxes(-1, -2)


def softmax_average(rho: np.ndarray, x: np.ndarray, diagonal: bool = True) -> np.ndarray:
    """Σ_s softmax[ρ(t, ·)](s) x(s): (N, τ, τ), (N, τ) → (N, τ); diagonal=False leaves s = t out of the sum."""
    if not diagonal:
        rho = np.where(np.eye(rho.shape[-1], dtype=bool), -np.inf, rho)
    weights = np.exp(rho - rho.max(-1, keepdims=True))
    return (weights @ x[..., None])[..., 0] / weights.sum(-1)


def name(pairing: str, alpha: float, rank: Rank) -> str:
    return f"{pairing}_alpha{alpha:g}_rank{rank}"


@dataclass(frozen=True)
class PodTarget:
    pairing: str
    alpha: float
    rank: Rank
    sigma: np.ndarray  # (r or R,)
    frequencies: np.ndarray  # (r or R,): of the ψ_i
    x: np.ndarray  # (N, τ): the evaluation set
    y: np.ndarray  # (N, τ): H_t(x)

    @property
    def name(self) -> str:
        return name(self.pairing, self.alpha, self.rank)

    @property
    def key(self) -> dict:
        """The first columns of every table."""
        return {"pairing": self.pairing, "alpha": self.alpha, "rank": self.rank}

    def truncated(self, mh: int, diagonal: bool = True) -> np.ndarray:
        """The target with only the first m_h terms of its POD, on the evaluation set."""
        return softmax_average(coupling(self.sigma[:mh], self.frequencies[:mh], self.x), self.x, diagonal)

    def save(self, path) -> None:
        np.savez(path, **vars(self) | {"rank": str(self.rank)})

    @classmethod
    def load(cls, path) -> "PodTarget":
        z = files.read_npz(path)
        with files.reading(path):
            rank, x, sigma = str(z["rank"]), z["x"], z["sigma"]
            if x.ndim != 2 or x.shape != z["y"].shape or sigma.ndim != 1 or sigma.shape != z["frequencies"].shape:
                raise ValueError("its arrays are not those of a target")
            return cls(
                str(z["pairing"]),
                float(z["alpha"]),
                rank if rank == "inf" else int(rank),
                sigma,
                z["frequencies"],
                x.astype(np.float64),
                z["y"].astype(np.float64),
            )


def make(pairing: str, alpha: float, rank: Rank, *, terms: int, tau: int, size: int, seed: int) -> PodTarget:
    """One target with an evaluation set; the inputs x are the same for every target of a seed."""
    x = np.random.default_rng(seed).random((size, tau), dtype=np.float32)
    sigma = singular_values(alpha, rank, terms)
    frequencies = pair(pairing, terms)[: len(sigma)]  # every rank cuts the same pairing
    y = softmax_average(coupling(sigma, frequencies, x.astype(np.float64)), x.astype(np.float64))
    return PodTarget(pairing, alpha, rank, sigma, frequencies, x, y.astype(np.float32))


def make_grid(
    *,
    pairings: list[str],
    alphas: list[float],
    ranks: list[Rank],
    terms: int,
    tau: int,
    eval_size: int,
    eval_seed: int,
) -> Iterator[PodTarget]:
    for pairing, alpha, rank in itertools.product(pairings, alphas, ranks):
        yield make(pairing, alpha, rank, terms=terms, tau=tau, size=eval_size, seed=eval_seed)


def of_rank(alpha: float, rank: int, x: np.ndarray) -> PodTarget:
    """A target of that rank on given inputs, ψ_i = φ_i, in double precision."""
    sigma, frequencies = singular_values(alpha, rank, rank), pair("same", rank)
    y = softmax_average(coupling(sigma, frequencies, x), x)
    return PodTarget("same", alpha, rank, sigma, frequencies, x, y)


def load_grid(folder, target: Group) -> list[PodTarget]:
    """The targets of the grid in params.yaml, and no others that may lie in the folder."""
    grid = itertools.product(target.pairings, target.alphas, target.ranks)
    return [PodTarget.load(folder / f"{name(*cell)}.npz") for cell in grid]
