"""One loop for large models (ViT, translation) on Hugging Face accelerate: a CPU, one GPU, or several.

The order of the data depends on (seed, epoch) alone and the randomness of a batch on (seed, step), so a run that is
killed continues from its checkpoint as if nothing had happened: on a CPU, to the same bytes. Nor does the number of
processes change what is trained, but for the order of sums and the numbers that dropout draws.
"""

import itertools
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor, nn
from tqdm import tqdm

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.core.stage import Outs
from attnrate.cores import side_by_side
from attnrate.large import device as devices
from attnrate.large.checkpoint import random_states, restore, save
from attnrate.optim.muon import Muon, like_adam
from attnrate.optim.schedules import factor

Batch = dict[str, Tensor]
Loss = Callable[[nn.Module, Batch], Tensor]  # the mean loss of a batch
APART = 1_000_003  # between the seeds of two processes
NEWS = 50  # steps between two reports
live = logging.getLogger("attnrate.live")  # whoever listens, stages/launcher.py or nobody, changes no result


class Data(Protocol):
    unit: str  # what is counted: images, tokens

    def order(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The batches of an epoch, as indices."""

    def size(self, index: np.ndarray) -> int:
        """How many units the loss of a batch is the mean of."""

    def batch(self, index: np.ndarray, draws: Tensor) -> Batch:
        """The tensors of a batch, augmented by one draw from [0, 1) for each item."""


@dataclass(frozen=True)
class Recipe:
    steps: int  # optimiser steps
    lr: float
    schedule: str = "cosine"
    warmup: int = 0
    optimiser: str = "adamw"
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    momentum: float = 0.9
    clip: float | None = None  # largest gradient norm
    accumulate: int = 1  # parts that a batch is split into, to fit memory, over all processes
    history: int = 50  # rows of the history
    checkpoint: int = 100  # steps between checkpoints


def classification_loss(smoothing: float = 0.0) -> Loss:
    """Cross-entropy of batch["x"] → batch["y"]; `smoothing` of the mass of each label goes to all classes."""
    return lambda model, batch: F.cross_entropy(model(batch["x"]), batch["y"], label_smoothing=smoothing)


FREE = ("pos_embed", "cls_token")  # no weight decay, as for biases and norms
EDGES = ("embed", "shared", "lm_head", "head.")  # what maps data in and classes out: AdamW's, not Muon's


def make_optimiser(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Weight decay acts on matrices; biases, norms, tokens and position encodings go free.

    `muon` takes the matrices inside the model, and leaves embeddings, classifier and all else to AdamW.
    """
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    decays = {n: p.dim() >= 2 and n.rpartition(".")[2] not in FREE for n, p in named}
    inner = {n: decays[n] and p.dim() == 2 and not any(e in n for e in EDGES) for n, p in named}
    if recipe.optimiser != "muon":
        inner = dict.fromkeys(inner, False)
    groups = [
        {"params": [p for n, p in named if decays[n] and not inner[n]], "weight_decay": recipe.weight_decay},
        {"params": [p for n, p in named if not decays[n]], "weight_decay": 0.0},
    ]
    if recipe.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=recipe.lr, momentum=recipe.momentum, fused=True)
    if recipe.optimiser == "muon":
        matrices = [p for n, p in named if inner[n]]
        groups.insert(0, {"params": matrices, "weight_decay": recipe.weight_decay, "length": like_adam})
        return Muon(groups, lr=recipe.lr, betas=recipe.betas)
    return torch.optim.AdamW(groups, lr=recipe.lr, betas=recipe.betas, fused=True)


