"""The ledger of claims (criteria, verdicts, the table that people read) and the one metrics file."""

from math import log10

import pandas as pd
import pytest

from attnrate.report.claims import ledger, summary
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, UNTESTED, Finding, Untestable, grade, grade_all
from tests import pipeline
from tests.conftest import ROOT
from tests.report.common import CRITERIA, write

STAGES = {name for s in pipeline.stages(ROOT) for name in (s.name, s.name.split("@")[0])}
KEYS = {"id", "ref", "claim", "criterion", "measured", "spread", "n", "data", "profile", "verdict", "why", "command"}


@pytest.fixture
def two_claims(tmp_path, monkeypatch):
    (tmp_path / "criteria.toml").write_text("""
        [one]
        ref = "eq. (1)"
        claim = "a | b"
        criterion = "at most {mse}, within {share:.0%}"
        limits = { mse = 1e-6, share = 0.15 }
        data = "{images}, all"
        command = "dvc repro one"
        [two]
        ref = "eq. (2)"
        claim = "c"
        criterion = "so"
        limits = {}
        data = "none"
        command = "dvc repro two"
    """)
    monkeypatch.setattr(ledger, "CRITERIA", tmp_path / "criteria.toml")


def finding(verdict):
    return lambda results, limits: Finding(f"{results}: {sorted(limits)}", "none", 3, verdict, "So it is.")


def untestable(results, limits):
    raise Untestable("one head size only")


def test_a_row_for_each_claim_with_its_limits_filled_in(two_claims):
    one, two = ledger.judge({"two": untestable, "one": finding(PARTLY)}, "folder", "smoke", "toy images")
    assert set(one) == set(two) == KEYS
    assert one["criterion"] == "at most 1e-06, within 15%" and one["measured"] == "folder: ['mse', 'share']"
    assert (one["id"], one["verdict"], one["profile"], one["n"]) == ("one", PARTLY, "smoke", 3)
    assert one["data"] == "toy images, all"
    assert (two["id"], two["verdict"], two["why"], two["n"]) == ("two", UNTESTED, "one head size only.", 0)


@pytest.mark.parametrize("names", [("one",), ("one", "two", "three")])
def test_a_claim_without_a_judge_or_a_judge_without_a_claim_is_an_error(two_claims, names):
    with pytest.raises(ValueError, match=r"two|three"):
        ledger.judge({n: finding(NOT) for n in names}, "folder", "smoke", "toy images")


def test_the_table_counts_and_escapes(two_claims):
    rows = ledger.judge({"one": finding(REPRODUCED), "two": untestable}, "folder", "smoke", "toy images")
    text = ledger.markdown(rows)
    assert ledger.counts(rows) == {REPRODUCED: 1, PARTLY: 0, NOT: 0, UNTESTED: 1}
    assert f"2 claims: {ledger.tally(rows)}." in text and ledger.tally(rows) == f"1 {REPRODUCED}, 1 {UNTESTED}"
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


# The metrics file


def rates_results(folder, slopes, cells):
    slopes = pd.DataFrame(slopes, columns=["pairing", "alpha", "estimator", "slope"])
    rates = pd.DataFrame(cells, columns=["rank", "mh", "estimator", "mse"])
    return write(folder, {"rates_table/slopes.csv": slopes, "rates_table/rates.csv": rates})


def test_the_numbers_are_the_slope_at_the_largest_alpha_and_the_worst_exact_cell(tmp_path):
    slopes = [("dyadic-0", 2.0, "best", -2.5), ("dyadic-1", 2.0, "best", -3.0), ("dyadic-0", 0.55, "best", -1.5)]
    slopes += [("same", 2.0, "best", -7.0), ("dyadic-0", 2.0, "pod", -9.0)]
    exact = [("2", 2, "constructive", 1e-8), ("2", 3, "constructive", 2e-8)]
    others = [("2", 1, "constructive", 1e-2), ("inf", 3, "constructive", 5e-1), ("2", 2, "paper", 3e-1)]
    found = summary.rates(rates_results(tmp_path, slopes, exact + others))
    assert found == {"slope": -2.75, "exact": pytest.approx(log10(2e-8))}
    assert summary.rates(rates_results(tmp_path, slopes[4:], others)) == {"slope": None, "exact": None}


def test_errors_are_logarithms_of_medians_over_seeds(tmp_path):
    rows = [("exp", "original", "", "rnn", "population", m) for m in (1e-8, 1e-7, 1)]
    rows.append(("exp", "causal", "signed", "transformer", "centred", 1e-2))
    rows.append(("uniform", "original", "", "rnn", "population", 1))
    columns = ["target", "alteration", "filter", "model", "recipe", "mse"]
    found = summary.linear(write(tmp_path, {"linear_table/linear.csv": pd.DataFrame(rows, columns=columns)}))
    assert found == {"rnn": pytest.approx(-7), "tf_mixed": pytest.approx(-2)}


def test_the_worst_of_the_three_tasks_speaks_for_the_examples(tmp_path):
    """By the median over seeds of the variant in the figures; other variants do not count."""
    rows = [("nearest", "plain", 0.9), ("mass", "segment-id", 0.5), ("selection", "one-hot", 0.99)]
    rows += [("mass", "segment-id", 0.7), ("mass", "segment-id", 0.8), ("mass", "untied", 0.1)]
    table = pd.DataFrame(rows, columns=["task", "variant", "attention_corr"])
    assert summary.examples(write(tmp_path, {"examples_table/examples.csv": table})) == {"corr": 0.7}


def test_order_is_compared_with_the_original_trained_on_as_long(tmp_path):
    bleu = pd.DataFrame({"variant": ["original", "permuted", "continued"], "bleu": [20.0, 21.0, 22.0]})
    found = summary.translation(write(tmp_path, {"translation_bleu/bleu.csv": bleu}))
    assert found == {"bleu": 22.0, "bleu_order": 21.0}
    found = summary.translation(write(tmp_path, {"translation_bleu/bleu.csv": bleu[:2]}))
    assert found == {"bleu": 20.0, "bleu_order": 21.0}
    vit = pd.DataFrame({"variant": ["original", "permuted", "permuted", "continued"], "test_acc": [0.1, 0.4, 0.5, 0.6]})
    found = summary.vit(write(tmp_path, {"vit_table/vit.csv": vit}))
    assert found == {"acc": 0.6, "acc_order": pytest.approx(0.45)}
