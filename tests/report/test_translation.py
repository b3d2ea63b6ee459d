"""The translation column of Table 1, its claim, and the extra figure."""

import itertools

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from attnrate.core import params
from attnrate.report import table1, table_translation
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, Untestable
from attnrate.report.claims.translation import EVALUATORS
from attnrate.report.fig_translation import spectra
from attnrate.schemas.translation import Translation
from tests.conftest import ROOT
from tests.report.common import LIMITS, same_bytes, write

NEAR, FAR, LEARNED = (LIMITS["translation-order"][key] for key in ("near", "far", "learned"))


def table(original, altered, continued=(), copy=12.0):
    scores = {"original": original, "unadapted": [5.0] * len(original), "permuted": altered, "continued": continued}
    rows = [(variant, seed, b) for variant, bleu in scores.items() for seed, b in enumerate(bleu)]
    found = pd.DataFrame([("copy", None, copy), *rows], columns=["variant", "seed", "bleu"])
    return found.astype({"seed": "Int64"}).assign(corpus="interface")


def judge(tmp_path, *args, **kwargs):
    results = write(tmp_path, {"translation_bleu/bleu.csv": table(*args, **kwargs)})
    return EVALUATORS["translation-order"](results, LIMITS["translation-order"])


def test_the_column_says_n_spread_corpus_and_the_papers_number():
    found = table1.translation(table([26.0, 28.0], [25.0, 27.5])).set_index("variant")
    assert found.loc["original", ["value", "low", "high", "n", "paper"]].tolist() == [27.0, 26.0, 28.0, 2, 26.85]
    assert found.paper["permuted"] == 25.91 and np.isnan(found.paper["copy"])
    assert "not WMT14" in table_translation.corpus_name(table([26.0], [25.0]))


@pytest.mark.parametrize(
    "drop, verdict",
    [(-1, REPRODUCED), (NEAR - 0.1, REPRODUCED), (NEAR + 0.1, PARTLY), (FAR - 0.1, PARTLY), (FAR + 0.1, NOT)],
)
def test_the_verdict_follows_the_drop(tmp_path, drop, verdict):
    finding = judge(tmp_path, [26.0], [26.0 - drop])
    assert finding.verdict == verdict and finding.n == 1 and "one seed" in finding.spread
    assert "Home Assistant" in finding.measured and "5.00" in finding.why


def test_drops_are_paired_by_seed(tmp_path):
    assert judge(tmp_path, [26.0, 28.0], [25.5, 26.0]).spread == "drops 0.50 to 2.00 over seeds"


def test_the_altered_model_is_held_against_the_original_trained_on_as_long(tmp_path):
    """Whichever is higher; without `continued` the finding says that the original had fewer steps."""
    assert judge(tmp_path, [20.0], [20.0], [20.0 + FAR + 0.1]).verdict == NOT
    assert judge(tmp_path, [20.0 + FAR + 0.1], [20.0], [20.0]).verdict == NOT
    assert "+1.00" in judge(tmp_path, [20.0], [21.0], [21.0]).why
    assert "fewer steps" in judge(tmp_path, [20.0], [20.0]).why


def test_a_model_that_has_not_learned_decides_nothing(tmp_path):
    with pytest.raises(Untestable, match=r"BLEU 14\.00, copying the source 12\.00"):
        judge(tmp_path, [14.0], [14.0])
    assert judge(tmp_path, [12.1 + LEARNED], [12.1 + LEARNED]).verdict == REPRODUCED


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
