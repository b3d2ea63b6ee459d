"""The translation column of Table 1, its claim, and the extra figure."""

import itertools

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from attnrate.core import params
from attnrate.report import table1, table_translation
from attnrate.report.claims.ledger import NOT, REPRODUCED, UNDECIDED
from attnrate.report.claims.translation import EVALUATORS
from attnrate.report.fig_translation import spectra
from attnrate.schemas.translation import Translation
from tests.conftest import ROOT
from tests.report.common import RULES, same_bytes, write
from tests.report.common import judged as judge

RULE = RULES["translation-order"]
MARGIN, LEARNED = RULE.margin, RULE.limits["learned"]
BLEU, CHANGED = "translation_bleu/bleu.csv", "translation_bleu/changed.csv"
TOKENS = {"moved_tokens": 10, "unchanged": {"dev": 127, "test": 264, "train": 5987}}


def table(original, altered, continued=(), copy=12.0):
    scores = {"original": original, "unadapted": [5.0] * len(original), "permuted": altered, "continued": continued}
    rows = [(variant, seed, b) for variant, bleu in scores.items() for seed, b in enumerate(bleu)]
    found = pd.DataFrame([("copy", None, copy), *rows], columns=["variant", "seed", "bleu"])
    return found.astype({"seed": "Int64"}).assign(corpus="interface", chrf=50.0, pairs=560)


def compared(n):
    """On the sentences that the altered order changes."""
    rows = [(seed, against, 296, 20.5, 20.0, 0.025) for seed in range(n) for against in ("original", "continued")]
    return pd.DataFrame(rows, columns=["seed", "against", "pairs", "control", "altered", "p_value"])


def judged(tmp_path, original, altered, continued=(), **options):
    bleu = table(original, altered, continued, **options)
    world = {BLEU: bleu, CHANGED: compared(len(original)), "translation_tokens/permuted.json": TOKENS}
    return judge("translation-order", EVALUATORS["translation-order"], write(tmp_path, world))


def on_sentences(tmp_path, *drops):
    """The claim on whole sentences, of one corpus or two."""
    world = {}
    for corpus, drop in zip(("help", "wmt14"), drops, strict=False):
        folder = f"translation_beside/{corpus}"
        bleu = table(around(26.0), around(26.0 - drop), around(26.0)).assign(corpus=corpus)
        world |= {f"{folder}/bleu.csv": bleu, f"{folder}/changed.csv": compared(3), f"{folder}/permuted.json": TOKENS}
    return judge("translation-sentences", EVALUATORS["translation-sentences"], write(tmp_path, world))


def around(bleu, n=3):
    return list(bleu + 0.05 * np.arange(n))


def test_the_column_says_n_spread_corpus_and_the_papers_number():
    found = table1.translation(table([26.0, 28.0], [25.0, 27.5])).set_index("variant")
    assert found.loc["original", ["value", "low", "high", "n", "paper"]].tolist() == [27.0, 26.0, 28.0, 2, 26.85]
    assert found.paper["permuted"] == 25.91 and np.isnan(found.paper["copy"])
    assert "not WMT14" in table_translation.corpus_name(table([26.0], [25.0]))


@pytest.mark.parametrize("drop, verdict", [(-9, REPRODUCED), (MARGIN - 0.1, REPRODUCED), (MARGIN + 0.1, NOT)])
def test_the_verdict_follows_the_drop(tmp_path, drop, verdict):
    found = judged(tmp_path, around(26.0), around(26.0 - drop))
    assert (found["verdict"], found["n"], found["converged"]) == (verdict, 3, "not run")
    assert found["effect"] == pytest.approx(drop) and "Home Assistant" in found["measured"]
    assert all(part in found["why"] for part in ("264 of 560", "20.50 → 20.00, p = 0.03", "scores 5.00"))


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("drop", [0.0, 9.0])
def test_one_or_two_seeds_decide_nothing(tmp_path, n, drop):
    found = judged(tmp_path, around(26.0, n), around(26.0 - drop, n))
    assert (found["verdict"], found["needs"]) == (UNDECIDED, f"3 replicates or more; it has {n}")


