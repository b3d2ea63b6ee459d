"""The ledger of claims (criteria, verdicts, the table that people read) and the one metrics file."""

from math import log, log10

import pandas as pd
import pytest

from attnrate.core import files
from attnrate.report.claims import ledger, summary
from attnrate.report.claims.all import GROUPS
from attnrate.report.claims.ledger import (
    NOT,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    Criterion,
    Exact,
    Finding,
    Undecided,
    by_case,
    combine,
    conclude,
)
from attnrate.report.claims.statistics import FAILS, FEWEST, HOLDS, OPEN, judge_part
from tests import pipeline
from tests.conftest import ROOT
from tests.report.common import CRITERIA, KEYS, RULES, outcomes, sound, write

STAGES = set(pipeline.load(ROOT / "dvc.yaml")["stages"]) | {s.name for s in pipeline.stages(ROOT)}
SURE, WIDE = (0.0, 0.1, 0.2), (-9.0, 0.1, 9.0)
TWO = """
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
    criterion = "below {margin}"
    test = "below"
    margin = "log 3"
    unit = "ratio"
    cases = ["x", "y"]
    trained = true
    limits = {}
    paper = "1 → 2"
    data = "none"
    command = "dvc repro two"
"""


def of_toml(folder, monkeypatch, text):
    (folder / "criteria.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(ledger, "CRITERIA", folder / "criteria.toml")


@pytest.fixture
def two_claims(tmp_path, monkeypatch):
    of_toml(tmp_path, monkeypatch, TWO)


def exact(results, rule):
    return Finding(f"{results}: {sorted(rule.limits)}", [Exact("", True)], "So it is.", 3)


def drawn(x=SURE, y=SURE, half=None):
    def evaluate(results, rule):
        return Finding("5 | 6", [rule.part("x", x, half), rule.part("y", y)], "So it is.", 6)

    return evaluate


def missing(results, rule):
    raise Undecided("two head sizes")


def judge(**evaluators):
    rows = ledger.judge({"one": exact, "two": drawn()} | evaluators, "folder", "smoke", "toy images")
    for row in rows:
        sound(row)
    return rows


# Rows


def test_a_row_for_each_claim_with_its_numbers_filled_in(two_claims):
    one, two = judge()
    assert (one["id"], one["verdict"], one["profile"], one["n"]) == ("one", REPRODUCED, "smoke", 3)
    assert one["criterion"] == "at most 1e-06, within 15%" and one["measured"] == "folder: ['mse', 'share']"
    assert one["data"] == "toy images, all" and one["spread"] == "exact" and one["paper"] == one["unit"] == ""
    assert (one["test"], one["exact"], one["parts"]) == ("exact", True, [{"name": "", "outcome": HOLDS}])
    assert two["criterion"] == "below log 3" and two["margin"] == pytest.approx(log(3))
    assert (two["verdict"], two["test"], two["unit"], two["paper"]) == (REPRODUCED, "below", "ratio", "1 → 2")
    assert (two["exact"], two["replicates"], two["converged"]) == (False, 3, "not run")
    assert two["effect"] == pytest.approx(0.1) and two["interval"][0] < 0.1 < two["interval"][1]
    assert outcomes(two) == {"x": HOLDS, "y": HOLDS} and two["outcomes"] == "x holds, y holds"


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_claim_without_results_has_the_same_columns(two_claims, name):
    row = {r["id"]: r for r in judge(**{name: missing})}[name]
    assert (row["verdict"], row["needs"], row["n"], row["parts"]) == (UNDECIDED, "two head sizes", 0, [])
    assert row["replicates"] == (None if name == "one" else 0)


def test_an_open_claim_leads_with_what_was_measured_all_the_same(two_claims):
    def some(results, rule):
        raise Undecided("more seeds", "5 times the best", 7)

    rows = judge(two=some)
    assert (rows[1]["measured"], rows[1]["n"], rows[1]["needs"]) == ("5 times the best", 7, "more seeds")
    assert "| 5 times the best (n = 7) |" in ledger.markdown(rows)


@pytest.mark.parametrize(
    ("x", "y", "half", "verdict", "converged"),
    [
        (SURE, SURE, SURE, REPRODUCED, "not run"),  # of y
        (SURE, (9.0, 9.1, 9.2), None, PARTLY, "not run"),
        ((9.0, 9.1, 9.2), (9.0, 9.1, 9.2), None, NOT, "not run"),
        (SURE, WIDE, None, UNDECIDED, "not run"),
        ((9.0, 9.1, 9.2), WIDE, None, UNDECIDED, "not run"),
        (SURE[:2], SURE, None, UNDECIDED, "not run"),
        (SURE, SURE, (9.0, 9.1, 9.2), UNDECIDED, False),
    ],
)
def test_the_verdict_of_two_named_cases(two_claims, x, y, half, verdict, converged):
    row = judge(two=drawn(x, y, half))[1]
    assert (row["verdict"], row["converged"]) == (verdict, converged)
    assert ("y: about" in row["needs"]) == (y is WIDE) and ("twice the steps" in row["needs"]) == (converged is False)


def test_the_numbers_of_a_row_are_those_of_the_part_that_decides(two_claims):
    row = judge(two=drawn(SURE, (9.0, 9.1, 9.2)))[1]
    assert row["effect"] == pytest.approx(9.1) and row["level"] == 0.975  # 5 % over two parts


# Rules


def rule(**given):
    return Criterion({}, **{"test": "below", "margin": 1.0} | given)


def found(*parts, **given):
    return Finding("1", parts, "So.", **{"n": len(parts)} | given)


@pytest.mark.parametrize(
    ("outcomes", "named", "plain"),
    [
        ((HOLDS,), REPRODUCED, REPRODUCED),
        ((HOLDS, HOLDS), REPRODUCED, REPRODUCED),
        ((HOLDS, FAILS), PARTLY, NOT),
        ((FAILS, FAILS), NOT, NOT),
        ((HOLDS, OPEN), UNDECIDED, UNDECIDED),
        ((FAILS, OPEN), UNDECIDED, NOT),  # named beforehand, each case counts for itself
        ((HOLDS, FAILS, OPEN), UNDECIDED, NOT),
    ],
)
def test_only_cases_that_were_named_beforehand_make_a_claim_partly_reproduced(outcomes, named, plain):
    cases = dict(enumerate(outcomes))
    assert (combine(cases, True), combine(cases, False)) == (named, plain)


def test_a_case_is_as_good_as_its_worst_part():
    parts = [("a", HOLDS), ("b", OPEN), ("a", OPEN), ("b", HOLDS), ("a", FAILS), ("c", HOLDS)]
    assert by_case(parts) == {"a": FAILS, "b": OPEN, "c": HOLDS}


def test_parts_belong_to_their_case():
    own = rule(cases=("low", "high"))
    parts = [own.part("1", SURE), own.part("2", SURE), own.part("3", (9.0, 9.1, 9.2))]
    row = conclude(found(*parts, case={"1": "low", "2": "low", "3": "high"}), own)
    assert (row["verdict"], row["outcomes"]) == (PARTLY, "low holds, high fails")


def test_a_case_that_was_not_named_beforehand_is_an_error():
    own = rule(cases=("x", "y"))
    with pytest.raises(ValueError, match=r"named beforehand: \['z'\]"):
        conclude(found(own.part("x", SURE), own.part("z", SURE)), own)


def test_a_named_case_without_a_part_is_open():
    own = rule(cases=("x", "y"))
    row = conclude(found(own.part("x", SURE)), own)
    assert (row["verdict"], row["needs"]) == (UNDECIDED, "y: 3 replicates or more; it has 0")


def test_without_parts_nothing_can_be_concluded():
    with pytest.raises(Undecided, match="this profile has none"):
        conclude(found(), rule())


@pytest.mark.parametrize(
    ("trained", "halves", "converged"),
    [
        (True, (SURE, SURE), True),
        (True, (SURE, None), "not run"),
        (True, (None, (9.0, 9.1, 9.2)), False),
        (False, (None, None), None),
    ],
)
def test_a_claim_is_converged_if_all_its_parts_are(trained, halves, converged):
    own = rule(trained=trained)
    row = conclude(found(*(own.part(str(i), SURE, half) for i, half in enumerate(halves))), own)
    assert row["converged"] == converged and (row["verdict"] == UNDECIDED) == (converged is False)


@pytest.mark.parametrize(("n", "verdict"), [(FEWEST - 1, UNDECIDED), (FEWEST, NOT)])
def test_what_training_reached_needs_replicates_even_without_an_interval(n, verdict):
    row = conclude(found(Exact("", False), n=n), Criterion({}, trained=True))
    assert (row["verdict"], row["replicates"], row["exact"], row["effect"]) == (verdict, n, False, None)


def test_something_exact_beside_something_random():
    own = rule(cases=("floor", "training"))
    row = conclude(found(Exact("floor", False), own.part("training", SURE)), own)
    assert (row["verdict"], row["exact"], row["replicates"]) == (PARTLY, False, 3)


@pytest.mark.parametrize(
    ("values", "unit", "shown"),
    [
        ((0.9, 0.9, 0.9), "", "p: 0.9 (95 % interval 0.9 to 0.9; n = 3)"),  # a number is no level
        ((0.95, 0.95, 0.95), "", "p: 0.95 (95 % interval 0.95 to 0.95; n = 3)"),
        ((log(2),) * 3, "ratio", "p: 2 (95 % interval 2 to 2; n = 3)"),
        ((0.0, 0.0, 0.0, 0.0, float("inf")), "", "p: 0 (93.75 % interval 0 to ∞; n = 5, 1 stuck)"),
        ((0.5,), "", "p: 0.5 (n = 1)"),
    ],
)
def test_effects_in_words(values, unit, shown):
    assert ledger.shown(judge_part(rule(margin=2.0).part("p", values)), unit) == shown


# The table that people read


def test_the_table_counts_and_escapes(two_claims):
    rows = judge(two=drawn(SURE, WIDE))
    text = ledger.markdown(rows)
    assert ledger.counts(rows) == {REPRODUCED: 1, PARTLY: 0, NOT: 0, UNDECIDED: 1}
    assert (
        f"2 claims of the paper: {ledger.tally(rows)}." in text
        and ledger.tally(rows) == f"1 {REPRODUCED}, 1 {UNDECIDED}"
    )
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace(r"\|", "").count("|") for line in table}) == 1, "a cell breaks its row"
    assert r"a \| b" in text and r"5 \| 6 (x: 1.11 (95 % interval " in text and "`dvc repro one`" in text
    assert "**reproduced**, exact" in text and "Parts: x holds, y undecided. gate not run. Needs y: about" in text
    assert "- **one** (toy images, all): at most 1e-06" in text and "- **two** (none): below log 3." in text


