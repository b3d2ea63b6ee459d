"""The ledger of claims: criteria, verdicts, and the table that people read."""

import pytest

from attnrate.report import claims
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, UNTESTED, Finding, Untestable, grade, grade_all
from tests import pipeline
from tests.conftest import ROOT

CRITERIA = claims.read_criteria()
STAGES = {name for s in pipeline.stages(ROOT) for name in (s.name, s.name.split("@")[0])}
KEYS = ["id", "ref", "claim", "criterion", "measured", "spread", "n", "data", "profile", "verdict", "why", "command"]


@pytest.fixture
def two_claims(tmp_path, monkeypatch):
    (tmp_path / "criteria.toml").write_text("""
        [one]
        ref = "eq. (1)"
        claim = "a | b"
        criterion = "at most {mse}, within {share:.0%}"
        limits = { mse = 1e-6, share = 0.15 }
        data = "none"
        command = "dvc repro one"
        [two]
        ref = "eq. (2)"
        claim = "c"
        criterion = "so"
        limits = {}
        data = "none"
        command = "dvc repro two"
    """)
    monkeypatch.setattr(claims, "CRITERIA", tmp_path / "criteria.toml")


def finding(verdict):
    return lambda results, limits: Finding(f"{results}: {sorted(limits)}", "none", 3, verdict, "So it is.")


def untestable(results, limits):
    raise Untestable("one head size only")


def test_a_row_for_each_claim_with_its_limits_filled_in(two_claims):
    one, two = claims.judge({"two": untestable, "one": finding(PARTLY)}, "folder", "smoke", "toy images")
    assert list(one) == KEYS
    assert one["criterion"] == "at most 1e-06, within 15%" and one["measured"] == "folder: ['mse', 'share']"
    assert (one["id"], one["verdict"], one["profile"], one["n"]) == ("one", PARTLY, "smoke", 3)
    assert (two["id"], two["verdict"], two["why"], two["n"]) == ("two", UNTESTED, "one head size only.", 0)


@pytest.mark.parametrize("names", [("one",), ("one", "two", "three")])
def test_a_claim_without_a_judge_or_a_judge_without_a_claim_is_an_error(two_claims, names):
    with pytest.raises(ValueError, match=r"two|three"):
        claims.judge({n: finding(NOT) for n in names}, "folder", "smoke", "toy images")


def test_the_table_counts_and_escapes(two_claims):
    rows = claims.judge({"one": finding(REPRODUCED), "two": untestable}, "folder", "smoke", "toy images")
    text = claims.markdown(rows)
    assert claims.counts(rows) == {REPRODUCED: 1, PARTLY: 0, NOT: 0, UNTESTED: 1}
    assert "2 claims: 1 reproduced, 1 cannot be tested here." in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace(r"\|", "").count("|") for line in table}) == 1, "a cell breaks its row"
    assert "`dvc repro one`" in text and "at most 1e-06" in text


def test_grades():
    assert [grade(s, 0.9, 0.5) for s in (1, 0.9, 0.89, 0.5, 0.49, 0)] == [REPRODUCED] * 2 + [PARTLY] * 2 + [NOT] * 2
    assert [grade_all(h) for h in ([True], [True, False], [False, False])] == [REPRODUCED, PARTLY, NOT]
    with pytest.raises(Untestable):
        grade_all([])


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_is_whole_and_its_command_names_a_stage(name):
    c = CRITERIA[name]
    assert set(c) == {"ref", "claim", "criterion", "limits", "data", "command"}
    text = c["criterion"].format(**c["limits"])
    assert all(f"{{{key}" in c["criterion"] for key in c["limits"]), "a limit that the criterion does not state"
    assert "{" not in text and text[-1] != "."
    assert c["command"].startswith("dvc repro ") and set(c["command"].split()[2:]) <= STAGES
