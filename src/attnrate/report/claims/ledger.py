"""The claims ledger: criteria from criteria.toml, findings from the results, verdicts.

An experiment adds a table to criteria.toml and a function to its module beside this one: that gets reports/results and
the criterion, and returns a Finding. How replicates are judged stands in statistics.py; what is exact is `Exact`.
"""

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attnrate.report.claims.statistics import FAILS, FEWEST, HOLDS, OPEN, Judged, Part, judge_part, needed, worst

REPRODUCED, PARTLY, NOT, UNDECIDED = "reproduced", "partly", "not reproduced", "undecided"
VERDICTS = (REPRODUCED, PARTLY, NOT, UNDECIDED)
CRITERIA = Path(__file__).with_name("criteria.toml")
SHOWN = ("effect", "interval", "level", "margin", "replicates", "converged")  # of the part that decides
KEYS = {"ref", "claim", "criterion", "data", "command", "limits", "test", "margin", "unit", "cases", "trained", "paper"}
KEYS |= {"ours"}


@dataclass(frozen=True)
class Criterion:
    """A table of criteria.toml."""

    limits: dict[str, float]
    test: str = "exact"  # or equal, above, below: statistics.py
    margin: float = 0.0
    unit: str = ""  # of the effect: a logarithm is shown as its ratio
    cases: tuple[str, ...] = ()  # sub-cases named beforehand: only these make a claim partly reproduced
    trained: bool = False  # about trained models: the budget gate applies

    @property
    def exact(self) -> bool:
        return self.test == "exact" and not self.trained

    def part(self, name: str, values: Sequence[float], half: Sequence[float] | None = None, **changed) -> Part:
        """A part by this criterion's test and margin, unless another is given."""
        return Part(
            name, tuple(values), **{"test": self.test, "margin": self.margin} | changed, half=half and tuple(half)
        )


@dataclass(frozen=True)
class Exact:
    """A part that no randomness enters."""

    name: str
    holds: bool


@dataclass(frozen=True)
class Finding:
    measured: str  # numbers first
    parts: Sequence[Part | Exact]
    why: str  # one sentence
    n: int  # number of runs or cells behind it
    case: dict[str, str] = field(default_factory=dict)  # part → the named sub-case it belongs to, if not its own
    spread: str = ""  # what the parts do not show


Evaluator = Callable[[Path, Criterion], Finding]


class Undecided(Exception):
    """The results at hand do not hold what a criterion needs: says what is missing, and has what was measured."""

    def __init__(self, needs: str, measured: str = "", n: int = 0) -> None:
        super().__init__(needs)
        self.measured, self.n = measured, n


def margin(value: float | str) -> float:
    """A number, or its logarithm: "log 3"."""
    return math.log(float(value.removeprefix("log "))) if isinstance(value, str) else float(value)


def read_criteria() -> dict[str, dict]:
    found = tomllib.loads(CRITERIA.read_text(encoding="utf-8"))
    for name, row in found.items():
        if unknown := set(row) - KEYS:
            raise ValueError(f"criteria.toml: {name} has {', '.join(sorted(unknown))}, which nothing reads")
    return found


def criterion(row: dict) -> Criterion:
    given = {k: row[k] for k in ("test", "unit", "trained") if k in row}
    return Criterion(row["limits"], margin=margin(row.get("margin", 0)), cases=tuple(row.get("cases", ())), **given)


def combine(outcomes: dict[str, str], named: bool) -> str:
    """The verdict of outcomes by sub-case; parts that were not named beforehand must all hold."""
    found = set(outcomes.values())
    if found == {HOLDS}:
        return REPRODUCED
    if not named and FAILS in found:
        return NOT
    if OPEN in found:
        return UNDECIDED
    return PARTLY if HOLDS in found else NOT


