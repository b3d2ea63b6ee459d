"""A world for each rule: effects are drawn with a known truth, and the verdicts come as often as their level promises.

The bounds on a count are those of the binomial distribution: a right mechanism leaves them with probability 2e-8.
"""

import json
import re
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from attnrate.report.claims.statistics import (
    FAILS,
    HOLDS,
    OPEN,
    Part,
    interval,
    judge_part,
    judge_parts,
    needed,
    outcome,
    ratios,
    worst,
)

DRAWS = 4000
INF, NAN = np.inf, np.nan


def counts(draw, test, margin, k=1, draws=DRAWS):
    return Counter(outcome(draw(), test, margin, k)[0] for _ in range(draws))


def at_least(p, count, draws=DRAWS):
    return count >= stats.binom.ppf(1e-8, draws, p)


def at_most(p, count, draws=DRAWS):
    return count <= stats.binom.isf(1e-8, draws, p)


def about(p, count, draws=DRAWS):
    return at_least(p, count, draws) and at_most(p, count, draws)


def normal(seed, n, centre, sd):
    rng = np.random.default_rng(seed)
    return lambda: rng.normal(centre, sd, n)


def exactly(n, centre, sd):
    """n values with this mean and this standard deviation."""
    x = np.linspace(-1, 1, n)
    return centre + sd * x / x.std(ddof=1)


def of_the_dead(sd, n, up, down=0.0, seed=0):
    """Draws of n runs: +∞ with probability `up`, -∞ with `down`, else normal; and their median."""
    rng = np.random.default_rng(seed)

    def draw():
        u = rng.random(n)
        return np.where(u < up, INF, np.where(u > 1 - down, -INF, rng.normal(0, sd, n)))

    return draw, sd * stats.norm.ppf((0.5 - down) / (1 - up - down))


# Equal.


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("centre", [1.0, -1.0])
def test_equal_at_its_margin(n, centre):
    """Catches an 80 % interval (10 % hold), a 95 % one (2.5 %), normal for Student's quantiles, ddof = 0, one bound."""
    found = counts(normal(n, n, centre, 0.05), "equal", 1.0)
    assert about(0.05, found[HOLDS]) and about(0.025, found[FAILS])


def test_equal_at_its_margin_with_a_wide_spread():
    """The other bound is near too, which makes a wrong `holds` rarer, never more frequent."""
    found = counts(normal(0, 5, 1.0, 2.0), "equal", 1.0)
    assert at_most(0.05, found[HOLDS]) and about(0.025, found[FAILS])


@pytest.mark.parametrize("n", [3, 5, 10])
def test_equal_and_different_are_found_where_they_are_plain(n):
    """Catches a mechanism that is never wrong because it never decides, and one that looks at one side only."""
    assert at_least(0.999, counts(normal(1, n, 0.0, 0.05), "equal", 1.0, draws=1000)[HOLDS], 1000)
    for centre in (-5.0, 5.0):
        assert at_least(0.999, counts(normal(2, n, centre, 0.05), "equal", 1.0, draws=1000)[FAILS], 1000)


def test_a_spread_wider_than_the_margin_decides_nothing():
    """Catches "no significant difference" taken for "equal"."""
    found = counts(normal(3, 5, 0.0, 2.0), "equal", 1.0)
    assert at_most(0.05, found[HOLDS]) and at_most(0.05, found[FAILS]) and at_least(0.9, found[OPEN])


# Above and below.


@pytest.mark.parametrize("n, margin", [(3, 0.3), (5, 0.0), (10, -0.2)])
@pytest.mark.parametrize("test", ["above", "below"])
def test_above_and_below_at_their_margin(n, test, margin):
    """Catches a 90 % interval (5 %), a 99 % one (0.5 %), and a margin that is ignored or has the wrong sign."""
    found = counts(normal(n, n, margin, 0.1), test, margin)
    assert about(0.025, found[HOLDS]) and about(0.025, found[FAILS])


@pytest.mark.parametrize("margin", [0.0, 0.3, -0.2])
def test_above_and_below_where_they_are_plain(margin):
    """Catches sides that are swapped."""
    for sign, above, below in ((1, HOLDS, FAILS), (-1, FAILS, HOLDS)):
        draw = normal(4, 5, margin + sign, 0.05)
        assert at_least(0.999, counts(draw, "above", margin, draws=1000)[above], 1000)
        assert at_least(0.999, counts(draw, "below", margin, draws=1000)[below], 1000)


