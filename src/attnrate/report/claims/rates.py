"""Findings for Theorem 4.1, section 5.1, A.1 and D.3."""

import itertools
from pathlib import Path

import pandas as pd

from attnrate.core.files import read_json
from attnrate.laws.powerlaw import loglog_slope
from attnrate.rates.best import best
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, Finding, Untestable, grade, grade_all

COPY = "with ψ_i = φ_i and α ≤ 1 the target tends to the copy H_t = x(t) as R grows"


def table(results: Path) -> pd.DataFrame:
    return pd.read_csv(results / "rates_table/rates.csv", dtype={"rank": str})


def equivariance(results: Path, limits: dict) -> Finding:
    r = read_json(results / "equivariance/deviation.json")
    without, with_ = r["without_positions"], r["with_positions"]
    verdict = grade_all([without <= limits["equal"], with_ >= limits["different"]])
    return Finding(
        f"{without:.1e} without, {with_:.1e} with position encoding",
        f"largest of {r['permutations']} permutations",
        r["models"],
        verdict,
        "The deviation without positions is rounding error in double precision.",
    )


def bound(results: Path, limits: dict) -> Finding:
    b = pd.read_csv(results / "rates_table/bounds.csv", dtype={"rank": str})
    ratio = {r: (b.l1 / b[r]).max() for r in ("literal", "constants", "root")}
    verdict = REPRODUCED if ratio["literal"] <= 1 else PARTLY if min(ratio.values()) <= 1 else NOT
    return Finding(
        f"error / bound at most {ratio['literal']:.3g} (literal), {ratio['constants']:.3g} (constants corrected), "
        f"{ratio['root']:.3g} (with the square root)",
        f"largest over {len(b)} cells",
        len(b),
        verdict,
        "The factor τ² and the growth of the second term make the bound loose, so its missing square root never shows.",
    )


def width(results: Path, limits: dict) -> Finding:
    sweep = pd.read_csv(results / "rates_constructive/widths.csv")
    if sweep.width.nunique() < 3:
        raise Untestable("fewer than three widths in this profile")
    medians = (part.groupby("width").l1.median() for _, part in sweep.groupby("alpha"))
    fits = [loglog_slope(m.index, m) for m in medians]
    values = [f["slope"] for f in fits]
    return Finding(
        f"slopes {min(values):.2f} to {max(values):.2f}",
        f"95 % half-widths up to {max(f['high'] - f['slope'] for f in fits):.2f}",
        len(sweep),
        grade_all([v <= -limits["beta"] for v in values]),
        "The network interpolates between even knots, which is what β = 2 assumes.",
    )


def finite_rank(results: Path, limits: dict) -> Finding:
    t = table(results)
    cells = t[(t.estimator == "constructive") & (t["rank"] != "inf")]
    cells = cells[cells.mh >= cells["rank"].map(float)]
    if cells.empty:
        raise Untestable("no cell with m_h ≥ r in this profile")
    worst = cells.groupby("alpha").mse.max()
    return Finding(
        f"largest MSE {worst.max():.1e}",
        f"{cells.mse.min():.1e} to {cells.mse.max():.1e} over cells",
        len(cells),
        grade_all((worst <= limits["mse"]).tolist()),
        "What remains is the error of the fitted basis functions, not of the attention.",
    )


def rank_order(results: Path, limits: dict) -> Finding:
    b = best(table(results)).pivot_table(index=["pairing", "alpha", "mh"], columns="rank", values="mse")
    ranks = sorted(b.columns, key=float)
    pairs = [
        (pairing, alpha, mh, row[small] <= limits["slack"] * row[large])
        for small, large in itertools.pairwise(ranks)
        for (pairing, alpha, mh), row in b.iterrows()
        if mh < float(large)
    ]
    if not pairs:
        raise Untestable("fewer than two ranks in this profile")
    exceptions = [f"({pairing}, α = {alpha:g}, m_h = {mh})" for pairing, alpha, mh, holds in pairs if not holds]
    share = 1 - len(exceptions) / len(pairs)
    why = f"Exceptions: {', '.join(exceptions)}; {COPY}, which is easy." if exceptions else "No exception."
    return Finding(
        f"holds in {share:.0%} of {len(pairs)} pairs",
        "no spread: best over seeds and estimators",
        len(pairs),
        grade(share, limits["most"], limits["some"]),
        why,
    )


