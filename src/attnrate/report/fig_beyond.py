"""What goes beyond the paper: order by depth, mixing by negative mass, heads against rank, the causal mask."""

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm

from attnrate.report.style.figure import plt, shared_legend
from attnrate.report.tables import short

MODELS = {  # kind, depth, affine → title
    ("inputs", 1, True): "one layer, affine $\\hat{F}$",
    ("inputs", 1, False): "one layer, full $\\hat{F}$",
    ("inputs", 2, True): "two layers, affine $\\hat{F}$",
    ("inputs", 2, False): "two layers, full $\\hat{F}$",
    ("positions", 1, False): "control: couplings\nof positions",
    ("outside", 1, False): "control: a token\nfrom outside asks",
}
ORDERS = {"original": "C0", "roll": "C1", "random": "C2"}


def depth(errors: pd.DataFrame, profile: str) -> plt.Figure:
    """Every seed a point, its order a colour; a line at the median."""
    figure, ax = plt.subplots(figsize=(8.6, 3.6))
    for place, (key, _) in enumerate(MODELS.items()):
        own = errors[(errors[["kind", "depth", "affine"]] == list(key)).all(axis=1)]
        shown = [o for o in ORDERS if o in set(own.order)]
        for i, order in enumerate(shown):
            share = own[own.order == order].share
            x = place + 0.24 * (i - (len(shown) - 1) / 2)
            label = {"original": "original order", "roll": "rolled", "random": "random order"}[order]
            ax.plot([x] * len(share), share, "o", ms=5, alpha=0.8, color=ORDERS[order], label=label)
            ax.hlines(share.median(), x - 0.09, x + 0.09, color=ORDERS[order], lw=2)
    ax.axvline(3.5, color="0.7", lw=1)
    ax.set_xticks(range(len(MODELS)), MODELS.values(), fontsize=8)
    ax.set_yscale("log")
    ax.set_ylabel("error over variance")
    shared_legend(figure, [ax], columns=3)
    n = errors.seed.nunique()
    figure.suptitle(
        "Does depth repair order? Models of as many parameters on inputs whose order is changed\n"
        f"(coupling of rank 2, eq. 8; {profile} profile; a point a seed, n = {n}; lines: medians)",
        fontsize=9,
    )
    return figure


def filters(errors: pd.DataFrame, ledger: pd.DataFrame, profile: str) -> plt.Figure:
    """Error over variance against ν: the filters that span it, and those of the ledger's claims, smaller."""
    figure, ax = plt.subplots(figsize=(6.4, 3.9))
    kinds = {
        ("transformer", "mixing"): ("C1", "o", "Transformer"),
        ("transformer", "learned-filter"): ("C0", "s", "with a learned filter in front"),
        ("rnn-bias", "population"): ("C2", "^", "linear RNN"),
        ("hand-set", "constructive"): ("0.4", "_", "Transformer set by hand: what its sizes allow"),
    }
    for (model, recipe), (colour, marker, label) in kinds.items():
        own = errors[(errors.model == model) & (errors.recipe == recipe)]
        beside = ledger[(ledger.model == model) & (ledger.recipe == recipe)]
        ax.plot(beside.nu, beside.mse / beside.variance, marker, ms=3.5, alpha=0.45, color=colour)
        ax.plot(own.nu, own.mse / own.variance, marker, ms=7 if marker == "_" else 6, color=colour, label=label)
    ax.set_yscale("log")
    ax.set_xlabel("negative mass $\\nu$ of the mixed kernel $\\theta * \\rho$")
    ax.set_ylabel("error over variance")
    shared_legend(figure, [ax], columns=2)
    figure.suptitle(
        f"When does mixing hurt, and what does a filter win back? ({profile} profile; a point a filter,\n"
        "one training each; small: the filters of the paper's claims, drawn at random, more steps)",
        fontsize=9,
    )
    return figure


def heads(errors: pd.DataFrame, targets: list[str], budget: int, profile: str) -> plt.Figure:
    """The target's structure against the model's, optimised without a network and trained."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=[1.5, 1], layout="constrained")
    titles = {"free": "optimised heads, no network", "trained": "trained networks of eq. (5)"}
    medians = errors.groupby(["estimator", "target", "heads"]).mse.median()
    positive = medians[medians > 0]
    norm = LogNorm(positive.min(), positive.max())
    for ax, (estimator, title) in zip(axes, titles.items(), strict=True):
        own = errors[errors.estimator == estimator]
        rows = [t for t in targets if t in set(own.target)]
        columns = sorted(own.heads.unique())
        grid = np.array([[medians[estimator, t, h] for h in columns] for t in rows])
        shown = ax.imshow(np.where(grid > 0, grid, np.nan), norm=norm, cmap="viridis_r", aspect="auto")
        for (i, j), value in np.ndenumerate(grid):
            dark = value > 0 and norm(value) > 0.55
            ax.text(j, i, short(value) if value else "exact", ha="center", va="center", color="w" if dark else "k")
        ax.set_xticks(range(len(columns)), [f"{h} x {budget // h}" for h in columns])
        ax.set_yticks(range(len(rows)), [t.replace("x", " x ") for t in rows])
        ax.set_xlabel("model: heads x head size $m_h$")
        ax.set_title(title)
        ax.grid(False)
    axes[0].set_ylabel("target: couplings x rank")
    figure.colorbar(shown, ax=axes, label="mean squared error", shrink=0.9)
    n = errors.draw.nunique()
    figure.suptitle(
        f"Heads against rank at the same budget of {budget} ({profile} profile; medians of {n} draws of the couplings)",
        fontsize=9,
    )
    return figure


def causal(masked: pd.DataFrame, bare: pd.DataFrame, rnn: pd.DataFrame) -> pd.DataFrame:
    """A row for each order of Table 2: what a mask must miss, and medians with and without it."""
    rows = []
    for alteration, name in (("original", "original"), ("exchange", "exchanged"), ("roll", "rolled")):
        own, free, recurrent = (t[(t.alteration == alteration) & (t.target == "exp")] for t in (masked, bare, rnn))
        spread = f"{short(own.mse.min())} to {short(own.mse.max())}, n = {len(own)}"
        rows.append(
            {
                "order": name,
                "floor of a causal model": short(own.floor.iloc[0]),
                "Transformer with a mask": f"{short(own.mse.median())} ({spread})",
                "without (Table 2)": f"{short(free.mse.median())} (n = {len(free)})" if len(free) else "",
                "RNN (Table 2)": f"{short(recurrent.mse.median())} (n = {len(recurrent)})" if len(recurrent) else "",
            }
        )
    return pd.DataFrame(rows)
