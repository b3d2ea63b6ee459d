"""Learning-rate schedules: closed forms, and what all of them have in common."""

import itertools
import math

import numpy as np
import pytest

from attnrate.optim.schedules import SCHEDULES, branch, factor


def values(schedule, steps=100, warmup=20):
    return [factor(schedule, step, steps, warmup) for step in range(steps)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_rise_to_one_and_never_above(schedule):
    found = values(schedule)
    assert max(found) <= 1 and min(found) > 0 and np.argmax(found) in (0, 19, 20)
    assert all(a <= b for a, b in itertools.pairwise(found[:20]))
    assert all(a >= b for a, b in itertools.pairwise(found[20:]))


@pytest.mark.parametrize("schedule", sorted({*SCHEDULES} - {"one-cycle"}))
def test_the_warm_up_is_linear(schedule):
    assert values(schedule)[:20] == pytest.approx([(step + 1) / 20 for step in range(20)])


def test_one_cycle_rises_from_a_25th():
    found = values("one-cycle")
    assert found[0] == 1 / 25 and found[10] == pytest.approx((1 + 1 / 25) / 2) and found[20] == 1


@pytest.mark.parametrize(
    ("schedule", "half", "last"),
    [
        ("constant", 1, 1),
        ("cosine", 0.5, 0.5 * (1 + math.cos(math.pi * 79 / 80))),
        ("one-cycle", 0.5, 0.5 * (1 + math.cos(math.pi * 79 / 80))),
        ("linear", 0.5, 1 / 80),
        ("inverse-sqrt", math.sqrt(20 / 61), math.sqrt(20 / 100)),
        ("trunk", 0.8, 1 / 50),  # of the last half of 100 steps
    ],
)
def test_after_the_warm_up_each_has_its_own_form(schedule, half, last):
    found = values(schedule)
    assert (found[60], found[99]) == pytest.approx((half, last))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_without_a_warm_up_the_first_step_is_whole(schedule):
    """Even if it is the only one."""
    assert factor(schedule, 0, 1, 0) == factor(schedule, 0, 100, 0) == 1


@pytest.mark.parametrize("steps", [6, 7, 100, 2400])
def test_half_the_steps_leave_the_trunk_where_their_own_rate_begins_to_fall(steps):
    """Up to there the two have the same rate, from there on half the steps have a lower one."""
    half = steps // 2
    rates = [[factor("trunk", step, of, 0) for step in range(half)] for of in (steps, half)]
    at = branch(steps)
    assert rates[0][:at] == rates[1][:at] == [1] * at and at >= half / 2 - 1
    assert all(a > b for a, b in zip(rates[0][at + 1 :], rates[1][at + 1 :], strict=True))
