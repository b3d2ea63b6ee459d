"""Slopes on doubly logarithmic axes."""

import numpy as np
import pytest

from attnrate.laws.powerlaw import loglog_slope


@pytest.mark.parametrize("slope", [-3.0, -0.1, 0.0, 2.0])
def test_a_pure_power_law_gives_its_exponent(slope):
    x = np.arange(1, 17)
    fit = loglog_slope(x, 0.37 * x**slope)
    assert fit["slope"] == pytest.approx(slope, abs=1e-12) and fit["n"] == 16
    assert fit["high"] - fit["low"] < 1e-6


def test_units_do_not_matter():
    rng = np.random.default_rng(0)
    x, y = np.arange(1, 9), rng.random(8)
    a, b = loglog_slope(x, y), loglog_slope(7 * x, 1e-6 * y)
    assert a == pytest.approx(b)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_interval_holds_the_slope_as_often_as_it_says(confidence):
    """600 noisy power laws; the share is within 4 standard errors of the confidence."""
    rng, x, runs = np.random.default_rng(1), np.arange(1, 9), 600
    hits = 0
    for _ in range(runs):
        fit = loglog_slope(x, x**-1.5 * np.exp(0.3 * rng.standard_normal(8)), confidence)
        hits += fit["low"] <= -1.5 <= fit["high"]
    assert abs(hits / runs - confidence) < 4 * np.sqrt(confidence * (1 - confidence) / runs)


def test_more_confidence_is_a_wider_interval_about_the_same_slope():
    x, y = [1, 2, 4, 8], [1, 0.6, 0.2, 0.11]
    narrow, wide = loglog_slope(x, y, 0.5), loglog_slope(x, y, 0.99)
    assert wide["low"] < narrow["low"] < narrow["slope"] == wide["slope"] < narrow["high"] < wide["high"]
