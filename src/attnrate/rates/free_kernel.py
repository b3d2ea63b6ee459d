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
    def __init__(self, a: torch.Tensor, b: torch.Tensor):  # (M, 1 + 2 modes, m_h): coefficients of φ̂ and of ψ̂
        super().__init__()
        self.a, self.b = nn.Parameter(a.clone()), nn.Parameter(b.clone())


def pod_start(target: PodTarget, rank: int, modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients, each (1 + 2 modes, rank), of √σ_k φ_k and √σ_k ψ_k, the POD truncation's φ̂ and ψ̂."""
    a, b = np.zeros((2, 1 + 2 * modes, rank), dtype=np.float32)
    k, root = np.arange(rank), np.sqrt(target.sigma[:rank])
    a[1 + k, k] = root  # row i of the sines has frequency i
    b[target.frequencies[:rank], k] = root
    return a, b


def optimise(
    target: PodTarget,
    cells: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]],
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
    start = torch.zeros(2, len(cells), dim, size)  # columns beyond m_h stay zero: a zero pair has zero gradient
    for i, pair in enumerate(cells.values()):
        start[:, i, :, : pair[0].shape[1]] = torch.tensor(np.stack(pair))
    kernels = Kernels(*start)
    # Each loss in units of the truncation's error, so that Adam's step suits every m_h.
    error = {mh: ((target.truncated(mh) - target.y) ** 2).mean() for mh, _ in cells}
    scale = torch.tensor([error[mh] for mh, _ in cells], dtype=torch.float32)
    which = torch.tensor([i for _, i in cells])  # cells of one seed see the same samples
    sigma = torch.tensor(target.sigma, dtype=torch.float32)
    psi = torch.tensor(target.frequencies)
    frequencies = torch.arange(1, psi.max() + 1)
    generators = [torch.Generator().manual_seed(s) for s in seeds]

    def loss(_: int) -> torch.Tensor:
        x = torch.stack([torch.rand(batch, tau, generator=g) for g in generators])  # (S, B, τ)
        exact = 2**0.5 * torch.sin(2 * np.pi * x[..., None] * frequencies)  # (S, B, τ, largest frequency)
        rho = (exact[..., : len(sigma)] * sigma) @ exact[..., psi - 1].mT  # (S, B, τ, τ)
        y = rho.softmax(-1) @ x[..., None]  # (S, B, τ, 1)
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
    for (mh, i), pair in (start | best).items():
        phi, psi = np.arange(2 * min(mh, rank)).reshape(2, -1)  # the columns of φ̂ and of ψ̂
        network = build(mh, basis @ np.concatenate(pair, 1), phi, psi, np.ones(len(phi)), **model)
        mse = ((predict(network, target.x)[0] - target.y) ** 2).mean()
        rows.append({**target.key, "mh": mh, "seed": own.seeds[i], "mse": mse})
    return rows
