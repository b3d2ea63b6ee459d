"""Training the Transformer of eq. (5) on POD targets (section 5.1), all cells (target, m_h, seed) in one stack.

A recipe with a slope spreads the knots of f̂ over [0, 1] and centres and scales the outputs; `paper` has none:
PyTorch's default initialisation and Adam, as appendix C says.

Inputs fall on a grid of G points that is shifted at random at each step, so that f̂ acts on G points instead of
B τ; a few outputs t of each sequence enter the loss. Each x(s) is uniform and the loss is unbiased. All cells see
the same batches: the spread over seeds is that of the initialisation.
"""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from attnrate.core.params import Group
from attnrate.rates.pod import PodTarget
from attnrate.small.loop import train
from attnrate.small.transformer import Transformer


class Sampler:
    """Fresh inputs on a shifted grid with the outputs of every target."""

    def __init__(self, targets: list[PodTarget], *, batch: int, grid: int, queries: int, seed: int):
        terms = max(len(t.sigma) for t in targets)
        self.sigma = torch.zeros(len(targets), terms)  # (T, R)
        for i, t in enumerate(targets):
            self.sigma[i, : len(t.sigma)] = torch.tensor(t.sigma)
        self.frequencies = torch.arange(1, terms + 1)
        self.shape, self.grid, self.queries = (batch, targets[0].x.shape[1]), grid, queries
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self) -> tuple[Tensor, Tensor, Tensor]:  # grid (G,), index (B, τ), y (T, B, queries)
        index = torch.randint(0, self.grid, self.shape, generator=self.generator)
        grid = (torch.arange(self.grid) + torch.rand((), generator=self.generator)) / self.grid
        phi = 2**0.5 * torch.sin(2 * np.pi * grid[:, None] * self.frequencies)  # (G, R)
        rho = (phi * self.sigma[:, None]) @ phi.T  # (T, G, G)
        weights = rho[:, index[:, : self.queries, None], index[:, None, :]].softmax(-1)  # (T, B, queries, τ)
        return grid, index, (weights @ grid[index][..., None])[..., 0]


def fit(
    targets: list[PodTarget], cells: list[tuple[int, int, int]], recipe: Group, model: Group, budget: Group, label: str
) -> tuple[Transformer, pd.DataFrame]:
    """The trained stack for cells (index of target, m_h, seed), and its loss history (a column a cell)."""
    which = torch.tensor([t for t, _, _ in cells])
    # Cells of one seed differ in their start even where they differ only in the target.
    seeds = [seed * 100_000 + t * 1_000 + mh for t, mh, seed in cells]
    stack = Transformer([mh for _, mh, _ in cells], seeds, **model)
    if recipe.slope is not None:
        stack.spread_knots(recipe.slope)
        y = torch.tensor(np.stack([t.y for t in targets]), dtype=torch.float32)[which]
        stack.standardise(y.mean((1, 2)).view(-1, 1, 1, 1), y.std((1, 2)).view(-1, 1, 1, 1))
    sampler = Sampler(targets, batch=budget.batch, grid=budget.grid, queries=budget.queries, seed=cells[0][2])

    def loss(_: int) -> Tensor:
        points, index, y = sampler.draw()
        error = stack.on_grid(points[:, None], index, budget.queries)[..., 0] - y[which]
        return (error / stack.scale[..., 0]).square().mean((1, 2))

    history = train(
        stack,
        loss,
        steps=budget.steps,
        lr=recipe.lr,
        warmup=recipe.warmup,
        schedule=recipe.schedule,
        history=25,
        label=label,
    )
    return stack, history * stack.scale.flatten().square().numpy()
