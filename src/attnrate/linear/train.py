"""Training RNNs and Transformers on the linear targets of section 6, each set as one stack."""

from collections.abc import Callable
from itertools import chain

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from attnrate.core.params import Group
from attnrate.cores import side_by_side, stacks
from attnrate.linear.floors import MEAN, VARIANCE, constant_predictor
from attnrate.linear.targets import FILTER_LENGTH, LinearTarget
from attnrate.small.loop import train
from attnrate.small.rnn import LinearRNN
from attnrate.small.stacks import joined, plain
from attnrate.small.streams import Streams
from attnrate.small.transformer import Transformer

STUCK = 0.9  # of the variance of y: a run with more has learned nothing, or a constant


def stacked(targets: list[LinearTarget]) -> Tensor:  # (M, τ, τ)
    return torch.tensor(np.stack([t.matrix for t in targets]), dtype=torch.float32)


def population_mse(kernel: Tensor, offset: Tensor, matrices: Tensor) -> Tensor:
    """The exact error of linear models (linear/floors.py): (M, τ), (M, τ), (M, τ, τ) → (M,)."""
    lag = torch.arange(kernel.shape[1])[:, None] - torch.arange(kernel.shape[1])
    difference = matrices - torch.where(lag >= 0, kernel[:, lag.clamp_min(0)], 0.0)
    mean = MEAN * difference.sum(2) - offset
    return (VARIANCE * difference.square().sum(2) + mean.square()).mean(1)


def train_rnn(
    targets: list[LinearTarget], seeds: list[int], *, recipe: str, bias: bool, steps: int, lr: float, batch: int
) -> tuple[LinearRNN, np.ndarray, pd.DataFrame]:
    """RNN i on targets[i]: the models, their exact errors (M,), the history.

    recipe `population` descends the exact error through the kernel, `samples` the error on fresh sequences.
    """
    matrices, tau = stacked(targets), len(targets[0].matrix)
    model = LinearRNN(seeds, bias=bias)
    streams = Streams(seeds)

    def population(_: int) -> Tensor:
        return population_mse(*model.kernel_and_offset(tau), matrices)

    def samples(_: int) -> Tensor:
        x = streams.rand(batch, tau)[streams.which]  # (M, B, τ)
        return (model(x) - x @ matrices.mT).square().mean((1, 2))

    loss = {"population": population, "samples": samples}[recipe]
    history = train(model, loss, steps=steps, lr=lr, label=f"RNN, {recipe}{', bias' if bias else ''}")
    with torch.no_grad():
        kernel, offset = (v.double() for v in model.kernel_and_offset(tau))
        mse = population_mse(kernel, offset, torch.tensor(np.stack([t.matrix for t in targets])))
    return model, mse.numpy(), history


class Filtered(nn.Module):
    """A learned causal filter of length 5 in front of each Transformer, started at the identity."""

    def __init__(self, inner: Transformer):
        super().__init__()
        self.inner = inner
        start = torch.zeros(len(inner.mh), FILTER_LENGTH)
        start[:, 0] = 1
        self.filter = nn.Parameter(start)

    def forward(self, x: Tensor) -> Tensor:  # (B, τ, 1) or (M, B, τ, 1) → (M, B, τ, 1)
        past = (
            nn.functional.pad(x[..., 0], (FILTER_LENGTH - 1, 0)).unfold(-1, FILTER_LENGTH, 1).flip(-1)
        )  # (…, B, τ, 5)
        return self.inner(past @ self.filter[:, None, :, None])


