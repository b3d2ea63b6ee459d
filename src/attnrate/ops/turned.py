"""Verdicts of several runs side by side: python -m attnrate.ops.turned NAME=CLAIMS.json NAME=CLAIMS.json …

Prints a Markdown table with a row for each claim, and fails if a verdict turned around between two of the runs, from
reproduced to not reproduced or back. One that is open in a run, or partly, has not turned around.
"""

import sys
from pathlib import Path

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.report.claims.ledger import NOT, REPRODUCED, line, tally


def number(row: dict) -> str:
    """The effect that decides a claim, with its interval. JSON has no infinities: an end that is missing is one."""
    if row["effect"] is None:
        return row["verdict"]
    low, high = (end if v is None else f"{v:.2g}" for v, end in zip(row["interval"], ("-∞", "∞"), strict=True))
    return f"{row['verdict']}: {row['effect']:.2g} [{low}, {high}]"


def table(runs: dict[str, list[dict]]) -> tuple[str, list[str]]:
    """The table, and the claims that turned around."""
    by_id = {name: {row["id"]: row for row in rows} for name, rows in runs.items()}
    names = list(dict.fromkeys(i for rows in by_id.values() for i in rows))
    lines = [line(["claim", "margin", *by_id]), line(["---"] * (len(by_id) + 2))]
    turned = []
    for name in names:
        found = [rows.get(name) for rows in by_id.values()]
        if {REPRODUCED, NOT} <= {row["verdict"] for row in found if row}:
            turned.append(name)
        margin = next((row["margin"] for row in found if row and row["margin"] is not None), None)
        shown = "" if margin is None else f"{margin:.2g}"
        lines.append(line([f"`{name}`", shown, *(number(row) if row else "not run" for row in found)]))
    lines.append(line(["**all**", "", *(tally(rows) for rows in runs.values())]))
    return "\n".join(lines), turned


def main(argv: list[str] | None = None) -> None:
    given = [pair.partition("=") for pair in (sys.argv[1:] if argv is None else argv)]
    try:
        if len(given) < 2 or not all(sign for _, sign, _ in given):
            raise UserError("give two or more runs: NAME=CLAIMS.json NAME=CLAIMS.json")
        text, turned = table({name: files.read_json(Path(path)) for name, _, path in given})
    except UserError as e:
        sys.exit(str(e))
    print(text)
    if turned:
        sys.exit(f"turned around: {', '.join(turned)}")


if __name__ == "__main__":
    main()
