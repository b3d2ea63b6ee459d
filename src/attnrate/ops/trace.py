"""`attnrate trace FILE`: every stage behind a file, with the data sets and seeds of each, and what it ran on.

Stages come from dvc.yaml, the parameters they ran with from dvc.lock, the rest from the run log (runlog.py).
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import networkx as nx
import yaml
from dvc.exceptions import OutputNotFoundError
from dvc.repo import Repo

from attnrate.core.errors import UserError
from attnrate.ops import runlog
from attnrate.report.published import flatten

DATA = ("vit.data.name", "translation.data.corpus")  # the parameters that name a data set


def behind(path: Path) -> tuple[str, dict[str, set[str]]]:
    """The command that wrote path, and the stages it comes from, the first ones first, each with all that it needs."""
    with Repo() as repo:
        graph = repo.index.graph  # edges lead from a stage to what it needs
        try:
            own = repo.find_outs_by_path(str(path), strict=False)[0].stage  # files inside of outs count too
        except OutputNotFoundError:
            raise UserError(f"{path}: no stage of dvc.yaml writes it") from None
        needs = {s.addressing: {n.addressing for n in nx.descendants(graph, s)} for s in graph}
        return own.cmd, {s.addressing: needs[s.addressing] for s in nx.dfs_postorder_nodes(graph, own)}


def recorded() -> dict[str, dict]:
    """The parameters of each stage of dvc.lock, by their dotted names."""
    lock = Path("dvc.lock")
    stages = yaml.load(lock.read_text(encoding="utf-8"), yaml.CSafeLoader)["stages"] if lock.exists() else {}
    return {name: flatten(stage.get("params", {}).get("params.yaml", {})) for name, stage in stages.items()}


def values(keys: Iterable[str], groups: Iterable[dict]) -> list[str]:
    return sorted({str(group[key]) for group in groups for key in keys if key in group})


def committed(path: Path) -> str:
    command = ["git", "log", "-1", "--format=%h of %cs", "--", str(path)]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "not committed"


def where(machine: dict) -> str:
    parts = [machine["processor"], machine["system"], *machine.get("gpus", [])]
    parts += [f"{machine['threads']} threads"] if "threads" in machine else []
    packages = ", ".join(f"{k} {v}" for k, v in machine["packages"].items())
    return f"{', '.join(parts)}; Python {machine['python']}; {packages}"


def main(file: Path) -> str:
    """The path, its commit and command; each stage with its data, profile and seeds; then the machines."""
    (command, stages), params = behind(file), recorded()
    if missing := [name for name in stages if name not in params]:
        raise UserError(f"{file}: dvc.lock has no run of {missing[0]}; `dvc repro` makes one")
    runs, made = runlog.last(), runlog.digests()
    lines = [f"{file}: commit {committed(file)}, written by {list(stages)[-1]}", f"  {command}", ""]
    machines: dict[str, list[str]] = {}
    for name, needs in stages.items():
        if not needs:  # validate, which makes no data
            continue
        own = params[name]
        data = ", ".join(values(DATA, [own, *(params[n] for n in needs)])) or "synthetic"
        # a training does not read the profile's name: that of the stages that do
        profile = " or ".join(values(["profile"], [own]) or values(["profile"], params.values())) or "unknown"
        seeds = ", ".join(f"{k} = {v}" for k, v in own.items() if "seed" in k.rpartition(".")[2]) or "no seeds"
        run, note = runs.get(name), ""
        if run is None:
            note = "; the run log has no run of it"
        elif run["outs"] != made[name]:
            note = "; the run log has a run of other outs"
        else:
            machines.setdefault(where(run["on"]), []).append(name)
        lines.append(f"{name}: {data} data, {profile} profile, {seeds}{note}")
    return "\n".join([*lines, "", *(f"on {machine}:\n  {', '.join(names)}" for machine, names in machines.items())])
