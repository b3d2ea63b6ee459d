"""Training the Transformer of eq. (53) on the tasks of appendix B.1: the seeds of a variant in one stack.

The paper gives no recipe. Matrices follow Muon, W_Q and W_K start `gain` times PyTorch's default, outputs are centred
and scaled, and mass and selection get a learned position encoding (section 4.1), without which no token could be told
from another. Further additions to the paper are variants, so that the result without each stands beside it:

    nearest    plain          nothing added
    mass       segment-id     the number of the segment joins the input, and W_K starts equal to W_Q
               position-only  without the segment id: a point cannot tell from itself where its segment ends
               untied         with the segment id, but W_K starts apart from W_Q
    selection  one-hot        each of the k indices is one-hot
               raw-index      the indices are plain numbers, as in the paper

Segment id and one-hot are functions of the input alone. Every seed has its own stream of inputs, so that a model is
the same in any stack.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from attnrate.core.params import Group
from attnrate.examples import tasks
from attnrate.examples.tasks import Sample
from attnrate.small.loop import train
from attnrate.small.transformer import Transformer

SCALE_SIZE = 4096  # inputs from which the outputs' mean and spread are taken
MOST_SEGMENTS = max(map(len, tasks.SEGMENTATIONS))


def as_is(x: np.ndarray) -> np.ndarray:
    return x


def with_segment(x: np.ndarray) -> np.ndarray:
    """(N, τ, 3) → (N, τ, 6): the segment id, one-hot, joins the input."""
    return np.concatenate([x, np.eye(MOST_SEGMENTS)[tasks.segments(x)]], -1)


def with_one_hot(x: np.ndarray) -> np.ndarray:
    """(N, τ, 2 + k) → (N, τ, 2 + k τ): each index one-hot."""
    chosen = np.eye(x.shape[1])[x[..., -tasks.CHOSEN :].astype(int)]  # (N, τ, k, τ)
    return np.concatenate([x[..., : -tasks.CHOSEN], chosen.reshape(*x.shape[:2], -1)], -1)


@dataclass(frozen=True)
class Variant:
    encode: Callable[[np.ndarray], np.ndarray] = as_is
    positions: bool = True
    tied: bool = False  # W_K starts equal to W_Q


VARIANTS = {
    "nearest": {"plain": Variant(positions=False)},
    "mass": {
        "segment-id": Variant(with_segment, tied=True),
        "position-only": Variant(tied=True),
        "untied": Variant(with_segment),
    },
    "selection": {"one-hot": Variant(with_one_hot), "raw-index": Variant()},
}


def tensor(a: np.ndarray) -> Tensor:
    return torch.tensor(a, dtype=torch.float32)


def fit(task: str, variant: str, mh: int, model: Group, budget: Group, own: Group) -> tuple[Transformer, pd.DataFrame]:
    """A model a seed, and their loss (in units of the outputs' variance; tokens of `mass` weigh token_weight)."""
    seeds, added = budget.seeds, VARIANTS[task][variant]
    sample = tasks.solve(task, tasks.draw(task, SCALE_SIZE, np.random.default_rng(0)))
    tau, d = added.encode(sample.x[:1]).shape[1:]
    stack = Transformer(
        [mh] * len(seeds),
        seeds,
        d=d,
        d_out=sample.y.shape[-1],
        positions=(tau, model.n) if added.positions else None,
        **model,
    )
    with torch.no_grad():
        stack.W_Q.mul_(budget.gain)
        stack.W_K.copy_(stack.W_Q if added.tied else budget.gain * stack.W_K)
    stack.standardise(tensor(sample.y.mean((0, 1))), tensor(sample.y.std((0, 1))))
    streams = [np.random.default_rng([seed, 1]) for seed in seeds]

    def loss(_: int) -> Tensor:
        s = tasks.solve(task, np.concatenate([tasks.draw(task, budget.batch, g) for g in streams]))  # (M B, τ, ...)
        x, y = (tensor(a).unflatten(0, (len(seeds), budget.batch)) for a in (added.encode(s.x), s.y))
        error = ((stack(x) - y) / stack.scale).square().mean(-1)  # (M, B, τ)
        if task == "mass":
            weight = tensor(np.where(tasks.tokens(s.x), own.token_weight, 1)).view_as(error)
            error = error * weight / weight.mean((1, 2), keepdim=True)
        return error.mean((1, 2))

    how = {"lr": budget.lr, "muon": own.muon, "warmup": budget.warmup}
    return stack, train(stack, loss, steps=own.steps, history=40, label=f"{task}, {variant}", **how)


@torch.no_grad()
def inspect(model: Transformer, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ĥ(x), the attention and F̂∘f̂(x(t)) = F̂(W_V f̂(x(t))): (M, N, τ, d_out), (M, N, τ, τ), (M, N, τ, d_out)."""
    h = model.features(tensor(x))
    weights = model.scores(h, h).softmax(-1)
    alone = torch.eye(x.shape[1]).expand_as(weights)
    return tuple(
        a.double().numpy()
        for a in (model.output(model.average(weights, h)), weights, model.output(model.average(alone, h)))
    )


def measure(sample: Sample, y: np.ndarray, attention: np.ndarray, ff: np.ndarray) -> dict[str, float]:
    """One model against the task, over all inputs; the argmax counts where the true one is unique, as in B.1."""
    true = sample.attention
    top = np.sort(true, -1)[..., -2:]
    unique = top[..., 1] > top[..., 0]  # (N, τ)
    return {
        "mse": ((y - sample.y) ** 2).mean(),
        "argmax_agreement": (attention.argmax(-1) == true.argmax(-1))[unique].mean(),
        "attention_corr": np.corrcoef(attention.ravel(), true.ravel())[0, 1],
        "attention_maxdev": np.abs(attention - true).max(),
        "ff_rmse": np.sqrt(np.nanmean((ff - sample.ff) ** 2)),
    }