# Parts.


def test_a_claim_of_four_parts_fails_wrongly_no_more_often_than_one_of_one():
    """Each part fails wrongly in 0.625 % (one side of 5 % / 4), any of four in 2.5 %; without k it would be 9.6 %."""
    rng, wrong, held = np.random.default_rng(5), 0, 0
    tests = (("equal", 1.0), ("equal", 2.0), ("above", 0.3), ("below", -0.2))
    for _ in range(DRAWS):
        judged = judge_parts([Part(test, tuple(rng.normal(m, 0.1, 5)), test, m) for test, m in tests])
        wrong += any(j.outcome == FAILS for j in judged)
        held += judged[0].outcome == HOLDS
    assert about(1 - (1 - 0.05 / 4 / 2) ** 4, wrong) and at_most(0.05, wrong)
    assert about(0.05, held)  # k is no part of it: all parts must hold anyway


def test_four_parts_that_are_plainly_wrong_fail():
    rng = np.random.default_rng(6)
    for _ in range(200):
        parts = [Part("p", tuple(rng.normal(-2, 0.05, 5)), test, 1.0) for test in ("equal", "above") * 2]
        assert [j.outcome for j in judge_parts(parts)] == [FAILS] * 4


# Deaths.


@pytest.mark.parametrize(
    "n, level, reached",
    [(5, 0.9, 1 - 2 / 2**5), (5, 0.95, 1 - 2 / 2**5), (9, 0.95, 1 - 2 * (1 + 9) / 2**9), (9, 0.9875, 1 - 2 / 2**9)],
)
def test_the_median_of_runs_that_may_die_is_covered_as_often_as_stated(n, level, reached):
    """Catches deaths that are dropped (the median of the others is another) and ranks that are off by one."""
    draw, median = of_the_dead(1.0, n, up=0.45, down=0.3)  # almost no draw is without a death
    hits = 0
    for _ in range(DRAWS):
        i = interval([*draw()], level)
        hits += i.low <= median <= i.high
    assert about(reached, hits)
    assert interval([INF, *range(n - 1)], level).level == pytest.approx(reached)


@pytest.mark.parametrize("n", [5, 9, 20])
@pytest.mark.parametrize("test", ["equal", "below", "above"])
def test_deaths_with_the_median_at_the_margin(n, test):
    """Student's interval without deaths and order statistics with them keep, together, what each promises.

    A 95 % interval of five with a death is one of 93.75 %: at most 3.1 % on a side. Catches deaths that are dropped:
    the survivors of this world are far below the margin.
    """
    draw, median = of_the_dead(0.1, n, up=0.4)
    found = counts(lambda: draw() + 1.0 - median, test, 1.0)
    most = max(0.025, 1 / 2**n)
    assert at_most(0.05 if test == "equal" else most, found[HOLDS]) and at_most(most, found[FAILS])


def test_deaths_limit_the_level_of_a_claim_of_many_parts():
    """With five replicates a death limits the level to 93.75 %, too little to fail one of several parts."""
    for n, k, found in [(5, 1, FAILS), (5, 2, OPEN), (6, 2, FAILS), (6, 3, FAILS), (6, 4, OPEN), (7, 4, FAILS)]:
        assert outcome([INF] * n, "below", 1.0, k)[0] == found
    draw, median = of_the_dead(1.0, 5, up=0.45, down=0.3, seed=1)
    assert at_most(1 / 2**5, counts(draw, "above", median, k=4)[FAILS])
    draw, median = of_the_dead(1.0, 9, up=0.45, down=0.3, seed=1)
    assert at_most(0.05 / 4 / 2, counts(draw, "above", median, k=4)[FAILS])


@pytest.mark.parametrize("dead", [1, 2, 3, 4])
def test_survivors_that_look_equal_do_not_make_it_equal(dead):
    """Never in any draw. Catches deaths that are dropped: the survivors alone would hold."""
    rng = np.random.default_rng(dead)
    for _ in range(1000):
        x = rng.permutation([*rng.normal(0, 0.01, 5 - dead), *[INF] * dead])
        assert outcome(x, "equal", 1.0)[0] == outcome(-x, "equal", 1.0)[0] == OPEN
        assert outcome(x, "below", 1.0)[0] == outcome(-x, "above", -1.0)[0] == OPEN


def test_where_half_of_the_runs_die_equal_holds_only_if_none_is_seen_to():
    draw, _ = of_the_dead(0.01, 5, up=0.499)
    assert about(1 / 2**5, counts(draw, "equal", 1.0)[HOLDS])


