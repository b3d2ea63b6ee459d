"""One loop that trains a stack of small models at once.

The models share nothing: the loss is the sum of their losses and Adam acts on each number by itself, so
each model follows the path it would follow alone.
"""

import math
import sys
from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor, nn
from tqdm import trange

from attnrate.core.errors import UserError


def cosine(step: int, steps: int, warmup: int) -> float:
    """Factor of the learning rate: linear warm-up, then half a cosine down to zero."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def train(
    model: nn.Module,
    batch_loss: Callable[[int], Tensor],
    *,
    steps: int,
    lr: float,
    warmup: int = 0,
    schedule: str = "cosine",
    history: int = 50,
    label: str = "train",
) -> pd.DataFrame:
    """Adam on Σ_m batch_loss(step)[m]; returns the mean loss (history rows, one column a model).

    batch_loss draws a fresh batch and gives the loss of each of the M models, shape (M,).
    """
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr, fused=True)
    every = max(1, steps // history)
    rows, window = {}, []
    for step in trange(steps, desc=label, disable=not sys.stderr.isatty(), mininterval=0.5):
        for group in optimiser.param_groups:
            group["lr"] = lr * (cosine(step, steps, warmup) if schedule == "cosine" else 1.0)
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
