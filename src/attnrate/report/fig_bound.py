"""Both regimes of the bound (17) at r = ∞: with the network's m_FF, and with m_FF → ∞, which leaves its first term."""

import pandas as pd

from attnrate.report.fig_rates import PAIRINGS
from attnrate.report.style.figure import head_size_axis, plt, shared_legend


def errors(ax, cells: pd.DataFrame) -> None:
    """A line for each pairing, thin where it is drawn, and a cross where the error is above the bound as printed."""
    for pairing, part in cells.groupby("pairing"):
        kind, width, line = ("same", 1.6, "--") if pairing == "same" else ("drawn", 0.7, "-")
        ax.plot(part.mh, part.l1, color="C2", lw=width, ls=line, label=f"error, {PAIRINGS[kind]}")
    above = cells[cells.l1 > cells.literal]
    ax.plot(above.mh, above.l1, "x", color="C6", ms=5, zorder=3, label="error above the bound as printed")
    ax.set_yscale("log")
    head_size_axis(ax, cells.mh)
    powers = [m for m in sorted(set(cells.mh)) if m & (m - 1) == 0]  # more ticks would touch where m_h goes to 128
    ax.set_xticks(powers, [str(m) for m in powers])


def figure_bound(
    bounds: pd.DataFrame, truncation: pd.DataFrame, width: int, terms: tuple[int, int], profile: str
) -> plt.Figure:
    """For each α > 1 the network of the proof with (17) and its two terms, the kernel alone with the first term.

    The first term is that of every pairing. C₂ depends on the pairing: of the second term the least is drawn.
    `root` has the constants of the proof too, as rates/theory.py says.
    """
    bounds = bounds[bounds["rank"] == "inf"]
    alphas = sorted(set(bounds.alpha))
    alphas = [alpha for alpha in alphas if alpha > 1] or alphas  # r = ∞ is ill-posed elsewhere
    size = (1 + 3.2 * len(alphas), 6)
    figure, axes = plt.subplots(2, len(alphas), figsize=size, squeeze=False, sharex="row", sharey="row")
    for (top, bottom), alpha in zip(axes.T, alphas, strict=True):
        networks, kernels = (t[t.alpha == alpha] for t in (bounds, truncation))
        errors(top, networks)
        errors(bottom, kernels)
        whole, first = networks.groupby("mh").literal.min(), kernels.groupby("mh")[["literal", "root"]].min()
        printed = {"color": "C1", "label": "first term, as printed"}
        top.plot(first.literal[first.index <= max(whole.index)], **printed)
        top.plot((whole - first.literal).dropna(), color="C4", label="second term, least over pairings")
        top.plot(whole, color="C6", ls=":", label="bound (17), their sum")
        bottom.plot(first.literal, **printed)
        bottom.plot(first.root, color="C0", label="first term, with the square root")
        top.set_title(f"$\\sigma_k = k^{{-{alpha:g}}}$")
    regimes = (f"network of the proof, $m_{{FF}} = {width}$", "kernel alone, $m_{FF} \\to \\infty$")
    for ax, regime, n, t in zip(axes[:, 0], regimes, terms, (bounds, truncation), strict=True):
        drawn = t[t.pairing != "same"].pairing.nunique()
        ax.set_ylabel(f"{regime}\nR = {n} terms, pairings drawn: {drawn}\n$L^1$ error, summed over t")
    shared_legend(figure, axes.flat, columns=3)
    title = f"Both regimes of the bound (17) at r = ∞: with its second term, and without ({profile} profile)"
    figure.suptitle(title, fontsize=9)
    return figure
