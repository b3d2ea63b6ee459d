"""Training a ViT on CIFAR10 (section 5.2, appendix C), and testing it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor, nn

from attnrate.core import files
from attnrate.data.view import View, load
from attnrate.training import checkpoint, large
from attnrate.training.large import Recipe


class Images:
    """Batches of images for training; half of them mirrored, before any permutation."""

    def __init__(self, x: np.ndarray, y: np.ndarray, batch: int):
        self.x, self.y, self.size = torch.from_numpy(x), torch.from_numpy(y).long(), batch

    def order(self, rng: np.random.Generator) -> list[np.ndarray]:
        full = len(self.x) // self.size * self.size
        return list(rng.permutation(len(self.x))[:full].reshape(-1, self.size))

    def batch(self, index: np.ndarray, generator: torch.Generator) -> dict[str, Tensor]:
        x = self.x[index]
        mirrored = torch.rand(len(x), 1, 1, 1, generator=generator) < 0.5
        return {"x": torch.where(mirrored, x.flip(2), x), "y": self.y[index]}


def loss(view: View, smoothing: float) -> large.Loss:
    return lambda model, batch: F.cross_entropy(model(view(batch["x"])), batch["y"], label_smoothing=smoothing)


def recipe(params, images: int, budget: str) -> Recipe:
    """The recipe of params.yaml: `full`, `tune` for a trained model that goes on, `none` for one that is only tested."""
    if budget == "none":
        return Recipe(steps=0, lr=0.0)
    p, tune = params, budget == "tune"
    epochs, lr = (p.tune_epochs, p.tune_lr) if tune else (p.epochs, p.lr)
    optimiser, decay = (p.tune_optimiser, p.tune_weight_decay) if tune else (p.optimiser, p.weight_decay)
    steps = images // p.batch * epochs
    steps = min(steps, p.max_steps or steps)
    return Recipe(
        steps=steps, lr=lr, schedule=p.schedule, warmup=int(p.warmup * steps), optimiser=optimiser, weight_decay=decay,
        clip=p.clip, accumulate=p.accumulate, checkpoint=p.checkpoint,
    )  # fmt: skip


@torch.no_grad()
def evaluate(
    model: nn.Module, view: View, x: np.ndarray, y: np.ndarray, accelerator: Accelerator
) -> tuple[float, float]:
    """Cross-entropy and accuracy over images x with labels y."""
    total, right = 0.0, 0
    for part in range(0, len(x), 250):
        images, labels = (torch.from_numpy(a[part : part + 250]).to(accelerator.device) for a in (x, y))
        with accelerator.autocast():
            logits = model(view(images)).float()
        total += F.cross_entropy(logits, labels.long(), reduction="sum").item()
        right += (logits.argmax(-1) == labels).sum().item()
    return total / len(x), right / len(x)


def scores(model: nn.Module, view: View, arrays: dict[str, np.ndarray], accelerator: Accelerator) -> dict:
    """Loss on the training images as they are, neither mirrored nor smoothed; loss and accuracy on the test images."""
    train, _ = evaluate(model, view, arrays["train_x"], arrays["train_y"], accelerator)
    test, accuracy = evaluate(model, view, arrays["test_x"], arrays["test_y"], accelerator)
    return {"train_loss": train, "test_loss": test, "test_acc": accuracy}


def subset(arrays: dict[str, np.ndarray], train: int, test: int) -> dict[str, np.ndarray]:
    """The first images of each part (CIFAR10's order is random)."""
    sizes = {"train_x": train, "train_y": train, "test_x": test, "test_y": test}
    return {name: arrays[name][:n] for name, n in sizes.items()}


@dataclass(frozen=True)
class Run:
    reading: str
    mh: int
    seed: int
    variant: str
    model: Callable[[], nn.Module]  # before training
    start: str = "scratch"  # what its weights come from
    p: np.ndarray | None = None  # permutation of the patches
    budget: str = "full"  # of `recipe`

    @property
    def keys(self) -> dict:
        return {"reading": self.reading, "mh": self.mh, "seed": self.seed, "variant": self.variant}

    @property
    def name(self) -> str:
        return f"{self.variant}_seed{self.seed}"


def train_all(
    runs: list[Run], params, data: Path, *, name: str, inputs: list[Path], out: Path, history: Path, weights: Path
) -> None:
    """Train and test every run; write a row each, their loss curves, and their weights into a folder.

    Finished and unfinished runs stay in checkpoints until everything is written.
    """
    accelerator = large.make_accelerator()
    arrays = subset(load(data), params.train_images, params.test_images)
    images = Images(arrays["train_x"], arrays["train_y"], params.batch)
    settings = {"params": params.model_dump(), "runs": [run.keys for run in runs]}
    rows, curves, models = [], [], {}
    with checkpoint.kept(name, settings, [data, *inputs]) as folder:
        for run in runs:
            p = None if run.p is None else torch.from_numpy(run.p).to(accelerator.device)
            view, model = View(params.image_size, run.start, p), run.model()
            curve = large.train(
                model, images, loss(view, params.smoothing), recipe(params, len(images.x), run.budget),
                seed=run.seed, checkpoint=folder / f"{run.name}.safetensors", accelerator=accelerator,
                label=f"{run.reading}, m_h = {run.mh}, {run.variant}, seed {run.seed}",
            )  # fmt: skip
            if accelerator.is_main_process:
                rows.append(run.keys | scores(model, view, arrays, accelerator))
                curves.append(pd.DataFrame(run.keys, index=curve.index).join(curve))
                models[run.name] = {k: v.cpu() for k, v in model.state_dict().items()}
        if accelerator.is_main_process:
            files.write_csv(out, pd.DataFrame(rows))
            files.write_csv(history, pd.concat(curves))
            with files.atomic(weights) as draft:
                draft.mkdir()
                for run_name, state in models.items():
                    files.write_weights(draft / f"{run_name}.safetensors", state)
        accelerator.wait_for_everyone()
