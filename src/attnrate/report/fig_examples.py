"""Figures 4, 5 and 6: the attention of one input beside the true weights, what it links, and F̂∘f̂ against F∘f."""

import numpy as np
import pandas as pd
from matplotlib.patheffects import withStroke

from attnrate.examples.runs import MAIN, median_run, runs
from attnrate.report.style.figure import plt

GREEN, RED, INK = "C2", "C1", "0.25"
HALO = withStroke(linewidth=2.5, foreground="white")
LEARNED = "$\\hat F∘\\hat f(x)$"
NUMBER = {"nearest": 4, "mass": 5, "selection": 6}
RULE = {
    "nearest": "y(t) is the point of V nearest to $u_t$",
    "mass": "at a token (★) y is the norm of its segment's centre of gravity, at a point the point's own norm",
    "selection": "y(t) is the average of the three items that s(t) names",
}


def matrix(ax, weights: np.ndarray, title: str, ticks: list[str], xlabel: str, ylabel: str) -> None:
    """Weights (τ, τ) in blue, with every number that would not print as .00."""
    ax.imshow(weights, vmin=0, vmax=1, cmap="Blues")
    for (t, s), w in np.ndenumerate(weights):
        if w >= 0.005:
            text = "1" if w >= 0.995 else f"{w:.2f}".lstrip("0")
            ax.text(s, t, text, ha="center", va="center", fontsize=7.5, color="white" if w > 0.55 else INK)
    ax.set_xticks(range(len(ticks)), ticks)
    ax.set_yticks(range(len(ticks)), ticks)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)


def link(ax, a, b, weight: float) -> None:
    """A line from a to b, as wide and as dark as the weight."""
    if weight >= 0.02:
        ax.plot(*np.transpose([a, b]), color=INK, lw=0.4 + 4.5 * weight, alpha=min(1, 0.25 + weight), zorder=1)


def dots(ax, xy: np.ndarray, colour: str, marker: str, labels: list[str], name: str, size=60) -> None:
    ax.scatter(*xy.T, s=size, color=colour, marker=marker, edgecolors="white", linewidths=0.8, zorder=3, label=name)
    style = {"color": colour, "fontsize": 9, "path_effects": [HALO], "zorder": 6}
    for point, label in zip(xy, labels, strict=True):
        ax.annotate(label, point, xytext=(6, 5), textcoords="offset points", **style)


def plane(ax, low: float, title: str, columns: int) -> None:
    margin = 0.08 * (1 - low)
    limits = (low - margin, 1 + margin)
    ax.set(title=title, aspect="equal", xlim=limits, ylim=limits, xlabel="first coordinate", ylabel="second coordinate")
    below(ax, columns)


