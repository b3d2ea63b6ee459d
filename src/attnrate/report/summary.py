"""The few numbers worth diffing across commits; errors as logarithms, since `dvc metrics diff` shows five decimals."""

from math import log10
from pathlib import Path

import pandas as pd

from attnrate.report.claims import counts


def rates(results: Path) -> dict:
    slopes = pd.read_csv(results / "rates_slopes.csv").query("estimator == 'best'")
    table = pd.read_csv(results / "rates.csv", dtype={"rank": str})
    exact = table[(table.estimator == "constructive") & (table.mh >= table["rank"].astype(float))]
    return {
        "slope": {f"alpha {r.alpha:g}": r.slope for r in slopes.itertuples()},
        "worst log10 mse at m_h >= r": log10(exact.mse.max()) if len(exact) else None,
    }


CELLS = ("exp original", "exp exchange", "exp roll", "exp causal signed", "uniform original")


def linear(results: Path) -> dict:
    table = pd.read_csv(results / "linear.csv", keep_default_na=False)
    table = table[table.recipe.isin(["centred", "population"]) & (table.model != "rnn")]
    names = (table.target + " " + table.alteration + " " + table["filter"]).str.rstrip()
    medians = table.assign(name=names).groupby(["model", "name"]).mse.median()
    return {
        f"log10 mse, {m}": {c: log10(medians[m, c]) for c in CELLS if (m, c) in medians}
        for m in ("rnn-bias", "transformer")
    }


def gallery(results: Path) -> dict:
    table = pd.read_csv(results / "gallery.csv")
    main = table[table.variant.isin(["plain", "segment-id", "one-hot"])].groupby("task")
    return {
        "argmax agreement": main.argmax_agreement.median().to_dict(),
        "attention corr": main.attention_corr.median().to_dict(),
    }


def vit(results: Path) -> dict:
    table = pd.read_csv(results / "vit.csv").query("reading == 'qk'")
    sweep = table[table.variant == "original"].groupby("mh").train_loss.mean()
    accuracy = table[table.mh == table.mh.max()].groupby("variant").test_acc.mean()
    return {
        "train loss": {f"m_h {mh}": sweep[mh] for mh in (sweep.index.min(), sweep.index.max())},
        "test acc": {v: accuracy[v] for v in ("original", "continued", "permuted") if v in accuracy},
    }


def translation(results: Path) -> dict:
    bleu = pd.read_csv(results / "translation.csv").groupby("variant").bleu.mean()
    return {"bleu": {v: bleu[v] for v in ("original", "permuted")}}


def collect(claims: list[dict], results: Path) -> dict:
    parts = {"rates": rates, "linear": linear, "gallery": gallery, "vit": vit, "translation": translation}
    return {"claims": counts(claims), **{name: part(results) for name, part in parts.items()}}
