"""Figure 2 and Figure 3(a) on a ViT that others pretrained, every layer and head of it; keys centred."""

import numpy as np
import pandas as pd

from attnrate.report.fig_vit import NORMALISED, violins
from attnrate.report.style.figure import plt
from attnrate.report.table1 import PRETRAINED

CURVES = (  # state, centred, how it is drawn, its name
    ("trained", True, {"color": "C0", "lw": 1.2}, "pretrained, keys centred"),
    ("trained", False, {"color": "C1", "lw": 0.7}, "pretrained, keys as they are"),
    ("untrained", True, {"color": "0.5", "lw": 0.7, "ls": "--"}, "untrained, keys centred"),
)


def curves(ax: plt.Axes, values: pd.DataFrame) -> None:
    """The last layer: a line for each head, mean over images."""
    for state, centred, style, label in CURVES:
        rows = values[(values.state == state) & (values.centred == centred)]
        wide = rows.pivot(index="k", columns="head", values="mean")
        wide = wide.where(wide > 1e-6 * wide.max())  # beyond it is rounding
        for head in wide:
            ax.plot(wide.index, wide[head], **style, label=label if head == wide.columns[0] else None)
    ax.set_yscale("log")
    ax.set_xlabel("k")
    ax.set_ylabel(NORMALISED["tokens"])
    ax.set_title("last layer, each head, mean over images")
    ax.legend()


def heat(ax: plt.Axes, heads: pd.DataFrame, column: str, form: str, title: str) -> None:
    """Layers by heads; the number in each cell."""
    table = heads.pivot_table(index="layer", columns="head", values=column)
    ax.imshow(table, cmap="cividis", aspect="auto", origin="lower")
    middle = (table.min(axis=None) + table.max(axis=None)) / 2
    for (row, col), value in np.ndenumerate(table.to_numpy()):
        ax.text(col, row, form.format(value), ha="center", va="center", fontsize=6, color="wk"[int(value > middle)])
    ax.set_xticks(range(table.shape[1]), table.columns)
    ax.set_yticks(range(table.shape[0]), table.index)
    ax.grid(False)
    ax.set_xlabel("head")
    ax.set_ylabel("layer")
    ax.set_title(title)


def figure(quantiles: pd.DataFrame, heads: pd.DataFrame, values: pd.DataFrame, name: str, note: str) -> plt.Figure:
    """Violins of the first head, spectra of the last layer, and two maps of all layers and heads."""
    drawn = plt.figure(figsize=(9.5, 7.2))
    top, bottom = drawn.add_gridspec(2, 1)
    rows = {layer: part.drop(columns=["layer", "quantile"]).to_numpy() for layer, part in quantiles.groupby("layer")}
    violins(top.subgridspec(1, 2).subplots(sharey=True), rows, "tokens")  # of quantiles, which are spread as images are
    line, rank, spread = bottom.subgridspec(1, 3, width_ratios=(1.3, 1, 1)).subplots()
    curves(line, values)
    own = heads[heads.centred & (heads.state == "trained")]
    heat(rank, own, "energy99", "{:.0f}", "99 % energy rank")
    heat(spread, own, "spread", "{:.2f}", "sd / mean, median over k")
    count = own.groupby("group").n.max().sum()
    drawn.suptitle(f"Figure 2 on {PRETRAINED[name]}: {count} test images ({note}; keys centred)", fontsize=9)
    return drawn