def test_few_deaths_among_many_runs_still_allow_it_to_hold():
    x = [*np.linspace(-0.1, 0.1, 8), INF]
    assert outcome(x, "equal", 1.0)[0] == HOLDS
    assert outcome([*x[:-2], INF, INF], "equal", 1.0)[0] == OPEN


def test_without_a_death_the_interval_is_students():
    rng = np.random.default_rng(7)
    for level in (0.9, 0.95, 0.9875):
        x = rng.normal(0, 1, 5)
        i = interval(x, level)
        assert (i.low, i.high) == pytest.approx(stats.t.interval(level, 4, x.mean(), stats.sem(x)))
        assert i.centre == pytest.approx(x.mean()) and i.level == level


def test_all_dead():
    judged = {test: judge_part(Part("p", (INF,) * 5, test, 1.0)) for test in ("equal", "above", "below")}
    assert [j.outcome for j in judged.values()] == [FAILS, HOLDS, FAILS]
    assert {(j.effect, j.interval, j.level, j.dead) for j in judged.values()} == {(None, (None, None), 0.9375, 5)}
    json.dumps([j.to_dict() for j in judged.values()], allow_nan=False)
    assert outcome([-INF] * 5, "below", 1.0)[0] == HOLDS
    for n in (3, 4):  # the level, 75 % and 87.5 %, is too low
        assert {outcome([INF] * n, test, 1.0)[0] for test in judged} == {OPEN}


@pytest.mark.parametrize("test", ["equal", "above", "below"])
def test_pairs_that_both_died_leave_it_open(test):
    for x in ([NAN] * 5, [0.0] * 9 + [NAN], [5.0] * 9 + [NAN], [INF] * 9 + [NAN], [-INF, NAN, INF]):
        j = judge_part(Part("p", tuple(x), test, 1.0))
        assert j.outcome == OPEN and j.effect is None and j.needs.startswith("runs that do not get stuck")


@pytest.mark.parametrize("test", ["equal", "above", "below"])
def test_one_or_two_replicates_decide_nothing(test):
    """Catches FEWEST = 2; that two values are the same, or far away, does not help."""
    rng = np.random.default_rng(8)
    for x in ([], [0.0], [9.0], [-9.0], [INF], [0.0, 0.0], [9.0, 9.0], [-9.0, -9.0], [INF, INF], [-INF, 0.0], [NAN]):
        assert judge_part(Part("p", tuple(x), test, 1.0)).outcome == OPEN
    for sd in (1e-6, 1.0):
        for centre in (-9.0, 0.0, 9.0):
            assert counts(normal(9, 2, centre, sd), test, 1.0, draws=200) == {OPEN: 200}
    assert outcome(rng.normal(0, 1e-6, 3), "equal", 1.0)[0] == HOLDS


# The budget gate.


def gated(test, margin, half, full, draws=1000, sd=0.02, seed=0):
    """Outcomes of five replicates, each with its own offset, whose effect goes from `half` to `full`."""
    rng, found = np.random.default_rng(seed), Counter()
    for _ in range(draws):
        own = rng.normal(0, sd, 5)
        x, y = (tuple(centre + own + rng.normal(0, sd, 5)) for centre in (half, full))
        j = judge_part(Part("p", y, test, margin, x))
        assert (j.outcome == OPEN) == (j.needs != "")
        assert j.outcome in (OPEN, judge_part(Part("p", y, test, margin)).outcome)  # the gate never decides
        found[j.outcome, j.converged] += 1
    return found


SETTLED = [("equal", 0.0, HOLDS), ("equal", 2.0, FAILS), ("equal", -2.0, FAILS)]
SETTLED += [("above", 2.0, HOLDS), ("above", 0.0, FAILS), ("below", 2.0, FAILS), ("below", 0.0, HOLDS)]


@pytest.mark.parametrize("test, effect, verdict", SETTLED)
def test_a_converged_effect_keeps_its_outcome(test, effect, verdict):
    """Catches a gate that always closes; the steps have a noise of their own, which doubling amplifies."""
    assert gated(test, 1.0, effect, effect) == {(verdict, True): 1000}


TOWARDS = [("equal", 0.1, 0.6), ("equal", -0.1, -0.6), ("equal", 3.0, 1.8), ("above", 2.0, 1.4)]
TOWARDS += [("above", 0.0, 0.6), ("below", 0.0, 0.6), ("below", 2.0, 1.4)]


