"""Violins of the singular values of a head (Figure 2) and mean spectra over layers and heads (Figure 3a)."""

import numpy as np
import pandas as pd
from matplotlib.ticker import LogFormatter, MaxNLocator

from attnrate.report.fig_vit import NORMALISED, SHOWN
from attnrate.report.style.figure import plt
from attnrate.spectra.measure import Measured
from attnrate.tool.decay import NOISE, solid


def violins(measured: Measured, normalisation: str, title: str) -> plt.Figure:
    """The first head of the first and of the last layer, up to the k that every input has and that is no rounding."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for ax, layer in zip(axes, ("first", "last"), strict=True):
        values = measured.violins[layer][:, :SHOWN]
        values = values[:, ~np.isnan(values).any(0)]
        floor = NOISE * values.max()
        values = values[:, np.median(values, 0) > floor]
        parts = ax.violinplot(np.log10(np.maximum(values, floor)), showmedians=True, showextrema=False, widths=0.85)
        for body in parts["bodies"]:
            body.set(facecolor="C0", alpha=0.5)
        parts["cmedians"].set(color="C1", lw=1.2)
        ax.set_axisbelow(True)
        ax.set_title(f"first head, {layer} layer")
        ax.set_xlabel(f"k, of {measured.violins[layer].shape[1]}")
        shown = values.shape[1]
        ax.set_xticks(
            range(1, shown + 1) if shown < 12 else [k for k in (1, 4, 8, 12, 16, 20, 24, 28, 32) if k <= shown]
        )
    low, high = axes[0].get_ylim()
    ticks = [d * 10.0**e for e in range(int(low) - 1, int(high) + 2) for d in ((1, 2, 5) if high - low < 3 else (1,))]
    ticks = [t for t in ticks if low <= np.log10(t) <= high]
    axes[0].set_yticks(np.log10(ticks), [f"{t:g}" for t in ticks])
    axes[0].set_ylabel(NORMALISED[normalisation])
    figure.suptitle(title, fontsize=9)
    return figure


class Plain(LogFormatter):
    """Plain numbers, also between powers of ten where there are few of them."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def _values(ax: plt.Axes, normalisation: str) -> None:
    """Singular values against k."""
    if any(len(line.get_xdata()) for line in ax.lines):  # all heads may be dead, and a logarithmic axis has no zero
        ax.set_yscale("log")
    ax.yaxis.set_major_formatter(Plain())
    ax.yaxis.set_minor_formatter(Plain(minor_thresholds=(1.5, 0.4)))
    ax.set_xlabel("k")
    ax.set_ylabel(NORMALISED[normalisation])


def _layers(ax: plt.Axes, measured: Measured) -> None:
    depth = len(measured.layers)
    scale = plt.cm.ScalarMappable(plt.Normalize(1, max(2, depth)), plt.get_cmap("cividis"))
    for layer, rows in measured.spectra.groupby("layer"):
        rows = solid(rows.groupby("k", as_index=False).agg({"mean": "mean", "n": "first"}), measured.inputs)
        ax.plot(rows.k, rows["mean"], color=scale.to_rgba(layer), lw=1.2)
    if depth > 1:
        ax.figure.colorbar(scale, ax=ax, label="layer", ticks=MaxNLocator(integer=True), pad=0.02)
    ax.set_title("(a) every layer, mean over heads")


def _heads(ax: plt.Axes, rows: pd.DataFrame, inputs: int) -> None:
    for head, part in rows.groupby("head"):
        part = solid(part, inputs)
        style = (
            {"color": "C0", "zorder": 3, "label": "head 1, ± sd over inputs"}
            if head == 1
            else {"color": "0.7", "lw": 0.8}
        )
        ax.plot(part.k, part["mean"], **style)
        if head == 1:
            low = np.maximum(part["mean"] - part.sd, 0.05 * part["mean"])  # a logarithmic axis has no room for zero
            ax.fill_between(part.k, low, part["mean"] + part.sd, color="C0", alpha=0.2, lw=0)
        elif head == 2:
            ax.lines[-1].set_label("other heads")
    ax.set_title("(b) last layer, every head")
    ax.legend()


