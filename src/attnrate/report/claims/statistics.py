"""How an effect with replicates is judged: intervals, tests against a margin, the budget gate.

A part of a claim has replicates of an effect δ (a log ratio of errors paired by seed, a difference, …), a margin Δ and
a test:

    equal   |δ| < Δ ("does not affect"): holds if the 90 % interval is inside ±Δ, fails if the interval is outside
    above   δ > Δ ("falls", "is larger"): holds if the 95 % interval is above Δ, fails if it is below
    below   δ < Δ: the mirror image

A part fails at level 5 % / k, where k is the number of parts of its claim. A run that died has an infinite effect and
stays in: intervals are then those of the median by order statistics, whose level is limited by the number of
replicates (n = 5: 93.75 %). Fewer than three replicates decide nothing.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
from scipy import stats

FEWEST = 3  # replicates
WEAKEST = 0.9  # least level of an interval that may decide
MOST = 1000  # replicates that are still worth naming
HOLDS, FAILS, OPEN = "holds", "fails", "undecided"


@dataclass(frozen=True)
class Interval:
    centre: float  # the mean, or the median where a run died
    low: float
    high: float
    level: float  # what is reached, which order statistics cannot choose freely


@cache
def student(level: float, n: int) -> float:
    """Half the width of the interval of a mean of n values whose standard deviation is 1."""
    return float(stats.t.ppf((1 + level) / 2, n - 1)) / n**0.5


@cache
def median_levels(n: int) -> np.ndarray:
    """The median lies between the j-th value from below and from above with probability 1 - 2 P(B ≤ j - 1)."""
    return 1 - 2 * stats.binom.cdf(np.arange((n + 1) // 2), n, 0.5)


def interval(values: Sequence[float], level: float) -> Interval:
    """Student's interval of the mean; where a value is infinite, that of the median by order statistics."""
    x = np.sort(np.asarray(values, float))
    n = len(x)
    if np.isnan(x).any() or n < 2:
        return Interval(float(x[0]) if n == 1 else np.nan, -np.inf, np.inf, 0.0)
    if np.isfinite(x).all():
        half = student(level, n) * x.std(ddof=1)
        return Interval(float(x.mean()), float(x.mean() - half), float(x.mean() + half), level)
    levels = median_levels(n)
    j = int(np.flatnonzero(levels >= level).max(initial=0))
    middle = (x[(n - 1) // 2], x[n // 2])  # the mean of these is not defined where they are -∞ and ∞
    centre = middle[0] if middle[0] == middle[1] else np.nan if np.isinf(middle).all() else sum(middle) / 2
    return Interval(float(centre), float(x[j]), float(x[n - 1 - j]), float(levels[j]))


@dataclass(frozen=True)
class Part:
    """One of the things that a claim joins, as it was measured."""

    name: str
    values: tuple[float, ...]  # a replicate each
    test: str
    margin: float
    half: tuple[float, ...] | None = None  # the same replicates at half the steps; None: gate not run


@dataclass(frozen=True)
class Judged:
    name: str
    effect: float | None
    interval: tuple[float | None, float | None]
    level: float
    test: str
    margin: float
    replicates: int
    dead: int  # replicates in which a run died
    outcome: str
    converged: bool | None  # None: gate not run
    needs: str  # what would decide it; empty where it is decided

    def to_dict(self) -> dict:
        return asdict(self)


def outcome(values: Sequence[float], test: str, margin: float, k: int = 1) -> tuple[str, Interval]:
    """Whether a part holds, fails or is open, and the interval to show: the one that its test asks for."""
    holding = interval(values, 0.9 if test == "equal" else 0.95)
    failing = interval(values, 1 - 0.05 / k)
    if len(values) < FEWEST:
        return OPEN, holding
    sure = [holding.level >= WEAKEST, failing.level >= 1 - (1 - WEAKEST) / k]
    inside = {
        "equal": -margin < holding.low and holding.high < margin,
        "above": holding.low > margin,
        "below": holding.high < margin,
    }[test]
    outside = {
        "equal": failing.low > margin or failing.high < -margin,
        "above": failing.high < margin,
        "below": failing.low > margin,
    }[test]
    if inside and sure[0]:
        return HOLDS, holding
    # An open part on the wrong side shows the interval that it would have to fail by.
    wrong = {"equal": abs(holding.centre) > margin, "above": holding.centre < margin, "below": holding.centre > margin}
    return FAILS if outside and sure[1] else OPEN, failing if wrong[test] else holding


def needed(values: Sequence[float], test: str, margin: float, k: int = 1) -> str:
    """The number of replicates that would decide about every other time or more, if centre and spread are true."""
    n, x = len(values), np.asarray(values, float)
    if n < FEWEST:
        return f"{FEWEST} replicates or more; it has {n}"
    if not np.isfinite(x).all():
        dead, x = int((~np.isfinite(x)).sum()), np.sort(x)
        for m in range(n + 1, MOST + 1):  # as they lie here: each of these stands for m / n
            if outcome(x[((np.arange(m) + 0.5) * n / m).astype(int)], test, margin, k)[0] != OPEN:
                return f"about {m} replicates, if as many get stuck ({dead} of {n} did)"
        return f"runs that do not get stuck ({dead} of {n} did)"
    centre, sd = x.mean(), x.std(ddof=1)
    distance = abs(abs(centre) - margin) if test == "equal" else abs(centre - margin)
    wrong = {"equal": abs(centre) > margin, "above": centre < margin, "below": centre > margin}[test]
    level = 1 - 0.05 / k if wrong else 0.98 if test == "equal" else 0.95  # 0.98: a mean inside ±Δ strays to two sides
    for m in range(FEWEST, MOST + 1):
        if student(level, m) * sd < distance:
            return f"about {max(m, n + 1)} replicates, by the spread of these {n}"
    return f"the effect is at its margin: more than {MOST} replicates, by the spread of these {n}"


def judge_part(part: Part, k: int = 1) -> Judged:
    found, shown = outcome(part.values, part.test, part.margin, k)
    dead = int((~np.isfinite(part.values)).sum())
    converged, needs = None, "" if found != OPEN else needed(part.values, part.test, part.margin, k)
    if part.half is not None and found == OPEN:
        if outcome(doubled(part), part.test, part.margin, k)[0] != OPEN:
            needs = f"twice the steps, if the effect moves as far again as since half of them; else {needs}"
    elif part.half is not None:
        converged = gate(part, k) == found
        if not converged:
            found = OPEN
            needs = "twice the steps or more: not converged, at half of them the verdict is another or on its way there"
    finite = [v if np.isfinite(v) else None for v in (shown.centre, shown.low, shown.high)]
    bounds = (finite[1], finite[2])
    n = len(part.values)
    return Judged(part.name, finite[0], bounds, shown.level, part.test, part.margin, n, dead, found, converged, needs)


def doubled(part: Part) -> np.ndarray:
    """The values after one more doubling of the steps, if it moves each replicate as far again."""
    full, before = np.asarray(part.values), np.asarray(part.half)
    both = np.isfinite(full) & np.isfinite(before)
    return full + np.subtract(full, before, out=np.zeros(len(full)), where=both)  # a death has no size to extrapolate


def gate(part: Part, k: int) -> str | None:
    """The outcome at half the steps, if it is also that of one more doubling."""
    half, further = (outcome(values, part.test, part.margin, k)[0] for values in (part.half, doubled(part)))
    return half if half == further else None


def judge_parts(parts: Sequence[Part]) -> list[Judged]:
    return [judge_part(part, len(parts)) for part in parts]


def worst(judged: Sequence[Judged]) -> Judged:
    """The part that decides: a failed one before an open one, and of these the one farthest on the wrong side."""

    def room(j: Judged) -> float:
        if j.effect is None:
            return np.inf if j.outcome == HOLDS else -np.inf  # it holds: infinitely far on the right side
        return {"equal": j.margin - abs(j.effect), "above": j.effect - j.margin, "below": j.margin - j.effect}[j.test]

    order = {FAILS: 0, OPEN: 1, HOLDS: 2}
    return min(judged, key=lambda j: (order[j.outcome], room(j)))


def ratios(values: Sequence[float], of: Sequence[float], dead=None, of_dead=None) -> tuple[float, ...]:
    """log(value / of), pair by pair; a run that died counts as an infinite error."""
    a, b = np.log(np.asarray(values, float)), np.log(np.asarray(of, float))
    a = np.where(np.zeros(len(a), bool) if dead is None else dead, np.inf, a)
    b = np.where(np.zeros(len(b), bool) if of_dead is None else of_dead, np.inf, b)
    with np.errstate(invalid="ignore"):
        return tuple(float(v) for v in a - b)
