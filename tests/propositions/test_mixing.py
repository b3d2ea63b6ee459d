import numpy as np
import pytest

from attnrate.linear.targets import FILTERS, draw_filter
from attnrate.propositions import mixing

TAU = 32


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("seed", range(3))
def test_causal_mixing_has_the_form_75_and_the_printed_one_has_not(name, seed):
    row = mixing.row(name, seed, TAU)
    assert row["causal_deviation"] < 1e-14
    assert row["future"] > 0.3 and row["deviation_96"] > row["deviation_96_past"] > 0.01


def test_deviations_are_those_of_94_term_by_term():
    theta, rho = draw_filter("signed", 1), np.exp(-np.arange(TAU + 4.0))
    literal, dropped = np.zeros((2, TAU, TAU))
    for t in range(TAU):
        for s in range(t + 1):
            for j in range(5):
                if t - s + j < TAU:
                    literal[t, t - s + j] += theta[j] * rho[s]  # (95)
                dropped[t, t - s] += theta[j] * rho[s + j]  # (96)
    row, after = mixing.row("signed", 1, TAU), np.triu(np.ones((TAU, TAU)), 1)
    assert row["future"] == pytest.approx((literal**2 * after).sum() / (literal**2).sum())
    assert row["deviation_96"] == pytest.approx(np.abs(literal - dropped).max())
    # Inputs from l - 1 on have all their terms: there only the future is missing.
    assert np.abs((literal - dropped) * (1 - after))[:, 4:].max() < 1e-14
