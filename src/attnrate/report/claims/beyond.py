"""Findings for what goes beyond the paper (docs/beyond.md): predictions of our own, by the ledger's rules."""

from pathlib import Path

import numpy as np
import pandas as pd

from attnrate.core.files import read_json
from attnrate.report.claims.ledger import Criterion, Exact, Finding, Undecided
from attnrate.report.claims.statistics import Part, ratios
from attnrate.report.tables import short

FHAT = {True: "affine F̂", False: "full F̂"}
STUCK = 0.9  # of the variance: a run with more has learned nothing


def table(results: Path, stage: str) -> pd.DataFrame:
    return pd.read_csv(results / stage / "errors.csv", keep_default_na=False, na_values={"mse_half": [""], "mh": [""]})


def cell(rows: pd.DataFrame, index: str = "seed", **key) -> pd.DataFrame:
    found = rows[(rows[list(key)] == pd.Series(key)).all(axis=1)].set_index(index).sort_index()
    if found.empty:
        raise Undecided(f"runs of {', '.join(map(str, key.values()))}; this profile has none")
    return found


def log_ratio(rule: Criterion, name: str, above: pd.DataFrame, below: pd.DataFrame, **changed) -> Part:
    """log of a ratio of errors over variance, paired by index; a run that learned nothing counts as infinite."""
    a, b = above.align(below, join="inner", axis=0)
    return rule.part(name, ratios(a.share, b.share, a.share > STUCK, b.share > STUCK), **changed)


def medians(*cells: pd.DataFrame, of: str = "share") -> list[str]:
    return [short(c[of].median()) for c in cells]


def depth_floor(results: Path, rule: Criterion) -> Finding:
    floor = read_json(results / "beyond_depth/floor.json")
    return Finding(
        f"largest error at least {short(floor['roll'])} rolled; {short(floor['original'])} in the original order",
        [
            Exact("rolled", floor["roll"] >= rule.limits["floor"]),
            Exact("original", floor["original"] <= rule.limits["zero"]),
        ],
        "Given z(t) such a model is a ratio of two sums of functions of one input each, and the target is not.",
        2,
    )


def orders(results: Path, rule: Criterion, depth: int, why: str) -> Finding:
    """Each order against the original one, for both kinds of F̂, at one depth."""
    errors, parts, case, words, n = table(results, "beyond_depth"), [], {}, [], 0
    for affine, name in FHAT.items():
        key = {"kind": "inputs", "depth": depth, "affine": affine}
        original, *others = cells = [cell(errors, order=o, **key) for o in ("original", "roll", "random")]
        for order, other in zip(("roll", "random"), others, strict=True):
            parts.append(log_ratio(rule, f"{name}, {order}", other, original))
            case[parts[-1].name] = name
        found = medians(*cells)
        words.append(f"{name}: {found[0]} → {found[1]} (roll), {found[2]} (random)")
        n += sum(map(len, cells))
    return Finding(f"median error over variance, {'; '.join(words)}", parts, why, n, case)


def depth_one(results: Path, rule: Criterion) -> Finding:
    return orders(
        results, rule, 1, "The target asks with z(p⁻¹(t)), one layer with z(t); a full F̂ can learn some of it."
    )


def depth_two(results: Path, rule: Criterion) -> Finding:
    errors = table(results, "beyond_depth")
    moved = errors[(errors.kind == "inputs") & (errors.order != "original")]
    best = moved.groupby("depth").share.min()
    return orders(
        results,
        rule,
        2,
        "The first layer can carry z(p⁻¹(t)) to t by position, if training finds it: on permuted inputs the best run "
        f"of two layers has {short(best[2])}, of one {short(best[1])}.",
    )


def depth_controls(results: Path, rule: Criterion) -> Finding:
    errors, parts, words, n = table(results, "beyond_depth"), [], [], 0
    for kind in ("positions", "outside"):
        original, rolled = cells = [cell(errors, order=o, kind=kind) for o in ("original", "roll")]
        parts.append(log_ratio(rule, kind, rolled, original))
        words.append(f"{kind}: {' → '.join(medians(*cells))}")
        n += sum(map(len, cells))
    why = "A coupling of positions is permuted with them; a query from outside has no place: why Table 1 can work."
    return Finding(f"median error over variance, {'; '.join(words)}", parts, why, n)


def spanning(results: Path, model: str, recipe: str) -> pd.DataFrame:
    found = cell(table(results, "beyond_filters"), "draw", model=model, recipe=recipe)
    return found.assign(share=found.mse / found.variance).sort_values("nu", kind="stable")


