"""`make verify`: results in the working tree against the committed ones, number by number.

After a rebuild, perhaps on another machine: python -m attnrate.ops.verify [REVISION]. Rows and counts must agree and no
verdict may turn around; verify.toml has the tolerance of every number and says which numbers another CPU may move.
"""

import argparse
import csv
import io
import json
import math
import statistics
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, Field

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import runlog
from attnrate.schemas import check

FOLDERS = ("reports/results", "reports/tables", "reports/metrics", "reports/claims.json")
SHOWN = 40  # movements inside the tolerance; what is outside is all shown

Value = float | str


def matches(text: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(text, p) for p in patterns)


Patterns = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class Rule(check.Section):
    """The tolerance of the numbers whose file and name match; text and counts are `exact`."""

    files: Patterns
    names: Patterns = Field(["*"])
    why: str
    rtol: Annotated[float, Field(ge=0)] = 0.0
    atol: Annotated[float, Field(ge=0)] = 0.0
    factor: Annotated[float, Field(gt=1)] | None = None  # largest ratio of the two, either way
    cap: Annotated[float, Field(gt=0)] = math.inf  # largest change, whatever the factor
    median: bool = False  # over seeds
    free: bool = False  # shown, never out of tolerance
    either: list[str] = Field([])  # words that a text may change to or from

    def used(self, old: Value, new: Value) -> float:
        """The share of the tolerance that a change takes up; above 1 is out."""
        if old == new or self.free or {old, new} & {json.dumps(word) for word in self.either}:
            return 0.0
        if isinstance(old, str) or isinstance(new, str) or not math.isfinite(old - new):
            return math.inf
        limit = self.atol + self.rtol * abs(old)
        share = abs(new - old) / limit if limit else math.inf
        if self.factor and old * new > 0:
            share = min(share, abs(math.log(new / old)) / math.log(self.factor))
        return max(share, abs(new - old) / self.cap)

    def __str__(self) -> str:
        if self.free:
            return "shown only"
        parts = [f"factor {self.factor:g}"] if self.factor else []
        parts += [f"to or from {'/'.join(self.either)}"] if self.either else []
        parts += [f"{self.rtol:g} relative"] if self.rtol else []
        parts += [f"± {self.atol:g}"] if self.atol else []
        return (" or ".join(parts) or "exact") + (f", ± {self.cap:g}" if self.cap < math.inf else "")


class Rules(check.Section):
    keys: list[str]  # columns that name a row of a CSV file; the others hold its values
    rules: list[Rule]

    def of(self, file: str, name: str) -> Rule:
        path = file.removeprefix("reports/")
        return next(r for r in self.rules if matches(path, r.files) and matches(name, r.names))


def load_rules() -> Rules:
    path = Path(__file__).with_name("verify.toml")
    return check.check(Rules, tomllib.loads(path.read_text(encoding="utf-8")), path.name)


class Cell(NamedTuple):
    row: tuple[tuple[str, str], ...]  # (column, key) pairs; of a JSON file, none
    column: str  # or the keys on the way to a value of a JSON file
    value: Value

    def row_name(self, without: str = "") -> str:
        return ",".join(f"{k}={v}" for k, v in self.row if v and k != without)

    def name(self, without: str = "") -> str:
        return f"{self.row_name(without)}:{self.column}" if self.row else self.column


class Change(NamedTuple):
    file: str
    name: str
    old: Value
    new: Value
    tolerance: str
    used: float

    @property
    def relative(self) -> float:
        numbers = isinstance(self.old, float) and isinstance(self.new, float)
        return (self.new - self.old) / abs(self.old) if numbers and self.old else math.inf

    def __str__(self) -> str:
        def show(value: Value) -> str:
            return f"{value:.6g}" if isinstance(value, float) else textwrap.shorten(value, 24, placeholder="…")

        change = f"{self.relative:+.2g}" if math.isfinite(self.relative) else ""
        state = "OUT" if self.used > 1 else "ok"
        values = f"{show(self.old):>12} → {show(self.new):12} {change:>9}"
        return f"{state:3} {values}  {self.tolerance:22} {self.file}  {self.name}"


def number(text: str) -> Value:
    try:
        return float(text)
    except ValueError:
        return text


def leaves(tree, path: str = "") -> Iterator[Cell]:
    """The values of a JSON file; an item of a list goes by its id, or by its place."""
    if isinstance(tree, dict | list):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in items:
            name = value["id"] if isinstance(value, dict) and "id" in value else key
            yield from leaves(value, f"{path}.{name}" if path else str(name))
    else:
        is_number = isinstance(tree, int | float) and not isinstance(tree, bool)
        yield Cell((), path, float(tree) if is_number else json.dumps(tree, ensure_ascii=False))


def cells(file: str, text: str, keys: list[str]) -> list[Cell]:
    if file.endswith(".json"):
        return list(leaves(json.loads(text)))
    found = []
    for line in csv.DictReader(io.StringIO(text, newline="")):
        row = tuple((k, line[k]) for k in keys if k in line)
        found += [Cell(row, column, number(v)) for column, v in line.items() if column not in keys]
    return found


