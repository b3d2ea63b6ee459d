"""The whole DAG: seconds of a `dvc repro` that has nothing to do, and what a full run costs outside its stages."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from attnrate.ops import costs
from attnrate.ops.runlog import latest
from benchmarks.common import ROOT, Row

# Minutes on 2 cores of the branches of dvc.yaml; the report has none.
BUDGETS = {
    "Figure 1": 7.0,
    "Tables 2 and 3": 6.0,
    "Appendix B": 4.0,
    "Pretrained ViT": 1.0,
    "CIFAR10": 9.5,
    "English-German": 7.0,
    "Beyond": 4.0,
    "Cut heads": 1.5,
}


def overhead(log: Path, wall: float) -> float:
    """Percent of the wall seconds of a run that its stages, imports included, do not account for: DVC's own work.

    The log is the run's .runs.jsonl.
    """
    return 100 * (1 - sum(run["seconds"] for run in latest(log).values()) / wall)


def branches(log: Path) -> Iterator[Row]:
    runs, branch = latest(log), costs.branches(ROOT / "dvc.yaml")
    for name, budget in BUDGETS.items():
        seconds = sum(run["seconds"] for stage, run in runs.items() if branch.get(stage.partition("@")[0]) == name)
        yield Row(f"full laptop run: {name}", "", seconds / 60, budget, "≤", "min")


def noop(repeats: int) -> float | None:
    """Median seconds of a `dvc repro` that has nothing to do, in this tree; None if it has something to do."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "DVC_"))}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"

    def dvc(*command: str) -> str:
        return subprocess.run(["dvc", *command], cwd=ROOT, env=env, check=True, capture_output=True, text=True).stdout

    if "Running stage" in dvc("repro", "--dry"):
        return None
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        dvc("repro")
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def run(quick: bool, log: Path | None = None, wall: float | None = None) -> Iterator[Row]:
    stages = sum(1 for line in (ROOT / "dvc.lock").read_text().splitlines() if line.startswith("    cmd:"))
    elapsed = None if quick else noop(3)
    note = f"{stages} stages" if quick or elapsed else "a stage is stale or its outs are missing: `dvc repro` first"
    yield Row("`dvc repro` with nothing to do", "", elapsed, 4.0, "≤", "s", note=note)
    given = log is not None and wall is not None
    note = "" if given else "give `--log FILE --wall SECONDS` of a full run"
    yield Row("full laptop run", "", wall / 60 if given else None, 30.0, "≤", "min", note=note)
    yield Row(
        "full laptop run: outside the stages", "", overhead(log, wall) if given else None, 10.0, "≤", "%", note=note
    )
    if given:
        yield from branches(log)
