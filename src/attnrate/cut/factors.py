"""The best bilinear form of rank m_h between queries and keys (eq. 11, head by head).

Scores are q kᵀ. Replacing them by q T kᵀ, T of rank m_h, changes them least in mean square over queries with second
moments A = E[qᵀ q] and keys with B = E[kᵀ k] when T keeps the m_h largest singular values of A^½ B^½. With B = L Lᵀ and
the eigenvectors V of Lᵀ A L, T = (L V_m) (L⁻ᵀ V_m)ᵀ: one factorisation for every m_h. Three choices of A and B:
    scores    those of one input: the best approximation of its own scores, an oracle
    weights   W_Q W_Qᵀ and W_K W_Kᵀ, biases as one more column: the SVD of W_Qᵀ W_K, as if inputs were white
    data      those over all inputs: the same SVD, whitened by the second moments of the inputs
"""

from dataclasses import dataclass

import torch
from torch import Tensor

METHODS = ("scores", "weights", "data")
JITTER = 1e-10  # of the mean of B's diagonal, where keys do not fill all dimensions


@dataclass(frozen=True)
class Factors:
    """q kᵀ = (q left) (k right)ᵀ, and the first m columns of both are the best for that m: (…, D, D), in doubles."""

    left: Tensor
    right: Tensor

    def form(self, m: int) -> Tensor:
        """T of rank m: (…, D, D)."""
        return self.left[..., :m] @ self.right[..., :m].mT


def second_moments(x: Tensor) -> Tensor:
    """(…, τ, D) → (…, D, D)."""
    x = x.double()
    return x.mT @ x


def factors(a: Tensor, b: Tensor) -> Factors:
    """a, b: second moments of queries and of keys, up to constants: (…, D, D) each, on any device."""
    size = b.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    eye = torch.eye(b.shape[-1], dtype=b.dtype, device=b.device)
    lower = torch.linalg.cholesky(b + (JITTER * size).clamp(min=1e-200) * eye)
    squares, v = torch.linalg.eigh(lower.mT @ a @ lower)
    squares, v = squares.flip(-1).clamp(min=0), v.flip(-1)
    # columns of queries and of keys of one size, for weights in few digits
    root = torch.where(squares > 1e-20 * squares[..., :1], squares, 1.0)[..., None, :] ** 0.25
    right = torch.linalg.solve_triangular(lower.mT, v, upper=True)
    return Factors(lower @ v / root, right * root)


def left_out(found: Factors, a: Tensor, b: Tensor) -> Tensor:
    """‖q kᵀ - q T kᵀ‖² for every m = 0 … D, of queries and keys with qᵀ q = a and kᵀ k = b: (…, D + 1)."""
    products = (found.left.mT @ a @ found.left) * (found.right.mT @ b @ found.right)
    blocks = products.flip(-1, -2).cumsum(-1).cumsum(-2).diagonal(dim1=-2, dim2=-1).flip(-1)  # of i, j ≥ m
    return torch.nn.functional.pad(blocks.clamp(min=0), (0, 1))


def shared(k: Tensor) -> int:
    """How many neighbouring heads have the same keys: (N, h, τ, D) → 1 or more."""
    if k.shape[1] == 1:
        return 1
    apart = 1 + int((k[:1, 1:] != k[:1, :-1]).flatten(2).any(-1).sum())
    return k.shape[1] // apart if k.shape[1] % apart == 0 else 1


def grouped(a: Tensor, group: int) -> Tensor:
    """The mean of heads that share keys, for each of them: (h, D, D)."""
    return a if group == 1 else a.unflatten(0, (-1, group)).mean(1).repeat_interleave(group, 0)
