"""`make readme`: the results table and the drawing of the DAG in README.md, between their markers.

Reads reports/claims.json and dvc.yaml. No stage depends on it; `--check` only tells whether README.md is up to date.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from attnrate.core import files
from attnrate.core.stage import UserError
from attnrate.report.claims import counts


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


def render(text: str, rows: list[dict], dag: str) -> str:
    return fill(fill(text, "results", results(rows)), "dag", dag)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=Path, default=Path("README.md"))
    parser.add_argument("--claims", type=Path, default=Path("reports/claims.json"))
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if README.md is out of date")
    args = parser.parse_args(argv)
    try:
        for path in (args.readme, args.claims):
            if not path.exists():
                raise UserError(f"{path} is missing; run this in the repository, after `make repro`")
        old = args.readme.read_text(encoding="utf-8")
        new = render(old, files.read_json(args.claims), drawing(args.readme.resolve().parent))
        if args.check and new != old:
            raise UserError(f"{args.readme} differs from the results: run `make readme`")
    except UserError as e:
        sys.exit(str(e))
    if new != old:
        files.write_text(args.readme, new)


if __name__ == "__main__":
    main()
