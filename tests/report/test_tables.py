"""Tables: numbers as the paper writes them, every cell in every form, dead starts as infinite errors."""

from math import inf
from pathlib import Path

import pandas as pd
import pytest

from attnrate.report import tables, tables_linear


def test_numbers_in_the_papers_notation():
    shown = {1.02e-7: "1.02e-07", 0.0357: "0.0357", 5.58: "5.58", 0.0: "0"}
    assert {v: tables.short(v) for v in shown} == shown
    assert tables.short(float("nan")) == ""


def test_markdown_and_latex_hold_every_cell():
    table = pd.DataFrame({"a": ["x_1", "50 %"], "ρ": ["1–2", "n|m"]})
    md, tex = tables.markdown(table, "Caption"), tables.latex(table, "Caption", "tab:t")
    assert md.count("\n| ") == 4 and r"n\|m" in md and md.startswith("Caption\n\n| a | ρ |")
    assert r"x\_1" in tex and r"50 \%" in tex and r"$\rho$" in tex and r"\toprule" in tex and tex.count(r"\\") == 3


def test_a_table_is_saved_as_it_is_and_in_its_layout():
    long, wide = pd.DataFrame({"long": [1 / 3]}), pd.DataFrame({"wide": ["a third"]})
    tables.save("some", long, "Caption of some", wide)
    csv, md, tex = (Path(f"reports/tables/some.{kind}").read_text(encoding="utf-8") for kind in ("csv", "md", "tex"))
    assert csv == "long\n0.333333\n"
    assert all("a third" in text and "Caption of some" in text for text in (md, tex))
    assert r"\label{tab:some}" in tex


@pytest.mark.parametrize(
    ("errors", "median", "shown"),
    [
        ([1e-5, 3e-5], 2e-5, "2.00e-05 [1.00e-05–3.00e-05; n=2]"),
        ([1e-5, 3e-5, 0.09], 3e-5, "3.00e-05 [1.00e-05–3.00e-05; n=3, 1 dead]"),
        ([1e-5, 0.09, 0.095], inf, "stuck [1.00e-05–1.00e-05; 2 of 3 dead]"),
        ([0.09, 0.095], inf, "stuck [0.09–0.095; 2 of 2 dead]"),
        ([1e-5], 1e-5, "1.00e-05 [n=1]"),
    ],
)
def test_dead_starts_are_counted_and_are_infinite_in_the_median(errors, median, shown):
    key = {"table": 2, "alteration": "roll", "filter": "", "model": "transformer", "recipe": "centred", "floor": None}
    rows = pd.DataFrame([{**key, "mse": m, "dead": m > 0.01} for m in errors])
    found = tables_linear.cell(rows, 2, "roll", "", "transformer", "centred")
    assert found["median"] == pytest.approx(median) and tables_linear.text(found) == shown
    assert tables_linear.text(tables_linear.cell(rows, 3, "roll", "", "transformer", "centred")) == "not run"
