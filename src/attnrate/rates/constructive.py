"""The network in the proof of Theorem 4.1 (A.3), set by hand: nothing in it is trained.

f̂ gives (φ̂_1 … φ̂_m, ψ̂_1 … ψ̂_m, x), eq. (18), a function of both kinds once; W_Q and W_K pick the rows; F̂ is the
identity through ReLU. The first layer of f̂ places ReLU knots evenly on [0, 1], the second passes them on, and the
last is the least-squares fit of the wanted functions: linear interpolation, for which eq. (13) holds with β = 2.
"""

import numpy as np
import torch

from attnrate.rates.pod import PodTarget, phi
from attnrate.small.transformer import Transformer, predict

FIT_GRID = 1024  # points of the least-squares fit


def fourier(x: np.ndarray, modes: int) -> np.ndarray:
    """1, √2 sin 2πjx, √2 cos 2πjx for j = 1 … modes, orthonormal on [0, 1]: (...) → (..., 1 + 2 modes)."""
    angle = 2 * np.pi * x[..., None] * np.arange(1, modes + 1)
    return np.concatenate([np.ones((*x.shape, 1)), np.sqrt(2) * np.sin(angle), np.sqrt(2) * np.cos(angle)], -1)


@torch.no_grad()
def build(
    mh: int, table: np.ndarray, phi: np.ndarray, psi: np.ndarray, weights: np.ndarray, *, n: int, width: int
) -> Transformer:
    """The Transformer of head size m_h with ρ̂(u, v) = Σ_{k ≤ r} weights_k φ̂_k(u) ψ̂_k(v), f = F = identity.

    table is (FIT_GRID, c), functions on an even grid, of which phi and psi, (r,) with r ≤ m_h, choose the columns;
    n ≥ c + 1, where c is the theorem's 2 r unless functions are shared.
    """
    grid, rank = np.linspace(0, 1, FIT_GRID)[:, None], len(phi)
    functions = np.concatenate([table, grid], 1)
    used = functions.shape[1]
    if used > n:
        raise ValueError(f"rank {rank} needs {used} components of f̂ but n = {n}")
    model = Transformer([mh], [0], n=n, width=width)
    for p in model.parameters():
        p.zero_()
    model.spread_knots(slope=1.0)
    model.f.weight[1][0] = torch.eye(width)
    # In double precision: the knots are far from orthogonal.
    hidden = model.double().f.hidden(torch.tensor(grid)[None])[0].numpy()  # (FIT_GRID, width)
    fit = np.linalg.lstsq(np.concatenate([hidden, np.ones_like(grid)], 1), functions, rcond=1e-12)[0]
    model.float()
    model.f.weight[2][0, :used] = torch.tensor(fit[:-1].T)
    model.f.bias[2][0, 0, :used] = torch.tensor(fit[-1])
    root = torch.tensor(np.sqrt(weights), dtype=torch.float32)
    k = torch.arange(rank)
    model.W_Q[0, k, phi] = root
    model.W_K[0, k, psi] = root
    model.W_V[0, 0, used - 1] = 1
    # F̂(a) = relu(relu(a + 1)) - 1 = a for a ≥ -1
    for layer in model.F.weight:
        layer[0, 0, 0] = 1
    model.F.bias[0][0, 0, 0] = 1
    model.F.bias[2][0, 0, 0] = -1
    return model


def errors(target: PodTarget, mh: int, *, n: int, width: int) -> dict:
    """The network's mean squared error and Σ_t E|error| on the evaluation set."""
    rank = min(mh, len(target.sigma))
    both = np.concatenate([np.arange(1, rank + 1), target.frequencies[:rank]])
    distinct, column = np.unique(both, return_inverse=True)
    table = phi(distinct, np.linspace(0, 1, FIT_GRID))
    model = build(mh, table, column[:rank], column[rank:], target.sigma[:rank], n=n, width=width)
    error = predict(model, target.x)[0] - target.y
    mse, l1 = (error**2).mean(), np.abs(error).mean(0).sum()
    return {**target.key, "mh": mh, "mse": mse, "l1": l1}
