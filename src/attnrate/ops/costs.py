"""`make timings`, and the end of `make repro`: reports/runs.json and, from it, reports/costs.md.

What each stage costs here, from the run log, and in the paper profile. No stage depends on it.
"""

import sys
from pathlib import Path

from attnrate.core import files, params
from attnrate.ops import runlog

OUT = Path("reports/costs.md")


def branches(dvc: Path = Path("dvc.yaml")) -> dict[str, str]:
    """The branch of each stage; items of a matrix go by the name before their @."""
    return {name: stage["meta"]["branch"] for name, stage in params.read(dvc).stages.items()}


def in_order(runs: dict[str, dict], branch: dict[str, str]) -> dict[str, dict]:
    """The runs in the order of dvc.yaml, without stages that dvc.lock still has from another dvc.yaml."""
    return {name: run for stage in branch for name, run in runs.items() if name.partition("@")[0] == stage}


def by_branch(runs: dict[str, dict], branch: dict[str, str]) -> str:
    """Minutes and memory of each branch, in the order of their last stages."""
    runs, groups = in_order(runs, branch), {}
    for stage, run in runs.items():
        name = branch[stage.partition("@")[0]]
        groups[name] = [*groups.pop(name, []), run]
    lines = ["| branch | stages | minutes | peak memory (GB) |", "|---|---:|---:|---:|"]
    for name, own in [*groups.items(), ("**all**", list(runs.values()))]:
        minutes, peak = sum(run["seconds"] for run in own) / 60, max(run["peak_gb"] for run in own)
        lines.append(f"| {name} | {len(own)} | {minutes:.1f} | {peak:.1f} |")
    return "\n".join(lines)


def markdown(runs: dict[str, dict], branch: dict[str, str], paper: str) -> str:
    machines = dict.fromkeys(f"{run['on']['processor']} ({run['on']['system']})" for run in runs.values())
    lines = [
        "# Cost of each stage",
        "",
        "## Laptop profile, measured",
        "",
        f"Last run of each stage, on {', '.join(machines)}. Seconds are those of a stage's process, its imports "
        "included, DVC's own excluded.",
        "",
        by_branch(runs, branch),
        "",
        "| stage | seconds | peak memory (GB) |",
        "|---|---:|---:|",
        *(f"| {name} | {run['seconds']:.1f} | {run['peak_gb']:.2f} |" for name, run in runs.items()),
        "",
        "## Paper profile, estimated",
        "",
        paper,
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    if not Path("dvc.lock").exists():
        sys.exit("dvc.lock is missing: no stage has run here yet; `make repro` runs them")
    branch, before = branches(), runlog.kept()
    runs = in_order(runlog.keep(), branch)
    if not runs:
        sys.exit(f"{runlog.LOG} and {runlog.KEPT} are missing; `make repro` writes both")
    if runlog.kept() == before and OUT.exists() and "--anew" not in sys.argv:
        return
    from attnrate.ops import estimate  # ten seconds

    paper = estimate.markdown({name: run["seconds"] for name, run in runs.items()})
    files.write_text(OUT, markdown(runs, branch, paper))


if __name__ == "__main__":
    main()
