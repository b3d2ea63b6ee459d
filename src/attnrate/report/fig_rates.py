"""Figure 1 as the paper draws it, and the comparison of estimators behind it."""

import itertools

import numpy as np
import pandas as pd

from attnrate.rates.best import best
from attnrate.report.style.figure import head_size_axis, plt, shared_legend

PAPER_ALPHAS = (0.55, 1.0)
STYLES = (("C0", "o"), ("C1", "s"), ("C2", "^"), ("C4", "D"), ("C5", "v"), ("C3", "P"))  # of the ranks
ESTIMATORS = {  # name → colour, marker, line style
    "paper": ("C3", "v", "-"),
    "trained": ("C4", "D", "-"),
    "constructive": ("C0", "o", "-"),
    "free-kernel": ("C2", "^", "-"),
    "pod": ("C6", "", "--"),
}


def rank_name(rank: str, terms: int) -> str:
    return f"r = ∞ (R = {terms} terms)" if rank == "inf" else f"r = {rank}"


def guide(ax, alpha, curve) -> None:
    """The paper's grey line m_h^-(2α-1), moved to start at the curve."""
    mh, rate = np.array(sorted(curve.mh)), 2 * alpha - 1
    start = curve.sort_values("mh").mse.iloc[0]
    ax.plot(mh, start * (mh / mh[0]) ** -rate, ":", color="0.45", label=f"$m_h^{{-{rate:.3g}}}$", zorder=1)


def band(ax, part, colour, marker, line, label, **style) -> None:
    """Median over seeds, with the range of seeds shaded."""
    g = part.groupby("mh").mse
    ax.plot(g.median().index, g.median(), color=colour, marker=marker, ls=line, label=label, **style)
    if g.count().max() > 1:
        ax.fill_between(g.min().index, g.min(), g.max(), color=colour, alpha=0.2, lw=0)


def figure1(table: pd.DataFrame, terms: int, profile: str) -> plt.Figure:
    """Two decays, every rank: the best error found (solid) and the paper's recipe (faint, hollow)."""
    alphas = [a for a in PAPER_ALPHAS if a in set(table.alpha)] or sorted(set(table.alpha))[:2]
    figure, axes = plt.subplots(1, len(alphas), figsize=(4.1 * len(alphas), 3.6), sharey=True, squeeze=False)
    seeds = table.seed.nunique()
    for ax, alpha, letter in zip(axes[0], alphas, "ab", strict=False):
        rows = table[table.alpha == alpha]
        least = best(rows)
        for rank, (colour, marker) in zip(sorted(set(table["rank"]), key=float), itertools.cycle(STYLES)):
            curve, name = least[least["rank"] == rank], rank_name(rank, terms)
            ax.plot(curve.mh, curve.mse, color=colour, marker=marker, label=f"{name}, best")
            recipe = rows[(rows["rank"] == rank) & (rows.estimator == "paper")]
            band(ax, recipe, colour, marker, "--", f"{name}, paper's recipe", mfc="white", alpha=0.75, lw=1)
        guide(ax, alpha, least[least["rank"] == max(least["rank"], key=float)])
        head_size_axis(ax, rows.mh)
        ax.set_yscale("log")
        ax.set_title(f"({letter}) $\\sigma_k = k^{{-{alpha:g}}}$")
    axes[0, 0].set_ylabel("mean squared error")
    shared_legend(figure, axes[0], columns=3)
    how = "best: least over seeds and estimators, paper's recipe: median and range"
    figure.suptitle(f"Figure 1: error against head size ({profile} profile, {seeds} seeds; {how})", fontsize=8)
    return figure


def panel(ax, cells: pd.DataFrame, pod: pd.DataFrame, alpha: float, rank: str) -> None:
    """One (α, r): every estimator of `cells`, the exact truncation and the tail sum of `pod`."""
    for name, (colour, marker, line) in ESTIMATORS.items():
        # Where a truncation is exact its error is rounding, which a logarithmic axis would dwell on.
        shown = cells[(cells.estimator == name) & (cells.mse > 1e-12)]
        if not shown.empty:
            label, order = ("POD truncation", 3) if name == "pod" else (name, 2)
            band(ax, shown, colour, marker, line, label, ms=3.5, zorder=order)
    exact, tail = pod[pod.tail_sum > 0], "tail sum $\\Sigma_{i>m_h}\\sigma_i^2$"
    ax.plot(exact.mh, exact.mse_without_diagonal, ls="--", color="C5", label="POD truncation, s ≠ t", lw=1.2)
    ax.plot(exact.mh, exact.tail_sum, ls="-.", color="0.45", label=tail, lw=1.2)
    if rank == "inf":
        guide(ax, alpha, cells[cells.estimator == "pod"])
        note = "" if alpha > 1 else ", ill-posed"
        ax.set_title(f"α = {alpha:g}{note}: r = ∞, guide $m_h^{{-{2 * alpha - 1:.3g}}}$", fontsize=9)
    else:
        ax.set_title(f"α = {alpha:g}: r = {rank}", fontsize=9)
    head_size_axis(ax, cells.mh)
    ax.set_yscale("log")


def figure_estimators(table: pd.DataFrame, pod: pd.DataFrame, terms: int, profile: str) -> plt.Figure:
    """Every estimator at r = ∞ (top) and at the largest finite rank (bottom), for each α."""
    alphas = sorted(set(table.alpha))
    ranks = sorted(set(table["rank"]), key=float, reverse=True)[:2]
    size = (3 * len(alphas), 2.9 * len(ranks))
    figure, axes = plt.subplots(len(ranks), len(alphas), figsize=size, squeeze=False, sharex=True)
    for row, rank in zip(axes, ranks, strict=True):
        for ax, alpha in zip(row, alphas, strict=True):
            cells, exact = (t[(t.alpha == alpha) & (t["rank"] == rank)] for t in (table, pod))
            panel(ax, cells, exact, alpha, rank)
        row[0].set_ylabel("mean squared error")
    for ax in axes[0]:
        ax.set_xlabel("")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    labels = ["guide $m_h^{-(2α-1)}$" if label.startswith("$m_h") else label for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    note = f"{profile} profile, R = {terms} terms for r = ∞, {table.seed.nunique()} seeds: median and range"
    figure.suptitle(f"Estimators of the best error ({note})", fontsize=9)
    return figure
