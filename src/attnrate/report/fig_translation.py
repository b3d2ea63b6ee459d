"""Extra figure: is attention low-rank in translation too? Spectra of encoder self-attention, and their effective ranks."""

import pandas as pd

from attnrate.report.figure import plt

STYLES = {
    "untrained": ("0.6", ":", "v", "untrained"),
    "original": ("C0", "-", "o", "original"),
    "permuted": ("C1", "--", "s", "altered order"),
}


def spectra(values: pd.DataFrame, ranks: pd.DataFrame, note: str) -> plt.Figure:
    """A panel for each layer, a line a head; then the effective rank of every head."""
    layers = sorted(values.layer.unique())
    shown = layers if len(layers) <= 3 else [layers[0], layers[len(layers) // 2], layers[-1]]
    figure, axes = plt.subplots(1, len(shown) + 1, figsize=(3.4 * (len(shown) + 1), 3.4), squeeze=False)
    axes = axes[0]
    for ax, layer in zip(axes, shown, strict=False):
        for variant, (colour, line, _, label) in STYLES.items():
            part = values[(values.layer == layer) & (values.variant == variant)]
            for head, run in part.groupby("head"):
                first = head == part["head"].min()
                ax.plot(run["index"], run["mean"], color=colour, ls=line, lw=1.2, label=label if first else None)
        top = values["mean"].max()
        ax.set(
            title=f"Layer {layer}", xlabel="index", yscale="log", ylim=(max(values["mean"].min(), top * 1e-6), top * 2)
        )
    for ax in axes[1:-1]:
        ax.tick_params(labelleft=False)
        ax.sharey(axes[0])
    axes[0].set_ylabel("singular value over τ")
    tokens, sentences = int(ranks.tokens.iloc[0]), int(ranks.sentences.iloc[0])
    for i, (variant, (colour, _, marker, label)) in enumerate(STYLES.items()):
        part = ranks[ranks.variant == variant]
        axes[-1].errorbar(
            part.layer + 0.18 * (i - 1) + 0.03 * (part["head"] - part["head"].mean()),
            part.effective_rank,
            part.effective_rank_sd,
            color=colour,
            marker=marker,
            ls="none",
            ms=4,
            elinewidth=0.7,
            label=label,
        )
    full = int(values["index"].max())
    axes[-1].axhline(full, color="0.4", lw=1, ls="--")
    axes[-1].annotate(
        f"largest possible, {full}",
        (0.02, full),
        xycoords=("axes fraction", "data"),
        xytext=(0, -10),
        textcoords="offset points",
        fontsize=8,
        color="0.35",
    )
    axes[-1].set(title="Effective rank of each head", xlabel="layer", xticks=layers, ylim=(0, full * 1.05))
    axes[-1].grid(axis="x", visible=False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(
        f"Encoder self-attention in translation before the softmax: mean over {sentences} dev and test sentences cut to "
        f"τ = {tokens} tokens; a line a head, bars: standard deviation ({note})",
        fontsize=9,
        wrap=True,
    )
    return figure