# criteria.toml


@pytest.mark.parametrize("names", [("one",), ("one", "two", "three")])
def test_a_claim_without_a_judge_or_a_judge_without_a_claim_is_an_error(two_claims, names):
    with pytest.raises(ValueError, match=r"two|three"):
        ledger.judge(dict.fromkeys(names, exact), "folder", "smoke", "toy images")


def test_a_key_that_nothing_reads_is_an_error(tmp_path, monkeypatch):
    of_toml(tmp_path, monkeypatch, TWO.replace("margin =", "margins ="))
    with pytest.raises(ValueError, match="two has margins, which nothing reads"):
        ledger.read_criteria()


@pytest.mark.parametrize(("text", "value"), [("log 3", log(3)), ("log 0.01", log(0.01)), (0.85, 0.85), (0, 0.0)])
def test_margins_are_numbers_or_their_logarithms(text, value):
    assert ledger.margin(text) == pytest.approx(value)


def test_a_part_has_the_criterions_test_and_margin_unless_another_is_given():
    part = rule().part("p", [1, 2], [3, 4])
    assert (part.test, part.margin, part.values, part.half) == ("below", 1.0, (1, 2), (3, 4))
    assert rule().part("p", [], margin=-1.0, test="above") == rule(test="above", margin=-1.0).part("p", [])


