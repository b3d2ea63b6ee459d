"""`make readme`: the tables of results, costs and ratios and the drawing of the DAG in README.md, between their markers.

Reads reports/claims.json, reports/costs.md, benchmarks/results.md and dvc.yaml. No stage depends on it.
"""

import re
import subprocess
import sys
from pathlib import Path

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.ops import costs
from attnrate.report.claims.ledger import counts


def results(rows: list[dict]) -> str:
    """The counts, and a row for each claim."""
    found = ", ".join(f"{n} {verdict}" for verdict, n in counts(rows).items() if n)
    profiles = ", ".join(sorted({r["profile"] for r in rows}))
    lines = [
        f"{len(rows)} claims, {profiles} profile: {found}.",
        "",
        "| claim | measured | verdict | command |",
        "|---|---|---|---|",
    ]
    for r in rows:
        measured = f"{r['measured']}<br>({r['spread']}; n = {r['n']})" if r["measured"] else ""
        cells = [f"{r['claim']} ({r['ref']})", measured, f"**{r['verdict']}**", f"`{r['command']}`"]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines)


def drawing(root: Path) -> str:
    """The stages as a mermaid flowchart, each matrix as one box."""
    command = [sys.executable, "-m", "dvc", "dag", "--md", "--collapse-foreach-matrix"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"dvc dag failed: {done.stderr.strip()}")
    return done.stdout.strip().replace("\t", "  ")


def fill(text: str, name: str, content: str) -> str:
    """text with content between the markers of that name."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise UserError(f"README.md should hold {begin} and then {end}, once")
    return pattern.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def render(text: str, parts: dict[str, str]) -> str:
    for name, content in parts.items():
        text = fill(text, name, content)
    return text


def main(readme: Path = Path("README.md")) -> None:
    root = readme.resolve().parent
    sources = [root / name for name in ("reports/claims.json", "reports/costs.md", "benchmarks/results.md")]
    try:
        for path in (readme, *sources):
            if not path.exists():
                raise UserError(f"{path.name} is missing; run this in the repository, after `make repro`")
        claims, measured, ratios = sources
        parts = {
            "results": results(files.read_json(claims)),
            "costs": costs.branches(measured.read_text(encoding="utf-8")),
            "ratios": ratios.read_text(encoding="utf-8").strip(),
            "dag": drawing(root),
        }
        old = readme.read_text(encoding="utf-8")
        new = render(old, parts)
    except UserError as e:
        sys.exit(str(e))
    if new != old:
        files.write_text(readme, new)


if __name__ == "__main__":
    main()
