"""The whole DAG: seconds of a `dvc repro` that has nothing to do, and what a full run costs outside its stages."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from attnrate.report.costs import BRANCHES, latest
from benchmarks.common import ROOT, Row

BUDGETS = dict(zip(BRANCHES, (6.0, 6.0, 4.0, 11.0, 7.0), strict=False))  # minutes on 2 cores; rendering has none


def overhead(log: Path, wall: float) -> float:
    """Percent of the wall seconds of a run that its stages do not account for; the log is the run's .timings.jsonl."""
    return 100 * (1 - sum(run["seconds"] for run in latest(log).values()) / wall)


def branches(log: Path) -> Iterator[Row]:
    runs = latest(log)
    for name, budget in BUDGETS.items():
        own = [run for stage, run in runs.items() if re.fullmatch(BRANCHES[name], stage.partition("@")[0])]
        minutes = sum(run["seconds"] for run in own) / 60
        yield Row(f"full laptop run: {name}", "", minutes, budget, "≤", "min")


def noop(repeats: int) -> tuple[float, int]:
    """`dvc repro --dry --allow-missing` in a fresh clone, which reads and compares every stage: median seconds, stale stages."""
    bin_folder = Path(sys.executable).parent
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "DVC_"))}
    env["PATH"] = f"{bin_folder}{os.pathsep}{env['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", "--local", ROOT, clone], check=True, env=env)
        times = []
        for _ in range(repeats + 1):  # the first fills DVC's own cache
            start = time.perf_counter()
            done = subprocess.run(
                ["dvc", "repro", "--dry", "--allow-missing"],
                cwd=clone,
                env=env,
                check=True,
                capture_output=True,
                text=True,
            )
            times.append(time.perf_counter() - start)
    return float(np.median(times[1:])), done.stdout.count("Running stage")


def run(quick: bool, log: Path | None = None, wall: float | None = None) -> Iterator[Row]:
    stages = sum(1 for line in (ROOT / "dvc.lock").read_text().splitlines() if line.startswith("    cmd:"))
    elapsed, stale = (None, 0) if quick else noop(3)
    note = f"{stages} stages, fresh clone" + (f", {stale} of them stale" if stale else "")
    yield Row("`dvc repro` with nothing to do", "", elapsed, 4.0, "≤", "s", note=note)
    given = log is not None and wall is not None
    note = "" if given else "give `--log FILE --wall SECONDS` of a full run"
    yield Row("full laptop run", "", wall / 60 if given else None, 30.0, "≤", "min", note=note)
    yield Row(
        "full laptop run: outside the stages", "", overhead(log, wall) if given else None, 10.0, "≤", "%", note=note
    )
    if given:
        yield from branches(log)
