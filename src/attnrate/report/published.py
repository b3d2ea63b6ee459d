"""Results of larger profiles beside the workspace's: reports/published/PROFILE/BRANCH, which `attnrate publish` writes.

The claims stage never reads them, or publishing would change what is published. The page, the picture of the ledger
and the README do.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from attnrate.core.files import read_json
from attnrate.report.claims.ledger import UNDECIDED, gate

SIZES = ("laptop", "desk", "paper")  # the larger, the later
ROOT, STATE = Path("reports/published"), "state.json"
SHOWN = 5  # parameters that tell two profiles apart


@dataclass(frozen=True)
class Branch:
    """What one branch of a profile left."""

    folder: Path
    name: str  # as dvc.yaml has it
    commit: str
    date: str
    claims: list[dict]
    runs: dict
    lock: dict[str, dict]  # the part of dvc.lock
    changed: list[str]  # stages whose code is another now

    @property
    def seconds(self) -> float:
        return sum(run["seconds"] for run in self.runs["stages"].values())

    @property
    def memory(self) -> float:
        return max((run["peak_gb"] for run in self.runs["stages"].values()), default=0.0)

    def params(self, stages: Iterable[str]) -> dict[str, Any]:
        """What stages, and those that they need, ran with."""
        made = {out["path"]: name for name, stage in self.lock.items() for out in stage.get("outs", [])}
        todo, seen = [n for n in self.lock if n.partition("@")[0] in stages], set()
        while todo:
            seen.add(name := todo.pop())
            deps = [dep["path"] for dep in self.lock[name].get("deps", [])]
            behind = {n for path, n in made.items() for d in deps if f"{path}/".startswith(f"{d}/")}
            todo += behind - seen
        groups = (self.lock[name].get("params", {}).get("params.yaml", {}) for name in sorted(seen))
        return {key: value for group in groups for key, value in flatten(group).items()}


@dataclass(frozen=True)
class Column:
    """A profile's claims, by their id: of the workspace, published, or none yet."""

    profile: str
    rows: dict[str, dict] = field(default_factory=dict)
    branches: list[Branch] = field(default_factory=list)
    cost: dict = field(default_factory=dict)  # what it would take

    @property
    def command(self) -> str:
        own = f"dvc exp run $(python -m attnrate.ops.profile {self.profile})"
        return "make repro" if self.profile == SIZES[0] else own

    def notes(self) -> list[str]:
        """Where the column comes from; of an empty one, what it takes."""
        if self.branches:
            return [note(branch) for branch in self.branches]
        if self.rows:
            return ["the results of this tree"]
        takes = f"about {self.cost['hours']:g} hours on {self.cost['on']}; " if self.cost else ""
        return [f"not run yet: {takes}{self.command}, then attnrate publish all"]


def note(branch: Branch) -> str:
    machines = ", ".join(dict.fromkeys(m["processor"] for m in branch.runs["machines"])) or "an unknown machine"
    text = f"{branch.name}: {branch.seconds / 3600:.1f} hours, {branch.memory:.1f} GB on {machines}, commit "
    text += f"{branch.commit[:7]}, {branch.date}"
    return text + (f"; code has changed since: {', '.join(branch.changed)}" if branch.changed else "")


def flatten(tree: dict, prefix: str = "") -> dict[str, Any]:
    """Values by their dotted names."""
    flat = {}
    for key, value in tree.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def read_lock(path: Path) -> dict[str, dict]:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["stages"]


def state(root: Path = ROOT) -> dict:
    """What `make repro` last found: stages whose code has changed since they were published; costs of profiles."""
    path = root / STATE
    return read_json(path) if path.exists() else {"changed": {}, "costs": {}}


def branches(profile: str, root: Path = ROOT) -> list[Branch]:
    changed, found = state(root)["changed"].get(profile, {}), []
    for path in sorted((root / profile).glob("*/about.json")):
        folder = path.parent
        parts = read_json(folder / "claims.json"), read_json(folder / "runs.json"), read_lock(folder / "lock.yaml")
        about = (read_json(path)[key] for key in ("branch", "commit", "date"))
        found.append(Branch(folder, *about, *parts, changed.get(folder.name, [])))
    return found


def columns(rows: list[dict], root: Path = ROOT) -> list[Column]:
    """The workspace's claims and the published ones, the smallest profile first.

    A published row that was judged by another criterion than today's is left out.
    """
    own, profile = {row["id"]: row for row in rows}, rows[0]["profile"]
    found = [] if profile in SIZES else [Column(profile, own)]
    for name in SIZES:
        if name == profile:
            found.append(Column(name, own))
            continue
        there = branches(name, root)
        claims = {row["id"]: row for branch in there for row in branch.claims}
        same = {i: claims[i] for i in own if i in claims and claims[i]["criterion"] == own[i]["criterion"]}
        found.append(Column(name, same, there, state(root)["costs"].get(name, {})))
    return found


def headline(found: list[Column]) -> list[dict]:
    """Of each claim the row of the largest profile that decides it, or that finds it not converged.

    If none does, of the largest that has it.
    """
    rows = {}
    for column in found:
        for name, row in column.rows.items():
            settles = row["verdict"] != UNDECIDED or row["converged"] is False
            if name not in rows or settles or rows[name]["verdict"] == UNDECIDED:
                rows[name] = row
    order = next(c for c in found if c.rows and not c.branches).rows
    return [rows[name] for name in order]


def text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def step(name: str, old: Any, new: Any) -> str:
    """steps 1,000 → 20,000; of lists, how many."""
    if isinstance(old, list) and isinstance(new, list):
        other = len(old) == len(new)
        return f"other {name}" if other else f"{len(old)} → {len(new)} {name}"
    return f"{name} {text(old)} → {text(new)}"


def why(name: str, found: list[Column], params: dict) -> str:
    """Where profiles disagree on a claim: the verdicts, and what differs between the smallest and the largest.

    params: those of the workspace.
    """
    having = [column for column in found if name in column.rows]
    rows = [column.rows[name] for column in having]
    if len({row["verdict"] for row in rows}) < 2:
        return ""
    first, last = rows[0], rows[-1]
    parts = []
    if first["replicates"] != last["replicates"]:
        parts.append(step("replicates", first["replicates"], last["replicates"]))
    if gate(first) != gate(last):
        parts.append(f"{gate(first) or 'no budget gate'} → {gate(last) or 'no budget gate'}")
    before, after = (ran_with(row, column, params) for row, column in ((first, having[0]), (last, having[-1])))
    differ = [step(key, before[key], after[key]) for key in after if key in before and before[key] != after[key]]
    parts += [*differ[:SHOWN], *([f"{len(differ) - SHOWN} more parameters"] if len(differ) > SHOWN else [])]
    verdicts = ", ".join(f"{row['profile']} {row['verdict']}" for row in rows)
    return f"{verdicts}: {'; '.join(parts) or 'nothing but the machine and the code differ'}"


def ran_with(row: dict, column: Column, params: dict) -> dict[str, Any]:
    """The parameters behind a row: published ones of its stages, or all of the workspace's."""
    stages = re.findall(r"\w+", row["command"].removeprefix("dvc repro "))
    branch = next((b for b in column.branches if any(r["id"] == row["id"] for r in b.claims)), None)
    return branch.params(stages) if branch else flatten(params)
