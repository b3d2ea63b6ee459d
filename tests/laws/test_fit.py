import numpy as np
import pytest

from attnrate.laws.fit import AUTHORS_ERROR, AUTHORS_MH, compare, fit


def test_the_authors_points():
    """Figure 3(b): the printed 1/m_h^0.27 + 1.05 lacks its prefactor."""
    f = fit(AUTHORS_MH, AUTHORS_ERROR)
    assert f.a == pytest.approx(0.268, abs=0.03) and f.b == pytest.approx(1.052, abs=0.05)
    assert f.c == pytest.approx(0.693, abs=0.001)
    assert f.low["a"] < 0.24 < 0.30 < f.high["a"] and 0.15 < f.low["a"] and f.high["a"] < 0.4
    assert f.low["b"] < f.b < f.high["b"] and f.low["c"] < f.c < f.high["c"]
    laws = compare(AUTHORS_MH, AUTHORS_ERROR)
    assert min(laws, key=lambda law: laws[law].aicc) == "power"


@pytest.mark.parametrize("law", ["power", "power b=0", "exponential"])
def test_exact_points_are_found_exactly(law):
    x = np.array([1, 2, 3, 5, 8, 13, 21])
    shape = np.exp(-0.3 * x) if law == "exponential" else x**-0.7
    y = 2.0 * shape + (0.0 if "b=0" in law else 0.5)
    f = fit(x, y, law)
    assert f.a == pytest.approx(0.3 if law == "exponential" else 0.7, rel=1e-4)
    assert f.c == pytest.approx(2.0, rel=1e-4) and f.b == pytest.approx(0.0 if "b=0" in law else 0.5, abs=1e-4)
    assert f(x) == pytest.approx(y, rel=1e-4)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng, x = np.random.default_rng(0), np.array([1, 2, 4, 8, 16, 32, 64])
    hits = 0
    for _ in range(60):
        f = fit(x, 0.7 * x**-0.4 + 1.0 + rng.normal(0, 0.01, len(x)))
        hits += (f.low["a"] or 0) <= 0.4 <= (f.high["a"] or np.inf)
    assert hits >= 51


def test_points_without_a_trend_leave_the_exponent_open():
    f = fit([1, 2, 4, 8, 16, 32], [1.0, 1.1, 0.9, 1.05, 0.95, 1.0])
    assert f.low["a"] is None or f.high["a"] is None


def test_relative_residuals_weigh_small_values_too():
    k = np.arange(1, 30)
    y = k**-1.5 * (1 + 0.01 * np.sin(k))
    assert fit(k, y, "power b=0", relative=True).a == pytest.approx(1.5, abs=0.02)


def test_too_few_points():
    with pytest.raises(ValueError, match="3 points cannot decide 3 parameters"):
        fit([1, 2, 3], [3, 2, 1])
    assert fit([1, 2, 3, 4, 5], [3, 2, 1.6, 1.4, 1.3]).aicc is None