def by_case(outcomes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Of each sub-case the worst outcome of its parts."""
    found: dict[str, set[str]] = {}
    for case, outcome in outcomes:
        found.setdefault(case, set()).add(outcome)
    return {case: next(o for o in (FAILS, OPEN, HOLDS) if o in seen) for case, seen in found.items()}


def number(value: float | None, unit: str) -> str:
    if value is None:
        return "∞"
    return f"{math.exp(value):.3g}" if unit == "ratio" else f"{value:.3g}"


def shown(j: Judged, unit: str) -> str:
    """A part's effect and interval in words."""
    low, high = j.interval
    ends = f"{number(low, unit) if low is not None else '0' if unit == 'ratio' else '-∞'} to {number(high, unit)}"
    dead = f", {j.dead} stuck" if j.dead else ""
    level = f"{100 * j.level:.4g} % interval {ends}; " if j.replicates > 1 else ""
    name = f"{j.name}: " if j.name else ""
    return f"{name}{number(j.effect, unit)} ({level}n = {j.replicates}{dead})"


def gates(parts: list[Part], judged: dict[str, Judged]) -> bool | str | None:
    """What the budget gate says of all parts; None where it did not come to it, since a part is open anyway."""
    found = {judged[p.name].converged for p in parts}
    if False in found:
        return False
    if any(p.half is None for p in parts):
        return "not run"
    return True if found == {True} else None


def conclude(finding: Finding, rule: Criterion) -> dict:
    """The columns that follow from a finding."""
    if not finding.parts:
        raise Undecided("results with a case to compare; this profile has none")
    drawn = [p for p in finding.parts if isinstance(p, Part)]
    judged = {p.name: judge_part(p, len(finding.parts)) for p in drawn}
    outcome = {p.name: HOLDS if p.holds else FAILS for p in finding.parts if isinstance(p, Exact)}
    outcome |= {name: j.outcome for name, j in judged.items()}
    cases = by_case((finding.case.get(name, name), o) for name, o in outcome.items())
    if rule.cases and set(cases) - set(rule.cases):
        raise ValueError(f"not among the cases that were named beforehand: {sorted(set(cases) - set(rule.cases))}")
    missing = [case for case in rule.cases if case not in cases]
    cases |= dict.fromkeys(missing, OPEN)
    verdict = combine(cases, bool(rule.cases))
    top = dict.fromkeys(SHOWN)
    if judged:
        deciding = worst(list(judged.values()))
        top = {key: deciding.to_dict()[key] for key in SHOWN}
        top["converged"] = gates(drawn, judged) if rule.trained else None
    elif rule.trained:  # judged without an interval over replicates: their number still counts
        top["replicates"], top["converged"] = finding.n, "not run"
        if finding.n < FEWEST:
            verdict, missing = UNDECIDED, ["replicates"]
    named = [f"{case} {outcome}" for case, outcome in cases.items()] if len(cases) > 1 else []
    needs = [f"{j.name}: {j.needs}" if j.name else j.needs for j in judged.values() if j.needs]
    needs += [f"{case}: {needed((), rule.test, rule.margin)}" for case in missing]
    rows = [j.to_dict() for j in judged.values()]
    rows += [{"name": p.name, "outcome": outcome[p.name]} for p in finding.parts if isinstance(p, Exact)]
    spread = "; ".join([*(shown(j, rule.unit) for j in judged.values()), *filter(None, [finding.spread])])
    return {
        "measured": finding.measured,
        "spread": spread or "exact",
        "n": finding.n,
        "verdict": verdict,
        "why": finding.why,
        "outcomes": ", ".join(named),
        "needs": "; ".join(needs) if verdict == UNDECIDED else "",
        **top,
        "exact": rule.exact,
        "parts": rows,
    }


def judge(evaluators: dict[str, Evaluator], results: Path, profile: str, images: str) -> list[dict]:
    """A row for each claim of criteria.toml, in its order; `images` names the data that the ViT saw."""
    criteria = read_criteria()
    if set(criteria) != set(evaluators):
        raise ValueError(f"criteria.toml and evaluators differ: {sorted(set(criteria) ^ set(evaluators))}")
    rows = []
    for name, row in criteria.items():
        rule = criterion(row)
        try:
            found = conclude(evaluators[name](results, rule), rule)
        except Undecided as e:
            blank = dict.fromkeys(("spread", "why", "outcomes"), "")
            blank |= {"measured": e.measured, "n": e.n, "verdict": UNDECIDED}
            found = blank | {"needs": str(e), **dict.fromkeys(SHOWN), "exact": rule.exact, "parts": []}
            found["replicates"] = None if found["exact"] else 0
            found["margin"] = None if rule.test == "exact" else rule.margin
        text = row["criterion"].format(**rule.limits, margin=row.get("margin"))
        stated = {k: row.get(k, "") for k in ("ref", "claim", "paper", "command", "test", "unit")}
        stated["test"] = rule.test
        rows.append({"id": name, **stated, "criterion": text, "data": row["data"].format(images=images), **found})
        rows[-1] |= {"profile": profile, "ours": row.get("ours", False)}
    return rows


def counts(rows: list[dict]) -> dict[str, int]:
    found = Counter(row["verdict"] for row in rows)
    return {v: found[v] for v in VERDICTS}


def tally(rows: list[dict]) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in counts(rows).items() if n)


def headline(rows: list[dict]) -> str:
    """The paper's claims and our own predictions, counted apart."""
    ours = [row for row in rows if row["ours"]]
    paper = [row for row in rows if not row["ours"]]
    own = f"; {len(ours)} predictions that go beyond it: {tally(ours)}" if ours else ""
    return f"{len(paper)} claims of the paper: {tally(paper)}{own}."


def line(cells: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def gate(row: dict) -> str:
    """What the budget gate said, in words."""
    return {True: "converged", False: "not converged", "not run": "gate not run", None: ""}[row["converged"]]


def reason(row: dict) -> str:
    """Why the verdict is what it is, and what an open one needs."""
    parts = [row["why"], f"Parts: {row['outcomes']}." if row["outcomes"] else "", f"{gate(row)}." if gate(row) else ""]
    return " ".join([*filter(None, parts), *([f"Needs {row['needs']}."] if row["needs"] else [])])


def markdown(rows: list[dict]) -> str:
    lines = ["# Claims of the paper", "", headline(rows), ""]
    lines += ["| claim | where | measured (spread; n) | the paper's | verdict | why | command |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for r in rows:
        behind = "; ".join(filter(None, [r["spread"], f"n = {r['n']}"]))
        measured = f"{r['measured']} ({behind})" if r["measured"] else ""
        verdict = f"**{r['verdict']}**" + (", exact" if r["exact"] and r["verdict"] != UNDECIDED else "")
        cells = [r["claim"], r["ref"], measured, r["paper"], verdict, reason(r), f"`{r['command']}`"]
        lines.append(line(cells))
    lines += ["", "## Criteria", "", *(f"- **{r['id']}** ({r['data']}): {r['criterion']}." for r in rows)]
    return "\n".join(lines) + "\n"
