"""A ViT training step on two threads: ours, through the project's loop, against the models and the loop of a user."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from transformers import ViTConfig, ViTForImageClassification

from attnrate.core.params import Group
from attnrate.large import loop as large
from attnrate.vit import model as vit
from attnrate.vit.train import Images, loss
from attnrate.vit.view import View
from benchmarks.common import PARAMS, Row, alternate, as_stage, ratio


class HuggingFace(nn.Module):
    def __init__(self, config: ViTConfig):
        super().__init__()
        self.inner = ViTForImageClassification(config)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).logits


def peers(p: Group) -> dict[str, nn.Module]:
    """The same shape from three libraries, dropout off as in ours."""
    hidden = int(p.width * p.mlp_ratio)
    return {
        "timm": VisionTransformer(
            img_size=p.image_size,
            patch_size=p.patch,
            num_classes=10,
            embed_dim=p.width,
            depth=p.depth,
            num_heads=p.heads,
            mlp_ratio=p.mlp_ratio,
        ),
        "torchvision": torchvision.models.VisionTransformer(
            p.image_size, p.patch, p.depth, p.heads, p.width, hidden, num_classes=10
        ),
        "transformers": HuggingFace(
            ViTConfig(
                image_size=p.image_size,
                patch_size=p.patch,
                hidden_size=p.width,
                num_hidden_layers=p.depth,
                num_attention_heads=p.heads,
                intermediate_size=hidden,
                num_labels=10,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            )
        ),
    }


def script(model: nn.Module, images: Images, steps: int, p: Group) -> Callable[[], None]:
    """What a user would write: AdamW, clipping, mirrored batches."""
    budget = Group(p.train | p.recipes.adamw)
    optimiser = torch.optim.AdamW(model.parameters(), lr=budget.lr, weight_decay=budget.weight_decay, fused=True)
    view = View(p.model.image_size)

    def call() -> None:
        model.train()
        for index in images.order(np.random.default_rng(0))[:steps]:
            batch = images.batch(index, torch.rand(len(index)))
            optimiser.zero_grad()
            F.cross_entropy(model(view(batch["x"])), batch["y"]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), budget.clip)
            optimiser.step()

    return call


def project(mh: int, images: Images, steps: int, p: Group, folder: Path) -> Callable[[], None]:
    """The loop of stages/vit_sweep.py, without its checkpoints; with a class token, as the peers have one."""
    shape = {k: p.model[k] for k in ("image_size", "patch", "width", "depth", "heads", "mlp_ratio")}
    model = vit.build("qk", mh, **shape)
    budget = {k: (p.train | p.recipes.adamw)[k] for k in ("lr", "schedule", "weight_decay", "clip")}
    recipe = large.Recipe(steps=steps, checkpoint=10**9, **budget)

    def call() -> None:
        with as_stage():
            checkpoint = folder / "last"  # large.train leaves one at the end
            large.train(model, images, loss(View(p.model.image_size), 0.0), recipe, seed=0, checkpoint=checkpoint)
            checkpoint.unlink(missing_ok=True)

    return call


def plain(mh: int, images: Images, steps: int, p: Group) -> Callable[[], None]:
    """The project's model in the loop that a user would write, with the settings of a stage: of ours the loop alone."""
    shape = {k: p.model[k] for k in ("image_size", "patch", "width", "depth", "heads", "mlp_ratio")}
    loop = script(vit.build("qk", mh, **shape), images, steps, p)

    def call() -> None:
        with as_stage():
            loop()

    return call


def bare(mh: int, images: Images, steps: int, p: Group) -> Callable[[], None]:
    """Of the same steps forward, backward, clipping and optimiser alone, on batches that are ready."""
    shape = {k: p.model[k] for k in ("image_size", "patch", "width", "depth", "heads", "mlp_ratio")}
    model, budget = vit.build("qk", mh, **shape), Group(p.train | p.recipes.adamw)
    optimiser = large.make_optimiser(model, large.Recipe(steps, budget.lr, weight_decay=budget.weight_decay))
    view, order = View(p.model.image_size), images.order(np.random.default_rng(0))[:steps]
    batches = [images.batch(index, torch.rand(len(index))) for index in order]
    ready = [(view(batch["x"]), batch["y"]) for batch in batches]

    def call() -> None:
        with as_stage():
            for x, y in ready:
                F.cross_entropy(model(x), y).backward()
                nn.utils.clip_grad_norm_(model.parameters(), budget.clip)
                optimiser.step()
                optimiser.zero_grad()

    return call


def run(quick: bool) -> Iterator[Row]:
    p, rng = PARAMS.vit, np.random.default_rng(0)
    # a call also makes an optimiser and a checkpoint
    steps, repeats, batch = (1, 1, 8) if quick else (160, 3, p.train.batch)
    x = rng.integers(0, 256, (batch * steps, 32, 32, 3), np.uint8)
    images = Images(x, rng.integers(0, 10, len(x), np.uint8), batch, "mirror")
    size = p.model.width // p.model.heads
    torch.manual_seed(0)
    with TemporaryDirectory() as folder:
        calls = {name: script(model, images, steps, p) for name, model in peers(p.model).items()}
        names = list(calls)
        calls |= {mh: project(mh, images, steps, p, Path(folder)) for mh in (size, 8, 1)}
        calls |= {"plain": plain(size, images, steps, p), "bare": bare(size, images, steps, p)}
        times = {name: t / steps for name, t in alternate(calls, repeats).items()}
    best = min(names, key=lambda name: times[name])
    note = ", ".join(f"{name} {1e3 * times[name]:.0f} ms" for name in names)
    yield ratio(f"ViT step, m_h = {size}, same work", f"best of three: {best}", times[size], times[best], 1.0, note)
    note = "a step of it, and what a run begins and ends with: optimiser, checkpoint"
    yield ratio("ViT step: the loop", "the same model in a plain loop", times[size], times["plain"], 1.0, note)
    outside = 100 * (1 - times["bare"] / times[size])
    yield Row(
        "ViT step: outside forward, backward, optimiser", "", outside, 10, "≤", "%", note="batches, views, the loop"
    )
    for mh in (8, 1):
        yield ratio(f"ViT step, m_h = {mh}", f"{best} at m_h = {size}", times[mh], times[best], None)
