"""The translation column of Table 1, its claim, and the extra figure."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from attnrate.report import figure, table1, table_translation
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, Untestable
from attnrate.report.claims.translation import EVALUATORS
from attnrate.report.fig_translation import spectra
from attnrate.schemas.translation import Translation

LIMITS = {"near": 1.5, "far": 4.0, "learned": 5.0}
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


def table(original, altered, copy=12.0):
    rows = [("copy", None, copy)]
    rows += [("original", seed, b) for seed, b in enumerate(original)] + [
        ("unadapted", s, 5.0) for s in range(len(original))
    ]
    rows += [("permuted", seed, b) for seed, b in enumerate(altered)]
    found = pd.DataFrame(rows, columns=["variant", "seed", "bleu"]).astype({"seed": "Int64"})
    return found.assign(corpus="interface", chrf=50.0, signature=SIGNATURE, pairs=560)


def judge(tmp_path, *args, **kwargs):
    table(*args, **kwargs).to_csv(tmp_path / "translation.csv", index=False)
    return EVALUATORS["translation-order"](tmp_path, LIMITS)


def test_the_column_says_n_spread_corpus_and_the_papers_number():
    found = table1.translation(table([26.0, 28.0], [25.0, 27.5])).set_index("variant")
    assert found.loc["original", ["value", "low", "high", "n", "paper"]].tolist() == [27.0, 26.0, 28.0, 2, 26.85]
    assert found.paper["permuted"] == 25.91 and np.isnan(found.paper["copy"])
    assert "not WMT14" in table_translation.corpus_name(table([26.0], [25.0]))


@pytest.mark.parametrize("altered, verdict", [(27.0, REPRODUCED), (24.6, REPRODUCED), (24.0, PARTLY), (20.0, NOT)])
def test_the_verdict_follows_the_drop(tmp_path, altered, verdict):
    finding = judge(tmp_path, [26.0], [altered])
    assert finding.verdict == verdict and finding.n == 1 and "one seed" in finding.spread
    assert "Home Assistant" in finding.measured and "5.00" in finding.why


def test_drops_are_paired_by_seed(tmp_path):
    assert judge(tmp_path, [26.0, 28.0], [25.5, 26.0]).spread == "drops 0.50 to 2.00 over seeds"


def test_a_model_that_has_not_learned_decides_nothing(tmp_path):
    with pytest.raises(Untestable, match=r"BLEU 14\.00, copying the source 12\.00"):
        judge(tmp_path, [14.0], [14.0])


@pytest.mark.parametrize("layers", [1, 2, 6])
def test_the_figure_is_drawn_to_the_same_bytes(layers):
    keys = [
        (v, layer, h) for v in ("untrained", "original", "permuted") for layer in range(1, layers + 1) for h in (1, 2)
    ]
    values = pd.DataFrame(
        [(*k, i, 2.0**-i, 0.1) for k in keys for i in range(1, 9)],
        columns=["variant", "layer", "head", "index", "mean", "sd"],
    )
    ranks = pd.DataFrame(
        [(*k, 50, 16, 3.0, 0.5) for k in keys],
        columns=["variant", "layer", "head", "sentences", "tokens", "effective_rank", "effective_rank_sd"],
    )
    for name in ("a", "b"):
        figure.save(spectra(values, ranks, "toy sentences; smoke profile"), Path(f"{name}.svg"), Path(f"{name}.png"))
    assert (
        Path("a.svg").read_bytes() == Path("b.svg").read_bytes()
        and Path("a.png").read_bytes() == Path("b.png").read_bytes()
    )


GOOD = {
    "corpus": "toy",
    "data_folder": None,
    "train": None,
    "dev": None,
    "test": None,
    "vocabulary": 400,
    "max_tokens": 60,
    "seeds": [0],
    "variants": ["permuted"],
    "width": 16,
    "depth": 2,
    "heads": 2,
    "ff": 32,
    "dropout": 0.1,
    "smoothing": 0.1,
    "batch_tokens": 400,
    "accumulate": 1,
    "steps": 6,
    "tune_steps": 4,
    "max_steps": None,
    "lr": "1e-3",
    "tune_lr": 1e-3,
    "schedule": "linear",
    "warmup": 0.1,
    "clip": 1.0,
    "checkpoint": 2,
    "average": 2,
    "average_every": 2,
    "beams": 2,
    "length_penalty": 0.6,
    "decode_batch": 16,
    "spectra_tokens": 8,
}


def test_every_parameter_is_described():
    assert Translation(**GOOD).lr == 1e-3
    assert all(f.description for f in Translation.model_fields.values())
    assert Translation(**GOOD | {"corpus": "files", "train": "a", "dev": ["b.en", "b.de"], "test": "c"}).dev == [
        "b.en",
        "b.de",
    ]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"corpus": "wmt15"}, "corpus"),
        ({"heads": 3}, r"translation\.width = 16"),
        ({"batch_tokens": 60}, r"translation\.max_tokens = 60"),
        ({"variants": ["continued"]}, "should name permuted"),
        ({"corpus": "files", "train": "x"}, r"needs translation\.train"),
        ({"train": ["one"]}, "train"),
        ({"beams": 0}, "beams"),
        ({"lr": True}, "true or false"),
        ({"vocabulary": 70000}, "vocabulary"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_what_cannot_work_is_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        Translation(**GOOD | change)
