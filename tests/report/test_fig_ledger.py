"""The picture of the ledger: every claim, and every interval on the side of the margin where it is."""

import pytest

from attnrate.report import fig_ledger
from attnrate.report.style import figure
from attnrate.report.verdicts import drawn
from tests.report.common import CRITERIA, same_bytes
from tests.report.made import rows

ROWS = rows()


@pytest.fixture(scope="module")
def picture():
    made = fig_ledger.ledger(ROWS)
    yield made
    figure.plt.close(made)


def lines(picture, claim: str, what: str) -> list:
    return [line for line in picture.axes[0].get_lines() if line.get_gid() == f"{claim} {what}"]


def texts(picture, claim: str, what: str) -> list:
    return [text for text in picture.axes[0].texts if text.get_gid() == f"{claim} {what}"]


def test_two_runs_give_the_same_bytes():
    same_bytes(lambda: fig_ledger.ledger(ROWS))


def test_every_claim_has_a_row_in_the_papers_order_and_its_words_in_it(picture):
    found = [text for text in picture.axes[0].texts if (text.get_gid() or "").endswith(" claim")]
    assert [text.get_text() for text in found] == list(CRITERIA)
    heights = [text.get_position()[1] for text in found]
    assert heights == sorted(heights) and list(fig_ledger.GROUPS) == [c for c in CRITERIA if c in fig_ledger.GROUPS]
    shown = {text.get_text() for text in picture.axes[0].texts}
    assert {"✓ reproduced", "≈ partly", "✗ not reproduced", "? undecided", "gate not run", "exact"} <= shown
    assert {r["measured"] for r in ROWS if r["measured"]} <= shown
    assert any("laptop profile" in text for text in shown)


def test_what_holds_is_right_of_the_margin_what_fails_left_and_the_rest_reaches_it(picture):
    seen = set()
    for row in ROWS:
        bars = [line.get_xdata() for line in lines(picture, row["id"], "interval")]
        parts = [p for p in drawn(row) if fig_ledger.distances(p)]
        assert len(bars) == len(parts) == len(lines(picture, row["id"], "effect"))
        for (low, high), part in zip(bars, parts, strict=True):
            inside = {"holds": low > 0, "fails": high < 0, "undecided": low <= 0 <= high or part["dead"]}
            assert inside[part["outcome"]], (row["id"], part)
            seen.add((part["test"], part["outcome"]))
        for part in (p for p in row["parts"] if "test" not in p):
            (text,) = (t for t in texts(picture, row["id"], "exact") if part["name"] in t.get_text())
            assert (text.get_position()[0] > 0) == ("✓" in text.get_text()) == (part["outcome"] == "holds")
    assert len(seen) >= 7


def part(**changed) -> dict:
    given = {
        "name": "",
        "effect": 1.0,
        "interval": [0.5, 1.5],
        "test": "above",
        "margin": 0.0,
        "replicates": 5,
        "dead": 0,
    }
    return given | {"outcome": "holds"} | changed


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, (1, 2, 3)),
        ({"margin": 2.0, "outcome": "fails"}, (-3, -2, -1)),
        ({"test": "below", "margin": 2.0}, (1, 2, 3)),
        ({"test": "below", "outcome": "fails"}, (-3, -2, -1)),
        ({"test": "equal", "margin": 2.0}, (1, 2, 3)),
        ({"test": "equal", "margin": 2.0, "effect": -1.0, "interval": [-1.5, -0.5]}, (1, 2, 3)),
        ({"test": "equal", "margin": 2.0, "effect": 0.0, "interval": [-0.5, 0.5]}, (3, 4, 4)),  # no farther than at 0
        ({"test": "equal", "effect": -1.0, "interval": [-1.5, -0.5], "outcome": "fails"}, (-3, -2, -1)),
        ({"effect": 1.0, "interval": [0.5, None], "outcome": "undecided"}, (1, 2, float("inf"))),
        ({"effect": 1.0, "interval": [1.0, 1.0]}, (float("inf"),) * 3),
        ({"effect": 0.0, "interval": [0.0, 0.0], "outcome": "undecided"}, (0, 0, 0)),
        ({"effect": None, "interval": [0.5, None]}, (float("inf"),) * 3),
        ({"effect": None, "interval": [None, None], "outcome": "fails"}, (-float("inf"),) * 3),
        ({"effect": None, "interval": [None, None], "outcome": "undecided"}, None),
        ({"effect": None, "interval": [0.5, None], "outcome": "undecided"}, None),
        ({"interval": [None, None], "replicates": 1, "outcome": "undecided"}, None),
        ({"interval": [None, None], "replicates": 3, "outcome": "undecided"}, None),
    ],
)
def test_distances_are_in_half_widths_and_positive_where_the_claim_holds(changed, wanted):
    assert fig_ledger.distances(part(**changed)) == (wanted if wanted is None else pytest.approx(wanted))


WIDE = {"effect": -1.23e-4, "interval": [-1.24e-4, -1.22e-4]}


def wide(row: dict) -> dict:
    """The widest numbers that a row can have, and long words."""
    text = "median 4.99e-08 → 8.47e-08 (signed), 3.38e-09 (positive filters), which is WWWWWWWW more than a line holds"
    numbers = {"effect": -6.68, "interval": [-6.69, -6.67]} if row["unit"] == "ratio" else WIDE
    parts = [p | numbers if "test" in p else p for p in row["parts"]]
    return row | {"measured": text, "paper": text, "parts": parts}


@pytest.mark.parametrize("change", [dict, wide])
def test_no_text_runs_into_another(change):
    """As many pixels as the stage draws: letters are rounded to whole ones."""
    drawing, between = fig_ledger.ledger([change(row) for row in ROWS]), 3
    assert drawing.dpi == fig_ledger.DPI
    renderer = drawing.canvas.get_renderer()
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in drawing.axes[0].texts if t.get_text()]
    boxes.sort(key=lambda b: b[1].y0)
    for i, (text, box) in enumerate(boxes):
        for other, near in boxes[i + 1 :]:
            if near.y0 > box.y1:
                break
            deep = min(box.y1, near.y1) - max(box.y0, near.y0) > 0.35 * min(box.height, near.height)
            assert not (deep and box.x0 < near.x1 + between and near.x0 < box.x1 + between), (text, other)
    figure.plt.close(drawing)


def test_numbers_are_as_short_as_their_digits_allow():
    text = "1.63e+03 [-0.000347, 2e-05] of 0.00123, 5.7e+00 and 1e-10"
    assert fig_ledger.compact(text) == "1.63e3 [-3.47e-4, 2e-5] of 0.00123, 5.7e0 and 1e-10"


def test_runs_that_died_are_told_once():
    row = {"id": "a", "measured": "", "paper": "", "needs": "", "parts": [part(dead=1), part(name="roll", dead=2)]}
    assert fig_ledger.columns(row)["below"] == ["1 of 5 stuck; roll: 2 of 5 stuck"]
    needs = "about 12 replicates, if as many get stuck (1 of 5 did)"
    assert fig_ledger.columns(row | {"needs": needs})["below"] == ["roll: 2 of 5 stuck", f"needs {needs}"]


def test_a_small_ledger_is_drawn_too():
    figure.plt.close(fig_ledger.ledger(ROWS[:1]))
