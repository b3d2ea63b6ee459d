"""Figure 1's sweep: seconds to the same test error, the stack against one nn.Module after the other.

Both sides train the same cells with several budgets of steps, each a whole schedule: ours by the project's recipe, the
other by Adam from knots over [0, 1]. The median test error against the seconds of all cells is interpolated, and
compared where both have arrived.
"""

import itertools
import time
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from attnrate.core.params import Group
from attnrate.optim.schedules import factor
from attnrate.rates import pod
from attnrate.rates import train as rates
from attnrate.small.transformer import predict
from benchmarks.common import PARAMS, THREADS, Row, as_stage, ratio

ALPHA = 1.5
SLOPE = 4.0  # of the first layer of the user's model


class Model(nn.Module):
    """Eq. (5) as one would write it for a single model, with knots over [0, 1] and scaled outputs."""

    def __init__(self, mh: int, n: int, width: int, mean: float, std: float):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n))
        self.F = nn.Sequential(nn.Linear(n, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        self.query, self.key, self.value = (nn.Linear(n, size, bias=False) for size in (mh, mh, n))
        self.mean, self.std = mean, std
        signs = SLOPE * (1 - 2.0 * (torch.arange(width) % 2))
        with torch.no_grad():
            self.f[0].weight.copy_(signs[:, None])
            self.f[0].bias.copy_(-signs * torch.linspace(0, 1, width))

    def forward(self, x: Tensor) -> Tensor:  # (B, τ) → (B, τ)
        h = self.f(x[..., None])
        weights = (self.query(h) @ self.key(h).mT).softmax(-1)
        return self.mean + self.std * self.F(weights @ self.value(h))[..., 0]


def target(sigma: Tensor, frequencies: Tensor, x: Tensor) -> Tensor:
    phi, psi = (
        2**0.5 * torch.sin(2 * np.pi * x[..., None] * i) for i in (torch.arange(1, len(sigma) + 1), frequencies)
    )
    return (((phi * sigma) @ psi.mT).softmax(-1) @ x[..., None])[..., 0]


def one_by_one(targets, cells, p: Group, steps: int) -> tuple[float, float]:
    """Seconds and the median test error of the user's loop."""
    recipe, seconds, errors = p.recipes.trained, 0.0, []
    for t, mh, seed in cells:
        goal = targets[t]
        sigma, y = torch.tensor(goal.sigma, dtype=torch.float32), torch.tensor(goal.y, dtype=torch.float32)
        frequencies = torch.tensor(goal.frequencies)
        start = time.perf_counter()
        torch.manual_seed(seed)
        model = Model(mh, p.model.n, p.model.width, y.mean().item(), y.std().item())
        optimiser = torch.optim.Adam(model.parameters(), lr=recipe.lr, fused=True)
        warmup = min(recipe.warmup, steps // 5)
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step, w=warmup: factor("cosine", step, steps, w)
        )
        for _ in range(steps):
            x = torch.rand(recipe.batch, p.target.tau)
            loss = ((model(x) - target(sigma, frequencies, x)) / model.std).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            scheduler.step()
        seconds += time.perf_counter() - start
        with torch.no_grad():
            errors.append((model(torch.tensor(goal.x, dtype=torch.float32)) - y).square().mean().item())
    return seconds, float(np.median(errors))


def stacked(targets, cells, p: Group, steps: int) -> tuple[float, float]:
    recipe = Group(p.recipes.trained | {"steps": steps, "warmup": min(p.recipes.trained.warmup, steps // 5)})
    with as_stage():
        start = time.perf_counter()
        model, _ = rates.fit(targets, cells, recipe, p.model, p.train, label="benchmark")
        seconds = time.perf_counter() - start
    outputs = predict(model, targets[0].x)
    errors = [((out - targets[t].y) ** 2).mean() for out, (t, _, _) in zip(outputs, cells, strict=True)]
    return seconds, float(np.median(errors))


def seconds_to(error: float, runs: list[tuple[float, float]]) -> float:
    """Log-log interpolation of (seconds, error) pairs."""
    seconds, errors = np.log(np.array(sorted(runs, key=lambda r: -r[1]))).T
    return float(np.exp(np.interp(np.log(error), errors[::-1], seconds[::-1])))


def run(quick: bool) -> Iterator[Row]:
    p = PARAMS.rates
    budgets = (2, 4) if quick else (250, 500, 1000)
    ranks, heads = p.target.ranks, p.recipes.trained.mh
    if quick:
        ranks, heads = ranks[:1], heads[:2]
    pairings = p.recipes.trained.pairings[:2]  # two replicates
    targets = list(pod.make_grid(**p.target | {"pairings": pairings, "alphas": [ALPHA], "ranks": ranks}))
    cells = list(itertools.product(range(len(targets)), heads, p.train.seeds))
    torch.set_num_threads(THREADS)
    ours, theirs = [], []
    for steps in budgets:
        ours.append(stacked(targets, cells, p, steps))
        theirs.append(one_by_one(targets, cells, p, steps))
    error = max(min(e for _, e in ours), min(e for _, e in theirs))
    step = theirs[-1][0] / ours[-1][0]
    note = f"{len(cells)} models to a median test error of {error:.2g}; a step of all models {step:.1f}x"
    yield ratio(
        "Figure 1 sweep, time to the same error",
        "nn.Module, one model at a time, every output in the loss",
        seconds_to(error, ours),
        seconds_to(error, theirs),
        4.0,
        note,
    )
