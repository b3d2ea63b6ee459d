"""Verdicts of several profiles: which one counts, why they differ, where they come from; and the picture of both."""

import json

import pytest

from attnrate.report import fig_scale, published
from attnrate.report.style import figure
from tests import pipeline
from tests.conftest import ROOT
from tests.report.common import same_bytes
from tests.report.made import publish, rows

LAPTOP = rows()
IDS = [row["id"] for row in LAPTOP if row["parts"] and row["effect"] is not None]
FIRST, SECOND, THIRD = IDS[:3]


def judged(name: str, verdict: str, **changed) -> dict:
    """The laptop's row of a claim with another verdict."""
    (row,) = (r for r in LAPTOP if r["id"] == name)
    return row | {"verdict": verdict, "needs": "more" if verdict == "undecided" else ""} | changed


def columns(tmp_path, laptop: list[dict], desk: list[dict], paper: list[dict] = ()):
    for profile, own in (("desk", desk), ("paper", paper)):
        if own:
            publish(tmp_path, own, profile)
    return published.columns(laptop, tmp_path / "published")


def with_verdicts(**verdicts: str) -> list[dict]:
    return [judged(r["id"], verdicts[r["id"]]) if r["id"] in verdicts else r for r in LAPTOP]


def test_the_largest_profile_that_decides_has_the_verdict(tmp_path):
    laptop = with_verdicts(**{FIRST: "undecided", SECOND: "reproduced", THIRD: "undecided"})
    desk = [judged(FIRST, "not reproduced"), judged(SECOND, "undecided"), judged(THIRD, "undecided")]
    found = columns(tmp_path, laptop, desk, [judged(SECOND, "not reproduced")])
    assert [c.profile for c in found] == ["laptop", "desk", "paper"]
    top = {row["id"]: row for row in published.headline(found)}
    assert list(top) == [row["id"] for row in LAPTOP]
    assert (top[FIRST]["verdict"], top[FIRST]["profile"]) == ("not reproduced", "desk")
    assert (top[SECOND]["verdict"], top[SECOND]["profile"]) == ("not reproduced", "paper")
    assert (top[THIRD]["verdict"], top[THIRD]["profile"]) == ("undecided", "desk")  # what it now needs
    others = [row for row in LAPTOP if row["id"] not in (FIRST, SECOND, THIRD)]
    assert [top[row["id"]] for row in others] == others


def test_with_nothing_published_the_workspace_has_it(tmp_path):
    found = published.columns(LAPTOP, tmp_path / "nothing")
    assert published.headline(found) == LAPTOP and [bool(c.rows) for c in found] == [True, False, False]
    assert all("attnrate publish all" in c.notes()[0] and c.command in c.notes()[0] for c in found[1:])
    figure.plt.close(fig_scale.scales(found))


def test_a_workspace_at_desk_scale_is_the_desk_column(tmp_path):
    """Whatever was published before."""
    publish(tmp_path, [judged(FIRST, "not reproduced")])
    found = published.columns([row | {"profile": "desk"} for row in LAPTOP], tmp_path / "published")
    (row,) = (r for r in LAPTOP if r["id"] == FIRST)
    assert not found[0].rows and found[1].rows[FIRST] == row | {"profile": "desk"}
    assert [row["id"] for row in published.headline(found)] == [row["id"] for row in LAPTOP]


def test_a_verdict_by_another_criterion_does_not_count(tmp_path):
    found = columns(tmp_path, LAPTOP, [judged(FIRST, "not reproduced", criterion="an easier one")])
    assert published.headline(found) == LAPTOP and not found[1].rows


def test_an_empty_column_says_what_it_costs(tmp_path):
    (tmp_path / "published").mkdir()
    state = {"changed": {}, "costs": {"paper": {"hours": 130.0, "on": "1 GPU"}}}
    (tmp_path / "published/state.json").write_text(json.dumps(state))
    _, desk, paper = published.columns(LAPTOP, tmp_path / "published")
    assert "about 130 hours on 1 GPU; dvc exp run $(python -m attnrate.ops.profile paper)" in paper.notes()[0]
    assert "hours" not in desk.notes()[0]


def test_a_published_column_names_machine_commit_cost_and_changed_code(tmp_path):
    found = columns(tmp_path, LAPTOP, [judged(FIRST, "not reproduced")])
    (text,) = found[1].notes()
    assert all(w in text for w in ("Figure 1: 1.5 hours", "2.5 GB on a processor", "abcdef0", "2026-01-02"))
    assert "changed" not in text
    state = {"changed": {"desk": {"figure-1": ["rates_train@paper"]}}, "costs": {}}
    (tmp_path / "published/state.json").write_text(json.dumps(state))
    (text,) = published.columns(LAPTOP, tmp_path / "published")[1].notes()
    assert text.endswith("code has changed since: rates_train@paper")