def values(file: str, text: str, rules: Rules) -> dict[str, tuple[Value, Rule]]:
    """Name → value and rule; numbers that are judged by their median over seeds become one."""
    found, groups = {}, defaultdict(list)
    for cell in cells(file, text, rules.keys):
        rule = rules.of(file, name := cell.name())
        if rule.median and isinstance(cell.value, float):
            groups[f"{cell.name('seed')}, median"].append((cell.value, rule))
        else:
            found[name] = (cell.value, rule)
    return found | {name: (statistics.median(v for v, _ in all_), all_[0][1]) for name, all_ in groups.items()}


def compare(file: str, old: str | None, new: str | None, rules: Rules) -> tuple[int, list[Change]]:
    """Numbers compared, and what changed from the committed text to the one of the working tree."""
    if old is None:
        return 0, [Change(file, "the file", "", "file", "not committed", math.inf)]
    if new is None:
        return 0, [Change(file, "the file", "file", "", "not in the working tree", math.inf)]
    # Rows and columns of CSV files, keys of JSON files.
    before, after = (
        dict.fromkeys(name for c in cells(file, t, rules.keys) for name in (c.row_name() or c.column, c.column))
        for t in (old, new)
    )
    changes = [Change(file, name, "there", "", "is missing", math.inf) for name in before if name not in after]
    changes += [Change(file, name, "", "there", "is new", math.inf) for name in after if name not in before]
    was, now = (values(file, text, rules) for text in (old, new))
    shared = [name for name in was if name in now]
    for name in shared:
        (a, rule), (b, _) = was[name], now[name]
        if a != b:
            changes.append(Change(file, name, a, b, str(rule), rule.used(a, b)))
    return sum(isinstance(was[name][0], float) for name in shared), changes


def git(*args: str) -> str:
    done = subprocess.run(["git", *args], capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise UserError(f"git {args[0]}: {done.stderr.strip()}; run it in the repository, with a revision that exists")
    return done.stdout


def outs(lock: str) -> dict[str, str]:
    """The hash of every out of dvc.lock."""
    return {path: md5 for stage in runlog.outs(lock).values() for path, md5 in stage.items()}


def committed_params(revision: str) -> params.Group:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "params.yaml")
        path.write_text(git("show", f"{revision}:params.yaml"), encoding="utf-8")
        return params.read(path)


def print_identity(revision: str) -> None:
    """Which outs are bit-identical: by their bytes if they are in git, by dvc.lock if they are in the cache."""
    old, new = outs(git("show", f"{revision}:dvc.lock")), outs(Path("dvc.lock").read_text(encoding="utf-8"))
    edited = git("diff", "--name-only", "-z", revision).split("\0")
    differ = [p for p in old if old[p] != new.get(p) or any(e == p or e.startswith(f"{p}/") for e in edited)]
    same = [p for p in old if p not in differ]
    text, paths = ("; different:", differ) if len(differ) < len(same) else (":", same)
    text = f"{len(same)} of {len(old)} outs are bit-identical to {revision}{text if differ else ''}"
    print(
        textwrap.fill(" ".join([text, *(paths if differ else [])]), 120, subsequent_indent="  ", break_on_hyphens=False)
    )


def verify(revision: str) -> bool:
    """Print what moved; whether everything is within its tolerance."""
    rules = load_rules()
    if params.read("params.yaml") != committed_params(revision):
        raise UserError(f"params.yaml differs from {revision}; verify compares two runs of the same parameters")
    print_identity(revision)
    committed = set(git("ls-tree", "-r", "-z", "--name-only", revision, "--", *FOLDERS).split("\0"))
    here = {p.as_posix() for top in map(Path, FOLDERS) for p in (top.rglob("*") if top.is_dir() else [top])}
    files = sorted(f for f in committed | here if f.endswith((".csv", ".json")))
    count, changes = 0, []
    for file in files:
        old = git("show", f"{revision}:{file}") if file in committed else None
        new = Path(file).read_text(encoding="utf-8") if Path(file).exists() else None
        n, found = compare(file, old, new, rules)
        count, changes = count + n, changes + found
    changes.sort(key=lambda c: (-c.used, -abs(c.relative)))
    bad = [c for c in changes if c.used > 1]
    if changes:
        print(f"       committed → rebuilt        change  {'tolerance':22} file and name, largest movement first")
    for change in changes[: len(bad) + SHOWN]:
        print(change)
    if len(changes) > len(bad) + SHOWN:
        print(f"     and {len(changes) - len(bad) - SHOWN} smaller movements within tolerance")
    print(f"{len(files)} files, {count} numbers compared, {len(changes)} values moved, {len(bad)} out of tolerance")
    return not bad


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", default="HEAD", help="the commit to compare with")
    try:
        ok = verify(parser.parse_args(argv).revision)
    except UserError as e:
        sys.exit(str(e))
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
