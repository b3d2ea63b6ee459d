"""Trainings side by side with a thread each, as a stage runs them, against one process of two threads.

The ViT's images are random: only their shape matters.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from attnrate import cores
from attnrate.core.params import Group
from attnrate.large import loop as large
from attnrate.linear import targets
from attnrate.linear.train import train_transformer
from attnrate.rates import pod
from attnrate.rates import train as rates
from attnrate.vit import model as models
from attnrate.vit import train as vit
from attnrate.vit.view import View
from benchmarks.common import PARAMS, ROOT, Row

WARM, REPEATS, MH = 5, 3, 8
STEPS = {"vit": 80, "linear": 60, "rates": 40}
WHAT = {"vit": "two ViTs of the sweep", "linear": "24 models of Tables 2 and 3", "rates": "24 models of Figure 1"}


def vits(share: int) -> Callable[[int], None]:
    """2 / share trainings of the sweep, in turn."""
    p, rng = PARAMS.vit, np.random.default_rng(0)
    size, batch = p.model.image_size, p.train.batch
    x = rng.integers(0, 256, (STEPS["vit"] * batch, size, size, 3), dtype=np.uint8)
    images = vit.Images(x, rng.integers(0, 10, len(x)), batch, "mirror")
    loss = vit.loss(View(size), p.train.smoothing)

    def run(steps: int) -> None:
        recipe = p.recipes[p.sweep.recipe] | {"max_steps": steps}
        plan = vit.plan(Group(p.train | recipe), p.tune, p.images.train, "full")
        for seed in range(2 // share):
            model = models.make("qk", MH, seed=seed, **p.model)
            with tempfile.TemporaryDirectory() as folder:
                large.train(model, images, loss, plan, seed=seed, checkpoint=Path(folder) / "run.safetensors")

    return run


def linear(share: int) -> Callable[[int], None]:
    """A stack of 24 / share models."""
    p = PARAMS.linear
    every = targets.load(ROOT / "data/targets/linear.npz")
    aims, seeds = zip(*targets.replicates(every, p.mixing.bare, p.mixing.seeds)[: 24 // share], strict=True)
    budget = Group(p.train | {"gate": False})
    return lambda steps: train_transformer(
        aims, seeds, p.mixing.mh, "mixing", p.recipes.centred, p.model, Group(budget | {"steps": steps})
    )


def figure1(share: int) -> Callable[[int], None]:
    """A stack of 24 / share models."""
    own = PARAMS.rates.recipes.trained
    chosen = Group(PARAMS.rates.target | {"pairings": own.pairings[:1], "alphas": own.alphas})
    aims = pod.load_grid(ROOT / "data/targets/pod", chosen)
    cells = [(t, mh, 0) for t in range(len(aims)) for mh in own.mh][: 24 // share]

    def run(steps: int) -> None:
        rates.fit(aims, cells, Group(own | {"steps": steps}), PARAMS.rates.model, PARAMS.rates.train, "Figure 1")

    return run


KINDS = {"vit": vits, "linear": linear, "rates": figure1}


def train(kind: str, threads: int, share: int) -> None:
    """A few steps to warm up, a line on standard input, then the steps that count; prints their seconds."""
    cores.set_threads(threads)
    run = KINDS[kind](share)
    run(WARM)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    run(STEPS[kind])
    print(time.perf_counter() - start)


def together(kind: str, processes: int, threads: int) -> float:
    """Seconds of the whole work, split between processes, from one signal to the last end."""
    command = [sys.executable, "-m", "benchmarks.cores", kind, str(threads), str(processes)]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for process in running:
        process.stdout.readline()
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    return max(float(process.communicate()[0]) for process in running)


def run(quick: bool) -> Iterator[Row]:
    for kind, what in WHAT.items():
        times = [(together(kind, 1, 2), together(kind, 2, 1)) for _ in range(0 if quick else REPEATS)]  # in turn
        serial, parallel = map(min, zip(*times, strict=True)) if times else (None, None)
        yield Row(
            f"{what}, side by side with a thread each",
            "one process of two threads",
            serial / parallel if times else None,
            1.0,
            ours=parallel,
            theirs=serial,
        )


if __name__ == "__main__":
    train(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
