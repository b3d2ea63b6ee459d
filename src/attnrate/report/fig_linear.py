"""Error against training step for every cell, and learned RNN kernels against the best ones."""

import pandas as pd

from attnrate.report.style.figure import plt, shared_legend

COLOURS = {"rnn": "C0", "rnn-bias": "C5", "transformer": "C1"}


def curves(history: pd.DataFrame, floors: pd.DataFrame, profile: str) -> plt.Figure:
    """A panel for each target that both models learn; thin lines are seeds, grey the exact floors (first draw)."""
    names = [n for n in history.target.unique() if n in set(history[history.model == "transformer"].target)]
    first = floors[floors.draw == 0].fillna("")
    exact = {"/".join(filter(None, (f.target, f.alteration, f.filter))): f for f in first.itertuples()}
    columns = 4
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3 * columns, 2.6 * rows), squeeze=False)
    for ax, name in zip(axes.flat, names, strict=False):
        runs = history[(history.target == name) & history.recipe.isin(["population", "centred", "mixing"])]
        if "centred" in set(runs.recipe):
            runs = runs[runs.recipe != "mixing"]
        for (model, seed), run in runs.groupby(["model", "seed"]):
            first = seed == runs[runs.model == model].seed.min()
            ax.plot(run.step, run.mse, color=COLOURS[model], lw=1, alpha=0.8, label=model if first else None)
        for kind, name_of, style in (("none", "without bias", "--"), ("free", "any bias", ":")):
            value = getattr(exact[name], f"floor_{kind}")
            if value > 1e-9:
                ax.axhline(value, color="0.4", ls=style, lw=1, label=f"exact RNN floor, {name_of}")
        ax.set_yscale("log")
        ax.set_title(name)
        ax.set_xlabel("step")
    for ax in axes[:, 0]:
        ax.set_ylabel("mean squared error")
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    shared_legend(figure, axes.flat, columns=5)
    figure.suptitle(f"Tables 2 and 3: training error against step ({profile} profile; a line a seed)", fontsize=9)
    return figure


def kernels(table: pd.DataFrame, profile: str) -> plt.Figure:
    """Learned kernel cᵀW^sU (a line a seed) against the best kernel any linear RNN can have."""
    names = list(table.target.unique())
    columns = 5
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(2.6 * columns, 2.0 * rows), squeeze=False, sharex=True)
    for ax, name in zip(axes.flat, names, strict=False):
        runs = table[table.target == name]
        best = runs[runs.seed == runs.seed.min()]
        ax.plot(best.s, best.best, color="0.35", lw=3, alpha=0.5, label="best kernel of a linear RNN (exact)")
        for seed, run in runs.groupby("seed"):
            label = "learned, $c^\\top W^s U$" if seed == runs.seed.min() else None
            ax.plot(run.s, run.learned, color="C1", lw=1, label=label)
        ax.set_title(name, fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("lag $s$")
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    title = f"RNN kernels on every reading of the alterations ({profile} profile, no bias, exact error)"
    figure.suptitle(title, fontsize=9)
    return figure
