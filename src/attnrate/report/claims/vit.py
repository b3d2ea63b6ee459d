"""Findings for section 5.2 and the CIFAR10 column of Table 1."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from attnrate.core.files import read_json
from attnrate.laws.vit import BESIDE, SWEEP, errors
from attnrate.laws.vit import spread as spread_of_heads
from attnrate.report.claims.ledger import Criterion, Exact, Finding, Undecided
from attnrate.report.claims.statistics import HOLDS, outcome, ratios

CLASSES = 10  # a model that has learned nothing has the logarithm of this for its error
Replicates = pd.api.typing.DataFrameGroupBy  # the heads of each seed, or in each group of images


def main(results: Path, name: str, state: str) -> pd.DataFrame:
    """The main model's spectra as the softmax sees them."""
    t = pd.read_csv(results / f"vit_spectra/main_{name}.csv")
    return t[t.centred & (t.state == state)]


def concentration(results: Path, rule: Criterion) -> Finding:
    def spread(state: str) -> pd.Series:  # of each seed
        heads = spread_of_heads(main(results, "values", state), rule.limits["floor"], ["seed", "layer", "head"])
        return heads.groupby("seed").median()

    trained, untrained = spread("trained"), spread("untrained")
    images = int(main(results, "values", "trained").n.max())
    why = f"Over {images} test images; keys centred, since the softmax ignores what is constant in a row."
    return concentrated(trained, untrained, rule, why)


def concentrated(trained: pd.Series, untrained: pd.Series, rule: Criterion, why: str) -> Finding:
    """Of the spreads of replicates."""
    parts = [
        rule.part("small", trained),
        rule.part("smaller than untrained", (trained / untrained).tolist(), margin=1.0),
    ]
    measured = f"median sd / mean {trained.mean():.2f}; untrained {untrained.mean():.2f}"
    return Finding(measured, parts, f"{why} What is small is ours to say: the paper has no number.", len(trained))


def convergence(results: Path, rule: Criterion) -> Finding:
    s = pd.read_csv(results / "vit_spectra/values.csv")
    s = s[s.centred & (s.reading == "qk") & (s["head"] == 1) & (s.layer == s.layer.max())]
    wide = s.pivot_table(index="k", columns=["mh", "seed"], values="mean").fillna(0.0)
    wide = wide / wide.max()
    sizes, seeds = sorted(s.mh.unique()), sorted(s.seed.unique())
    if len(sizes) < 3 or len(seeds) < 2:
        raise Undecided("three head sizes and two seeds of each")

    def distance(a: tuple, b: tuple) -> float:
        return float(np.linalg.norm(wide[a] - wide[b]))

    last = [distance((sizes[-2], seed), (sizes[-1], seed)) for seed in seeds]
    first = [distance((sizes[0], seed), (sizes[1], seed)) for seed in seeds]
    own = [np.mean([distance((sizes[-1], seed), (sizes[-1], o)) for o in seeds if o != seed]) for seed in seeds]
    return Finding(
        f"distance {np.mean(last):.3f} between m_h = {sizes[-2]} and {sizes[-1]}, {np.mean(first):.3f} between "
        f"{sizes[0]} and {sizes[1]}, {np.mean(own):.3f} between seeds at {sizes[-1]}",
        [rule.part("over seeds' distance", ratios(last, own)), rule.part("over the smallest m_h", ratios(last, first))],
        "First head of the last layer, values over the largest, keys centred.",
        len(sizes) * len(seeds),
    )


def low_rank(results: Path, rule: Criterion) -> Finding:
    trained, untrained = (main(results, "ranks", state).groupby("seed") for state in ("trained", "untrained"))
    why = "A model that has learned nothing is the null: its rank is that of the embedding of patches and positions."
    return of_low_rank(trained, untrained, int(trained.mh.first().iloc[0]), rule, why)


def of_low_rank(trained: Replicates, untrained: Replicates, mh: int, rule: Criterion, why: str) -> Finding:
    """Of the ranks of heads by replicates."""
    rank, null = trained.energy99.mean(), untrained.energy99.mean()
    share = rule.part("of m_h", ratios(rank, np.full(len(rank), mh)), margin=np.log(rule.limits["share"]))
    if outcome(ratios(null, np.full(len(null), mh)), share.test, share.margin)[0] == HOLDS:
        why += " An untrained model passes the first part as well."
    return Finding(
        f"99 % energy rank {rank.mean():.1f} of {mh}, untrained {null.mean():.1f}; "
        f"90 % {trained.energy90.mean().mean():.1f}, untrained {untrained.energy90.mean().mean():.1f}",
        [share, rule.part("of the untrained", ratios(rank, null))],
        why,
        len(rank),
    )


