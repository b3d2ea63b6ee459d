"""Findings for section 6: Tables 2 and 3, Proposition 6.1, and the slides' suggestion."""

from pathlib import Path

import numpy as np
import pandas as pd

from attnrate.report.claims.ledger import Criterion, Exact, Finding, Undecided
from attnrate.report.claims.statistics import HOLDS, Part, outcome, ratios
from attnrate.report.tables import short
from attnrate.report.tables_linear import HAND_SET, MIXED, MODELS, PAPER

RNN, TRANSFORMER = MODELS["RNN"], MODELS["Trans."]
FILTERED = ("transformer", "learned-filter")
ORIGINAL, SIGNED, POSITIVE = ("original", ""), ("causal", "signed"), ("causal", "positive")  # alteration, filter


def results(folder: Path) -> pd.DataFrame:
    missing = {"floor": [""], "mh": [""], "mse_half": [""]}
    return pd.read_csv(folder / "linear_table/linear.csv", keep_default_na=False, na_values=missing)


def floors(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(folder / "linear_table/floors.csv", keep_default_na=False)
    return table.set_index(["target", "alteration", "filter"])


def runs(r: pd.DataFrame, table: int, reading: tuple[str, str], model: tuple[str, str] = TRANSFORMER) -> pd.DataFrame:
    """The runs of a cell by seed, errors over the variance of their target too."""
    key = {"table": table, "alteration": reading[0], "filter": reading[1], "model": model[0], "recipe": model[1]}
    found = r[(r[list(key)] == pd.Series(key)).all(axis=1)].set_index("seed").sort_index()
    if found.empty:
        raise Undecided(f"runs of {model[0]} ({model[1]}) on {' '.join(reading)}; this profile has none")
    return found.assign(share=found.mse / found.variance, share_half=found.mse_half / found.variance)


def against(rule: Criterion, name: str, above: pd.DataFrame, below: pd.DataFrame, of="share", **changed) -> Part:
    """The log ratio of two cells, paired by seed, and at half the steps if both have that."""
    a, b = above.align(below, join="inner", axis=0)
    values = ratios(a[of], b[of], a.dead, b.dead)
    half = a[f"{of}_half"], b[f"{of}_half"]
    if any(h.isna().any() for h in half):
        return rule.part(name, values, **changed)
    dead = [h > STUCK if of == "share" else h > STUCK * x.variance for h, x in zip(half, (a, b), strict=True)]
    return rule.part(name, values, ratios(*half, *dead), **changed)


STUCK = 0.9  # of the variance, as in linear/train.py


def medians(*cells: pd.DataFrame, of="mse") -> list[str]:
    """With runs that died as infinite errors."""
    found = [c[of].where(~c.dead, np.inf).median() for c in cells]
    return [short(m) if np.isfinite(m) else "stuck" for m in found]


def smaller(part: Part) -> bool:
    """Whether the interval of a log ratio says that the error above is the smaller one."""
    return outcome(part.values, "below", 0.0)[0] == HOLDS


def not_the_same(parts: list[Part]) -> str:
    """Of tests for a drop, what they do not look at: errors that are smaller."""
    found = [p.name for p in parts if smaller(p)]
    which = f" on {' and '.join(found)}" if len(found) < len(parts) else ""
    return f" Errors{which} are smaller, not the same." if found else ""


def prop_6_1(folder: Path, rule: Criterion) -> Finding:
    exact = floors(folder).loc["exp"]
    readings = ("exchange", "roll", "permute-kernel")
    outside = {a: exact.loc[[(a, "")], "c_rnn"].iloc[0] == float("inf") for a in readings}
    holds = outside["exchange"] and outside["roll"] and not outside["permute-kernel"]
    why = (
        "Permuting inputs makes an output depend on a later input; permuting the kernel itself keeps the target causal."
    )
    return Finding(
        ", ".join(f"{a}: {'outside' if outside[a] else 'inside'}" for a in readings), [Exact("", holds)], why, 3
    )


def ordering_transformer(folder: Path, rule: Criterion) -> Finding:
    r = results(folder)
    original, *altered = cells = [runs(r, 2, (a, "")) for a in ("original", "exchange", "roll")]
    names, found = ("exchange", "roll"), medians(*cells)
    parts = [against(rule, name, c, original, "mse") for name, c in zip(names, altered, strict=True)]
    return Finding(
        f"median {found[0]} → {found[1]} (exchange), {found[2]} (roll)",
        parts,
        "The coupling is one of positions, for which Proposition 6.2 holds: a larger error would be training's."
        + not_the_same(parts),
        sum(map(len, cells)),
    )


def ordering_rnn(folder: Path, rule: Criterion) -> Finding:
    r, exact = results(folder), floors(folder).loc["exp"]
    cells = [runs(r, 2, (a, ""), RNN) for a in ("original", "exchange", "roll")]
    least = {a: exact.loc[[(a, "")], "floor_free"].iloc[0] for a in ("exchange", "roll")}
    found = medians(*cells)
    return Finding(
        f"floors {short(least['exchange'])} (exchange), {short(least['roll'])} (roll); "
        f"trained {found[0]} → {found[1]}, {found[2]}",
        [Exact(a, floor >= rule.limits["floor"]) for a, floor in least.items()],
        "Structural: no linear RNN gets below the floor, whatever its biases.",
        sum(map(len, cells)),
    )


def paper_number(folder: Path, rule: Criterion) -> Finding:
    r, exact, value = results(folder), floors(folder).loc["exp"], PAPER[(2, "ordering", "Altered")][0]
    least = {a: exact.loc[[(a, "")], "floor_free"].iloc[0] for a in ("exchange", "roll", "permute-kernel")}
    trained = medians(runs(r, 2, ("permute-kernel", ""), RNN))[0]
    return Finding(
        f"floors {', '.join(f'{short(v)} ({a})' for a, v in least.items())} against the paper's {short(value)}",
        [Exact(a, value >= least[a]) for a in ("exchange", "roll")],
        "Impossible for the exchange that appendix C describes; possible for the roll, and for the permuted kernel of "
        f"the main text, whose floor is zero and whose error, {trained} here, is what training leaves.",
        3,
    )


def mixed(cells: list[pd.DataFrame]) -> str:
    """Medians of the original and of both mixed targets: as the effect has them, and as Table 2 does."""
    share, mse = medians(*cells, of="share"), medians(*cells)
    return (
        f"median error over variance {share[0]} → {share[1]} (signed), {share[2]} (positive filters); "
        f"MSE {mse[0]} → {mse[1]}, {mse[2]}"
    )


def mixing_rnn(folder: Path, rule: Criterion) -> Finding:
    r = results(folder)
    original, signed, positive = cells = [runs(r, 2, reading, RNN) for reading in (ORIGINAL, SIGNED, POSITIVE)]
    literal = floors(folder).loc[("exp", "literal", "positive"), "floor_free"]
    parts = [against(rule, "signed", signed, original), against(rule, "positive", positive, original)]
    return Finding(
        mixed(cells),
        parts,
        f"The causal reading has floor 0; the literal x(t+s) has {short(literal.min())} or more and is excluded by the "
        "paper's own 1.58e-07. "
        f"Ratios to the original: signed up to {np.exp(max(parts[0].values)):.3g}, median "
        f"{np.exp(np.median(parts[0].values)):.3g}." + not_the_same(parts),
        sum(map(len, cells)),
    )


def mixing_transformer(folder: Path, rule: Criterion) -> Finding:
    r = results(folder)
    original, signed, positive = cells = [runs(r, 2, reading, MIXED) for reading in (ORIGINAL, SIGNED, POSITIVE)]
    by_hand = runs(r, 2, SIGNED, HAND_SET).mse
    return Finding(
        mixed(cells),
        [against(rule, "signed", signed, original), against(rule, "positive", positive, original)],
        "The harm comes with signs in the filter, and it is training's: networks of these sizes set by hand have "
        f"errors of {short(by_hand.min())} to {short(by_hand.max())} there.",
        sum(map(len, cells)),
    )


def mixing_either(folder: Path, rule: Criterion) -> Finding:
    r = results(folder)
    original, signed, positive = cells = [runs(r, 2, reading, MIXED) for reading in (ORIGINAL, SIGNED, POSITIVE)]
    found = medians(*cells, of="share")
    return Finding(
        f"median error over variance {found[0]} → {found[1]} (signed), {found[2]} (positive filters)",
        [against(rule, "signed", signed, original), against(rule, "positive", positive, original, test="below")],
        "What changes is how hard training is; what the sizes allow stays as small (hand-set network).",
        sum(map(len, cells)),
    )


def learned_filter(folder: Path, rule: Criterion) -> Finding:
    r = results(folder)
    original, mixed, helped = cells = [
        runs(r, 2, reading, model) for reading, model in ((ORIGINAL, MIXED), (SIGNED, MIXED), (SIGNED, FILTERED))
    ]
    before, harmed, after = medians(*cells, of="share")
    return Finding(
        f"median error over variance {before} unmixed, {harmed} mixed, {after} with a learned filter",
        [
            against(rule, "over mixed", helped, mixed, margin=-rule.margin),
            against(rule, "over unmixed", helped, original),
        ],
        "A causal filter of length 5 in front of the model can be θ itself; the rest is training.",
        sum(map(len, cells)),
    )


def filter_control(folder: Path, rule: Criterion) -> Finding:
    r = results(folder)
    cells = plain, filtered = runs(r, 2, ORIGINAL, MIXED), runs(r, 2, ORIGINAL, FILTERED)
    found, part = medians(*cells), against(rule, "", filtered, plain)
    why = "The filter starts as the identity."
    if smaller(part):
        why += " It helps here too: part of what it wins on mixed targets is not about mixing."
    return Finding(
        f"median {found[0]} without, {found[1]} with a learned filter",
        [part],
        why,
        sum(map(len, cells)),
    )


def rnn_better(folder: Path, rule: Criterion) -> Finding:
    r = results(folder)
    cells = rnn, transformer = runs(r, 2, ORIGINAL, RNN), runs(r, 2, ORIGINAL)
    found = medians(*cells)
    return Finding(
        f"median {found[1]} (Transformer) against {found[0]} (RNN)",
        [against(rule, "", transformer, rnn)],
        "e^-s is an RNN with one unit; the Transformer has to find it in training.",
        sum(map(len, cells)),
    )


def neither(folder: Path, rule: Criterion) -> Finding:
    r = results(folder)
    cells = {
        "original": (runs(r, 2, ORIGINAL), runs(r, 2, ORIGINAL, RNN)),
        "roll": (runs(r, 2, ("roll", ""), RNN), runs(r, 2, ("roll", ""))),
        "signed mixing": (runs(r, 2, SIGNED, MIXED), runs(r, 2, SIGNED, RNN)),
    }
    found = {name: medians(*pair) for name, pair in cells.items()}
    return Finding(
        "; ".join(f"{name}: {worse} against {better}" for name, (worse, better) in found.items()),
        [against(rule, name, *pair) for name, pair in cells.items()],
        "The RNN is better on the original and the mixed target, the Transformer on the rolled one.",
        sum(len(c) for pair in cells.values() for c in pair),
    )


def table3_rnn(folder: Path, rule: Criterion) -> Finding:
    r, exact = results(folder), floors(folder).loc[("uniform", "original", "")]
    found = runs(r, 3, ORIGINAL, RNN)
    errors = medians(found, runs(r, 3, ORIGINAL))
    return Finding(
        f"median {errors[0]} (RNN), {found.share.median():.1%} of the variance, against {errors[1]} (Transformer); "
        f"the RNN's floor {short(exact.floor_free.max())}",
        [
            Exact("structurally", bool((exact.floor_free > rule.limits["share"] * exact.variance).all())),
            rule.part("in training", np.log(found.share)),
        ],
        "The targets are causal kernels that 128 units represent exactly; the paper's 5.58 is about the variance of y, "
        f"{short(exact.variance.min())} to {short(exact.variance.max())} here: a constant predictor.",
        len(found),
    )


def learned_part(rule: Criterion, name: str, cell: pd.DataFrame) -> Part:
    """The log of the error over the variance, and at half the steps if the cell has that."""
    ends = (cell.share, cell.dead), (cell.share_half, cell.share_half > STUCK)
    full, half = (ratios(share, np.ones(len(share)), dead) for share, dead in ends)
    return rule.part(name, full, None if np.isnan(half).any() else half, margin=np.log(rule.limits["share"]))


def table3_transformer(folder: Path, rule: Criterion) -> Finding:
    r = results(folder)
    cells = original, permuted = runs(r, 3, ORIGINAL), runs(r, 3, ("exchange", ""))
    learned = [learned_part(rule, f"{n}, learned", c) for n, c in (("original", original), ("permuted", permuted))]
    part = against(rule, "permuted over original", permuted, original, "mse")
    return Finding(
        f"median {' → '.join(medians(*cells))}",
        [*learned, part],
        "A kernel without order is no harder permuted." + not_the_same([part]),
        sum(map(len, cells)),
    )


EVALUATORS = {
    "prop-6.1": prop_6_1,
    "ordering-transformer": ordering_transformer,
    "ordering-rnn": ordering_rnn,
    "table2-floor": paper_number,
    "mixing-rnn": mixing_rnn,
    "mixing-transformer": mixing_transformer,
    "mixing-either": mixing_either,
    "learned-filter": learned_filter,
    "filter-control": filter_control,
    "rnn-better": rnn_better,
    "neither": neither,
    "table3-rnn": table3_rnn,
    "table3-transformer": table3_transformer,
}
