"""Heads against rank at the same budget h · m_h: h softmaxes of rank m_h, or one of rank h m_h.

A target is the mean of c softmax averages of x, each with a coupling of rank r (c = 1: eq. 8):

    H_t(x) = (1/c) Σ_j Σ_s softmax[ρ_j(x(t), x(·))](s) x(s),   ρ_j(u, v) = Σ_{i ≤ r} ± i^-α φ_i(u) φ_{p_j(i)}(v)

p_j and the signs are drawn, so that the couplings differ; the draws are the replicates. An estimator of h heads is
Σ_j Σ_s softmax[ρ̂_j](s) v_j(x(s)) with ρ̂_j of rank m_h and v_j free in the Fourier basis (F̂ affine, no network). It is
exact where h ≥ c and m_h ≥ r.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attnrate.core.params import Group
from attnrate.small.loop import train
from attnrate.small.streams import Streams
from attnrate.small.transformer import Transformer

NOISE = 0.03  # of a start, so that heads with one coupling part


@dataclass(frozen=True)
class Target:
    count: int  # c
    rank: int  # r
    draw: int
    matrix: np.ndarray  # (c, modes, modes): ρ_j in the basis of φ_1, φ_2, …

    @property
    def name(self) -> str:
        return f"{self.count}x{self.rank}"


def make(structure: str, draw: int, own: Group) -> Target:
    """The target of a structure such as `4x4`: four couplings of rank four."""
    count, rank = (int(part) for part in structure.split("x"))
    rng = np.random.default_rng([draw, count, rank])
    matrix = np.zeros((count, own.modes, own.modes))
    for j in range(count):
        i = np.arange(rank)
        matrix[j, i, rng.permutation(rank)] = rng.choice([-1.0, 1.0], rank) * (i + 1.0) ** -own.alpha
    return Target(count, rank, draw, matrix)


def basis(x: Tensor, modes: int) -> Tensor:
    """φ_1 … φ_modes, their cosines, 1 and x: (…) → (…, 2 modes + 2)."""
    angle = 2 * np.pi * x[..., None] * torch.arange(1, modes + 1)
    return torch.cat([2**0.5 * angle.sin(), 2**0.5 * angle.cos(), torch.ones_like(x)[..., None], x[..., None]], -1)


def exact(matrices: Tensor, x: Tensor, queries: int | None = None) -> Tensor:
    """H_t(x) for the first times t: (T, c, modes, modes), (B, τ) → (T, B, queries)."""
    phi = basis(x, matrices.shape[-1])[..., : matrices.shape[-1]]  # (B, τ, modes)
    left = phi[:, :queries] @ matrices[:, :, None]  # (T, c, B, queries, modes)
    return ((left @ phi.mT).softmax(-1) @ x[..., None])[..., 0].mean(1)


class Heads(nn.Module):
    """ρ̂_j = a_j b_jᵀ and v_j in the basis, for M estimators of h heads: (M, h, K, m_h) twice, (M, h, K)."""

    def __init__(self, a: Tensor, b: Tensor, v: Tensor):
        super().__init__()
        self.a, self.b, self.v = nn.Parameter(a), nn.Parameter(b), nn.Parameter(v)

    def forward(self, x: Tensor, modes: int) -> Tensor:  # (M, B, τ) → (M, B, τ)
        values = basis(x, modes).unsqueeze(1)  # (M, 1, B, τ, K)
        q, k = values @ self.a.unsqueeze(2), values @ self.b.unsqueeze(2)  # (M, h, B, τ, m_h)
        return ((q @ k.mT).softmax(-1) @ (values @ self.v[:, :, None, :, None]))[..., 0].sum(1)


def start(target: Target, heads: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Head j has the best rank-m_h part of the mean of the couplings j, j + h, …, or of coupling j mod c."""
    modes, rng = target.matrix.shape[-1], np.random.default_rng(seed)
    own = target.count >= heads
    a, b = np.zeros((2, heads, 2 * modes + 2, size))
    for j in range(heads):
        matrix = target.matrix[j::heads].mean(0) if own else target.matrix[j % target.count]
        left, sigma, right = np.linalg.svd(matrix)
        a[j, :modes] = left[:, :size] * sigma[:size] ** 0.5
        b[j, :modes] = right[:size].T * sigma[:size] ** 0.5
    v = np.zeros((heads, 2 * modes + 2))
    v[:, -1] = 1 / heads
    if not fits(target, heads, size):
        a, b = (w + NOISE * rng.standard_normal(w.shape) for w in (a, b))
    return a, b, v