def below(ax, columns: int) -> None:
    """The legend under the axes."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns, handletextpad=0.4, columnspacing=1.2)


def relation_nearest(ax, x: np.ndarray, attention: np.ndarray) -> None:
    u, v = x[:, :2], x[:, 2:]
    for t, s in np.ndindex(attention.shape):
        link(ax, u[t], v[s], attention[t, s])
    dots(ax, u, GREEN, "o", [f"$u_{t}$" for t in range(len(u))], "set U (queries)")
    dots(ax, v, RED, "s", [f"$v_{s}$" for s in range(len(v))], "set V (candidates)")
    plane(ax, -1, "(b) What attention links: line width = weight", columns=2)


def relation_mass(ax, x: np.ndarray, attention: np.ndarray) -> None:
    """Each token stands where the points lie on average under its attention; a ring marks the true centre."""
    token = (x == 0).all(-1)
    segment, points = token.cumsum() - 1, x[:, :2]
    for t, colour, marker in zip(np.flatnonzero(token), (GREEN, RED), "os", strict=True):
        weights = np.where(token, 0, attention[t])
        centre = weights @ points / weights.sum()
        for s in np.flatnonzero(~token):
            link(ax, centre, points[s], weights[s])
        mine = np.flatnonzero((segment == segment[t]) & ~token)
        mass = x[mine, 2]
        dots(ax, points[mine], colour, marker, [str(s) for s in mine], f"segment of ★{t}, area = mass", 30 + 150 * mass)
        dots(ax, centre[None], colour, "*", [f"★{t}"], "average by attention", 170)
        true = mass @ points[mine] / mass.sum()
        ax.scatter(*true, s=230, facecolors="none", edgecolors=INK, zorder=4, label="true centre of gravity")
    plane(ax, 0, "(b) What each token ★ links: line width = weight", columns=2)


def stacked(ax, xy: np.ndarray, colour: str, marker: str, labels: list[str], shift: int) -> None:
    """Dots one below the other, their labels on the left (shift < 0) or on the right."""
    ax.scatter(*xy.T, s=70, color=colour, marker=marker, edgecolors="white", zorder=3)
    style = {"color": colour, "fontsize": 8.5, "ha": "right" if shift < 0 else "left", "va": "center"}
    for point, label in zip(xy, labels, strict=True):
        ax.annotate(label, point, xytext=(shift, 0), textcoords="offset points", **style)


def relation_selection(ax, x: np.ndarray, attention: np.ndarray) -> None:
    tau = len(x)
    outputs, inputs = (np.stack([np.full(tau, at), -np.arange(tau)], 1) for at in (0.0, 1.0))
    for t, s in np.ndindex(attention.shape):
        link(ax, outputs[t], inputs[s], attention[t, s])
    chosen = [", ".join(f"{s:.0f}" for s in named) for named in x[:, 2:]]
    stacked(ax, outputs, GREEN, "o", [f"y({t})  {{{names}}}" for t, names in enumerate(chosen)], -9)
    stacked(ax, inputs, RED, "s", [f"v({s})" for s in range(tau)], 9)
    ax.set(xlim=(-0.75, 1.25), ylim=(0.5 - tau, 1.2), title="(b) What attention links: line width = weight")
    ax.text(-0.3, 0.6, "outputs, s(t) in braces", color=GREEN, ha="center")
    ax.text(1, 0.6, "inputs", color=RED, ha="center")
    ax.axis("off")


def identity(ax, panels: dict, ff: np.ndarray, rmse: float) -> None:
    true = panels["ff_true"]
    low, high = true.min(), true.max()
    for k, (colour, marker) in enumerate((("C0", "o"), ("C4", "^"))):
        ax.scatter(true[:, k], ff[:, k], s=9, color=colour, marker=marker, alpha=0.6, lw=0, label=f"coordinate {k + 1}")
    ax.plot([low, high], [low, high], "--", color="black", lw=1, label="F∘f: identity")
    ax.set(title=f"(c) $\\hat F∘\\hat f$ against F∘f, rmse {rmse:.3f}", xlabel="F∘f(x) = v", ylabel=LEARNED)
    ax.set_aspect("equal")
    ax.legend(loc="upper left", markerscale=1.5, handletextpad=0.3)


def contour(ax, panels: dict, ff: np.ndarray, rmse: float) -> None:
    """Random points at random positions with random masses, as the paper draws it; dashed circles: the norm."""
    x, levels = panels["ff_x"], np.linspace(0, 1.4, 15)
    filled = ax.tricontourf(x[:, 0], x[:, 1], ff[:, 0], levels=levels, cmap="cividis", extend="both")
    grid = np.linspace(0, 1, 101)
    norm = np.hypot(*np.meshgrid(grid, grid))
    lines = ax.contour(grid, grid, norm, levels=levels[2::2], colors="white", linestyles="--", linewidths=1)
    ax.clabel(lines, fontsize=8, fmt="%.1f")
    ax.grid(False)
    ax.figure.colorbar(filled, ax=ax, shrink=0.8, label=LEARNED, ticks=levels[::2])
    ax.set_title(f"(c) $\\hat F∘\\hat f$ (colour), F∘f = |x| (dashed), rmse {rmse:.3f}")
    ax.set(aspect="equal", xlabel="first coordinate", ylabel="second coordinate")


RELATION = {"nearest": relation_nearest, "mass": relation_mass, "selection": relation_selection}
RECOVERED = {"nearest": identity, "mass": contour, "selection": identity}


def ticks(task: str, x: np.ndarray) -> list[str]:
    token = (x == 0).all(-1) if task == "mass" else np.zeros(len(x), dtype=bool)
    return [f"★{t}" if token[t] else str(t) for t in range(len(x))]


def spread(part: pd.DataFrame, column: str, form: str) -> str:
    return f"{part[column].median():{form}} ({part[column].min():{form}} to {part[column].max():{form}})"


def of_run(panels: dict, run: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Attention (τ, τ) and F̂∘f̂ (K, d_out) of one run."""
    i, j = list(panels["variants"]).index(run.variant), list(panels["seeds"]).index(run.seed)
    return panels["attention"][i, j], panels["ff"][i, j]


def panel_row() -> tuple[plt.Figure, np.ndarray]:
    return plt.subplots(1, 4, figsize=(15.2, 4.7), width_ratios=(1, 1, 1, 1.1))


