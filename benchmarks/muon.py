"""Muon against Adam: seconds to Adam's own final error, and the share of a step that Newton-Schulz takes.

Adam runs by the recipe that the project had before Muon; Muon with several budgets, each a whole schedule, and its
seconds are interpolated. Seeds, kernel and filters are none of the report's.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from attnrate.core.params import Group
from attnrate.large import loop as large
from attnrate.linear import targets
from attnrate.linear.train import fresh_mse, train_transformer
from attnrate.optim import muon
from attnrate.rates import pod
from attnrate.rates import train as rates
from attnrate.vit import model as vit
from attnrate.vit.train import Images, evaluate, loss
from attnrate.vit.view import View, load
from benchmarks.common import PARAMS, ROOT, THREADS, Row, alternate, as_stage, ratio
from benchmarks.rates import seconds_to

SEED = 1000
ADAM = {"lr": 0.002, "muon": None, "warmup": 200, "gain": 3.0}
ADAM_STEPS = 3500
NAMES = ("exp/original", "exp/exchange", "exp/roll", "uniform/original")


def tables(recipe: Group, steps: int, seeds: int) -> tuple[float, float]:
    """Seconds, and the geometric mean over the targets of the median error over seeds."""
    p = PARAMS.linear
    cells = [t for t in targets.make_all(p.target.tau, SEED, SEED) if t.name in NAMES for _ in range(seeds)]
    chosen = [SEED + i for _ in NAMES for i in range(seeds)]
    recipe, budget = Group(recipe | {"warmup": min(recipe.warmup, steps // 5)}), Group(p.train | {"steps": steps})
    with as_stage():
        start = time.perf_counter()
        model, _ = train_transformer(cells, chosen, PARAMS.mh, "centred", recipe, p.model, budget)
        seconds = time.perf_counter() - start
        errors = fresh_mse(model, cells, size=512, seed=SEED).reshape(len(NAMES), seeds)
    return seconds, float(np.exp(np.log(np.median(errors, 1)).mean()))


def images(quick: bool) -> dict[str, np.ndarray] | None:
    """CIFAR10 as the DAG has it; noise where only the code is tried; None without it."""
    path = ROOT / "data/vit_images/images.npz"
    if quick:
        rng = np.random.default_rng(0)
        return {
            "train_x": rng.integers(0, 256, (64, 32, 32, 3), np.uint8),
            "train_y": rng.integers(0, 10, 64, np.uint8),
        }
    return load(path) if path.exists() else None


def classifier(arrays: dict[str, np.ndarray], recipe: Group, epochs: float, count: int) -> tuple[float, float]:
    """Seconds of training, and the training loss after it."""
    p, accelerator = PARAMS.vit, large.make_accelerator()
    x, y = arrays["train_x"][:count], arrays["train_y"][:count]
    batch = min(p.train.batch, count)
    steps = int(count // batch * epochs)
    plan = large.Recipe(
        steps=steps,
        schedule=p.train.schedule,
        warmup=int(p.train.warmup * steps),
        clip=p.train.clip,
        checkpoint=10**9,
        **{k: v for k, v in recipe.items() if k != "augment"},
    )
    model, view = vit.make("qk", p.main.mh, SEED, **p.model), View(p.model.image_size)
    with TemporaryDirectory() as folder, as_stage():
        start = time.perf_counter()
        checkpoint, how = Path(folder) / "last", {"seed": SEED, "accelerator": accelerator}
        large.train(model, Images(x, y, batch, recipe["augment"]), loss(view, 0.0), plan, checkpoint=checkpoint, **how)
        seconds = time.perf_counter() - start
    return seconds, evaluate(model, view, x[:5000], y[:5000], accelerator)[0]


class Clock:
    """Seconds inside `orthogonal` while the block runs."""

    def __enter__(self):
        self.seconds, self.inner = 0.0, muon.orthogonal
        muon.orthogonal = self.timed
        return self

    def timed(self, *arguments):
        start = time.perf_counter()
        found = self.inner(*arguments)
        self.seconds += time.perf_counter() - start
        return found

    def __exit__(self, *_):
        muon.orthogonal = self.inner


def shares(steps: int) -> Iterator[tuple[str, float]]:
    """Newton-Schulz's share (%) of training Tables 2 and 3, and of Figure 1, at the sizes of the stages."""
    with Clock() as clock:
        seconds, _ = tables(PARAMS.linear.recipes.centred, steps, len(PARAMS.linear.cells.seeds))
    yield "Tables 2 and 3", 100 * clock.seconds / seconds
    p = PARAMS.rates
    grid = list(pod.make_grid(**p.target | {"pairings": [f"dyadic-{SEED}"], "alphas": p.recipes.trained.alphas}))
    cells = [(t, mh, SEED) for t in range(len(grid)) for mh in p.recipes.trained.mh]
    recipe = Group(p.recipes.trained | {"steps": steps, "warmup": 1})
    with Clock() as clock, as_stage():
        start = time.perf_counter()
        rates.fit(grid, cells, recipe, p.model, p.train, label="benchmark")
        yield "Figure 1", 100 * clock.seconds / (time.perf_counter() - start)


def run(quick: bool) -> Iterator[Row]:
    torch.set_num_threads(THREADS)
    seeds, budget, budgets = (1, 4, (2, 4)) if quick else (3, ADAM_STEPS, (400, 800, 1600))
    theirs = tables(Group(ADAM), budget, seeds)
    ours = [tables(PARAMS.linear.recipes.centred, steps, seeds) for steps in budgets]
    yield to_same("Tables 2 and 3, time to Adam's final error", "Adam, as before", ours, theirs, 3.0)

    arrays, epochs, count = (
        images(quick),
        (1, 2) if quick else (0.7, 1.4, 2.1),
        64 if quick else PARAMS.vit.images.train,
    )
    name = "ViT, time to AdamW's final training loss"
    if arrays is None:
        yield Row(name, "AdamW", None, 1.5, note="needs data/vit_images: dvc repro vit_images")
    else:
        recipes = PARAMS.vit.recipes
        other = classifier(arrays, recipes.adamw, 1 if quick else PARAMS.vit.train.epochs, count)
        yield to_same(name, "AdamW", [classifier(arrays, recipes.muon, e, count) for e in epochs], other, 1.5)
    for where, share in shares(2 if quick else 60):
        goal = 100 / 3 if where.startswith("Tables") else None
        yield Row(f"Newton-Schulz, share of a step, {where}", "", share, goal, "≤", "%")
    yield dead_units(quick)


def dead_units(quick: bool) -> Row:
    """Newton-Schulz where every second row is of a ReLU that died 900 steps ago: 0.95^900 is 1e-20."""
    momentum = torch.randn(12, *(2 * [16 if quick else 128]), generator=torch.Generator().manual_seed(SEED))
    momentum[:, ::2] *= 1e-20

    def orthogonal(flush: bool) -> None:
        torch.set_flush_denormal(flush)
        muon.orthogonal(momentum)
        torch.set_flush_denormal(False)

    torch.set_num_threads(1)
    times = alternate({"zero": lambda: orthogonal(True), "kept": lambda: orthogonal(False)}, 3 if quick else 21)
    torch.set_num_threads(THREADS)
    name = "Newton-Schulz, half of the rows dead, numbers below 1e-38 as zero"
    return ratio(name, "such numbers kept", times["zero"], times["kept"], 0.9)


def to_same(name: str, against: str, ours: list, theirs: tuple[float, float], goal: float) -> Row:
    seconds, error = theirs
    return ratio(name, against, seconds_to(error, ours), seconds, goal, f"to {error:.3g}")