def make_accelerator(device: str = "auto") -> Accelerator:
    """bfloat16 on GPUs that have it; single precision everywhere else."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what deterministic algorithms ask for on GPUs
    gpu = devices.choose(device).type == "cuda"
    mixed = gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    if gpu and not mixed:
        name = torch.cuda.get_device_name()
        print(f"{name} has no bfloat16: it trains in single precision, several times slower", file=sys.stderr)
    return Accelerator(cpu=not gpu, mixed_precision="bf16" if mixed else "no")


class Named(Protocol):
    name: str


Found = tuple[dict, pd.DataFrame, dict[str, np.ndarray]]  # a row, the loss curve, the weights


def train_each(
    runs: Sequence[Named], fit: Callable[[Named, Accelerator], Found | None], to: Outs, name: str, device: str
) -> None:
    """Write fit(run, accelerator) of every run, a row of the table `name` each, before their checkpoints go.

    On a CPU runs are side by side; on a GPU, or in several processes, the first of which has results, in turn.
    """

    def write(found: list[Found]) -> None:
        rows, curves, weights = zip(*found, strict=True)
        files.write_csv(to.results / name, pd.DataFrame(rows))
        files.write_csv(to.results / "history.csv", pd.concat(curves))
        for run, state in zip(runs, weights, strict=True):
            tensors = {k: torch.from_numpy(v) for k, v in state.items()}
            files.write_weights(to.data / f"{run.name}.safetensors", tensors)
        to.close()

    if "WORLD_SIZE" in os.environ or devices.choose(device).type != "cpu":
        accelerator = make_accelerator(device)
        found = [fit(run, accelerator) for run in runs]
        if accelerator.is_main_process:
            write(found)
        accelerator.wait_for_everyone()
    else:
        write(side_by_side(lambda run: fit(run, make_accelerator("cpu")), runs))


def _batches(data: Data, seed: int, start: int) -> Iterator[np.ndarray]:
    """The batches of indices from step `start` on, epoch after epoch."""
    done = 0
    for epoch in itertools.count():
        order = data.order(np.random.default_rng((seed, epoch)))
        if not order:
            raise UserError("there is less data than one batch holds; make the batch smaller")
        yield from order[max(0, start - done) :]
        done += len(order)


def _ready(
    data: Data, recipe: Recipe, seed: int, start: int, accelerator: Accelerator
) -> Iterator[tuple[int, list[tuple[Batch, float]]]]:
    """For each step from `start` on its units, and the parts that this process takes of it, on the device.

    A part comes with its weight: the weighted losses, summed over parts and averaged over processes, are the batch's.
    """
    rank, world, device = accelerator.process_index, accelerator.num_processes, accelerator.device
    parts = -(-recipe.accumulate // world)

    def there(tensor: Tensor) -> Tensor:
        return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)

    for step, index in zip(range(start, recipe.steps), _batches(data, seed, start), strict=False):
        index = np.resize(index, max(len(index), world * parts))  # no part is empty
        draws = torch.rand(len(index), generator=torch.Generator().manual_seed((seed * 1_000_003 + step) * 1_009))
        size, own = data.size(index), np.arange(len(index))[rank::world]
        yield (
            size,
            [
                ({k: there(v) for k, v in data.batch(index[i], draws[i]).items()}, data.size(index[i]) * world / size)
                for i in np.array_split(own, parts)
            ],
        )


def _ahead(items: Iterator) -> Iterator:
    """The same, each made before the one before it is used: its copy to a GPU runs beside a step."""
    following = next(items, None)
    while (item := following) is not None:
        following = next(items, None)
        yield item


def train(
    model: nn.Module,
    data: Data,
    loss: Loss,
    recipe: Recipe,
    *,
    seed: int,
    checkpoint: Path,
    accelerator: Accelerator | None = None,
    label: str = "train",
    ended: Callable[[int], None] = lambda step: None,
) -> pd.DataFrame:
    """Train the model in place, from the checkpoint if there is one; returns rows (step, lr, loss).

    `ended` is called after each step. The caller removes the checkpoint once its results are written.
    """
    accelerator = accelerator or make_accelerator()
    rank, world = accelerator.process_index, accelerator.num_processes
    torch.manual_seed(seed + APART * rank)  # of dropout
    model.train()
    wrapped, optimiser = accelerator.prepare(model, make_optimiser(model, recipe))
    found = restore(checkpoint, model, optimiser.optimizer, rank, world)
    state = found or {"step": 0, "rows": [], "window": []}
    start, rows, window = state["step"], state["rows"], state["window"]  # window: losses since the last row
    unread: list[Tensor] = []  # losses still on the device: reading each at once would make a GPU wait
    every = max(1, recipe.steps // recipe.history)
    units, clock = 0, time.perf_counter()  # since the last report

    def read(done: int, lr: float) -> None:
        nonlocal units, clock
        fresh = accelerator.reduce(torch.stack(unread), "mean").tolist()
        window.extend(fresh)
        if not np.isfinite(fresh).all():
            last = (
                f"the last good checkpoint, {checkpoint}, is of step {state['step']}"
                if state["step"]
                else "no checkpoint yet"
            )
            raise UserError(
                f"{label}: the loss is not finite at or before step {done} of {recipe.steps} "
                f"(learning rate {lr:.3g}; {last}); lower the learning rate or lengthen the warm-up"
            )
        seconds, clock = time.perf_counter() - clock, time.perf_counter()
        if rank == 0:
            left = (recipe.steps - done) * seconds / len(fresh)
            news = {"loss": float(np.mean(fresh)), "lr": lr, f"{data.unit}_per_second": units / seconds, "eta": left}
            live.info(label, extra={"step": done, "steps": recipe.steps, "news": news})
        unread.clear()
        units = 0

    if start and rank == 0:
        print(f"{label}: continuing after step {start} of {recipe.steps}", file=sys.stderr)
    quiet = rank > 0 or not sys.stderr.isatty()
    batches = _ahead(_ready(data, recipe, seed, start, accelerator))
    with tqdm(total=recipe.steps, initial=start, desc=label, disable=quiet, mininterval=0.5) as bar:
        for step, (size, parts) in enumerate(batches, start):
            lr = recipe.lr * factor(recipe.schedule, step, recipe.steps, recipe.warmup)
            for group in optimiser.param_groups:
                group["lr"] = lr
            for i, (batch, weight) in enumerate(parts):
                with nullcontext() if i + 1 == len(parts) else accelerator.no_sync(wrapped):
                    with accelerator.autocast():
                        value = loss(wrapped, batch) * weight
                    accelerator.backward(value)
                unread.append(value.detach() if i == 0 else unread.pop() + value.detach())
            if recipe.clip:
                accelerator.clip_grad_norm_(wrapped.parameters(), recipe.clip)
            optimiser.step()
            optimiser.zero_grad()
            bar.update()
            done, units = step + 1, units + size
            ended(done)
            last = done == recipe.steps
            row, due = last or done % every == 0, last or done % recipe.checkpoint == 0
            if row or due or done % NEWS == 0:
                read(done, lr)
            if row:
                rows.append({"step": done, "lr": lr, "loss": float(np.mean(window))})
                window.clear()
            if due:
                state, random = {"step": done, "rows": rows, "window": window}, random_states(accelerator)
                if accelerator.is_main_process:
                    save(checkpoint, model, optimiser.optimizer, random, state)
    accelerator.wait_for_everyone()
    accelerator.free_memory()  # it would hold the optimiser of every run of a stage
    model.eval()
    return pd.DataFrame(rows, columns=["step", "lr", "loss"]).astype({"step": int, "lr": float, "loss": float})