def groups(results: Path, rule: Criterion, state: str) -> Replicates:
    """The heads of the pretrained model, or of untrained ones, in each group of images; as the softmax sees them."""
    source = read_json(results / "vit_pretrained/source.json")
    if source["name"] == "toy":
        raise Undecided("pretrained weights; vit.pretrained.name is toy")
    if source["floor"] != rule.limits.get("floor", source["floor"]):
        raise Undecided(f"vit.pretrained.floor = {rule.limits['floor']}; it is {source['floor']}")
    t = pd.read_csv(results / "vit_pretrained/heads.csv")
    return t[t.centred & (t.state == state)].groupby("group")


def concentration_pretrained(results: Path, rule: Criterion) -> Finding:
    trained, untrained = (groups(results, rule, state) for state in ("trained", "untrained"))
    why = f"One model; groups of {int(trained.n.max().iloc[0])} test images."
    return concentrated(trained.spread.median(), untrained.spread.median(), rule, why)


def low_rank_pretrained(results: Path, rule: Criterion) -> Finding:
    trained, untrained = (groups(results, rule, state) for state in ("trained", "untrained"))
    size = read_json(results / "vit_pretrained/source.json")["sizes"]
    why = f"One model; groups of {int(trained.n.max().iloc[0])} test images."
    return of_low_rank(trained, untrained, size["width"] // size["heads"], rule, why)


def at(losses: pd.Series) -> str:
    return ", ".join(f"{loss:.3f} at m_h = {mh}" for mh, loss in losses.items())


def halved(results: Path, vit: pd.DataFrame, reading: str, mh: int, variant: str) -> pd.DataFrame | None:
    """A model's runs at half the steps, if there are any; at the full size every reading is qk."""
    rows = vit[(vit.variant == SWEEP) & (vit.mh == mh)].set_index("seed")
    if rows[rows.reading == reading].error.equals(rows[rows.reading == "qk"].error):
        reading = "qk"
    path = results / f"vit_gate/{BESIDE if variant == BESIDE else f'{reading}-{mh}'}/scores.csv"
    return pd.read_csv(path).query("mh == @mh") if path.exists() else None


def ends(small: pd.DataFrame, large: pd.DataFrame, error: str, seeds: pd.Index, rule: Criterion) -> tuple[float, ...]:
    """Log ratios of the errors of two models, seed by seed; a run that is stuck is an infinite error."""
    a, b = (t.set_index("seed")[error].reindex(seeds) for t in (small, large))
    stuck = rule.limits["stuck"] * np.log(CLASSES)
    return ratios(a, b, a > stuck, b > stuck)


def fall(results: Path, rule: Criterion, reading: str, why: str, name: str = "", variant: str = SWEEP) -> Finding:
    """From the smallest to the largest m_h, of the seeds that have every m_h."""
    vit = pd.read_csv(results / "vit_table/vit.csv")
    runs = vit[(vit.reading == reading) & (vit.variant == variant)]
    wide = runs.pivot_table(index="seed", columns="mh", values="error").dropna()
    if wide.shape[1] < 2:
        raise Undecided(f"two head sizes in the {reading} reading{f' by the {name}' if name else ''}")
    sizes = wide.columns[[0, -1]]
    values, half = ends(*(runs[runs.mh == mh] for mh in sizes), "error", wide.index, rule), None
    before = [halved(results, vit, reading, mh, variant) for mh in sizes]
    if all(t is not None for t in before):
        error = "train_loss" if runs.error.equals(runs.train_loss) else "running_loss"
        half = ends(*before, error, wide.index, rule)
    return Finding(at(wide.mean()), [rule.part(name, values, half)], why, wide.size)


def falls(results: Path, rule: Criterion) -> Finding:
    vit = pd.read_csv(results / "vit_table/vit.csv")
    sweep = vit[vit.variant == SWEEP]
    cropped = "of the last steps, on cropped images; by the recipe beside it "
    what = "" if sweep.error.equals(sweep.train_loss) else cropped
    why = f"Training error {what}on images as they are. Another budget, another fall."
    own = fall(results, rule, "qk", why, "recipe of the sweep")
    try:
        other = fall(results, rule, "qk", why, "recipe beside it", BESIDE)
    except Undecided as e:
        raise Undecided(str(e), own.measured, own.n) from None
    return replace(
        own,
        measured=f"{own.measured}; recipe beside it: {other.measured}",
        parts=[*own.parts, *other.parts],
        n=own.n + other.n,
    )


def falls_with_width(results: Path, rule: Criterion) -> Finding:
    vit = pd.read_csv(results / "vit_table/vit.csv")
    drops = {
        reading: -np.diff(errors(vit, reading).iloc[[0, -1]])[0]  # 0 where there is one head size
        for reading in ("qk", "width")
        if reading in set(vit.reading)
    }
    if not drops.get("width"):
        raise Undecided("two head sizes in the width reading")
    why = f"Of the fall, {drops['qk'] / drops['width']:.0%} is there when the heads alone shrink."
    sweep = vit[(vit.reading == "width") & (vit.variant == SWEEP)]
    learned = sweep[sweep.mh == sweep.mh.min()].test_acc.mean()
    if learned < 2 / CLASSES:
        why += (
            f" The narrowest models have learned next to nothing, accuracy {learned:.2f}, which makes the fall large."
        )
    return fall(results, rule, "width", why)


def exponent(results: Path, rule: Criterion) -> Finding:
    limits, found = rule.limits, read_json(results / "vit_table/fits.json")["error"].get("qk", {"n": 0, "laws": {}})
    losses = at(errors(pd.read_csv(results / "vit_table/vit.csv"), "qk"))
    if not found["laws"]:
        needs = f"five head sizes or more to fit three parameters; it has {found['n']}, and GPUs for more"
        raise Undecided(needs, losses, found["n"])
    power, flat, other = (found["laws"][law] for law in ("power", "power b=0", "exponential"))
    low, high = power["low"]["a"], power["high"]["a"]
    if low is None or high is None or high - low > limits["width"]:
        shown = f"[{'0' if low is None else f'{low:.2f}'}, {'∞' if high is None else f'{high:.2f}'}]"
        needs = f"errors that fall, or more head sizes and seeds: {found['n']} leave the exponent open, 95 % interval "
        raise Undecided(needs + shown, losses, found["n"])
    best = other["aicc"] is None or power["aicc"] <= other["aicc"] + limits["aicc"]
    return Finding(
        f"{power['c']:.2f} m_h^-{power['a']:.2f} + {power['b']:.2f}",
        [Exact("", low <= limits["paper"] <= high and best)],
        f"AICc {_number(power['aicc'])}, with b = 0 {_number(flat['aicc'])}, exponential {_number(other['aicc'])}.",
        found["n"],
        spread=f"95 % interval of the exponent [{low:.2f}, {high:.2f}]",
    )


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1f}"