@pytest.mark.parametrize("test, half, full", TOWARDS)
def test_an_effect_on_its_way_to_the_margin_is_left_open(test, half, full):
    """Half and full budget agree, the next doubling would not. Catches a gate that compares these two alone."""
    assert gated(test, 1.0, half, full) == {(OPEN, False): 1000}
    assert "twice the steps" in judge_part(Part("p", (full,) * 5, test, 1.0, (half,) * 5)).needs
    assert outcome([half] * 5, test, 1.0)[0] == outcome([full] * 5, test, 1.0)[0] != OPEN


@pytest.mark.parametrize("test, half, full", [("equal", 1.5, 0.5), ("above", 0.5, 1.5), ("below", 0.5, 2.0)])
def test_another_verdict_at_half_the_budget_is_left_open(test, half, full):
    """Catches a gate that only extrapolates."""
    assert gated(test, 1.0, half, full) == {(OPEN, False): 1000}


AWAY = [("equal", 0.6, 0.2, HOLDS), ("equal", 1.5, 2.5, FAILS), ("above", 1.5, 2.5, HOLDS), ("above", 0.5, 0.0, FAILS)]


@pytest.mark.parametrize("test, half, full, verdict", [*AWAY, ("below", 0.5, 0.0, HOLDS), ("below", 1.5, 2.5, FAILS)])
def test_an_effect_that_leaves_the_margin_behind_stays_decided(test, half, full, verdict):
    """Catches a gate that closes for every drift."""
    assert gated(test, 1.0, half, full) == {(verdict, True): 1000}


def test_a_gate_that_is_not_run_says_nothing():
    assert judge_part(Part("p", (0.0, 0.1, -0.1), "equal", 1.0)).converged is None
    j = judge_part(Part("p", (0.0, 3.0, -3.0), "equal", 1.0, (0.0, 3.0, -3.0)))  # open already
    assert (j.outcome, j.converged) == (OPEN, None) and j.needs.startswith("about")


@pytest.mark.parametrize("change, said", [(-3.0, "twice the steps, if"), (3.0, "twice the steps, if"), (0.0, "about")])
def test_what_is_open_and_moves_may_be_decided_by_more_steps(change, said):
    """Towards either side of its margin; one that does not move wants more replicates."""
    full = np.array((0.7, 1.5, 0.9))
    j = judge_part(Part("p", tuple(full), "below", 1.0, tuple(full - change)))
    assert (j.outcome, j.converged) == (OPEN, None) and j.needs.startswith(said) and "about" in j.needs


def test_deaths_at_the_gate():
    alive, dead = (0.0,) * 5, (INF,) * 5
    for full, half, found in [(dead, dead, (FAILS, True)), (dead, alive, (OPEN, False)), (alive, dead, (OPEN, False))]:
        j = judge_part(Part("p", full, "equal", 1.0, half))
        assert (j.outcome, j.converged) == found
    full = (*np.linspace(0.2, 0.4, 8), INF)  # one that died meanwhile, and others that approach the margin
    assert judge_part(Part("p", full, "equal", 1.0, (0.3,) * 9)).converged is True
    assert judge_part(Part("p", full, "equal", 1.0, (-0.5,) * 9)).converged is False


# The replicates that would decide.

WORLDS = [("equal", 0.0, 1), ("equal", 0.5, 1), ("equal", 1.5, 1), ("equal", -1.5, 4), ("above", 1.5, 1)]
WORLDS += [("above", 0.5, 4), ("below", 0.5, 4), ("below", 1.5, 4)]