@pytest.mark.parametrize(("p", "said"), [(0.000999001, "p ≤ 0.001"), (0.0024, "p = 0.002"), (0.2, "p = 0.2")])
def test_a_p_value_at_the_least_of_its_bootstrap_is_a_bound(tmp_path, p, said):
    world = {BLEU: table(around(26.0), around(26.0)), CHANGED: compared(3).assign(p_value=p)}
    folder = write(tmp_path, world | {"translation_tokens/permuted.json": TOKENS})
    assert said in judge("translation-order", EVALUATORS["translation-order"], folder)["why"]


def test_the_row_of_short_strings_says_that_the_corpus_counts(tmp_path):
    words = "The corpus counts too: whole sentences have a row of their own, `translation-sentences`."
    assert judged(tmp_path, around(26.0), around(26.0))["why"].endswith(words)
    assert words not in on_sentences(tmp_path, 0.5)["why"]


@pytest.mark.parametrize(
    "half, full, verdict, converged",
    [
        (0.5, 0.5, REPRODUCED, True),
        (1.0, 0.5, REPRODUCED, True),  # on its way down
        (0.5, 1.2, UNDECIDED, False),  # the next doubling would leave the margin
        (3.0, 0.5, UNDECIDED, False),
        (4.0, 4.0, NOT, True),
        (6.0, 2.5, UNDECIDED, False),
    ],
)
def test_the_budget_gate_wants_the_same_verdict_at_half_the_steps(tmp_path, half, full, verdict, converged):
    """Of strings, from a stage of its own; of sentences, in the stage of their corpus."""
    whole, runs = table(around(26.0), around(26.0 - full), around(26.0)), []
    for variant, bleu in (("continued", around(25.0)), ("permuted", around(25.0 - half))):
        runs += [(f"{variant}-half", seed, b) for seed, b in enumerate(bleu)]
    halves = pd.DataFrame(runs, columns=["variant", "seed", "bleu"]).assign(corpus="interface", chrf=50.0, pairs=560)
    gate = {f"translation_gate/seed{seed}/bleu.csv": own for seed, own in halves.groupby("seed")}
    strings = {BLEU: whole, CHANGED: compared(3), "translation_tokens/permuted.json": TOKENS}
    folder = "translation_beside/help"
    both = {f"{folder}/bleu.csv": pd.concat([whole, halves]).assign(corpus="help")}
    sentences = both | {f"{folder}/changed.csv": compared(3), f"{folder}/permuted.json": TOKENS}
    for claim, world in (("translation-order", strings | gate), ("translation-sentences", sentences)):
        found = judge(claim, EVALUATORS[claim], write(tmp_path / claim, world))
        assert (found["verdict"], found["converged"]) == (verdict, converged)
        assert found["effect"] == pytest.approx(full)
        assert f"After half as many further steps the drop is {half:.2f} BLEU." in found["why"]


@pytest.mark.parametrize("ran", ["seed < 2", "variant == 'permuted-half'"])
def test_a_gate_of_which_parts_have_not_run_says_nothing(tmp_path, ran):
    whole = table(around(26.0), around(25.5), around(26.0))
    runs = [(f"{variant}-half", seed, 25.0) for variant in ("continued", "permuted") for seed in range(3)]
    halves = pd.DataFrame(runs, columns=["variant", "seed", "bleu"]).assign(corpus="interface", chrf=50.0, pairs=560)
    world = {BLEU: whole, CHANGED: compared(3), "translation_tokens/permuted.json": TOKENS}
    world |= {"translation_gate/all/bleu.csv": halves.query(ran)}
    found = judge("translation-order", EVALUATORS["translation-order"], write(tmp_path, world))
    assert (found["verdict"], found["converged"]) == (REPRODUCED, "not run")


