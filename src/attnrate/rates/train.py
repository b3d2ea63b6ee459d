"""Training the Transformer of eq. (5) on POD targets (section 5.1), all cells (target, m_h, seed) in one stack.

A recipe with `hats` starts f̂ from hats of that height over [0, 1] and centres and scales the outputs; `paper` has
none: PyTorch's default initialisation and Adam, as appendix C says.

At each step G points are drawn uniformly, and each sequence is τ different ones of them: its inputs are independent
and uniform, and f̂ acts on G points instead of B τ. A few outputs t of each sequence enter the loss, which is that of
all, since the inputs of a sequence are exchangeable. Each pairing and seed has its own stream of inputs.
"""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from attnrate.core.params import Group
from attnrate.rates.pod import PodTarget
from attnrate.small.loop import train
from attnrate.small.streams import Streams
from attnrate.small.transformer import Transformer


class Sampler:
    """Fresh inputs for cells (index of target, m_h, seed), with the outputs of their targets."""

    def __init__(self, targets: list[PodTarget], cells: list[tuple[int, int, int]], budget: Group, batch: int):
        self.budget, self.batch, self.tau = budget, batch, targets[0].x.shape[1]
        pairings = list(dict.fromkeys(t.pairing for t in targets))
        numbers = [seed * 1_000 + pairings.index(targets[t].pairing) for t, _, seed in cells]
        self.streams = Streams(numbers)
        self.kernels = {}  # of each stream: σ (T, R) of its targets, and ψ_1 … ψ_R as columns of φ_1, φ_2, …
        places = {}
        for number in sorted(set(numbers)):
            own = sorted({t for (t, _, _), n in zip(cells, numbers, strict=True) if n == number})
            longest = max((targets[t] for t in own), key=lambda t: len(t.sigma))  # every rank cuts the same pairing
            sigma = torch.zeros(len(own), len(longest.sigma))
            for row, t in zip(sigma, own, strict=True):
                row[: len(targets[t].sigma)] = torch.tensor(targets[t].sigma)
            self.kernels[number] = sigma, torch.tensor(longest.frequencies) - 1
            places |= {(number, t): len(places) + i for i, t in enumerate(own)}
        self.places = torch.tensor([places[n, t] for n, (t, _, _) in zip(numbers, cells, strict=True)])

    def draw(self) -> tuple[Tensor, Tensor, Tensor]:  # points (M, G), index (M, B, τ), y (M, B, queries)
        points, queries = self.budget.points, self.budget.queries
        x = self.streams.rand(points)  # (streams, G)
        index = self.streams.rand(self.batch, points).topk(self.tau).indices  # τ different ones, in random order
        outputs = [
            exact(*kernel, x_k, index_k, queries)
            for kernel, x_k, index_k in zip(self.kernels.values(), x, index, strict=True)
        ]
        return x[self.streams.which], index[self.streams.which], torch.cat(outputs)[self.places]


def exact(sigma: Tensor, psi: Tensor, x: Tensor, index: Tensor, queries: int) -> Tensor:
    """H_t(x[index]) of eq. (8) at the first times t: (T, R), (R,), (G,), (B, τ) → (T, B, queries)."""
    phi = 2**0.5 * torch.sin(2 * np.pi * x[:, None] * torch.arange(1, psi.max() + 2))  # (G, frequencies)
    left = phi[index[:, :queries], : len(psi)]  # (B, queries, R)
    right = phi[:, psi][index]  # (B, τ, R)
    rho = (sigma[:, None, None] * left) @ right.mT  # (T, B, queries, τ)
    return (rho.softmax(-1) @ x[index][..., None])[..., 0]


def fit(
    targets: list[PodTarget], cells: list[tuple[int, int, int]], recipe: Group, model: Group, budget: Group, label: str
) -> tuple[Transformer, pd.DataFrame]:
    """The trained stack for cells (index of target, m_h, seed), and its loss history (a column a cell)."""
    # Cells of one seed differ in their start even where they differ only in the target.
    seeds = [seed * 100_000 + t * 1_000 + mh for t, mh, seed in cells]
    stack = Transformer([mh for _, mh, _ in cells], seeds, **model)
    if recipe.hats is not None:
        stack.spread_hats(recipe.hats)
        y = torch.tensor(np.stack([targets[t].y for t, _, _ in cells]), dtype=torch.float32)
        stack.standardise(y.mean((1, 2)).view(-1, 1, 1, 1), y.std((1, 2)).view(-1, 1, 1, 1))
    sampler = Sampler(targets, cells, budget, recipe.batch)

    def loss(_: int) -> Tensor:
        points, index, y = sampler.draw()
        error = stack.on_points(points[..., None], index, budget.queries)[..., 0] - y
        return (error / stack.scale[..., 0]).square().mean((1, 2))

    history = train(
        stack,
        loss,
        steps=recipe.steps,
        lr=recipe.lr,
        muon=recipe.muon,
        warmup=recipe.warmup,
        schedule=recipe.schedule,
        history=25,
        label=label,
    )
    return stack, history * stack.scale.flatten().square().numpy()


@torch.no_grad()
def learned_spectrum(stack: Transformer, points: int = 256) -> np.ndarray:
    """Singular values of each model's ρ̂(u, v) on L²[0, 1], by the midpoint rule: (M, points).

    The softmax ignores what is constant in v, so that is taken out first; the φ_i have no such part.
    """
    x = (torch.arange(points) + 0.5) / points
    h = stack.f(x.view(1, -1, 1).expand(len(stack.mh), -1, -1)).double()  # (M, points, n)
    q, k = (h @ w.double().mT for w in (stack.W_Q, stack.W_K))
    return (torch.linalg.svdvals(q @ (k - k.mean(1, keepdim=True)).mT) / points).numpy()