def large_over_small(rule: Criterion, name: str, runs: pd.DataFrame, **changed) -> Part:
    """The larger half of the ν against the smaller, in disjoint pairs."""
    half = len(runs) // 2
    small, large = (part.reset_index() for part in (runs[:half], runs[half:]))
    return log_ratio(rule, name, large, small, **changed)


def mixing_mass(results: Path, rule: Criterion) -> Finding:
    bare, by_hand = spanning(results, "transformer", "mixing"), spanning(results, "hand-set", "constructive")
    half = len(bare) // 2
    found = medians(bare[:half], bare[half:])
    return Finding(
        f"median error over variance {found[0]} for ν ≤ {bare.nu.iloc[half - 1]:.2f}, {found[1]} for "
        f"ν ≥ {bare.nu.iloc[half]:.2f}",
        [large_over_small(rule, "", bare)],
        "Softmax weights are positive, so F̂ must supply the signs; networks of the same sizes set by hand have "
        f"{short(by_hand.share.max())} or less, so what grows is training's.",
        len(bare),
    )


def mixing_won_back(results: Path, rule: Criterion) -> Finding:
    bare, filtered = spanning(results, "transformer", "mixing"), spanning(results, "transformer", "learned-filter")
    hard = bare.nu >= rule.limits["large"]
    found = medians(bare[hard], filtered[hard])
    return Finding(
        f"median error over variance at ν ≥ {rule.limits['large']:g}: {found[0]} without, {found[1]} with the filter",
        [
            log_ratio(rule, "with over without", filtered[hard], bare[hard], margin=-rule.margin),
            large_over_small(rule, "large over small ν", filtered),
        ],
        "A filter of length 5 in front can be θ itself, which leaves e^-s to the Transformer.",
        2 * len(bare),
    )


def heads_structure(results: Path, rule: Criterion) -> Finding:
    free = table(results, "beyond_heads").query("estimator == 'free'")
    misfits = free[~free.exact]
    least = misfits.groupby("draw").mse.min()
    worst = misfits.groupby(["target", "heads"]).mse.median()
    return Finding(
        f"error 0 in the {free[free.exact].groupby(['target', 'heads']).ngroups} cells that fit; medians of "
        f"{short(worst.min())} to {short(worst.max())} in the {len(worst)} others",
        [rule.part("", np.log(least))],
        "Zero by construction where they fit; elsewhere optimised from the best start by hand, F̂ affine. These "
        "errors bound the least from above.",
        len(free),
    )


def heads_trained(results: Path, rule: Criterion) -> Finding:
    trained = table(results, "beyond_heads").query("estimator == 'trained'").assign(share=lambda t: t.mse)
    parts, words, n = [], [], 0
    for name, target, matching, other in (("one coupling", "1x8", 1, 4), ("four couplings", "4x4", 4, 1)):
        good, bad = cells = [cell(trained, "draw", target=target, heads=h) for h in (matching, other)]
        parts.append(log_ratio(rule, name, bad, good))
        words.append(
            f"{name}: {short(good.mse.median())} with h = {matching}, {short(bad.mse.median())} with h = {other}"
        )
        n += sum(map(len, cells))
    why = "Networks of eq. (5) of the same sizes, h m_h = 16, that differ in how W_Q and W_K are cut into heads."
    return Finding(f"median error, {'; '.join(words)}", parts, why, n)


def causal_floor(results: Path, rule: Criterion) -> Finding:
    masked = table(results, "beyond_causal").astype({"floor": float})
    bare = table(results, "linear_train/centred")
    parts, case, words, n = [], {}, [], 0
    for order in ("exchange", "roll"):
        blind = cell(masked, alteration=order)
        sees = cell(bare, alteration=order, target="exp")
        floor = blind.floor.iloc[0]
        parts.append(rule.part(f"mask, {order}", np.log(blind.mse / floor)))
        vanish = {"test": "below", "margin": -np.log(rule.limits["vanish"])}
        parts.append(rule.part(f"no mask, {order}", np.log(sees.mse / floor), **vanish))
        case |= {f"mask, {order}": "mask", f"no mask, {order}": "no mask"}
        words.append(
            f"{order}: floor {floor:#.3g}, {blind.mse.median():#.3g} masked, {short(sees.mse.median())} without"
        )
        n += len(blind) + len(sees)
    why = "The floor is Σ_{s > t} M(t, s)² / 12; a position encoding lets every t have its own weights, so it is met."
    return Finding("; ".join(words), parts, why, n, case)


EVALUATORS = {
    "depth-floor": depth_floor,
    "depth-one": depth_one,
    "depth-two": depth_two,
    "depth-controls": depth_controls,
    "mixing-mass": mixing_mass,
    "mixing-won-back": mixing_won_back,
    "heads-structure": heads_structure,
    "heads-trained": heads_trained,
    "causal-floor": causal_floor,
}
