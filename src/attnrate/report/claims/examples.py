"""Findings for Proposition B.1 and appendix B.1."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from attnrate.examples.runs import MAIN, STATED, runs
from attnrate.report.claims.ledger import Criterion, Exact, Finding, Undecided
from attnrate.report.claims.statistics import Part


def table(results: Path) -> pd.DataFrame:
    return pd.read_csv(results / "examples_table/examples.csv")


def cases(results: Path, variants: dict[str, str]) -> dict[str, pd.DataFrame]:
    """The runs of each task in one of its variants."""
    t = table(results)
    parts = {task: runs(t, task, variant) for task, variant in variants.items()}
    if missing := [f"{task} ({variants[task]})" for task, part in parts.items() if part.empty]:
        raise Undecided(f"a run of {' and '.join(missing)}")
    return parts


def medians(parts: dict[str, pd.DataFrame], column: str) -> str:
    return ", ".join(f"{task} {part[column].median():.4g}" for task, part in parts.items())


def correlations(part: pd.DataFrame, limit: float) -> pd.Series:
    """atanh, less that of the limit."""
    return np.arctanh(part.attention_corr.clip(upper=1 - 1e-12)) - np.arctanh(limit)


def part(rule: Criterion, name: str, runs: pd.DataFrame, effect: Callable[[pd.DataFrame], Sequence[float]]) -> Part:
    """The effect of the runs, and of the same runs at half the steps if they were trained for that too."""
    half = [column for column in runs if column.endswith("_half")]
    before = runs.assign(**{column.removesuffix("_half"): runs[column] for column in half})
    return rule.part(name, effect(runs), list(effect(before)) if half else None)


def ff_recovered(results: Path, rule: Criterion) -> Finding:
    parts, limits = cases(results, MAIN), rule.limits
    untied = runs(table(results), "mass", "untied")
    broken = untied[(untied.mse <= limits["mse"]) & (untied.ff_rmse > limits["mass"])]
    names = ", ".join(f"seed {r.seed}: MSE {r.mse:.1e}, rmse {r.ff_rmse:.2f}" for r in broken.itertuples())
    return Finding(
        f"median rmse {medians(parts, 'ff_rmse')}",
        [
            *(part(rule, t, runs, lambda r, t=t: np.log(r.ff_rmse / limits[t])) for t, runs in parts.items()),
            Exact("mass, untied", False) if names else rule.part("mass, untied", []),
        ],
        "Effects are over the limits; measured at single inputs F̂(W_V f̂(x(t))), as the proof's constant sequences. "
        + (f"Untied counter-examples: {names}." if names else "No counter-example among untied starts, a few of them."),
        sum(map(len, parts.values())) + len(untied),
    )


def argmax_recovered(results: Path, rule: Criterion) -> Finding:
    parts = cases(results, MAIN)
    return Finding(
        f"median share {medians(parts, 'argmax_agreement')}",
        [part(rule, task, parts[task], lambda r: r.argmax_agreement) for task in ("nearest", "selection")],
        "Mass is shown and not judged: its F∘f is not injective, which B.1 asks for.",
        sum(map(len, parts.values())),
    )


def attention_weights(results: Path, rule: Criterion) -> Finding:
    parts = cases(results, {task: MAIN[task] for task in ("mass", "selection")})
    mse = parts["selection"].mse.median()
    least = ", ".join(f"{task} {runs.attention_corr.min():.4g}" for task, runs in parts.items())
    return Finding(
        f"median correlation {medians(parts, 'attention_corr')}; least {least}; MSE of selection {mse:.2g}",
        [part(rule, task, runs, lambda r: correlations(r, rule.limits["corr"])) for task, runs in parts.items()],
        "Mass is given the number of the segment and selection one-hot indices, which the paper does not mention.",
        sum(map(len, parts.values())),
    )


def low_loss_rule(results: Path, rule: Criterion) -> Finding:
    t = table(results)
    low = t[(t.task == "mass") & (t.mse <= rule.limits["mse"])]
    tied, untied = low[low.variant != "untied"], low[low.variant == "untied"]
    if tied.empty:
        raise Undecided(f"a run on mass with an MSE of at most {rule.limits['mse']:g}")
    broken = untied[untied.attention_corr < rule.limits["corr"]]
    names = ", ".join(
        f"seed {r.seed}: MSE {r.mse:.1e}, correlation {r.attention_corr:.2f}" for r in broken.itertuples()
    )
    found = f"Counter-examples: {names}; a point's norm is carried by its weights on other inputs."

    def by_seed(r: pd.DataFrame) -> pd.Series:  # the variants of a seed are one replicate
        return correlations(r, rule.limits["corr"]).groupby(r.seed).mean()

    # One counter-example refutes "always"; a few runs without one prove nothing.
    other = Exact("untied start", False) if names else rule.part("untied start", [])
    return Finding(
        f"{(low.attention_corr >= rule.limits['corr']).sum()} of {len(low)} runs of low loss attend by the rule "
        f"(untied: {len(untied) - len(broken)} of {len(untied)})",
        [part(rule, "tied start", tied, by_seed), other],
        found if names else "No counter-example among the untied starts, which proves nothing.",
        len(low),
    )


def as_stated(results: Path, rule: Criterion) -> Finding:
    parts = cases(results, STATED)
    return Finding(
        f"median correlation {medians(parts, 'attention_corr')}",
        [part(rule, task, runs, lambda r: correlations(r, rule.limits["corr"])) for task, runs in parts.items()],
        "A token cannot see where its segment ends, so its weights leak past it; plain indices are resolved slowly.",
        sum(map(len, parts.values())),
    )


EVALUATORS = {
    "ff-recovered": ff_recovered,
    "argmax-recovered": argmax_recovered,
    "attention-weights": attention_weights,
    "low-loss-rule": low_loss_rule,
    "as-stated": as_stated,
}
