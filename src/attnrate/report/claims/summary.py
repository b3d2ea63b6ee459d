"""The few numbers worth diffing across commits, with names short enough for one screen of `dvc metrics show`.

Errors are base-10 logarithms of medians over all seeds, stuck ones too, since `dvc metrics diff` shows five decimals.
"""

from math import log10
from pathlib import Path

import pandas as pd

from attnrate.examples.runs import MAIN
from attnrate.rates.best import draws
from attnrate.report.claims.ledger import REPRODUCED, counts


def rates(results: Path) -> dict:
    """The slope at r = ∞ and the largest α, mean over draws of the pairing, and the proof's worst error at m_h ≥ r."""
    slopes = draws(pd.read_csv(results / "rates_table/slopes.csv").query("estimator == 'best'"))
    table = pd.read_csv(results / "rates_table/rates.csv", dtype={"rank": str})
    exact = table[(table.estimator == "constructive") & (table.mh >= table["rank"].astype(float))]
    last = slopes[slopes.alpha == slopes.alpha.max()]
    return {
        "slope": last.slope.mean() if len(last) else None,  # two head sizes have none
        "exact": log10(exact.mse.max()) if len(exact) else None,
    }


def linear(results: Path) -> dict:
    """The RNN (rnn) and the Transformer (tf) on e^-s; tf also with inputs exchanged, and mixed by the signed filter."""
    table = pd.read_csv(results / "linear_table/linear.csv", keep_default_na=False).query("target == 'exp'")
    medians = table.groupby(["model", "recipe", "alteration", "filter"]).mse.median()
    rnn, tf = ("rnn-bias", "population"), ("transformer", "centred")
    cells = {
        "rnn": (*rnn, "original", ""),
        "tf": (*tf, "original", ""),
        "tf_order": (*tf, "exchange", ""),
        "tf_mixed": ("transformer", "mixing", "causal", "signed"),
    }
    return {name: log10(medians[cell]) for name, cell in cells.items() if cell in medians}


def examples(results: Path) -> dict:
    """Correlation of attention with the rule, in the worst of the three tasks."""
    table = pd.read_csv(results / "examples_table/examples.csv")
    main = table[table.variant.isin(MAIN.values())].groupby("task")
    return {"corr": main.attention_corr.median().min()}


def vit(results: Path) -> dict:
    """Test accuracy of the main model, trained on in the original and in the altered order."""
    accuracy = pd.read_csv(results / "vit_table/vit.csv").groupby("variant").test_acc.mean()
    return {"acc": accuracy.get("continued"), "acc_order": accuracy.get("permuted")}


def translation(results: Path) -> dict:
    bleu = pd.read_csv(results / "translation_bleu/bleu.csv").groupby("variant").bleu.mean()
    return {"bleu": bleu.get("continued", bleu["original"]), "bleu_order": bleu["permuted"]}


PARTS = {  # by the stage whose results each sums up
    "rates_table": rates,
    "linear_table": linear,
    "examples_table": examples,
    "vit_table": vit,
    "translation_bleu": translation,
}


def collect(claims: list[dict], results: Path) -> dict:
    parts = (part(results) for part in PARTS.values())
    return {"reproduced": counts([c for c in claims if not c["ours"]])[REPRODUCED]} | {
        k: v for part in parts for k, v in part.items()
    }
