"""Errors against m_h, and the least m_h of every layer."""

import numpy as np

from attnrate.cut.advice import BEST, Advice
from attnrate.laws.fit import SHAPES
from attnrate.report.style.figure import head_size_axis, plt

COLOURS = {"scores": "C2", "weights": "C1", "data": "C0"}
LEAST = 1e-6  # change that is shown
LOSS = {
    "language": "change of cross-entropy",
    "classes": "drop of accuracy",
    "divergence": "divergence / entropy",
    "features": "relative error of outputs",
}


def _curves(ax: plt.Axes, found: Advice, column: str) -> None:
    rows = found.errors[found.errors.layers == "all"]
    for method, part in rows.groupby("method"):
        part = part[part.mh < max(found.sizes)]
        ax.plot(part.mh, part[column], "o-", color=COLOURS[method], ms=3, label=f"by {method}")
        ax.fill_between(part.mh, part[f"{column}_low"], part[f"{column}_high"], color=COLOURS[method], alpha=0.15, lw=0)
    head_size_axis(ax, found.sizes)
    ax.set_xlim(0.9 * min(found.sizes), 1.1 * max(found.sizes))


def _errors(ax: plt.Axes, found: Advice) -> None:
    _curves(ax, found, "scores")
    tails = found.tails[(found.tails.layers == "all") & (found.tails.mh < max(found.sizes))]
    ax.plot(tails.mh, np.sqrt(tails["tail"]), ":", color="0.4", label="root of the tail sum")
    ax.set_ylim(bottom=0)
    ax.set_title("(a) scores, relative error")
    ax.legend()


def _loss(ax: plt.Axes, found: Advice) -> None:
    _curves(ax, found, "change")
    law = found.fits.get(BEST, {}).get("change", {}).get("power")
    if law and law["low"]["a"] is not None and law["high"]["a"] is not None:
        m = np.geomspace(1, max(found.sizes), 100)
        label = f"{law['c']:.3g} $m_h^{{-{law['a']:.3g}}}$ {law['b']:+.3g}"
        ax.plot(m, law["c"] * SHAPES["power"](m, law["a"]) + law["b"], "--", color="C0", lw=0.8, label=label)
    ax.axhline(found.tolerance, color="0.4", lw=0.8, ls=":", label="tolerance")
    ax.set_title(f"(b) {LOSS[found.scan.kind]}, all layers")
    ax.legend()


def _layers(ax: plt.Axes, found: Advice) -> None:
    """The change by each layer alone, and where it keeps the tolerance."""
    rows = found.errors[(found.errors.method == BEST) & ~found.errors.layers.isin(["all", "advised"])]
    if rows.empty:
        rows = found.errors[(found.errors.method == BEST) & (found.errors.layers == "all")].assign(layers="1")
    table = rows.assign(layers=rows.layers.astype(int)).pivot(index="layers", columns="mh", values="change")
    shown = np.log10(table.clip(lower=LEAST).to_numpy(float))
    low, high = shown[:, :-1].min(initial=0), shown[:, :-1].max(initial=np.log10(LEAST))
    shown[:, -1] = np.nan  # heads as they are change nothing
    image = ax.imshow(shown, aspect="auto", cmap="cividis", vmin=low, vmax=max(high, low + 1))
    ax.figure.colorbar(image, ax=ax, pad=0.02, format=lambda v, _: f"$10^{{{v:g}}}$", label=LOSS[found.scan.kind])
    ax.set_xticks(range(table.shape[1]), table.columns)
    ax.set_yticks(range(len(table)), table.index)
    least = found.least[(found.least.method == BEST) & (found.least.layers != "all")].set_index("layers").mh
    for y, layer in enumerate(table.index):
        m = least.get(str(layer), found.least[found.least.method == BEST].mh.iloc[0])
        ax.plot(list(table.columns).index(m), y, "o", mfc="none", mec="red", mew=1.5, ms=7)
    ax.grid(False)
    ax.set_xlabel("head size $m_h$")
    ax.set_ylabel("layer")
    ax.set_title("(c) each layer alone; ○ the least that keeps the tolerance")


def figure(found: Advice, title: str) -> plt.Figure:
    whole, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.6))
    _errors(left, found)
    _loss(middle, found)
    _layers(right, found)
    whole.suptitle(title, fontsize=9)
    return whole