def _ranks(ax: plt.Axes, ranks: pd.DataFrame) -> None:
    for i, (name, label) in enumerate(
        (("effective", "effective"), ("energy99", "99 % energy"), ("energy90", "90 % energy"))
    ):
        ax.plot(ranks.layer + 0.15 * (i - 1), ranks[name], "o", color=f"C{i}", ms=2.5, alpha=0.5, mew=0)
        ax.plot(ranks.groupby("layer")[name].mean(), color=f"C{i}", label=label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(0, 1.3 * ranks[["effective", "energy99"]].to_numpy().max())  # room for the legend
    ax.set_xlabel("layer")
    ax.set_ylabel("rank")
    ax.set_title("(c) ranks: heads, and mean over heads")
    ax.legend(loc="upper center", ncols=3, columnspacing=0.8, handlelength=1, handletextpad=0.4)


def spectra(measured: Measured, normalisation: str, title: str) -> plt.Figure:
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.6), width_ratios=(1.15, 1, 1))
    rows = measured.spectra
    _layers(left, measured)
    _heads(middle, rows[rows.layer == rows.layer.max()], measured.inputs)
    _ranks(right, measured.ranks)
    for ax in (left, middle):
        _values(ax, normalisation)
    figure.suptitle(title, fontsize=9)
    return figure


def _grid(ax: plt.Axes, table: pd.DataFrame, title: str) -> None:
    """A number for each layer and head."""
    values = np.ma.masked_invalid(table.to_numpy(float))
    image = ax.imshow(values, aspect="auto", cmap="cividis", extent=(0.5, table.shape[1] + 0.5, len(table) + 0.5, 0.5))
    ax.figure.colorbar(image, ax=ax, pad=0.02)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.grid(False)
    ax.set_xlabel("head")
    ax.set_ylabel("layer")
    ax.set_title(title)


NAMES = {"scores": "scores", "centred": "scores, keys centred", "softmax": "after the softmax"}


def heatmap(found: dict[str, Measured], laws: dict[str, list[dict]], title: str) -> plt.Figure:
    """Layer by head: the effective rank, and how steep singular values fall; a column for each kind of spectrum."""
    figure, axes = plt.subplots(2, len(found), figsize=(4 * len(found), 6), squeeze=False)
    for (top, bottom), (name, measured) in zip(axes.T, found.items(), strict=True):
        _grid(top, measured.ranks.pivot(index="layer", columns="head", values="effective"), f"rank: {NAMES[name]}")
        slopes = pd.DataFrame(
            {"layer": law["layer"], "head": law["head"], "slope": law["slope"]["slope"] if law["slope"] else np.nan}
            for law in laws[name]
        )
        table = slopes.pivot(index="layer", columns="head", values="slope")
        _grid(bottom, table, "slope of $\\log \\sigma_k$ in $\\log k$")
    figure.suptitle(title, fontsize=9)
    return figure


def against(one: Measured, two: Measured, labels: tuple[str, str], normalisation: str, title: str) -> plt.Figure:
    """Two checkpoints: mean spectra of the first and last layer, ranks by layer, and where ranks differ."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.6))
    for i, (measured, label) in enumerate(zip((one, two), labels, strict=True)):
        for layer, style in ((1, "-"), (len(measured.layers), "--")):
            rows = measured.spectra[measured.spectra.layer == layer]
            rows = solid(rows.groupby("k", as_index=False).agg({"mean": "mean", "n": "first"}), measured.inputs)
            left.plot(rows.k, rows["mean"], style, color=f"C{i}", label=f"{label}, layer {layer}")
        middle.plot(measured.ranks.groupby("layer").effective.mean(), "o-", color=f"C{i}", ms=3, label=label)
    _values(left, normalisation)
    left.set_title("(a) mean over heads")
    middle.xaxis.set_major_locator(MaxNLocator(integer=True))
    middle.set_xlabel("layer")
    middle.set_title("(b) effective rank, mean over heads")
    for ax in (left, middle):
        ax.legend(fontsize=6)
    ranks = [m.ranks.pivot(index="layer", columns="head", values="effective") for m in (one, two)]
    _grid(right, ranks[0] - ranks[1], "(c) effective rank, first minus second")
    figure.suptitle(title, fontsize=9)
    return figure