def permuted_patches(results: Path, rule: Criterion) -> Finding:
    path = results / "vit_gate/permuted/scores.csv"
    before = pd.read_csv(path) if path.exists() else None
    return in_both_orders(pd.read_csv(results / "vit_table/vit.csv"), rule, before)


def permuted_tuned(results: Path, rule: Criterion) -> Finding:
    found = [pd.read_csv(path) for path in sorted(results.glob("vit_tuned/*/scores.csv"))]
    if not found:
        raise Undecided("three seeds in vit.tuned.parts, about 20 minutes each on 2 cores")
    return in_both_orders(pd.concat(found), rule)


def accuracies(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.pivot_table(index="seed", columns="variant", values="test_acc", aggfunc="last")


def drop(acc: pd.DataFrame) -> list[float]:
    return (acc.continued - acc.permuted).tolist()


def in_both_orders(runs: pd.DataFrame, rule: Criterion, half: pd.DataFrame | None = None) -> Finding:
    """Of the runs, and of those that went on for half as long, if there are any."""
    acc = accuracies(runs)
    if not {"continued", "permuted"} <= set(acc.columns):
        raise Undecided("a permuted run and its control")
    pair = acc[["continued", "permuted"]].dropna()
    why = (
        f"Both go on from the trained model for as long; before that, permuted images score {acc.unadapted.mean():.3f}."
        " The paper's own drop is at the margin."
    )
    if {"main", "permuted-scratch"} <= set(acc.columns):
        start = acc[["main", "permuted-scratch"]].dropna()
        why += (
            f" Trained on permuted images from the start: {start['permuted-scratch'].mean():.3f} against "
            f"{start.main.mean():.3f} in order (n = {len(start)})."
        )
    return Finding(
        f"accuracy {pair.continued.mean():.3f} in order, {pair.permuted.mean():.3f} permuted",
        [rule.part("", drop(pair), None if half is None else drop(accuracies(half).reindex(pair.index)))],
        why,
        len(pair),
    )


EVALUATORS = {
    "vit-concentration": concentration,
    "pretrained-spread": concentration_pretrained,
    "vit-convergence": convergence,
    "vit-low-rank": low_rank,
    "pretrained-rank": low_rank_pretrained,
    "vit-error-falls": falls,
    "vit-width": falls_with_width,
    "vit-exponent": exponent,
    "vit-permuted": permuted_patches,
    "tuned-permuted": permuted_tuned,
}
