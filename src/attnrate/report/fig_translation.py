"""Extra figure: is attention low-rank in translation too? Spectra of encoder self-attention, their effective ranks."""

import pandas as pd

from attnrate.report.style.figure import plt

STYLES = {
    "untrained": ("0.6", ":", "v", "untrained"),
    "original": ("C0", "-", "o", "original"),
    "permuted": ("C1", "--", "s", "altered order"),
}


def spectra(values: pd.DataFrame, ranks: pd.DataFrame, note: str) -> plt.Figure:
    """A panel for each layer, a line a head; then the effective rank of every head."""
    layers = sorted(values.layer.unique())
    shown = layers if len(layers) <= 3 else [layers[0], layers[len(layers) // 2], layers[-1]]
    figure, axes = plt.subplots(1, len(shown) + 1, figsize=(3.4 * (len(shown) + 1), 3.4))
    least, top = values["mean"].min(), values["mean"].max()
    limits = (max(least, top * 1e-6), top * 2)
    for ax, layer in zip(axes, shown, strict=False):
        for variant, (colour, line, _, label) in STYLES.items():
            part = values[(values.layer == layer) & (values.variant == variant)]
            for head, run in part.groupby("head"):
                first = head == part["head"].min()
                ax.plot(run["index"], run["mean"], color=colour, ls=line, lw=1.2, label=label if first else None)
        ax.set(title=f"Layer {layer}", xlabel="index", yscale="log", ylim=limits)
    for ax in axes[1:-1]:
        ax.tick_params(labelleft=False)
        ax.sharey(axes[0])
    axes[0].set_ylabel("singular value over τ")
    rank_panel(axes[-1], ranks, int(values["index"].max()))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    tokens, sentences = int(ranks.tokens.iloc[0]), int(ranks.sentences.iloc[0])
    title = (
        f"Encoder self-attention in translation before the softmax: mean over {sentences} dev and test sentences "
        f"cut to τ = {tokens} tokens; a line a head, bars: standard deviation ({note})"
    )
    figure.suptitle(title, fontsize=9, wrap=True)
    return figure


def rank_panel(ax: plt.Axes, ranks: pd.DataFrame, full: int) -> None:
    """The effective rank of every head by layer, under `full`, the largest possible one."""
    for i, (variant, (colour, _, marker, label)) in enumerate(STYLES.items()):
        part = ranks[ranks.variant == variant]
        x = part.layer + 0.18 * (i - 1) + 0.03 * (part["head"] - part["head"].mean())
        style = {"color": colour, "marker": marker, "ls": "none", "ms": 4, "elinewidth": 0.7}
        ax.errorbar(x, part.effective_rank, part.effective_rank_sd, label=label, **style)
    ax.axhline(full, color="0.4", lw=1, ls="--")
    where = {"xycoords": ("axes fraction", "data"), "xytext": (0, -10), "textcoords": "offset points"}
    ax.annotate(f"largest possible, {full}", (0.02, full), **where, fontsize=8, color="0.35")
    ax.set(title="Effective rank of each head", xlabel="layer", ylim=(0, full * 1.05))
    ax.set_xticks(sorted(ranks.layer.unique()))
    ax.grid(axis="x", visible=False)
