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
from attnrate.optim.schedules import factor

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
) -> pd.DataFrame:
    """Adam or Muon on Σ_m batch_loss(step)[m]; returns the mean loss (history rows, one column a model).

    batch_loss draws a fresh batch and gives the loss of each of the M models, shape (M,).
    """
    optimiser = make_optimiser(model, lr, muon)
    peaks = [group["lr"] for group in optimiser.param_groups]
    every = max(1, steps // history)
    rows, window = {}, []
    for step in trange(steps, desc=label, disable=not sys.stderr.isatty(), mininterval=0.5):
        for group, peak in zip(optimiser.param_groups, peaks, strict=True):
            group["lr"] = peak * factor(schedule, step, steps, warmup)
        losses = batch_loss(step)
        optimiser.zero_grad()
        losses.sum().backward()
        optimiser.step()
        window.append(losses.detach())
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
