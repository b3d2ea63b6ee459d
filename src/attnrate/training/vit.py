"""Training a ViT on CIFAR10 (section 5.2, appendix C), and testing it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from safetensors.torch import save_file
from torch import Tensor, nn

from attnrate.core import files
from attnrate.data import cifar10
from attnrate.data.permute import permute_patches
from attnrate.training import checkpoint, large
from attnrate.training.large import Recipe


def view(images: Tensor, size: int, p: Tensor | None = None) -> Tensor:
    """uint8 (B, 32, 32, 3) → float (B, 3, size, size) in [-1, 1], its patches permuted by p."""
    x = images.movedim(-1, 1).float().div(127.5).sub(1)
    if size != x.shape[-1]:
        x = F.interpolate(x, size=(size, size), mode="bicubic", align_corners=False)
    return x if p is None else permute_patches(x.contiguous(), p)


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


def loss(size: int, p: Tensor | None, smoothing: float):
    return lambda model, batch: F.cross_entropy(model(view(batch["x"], size, p)), batch["y"], label_smoothing=smoothing)


def recipe(params, images: int, *, tune: bool) -> Recipe:
    """The recipe of params.yaml for a number of training images."""
    steps = images // params.batch * (params.tune_epochs if tune else params.epochs)
    steps = min(steps, params.max_steps or steps)
    return Recipe(
        steps=steps, lr=params.tune_lr if tune else params.lr, schedule=params.schedule, warmup=int(params.warmup * steps),
        optimiser=params.optimiser, weight_decay=params.weight_decay, clip=params.clip, accumulate=params.accumulate,
        checkpoint=params.checkpoint,
    )  # fmt: skip


@torch.no_grad()
def evaluate(model: nn.Module, x: np.ndarray, y: np.ndarray, size: int, p: Tensor | None, accelerator: Accelerator,
             chunk: int = 250) -> tuple[float, float]:  # fmt: skip
    """Cross-entropy and accuracy over images."""
    model.eval()
    total, right = 0.0, 0
    for start in range(0, len(x), chunk):
        images = torch.from_numpy(x[start : start + chunk]).to(accelerator.device)
        labels = torch.from_numpy(y[start : start + chunk]).long().to(accelerator.device)
        with accelerator.autocast():
            logits = model(view(images, size, p)).float()
        total += F.cross_entropy(logits, labels, reduction="sum").item()
        right += (logits.argmax(-1) == labels).sum().item()
    return total / len(x), right / len(x)


def scores(
    model: nn.Module, arrays: dict[str, np.ndarray], size: int, p: Tensor | None, accelerator: Accelerator
) -> dict:
    train, _ = evaluate(model, arrays["train_x"], arrays["train_y"], size, p, accelerator)
    test, accuracy = evaluate(model, arrays["test_x"], arrays["test_y"], size, p, accelerator)
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
    start: Callable[[], nn.Module]  # the model before training
    p: np.ndarray | None = None  # permutation of the patches
    tune: bool = False  # a trained model that goes on: tune_epochs and tune_lr

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
    arrays = subset(cifar10.load(data), params.train_images, params.test_images)
    images = Images(arrays["train_x"], arrays["train_y"], params.batch)
    settings = {"params": params.model_dump(), "runs": [run.keys for run in runs]}
    rows, curves, models = [], [], {}
    with checkpoint.kept(name, settings, [data, *inputs]) as folder:
        for run in runs:
            p = None if run.p is None else torch.from_numpy(run.p).to(accelerator.device)
            model = run.start()
            curve = large.train(
                model, images, loss(params.image_size, p, params.smoothing), recipe(params, len(images.x), tune=run.tune),
                seed=run.seed, checkpoint=folder / f"{run.name}.safetensors", accelerator=accelerator,
                label=f"{run.reading}, m_h = {run.mh}, {run.variant}, seed {run.seed}",
            )  # fmt: skip
            if accelerator.is_main_process:
                rows.append(run.keys | scores(model, arrays, params.image_size, p, accelerator))
                curves.append(pd.DataFrame(run.keys, index=curve.index).join(curve))
                models[run.name] = {k: v.cpu().contiguous() for k, v in model.state_dict().items()}
        if accelerator.is_main_process:
            files.write_csv(out, pd.DataFrame(rows))
            files.write_csv(history, pd.concat(curves))
            with files.atomic(weights) as draft:
                draft.mkdir()
                for run_name, state in models.items():
                    save_file(state, draft / f"{run_name}.safetensors")
        accelerator.wait_for_everyone()
