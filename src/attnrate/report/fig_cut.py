"""Retrained against cut: what a head size costs a model that was trained with it, and one whose heads are cut to it."""

import pandas as pd

from attnrate.laws.vit import BESIDE, SWEEP
from attnrate.report.style.figure import head_size_axis, plt
from attnrate.report.table1 import PRETRAINED

CUTS = {"data": ("C0o-", "cut, by weights and data"), "scores": ("C2^:", "cut, each input's own best")}
RETRAINED = ((SWEEP, "C1s"), (BESIDE, "C3D"))


def _cut(ax: plt.Axes, rows: pd.DataFrame, column: str) -> None:
    for method, (style, label) in CUTS.items():
        part = rows[rows.method == method]
        mean = part.groupby("mh")[column].mean()
        ax.plot(mean.index, mean, style, ms=3, label=label)
        if column == "loss" and part.seed.nunique() == 1:  # of inputs, which seeds share
            ax.fill_between(part.mh, part.loss_low, part.loss_high, color=style[:2], alpha=0.12, lw=0)
        elif part.seed.nunique() > 1:
            ax.plot(part.mh, part[column], style[:3], ms=2, alpha=0.4)
    head_size_axis(ax, rows.mh)


def figure(curves: pd.DataFrame, vit: pd.DataFrame, recipes: tuple[str, str], pretrained: str, note: str) -> plt.Figure:
    """Our ViT, with the sweep of Figure 3(b) beside it, the translation model and a pretrained ViT."""
    drawn, axes = plt.subplots(2, 2, figsize=(9.5, 7))
    own = curves[curves.model == "main"]
    for ax, column, test in ((axes[0, 0], "accuracy", "test_acc"), (axes[0, 1], "loss", "test_loss")):
        _cut(ax, own, column)
        for (variant, style), recipe in zip(RETRAINED, recipes, strict=True):
            rows = vit[(vit.reading == "qk") & (vit.variant == variant)]
            ax.plot(rows.mh, rows[test], style, mfc="none", ms=4, label=f"trained at $m_h$, {recipe}, each seed")
    axes[0, 0].set(ylabel="test accuracy", title="(a) main ViT")
    axes[0, 1].set(ylabel="test cross-entropy", title="(b) main ViT")
    _cut(axes[1, 0], curves[curves.model == "translation"], "loss")
    axes[1, 0].set(ylabel="test cross-entropy per token", title="(c) translation, encoder, decoder and cross-attention")
    _cut(axes[1, 1], curves[curves.model == "pretrained"], "accuracy")
    axes[1, 1].set(ylabel="test accuracy, linear probe", title=f"(d) {PRETRAINED[pretrained]}")
    for ax in axes.flat:
        ax.legend()
    inputs = curves.n.max()
    drawn.suptitle(f"Heads cut after training, all layers at once, {inputs} inputs ({note})", fontsize=9)
    return drawn