def test_drops_are_paired_by_seed(tmp_path):
    """What differs between seeds is gone, and what differs within them is not."""
    assert judged(tmp_path, [20.0, 25.0, 30.0], [19.9, 24.8, 29.7])["verdict"] == REPRODUCED
    found = judged(tmp_path, around(26.0), [20.0, 26.0, 31.0])
    assert found["verdict"] == UNDECIDED and "by the spread of these 3" in found["needs"]


def test_the_altered_model_is_held_against_the_original_trained_on_as_long(tmp_path):
    assert judged(tmp_path, around(20.0), around(20.0), around(23.0))["verdict"] == NOT
    found = judged(tmp_path, around(23.0), around(20.0), around(20.0))
    assert found["verdict"] == REPRODUCED and "20.05 trained on as long" in found["measured"]
    assert "trained on as long" not in judged(tmp_path, around(20.0), around(20.0))["measured"]


def test_a_model_that_has_not_learned_decides_nothing(tmp_path):
    found = judged(tmp_path, around(14.0), around(14.0))
    assert found["verdict"] == UNDECIDED and "BLEU 14.05, copying the source 12.00" in found["needs"]
    assert judged(tmp_path, around(12.1 + LEARNED), around(12.1 + LEARNED))["verdict"] == REPRODUCED


@pytest.mark.parametrize(
    "drops, verdict",
    [((), UNDECIDED), ((0.5,), REPRODUCED), ((4.0,), NOT), ((0.5, 4.0), NOT), ((0.5, 0.4), REPRODUCED)],
)
def test_whole_sentences_have_a_row_of_their_own(tmp_path, drops, verdict):
    found = on_sentences(tmp_path, *drops)
    assert found["verdict"] == verdict and [p["name"] for p in found["parts"]] == ["help", "wmt14"][: len(drops)]
    assert ("LibreOffice" in found["measured"]) == bool(drops)
    assert ("translation.beside.corpora" in found["needs"]) == (not drops)


@pytest.mark.parametrize("layers", [1, 2, 6])
def test_the_figure_is_drawn_to_the_same_bytes(layers):
    cells = itertools.product(("untrained", "original", "permuted"), range(1, layers + 1), (1, 2))
    ranks = pd.DataFrame(cells, columns=["variant", "layer", "head"])
    values = ranks.merge(pd.DataFrame({"index": range(1, 9)}), how="cross")
    values = values.assign(mean=0.5 ** values["index"], sd=0.1)
    ranks = ranks.assign(sentences=50, tokens=16, effective_rank=3.0, effective_rank_sd=0.5)
    same_bytes(lambda: spectra(values, ranks, "toy sentences; smoke profile"))


def changed(**changes):
    """translation of params.yaml with other values: group__key=value."""
    content = params.read(ROOT / "params.yaml").translation
    for name, value in changes.items():
        group, key = name.split("__")
        content[group][key] = value
    return content


@pytest.mark.parametrize("dev", ["b", ["b.en", "b.de"]])
def test_files_are_a_prefix_or_both_sides(dev):
    files = {"data__train": "a", "data__dev": dev, "data__test": "c"}
    assert Translation(**changed(data__corpus="files", **files)).data.dev == dev


@pytest.mark.parametrize(
    "change, message",
    [
        ({"data__corpus": "wmt15"}, "corpus"),
        ({"model__heads": 3}, r"translation\.model\.width = 128"),
        ({"train__batch_tokens": 60}, r"translation\.tokens\.max_tokens = 60"),
        ({"tune__variants": ["continued"]}, "should name permuted"),
        (
            {"gate__parts": ["seed7"]},
            r"translation\.gate\.parts = \['seed7'\] should hold each of continued-half_seed0",
        ),
        ({"data__corpus": "files", "data__train": "x"}, "needs train, dev and test"),
        ({"data__train": ["one"]}, "train"),
        ({"decode__beams": 0}, "beams"),
        ({"train__lr": True}, "lr"),
        ({"tokens__vocabulary": 70000}, "vocabulary"),
        ({"model__unknown": 1}, "unknown"),
    ],
)
def test_what_cannot_work_is_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        Translation(**changed(**change))
