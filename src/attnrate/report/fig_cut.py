"""Retrained against cut: what a head size costs a model that was trained with it, and one whose heads are cut to it.

All are changes from full heads on the same inputs: the cut models see a few test images, the retrained all of them,
and what those few have of their own is more than what most head sizes cost.
"""

import pandas as pd

from attnrate.laws.vit import BESIDE, SWEEP
from attnrate.report.style.figure import head_size_axis, plt
from attnrate.report.table1 import PRETRAINED

CUTS = {"data": ("C0", "o-", "by weights and data"), "scores": ("C2", "^:", "by each input's own best")}
RETRAINED = ((SWEEP, "C1s"), (BESIDE, "C3D"))
ACCURACY, LOSS = "accuracy, change from full heads", "loss, change from full heads"


def changes(rows: pd.DataFrame) -> pd.DataFrame:
    """Of one model's curves: `gain` of accuracy and `rise` of loss against its own full heads, seed by seed.

    `change` is a drop of accuracy where there are labels, else a relative change of the loss; its interval is over
    inputs, each with itself uncut.
    """
    by = ["seed", "method"]
    full = rows.loc[rows.groupby(by).mh.transform("max") == rows.mh].set_index(by).loss
    full = pd.MultiIndex.from_frame(rows[by]).map(full)
    rise = rows.loss - full
    if rows.accuracy.notna().all():
        ends = {"gain": -rows.change, "gain_low": -rows.change_high, "gain_high": -rows.change_low}
    else:
        ends = {"rise_low": rows.change_low * full, "rise_high": rows.change_high * full}
    return rows[[*by, "mh"]].assign(rise=rise, **ends)


def _cut(ax: plt.Axes, rows: pd.DataFrame, column: str) -> None:
    """Mean over seeds, which have the inputs in common: so does their interval not shrink with them."""
    ax.axhline(0, color="0.4", lw=0.8)
    for method, (colour, style, label) in CUTS.items():
        part = rows[rows.method == method]
        mean = part.drop(columns="method").groupby("mh").mean()
        ax.plot(mean.index, mean[column], style, color=colour, ms=3, label=f"cut, {label}")
        if f"{column}_low" in mean:
            ax.fill_between(mean.index, mean[f"{column}_low"], mean[f"{column}_high"], color=colour, alpha=0.12, lw=0)
        if part.seed.nunique() > 1:
            ax.plot(part.mh, part[column], style[0], color=colour, ms=2, alpha=0.4)
    head_size_axis(ax, rows.mh)


def _retrained(ax: plt.Axes, vit: pd.DataFrame, column: str, recipes: tuple[str, str]) -> None:
    for (variant, style), recipe in zip(RETRAINED, recipes, strict=True):
        rows = vit[(vit.reading == "qk") & (vit.variant == variant)]
        change = rows[column] - rows[rows.mh == rows.mh.max()][column].mean()
        ax.plot(rows.mh, change, style, mfc="none", ms=4, label=f"trained at $m_h$ by {recipe}, each seed")


def figure(
    curves: pd.DataFrame, vit: pd.DataFrame, recipes: tuple[str, str], pretrained: str, test: str, note: str
) -> plt.Figure:
    """Our ViT, with the sweep of Figure 3(b) beside it, the translation model and a pretrained ViT; test: its size."""
    drawn, ((a, b, c), (d, e, key)) = plt.subplots(2, 3, figsize=(11, 6))
    main, translation, tuned = (changes(curves[curves.model == m]) for m in ("main", "translation", "pretrained"))
    panels = (
        (a, main, "gain", ACCURACY, "(a) main ViT, accuracy"),
        (b, main, "rise", LOSS, "(b) main ViT, loss"),
        (c, translation, "rise", LOSS, "(c) translation, loss per token"),
        (d, tuned, "gain", ACCURACY, "(d) pretrained ViT, accuracy of a linear probe"),
        (e, tuned, "rise", LOSS, "(e) pretrained ViT, loss of a linear probe"),
    )
    for ax, rows, column, label, title in panels:
        _cut(ax, rows, column)
        ax.set_ylabel(label)
        ax.set_title(title)
    for ax, column in ((a, "test_acc"), (b, "test_loss")):
        _retrained(ax, vit, column, recipes)
    inputs = f"Cut models: the same {curves.n.max()} inputs\nat every $m_h$, all layers at once.\n"
    text = f"{inputs}Trained at $m_h$: {test}.\nBands: 95 % over inputs, each against\nitself with full heads.\n"
    key.axis("off")
    key.legend(*a.get_legend_handles_labels(), loc="upper left", title=f"{text}(d), (e): {PRETRAINED[pretrained]}.")
    key.get_legend().get_title().set(fontsize=8, multialignment="left")
    drawn.suptitle(f"Heads cut after training, and heads trained at that size ({note})", fontsize=9)
    return drawn
