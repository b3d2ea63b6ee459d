"""Complexity measures and the bound (17), against closed forms and against what they bound."""

import numpy as np
import pytest
from scipy.special import zeta

from attnrate.rates import theory
from attnrate.rates.pod import pair, phi, singular_values

ALPHAS = (0.55, 1.0, 1.5, 2.0)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("mh", [0, 1, 16])
def test_tail_sum_is_a_difference_of_zeta_values(alpha, mh):
    """Σ_{m < i ≤ R} i^-2α = ζ(2α, m + 1) - ζ(2α, R + 1)."""
    closed = zeta(2 * alpha, mh + 1) - zeta(2 * alpha, 513)
    assert theory.tail_sum(singular_values(alpha, "inf", 512), mh) == pytest.approx(closed, rel=1e-9)


def test_tail_sum_of_a_finite_rank_vanishes_from_the_rank_on():
    sigma = singular_values(1.0, 6, 99)
    assert theory.tail_sum(sigma, 5) == pytest.approx(1 / 36)
    assert theory.tail_sum(sigma, 6) == theory.tail_sum(sigma, 60) == 0


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_tail_sum_needs_the_corrected_constant(alpha):
    """Σ_{i > m} σ_i² ≤ C_1² / (2α - 1) m^-(2α-1), and where 2α - 1 < 1 the printed C_1 is too small."""
    sigma = singular_values(alpha, "inf", 10**6)
    tails = np.array([theory.tail_sum(sigma, m) * m ** (2 * alpha - 1) for m in (1, 2, 4, 8, 16)])
    assert (tails <= theory.c1(sigma, alpha) ** 2 / (2 * alpha - 1)).all()
    if 2 * alpha - 1 < 1:
        assert (tails > theory.c1(sigma, alpha)).all()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_c1_is_the_least_constant(alpha):
    """Eq. (12): it bounds every σ_s, and is attained."""
    assert theory.c1(singular_values(alpha, 9, 9), alpha) == pytest.approx(1)
    sigma = np.random.default_rng(0).random(20)
    ratio = sigma * np.arange(1, 21) ** alpha
    assert theory.c1(sigma, alpha) >= ratio.max() and theory.c1(sigma, alpha) in ratio


@pytest.mark.parametrize("i", [1, 3, 8])
@pytest.mark.parametrize("m", [64, 256])
def test_interpolation_on_m_knots_is_within_the_feed_forward_rate(i, m):
    """Eq. (13) with β = 2, and its constant is sharp to a few per cent."""
    x, knots = np.linspace(0, 1, 20001), np.linspace(0, 1, m + 1)  # m intervals
    error = np.abs(phi(np.array([i]), x)[:, 0] - np.interp(x, knots, phi(np.array([i]), knots)[:, 0])).max()
    assert 0.9 * theory.c_ff(i) < error * m**theory.BETA <= theory.c_ff(i) * (1 + 1e-9)


def test_c2_counts_both_bases_up_to_the_rank():
    one, same = theory.c_ff(1), pair("same", 99)
    assert theory.c2(3, same) == pytest.approx(2 * one * (1 + 4 + 9))
    assert theory.c2(10, same[:2]) == theory.c2(2, same) == pytest.approx(10 * one)
    assert theory.c2(3, np.array([1, 3, 2, 9])) == pytest.approx(theory.c2(3, same))
    assert theory.c2(2, np.array([1, 3])) == pytest.approx(one * (1 + 1 + 4 + 9))


def bound(sigma, *arguments):
    """With ψ_i = φ_i."""
    return theory.bound(sigma, pair("same", len(sigma)), *arguments)


def test_c0_is_the_maximum_where_the_paper_prints_the_infimum():
    sup = 2 * np.sqrt(2)  # K_F ‖f‖ = 1 and sup |φ| + sup |ψ| = 2 √2
    assert theory.c0(corrected=True) == pytest.approx(sup)
    assert theory.c0(corrected=False) == 1


@pytest.mark.parametrize("reading", theory.READINGS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_bound_falls_with_the_width_and_grows_with_the_length(alpha, reading):
    sigma = singular_values(alpha, "inf", 64)
    by_width = [bound(sigma, alpha, 4, w, 16, reading) for w in (16, 64, 256, 1024)]
    assert sorted(by_width, reverse=True) == by_width and len(set(by_width)) == 4
    assert bound(sigma, alpha, 4, 64, 32, reading) == pytest.approx(4 * by_width[1])


@pytest.mark.parametrize("reading", theory.READINGS)
def test_the_two_terms_of_the_bound_pull_mh_in_opposite_directions(reading):
    sigma = singular_values(2.0, "inf", 64)
    wide = [bound(sigma, 2.0, mh, 10**9, 16, reading) for mh in (1, 2, 4, 8)]
    narrow = [bound(sigma, 2.0, mh, 16, 16, reading) for mh in (1, 2, 4, 8)]
    assert sorted(wide, reverse=True) == wide and sorted(narrow) == narrow


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_first_term_has_the_slope_of_its_reading(alpha):
    """m_h^-(2α-1), and half of it where Cauchy-Schwarz leaves a square root."""
    sigma = singular_values(alpha, "inf", 64)
    for reading, slope in (("literal", 2 * alpha - 1), ("constants", 2 * alpha - 1), ("root", alpha - 0.5)):
        first = [bound(sigma, alpha, mh, 10**12, 16, reading) for mh in (2, 8)]
        assert np.log(first[0] / first[1]) / np.log(4) == pytest.approx(slope, rel=1e-6)


def test_the_literal_bound_by_hand():
    """τ² C_0 (C_1 / m_h^(2α-1) + C_2 m_h^(β+1) / m_FF^β) for α = 1, m_h = 2, m_FF = 128, τ = 16."""
    c_2 = 2 * np.sqrt(2) / 8 * (2 * np.pi) ** 2 * (1 + 4)
    expected = 256 * 1 * (1 / 2 + c_2 * 8 / 128**2)
    assert bound(singular_values(1.0, 6, 6), 1.0, 2, 128, 16, "literal") == pytest.approx(expected)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_corrected_first_term_covers_the_tail_and_not_much_more(alpha):
    """At m_h = 16 the tail sum is within 15 % of C_1² / (2α - 1) m_h^-(2α-1); `root` takes the square root of both."""
    sigma = 3 * np.arange(1.0, 513) ** -alpha
    beyond = 9 * zeta(2 * alpha, 513)  # the terms that the cut at R leaves out
    tail = theory.tail_sum(sigma, 16) + beyond
    for reading, least in (("constants", tail), ("root", tail**0.5)):
        first = bound(sigma, alpha, 16, 10**12, 1, reading) / theory.c0()
        assert least <= first < 1.15 * least
