"""Figure 2 (violins of the singular values over images) and Figure 3 (spectra and training error against m_h)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from attnrate.laws.fit import AUTHORS_ERROR, AUTHORS_MH, SHAPES
from attnrate.laws.vit import BESIDE, SWEEP, errors, first_head
from attnrate.report.style.figure import head_size_axis, plt

SHOWN = 32  # violins in a panel
NORMALISED = {"tokens": "$\\sigma_k$ / number of tokens", "largest": "$\\sigma_k / \\sigma_1$", "none": "$\\sigma_k$"}


def figure2(images: dict[str, np.ndarray], null: dict[str, np.ndarray], normalisation: str, note: str) -> plt.Figure:
    """The first head of the first and of the last layer, keys centred; images["first"], images["last"] are (N, K).

    null: of the same model untrained.
    """
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    violins(axes, images, normalisation)
    for ax, layer in zip(axes, ("first", "last"), strict=True):
        values = np.log10(np.maximum(null[layer][:, :SHOWN], 1e-12))
        k, (low, middle, high) = np.arange(1, values.shape[1] + 1), np.quantile(values, (0.1, 0.5, 0.9), axis=0)
        ax.plot(k, middle, "--", color="0.45", lw=1, label="untrained, median and 80 % of images")
        ax.fill_between(k, low, high, color="0.45", alpha=0.15, lw=0)
    axes[1].legend()
    count = len(images["first"])
    figure.suptitle(f"Figure 2: singular values over {count} test images, keys centred ({note})", fontsize=9)
    return figure


def violins(axes: Sequence[plt.Axes], images: dict[str, np.ndarray], normalisation: str) -> None:
    for ax, layer in zip(axes, ("first", "last"), strict=True):
        values = np.log10(np.maximum(images[layer][:, :SHOWN], 1e-12))
        parts = ax.violinplot(values, showmedians=True, showextrema=False, widths=0.85)
        for body in parts["bodies"]:
            body.set(facecolor="C0", alpha=0.5)
        parts["cmedians"].set(color="C1", lw=1.2)
        ax.set_title(f"first head, {layer} layer")
        ax.set_xlabel("k")
        ax.set_xticks([k for k in (1, 2, 4, 8, 12, 16, 20, 24, 28, 32) if k <= values.shape[1]])
    axes[0].yaxis.set_major_formatter(lambda v, _: f"$10^{{{v:g}}}$")
    axes[0].set_ylabel(NORMALISED[normalisation])


def spectra_panel(ax: plt.Axes, spectra: pd.DataFrame, reading: str, normalisation: str) -> None:
    rows = first_head(spectra, reading)
    sizes = sorted(rows.mh.unique())
    colours = plt.get_cmap("cividis")(np.linspace(0, 0.9, len(sizes)))
    for mh, colour in zip(sizes, colours, strict=True):
        part = rows[(rows.mh == mh) & (rows["mean"] > 1e-6 * rows["mean"].max())]
        ax.plot(part.k, part["mean"], "o-", color=colour, ms=3, label=f"$m_h$ = {mh}")
        low = np.maximum(part["mean"] - part.sd, 0.05 * part["mean"])  # a logarithmic axis has no room for zero
        ax.fill_between(part.k, low, part["mean"] + part.sd, color=colour, alpha=0.15, lw=0)
    ax.set_yscale("log")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("k")
    ax.set_ylabel(NORMALISED[normalisation])
    ax.set_title(f"(a) {reading}: first head, last layer, keys centred (mean ± sd)")
    ax.legend(ncols=2 if len(sizes) > 5 else 1)


def curve(laws: dict, m: np.ndarray) -> tuple[np.ndarray, str]:
    power = laws["power"]
    y = power["c"] * SHAPES["power"](m, power["a"]) + power["b"]
    low, high = power["low"]["a"], power["high"]["a"]
    if low is None or high is None:  # a law is drawn, but its numbers mean nothing
        ends = "0" if low is None else f"{low:.2f}", "∞" if high is None else f"{high:.2f}"
        return y, f"exponent open, 95 %: {ends[0]} to {ends[1]}"
    return y, f"{power['c']:.3g} $m_h^{{-{power['a']:.3g}}}$ + {power['b']:.3g}"


def error_panel(ax: plt.Axes, vit: pd.DataFrame, fits: dict, reading: str, recipes: tuple[str, str]) -> None:
    m = np.geomspace(1, max(AUTHORS_MH), 200)
    for variant, style, label in ((SWEEP, "C0o", recipes[0]), (BESIDE, "C2s", recipes[1])):
        rows = vit[(vit.reading == reading) & (vit.variant == variant)]
        if len(rows):
            ax.plot(rows.mh, rows.error, style, ms=4, label=f"ours, {label}, each seed")
    if laws := fits["error"][reading]["laws"]:
        inside = m[m <= errors(vit, reading).index.max()]
        y, text = curve(laws, inside)
        ax.plot(inside, y, "-", color="C0", lw=1, label=f"fit: {text}")
    ax.plot(AUTHORS_MH, AUTHORS_ERROR, "^", color="C1", mfc="white", label="authors' points")
    y, text = curve(fits["authors"]["laws"], m)
    ax.plot(m, y, "--", color="C1", lw=1, label=f"fit: {text}")
    ax.plot(m, m**-0.27 + 1.05, ":", color="0.45", label="as printed: $m_h^{-0.27}$ + 1.05")
    head_size_axis(ax, AUTHORS_MH)
    ax.set_ylabel("training error (cross-entropy)")
    ax.set_title(f"(b) {reading}: training error")
    ax.legend()


def figure3(
    vit: pd.DataFrame, spectra: pd.DataFrame, fits: dict, normalisation: str, recipes: tuple[str, str], note: str
) -> plt.Figure:
    """A row of (a) and (b) for each reading of m_h; `recipes` are the names of the sweep's and of the one beside it."""
    readings = list(vit.reading.unique())
    figure, axes = plt.subplots(len(readings), 2, figsize=(9.5, 3.8 * len(readings)), squeeze=False)
    for (left, right), reading in zip(axes, readings, strict=True):
        spectra_panel(left, spectra, reading, normalisation)
        error_panel(right, vit, fits, reading, recipes)
    figure.suptitle(f"Figure 3 ({note})", fontsize=9)
    return figure