def figure(task: str, table: pd.DataFrame, panels: dict, note: str) -> plt.Figure:
    """The run of median loss: attention, true weights, the relation, F∘f."""
    part = runs(table, task, MAIN[task])
    run = median_run(part)
    attention, ff = of_run(panels, run)
    f, axes = panel_row()
    labels = ticks(task, panels["x"]), "input s", "output t"
    matrix(axes[0], attention, "(a) Learned attention A(t, s) of one input", *labels)
    matrix(axes[1], panels["true"], "True weights of the same input", *labels)
    RELATION[task](axes[2], panels["x"], attention)
    RECOVERED[task](axes[3], panels, ff, run.ff_rmse)
    f.suptitle(f"Figure {NUMBER[task]}: {RULE[task]}", fontsize=13)
    text = (
        f"Shown: the seed of median loss ({run.seed}). Median and range over {len(part)} seeds: "
        f"argmax agreement {spread(part, 'argmax_agreement', '.3f')}, "
        f"correlation of attention with the true weights {spread(part, 'attention_corr', '.4f')},\n"
        f"largest deviation of a weight {spread(part, 'attention_maxdev', '.2f')}, "
        f"test MSE {spread(part, 'mse', '.1e')}. {note}, $m_h$ = {run.mh}, variant {run.variant}."
    )
    f.supxlabel(text, fontsize=9, color=INK)
    return f


def loss_panel(ax, mass: pd.DataFrame, level: float) -> None:
    """Every run on mass, with what counts as a low loss shaded."""
    variants = mass.groupby("variant", sort=False)
    for (variant, part), colour, marker in zip(variants, ("C0", "C5", "C1"), "os^", strict=False):
        ax.scatter(part.mse, part.attention_corr, color=colour, marker=marker, s=45, label=variant)
    left, right, lowest = mass.mse.min() / 2, mass.mse.max() * 2, mass[mass.mse <= level].attention_corr.min()
    ax.axvspan(left, level, color="0.93", zorder=0, label="low loss")
    ax.set(xlabel="test MSE", xscale="log", xlim=(left, right), title="(d) Every run: loss against attention")
    ax.set(ylabel="correlation of attention with the rule", ylim=(min(0, lowest) - 0.05, 1.05))
    below(ax, columns=2)


def counterexample(table: pd.DataFrame, panels: dict, note: str, limits: dict) -> plt.Figure:
    """Mass: the run of low loss whose attention is farthest from the rule, beside the run of Figure 5.

    `limits` are those of the claim low-loss-rule: what loss is low, and which correlation is the rule.
    """
    mass = table[table.task == "mass"]
    good = median_run(runs(table, "mass", MAIN["mass"]))
    level = max(limits["mse"], good.mse)
    low = mass[mass.mse <= level]
    bad = low.loc[low.attention_corr.idxmin()]
    f, axes = panel_row()
    labels = ticks("mass", panels["x"]), "input s", "output t"
    for ax, letter, run, colour, marker in zip(axes, "ab", (good, bad), ("C0", "C1"), "o^", strict=False):
        attention, ff = of_run(panels, run)
        name = f"{run.variant}, seed {run.seed}"
        title = f"({letter}) {name}\nMSE {run.mse:.1e}, correlation {run.attention_corr:.2f}"
        matrix(ax, attention, title, *labels)
        style = {"s": 9, "color": colour, "marker": marker, "alpha": 0.6, "lw": 0}
        axes[2].scatter(panels["ff_true"][:, 0], ff[:, 0], label=f"{name}: rmse {run.ff_rmse:.3f}", **style)
    axes[2].plot([0, 1.4], [0, 1.4], "--", color="black", lw=1, label="F∘f: the norm")
    axes[2].set(title="(c) $\\hat F∘\\hat f$ against F∘f", xlabel="F∘f(x) = |x|", ylabel=LEARNED)
    below(axes[2], columns=1)
    loss_panel(axes[3], mass, level)
    if bad.attention_corr < limits["corr"]:
        found = "a low loss does not make attention the rule"
        why = "A point without weight on itself can pass on its norm only by how it weighs the others. "
    else:
        found, why = "no run of low loss whose attention is not the rule", ""
    f.suptitle(f"Centre of gravity: {found}", fontsize=13)
    f.supxlabel(f"{why}Input and true weights as in Figure 5. {note}, $m_h$ = {good.mh}.", fontsize=9, color=INK)
    return f
