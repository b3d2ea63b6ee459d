"""The claims ledger: criteria from criteria.toml, findings from the results, verdicts.

An experiment adds a table to criteria.toml and a function to its module beside this one: that gets reports/results and
the limits, and returns a Finding.
"""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

REPRODUCED, PARTLY, NOT, UNTESTED = "reproduced", "partly", "not reproduced", "cannot be tested here"
VERDICTS = (REPRODUCED, PARTLY, NOT, UNTESTED)
CRITERIA = Path(__file__).with_name("criteria.toml")


@dataclass(frozen=True)
class Finding:
    measured: str
    spread: str  # how far the measured value varies, and over what
    n: int  # number of runs or cells behind it
    verdict: str
    why: str  # one sentence


Evaluator = Callable[[Path, dict], Finding]  # of the results and the limits


class Untestable(Exception):
    """The results at hand do not hold what a criterion needs."""


def grade(share: float, most: float, some: float) -> str:
    return REPRODUCED if share >= most else PARTLY if share >= some else NOT


def grade_all(holds: list[bool]) -> str:
    """Reproduced if every case holds, partly if some do."""
    if not holds:
        raise Untestable("no case to compare in this profile")
    return REPRODUCED if all(holds) else PARTLY if any(holds) else NOT


def read_criteria() -> dict[str, dict]:
    return tomllib.loads(CRITERIA.read_text(encoding="utf-8"))


def judge(evaluators: dict[str, Evaluator], results: Path, profile: str, images: str) -> list[dict]:
    """A row for each claim of criteria.toml, in its order; `images` names the data that the ViT saw."""
    criteria = read_criteria()
    if set(criteria) != set(evaluators):
        raise ValueError(f"criteria.toml and evaluators differ: {sorted(set(criteria) ^ set(evaluators))}")
    rows = []
    for name, row in criteria.items():
        limits = row.pop("limits")
        try:
            finding = evaluators[name](results, limits)
        except Untestable as e:
            finding = Finding("", "", 0, UNTESTED, f"{e}.")
        row |= {"criterion": row["criterion"].format(**limits), "data": row["data"].format(images=images)}
        rows.append({"id": name, **row, **asdict(finding), "profile": profile})
    return rows


def counts(rows: list[dict]) -> dict[str, int]:
    found = Counter(row["verdict"] for row in rows)
    return {v: found[v] for v in VERDICTS}


def tally(rows: list[dict]) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in counts(rows).items() if n)


def line(cells: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def markdown(rows: list[dict]) -> str:
    lines = ["# Claims of the paper", "", f"{len(rows)} claims: {tally(rows)}.", ""]
    lines += ["| claim | where | measured (spread; n) | verdict | why | command |", "|---|---|---|---|---|---|"]
    for r in rows:
        measured = f"{r['measured']} ({r['spread']}; n = {r['n']})" if r["measured"] else ""
        lines.append(line([r["claim"], r["ref"], measured, f"**{r['verdict']}**", r["why"], f"`{r['command']}`"]))
    lines += ["", "## Criteria", "", *(f"- **{r['id']}** ({r['data']}): {r['criterion']}." for r in rows)]
    return "\n".join(lines) + "\n"
