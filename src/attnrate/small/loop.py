"""One loop that trains a stack of small models at once.

The models share nothing: the loss is the sum of their losses, Adam acts on each number by itself and Muon on each
matrix, so each model follows the path it would follow alone.
"""

import sys
from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor, nn
from tqdm import trange

from attnrate.core.errors import UserError
from attnrate.optim.muon import Muon, spectral
from attnrate.optim.schedules import branch, factor
from attnrate.small.streams import Streams

NS_STEPS = 4  # as good as five in the same time, and less than a third of a step


def make_optimiser(model: nn.Module, lr: float, muon: float | None) -> torch.optim.Optimizer:
    """Adam at lr; with `muon`, matrices (M, rows, columns) of more than one row and column follow Muon at that rate.

    Rows count with their padding: a head of size one follows Adam only where its stack has no larger one.
    """
    free = [p for p in model.parameters() if p.requires_grad]
    if muon is None:
        return torch.optim.Adam(free, lr=lr, fused=True)
    matrices = [p for p in free if p.dim() == 3 and min(p.shape[1:]) > 1]
    known = {id(p) for p in matrices}
    rest = [p for p in free if id(p) not in known]
    groups = [{"params": matrices, "lr": muon, "length": spectral}, {"params": rest, "lr": lr}]
    return Muon(groups, ns_steps=NS_STEPS, weight_decay=0.0)


def train(
    model: nn.Module,
    batch_loss: Callable[[int], Tensor],
    *,
    steps: int,
    lr: float,
    muon: float | None = None,
    warmup: int = 0,
    schedule: str = "cosine",
    history: int = 50,
    label: str = "train",
    halfway: Callable[[], None] | None = None,
    streams: Streams | None = None,
) -> pd.DataFrame:
    """Adam or Muon on Σ_m batch_loss(step)[m]; returns the mean loss (history rows, one column a model).

    batch_loss draws a fresh batch and gives the loss of each of the M models, shape (M,). `halfway`, for the schedule
    `trunk`, is called when the model is what half the steps would have made of it, with their own decay to zero; then
    the training goes on as if it had not been, and `streams`, where batch_loss draws from, go back too.
    """
    optimiser = make_optimiser(model, lr, muon)
    peaks = [group["lr"] for group in optimiser.param_groups]
    every = max(1, steps // history)
    rows, window = {}, []

    def advance(step: int, of: int) -> Tensor:
        for group, peak in zip(optimiser.param_groups, peaks, strict=True):
            group["lr"] = peak * factor(schedule, step, of, warmup)
        losses = batch_loss(step)
        optimiser.zero_grad()
        losses.sum().backward()
        optimiser.step()
        return losses.detach()

    def half_budget() -> None:
        tensors = [*model.state_dict().values()]
        tensors += [v for state in optimiser.state.values() for v in state.values() if torch.is_tensor(v)]
        kept, drawn = [t.clone() for t in tensors], streams.state()
        for step in range(branch(steps), steps // 2):
            advance(step, steps // 2)
        halfway()
        with torch.no_grad():
            for tensor, old in zip(tensors, kept, strict=True):
                tensor.copy_(old)
        streams.restore(drawn)

    for step in trange(steps, desc=label, disable=not sys.stderr.isatty(), mininterval=0.5):
        if halfway and step == branch(steps):
            half_budget()
        window.append(advance(step, steps))
        if (step + 1) % every == 0 or step + 1 == steps:
            mean = torch.stack(window).mean(0)
            if not mean.isfinite().all():
                bad = (~mean.isfinite()).nonzero().flatten().tolist()
                raise UserError(
                    f"{label}: the loss of model(s) {bad} is not finite at step {step + 1} "
                    f"(learning rate {optimiser.param_groups[0]['lr']:.3g}); lower the learning rate"
                )
            rows[step + 1] = mean.tolist()
            window = []
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("step")
