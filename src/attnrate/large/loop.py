"""One loop for large models (ViT, translation) on Hugging Face accelerate: a CPU, one GPU, or several.

The order of the data depends on (seed, epoch) alone and the randomness of a batch on (seed, step), so a run that is
killed continues from its checkpoint as if nothing had happened: on a CPU, to the same bytes.
"""

import itertools
import os
import sys
from collections.abc import Callable, Iterator
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
from attnrate.large.checkpoint import restore, save
from attnrate.optim.muon import Muon, like_adam
from attnrate.optim.schedules import factor

Batch = dict[str, Tensor]
Loss = Callable[[nn.Module, Batch], Tensor]  # the mean loss of a batch


class Data(Protocol):
    def order(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The batches of an epoch, as indices."""

    def batch(self, index: np.ndarray, generator: torch.Generator) -> Batch:
        """The tensors of one batch, augmented with the generator's randomness."""


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
    accumulate: int = 1  # parts that a batch is split into, to fit memory; each counts the same
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


def make_accelerator() -> Accelerator:
    """bfloat16 on GPUs that have it; single precision everywhere else."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what deterministic algorithms ask for on GPUs
    gpu = torch.cuda.is_available()
    mixed = gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    return Accelerator(cpu=not gpu, mixed_precision="bf16" if mixed else "no")


def write(to: Outs, name: str, rows: list[dict], curves: list[pd.DataFrame], models: dict[str, dict]) -> None:
    """A row for each run, their loss curves and weights, moved into place before their checkpoints go."""
    files.write_csv(to.results / name, pd.DataFrame(rows))
    files.write_csv(to.results / "history.csv", pd.concat(curves))
    for run, state in models.items():
        files.write_weights(to.data / f"{run}.safetensors", state)
    to.close()


def _batches(data: Data, seed: int, start: int) -> Iterator[np.ndarray]:
    """The batches of indices from step `start` on, epoch after epoch."""
    done = 0
    for epoch in itertools.count():
        order = data.order(np.random.default_rng((seed, epoch)))
        if not order:
            raise UserError("there is less data than one batch holds; make the batch smaller")
        yield from order[max(0, start - done) :]
        done += len(order)


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
) -> pd.DataFrame:
    """Train the model in place, from the checkpoint if there is one; returns rows (step, lr, loss).

    The caller removes the checkpoint once its results are written.
    """
    accelerator = accelerator or make_accelerator()
    rank, world = accelerator.process_index, accelerator.num_processes
    torch.manual_seed(seed)
    model.train()
    wrapped, optimiser = accelerator.prepare(model, make_optimiser(model, recipe))
    state = restore(checkpoint, model, optimiser.optimizer) or {"step": 0, "rows": [], "window": []}
    start, rows, window = state["step"], state["rows"], state["window"]  # window: losses since the last row
    unread: list[Tensor] = []  # losses still on the device: reading each at once would make a GPU wait
    every = max(1, recipe.steps // recipe.history)

    def read(done: int, lr: float) -> None:
        if unread:
            window.extend(accelerator.reduce(torch.stack(unread), "mean").tolist())
            unread.clear()
        if not np.isfinite(window).all():
            last = (
                f"the last good checkpoint, {checkpoint}, is of step {state['step']}"
                if state["step"]
                else "no checkpoint yet"
            )
            raise UserError(
                f"{label}: the loss is not finite at or before step {done} of {recipe.steps} "
                f"(learning rate {lr:.3g}; {last}); lower the learning rate or lengthen the warm-up"
            )

    if start and rank == 0:
        print(f"{label}: continuing after step {start} of {recipe.steps}", file=sys.stderr)
    quiet = rank > 0 or not sys.stderr.isatty()
    with tqdm(total=recipe.steps, initial=start, desc=label, disable=quiet, mininterval=0.5) as bar:
        for step, index in zip(range(start, recipe.steps), _batches(data, seed, start), strict=False):
            lr = recipe.lr * factor(recipe.schedule, step, recipe.steps, recipe.warmup)
            for group in optimiser.param_groups:
                group["lr"] = lr
            generator = torch.Generator().manual_seed((seed * 1_000_003 + step) * 1_009 + rank)
            index = np.resize(index, max(len(index), world * recipe.accumulate))  # no part is empty
            parts = np.array_split(index[rank::world], recipe.accumulate)
            for i, part in enumerate(parts):
                batch = {k: v.to(accelerator.device) for k, v in data.batch(part, generator).items()}
                with nullcontext() if i + 1 == len(parts) else accelerator.no_sync(wrapped):
                    with accelerator.autocast():
                        value = loss(wrapped, batch) / len(parts)
                    accelerator.backward(value)
                unread.append(value.detach() if i == 0 else unread.pop() + value.detach())
            if recipe.clip:
                accelerator.clip_grad_norm_(wrapped.parameters(), recipe.clip)
            optimiser.step()
            optimiser.zero_grad()
            bar.update()
            done = step + 1
            if done % every == 0 or done == recipe.steps:
                read(done, lr)
                rows.append({"step": done, "lr": lr, "loss": float(np.mean(window))})
                window.clear()
            if done % recipe.checkpoint == 0 or done == recipe.steps:
                read(done, lr)
                state = {"step": done, "rows": rows, "window": window}
                if accelerator.is_main_process:
                    save(checkpoint, model, optimiser.optimizer, state)
    accelerator.wait_for_everyone()
    accelerator.free_memory()  # it would hold the optimiser of every run of a stage
    model.eval()
    return pd.DataFrame(rows, columns=["step", "lr", "loss"]).astype({"step": int, "lr": float, "loss": float})
