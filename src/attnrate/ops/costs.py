"""`make timings`: what each stage costs here, from the log that every stage appends to, and in the paper profile.

No stage depends on it.
"""

import json
import os
import platform
import re
import sys
from pathlib import Path

from attnrate.core import files
from attnrate.core.stage import TIMINGS

BRANCHES = {  # what the README sums up → the stages of it
    "Figure 1": r"pod_targets|rates_\w+|fig1|equivariance|mixing_rank",
    "Tables 2 and 3": r"linear_\w+|fig_linear",
    "Appendix B": r"gallery_\w+|fig_gallery",
    "CIFAR10: Figures 2 and 3, Table 1": r"\w+_cifar10|\w*vit\w*|table1",
    "English-German: Table 1": r"\w*_translation\w*|translate",
    "claims, metrics, plots, page": r"validate|claims|summary|plots|page",
}


def latest(log: Path) -> dict[str, dict]:
    """The last run of each stage."""
    runs = {}
    for line in log.read_text().splitlines():
        run = json.loads(line)
        runs[run.pop("stage")] = run
    return runs


def markdown(runs: dict[str, dict], machine: str, paper: str) -> str:
    total, peak = sum(r["seconds"] for r in runs.values()), max(r["peak_gb"] for r in runs.values())
    lines = [
        "# Cost of each stage",
        "",
        "## Laptop profile, measured",
        "",
        f"Last run of each stage on {machine}; seconds inside the stage, without imports and DVC.",
        "",
        "| stage | seconds | peak memory (GB) |",
        "|---|---:|---:|",
        *(f"| {name} | {r['seconds']:.1f} | {r['peak_gb']:.2f} |" for name, r in runs.items()),
        f"| **all** | **{total:.0f}** | **{peak:.2f}** |",
        "",
        "## Paper profile, estimated",
        "",
        paper,
    ]
    return "\n".join(lines) + "\n"


def branches(text: str) -> str:
    """The README's table: reports/costs.md summed up."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| \w", line)]
    measured = {r[0]: (float(r[1]), float(r[2])) for r in rows if len(r) == 3 and r[0] != "stage"}
    gpu = {r[0]: (float(r[2]), float(r[3])) for r in rows if len(r) == 4 and r[0] != "stage"}
    cpu = {r[0]: float(r[1]) for r in rows if len(r) == 2 and r[0] != "stage"}

    def of(branch: str, table: dict) -> list:
        return [v for name, v in table.items() if re.fullmatch(BRANCHES[branch], name.partition("@")[0])]

    lines = [
        "| branch | laptop: minutes | peak memory (GB) | paper profile: hours | GPU memory (GB) |",
        "|---|---:|---:|---:|---:|",
    ]
    for branch in BRANCHES:
        here, there, slow = of(branch, measured), of(branch, gpu), of(branch, cpu)
        hours, memory = (f"{sum(slow):.0f} on 2 cores", "") if slow else ("", "")
        if there:
            hours, memory = f"{sum(h for h, _ in there):.0f} on a GPU", f"{max(g for _, g in there):.0f}"
        minutes, peak = sum(s for s, _ in here) / 60, max(g for _, g in here)
        lines.append(f"| {branch} | {minutes:.1f} | {peak:.1f} | {hours} | {memory} |")
    total = sum(s for s, _ in measured.values()) / 60
    return "\n".join([*lines, f"| **all** | **{total:.0f}** | **{max(g for _, g in measured.values()):.1f}** | | |"])


def main(log: Path = TIMINGS, out: Path = Path("reports/costs.md")) -> None:
    from attnrate.ops import estimate  # torch, which the README needs not

    if not log.exists():
        sys.exit(f"{log}: no stage has run here yet; `make repro` runs them")
    runs = latest(log)
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    paper = estimate.markdown({name: run["seconds"] for name, run in runs.items()})
    files.write_text(out, markdown(runs, machine, paper))


if __name__ == "__main__":
    main()
