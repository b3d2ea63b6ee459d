"""`make timings`: the cost table from the log that every stage appends to. No stage depends on it."""

import json
import os
import platform
import sys
from pathlib import Path

from attnrate.core import files
from attnrate.core.stage import TIMINGS


def latest(log: Path) -> dict[str, dict]:
    """The last run of each stage."""
    runs = {}
    for line in log.read_text().splitlines():
        run = json.loads(line)
        runs[run.pop("stage")] = run
    return runs


def markdown(runs: dict[str, dict], machine: str) -> str:
    total, peak = sum(r["seconds"] for r in runs.values()), max(r["peak_gb"] for r in runs.values())
    lines = [
        "# Cost of each stage", "", f"Last run of each stage on {machine}; seconds inside the stage, without imports and DVC.",
        "", "| stage | seconds | peak memory (GB) |", "|---|---:|---:|",
        *(f"| {name} | {r['seconds']:.1f} | {r['peak_gb']:.2f} |" for name, r in runs.items()),
        f"| **all** | **{total:.0f}** | **{peak:.2f}** |",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main(log: Path = TIMINGS, out: Path = Path("reports/costs.md")) -> None:
    if not log.exists():
        sys.exit(f"{log}: no stage has run here yet; `make repro` runs them")
    files.write_text(out, markdown(latest(log), f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"))


if __name__ == "__main__":
    main()