def _slopes(results: Path) -> tuple[pd.DataFrame, str, str]:
    """For each α the mean slope of the best error over the drawn pairings, and all that their 95 % intervals cover."""
    s = pd.read_csv(results / "rates_table/slopes.csv")
    s = s[s.estimator == "best"].sort_values("alpha")
    drawn, same = s[s.pairing != "same"], s[s.pairing == "same"]
    if drawn.empty:
        raise Untestable("no drawn pairing with three head sizes at r = ∞ in this profile")
    found = drawn.groupby("alpha", as_index=False).agg(
        predicted=("predicted", "mean"),
        slope=("slope", "mean"),
        low=("low", "min"),
        high=("high", "max"),
        n=("n", "sum"),
    )
    measured = ", ".join(f"{r.slope:.2f} (α = {r.alpha:g})" for r in found.itertuples())
    if len(same):
        measured += f" [with ψ_i = φ_i: {', '.join(f'{slope:.2f}' for slope in same.slope)}]"
    spread = f"95 % intervals, joined over the draws of the pairing, {drawn.pairing.nunique()}: "
    return found, measured, spread + ", ".join(f"[{r.low:.2f}, {r.high:.2f}]" for r in found.itertuples())


def rate_by_alpha(results: Path, limits: dict) -> Finding:
    s, measured, spread = _slopes(results)
    pairs = list(itertools.pairwise(s.itertuples()))
    holds = [b.high < a.low and b.high < 0 for a, b in pairs]
    steeper = (f"from α = {a.alpha:g} to {b.alpha:g}" for (a, b), h in zip(pairs, holds, strict=True) if h)
    some = f"It steepens {', '.join(steeper) or 'nowhere'} only."
    why = "Every step in α steepens the slope." if all(holds) else some
    return Finding(measured, spread, int(s.n.sum()), grade_all(holds), why)


def rate_value(results: Path, limits: dict) -> Finding:
    s, measured, spread = _slopes(results)
    close = ((s.slope - s.predicted).abs() <= limits["relative"] * s.predicted.abs()).tolist()
    wanted = ", ".join(f"{p:.2f}" for p in s.predicted)
    return Finding(
        f"{measured}; predicted {wanted}",
        spread,
        int(s.n.sum()),
        grade_all(close),
        "The tail sum of σ², cut at R terms, has itself not reached its slope at these m_h; with ψ_i = φ_i the term "
        f"s = t flattens the slopes further, and {COPY}.",
    )


def recipe(results: Path, limits: dict) -> Finding:
    t = table(results)
    t = t[t.alpha >= limits["alpha"]]
    cell = ["pairing", "alpha", "rank", "mh"]
    paper = t[t.estimator == "paper"].groupby(cell).mse.median()
    least = best(t).set_index(cell).mse
    ratio = (paper / least).dropna()
    if ratio.empty:
        raise Untestable("no cell of the paper's recipe with α large enough in this profile")
    share = (ratio <= limits["factor"]).mean()
    return Finding(
        f"within {limits['factor']:g}x of the best in {share:.0%} of cells; median ratio {ratio.median():.3g}",
        f"ratios {ratio.min():.3g} to {ratio.max():.3g}",
        len(ratio),
        grade(share, limits["most"], limits["some"]),
        "Default training stops on a plateau far above what the same network can represent.",
    )


def mixing_rank(results: Path, limits: dict) -> Finding:
    r = read_json(results / "mixing_rank/values.json")
    found, paper = r["quadrature"]["mixed"][:3], r["paper"]["mixed"]
    ranks = [r["rank"]["rho"], r["rank"]["mixed"]]
    close = all(abs(f - p) <= limits["relative"] * p for f, p in zip(found, paper, strict=True))
    verdict = (REPRODUCED if close else PARTLY) if ranks == [2, 3] else NOT
    digits = ", ".join(f"{v:.4f}" for v in r["grid_256"]["mixed"][:3])
    return Finding(
        f"ranks {ranks[0]} and {ranks[1]}; " + ", ".join(f"{v:.6f}" for v in found),
        "exact",
        1,
        verdict,
        f"A 256-point grid with both end points gives the paper's digits: {digits}.",
    )


EVALUATORS = {
    "equivariance": equivariance,
    "bound": bound,
    "width": width,
    "finite-rank": finite_rank,
    "rank-order": rank_order,
    "rate-by-alpha": rate_by_alpha,
    "rate-value": rate_value,
    "recipe": recipe,
    "mixing-rank": mixing_rank,
}
