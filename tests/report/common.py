"""What the tests of the report share: claims judged on made-up results, changes of these, figures drawn twice."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from attnrate.core import files
from attnrate.report.claims.ledger import (
    SHOWN,
    UNDECIDED,
    VERDICTS,
    Evaluator,
    Undecided,
    criterion,
    judge,
    read_criteria,
)
from attnrate.report.claims.statistics import FEWEST
from attnrate.report.style import figure

CRITERIA = read_criteria()
RULES = {name: criterion(row) for name, row in CRITERIA.items()}
KEYS = {"id", "ref", "claim", "paper", "command", "test", "unit", "criterion", "data", "profile", "ours"}
KEYS |= {"measured", "spread", "n", "verdict", "why", "outcomes", "needs", "exact", "parts", *SHOWN}

World = dict[str, pd.DataFrame | dict]  # file → what a stage writes there
Change = Callable[[World], World]


def write(folder: Path, results: World) -> Path:
    """Tables as CSV and dictionaries as JSON, as stages write them; the folder they are in."""
    for name, content in results.items():
        (files.write_csv if isinstance(content, pd.DataFrame) else files.write_json)(folder / name, content)
    return folder


def judged(name: str, evaluate: Evaluator, results: Path) -> dict:
    """The row of one claim, by the whole ledger."""

    def other(*_):
        raise Undecided("another claim")

    rows = judge(dict.fromkeys(CRITERIA, other) | {name: evaluate}, results, "smoke", "toy images")
    (row,) = (r for r in rows if r["id"] == name)
    sound(row)
    return row


def sound(row: dict) -> None:
    """What is true of every row, whatever was measured."""
    assert set(row) == KEYS and row["verdict"] in VERDICTS
    json.dumps(row, allow_nan=False)
    assert (row["verdict"] == UNDECIDED) == bool(row["needs"]), "an open verdict says what it needs, no other does"
    if row["exact"]:
        assert all(row[key] is None for key in SHOWN) and all(set(p) == {"name", "outcome"} for p in row["parts"])
    elif row["verdict"] != UNDECIDED:
        assert row["replicates"] >= FEWEST and row["converged"] is not False
    if row["verdict"] != UNDECIDED:
        assert row["measured"] and row["spread"] and row["n"] > 0 and row["parts"] and row["why"].endswith(".")
        assert "nan" not in row["measured"] + row["spread"]


def outcomes(row: dict) -> dict[str, str]:
    return {part["name"]: part["outcome"] for part in row["parts"]}


# Changes of a world


def columns(file: str, **values) -> Change:
    return lambda world: world | {file: world[file].assign(**values)}


def entries(file: str, **values) -> Change:
    return lambda world: world | {file: world[file] | values}


def only(file: str, condition: str) -> Change:
    return lambda world: world | {file: world[file].query(condition)}


def both(*changes: Change) -> Change:
    def change(world: World) -> World:
        for each in changes:
            world = each(world)
        return world

    return change


def same_bytes(draw: Callable[[], figure.plt.Figure]) -> None:
    """Two drawings are the same files, with neither a date nor an open figure left behind."""
    before = figure.plt.get_fignums()
    for folder in ("a", "b"):
        figure.save("drawn", draw(), Path(folder))
    assert figure.plt.get_fignums() == before
    svg, png = (Path(f"a/drawn.{kind}").read_bytes() for kind in ("svg", "png"))
    assert svg == Path("b/drawn.svg").read_bytes() and png == Path("b/drawn.png").read_bytes()
    assert b"<dc:date>" not in svg and png.startswith(b"\x89PNG")
