"""What every benchmark shares: a row with its goal, alternating timings, peak memory, the table."""

import contextlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from attnrate import cores
from attnrate.core import files, params
from attnrate.ops import runlog

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
PARAMS = params.read(ROOT / "params.yaml")
THREADS = min(2, int(os.environ.get("OMP_NUM_THREADS", 2)))  # as in params.yaml
RATIOS = ("rates", "muon", "rnn", "spectra", "vit", "decoding", "cores", "dag")
BENCHMARKS = (*RATIOS, "growth")


@dataclass(frozen=True)
class Row:
    """One measured number and its goal; value None: not measured in this run."""

    name: str
    against: str  # what a user would write instead
    value: float | None
    goal: float | None  # None: for information
    sense: str = "≥"  # of the goal
    unit: str = "x"
    ours: float | None = None  # seconds, where the value is a ratio of two times
    theirs: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None or self.goal is None:
            return None
        return self.value >= self.goal if self.sense == "≥" else self.value <= self.goal

    def record(self) -> dict:
        return asdict(self) | {"met": self.met}


def ratio(name: str, against: str, ours: float, theirs: float, goal: float | None, note: str = "") -> Row:
    return Row(name, against, theirs / ours, goal, ours=ours, theirs=theirs, note=note)


def alternate(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each call, after one to warm up; in turn, so that other work on the machine hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(t) for name, t in times.items()}


@contextlib.contextmanager
def as_stage() -> Iterator[None]:
    """PyTorch as stages set it; outside, as a user finds it."""
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    cores.set_threads(THREADS)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.use_deterministic_algorithms(before[0])
        torch.set_num_threads(before[1])


def machine() -> dict[str, str | int]:
    return {
        "cpu": runlog.processor(),
        "cores": os.cpu_count(),
        "threads": THREADS,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def number(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}{unit}" if unit in ("x", "") else f"{value:.{digits}f} {unit}"


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def markdown(results: dict, names: Iterable[str]) -> str:
    """A table of the rows of some benchmarks."""
    m = results["machine"]
    lines = [
        f"{m['cores']} cores ({m['cpu']}), {m['threads']} threads, torch {m['torch']}; medians of alternating runs.",
        "",
        "| path | against | ours | theirs | measured | goal | met |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for name in names:
        for r in results["benchmarks"].get(name, []):
            unit = r["unit"] if r["unit"] == "x" else f" {r['unit']}"
            cells = [
                f"{r['name']} ({r['note']})" if r["note"] else r["name"],
                r["against"],
                seconds(r["ours"]),
                seconds(r["theirs"]),
                "—" if r["value"] is None else number(r["value"], r["unit"]),
                "" if r["goal"] is None else f"{r['sense']} {r['goal']:g}{unit}",
                {None: "", True: "yes", False: "**no**"}[r["met"]],
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def merge(path: Path, found: dict[str, list[dict]]) -> dict:
    """results.json with the benchmarks of this run in place of older ones."""
    old = files.read_json(path)["benchmarks"] if path.exists() else {}
    both = old | found
    results = {"machine": machine(), "benchmarks": {name: both[name] for name in BENCHMARKS if name in both}}
    files.write_json(path, results, digits=4)
    return files.read_json(path)


def say(*rows: Row) -> None:
    for row in rows:
        value = "—" if row.value is None else number(row.value, row.unit)
        goal = "" if row.goal is None else f"   goal {row.sense} {row.goal:g}   {'met' if row.met else 'MISSED'}"
        print(f"  {row.name}: {value}{goal if row.value is not None else ''}   {row.note}", file=sys.stderr, flush=True)
