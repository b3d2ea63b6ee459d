"""Figure 1 as the paper draws it, and the comparison of estimators behind it."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from attnrate.rates.best import best, draws
from attnrate.report.style.figure import head_size_axis, plt, shared_legend

STYLES = (("C0", "o"), ("C1", "s"), ("C2", "^"), ("C4", "D"), ("C5", "v"), ("C3", "P"))  # of the ranks
CURVES = {  # of Figure 1: estimator → name and style
    "best": ("best error found", {"ls": "-"}),
    "trained": ("trained with Muon", {"ls": "--", "mfc": "white", "lw": 1}),
    "paper": ("paper's recipe", {"ls": "-", "ms": 0, "lw": 2.5, "alpha": 0.35}),
}
PAIRINGS = {"drawn": "$\\psi_i = \\varphi_{p(i)}$, p drawn", "same": "$\\psi_i = \\varphi_i$"}
ESTIMATORS = {  # colour, marker, line style
    "paper": ("C3", "v", "-"),
    "trained": ("C4", "D", "-"),
    "constructive": ("C0", "o", "-"),
    "free-kernel": ("C2", "^", "-"),
    "pod": ("C6", "", "--"),
}


def rank_name(rank: str, terms: int) -> str:
    return f"r = ∞ (R = {terms} terms)" if rank == "inf" else f"r = {rank}"


def guide(ax, alpha, curve, label=None) -> None:
    """The paper's grey line m_h^-(2α-1), moved to start at the curve."""
    median, rate = curve.groupby("mh").mse.median(), 2 * alpha - 1
    mh = median.index.to_numpy()
    line = median.iloc[0] * (mh / mh[0]) ** -rate
    ax.plot(mh, line, ":", color="0.45", label=label or f"$m_h^{{-{rate:.3g}}}$", zorder=1)


def band(ax, part, colour, **style) -> None:
    """Median over the replicates (draws of the pairing, seeds), with their range shaded."""
    g = part.groupby("mh").mse
    ax.plot(g.median().index, g.median(), color=colour, **style)
    if g.count().max() > 1:
        ax.fill_between(g.min().index, g.min(), g.max(), color=colour, alpha=0.15, lw=0)


def replicates(table: pd.DataFrame) -> str:
    return f"pairings drawn: {table[table.pairing != 'same'].pairing.nunique()}, seeds: {table.seed.nunique()}"


def ranks_panel(ax, cells: pd.DataFrame, styles: dict) -> None:
    """One α: for each rank the curves of Figure 1 that are there."""
    for (rank, (colour, marker)), (name, (label, style)) in itertools.product(styles.items(), CURVES.items()):
        part = cells[(cells["rank"] == rank) & (cells.estimator == name)]
        if not part.empty:
            band(ax, part, colour, label=f"r = {rank}, {label}", **{"marker": marker, "ms": 4} | style)
    head_size_axis(ax, cells.mh)
    ax.set_yscale("log")


def figure1(table: pd.DataFrame, terms: int, profile: str) -> plt.Figure:
    """Every α, with every rank: drawn pairings above, ψ_i = φ_i below."""
    alphas, ranks = sorted(set(table.alpha)), sorted(set(table["rank"]), key=float)
    styles = dict(zip(ranks, itertools.cycle(STYLES)))
    rows = dict(iter(table.groupby(np.where(table.pairing == "same", "same", "drawn"))))
    size = (0.6 + 2.6 * len(alphas), 1 + 2.3 * len(rows))
    figure, axes = plt.subplots(len(rows), len(alphas), figsize=size, sharex=True, sharey=True, squeeze=False)
    for row, (pairing, part) in zip(axes, rows.items(), strict=True):
        least = best(part).assign(estimator="best")
        for ax, alpha in zip(row, alphas, strict=True):
            ranks_panel(ax, pd.concat([part, least]).query("alpha == @alpha"), styles)
            guide(ax, alpha, least[(least.alpha == alpha) & (least["rank"] == ranks[-1])])
            ax.label_outer()
        row[0].set_ylabel(f"{PAIRINGS[pairing]}\nmean squared error")
    for ax, alpha in zip(axes[0], alphas, strict=True):
        ax.set_title(f"$\\sigma_k = k^{{-{alpha:g}}}$")
    handles = [Line2D([], [], color=c, marker=m, label=rank_name(r, terms)) for r, (c, m) in styles.items()]
    handles += [Line2D([], [], color="0.2", marker="o", label=label, **style) for label, style in CURVES.values()]
    handles.append(Line2D([], [], color="0.45", ls=":", label="$m_h^{-(2\\alpha-1)}$"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    note = (
        f"{profile} profile, {replicates(table)}; median and range; best: least over networks, at the free kernel's m_h"
    )
    figure.suptitle(f"Figure 1: error against head size ({note})", fontsize=8)
    return figure


def estimators_panel(ax, cells: pd.DataFrame, pod: pd.DataFrame, alpha: float, rank: str) -> None:
    """One (α, r): every estimator of `cells`, the exact truncation and the tail sum of `pod`."""
    for name, (colour, marker, line) in ESTIMATORS.items():
        # Where a truncation is exact its error is rounding, which a logarithmic axis would dwell on.
        shown = cells[(cells.estimator == name) & (cells.mse > 1e-12)]
        if not shown.empty:
            label, order = ("POD truncation", 3) if name == "pod" else (name, 2)
            band(ax, shown, colour, marker=marker, ls=line, label=label, ms=3.5, zorder=order)
    exact, tail = pod[pod.tail_sum > 0], "tail sum $\\Sigma_{i>m_h}\\sigma_i^2$"
    band(ax, exact.assign(mse=exact.mse_without_diagonal), "C5", ls="--", label="POD truncation, s ≠ t", lw=1.2)
    band(ax, exact.assign(mse=exact.tail_sum), "0.45", ls="-.", label=tail, lw=1.2)
    if rank == "inf":
        guide(ax, alpha, cells[cells.estimator == "pod"], "guide $m_h^{-(2α-1)}$")
        note = "" if alpha > 1 else ", ill-posed"
        ax.set_title(f"α = {alpha:g}{note}: r = ∞, guide $m_h^{{-{2 * alpha - 1:.3g}}}$", fontsize=9)
    else:
        ax.set_title(f"α = {alpha:g}: r = {rank}", fontsize=9)
    head_size_axis(ax, cells.mh)
    ax.set_yscale("log")


def figure_estimators(table: pd.DataFrame, pod: pd.DataFrame, terms: int, profile: str) -> plt.Figure:
    """Every estimator at r = ∞ (top) and at the largest finite rank (bottom), for each α, on the drawn pairings."""
    table, pod = draws(table), draws(pod)
    alphas = sorted(set(table.alpha))
    ranks = sorted(set(table["rank"]), key=float, reverse=True)[:2]
    size = (3 * len(alphas), 2.9 * len(ranks))
    figure, axes = plt.subplots(len(ranks), len(alphas), figsize=size, squeeze=False, sharex=True)
    for row, rank in zip(axes, ranks, strict=True):
        for ax, alpha in zip(row, alphas, strict=True):
            cells, exact = (t[(t.alpha == alpha) & (t["rank"] == rank)] for t in (table, pod))
            estimators_panel(ax, cells, exact, alpha, rank)
        row[0].set_ylabel("mean squared error")
    for ax in axes[0]:
        ax.set_xlabel("")
    shared_legend(figure, axes.flat, columns=4)
    note = f"{profile} profile, R = {terms} terms for r = ∞, {replicates(table)}; median and range"
    figure.suptitle(f"Estimators of the best error ({note})", fontsize=9)
    return figure