def fits(target: Target, heads: int, size: int) -> bool:
    return heads >= target.count and size >= target.rank


def rows(targets: list[Target], heads: int, own: Group, mse: list[float], estimator: str) -> list[dict]:
    size = own.budget // heads
    return [
        {"target": t.name, "draw": t.draw, "heads": heads, "mh": size, "estimator": estimator, "mse": e, "exact": ok}
        for t, e, ok in ((t, e, fits(t, heads, size)) for t, e in zip(targets, mse, strict=True))
    ]


def evaluation(targets: list[Target], own: Group) -> tuple[Tensor, Tensor]:
    """x (N, τ) and H(x) (T, N, τ)."""
    x = torch.rand(own.eval_size, own.tau, generator=torch.Generator().manual_seed(own.eval_seed))
    return x, torch.cat([exact(matrix(t), x) for t in targets])


def matrix(target: Target) -> Tensor:  # (1, c, modes, modes)
    return torch.tensor(target.matrix, dtype=torch.float32)[None]


def free(targets: list[Target], heads: int, own: Group) -> list[dict]:
    """Estimators of h heads without a network, optimised for the error of H."""
    size = own.budget // heads
    open_ones = [t for t in targets if not fits(t, heads, size)]
    errors = dict.fromkeys(map(id, targets), 0.0)
    if open_ones:
        starts = (start(t, heads, size, t.draw) for t in open_ones)
        parts = (torch.tensor(np.stack(p), dtype=torch.float32) for p in zip(*starts, strict=True))
        model, streams = Heads(*parts), Streams([t.draw for t in open_ones])
        x_test, y_test = evaluation(open_ones, own)

        def mse() -> Tensor:
            with torch.no_grad():
                parts = zip(x_test.split(64), y_test.split(64, 1), strict=True)
                shape = (len(open_ones), -1, -1)
                return sum((model(x.expand(*shape), own.modes) - y).square().sum((1, 2)) for x, y in parts)

        scale = mse() / y_test[0].numel()  # so that Adam's step suits every cell

        def loss(_: int) -> Tensor:
            x = streams.rand(own.batch, own.tau)
            y = torch.cat([exact(matrix(t), x[w]) for t, w in zip(open_ones, streams.which, strict=True)])
            return (model(x[streams.which], own.modes) - y).square().mean((1, 2)) / scale

        train(model, loss, steps=own.free_steps, lr=own.free_lr, label=f"{heads} free heads")
        errors |= zip(map(id, open_ones), (mse() / y_test[0].numel()).tolist(), strict=True)
    return rows(targets, heads, own, list(errors.values()), "free")


def trained(targets: list[Target], heads: int, own: Group, model: Group) -> list[dict]:
    """The Transformer of eq. (5) with h heads, a model for each target."""
    size = own.budget // heads
    stack = Transformer([size] * len(targets), [t.draw for t in targets], heads=heads, **model)
    stack.spread_hats(own.hats)
    x_test, y_test = evaluation(targets, own)
    stack.standardise(y_test.mean((1, 2)).view(-1, 1, 1, 1), y_test.std((1, 2)).view(-1, 1, 1, 1))
    streams = Streams([t.draw for t in targets])

    def loss(_: int) -> Tensor:
        points = streams.rand(own.points)  # (draws, G)
        index = streams.rand(own.batch, own.points).topk(own.tau).indices  # τ different ones of them, in random order
        drawn = [(matrix(t), points[w][index[w]]) for t, w in zip(targets, streams.which, strict=True)]
        y = torch.cat([exact(m, x, own.queries) for m, x in drawn])
        guess = stack.on_points(points[streams.which][..., None], index[streams.which], own.queries)[..., 0]
        return ((guess - y) / stack.scale[..., 0]).square().mean((1, 2))

    how = {"lr": own.lr, "muon": own.muon, "warmup": own.warmup}
    train(stack, loss, steps=own.steps, label=f"{heads} trained heads", **how)
    with torch.no_grad():
        guess = torch.cat([stack(part[..., None])[..., 0] for part in x_test.split(64)], 1)
    return rows(targets, heads, own, (guess - y_test).square().mean((1, 2)).tolist(), "trained")
