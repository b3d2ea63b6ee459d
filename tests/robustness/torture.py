"""`make torture`: kill stages at random moments, run them again, compare every byte with a run that nobody disturbed.

python -m tests.robustness.torture --kills 50 [--seed 0] [--stages NAME …]. All of it happens in temporary copies of
the repository, at the smoke profile with longer trainings, two stages at a time. Ends with a full disk and with a
read-only folder.
"""

import argparse
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pandas as pd
from safetensors import SafetensorError, safe_open

from tests import pipeline
from tests.conftest import Workspace
from tests.pipeline import Stage
from tests.robustness import faults
from tests.robustness.undisturbed import Reference, remove_outs, run, smoke, start

# Trainings that go on for some seconds after the imports, with many checkpoints.
LONGER = {
    "vit": {"train": {"epochs": 50, "checkpoint": 8}, "tune": {"epochs": 10}},
    "translation": {"train": {"steps": 80, "checkpoint": 4}, "tune": {"steps": 30}},
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
PATIENCE = 2  # seconds that a stage may take to end
TRAININGS = 0.7  # share of the kills that goes to stages with checkpoints
AIMED = {True: 0.85, False: 0.5}  # share that waits for a checkpoint (with checkpoints) or for a first out (without)


def has_checkpoints(stage: Stage) -> bool:
    return "src/attnrate/large" in stage.deps


@dataclass
class Kill:
    number: int
    stage: Stage
    signal: signal.Signals
    rng: random.Random
    seconds: float = 0.0  # after the start
    landed: str = ""
    finished: bool = False  # too late: it does not count
    resumes: bool = False  # there is a checkpoint
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        line = f"{self.number:3}  {self.stage.name:27} {self.signal.name}  {self.seconds:5.2f} s  {self.landed}"
        return "\n".join([line, *(f"     WRONG: {p}" for p in self.problems)])


def draw(stages: list[Stage], seed: int, number: int, attempt: int) -> Kill:
    rng = random.Random(f"{seed}/{number}/{attempt}")
    trainings, others = ([s for s in stages if has_checkpoints(s) is kind] for kind in (True, False))
    pool = trainings if rng.random() < TRAININGS else others
    return Kill(number, rng.choice(pool or stages), rng.choice(SIGNALS), rng)


def all_steps(root: Path, stage: Stage) -> int:
    """Optimiser steps of a training that has finished, over its runs."""
    (results,) = (out for out in stage.outs if out.startswith("reports/results/"))
    history = pd.read_csv(root / results / "history.csv")
    return int(history.groupby(["variant", "seed"]).step.max().sum())


def saved_steps(root: Path) -> int:
    """Those in the checkpoints of the one training that is under way."""
    total = 0
    for path in root.glob(".scratch/checkpoints/*/*.safetensors"):
        try:
            with safe_open(path, "np") as f:
                total += json.loads(f.metadata()["state"])["step"]
        except (FileNotFoundError, SafetensorError):  # the training has just finished and removed it
            continue
    return total


def wait_for_moment(process: subprocess.Popen, kill: Kill, root: Path, reference: Reference) -> None:
    """Return at a random moment of a stage that runs."""
    stage, rng, training = kill.stage, kill.rng, has_checkpoints(kill.stage)
    if rng.random() > AIMED[training]:
        end = time.perf_counter() + rng.uniform(0, 0.9 * reference.seconds[stage.name])
        reached, pause = lambda: time.perf_counter() > end, 0.0
    elif training:
        goal = rng.randrange(1, all_steps(reference.space.path, stage))
        reached, pause = lambda: saved_steps(root) >= goal, rng.uniform(0, 0.05)
    else:
        outs, scratch = [root / out for out in stage.outs], root / ".scratch"
        before = set(scratch.iterdir())
        reached = lambda: set(scratch.iterdir()) != before or any(out.exists() for out in outs)  # noqa: E731
        pause = rng.uniform(0, 0.004 * len(outs))
    while process.poll() is None and not reached():
        time.sleep(0.001)
    time.sleep(pause)


def disturb(kill: Kill, space: Workspace, reference: Reference) -> None:
    """Start the stage, kill it, look at what is left."""
    stage, root = kill.stage, space.path
    (root / ".scratch").mkdir(exist_ok=True)
    remove_outs(root, stage)
    with tempfile.TemporaryFile("w+") as log:
        begin = time.perf_counter()
        process = start(space, stage, log)
        wait_for_moment(process, kill, root, reference)
        kill.seconds = time.perf_counter() - begin
        if process.poll() is None:
            os.killpg(process.pid, kill.signal)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            kill.problems.append(f"still running {PATIENCE} s after {kill.signal.name}")
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        output = log.read()
    kill.problems += reference.differences(root, killed=stage)
    kill.finished = process.returncode == 0
    steps = saved_steps(root)
    kill.resumes = steps > 0
    if kill.finished:
        kill.landed = "had finished: does not count"
    elif kill.resumes:
        kill.landed = f"after the checkpoint of step {steps} of {all_steps(reference.space.path, stage)}"
    elif has_checkpoints(stage):
        kill.landed = "before the first checkpoint"
    else:
        kill.landed = f"with {sum((root / out).exists() for out in stage.outs)} of {len(stage.outs)} outs"
    spoken = kill.signal == signal.SIGINT or process.returncode != -kill.signal  # SIGTERM as Python starts just ends it
    says = [line for line in output.splitlines() if "interrupted" in line and "dvc repro" in line]
    if kill.finished or kill.signal == signal.SIGKILL or not spoken:
        return
    if not says and "attnrate" not in output:
        kill.landed += ", Python itself was starting"
    elif len(says) != 1 or "Traceback" in output:
        kill.problems.append(f"does not say in one line how to go on:\n{output}")


def recover(kill: Kill, space: Workspace, reference: Reference) -> None:
    """Run the stage again, as DVC would, and compare the whole tree."""
    code, output = run(space, kill.stage)
    if code:
        kill.problems.append(f"cannot be run again, exit code {code}:\n{output}")
    if kill.resumes and "continuing after step" not in output:
        kill.problems.append("did not continue from its checkpoint")
    kill.problems += reference.differences(space.path)
    scratch = [*space.path.glob(".scratch/checkpoints/*"), *space.path.glob(".scratch/*")]
    kill.problems += [f"left {p.name} in .scratch" for p in scratch if p.name != "checkpoints"]


def torture(reference: Reference, kills: int, seed: int, folder: Path) -> bool:
    """All kills, in two copies of the reference; prints a line for each, then a summary."""
    begin, done, copies, numbers = time.perf_counter(), [], queue.Queue(), count()
    stages, lock = [reference.stages[name] for name in reference.names], threading.Lock()
    for _ in range(2):
        copies.put(reference.copy(folder / f"copy{next(numbers)}"))

    def one(number: int) -> None:
        space = copies.get()
        for attempt in count():
            kill = draw(stages, seed, number, attempt)
            disturb(kill, space, reference)
            recover(kill, space, reference)
            with lock:
                print(kill, flush=True)
                done.append(kill)
            if kill.problems:  # the next kill begins with a clean copy
                shutil.rmtree(space.path)
                space = reference.copy(folder / f"copy{next(numbers)}")
            if not kill.finished:
                break
        copies.put(space)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(1, kills + 1)))
    good = [k for k in done if not k.finished and not k.problems]
    signals = Counter(k.signal.name for k in good)
    print(
        f"{len(good)} of {kills} kills survived ({', '.join(f'{n} {name}' for name, n in sorted(signals.items()))}), "
        f"{sum(k.resumes for k in good)} between a checkpoint and completion; "
        f"{sum(reference.size(k.stage) for k in done):,} bytes of outs compared; {time.perf_counter() - begin:.0f} s"
    )
    return not any(k.problems for k in done)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stages", nargs="+", help="all of the DAG if left out")
    args = parser.parse_args(argv)
    # Jobs in a shell's background ignore it, and so would stages.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        folder = Path(name)
        space = smoke(folder / "reference", LONGER)
        reference = Reference(space, args.stages or [s.name for s in pipeline.stages(space.path)])
        print(f"reference: {len(reference.seconds)} stages in {time.perf_counter() - begin:.0f} s", flush=True)
        ok = torture(reference, args.kills, args.seed, folder)
        ok = faults.check(reference, folder) and ok
    print(f"{'all well' if ok else 'something is WRONG'}; {time.perf_counter() - begin:.0f} s in total")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
