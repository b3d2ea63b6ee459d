"""A made-up ledger by the real rules: claims that hold, fail and are open, that lost runs, that have no results."""

import json
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

from attnrate.core.files import significant
from attnrate.report.claims import ledger
from attnrate.report.claims.ledger import Criterion, Exact, Finding, Undecided
from tests.report.common import CRITERIA

ROOM = {"holds": (0.5, 0.52, 0.55), "fails": (-0.5, -0.52, -0.55), "open": (0.4, -0.4, 0.1), "lost": (-0.5, -0.6, -inf)}
KINDS = ("holds", "fails", "mixed", "open", "lost", "one", "none")


def values(rule: Criterion, room: Sequence[float]) -> list[float]:
    """Effects that are so far inside their margin."""
    side = {"above": 1, "below": -1, "equal": -rule.margin}.get(rule.test, 0)
    return [rule.margin + side * r for r in room]


def evaluator(i: int) -> ledger.Evaluator:
    def found(results: Path, rule: Criterion) -> Finding:
        kind = KINDS[i % len(KINDS)]
        if kind == "none":
            raise Undecided(f"{i} seeds, which this profile does not have")
        parts = []
        for k, name in enumerate(rule.cases or ("",)):
            what = ("holds", "fails")[k % 2] if kind == "mixed" else kind
            if rule.test == "exact":
                parts.append(Exact(name, what == "holds"))
            else:
                parts.append(rule.part(name, values(rule, ROOM["holds"][:1] if what == "one" else ROOM[what])))
        return Finding(f"{i}.5e-3 | of <{i}>", parts, f"Because of {i}.", 3)

    return found


def rows(evaluators: Callable[[int], ledger.Evaluator] = evaluator) -> list[dict]:
    """Every claim of criteria.toml as claims.json has it."""
    judges = {name: evaluators(i) for i, name in enumerate(CRITERIA)}
    return json.loads(json.dumps(significant(ledger.judge(judges, Path(), "laptop", "CIFAR10"))))


def publish(
    root: Path, judged: list[dict], profile: str = "desk", branch: str = "Figure 1", steps: int = 20000
) -> Path:
    """A branch of a larger profile with these claims, in root/published."""
    folder = root / "published" / profile / branch.lower().replace(" ", "-")
    stage = {"cmd": "x", "outs": [{"path": "reports/results/rates_train/paper", "md5": "1"}]}
    stage |= {"deps": [{"path": "src/attnrate/core", "md5": "2"}]}
    stage |= {"params": {"params.yaml": {"rates.recipes.paper": {"steps": steps, "batch": 32}, "mh": 8}}}
    table = {"cmd": "y", "deps": [{"path": "reports/results/rates_train", "md5": "3"}], "outs": []}
    lock = {"schema": "2.0", "stages": {"rates_train@paper": stage, "rates_table": table}}
    runs = {"rates_train@paper": {"seconds": 5400.0, "peak_gb": 2.5, "on": 0, "outs": "1"}}
    machines = [{"processor": "a processor", "system": "Linux x86_64", "python": "3.11", "packages": {}}]
    content = {"claims.json": [row | {"profile": profile} for row in judged]}
    content |= {"about.json": {"branch": branch, "commit": "abcdef0123", "date": "2026-01-02", "profile": profile}}
    content |= {"runs.json": {"machines": machines, "stages": runs}, "lock.yaml": lock}
    folder.mkdir(parents=True)
    for name, what in content.items():
        (folder / name).write_text(json.dumps(what), encoding="utf-8")  # JSON is YAML
    return folder
