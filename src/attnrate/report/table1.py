"""Table 1: a ViT on CIFAR10 and a Transformer on English-German, on original and on altered orders."""

import pandas as pd

from attnrate.report import table_translation

PAPER = {"original": 0.98, "permuted": 0.96}
NAMES = {"cifar10": "CIFAR10", "toy": "toy images, not CIFAR10"}
ROWS = {
    "original": "original",
    "continued": "original, trained on as long as altered",
    "permuted": "altered: first 10 to the end, from the trained model",
    "unadapted": "altered, the trained model as it is",
    "permuted-scratch": "altered, trained from scratch",
    "random": "random permutation, from the trained model",
    "copy": "the source copied, no model",
}


def cifar10(vit: pd.DataFrame, main_mh: int) -> pd.DataFrame:
    """One row a variant of the main model: variant, value, low, high, n, paper."""
    main = vit[(vit.reading == "qk") & (vit.mh == main_mh)]
    if "pretrained" in set(main.variant):  # the main model started from other weights than the sweep's
        main = main[main.variant != "original"].replace({"variant": {"pretrained": "original"}})
    acc = main.groupby("variant").test_acc.agg(value="mean", low="min", high="max", n="count").reset_index()
    return acc.assign(paper=acc.variant.map(PAPER))


def translation(table: pd.DataFrame) -> pd.DataFrame:
    bleu = table.groupby("variant").bleu.agg(value="mean", low="min", high="max", n="count").reset_index()
    return bleu.assign(paper=bleu.variant.map(table_translation.PAPER))


def join(vit: pd.DataFrame, main_mh: int, data: str, sentences: pd.DataFrame) -> pd.DataFrame:
    """The whole table, long: dataset, metric, variant, value, low, high, n, paper."""
    parts = [
        cifar10(vit, main_mh).assign(dataset=NAMES[data], metric="accuracy"),
        translation(sentences).assign(
            dataset=table_translation.corpus_name(sentences), metric=table_translation.METRIC
        ),
    ]
    table = pd.concat(parts)
    order = table.variant.map({v: i for i, v in enumerate(ROWS)})
    table = table.assign(order=order).dropna(subset="order").sort_values(["dataset", "order"])
    return table[["dataset", "metric", "variant", "value", "low", "high", "n", "paper"]]


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """As the paper prints it: a column for each data set, and the paper's own beside it."""
    shown = pd.DataFrame({"target": list(ROWS.values())}, index=list(ROWS))
    for (dataset, metric), part in table.groupby(["dataset", "metric"], sort=False):
        digits = 2 if metric == table_translation.METRIC else 4
        part = part.set_index("variant")
        text = part.apply(lambda r, d=digits: cell(r.value, r.low, r.high, int(r.n), d), axis=1)
        shown[f"{dataset} ({metric})"] = text.reindex(shown.index).fillna("")
        shown[f"paper ({metric})"] = part.paper.reindex(shown.index).map(lambda v: "" if pd.isna(v) else f"{v:g}")
    return shown


def cell(value: float, low: float, high: float, n: int, digits: int) -> str:
    spread = f" [{low:.{digits}f}–{high:.{digits}f}]" if n > 1 else ""
    return f"{value:.{digits}f}{spread} (n = {n})"


def caption(profile: str) -> str:
    return (
        f"Table 1: performance on original and altered temporal order ({profile} profile; mean [range] over n seeds)."
    )
