import pandas as pd

from attnrate.report import tables, tables_linear


def test_numbers_in_the_papers_notation():
    assert [tables.short(v) for v in (1.02e-7, 0.0357, 5.58, 0.0, float("nan"))] == [
        "1.02e-07",
        "0.0357",
        "5.58",
        "0",
        "",
    ]


def test_markdown_and_latex_hold_every_cell():
    table = pd.DataFrame({"a": ["x_1", "50 %"], "ρ": ["1–2", "n|m"]})
    md, tex = tables.markdown(table, "Caption"), tables.latex(table, "Caption", "tab:t")
    assert md.count("\n| ") == 4 and r"n\|m" in md
    assert r"x\_1" in tex and r"50 \%" in tex and r"$\rho$" in tex and r"\toprule" in tex and tex.count(r"\\") == 3


def test_dead_starts_are_counted_and_not_averaged_in():
    rows = [
        {
            "table": 2,
            "alteration": "roll",
            "filter": "",
            "model": "transformer",
            "recipe": "centred",
            "mse": m,
            "floor": None,
            "dead": d,
        }
        for m, d in ((1e-5, False), (3e-5, False), (0.09, True))
    ]
    found = tables_linear.cell(pd.DataFrame(rows), 2, "roll", "", "transformer", "centred")
    assert (found["median"], found["n"], found["dead"]) == (2e-5, 3, 1)
    assert tables_linear.text(found) == "2.00e-05 [1.00e-05–3.00e-05; n=3, 1 dead]"
