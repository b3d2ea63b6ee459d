"""Findings for section 5.2 and the CIFAR10 column of Table 1."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from attnrate.core.files import read_json
from attnrate.laws.vit import BESIDE, errors, last_layer
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, Finding, Untestable, grade, grade_all


def concentration(results: Path, limits: dict) -> Finding:
    s = pd.read_csv(results / "vit_spectra/main_values.csv")
    largest = s.groupby(["layer", "head"])["mean"].transform("max")
    s = s[s["mean"] > limits["floor"] * largest]
    cv = (s.sd / s["mean"]).groupby([s.layer, s["head"]]).median()
    share = (cv <= limits["cv"]).mean()
    return Finding(
        f"median sd / mean {cv.median():.2f}; at most {limits['cv']:g} in {share:.0%} of {len(cv)} heads",
        f"{cv.min():.2f} to {cv.max():.2f} over heads",
        int(s.n.max()),
        grade(share, limits["most"], limits["some"]),
        f"Over {int(s.n.max())} test images, of the main model, m_h = {int(s.mh.iloc[0])}.",
    )


def convergence(results: Path, limits: dict) -> Finding:
    s = last_layer(pd.read_csv(results / "vit_spectra/values.csv"), "qk").fillna(0.0)
    if s.shape[1] < 3:
        raise Untestable("fewer than three head sizes in this profile")
    s = s / s.max()
    steps = [np.linalg.norm(s[b] - s[a]) / np.linalg.norm(s[b]) for a, b in itertools.pairwise(s.columns)]
    verdict = grade_all([steps[-1] <= limits["close"], steps[-1] < steps[0]])
    return Finding(
        "relative distance of neighbouring spectra " + ", ".join(f"{d:.2f}" for d in steps),
        "mean spectra over images, 1 seed",
        len(steps),
        verdict,
        f"First head of the last layer, values over the largest, m_h = {', '.join(map(str, s.columns))}.",
    )


def low_rank(results: Path, limits: dict) -> Finding:
    r = pd.read_csv(results / "vit_spectra/main_ranks.csv")
    mh = int(r.mh.iloc[0])
    share = (r.energy99 <= limits["share"] * mh).mean()
    mean = r[["energy99", "energy90", "effective"]].mean()
    return Finding(
        f"99 % energy rank {mean.energy99:.1f}, 90 % {mean.energy90:.1f}, effective rank {mean.effective:.1f} of {mh}",
        f"99 %: {r.energy99.min():.1f} to {r.energy99.max():.1f} over {len(r)} heads",
        int(r.n.max()),
        grade(share, limits["most"], limits["some"]),
        f"At most {limits['share']:g} m_h in {share:.0%} of the heads of the main model.",
    )


def falls(results: Path, limits: dict) -> Finding:
    vit = pd.read_csv(results / "vit_table/vit.csv")
    y, other = errors(vit, "qk"), errors(vit, "qk", BESIDE)
    if len(y) < 3:
        raise Untestable("fewer than three head sizes in this profile")
    order = y.index.to_series().corr(y, method="spearman")
    verdict = REPRODUCED if order <= -limits["most"] else PARTLY if order <= -limits["some"] else NOT
    return Finding(
        f"{y.iloc[0]:.3f} at m_h = {y.index[0]} to {y.iloc[-1]:.3f} at {y.index[-1]}; rank correlation {order:.2f}",
        "mean over the seeds of each m_h",
        len(y),
        verdict,
        "Training error on images as they are, in the qk reading; by the recipe beside the sweep's it is "
        + ", ".join(f"{loss:.3f} at m_h = {mh}" for mh, loss in other.items())
        + ".",
    )


def exponent(results: Path, limits: dict) -> Finding:
    found = read_json(results / "vit_table/fits.json")["error"].get("qk", {"laws": {}})
    if not found["laws"]:
        raise Untestable("too few head sizes to fit three parameters in this profile")
    power, flat, other = (found["laws"][law] for law in ("power", "power b=0", "exponential"))
    low, high = power["low"]["a"], power["high"]["a"]
    if low is None or high is None or high - low > limits["width"]:
        shown = f"[{'0' if low is None else f'{low:.2f}'}, {'∞' if high is None else f'{high:.2f}'}]"
        raise Untestable(f"{found['n']} head sizes leave the exponent open: {power['a']:.2f}, 95 % interval {shown}")
    best = other["aicc"] is None or power["aicc"] <= other["aicc"] + limits["aicc"]
    verdict = grade_all([low <= limits["paper"] <= high, best])
    return Finding(
        f"{power['c']:.2f} m_h^-{power['a']:.2f} + {power['b']:.2f}",
        f"95 % interval of the exponent [{low:.2f}, {high:.2f}]",
        found["n"],
        verdict,
        f"AICc {_number(power['aicc'])}, with b = 0 {_number(flat['aicc'])}, exponential {_number(other['aicc'])}.",
    )


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1f}"


def permuted_patches(results: Path, limits: dict) -> Finding:
    vit = pd.read_csv(results / "vit_table/vit.csv")
    acc = vit.pivot_table(index="seed", columns="variant", values="test_acc", aggfunc="last")
    if not {"continued", "permuted"} <= set(acc.columns):
        raise Untestable("no permuted run in this profile")
    pair = acc[["continued", "permuted"]].dropna()
    drop = pair.continued - pair.permuted
    return Finding(
        f"{pair.permuted.mean():.4f} against {pair.continued.mean():.4f}, a drop of {drop.mean():.4f} "
        "(paper: 0.98 to 0.96)",
        f"drop {drop.min():.4f} to {drop.max():.4f} over seeds",
        len(pair),
        REPRODUCED if drop.mean() <= limits["drop"] else NOT,
        "Both go on from the trained model for as long; "
        f"before that, permuted images score {acc.unadapted.mean():.4f}.",
    )


EVALUATORS = {
    "vit-concentration": concentration,
    "vit-convergence": convergence,
    "vit-low-rank": low_rank,
    "vit-error-falls": falls,
    "vit-exponent": exponent,
    "vit-permuted": permuted_patches,
}
