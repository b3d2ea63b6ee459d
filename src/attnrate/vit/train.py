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
from torchvision.transforms import v2

from attnrate.core.params import Group
from attnrate.core.stage import Outs
from attnrate.large import checkpoint
from attnrate.large import loop as large
from attnrate.large.loop import Recipe
from attnrate.vit.view import View, load

CROP = v2.RandomResizedCrop(32, scale=(0.05, 1.0), antialias=True)  # of the code that the authors started from


class Images:
    """Batches of images for training: half of them `mirror`ed, before any permutation, or each with a box to `crop`."""

    unit = "images"

    def __init__(self, x: np.ndarray, y: np.ndarray, batch: int, augment: str):
        self.x, self.y, self.count, self.augment = torch.from_numpy(x), torch.from_numpy(y).long(), batch, augment

    def order(self, rng: np.random.Generator) -> list[np.ndarray]:
        full = len(self.x) // self.count * self.count
        return list(rng.permutation(len(self.x))[:full].reshape(-1, self.count))

    def size(self, index: np.ndarray) -> int:
        return len(index)

    def batch(self, index: np.ndarray, draws: Tensor) -> dict[str, Tensor]:
        x, y = self.x[index], self.y[index]
        if self.augment == "crop":
            return {"x": x, "y": y, "boxes": boxes(draws)}
        return {"x": torch.where(draws[:, None, None, None] < 0.5, x.flip(2), x), "y": y}


def boxes(draws: Tensor) -> Tensor:
    """A random box of an image by torchvision's rule for each draw, which seeds it: (B,) → (B, 4)."""
    before, found, image = torch.get_rng_state(), [], torch.empty(3, 32, 32)
    for seed in (draws * 2**24).long().tolist():  # single precision has 24 bits
        torch.default_generator.manual_seed(seed)  # the CPU's alone: dropout on a GPU goes on as it was
        box = CROP.make_params([image])
        found.append([box["top"], box["left"], box["height"], box["width"]])
    torch.set_rng_state(before)
    return torch.tensor(found)


def loss(view: View, smoothing: float) -> large.Loss:
    def value(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(model(view(batch["x"], batch.get("boxes"))), batch["y"], label_smoothing=smoothing)

    return value


def plan(train: Group, tune: Group | None, images: int, budget: str) -> Recipe:
    """The recipe of params.yaml: `full`, `tune` for a trained model that goes on, `none` for one only tested."""
    if budget == "none":
        return Recipe(steps=0, lr=0.0)
    p = Group(train | tune if budget == "tune" else train)
    steps = images // p.batch * p.epochs
    steps = min(steps, p.max_steps or steps)
    return Recipe(
        steps=steps,
        lr=p.lr,
        schedule=p.schedule,
        warmup=int(p.warmup * steps),
        optimiser=p.optimiser,
        weight_decay=p.weight_decay,
        clip=p.clip,
        accumulate=p.accumulate,
        checkpoint=p.checkpoint,
    )


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
    """Loss on training images as they are, neither altered nor smoothed; loss and accuracy on the test images."""
    train, _ = evaluate(model, view, arrays["measure_x"], arrays["measure_y"], accelerator)
    test, accuracy = evaluate(model, view, arrays["test_x"], arrays["test_y"], accelerator)
    return {"train_loss": train, "test_loss": test, "test_acc": accuracy}


def subset(arrays: dict[str, np.ndarray], images: Group) -> dict[str, np.ndarray]:
    """The first images of each part (CIFAR10's order is random); `measure` of those trained on get the final loss."""
    measure = min(images.measure, images.train)
    parts = {"train": ("train", images.train), "measure": ("train", measure), "test": ("test", images.test)}
    return {f"{name}_{side}": arrays[f"{part}_{side}"][:n] for name, (part, n) in parts.items() for side in "xy"}


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
        size = f"_mh{self.mh}" if self.variant == "beside" else ""  # the one stage with several head sizes
        return f"{self.variant}{size}_seed{self.seed}"


def train_all(
    runs: list[Run],
    to: Outs,
    data: Path,
    inputs: list[Path],
    *,
    model: Group,
    images: Group,
    train: Group,
    recipe: Group,
    tune: Group | None = None,
    device: str = "auto",
) -> None:
    """Train and test every run; write scores.csv, a row each, history.csv, and their weights.

    Beside the loss on images as they are stands `running_loss`, the last of history.csv, on those of the training.
    `recipe` joins `train`; `tune` is what a trained model that goes on changes of both, and not needed without one.
    Finished and unfinished runs stay in checkpoints until everything is written.
    """
    arrays = subset(load(data), images)
    batches = Images(arrays["train_x"], arrays["train_y"], train.batch, recipe["augment"])
    every = [
        run.keys | {"start": run.start, "budget": run.budget, "p": None if run.p is None else run.p.tolist()}
        for run in runs
    ]
    train = Group(train | recipe)
    settings = {"model": model, "images": images, "train": train, "tune": tune, "runs": every}
    with checkpoint.kept(to.name, settings, [data, *inputs]) as folder:

        def fit(run: Run, accelerator: Accelerator) -> large.Found | None:
            p = None if run.p is None else torch.from_numpy(run.p).to(accelerator.device)
            view, trained = View(model.image_size, run.start, p), run.model()
            curve = large.train(
                trained,
                batches,
                loss(view, train.smoothing),
                plan(train, tune, len(batches.x), run.budget),
                seed=run.seed,
                checkpoint=folder / f"{run.name}.safetensors",
                accelerator=accelerator,
                label=f"{run.reading}, m_h = {run.mh}, {run.variant}, seed {run.seed}",
            )
            if not accelerator.is_main_process:
                return None
            running = {"running_loss": curve.loss.iloc[-1] if len(curve) else None}
            row = run.keys | scores(trained, view, arrays, accelerator) | running
            weights = {k: v.cpu().numpy() for k, v in trained.state_dict().items()}
            return row, pd.DataFrame(run.keys, index=curve.index).join(curve), weights

        large.train_each(runs, fit, to, "scores.csv", device)
