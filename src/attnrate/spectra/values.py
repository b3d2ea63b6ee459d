"""Singular values of pre-softmax attention matrices ρ̂(x) = q kᵀ (section 5.2, Figures 2 and 3a), image by image.

q and k are (τ, m_h), so the singular values come from m_h-sized factors and no τ x τ matrix is formed. Sums over
images are kept, not the images' spectra.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

QR_LIMIT = 16  # up to this m_h QR factors are as fast, beyond it double-precision Gram matrices
NORMALISATIONS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "tokens": lambda s, tau: s / tau,  # the authors': tends to the operator's own values as τ grows
    "largest": lambda s, tau: s / positive(s[..., :1]),
    "none": lambda s, tau: s,
}


def singular_values(q: Tensor, k: Tensor) -> Tensor:
    """Those of q kᵀ, descending: (N, τ, m), (N, τ', m) → (N, min(τ, τ', m))."""
    return _by_gram(q, k) if QR_LIMIT < q.shape[-1] <= min(q.shape[-2], k.shape[-2]) else _by_qr(q, k)


def _by_qr(q: Tensor, k: Tensor) -> Tensor:
    """q kᵀ = U₁ (R₁ R₂ᵀ) U₂ᵀ."""
    return torch.linalg.svdvals(torch.linalg.qr(q, mode="r").R @ torch.linalg.qr(k, mode="r").R.mT)


def _by_gram(q: Tensor, k: Tensor) -> Tensor:
    """With qᵀ q = L Lᵀ the squares are the eigenvalues of Lᵀ (kᵀ k) L. NumPy, since it halves the work of aᵀ a."""
    a, b = q.double().numpy(), k.double().numpy()
    try:
        lower = np.linalg.cholesky(a.mT @ a)
    except np.linalg.LinAlgError:  # q lacks full rank
        return _by_qr(q, k)
    squares = np.linalg.eigvalsh(lower.mT @ (b.mT @ b) @ lower)
    return torch.from_numpy(np.sqrt(squares.clip(min=0))).flip(-1).to(q.dtype)


def dense_values(a: Tensor) -> Tensor:
    """Those of full matrices, down to 1e-8 of the largest: (N, τ, τ') → (N, min(τ, τ'))."""
    a = a.double().cpu()
    squares = np.linalg.eigvalsh((a @ a.mT if a.shape[-2] <= a.shape[-1] else a.mT @ a).numpy())
    return torch.from_numpy(np.sqrt(squares.clip(min=0))).flip(-1).float()


def effective_rank(s: Tensor) -> Tensor:
    """exp of the entropy of the values' shares: (..., K) → (...); 0 where there are none, as of a dead head."""
    total = s.sum(-1, keepdim=True)
    return torch.special.entr(s / positive(total)).sum(-1).exp() * (total[..., 0] > 0)


def positive(x: Tensor) -> Tensor:
    """For a division of zeros by zero, which is zero."""
    return torch.where(x > 0, x, 1.0)


def energy_rank(s: Tensor, part: float) -> Tensor:
    """The least number of values whose squares hold `part` of the sum of squares: (..., K) → (...)."""
    energy = s.double().square().cumsum(-1)
    return 1 + (energy < part * energy[..., -1:]).sum(-1)


class Moments:
    """Mean and standard deviation of a stream of vectors, in memory that does not grow with it (Chan's update)."""

    def __init__(self):
        self.n, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, values: Tensor) -> None:  # (N, ...): N more
        x = values.double().numpy()
        n, mean = len(x), x.mean(0)
        delta = mean - self.mean
        self.squares = self.squares + ((x - mean) ** 2).sum(0) + delta**2 * self.n * n / (self.n + n)
        self.mean = self.mean + delta * n / (self.n + n)
        self.n += n

    @property
    def sd(self) -> np.ndarray:
        return np.sqrt(self.squares / max(1, self.n - 1))


class Spectra:
    """Statistics of the spectra of one layer's heads over images."""

    def __init__(self, normalisation: str):
        self.normalise = NORMALISATIONS[normalisation]
        self.values = Moments()  # (h, K)
        self.ranks = Moments()  # (h, 3): effective, 90 % and 99 % energy

    def add(self, q: Tensor, k: Tensor, windows: int = 1) -> Tensor:
        """One batch, (B n, h, τ, m_h) each, n windows an input; returns its normalised values (B, h, K)."""
        s = singular_values(q.flatten(0, 1), k.flatten(0, 1)).unflatten(0, q.shape[:2])
        return self.take(s, (q.shape[-2] * k.shape[-2]) ** 0.5, windows)

    def take(self, s: Tensor, tau: float, windows: int = 1, most: int | None = None) -> Tensor:
        """The values themselves, (B n, h, K), of which `most` are kept; averaged over windows."""
        ranks = torch.stack([effective_rank(s), energy_rank(s, 0.9), energy_rank(s, 0.99)], -1)
        s = self.normalise(s[..., :most], tau)
        if windows > 1:
            s, ranks = (x.double().unflatten(0, (-1, windows)).mean(1) for x in (s, ranks))
        self.ranks.add(ranks)
        self.values.add(s)
        return s