@pytest.mark.parametrize("test, centre, k", WORLDS)
@pytest.mark.parametrize("sd", [1.0, 2.0])
def test_the_number_that_is_asked_for_decides_every_other_time(test, centre, k, sd):
    """Catches a k that is forgotten (28 %), and an "equal" whose mean strays to one side only (31 %)."""
    j = judge_part(Part("p", tuple(exactly(3, centre, sd)), test, 1.0), k)
    assert j.outcome == OPEN and re.fullmatch(r"about \d+ replicates, by the spread of these 3", j.needs)
    m = int(re.search(r"\d+", j.needs)[0])
    assert at_least(0.48, 1000 - counts(normal(10, m, centre, sd), test, 1.0, k, 1000)[OPEN], 1000)
    assert at_most(0.5, 1000 - counts(normal(11, max(3, m // 4), centre, sd), test, 1.0, k, 1000)[OPEN], 1000)


def test_what_else_would_decide():
    assert needed([], "equal", 1.0) == "3 replicates or more; it has 0"
    assert needed([0.0, INF], "equal", 1.0) == "3 replicates or more; it has 2"
    assert needed([0, 1, INF, -INF, NAN], "above", 1.0).startswith("runs that do not get stuck (3 of 5 did)")
    assert needed([INF] * 4, "above", 1.0) == "about 5 replicates, if as many get stuck (4 of 4 did)"
    assert needed([0.0, 0.1, 0.2, INF], "below", 1.0) == "about 17 replicates, if as many get stuck (1 of 4 did)"
    assert outcome([0.0] * 13 + [INF] * 4, "below", 1.0)[0] == HOLDS  # as many of 17
    assert needed([0.0, 0.1, INF, INF], "below", 1.0) == "runs that do not get stuck (2 of 4 did)"
    at_margin = "the effect is at its margin: more than 1000 replicates, by the spread of these "
    assert needed([0, 1, 2], "above", 1.0) == f"{at_margin}3"
    assert needed([0, 1, 2, 3, 4], "above", 1.95) == f"{at_margin}5"
    assert judge_part(Part("p", (0.0, 0.0, 0.0), "equal", 1.0)).needs == ""


# The part that decides.


def test_the_worst_part():
    """Failed before open before held; among these the farthest on the wrong side, whatever the test."""

    def part(name, test, centre, sd=0.01):
        return Part(name, tuple(exactly(5, centre, sd)), test, 1.0)

    failed = [part("-5", "equal", -5.0), part("3", "below", 3.0), part("0.5", "above", 0.5)]
    opened = [part("1.9", "equal", -1.9, 9.0), part("0.9", "above", 0.9, 9.0), part("0.8", "below", 0.8, 9.0)]
    held = [part("-0.9", "equal", -0.9), part("1.2", "above", 1.2), part("0.5", "below", 0.5), part("0", "equal", 0.0)]
    parts, order = failed + opened + held, []
    for seed in range(len(parts)):
        mixed = np.random.default_rng(seed).permutation(len(parts))
        assert worst(judge_parts([parts[i] for i in mixed])).name == parts[0].name
    left = judge_parts(parts)
    while left:
        order.append(worst(left))
        left.remove(order[-1])
    assert [j.name for j in order] == [p.name for p in parts]
    assert [j.outcome for j in order] == [FAILS] * 3 + [OPEN] * 3 + [HOLDS] * 4


def test_the_worst_part_with_deaths():
    """Infinitely far on the right side is not the worst; on the wrong side, or nobody knows where, is."""
    dead, near = Part("dead", (INF,) * 5, "above", 1.0), Part("near", (1.1, 1.1, 1.1), "above", 1.0)
    assert worst(judge_parts([dead, near])).name == "near"
    dead, near = Part("dead", (INF,) * 6, "equal", 1.0), Part("near", (9.0, 9.0, 9.0), "equal", 1.0)
    assert worst(judge_parts([near, dead])).name == "dead"
    dead, near = Part("dead", (NAN,) * 5, "above", 1.0), Part("near", (-9.0, 0.0, 9.0), "above", 1.0)
    assert worst(judge_parts([near, dead])).name == "dead"


# Ratios.


def test_ratios_are_paired_by_seed():
    """What a seed does to both is gone. Catches ratios of sorted values, or to a mean."""
    rng = np.random.default_rng(12)
    seed = np.exp(rng.normal(0, 3, 5))
    assert ratios(2 * seed, seed) == pytest.approx([np.log(2)] * 5)
    assert ratios([1, 4], [2, 1]) == pytest.approx([-np.log(2), np.log(4)])
    with pytest.raises(ValueError):
        ratios([1, 2, 3], [1, 2])


def test_ratios_of_the_dead():
    """The value of a dead run is of no account, even if it is missing."""
    dead, of_dead = [False, False, True, True], [False, True, False, True]
    found = ratios([1, 2, NAN, 1e9], [1, 3, 2, NAN], dead, of_dead)
    assert found[:3] == (0.0, -INF, INF) and np.isnan(found[3])
    assert ratios([1, 2], [1, 1], of_dead=[True, False]) == pytest.approx([-INF, np.log(2)])
    assert outcome(ratios([1.0] * 5, [1.0] * 5, dead=[True, True, False, False, False]), "equal", 0.1)[0] == OPEN
