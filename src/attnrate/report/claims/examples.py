"""Findings for Proposition B.1 and appendix B.1."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from attnrate.examples.runs import MAIN, STATED, runs
from attnrate.report.claims.ledger import Finding, Untestable, grade_all

Cases = tuple[str, str, int, list[bool]]


def table(results: Path) -> pd.DataFrame:
    return pd.read_csv(results / "examples_table/examples.csv")


def cases(results: Path, variants: dict[str, str], column: str, good: Callable[[str, float], bool]) -> Cases:
    """A case for each task: medians over seeds, the range of seeds behind each, the number of runs, what holds."""
    t = table(results)
    parts = {task: runs(t, task, variant) for task, variant in variants.items()}
    if missing := [f"{task} ({variants[task]})" for task, part in parts.items() if part.empty]:
        raise Untestable(f"no run of {' and '.join(missing)} in this profile")
    medians = {task: part[column].median() for task, part in parts.items()}
    listed = ", ".join(f"{task} {v:.4g}" for task, v in medians.items())
    ranges = (f"{task} {part[column].min():.4g} to {part[column].max():.4g}" for task, part in parts.items())
    n = sum(map(len, parts.values()))
    return listed, f"over seeds: {', '.join(ranges)}", n, [good(task, v) for task, v in medians.items()]


def ff_recovered(results: Path, limits: dict) -> Finding:
    listed, spread, n, holds = cases(results, MAIN, "ff_rmse", lambda task, v: v <= limits[task])
    why = "Measured at single inputs F̂(W_V f̂(x(t))), which is what the proof's constant sequences give."
    return Finding(f"median rmse {listed}", spread, n, grade_all(holds), why)


def argmax_recovered(results: Path, limits: dict) -> Finding:
    listed, spread, n, holds = cases(results, MAIN, "argmax_agreement", lambda _, v: v >= limits["share"])
    why = "What is missed are near ties, where the rule jumps and the softmax cannot."
    return Finding(f"median share {listed}", spread, n, grade_all(holds), why)


def attention_weights(results: Path, limits: dict) -> Finding:
    weighted = {task: MAIN[task] for task in ("mass", "selection")}
    listed, spread, n, holds = cases(results, weighted, "attention_corr", lambda _, v: v >= limits["corr"])
    mse = runs(table(results), "selection", MAIN["selection"]).mse.median()
    verdict = grade_all([*holds, mse <= limits["mse"]])
    why = "Mass is given the number of the segment and selection one-hot indices, which the paper does not mention."
    return Finding(f"median correlation {listed}; MSE of selection {mse:.2g}", spread, n, verdict, why)


def low_loss_rule(results: Path, limits: dict) -> Finding:
    t = table(results)
    low = t[(t.task == "mass") & (t.mse <= limits["mse"])]
    if low.empty:
        raise Untestable(f"no run on mass with an MSE of at most {limits['mse']:g} in this profile")
    rule = low.attention_corr >= limits["corr"]
    names = ", ".join(
        f"{r.variant} seed {r.seed}: MSE {r.mse:.1e}, correlation {r.attention_corr:.2f}"
        for r in low[~rule].itertuples()
    )
    found = f"Counter-examples: {names}; a point's norm is carried by its weights on other inputs."
    return Finding(
        f"{rule.sum()} of {len(low)} runs of low loss attend by the rule",
        f"correlations {low.attention_corr.min():.2f} to {low.attention_corr.max():.2f}",
        len(low),
        grade_all(rule.tolist()),
        found if names else "No counter-example.",
    )


def as_stated(results: Path, limits: dict) -> Finding:
    listed, spread, n, holds = cases(results, STATED, "attention_corr", lambda _, v: v >= limits["corr"])
    why = (
        "A token cannot see where its segment ends, so its weights leak past it and some starts get stuck; "
        "plain indices are resolved slowly."
    )
    return Finding(f"median correlation {listed}", spread, n, grade_all(holds), why)


EVALUATORS = {
    "ff-recovered": ff_recovered,
    "argmax-recovered": argmax_recovered,
    "attention-weights": attention_weights,
    "low-loss-rule": low_loss_rule,
    "as-stated": as_stated,
}
