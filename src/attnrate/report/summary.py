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


def linear(results: Path) -> dict:
    table = pd.read_csv(results / "linear.csv", keep_default_na=False)
    table = table[
        ((table.model == "transformer") & (table.recipe == "centred"))
        | ((table.model == "rnn-bias") & (table.recipe == "population"))
    ]
    table = table[table.alteration.isin(["original", "exchange", "roll", "causal"])]
    names = table.target + " " + table.alteration + (" " + table["filter"]).str.rstrip()
    medians = table.assign(name=names, mse=table.mse.astype(float)).groupby(["model", "name"]).mse.median()
    return {f"log10 mse, {m}": {k: log10(v) for k, v in medians[m].items()} for m in medians.index.levels[0]}


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
    return {
        "train loss": {f"m_h {mh}": loss for mh, loss in sweep.items()},
        "test acc": table[table.mh == table.mh.max()].groupby("variant").test_acc.mean().to_dict(),
    }


def translation(results: Path) -> dict:
    return {"bleu": pd.read_csv(results / "translation.csv").groupby("variant").bleu.mean().to_dict()}


def collect(claims: list[dict], results: Path) -> dict:
    parts = {"rates": rates, "linear": linear, "gallery": gallery, "vit": vit, "translation": translation}
    return {"claims": counts(claims), **{name: part(results) for name, part in parts.items()}}
