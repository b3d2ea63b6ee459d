"""The best kernel of rank m_h for an eq. (8) target, free of any network.

ρ̂(u, v) = Σ_k φ̂_k(u) ψ̂_k(v) with φ̂_k, ψ̂_k free in the Fourier basis (1, sin, cos up to `modes`), started at the
POD truncation and optimised for the error of H itself. The truncation is optimal for ‖ρ - ρ̂‖ (eq. 11), not for
H: the softmax forgives row constants and saturates, so the optimised kernel does better.
"""

import numpy as np
import torch
from torch import nn

from attnrate.core.params import Group
from attnrate.rates.constructive import FIT_GRID, build, fourier
from attnrate.rates.pod import PodTarget
from attnrate.small.loop import train
from attnrate.small.transformer import predict


class Kernels(nn.Module):
    def __init__(self, start: torch.Tensor):  # (M, 1 + 2 modes, m_h): coefficients of φ̂ and of ψ̂
        super().__init__()
        self.a, self.b = nn.Parameter(start.clone()), nn.Parameter(start.clone())


def pod_start(target: PodTarget, rank: int, modes: int) -> np.ndarray:
    """Coefficients (1 + 2 modes, rank) of √σ_k φ_k, the POD truncation's φ̂ and ψ̂."""
    start = np.zeros((1 + 2 * modes, rank), dtype=np.float32)
    k = np.arange(rank)
    start[1 + k, k] = np.sqrt(target.sigma[:rank])
    return start


def optimise(
    target: PodTarget,
    cells: dict[tuple[int, int], np.ndarray],
    seeds: list[int],
    *,
    modes: int,
    steps: int,
    batch: int,
    lr: float,
) -> dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]:
    """The optimised coefficients of φ̂ and ψ̂ for cells {(m_h, index of seed): start}."""
    if not cells:
        return {}
    tau, size, dim = target.x.shape[1], max(mh for mh, _ in cells), 1 + 2 * modes
    start = torch.zeros(len(cells), dim, size)  # columns beyond m_h stay zero: a zero pair has zero gradient
    for row, a in zip(start, cells.values(), strict=True):
        row[:, : a.shape[1]] = torch.from_numpy(a)
    kernels = Kernels(start)
    # Each loss in units of the truncation's error, so that Adam's step suits every m_h.
    error = {mh: ((target.truncated(mh) - target.y) ** 2).mean() for mh, _ in cells}
    scale = torch.tensor([error[mh] for mh, _ in cells], dtype=torch.float32)
    which = torch.tensor([i for _, i in cells])  # cells of one seed see the same samples
    sigma = torch.tensor(target.sigma, dtype=torch.float32)
    frequencies = torch.arange(1, len(sigma) + 1)
    generators = [torch.Generator().manual_seed(s) for s in seeds]

    def loss(_: int) -> torch.Tensor:
        x = torch.stack([torch.rand(batch, tau, generator=g) for g in generators])  # (S, B, τ)
        exact = 2**0.5 * torch.sin(2 * np.pi * x[..., None] * frequencies)  # (S, B, τ, R)
        y = ((exact * sigma) @ exact.mT).softmax(-1) @ x[..., None]  # (S, B, τ, 1)
        basis = torch.tensor(fourier(x.numpy(), modes), dtype=torch.float32).view(len(seeds), batch * tau, dim)[which]
        q = (basis @ kernels.a).view(len(cells), batch, tau, size)
        k = (basis @ kernels.b).view(len(cells), batch, tau, size)
        guess = (q @ k.mT).softmax(-1) @ x[which][..., None]
        return (guess - y[which]).square().mean((1, 2, 3)) / scale

    train(kernels, loss, steps=steps, lr=lr, label=f"free kernel, {target.name}")
    tables = zip(cells, kernels.a.detach().numpy(), kernels.b.detach().numpy(), strict=True)
    return {(mh, i): (a[:, :mh], b[:, :mh]) for (mh, i), a, b in tables}


def errors(target: PodTarget, own: Group, model: Group) -> list[dict]:
    """The error of the network that is fitted to the optimised kernel, for every m_h and seed."""
    rank, modes = len(target.sigma), own.modes
    cells = [(mh, i) for mh in own.mh if 2 * mh + 1 <= model.n for i in range(len(own.seeds))]
    start = {(mh, i): pod_start(target, min(mh, rank), modes) for mh, i in cells}
    open_cells = {cell: start[cell] for cell in cells if cell[0] < rank}  # from m_h = r on the POD is exact
    best = optimise(target, open_cells, own.seeds, modes=modes, steps=own.steps, batch=own.batch, lr=own.lr)
    basis, rows = fourier(np.linspace(0, 1, FIT_GRID), modes), []
    for (mh, i), (a, b) in ({c: (a, a) for c, a in start.items()} | best).items():
        network = build(mh, basis @ a, basis @ b, np.ones(a.shape[1]), **model)
        mse = ((predict(network, target.x)[0] - target.y) ** 2).mean()
        rows.append({"alpha": target.alpha, "rank": target.rank, "mh": mh, "seed": own.seeds[i], "mse": mse})
    return rows
