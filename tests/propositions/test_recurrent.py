import itertools
import math

import numpy as np
import pytest

from attnrate.linear.targets import FILTERS, draw_filter
from attnrate.propositions import recurrent
from attnrate.propositions.recurrent import COUNTER_EXAMPLES, c_rnn, causal, mixed, norm, rate, shifted, values

S = np.arange(2.0 * recurrent.LENGTH)
DRAWN = [(name, seed) for name in FILTERS for seed in range(20)]


def test_mixtures_are_the_sums_of_their_definition():
    rho, theta = np.random.default_rng(0).random(12), draw_filter("signed", 0)
    assert shifted(rho, theta) == pytest.approx([theta @ rho[s : s + 5] for s in range(8)])
    assert causal(rho, theta) == pytest.approx(
        [sum(theta[j] * rho[s - j] for j in range(min(5, s + 1))) for s in range(12)]
    )


def test_both_inequalities_hold_and_positive_filters_attain_them():
    for name, seed in DRAWN:
        row = recurrent.filter_row(name, seed)
        for way in ("96", "causal"):
            assert row[f"ratio_{way}"] <= row[f"bound_{way}"] * (1 + 1e-12)
            if name == "positive":
                assert row[f"ratio_{way}"] == pytest.approx(row[f"bound_{way}"]) and row["negative_mass"] == 0
        assert row["bound_96"] <= row["norm1"] <= row["bound_causal"]
    assert recurrent.filter_row("signed", 0)["negative_mass"] == pytest.approx(0.410935, abs=1e-6)


def test_the_inequalities_hold_for_any_kernel():
    rng = np.random.default_rng(0)
    for seed in range(20):
        rho, theta = rng.standard_normal(40) * np.exp(-np.arange(40)), draw_filter("signed", seed)
        assert norm(shifted(rho, theta)) <= norm(rho) * np.abs(theta) @ np.exp(-np.arange(5)) * (1 + 1e-12)
        assert norm(causal(rho, theta)) <= norm(rho) * np.abs(theta) @ np.exp(np.arange(5)) * (1 + 1e-12)


@pytest.mark.parametrize("name", COUNTER_EXAMPLES)
def test_counter_examples_satisfy_the_assumptions_and_mix_as_their_values_do(name):
    modes, theta = COUNTER_EXAMPLES[name]
    s = S[:12]  # beyond, cancellation eats the digits of the sum
    assert (values(modes, S) <= np.exp(-S)).all() and np.abs(theta).sum() == pytest.approx(1)
    direct = sum(value * values(modes, s + j) for j, value in enumerate(theta))
    assert values(mixed(modes, theta), s) == pytest.approx(direct, rel=1e-4)


def test_proposition_6_3_fails_in_both_readings():
    first, second = recurrent.counter_examples().values()
    assert first["literal"] == {
        "before": 1.5,
        "after": pytest.approx(1.5 * (0.9 + 0.2 * math.exp(-2))),
        "in_space": True,
        "exceeds": True,
    }
    assert not first["corrected"]["in_space"]  # and so no counter-example without "1 +"
    assert second["corrected"] == {"before": 1.0, "after": math.inf, "in_space": True, "exceeds": True}


def test_infinite_means_that_the_weighted_kernel_grows_without_bound():
    mix = mixed(*COUNTER_EXAMPLES["(e^-s + (1+s) e^-2s) / 2"])
    weighted = np.exp(2 * S[:60]) * np.abs(values(mix, S[:60]))
    assert list(mix) == [2.0] and (np.diff(weighted[1:], 2) < 1e-9).all() and np.diff(weighted).min() > 0.05


def test_c_rnn_of_an_exponential():
    for rate_ in (0.5, 1.0, 3.0):
        assert c_rnn({rate_: (1.0, 0.0)}, corrected=True) == pytest.approx(1 / rate_)
        assert c_rnn({rate_: (1.0, 0.0)}, corrected=False) == pytest.approx(1 + 1 / rate_)


def test_hankel_rank_is_the_number_of_units():
    assert rate(np.exp(-S))["rank"] == 1 and rate(np.exp(-S))["hankel"] < 1e-12
    assert rate((1 + S) * np.exp(-2 * S))["rank"] == 2
    assert rate(np.exp(-S) + np.exp(-2 * S) + np.exp(-3 * S))["rank"] == 3


def test_the_rate_of_d1_holds_and_the_errors_are_in_order():
    for name, row in recurrent.rates(DRAWN).items():
        assert row["hankel"] < row["memory"] < 1, name


def test_the_rate_of_d1_fails_for_slow_kernels_without_smoothness():
    ratios = [recurrent.rough(gamma) for gamma in recurrent.ROUGH]
    assert ratios[-1] > 2  # more than the factor two between the errors
    assert all(1.8 < b / a < 2.2 for a, b in itertools.pairwise(ratios))  # √4: no constant would do
    smooth = np.exp(-np.arange(4 * 256) / 256)
    assert recurrent.hankel_values(smooth)[1] < 1e-10
