"""Findings for what is checked exactly: A.2, Propositions 6.2 and 6.3, eqs. (94) to (98), D.1 and D.3."""

from pathlib import Path

import pandas as pd

from attnrate.core.files import read_json
from attnrate.report.claims.ledger import Criterion, Exact, Finding


def density(folder: Path, rule: Criterion) -> Finding:
    d = read_json(folder / "propositions/density.json")
    return Finding(
        f"(28): two inputs {d['inputs_apart']:g} apart give sums that differ by {d['collision']:g}; "
        f"blocks recover every input to {d['recovered']:.1e}",
        [
            Exact("as printed, (28)", d["collision"] > rule.limits["exact"]),
            Exact("blocks that hold x_s", d["recovered"] <= rule.limits["exact"] and d["times_recovered"] == 1),
        ],
        "(28) subtracts ψ_{q,t}(x_t), which F cannot see; the theorem survives by other means.",
        2,
    )


def prop_6_2(folder: Path, rule: Criterion) -> Finding:
    order = pd.read_csv(folder / "propositions/order.csv").set_index("case")
    equal, moved = rule.limits["equal"], order.loc[["moved"], "ratio"]
    positions, outside = (order.deviation[order.index.str.startswith(p)].max() for p in ("positions", "outside"))
    controls = order.loc[["not moved", "separable"], "ratio"].max()
    return Finding(
        f"outputs differ by {positions:.1e} (couplings of positions) and {outside:.1e} (query from outside); "
        f"couplings of inputs: relative smallest singular value {moved.min():.3f}, where a ρ̃ exists {controls:.1e}",
        [
            Exact("couplings of positions", positions <= equal),
            Exact("query from outside", outside <= equal),
            Exact("couplings of inputs", moved.min() <= equal),
        ],
        "The altered target asks with x(p⁻¹(t)) where (8) offers x(t): this refutes the proof, which keeps F and f, "
        "not an infimum over all F, f and ρ, under which C₁ is zero for every target.",
        len(order),
    )


def theta_rho(folder: Path, rule: Criterion) -> Finding:
    m = pd.read_csv(folder / "propositions/mixing.csv")
    return Finding(
        f"causal: deviation {m.causal_deviation.max():.1e}; as printed: {m.future.min():.0%} to {m.future.max():.0%} "
        "of the squared weights are on inputs after t",
        [
            Exact("causal", m.causal_deviation.max() <= rule.limits["exact"]),
            Exact("as printed", m.future.max() <= rule.limits["exact"]),
        ],
        f"(96) drops those inputs, and differs from (94) by up to {m.deviation_96.max():.2g} in an entry.",
        len(m),
    )


def prop_6_3(folder: Path, rule: Criterion) -> Finding:
    f, given = pd.read_csv(folder / "propositions/filters.csv"), read_json(folder / "propositions/rnn.json")
    covered = f[f.norm1 <= 1 + 1e-9]
    examples = given["counter_examples"]
    broken = [
        f"{kernel} ({reading})"
        for kernel, e in examples.items()
        for reading in ("literal", "corrected")
        if e[reading]["exceeds"] and e[reading]["in_space"]
    ]
    slack = 1 + 1e-9
    bounds = bool((f.ratio_96 <= f.bound_96 * slack).all() and (f.ratio_causal <= f.bound_causal * slack).all())
    return Finding(
        f"factor of γ sup e^(s/γ)|ρ(s)|: {covered.ratio_96.min():.2f} to {covered.ratio_96.max():.2f} for (96), "
        f"{covered.ratio_causal.min():.3g} to {covered.ratio_causal.max():.3g} for the causal convolution",
        [
            Exact("kernel of (96)", bool((covered.ratio_96 <= slack).all())),
            Exact("causal convolution", bool((covered.ratio_causal <= slack).all())),
            Exact("as printed", not broken),
        ],
        f"(76) to (78) exceed γ for {' and '.join(broken) or 'no kernel tried'}; Σ|θ_j| e^(∓j/γ) bounds the factors "
        f"{'for every filter' if bounds else 'NOT for every filter'}.",
        len(f),
    )


def rnn_rate(folder: Path, rule: Criterion) -> Finding:
    given = read_json(folder / "propositions/rnn.json")
    attained = max(k["memory"] for k in given["rates"].values())
    least, rough = max(k["hankel"] for k in given["rates"].values()), given["rough"]
    grown = ", ".join(f"{v:.2f} (γ = {g})" for g, v in sorted(rough.items(), key=lambda item: int(item[0])))
    return Finding(
        f"error times m over C_RNN: at least {least:.2g}, attained {attained:.2f}; rough signs: at least {grown}",
        [Exact("kernels of this paper", attained <= 1), Exact("rough kernels", max(rough.values()) <= 1)],
        "In Hankel norm, whose best errors are the Hankel singular values; e^(-s/γ) with Rudin-Shapiro signs has "
        "C_RNN = γ and an error that outgrows C_RNN / m with γ: the rate needs smoothness that D.1 does not state.",
        len(given["rates"]) + len(rough),
    )


def mixing_rank(folder: Path, rule: Criterion) -> Finding:
    r = read_json(folder / "mixing_rank/values.json")
    found, paper = r["quadrature"]["mixed"][:3], r["paper"]["mixed"]
    ranks = [r["rank"]["rho"], r["rank"]["mixed"]]
    close = all(abs(f - p) <= rule.limits["relative"] * p for f, p in zip(found, paper, strict=True))
    digits = ", ".join(f"{v:.4f}" for v in r["grid_256"]["mixed"][:3])
    return Finding(
        f"ranks {ranks[0]} and {ranks[1]}; " + ", ".join(f"{v:.6f}" for v in found),
        [Exact("ranks", ranks == [2, 3]), Exact("values", close)],
        f"A 256-point grid with both end points gives the paper's digits: {digits}.",
        1,
    )


EVALUATORS = {
    "density": density,
    "prop-6.2": prop_6_2,
    "theta-rho": theta_rho,
    "prop-6.3": prop_6_3,
    "rnn-rate": rnn_rate,
    "mixing-rank": mixing_rank,
}
