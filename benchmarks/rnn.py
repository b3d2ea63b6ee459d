"""A linear RNN to 1e-7 on ρ(s) = e^-s: the exact error through its kernel against training on samples.

torch.nn.RNN has no linear activation, so a user writes the recurrence with nn.Linear; x W_U goes in front of the loop.
The goal is for 20 seeds: ours trains them as one stack, as the stage does, and is judged by their median error; the
user's side trains one, and takes 20 times as long for all. One model alone is shown too. The exact error is looked up
every 25 steps, outside the clock. Each side gets several lengths of its cosine schedule, and the best of them at each
error.
"""

import time
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from attnrate.linear.targets import make_all
from attnrate.linear.train import population_mse
from attnrate.optim.schedules import factor
from attnrate.small.rnn import LinearRNN
from benchmarks.common import PARAMS, THREADS, Row, as_stage, ratio

LEVELS = {1e-4: None, 1e-5: None, 1e-6: None, 1e-7: 20.0}  # error → goal
EVERY = 25


class Recurrent(nn.Module):
    def __init__(self, hidden: int = 128):
        super().__init__()
        self.U, self.W, self.c = (
            nn.Linear(1, hidden, bias=False),
            nn.Linear(hidden, hidden, bias=False),
            nn.Linear(hidden, 1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:  # (B, τ) → (B, τ)
        inputs, h, states = self.U(x[..., None]), 0, []
        for t in range(x.shape[1]):
            h = inputs[:, t] if t == 0 else self.W(h) + inputs[:, t]
            states.append(h)
        return self.c(torch.stack(states, 1))[..., 0]


def descend(parameters, loss, error, steps: int, lr: float, cap: float) -> list[tuple[float, float]]:
    """(seconds, exact error) along an Adam run with a cosine schedule."""
    optimiser = torch.optim.Adam(parameters, lr=lr, fused=True)
    seconds, curve = 0.0, []
    for step in range(steps):
        start = time.perf_counter()
        optimiser.param_groups[0]["lr"] = lr * factor("cosine", step, steps, 0)
        value = loss()
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        seconds += time.perf_counter() - start
        if (step + 1) % EVERY == 0 or step + 1 == steps:
            curve.append((seconds, error()))
            if seconds > cap:
                break
    return curve


def ours(matrix: Tensor, tau: int, steps: int, lr: float, seeds: list[int]) -> list[tuple[float, float]]:
    model = LinearRNN(seeds)

    def loss() -> Tensor:
        return population_mse(*model.kernel_and_offset(tau), matrix).sum()

    @torch.no_grad()
    def error() -> float:
        return population_mse(*(v.double() for v in model.kernel_and_offset(tau)), matrix.double()).median().item()

    with as_stage():
        return descend(model.parameters(), loss, error, steps, lr, np.inf)


def theirs(matrix: Tensor, tau: int, steps: int, lr: float, batch: int, cap: float) -> list[tuple[float, float]]:
    torch.manual_seed(0)
    model = Recurrent()

    def loss() -> Tensor:
        x = torch.rand(batch, tau)
        return (model(x) - x @ matrix[0].T).square().mean()

    @torch.no_grad()
    def error() -> float:
        impulse = torch.zeros(1, tau)
        impulse[0, 0] = 1
        kernel = model(impulse).double()
        return population_mse(kernel, torch.zeros_like(kernel), matrix.double()).item()

    return descend(model.parameters(), loss, error, steps, lr, cap)


def first(curves: list[list[tuple[float, float]]], level: float) -> float | None:
    """Least seconds after which a run is at the level."""
    return min((s for curve in curves for s, e in curve if e <= level), default=None)


def run(quick: bool) -> Iterator[Row]:
    tau, lr, batch = PARAMS.linear.target.tau, PARAMS.linear.rnn.lr, PARAMS.linear.rnn.batch
    lengths, mine_lengths, stack = ((50,), (50,), 2) if quick else ((1000, 4000, 16000), (600, 1200, 2400), 20)
    cap = 1.0 if quick else 60.0
    matrix = torch.tensor(make_all(tau, 0, 0)[0].matrix[None], dtype=torch.float32)
    torch.set_num_threads(THREADS)
    peer, mine = [], {1: [], stack: []}
    for length, mine_length in zip(lengths, mine_lengths, strict=True):
        peer.append(theirs(matrix, tau, length, lr, batch, cap))
        for models, curves in mine.items():
            curves.append(ours(matrix, tau, mine_length, lr, list(range(models))))
    best = min(e for curve in peer for _, e in curve)
    spent = max(curve[-1][0] for curve in peer)
    for models, curves in mine.items():
        for level, goal in LEVELS.items():
            name = f"{models} linear RNNs to {level:.0e}" if models > 1 else f"a linear RNN alone to {level:.0e}"
            against, goal = "nn.Linear recurrence, fresh samples, Adam, cosine", goal if models > 1 else None
            here, there = first(curves, level), first(peer, level)
            if here is None:
                yield Row(name, against, None, goal, note=f"ours reaches {min(c[-1][1] for c in curves):.1e}")
                continue
            note = "" if there else f"a lower bound: theirs is at {best:.1e} after {spent:.0f} s"
            yield ratio(name, against, here, models * (there or spent), goal, note)
