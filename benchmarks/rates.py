"""Figure 1's sweep: seconds to the same test error, the stack against one nn.Module after the other.

Both sides train the same cells by the same recipe with several budgets of steps, each a whole schedule. The median test
error against the seconds of all cells is interpolated, and compared where both have arrived.
"""

import itertools
import time
from collections.abc import Iterator

import numpy as np
import torch
import yaml
from torch import Tensor, nn

from attnrate.rates import pod
from attnrate.rates import train as rates
from attnrate.small.loop import cosine
from benchmarks.common import ROOT, THREADS, Row, as_stage, ratio

ALPHA = 1.5


class Model(nn.Module):
    """Eq. (5) as one would write it for a single model; knots and scales as in the project's recipe."""

    def __init__(self, mh: int, n: int, width: int, slope: float, mean: float, std: float):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n))
        self.F = nn.Sequential(nn.Linear(n, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        self.query, self.key, self.value = (nn.Linear(n, size, bias=False) for size in (mh, mh, n))
        self.mean, self.std = mean, std
        signs = slope * (1 - 2.0 * (torch.arange(width) % 2))
        with torch.no_grad():
            self.f[0].weight.copy_(signs[:, None])
            self.f[0].bias.copy_(-signs * torch.linspace(0, 1, width))

    def forward(self, x: Tensor) -> Tensor:  # (B, τ) → (B, τ)
        h = self.f(x[..., None])
        weights = (self.query(h) @ self.key(h).mT).softmax(-1)
        return self.mean + self.std * self.F(weights @ self.value(h))[..., 0]


def target(sigma: Tensor, x: Tensor) -> Tensor:
    basis = 2**0.5 * torch.sin(2 * np.pi * x[..., None] * torch.arange(1, len(sigma) + 1))
    return (((basis * sigma) @ basis.mT).softmax(-1) @ x[..., None])[..., 0]


def one_by_one(targets, cells, p: dict, steps: int) -> tuple[float, float]:
    """Seconds and the median test error of the user's loop."""
    seconds, errors = 0.0, []
    for t, mh, seed in cells:
        goal = targets[t]
        sigma, y = torch.tensor(goal.sigma, dtype=torch.float32), torch.tensor(goal.y, dtype=torch.float32)
        start = time.perf_counter()
        torch.manual_seed(seed)
        model = Model(mh, p["n"], p["width"], p["trained_slope"], y.mean().item(), y.std().item())
        optimiser = torch.optim.Adam(model.parameters(), lr=p["trained_lr"], fused=True)
        warmup = min(p["warmup"], steps // 5)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step, w=warmup: cosine(step, steps, w))
        for _ in range(steps):
            x = torch.rand(p["batch"], p["tau"])
            loss = ((model(x) - target(sigma, x)) / model.std).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            scheduler.step()
        seconds += time.perf_counter() - start
        with torch.no_grad():
            errors.append((model(torch.tensor(goal.x, dtype=torch.float32)) - y).square().mean().item())
    return seconds, float(np.median(errors))


def stacked(targets, cells, p: dict, steps: int) -> tuple[float, float]:
    recipe = rates.Recipe(p["trained_lr"], "cosine", min(p["warmup"], steps // 5), p["trained_slope"])
    with as_stage():
        start = time.perf_counter()
        model, _ = rates.fit(
            targets,
            cells,
            recipe,
            n=p["n"],
            width=p["width"],
            steps=steps,
            batch=p["batch"],
            grid=p["grid"],
            queries=p["queries"],
            label="benchmark",
        )
        seconds = time.perf_counter() - start
    outputs = rates.predict(model, targets[0].x)
    errors = [((out - targets[t].y) ** 2).mean() for out, (t, _, _) in zip(outputs, cells, strict=True)]
    return seconds, float(np.median(errors))


def seconds_to(error: float, runs: list[tuple[float, float]]) -> float:
    """Log-log interpolation of (seconds, error) pairs."""
    seconds, errors = np.log(np.array(sorted(runs, key=lambda r: -r[1]))).T
    return float(np.exp(np.interp(np.log(error), errors[::-1], seconds[::-1])))


def run(quick: bool) -> Iterator[Row]:
    p = yaml.safe_load((ROOT / "params.yaml").read_text())["rates"]
    budgets = (2, 4) if quick else (250, 500, 1000)
    ranks, heads = (p["ranks"][:1], p["train_mh"][:2]) if quick else (p["ranks"], p["train_mh"])
    targets = [
        pod.make(ALPHA, r, terms=p["terms"], tau=p["tau"], size=p["eval_size"], seed=p["eval_seed"]) for r in ranks
    ]
    cells = list(itertools.product(range(len(targets)), heads, p["seeds"]))
    torch.set_num_threads(THREADS)
    ours, theirs = [], []
    for steps in budgets:
        ours.append(stacked(targets, cells, p, steps))
        theirs.append(one_by_one(targets, cells, p, steps))
    error = max(min(e for _, e in ours), min(e for _, e in theirs))
    note = f"{len(cells)} models to a median test error of {error:.2g}; a step of all models {theirs[-1][0] / ours[-1][0]:.1f}x"
    yield ratio(
        "Figure 1 sweep, time to the same error",
        "nn.Module, one model at a time, every output in the loss",
        seconds_to(error, ours),
        seconds_to(error, theirs),
        4.0,
        note,
    )