def test_every_claim_has_one_judge():
    judges = [name for group in GROUPS for name in group.EVALUATORS]
    assert sorted(judges) == sorted(CRITERIA) and len(CRITERIA) >= 42


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_is_whole_and_its_command_names_stages(name):
    c, own = CRITERIA[name], RULES[name]
    assert {"ref", "claim", "criterion", "limits", "data", "command"} <= set(c)
    assert own.test in ("exact", "equal", "above", "below") and (own.test == "exact") == ("margin" not in c)
    assert own.unit in ("", "ratio") and (own.unit == "" or own.test != "exact") and len(own.cases) != 1
    text = c["criterion"].format(**c["limits"], margin=c.get("margin"))
    assert all(f"{{{key}" in c["criterion"] for key in c["limits"]), "a limit that the criterion does not state"
    assert "{" not in text and text[-1] != "."
    command, *stages = c["command"].removeprefix("dvc ").split()
    assert command == "repro" and stages and set(stages) <= STAGES


def test_limits_that_are_stated_twice_are_the_same():
    assert RULES["table3-rnn"].margin == pytest.approx(log(RULES["table3-rnn"].limits["share"]))
    assert RULES["ff-recovered"].limits["mse"] == RULES["low-loss-rule"].limits["mse"]


def test_the_ledger_at_hand_decides_nothing_from_fewer_than_three_replicates():
    rows = files.read_json(ROOT / "reports/claims.json")
    if "replicates" not in rows[0]:
        pytest.skip("reports/claims.json is of another kind")
    for row in rows:
        assert set(row) == KEYS and row["verdict"] in ledger.VERDICTS
        assert row["exact"] or row["verdict"] == UNDECIDED or row["replicates"] >= FEWEST, row["id"]
    assert [row["id"] for row in rows] == list(CRITERIA)


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
    rows = [("exp", "original", "", "rnn-bias", "population", m) for m in (1e-8, 1e-7, 1)]
    rows += [("exp", "causal", "signed", "transformer", recipe, m) for recipe, m in (("mixing", 1e-2), ("plain", 1))]
    rows.append(("uniform", "original", "", "rnn-bias", "population", 1))
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
