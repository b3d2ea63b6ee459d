"""`attnrate trace FILE`: every stage behind a file, with the data sets, seeds, parameters, packages and device of each.

Stages come from dvc.yaml, what they ran with from the records of reports/provenance (core/record.py).
"""

import subprocess
from pathlib import Path

import networkx as nx
from dvc.exceptions import OutputNotFoundError
from dvc.repo import Repo
from dvc.stage import PipelineStage

from attnrate.core import files
from attnrate.core.errors import UserError


def behind(path: Path) -> list[PipelineStage]:
    """The stages that path comes from, the first ones first."""
    with Repo() as repo:
        graph = repo.index.graph
        try:
            own = repo.find_outs_by_path(str(path), strict=False)[0].stage  # files inside of outs count too
        except OutputNotFoundError:
            raise UserError(f"{path}: no stage of dvc.yaml writes it") from None
        return list(nx.dfs_postorder_nodes(graph, own))  # edges lead from a stage to what it needs


def record(stage: PipelineStage) -> dict | None:
    paths = [Path(out.fs_path) for out in stage.outs if "provenance" in Path(out.fs_path).parts]
    if not paths:
        return None
    if not paths[0].exists():
        raise UserError(f"{paths[0]} is missing; `git checkout reports/provenance` restores it")
    return files.read_json(paths[0])


def committed(path: Path) -> str:
    command = ["git", "log", "-1", "--format=%h of %cs", "--", str(path)]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "not committed"


def report(path: Path) -> str:
    """A few lines a person can read: the path, its commit, each stage with its command, data, seeds; then the machines."""
    stages = behind(path)
    found = [(s, r) for s, r in ((s, record(s)) for s in stages) if r]
    lines = [f"{path}: commit {committed(path)}, written by {stages[-1].addressing}", f"  {stages[-1].cmd}", ""]
    for stage, r in found:
        seeds = ", ".join(f"{k} = {v}" for k, v in r["seeds"].items()) or "no seeds"
        lines.append(f"{stage.addressing}: {', '.join(r['data'])} data, {r['profile']} profile, {seeds}")
    machines: dict[str, list[str]] = {}
    for stage, r in found:
        packages = ", ".join(f"{k} {v}" for k, v in r["packages"].items())
        d = r["device"]
        where = f"{d['processor']}, {d['system']} {d['machine']}" + (
            f", {d['threads']} threads" if "threads" in d else ""
        )
        where += f", {', '.join(d['gpus'])}" if d.get("gpus") else ""
        machines.setdefault(f"{where}; Python {r['python']}; {packages}", []).append(stage.addressing)
    lines += ["", *(f"on {machine}:\n  {', '.join(names)}" for machine, names in machines.items())]
    return "\n".join(lines)
