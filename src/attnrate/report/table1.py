"""Table 1: a ViT on CIFAR10 and a Transformer on English-German, on original and on altered orders."""

import pandas as pd

from attnrate.report import table_translation

PAPER = {"original": 0.98, "permuted": 0.96}
NAMES = {"cifar10": "CIFAR10", "toy": "toy images, not CIFAR10"}
PRETRAINED = {"dinov2-saliency": "DINOv2 ViT-S/14, fine-tuned for saliency", "toy": "random weights"}
ROWS = {
    "original": "original",
    "continued": "original, trained on as long as altered",
    "permuted": "altered: first 10 to the end, from the trained model",
    "unadapted": "altered, the trained model as it is",
    "permuted-scratch": "altered, trained from scratch",
    "random": "random permutation, from the trained model",
    "copy": "the source copied, no model",
}


def by_variant(table: pd.DataFrame, score: str, paper: dict[str, float]) -> pd.DataFrame:
    found = table.groupby("variant")[score].agg(value="mean", low="min", high="max", n="count").reset_index()
    return found.assign(paper=found.variant.map(paper))


def cifar10(vit: pd.DataFrame, main_mh: int) -> pd.DataFrame:
    """One row a variant of the main model: variant, value, low, high, n, paper."""
    main = vit[(vit.reading == "qk") & (vit.mh == main_mh)]
    main = main[~main.variant.isin(["original", "beside"])].replace({"variant": {"main": "original"}})  # no sweep's
    return by_variant(main, "test_acc", PAPER)


def translation(table: pd.DataFrame) -> pd.DataFrame:
    return by_variant(table, "bleu", table_translation.PAPER)


def join(vit: pd.DataFrame, main_mh: int, data: str, sentences: pd.DataFrame) -> pd.DataFrame:
    """The whole table, long: dataset, metric, variant, value, low, high, n, paper."""
    images = cifar10(vit, main_mh).assign(dataset=NAMES[data], metric="accuracy")
    corpus = table_translation.corpus_name(sentences)
    table = pd.concat([images, translation(sentences).assign(dataset=corpus, metric=table_translation.METRIC)])
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


def caption(profile: str, signature: str) -> str:
    """The signature is sacreBLEU's: how its BLEU was computed."""
    how = f"{profile} profile; mean [range] over n seeds; BLEU by sacreBLEU, {signature}"
    return f"Table 1: performance on original and altered temporal order ({how})."
