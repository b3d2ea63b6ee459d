"""Findings for Proposition B.1 and appendix B.1."""

from pathlib import Path

import pandas as pd

from attnrate.examples.runs import MAIN, STATED, runs
from attnrate.report.claims.ledger import Finding, Untestable, grade_all


def table(results: Path) -> pd.DataFrame:
    return pd.read_csv(results / "examples_table/examples.csv")


def _parts(results: Path, variants: dict[str, str]) -> dict[str, pd.DataFrame]:
    t = table(results)
    parts = {task: runs(t, task, variant) for task, variant in variants.items()}
    if missing := [task for task, part in parts.items() if part.empty]:
        raise Untestable(f"no run of {' and '.join(f'{task} ({variants[task]})' for task in missing)} in this profile")
    return parts


def _medians(parts: dict[str, pd.DataFrame], column: str) -> tuple[dict[str, float], str, str]:
    """Medians over seeds, their list, and the range of seeds behind each."""
    found = {task: part[column].median() for task, part in parts.items()}
    ranges = (f"{task} {part[column].min():.4g} to {part[column].max():.4g}" for task, part in parts.items())
    return found, ", ".join(f"{task} {v:.4g}" for task, v in found.items()), "over seeds: " + ", ".join(ranges)


def _count(parts: dict[str, pd.DataFrame]) -> int:
    return sum(map(len, parts.values()))


def ff_recovered(results: Path, limits: dict) -> Finding:
    parts = _parts(results, MAIN)
    found, listed, spread = _medians(parts, "ff_rmse")
    return Finding(
        f"median rmse {listed}",
        spread,
        _count(parts),
        grade_all([v <= limits[task] for task, v in found.items()]),
        "Measured at single inputs F̂(W_V f̂(x(t))), which is what the proof's constant sequences give.",
    )


def argmax_recovered(results: Path, limits: dict) -> Finding:
    parts = _parts(results, MAIN)
    found, listed, spread = _medians(parts, "argmax_agreement")
    return Finding(
        f"median share {listed}",
        spread,
        _count(parts),
        grade_all([v >= limits["share"] for v in found.values()]),
        "What is missed are near ties, where the rule jumps and the softmax cannot.",
    )


def attention_weights(results: Path, limits: dict) -> Finding:
    parts = _parts(results, {task: MAIN[task] for task in ("mass", "selection")})
    found, listed, spread = _medians(parts, "attention_corr")
    mse = parts["selection"].mse.median()
    return Finding(
        f"median correlation {listed}; MSE of selection {mse:.2g}",
        spread,
        _count(parts),
        grade_all([*(v >= limits["corr"] for v in found.values()), bool(mse <= limits["mse"])]),
        "Mass is given the number of the segment and selection one-hot indices, which the paper does not mention.",
    )


def low_loss_rule(results: Path, limits: dict) -> Finding:
    t = table(results)
    low = t[(t.task == "mass") & (t.mse <= limits["mse"])]
    if low.empty:
        raise Untestable(f"no run on mass with an MSE of at most {limits['mse']:g} in this profile")
    wrong = low[low.attention_corr < limits["corr"]]
    names = ", ".join(
        f"{r.variant} seed {r.seed}: MSE {r.mse:.1e}, correlation {r.attention_corr:.2f}" for r in wrong.itertuples()
    )
    return Finding(
        f"{len(low) - len(wrong)} of {len(low)} runs of low loss attend by the rule",
        f"correlations {low.attention_corr.min():.2f} to {low.attention_corr.max():.2f}",
        len(low),
        grade_all((low.attention_corr >= limits["corr"]).tolist()),
        f"Counter-examples: {names}; a point's norm is carried by its weights on other inputs."
        if names
        else "No counter-example.",
    )


def as_stated(results: Path, limits: dict) -> Finding:
    parts = _parts(results, STATED)
    found, listed, spread = _medians(parts, "attention_corr")
    return Finding(
        f"median correlation {listed}",
        spread,
        _count(parts),
        grade_all([v >= limits["corr"] for v in found.values()]),
        "A token cannot see where its segment ends, so its weights leak past it and some starts get stuck; plain indices are resolved slowly.",
    )


EVALUATORS = {
    "ff-recovered": ff_recovered,
    "argmax-recovered": argmax_recovered,
    "attention-weights": attention_weights,
    "low-loss-rule": low_loss_rule,
    "as-stated": as_stated,
}
