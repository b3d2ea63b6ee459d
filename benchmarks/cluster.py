"""Two models of the laptop's ViT sweep: side by side with a thread each, against one after the other with two threads.

The images are random: only their shape matters.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from attnrate.core.params import Group
from attnrate.large import loop as large
from attnrate.vit import model as models
from attnrate.vit import train as vit
from attnrate.vit.view import View
from benchmarks.common import PARAMS, ROOT, Row

STEPS, WARM, MH, REPEATS = 80, 5, 8, 2


def train(threads: int) -> None:
    """A few steps to warm up, a line on standard input, STEPS steps of the sweep's training; prints their seconds."""
    torch.set_num_threads(threads)
    p, rng = PARAMS.vit, np.random.default_rng(0)
    size, batch = p.model.image_size, p.train.batch
    x = rng.integers(0, 256, (STEPS * batch, size, size, 3), dtype=np.uint8)
    images = vit.Images(x, rng.integers(0, 10, len(x)), batch, "mirror")
    loss = vit.loss(View(size), p.train.smoothing)

    def run(steps: int) -> float:
        recipe = p.recipes[p.sweep.recipe] | {"max_steps": steps}
        plan = vit.plan(Group(p.train | recipe), p.tune, p.images.train, "full")
        model = models.make("qk", MH, seed=0, **p.model)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            large.train(model, images, loss, plan, seed=0, checkpoint=Path(folder) / "run.safetensors")
            return time.perf_counter() - start

    run(WARM)
    print("ready", flush=True)
    sys.stdin.readline()
    print(run(STEPS))


def together(processes: int, threads: int) -> float:
    """Seconds of several trainings side by side, from one signal to the last end."""
    command = [sys.executable, "-m", "benchmarks.cluster", str(threads)]
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
    p = PARAMS.vit
    whole = p.images.train // p.train.batch * p.train.epochs / STEPS  # a real training takes so many times the steps
    times = [(2 * together(1, 2), together(2, 1)) for _ in range(0 if quick else REPEATS)]  # in turn
    serial, parallel = map(min, zip(*times, strict=True)) if times else (None, None)
    hourly = [f"{2 * 3600 / (t * whole):.0f}" for t in (parallel, serial) if t]
    yield Row(
        "ViT sweep, two workers of one thread",
        "one process of two threads",
        serial / parallel if times else None,
        None,
        ours=parallel,
        theirs=serial,
        note=f"{' against '.join(hourly)} models an hour" if times else "",
    )


if __name__ == "__main__":
    train(int(sys.argv[1]))
