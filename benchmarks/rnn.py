"""A linear RNN to 1e-7 on ρ(s) = e^-s: the exact error through its kernel against training on samples.

torch.nn.RNN has no linear activation, so a user writes the recurrence with nn.Linear; x W_U goes in front of the loop.
The exact error of both sides is looked up every 25 steps, outside the clock. The user's side gets several lengths of
its cosine schedule, and the best of them at each error.
"""

import time
from collections.abc import Iterator

import numpy as np
import torch
import yaml
from torch import Tensor, nn

from attnrate.models.rnn import LinearRNN
from attnrate.targets.linear import make_all
from attnrate.training.linear import population_mse
from attnrate.training.stack import cosine
from benchmarks.common import ROOT, THREADS, Row, as_stage, ratio

LEVELS = {1e-4: None, 1e-5: None, 1e-6: None, 1e-7: 20.0}  # error → goal
EVERY = 25


class Recurrent(nn.Module):
    def __init__(self, hidden: int = 128):
        super().__init__()
        self.U, self.W, self.c = nn.Linear(1, hidden, bias=False), nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, 1, bias=False)  # fmt: skip

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
        optimiser.param_groups[0]["lr"] = lr * cosine(step, steps, 0)
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


def ours(matrix: Tensor, tau: int, steps: int, lr: float, seed: int) -> list[tuple[float, float]]:
    model = LinearRNN([seed])

    def loss() -> Tensor:
        return population_mse(*model.kernel_and_offset(tau), matrix).sum()

    @torch.no_grad()
    def error() -> float:
        return population_mse(*(v.double() for v in model.kernel_and_offset(tau)), matrix.double()).item()

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
    p = yaml.safe_load((ROOT / "params.yaml").read_text())["linear"]
    tau, lr = p["tau"], p["rnn_lr"]
    lengths, steps, seeds = ((50,), 50, (0,)) if quick else ((1000, 4000, 16000), p["rnn_steps"], (0, 1, 2))
    cap = 1.0 if quick else 60.0
    matrix = torch.tensor(make_all(tau, 0, 0)[0].matrix[None], dtype=torch.float32)
    torch.set_num_threads(THREADS)
    peer, mine = [], []
    for i, length in enumerate(lengths):
        peer.append(theirs(matrix, tau, length, lr, p["batch"], cap))
        mine += [ours(matrix, tau, steps, lr, seed) for seed in seeds[i :: len(lengths)]]
    best = min(e for curve in peer for _, e in curve)
    spent = max(curve[-1][0] for curve in peer)
    for level, goal in LEVELS.items():
        reached = [first([curve], level) for curve in mine]
        name, against = f"linear RNN to {level:.0e}", "nn.Linear recurrence, fresh samples, Adam, cosine"
        if None in reached:
            yield Row(
                name, against, None, goal, note=f"ours reaches {min(c[-1][1] for c in mine):.1e} in {steps} steps"
            )
            continue
        time_ours, time_theirs = float(np.median(reached)), first(peer, level)
        if time_theirs is None:
            note = f"a lower bound: theirs is at {best:.1e} after {spent:.0f} s"
            yield ratio(name, against, time_ours, spent, goal, note)
        else:
            yield ratio(name, against, time_ours, time_theirs, goal)
