"""Findings for section 5.1: how errors at r = ∞ decay with m_h."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from attnrate.laws.powerlaw import loglog_slope
from attnrate.rates.best import best
from attnrate.report.claims.ledger import Criterion, Finding, Undecided
from attnrate.report.claims.rates import named, table, truncation

Slopes = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]  # of the drawn pairings, and of ψ_i = φ_i


def slopes(curves: pd.DataFrame, x: str = "mh", y: str = "mse") -> pd.DataFrame:
    """Slope of log y against log x, a row for each α, a column for each pairing."""
    found = {
        key: loglog_slope(part[x], part[y])["slope"]
        for key, part in curves.groupby(["alpha", "pairing"])
        if part[x].nunique() >= 3
    }
    if not found:
        raise Undecided("three head sizes at r = ∞")
    return pd.Series(found).unstack().sort_index()


def best_slopes(results: Path, **axes) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of the best network, for the drawn pairings and for ψ_i = φ_i."""
    t, tails = table(results), pd.read_csv(results / "rates_table/pod.csv", dtype={"rank": str, "alpha": float})
    cell = ["pairing", "alpha", "rank", "mh"]
    found = slopes(best(t[t["rank"] == "inf"]).join(tails.set_index(cell).tail_sum, on=cell), **axes)
    return found.drop(columns="same", errors="ignore"), found.filter(["same"])


def cut_slopes(results: Path, **axes) -> tuple[pd.DataFrame, pd.DataFrame]:
    found = slopes(truncation(results), **axes)
    return found.drop(columns="same", errors="ignore"), found.filter(["same"])


def rate_by_alpha(results: Path, rule: Criterion) -> Finding:
    parts, case, measured, beside = [], {}, [], []
    for name, (drawn, same) in (("truncation", cut_slopes(results)), ("best network", best_slopes(results))):
        for (a, low), (b, high) in itertools.pairwise(drawn.iterrows()):
            part = rule.part(f"{name}, α = {a:g} to {b:g}", (low - high).tolist())
            parts.append(part)
            case[part.name] = name
        measured.append(f"{name}: {named(drawn.mean(axis=1).items())}")
        beside += [f"{name}: {named(same['same'].items())}"] if len(same.columns) else []
    why = "ψ_i is paired to φ_i at random inside dyadic blocks; each draw is a replicate."
    if beside:
        measured[-1] += f" [with ψ_i = φ_i: {'; '.join(beside)}]"
        why += " With ψ_i = φ_i, where α ≤ 1 tends to a copy of the input, the decay is not ordered by α."
    return Finding("; ".join(measured), parts, why, len(parts), case)


def values(rule: Criterion, slopes_of: Slopes, results: Path, why: str) -> Finding:
    """Slopes against the tail sums of the targets as they are, which are judged; then against m_h, beside -(2α-1)."""
    (drawn, same), (against_tail, _), parts, case = slopes_of(results), slopes_of(results, x="tail_sum"), [], {}
    for alpha, row in against_tail.iterrows():
        part = rule.part(f"α = {alpha:g}", row.tolist())
        parts.append(part)
        case[part.name] = "α ≤ 1" if alpha <= 1 else "α > 1"
    beside = f" [with ψ_i = φ_i: {named(same['same'].items())}]" if len(same.columns) else ""
    predicted = ", ".join(f"{-(2 * alpha - 1):.2g}" for alpha in drawn.index)
    tails = named((drawn / against_tail).mean(axis=1).items())
    why = f"The targets' tail sums have slopes of about {tails} against m_h here. {why}"
    judged, shown = (named(slopes.mean(axis=1).items()) for slopes in (against_tail, drawn))
    measured = f"slopes against the tail sum {judged}; against m_h {shown}, predicted {predicted}{beside}"
    return Finding(measured, parts, why, drawn.size, case)


def rate_value(results: Path, rule: Criterion) -> Finding:
    why = "With ψ_i = φ_i the term s = t, unseen by (46), flattens the decay."
    return values(rule, cut_slopes, results, why)


def rate_network(results: Path, rule: Criterion) -> Finding:
    why = "The best network beats the truncation most at small m_h, which flattens its curve; it is lower everywhere."
    return values(rule, best_slopes, results, why)


def rate_tail(results: Path, rule: Criterion) -> Finding:
    parts, case, measured = [], {}, []
    for name, y in (("s ≠ t", "mse_without_diagonal"), ("s = t", "mse")):
        drawn, _ = cut_slopes(results, x="tail_sum", y=y)
        for alpha, row in drawn.iterrows():
            part = rule.part(f"{name}, α = {alpha:g}", (row - 1).tolist())
            parts.append(part)
            case[part.name] = name
        measured.append(f"{name}: {named(drawn.mean(axis=1).items())}")
    why = (
        "(46) holds for s ≠ t where the tail is small, α ≥ 1; at α = 0.55 it exceeds 1 and the softmax saturates. With "
        "s = t the kernel's diagonal enters, which no L² distance sees."
    )
    return Finding("slopes against the tail sum, " + "; ".join(measured), parts, why, len(parts), case)


EVALUATORS = {
    "rate-by-alpha": rate_by_alpha,
    "rate-value": rate_value,
    "rate-network": rate_network,
    "rate-tail": rate_tail,
}