def test_where_profiles_disagree_the_row_says_what_differs(tmp_path):
    laptop = [r | {"replicates": 3} if r["id"] == FIRST else r for r in with_verdicts(**{FIRST: "undecided"})]
    desk = [judged(FIRST, "reproduced", replicates=10, command="dvc repro rates_table")]
    found = columns(tmp_path, laptop, desk)
    params = {"mh": 8, "rates": {"recipes": {"paper": {"steps": 1000, "batch": 32}}}, "other": 3}
    text = published.why(FIRST, found, params)
    assert text.startswith("laptop undecided, desk reproduced: ")
    assert "replicates 3 → 10" in text and "rates.recipes.paper.steps 1,000 → 20,000" in text
    assert "batch" not in text and "mh" not in text and "other" not in text
    assert published.why(THIRD, found, params) == ""


def test_profiles_that_agree_need_no_reason(tmp_path):
    (row,) = (r for r in LAPTOP if r["id"] == FIRST)
    assert published.why(FIRST, columns(tmp_path, LAPTOP, [row]), {}) == ""


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [(1000, 20000, "x 1,000 → 20,000"), ([0], [0, 1, 2], "1 → 3 x"), ([0], [1], "other x"), (None, 5, "x None → 5")],
)
def test_a_difference_in_words(old, new, wanted):
    assert published.step("x", old, new) == wanted


def test_only_the_page_and_the_picture_read_what_is_published():
    """The claims stage must not: what it writes is published."""
    reading = {s.name for s in pipeline.stages(ROOT) if any(pipeline.covers(d, "reports/published/x") for d in s.deps)}
    assert reading == {"page", "fig_ledger"}
    claims = pipeline.closure(ROOT, "stages/claims.py")
    assert "src/attnrate/report/published.py" not in claims


# The picture


def narrower(name: str) -> dict:
    """The same effect with half the interval, as at a larger scale."""
    (row,) = (r for r in LAPTOP if r["id"] == name)
    parts = [dict(p) for p in row["parts"]]
    for p in parts:
        if "test" in p and p["effect"] is not None and None not in p["interval"]:
            p["interval"] = [(p["effect"] + end) / 2 for end in p["interval"]]
    top = next(p for p in parts if "test" in p and p["effect"] == row["effect"])
    return row | {"parts": parts, "interval": top["interval"]}


def test_every_claim_of_both_profiles_has_two_intervals_and_the_larger_profiles_is_shorter(tmp_path):
    finite = [name for name in IDS if None not in narrower(name)["interval"]][:4]
    found = columns(tmp_path, LAPTOP, [narrower(name) for name in finite])
    picture = fig_scale.scales(found)
    lines = {}
    for line in picture.axes[0].get_lines():
        if line.get_gid():
            lines.setdefault(line.get_gid(), []).append(line.get_xdata())
    assert set(lines) == {f"{name} {profile}" for name in finite for profile in ("laptop", "desk")}
    for name in finite:
        (low, high), (x,) = lines[f"{name} laptop"]
        (inner, outer), (y,) = lines[f"{name} desk"]
        assert low <= inner <= outer <= high and x == y and outer - inner < high - low
    shown = {text.get_text() for text in picture.axes[0].texts}
    assert set(finite) <= shown and fig_scale.NOTHING not in shown
    figure.plt.close(picture)


def test_a_workspace_that_is_no_profile_of_the_scale_is_not_drawn(tmp_path):
    found = columns(tmp_path, [row | {"profile": "smoke"} for row in LAPTOP], [narrower(FIRST)])
    assert [c.profile for c in found] == ["smoke", "laptop", "desk", "paper"] and fig_scale.both(found) == {}
    figure.plt.close(fig_scale.scales(found))


def test_a_picture_of_nothing_says_so_and_two_runs_give_the_same_bytes(tmp_path):
    found = columns(tmp_path, LAPTOP, [narrower(IDS[0])])
    same_bytes(lambda: fig_scale.scales(found))
    empty = fig_scale.scales(published.columns(LAPTOP, tmp_path / "nothing"))
    assert fig_scale.NOTHING in {text.get_text() for text in empty.axes[0].texts}
    figure.plt.close(empty)