def train_transformer(
    targets: list[LinearTarget],
    seeds: list[int],
    mh: int,
    name: str,
    recipe: Group,
    model: Group,
    budget: Group,
    halfway: Callable[[nn.Module], None] | None = None,
) -> tuple[nn.Module, pd.DataFrame]:
    """The Transformer of eq. (5) with position encoding, model i on targets[i], by the recipe of that name.

    `plain`: PyTorch's defaults. Any other: outputs centred and scaled, W_Q and W_K `gain` times PyTorch's, Muon, a
    constant rate that decays to zero; `learned-filter` has a learned filter in front. `halfway` gets what half the
    steps would have given.
    """
    matrices, tau = stacked(targets), len(targets[0].matrix)
    inner = Transformer([mh] * len(seeds), seeds, positions=(tau, model.n), **model)
    if name != "plain":
        means = MEAN * matrices.sum(2).mean(1)
        variance = VARIANCE * matrices.square().sum(2).mean(1) + (MEAN * matrices.sum(2)).var(1, correction=0)
        inner.standardise(means.view(-1, 1, 1, 1), variance.sqrt().view(-1, 1, 1, 1))
        with torch.no_grad():
            inner.W_Q *= recipe.gain
            inner.W_K *= recipe.gain
    stack = Filtered(inner) if name == "learned-filter" else inner
    streams = Streams(seeds)

    def loss(_: int) -> Tensor:
        x = streams.rand(budget.batch, tau)[streams.which]  # (M, B, τ)
        error = stack(x[..., None])[..., 0] - x @ matrices.mT  # (M, B, τ)
        return (error / inner.scale[..., 0]).square().mean((1, 2))

    how = {"schedule": "constant"}
    if name != "plain":
        how = {"schedule": "trunk", "muon": recipe.muon, "warmup": recipe.warmup, "streams": streams}
        how["halfway"] = halfway and (lambda: halfway(stack))
    history = train(stack, loss, steps=budget.steps, lr=recipe.lr, label=f"Transformer, {name}", **how)
    return stack, history * inner.scale.flatten().square().numpy()


@torch.no_grad()
def fresh_mse(model: nn.Module, targets: list[LinearTarget], size: int, seed: int, chunk: int = 128) -> np.ndarray:
    """Mean squared error of each model on `size` fresh sequences: (M,)."""
    matrices, tau = stacked(targets), len(targets[0].matrix)
    x = torch.rand(size, tau, generator=torch.Generator().manual_seed(seed))
    squares = [(model(p[..., None])[..., 0] - p @ matrices.mT).square().sum((1, 2)).double() for p in x.split(chunk)]
    return (torch.stack(squares).sum(0) / (size * tau)).numpy()


def result_row(
    target: LinearTarget, model: str, recipe: str, seed: int, mse: float, *, mh=None, floor=None, half=None
) -> dict:
    """A row of errors.csv; dead: no better than STUCK of the best constant, whose error is the variance of y."""
    variance = constant_predictor(target.matrix)
    return {
        "table": target.table,
        "target": target.kernel,
        "alteration": target.alteration,
        "filter": target.filter,
        "model": model,
        "recipe": recipe,
        "draw": target.draw,
        "mh": mh,
        "seed": seed,
        "mse": mse,
        "floor": floor,
        "dead": bool(mse > STUCK * variance),
        "mse_half": half,  # at half the steps
        "variance": variance,
    }


def curves(history: pd.DataFrame, cells: list[tuple[LinearTarget, int]], model: str, recipe: str) -> list[pd.DataFrame]:
    """The history of a stack, a table for each cell (target, seed)."""
    steps = {"step": history.index}
    keys = [{"target": t.name, "model": model, "recipe": recipe, "seed": seed} for t, seed in cells]
    return [pd.DataFrame({**steps, **key, "mse": history[i].values}) for i, key in enumerate(keys)]


def run_transformer(
    cells: list[tuple[LinearTarget, int]], mh: int, name: str, recipe: Group, model: Group, budget: Group, test: Group
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Tensor]]:
    """Rows of errors.csv for cells (target, seed), their history, and the weights of them all."""

    def fit(cells: list[tuple[LinearTarget, int]]) -> tuple[list[dict], list[pd.DataFrame], dict[str, np.ndarray]]:
        aims, seeds = zip(*cells, strict=True)
        half = {}
        halfway = (lambda stack: half.update(mse=fresh_mse(stack, aims, **test))) if budget.gate else None
        stack, history = train_transformer(aims, seeds, mh, name, recipe, model, budget, halfway)
        mse = fresh_mse(stack, aims, **test)
        at_half = half.get("mse", [None] * len(cells))
        rows = [result_row(t, "transformer", name, s, mse[i], mh=mh, half=at_half[i]) for i, (t, s) in enumerate(cells)]
        return rows, curves(history, cells, "transformer", name), plain(stack)

    rows, tables, weights = zip(*side_by_side(fit, stacks(cells)), strict=True)
    return pd.DataFrame(chain(*rows)), pd.concat(chain(*tables)), joined(weights)
