import numpy as np
import pytest

from attnrate.beyond import causal
from attnrate.linear.floors import floor
from attnrate.linear.targets import alter


def matrix(order, tau=32):
    rho = np.exp(-np.arange(tau))
    return alter(rho, rho[:0], order, None)


def test_a_causal_target_has_no_floor_and_exchange_and_roll_have_one():
    assert causal.floor(matrix("original")) == 0
    assert causal.floor(matrix("exchange")) == pytest.approx(causal.floor(matrix("roll"))) and 0.03 < causal.floor(
        matrix("roll")
    )


def test_the_floor_is_the_variance_that_the_past_leaves():
    """E Var(y(t) | z(≤ t)) by sampling the future of fixed pasts."""
    m, rng = matrix("exchange"), np.random.default_rng(0)
    past, future = rng.random((1, 1, 32)), rng.random((4000, 1, 32))
    seen = np.tril(np.ones((32, 32), bool))
    z = np.where(seen, past, future)  # (N, t, s): what is beyond t varies
    y = (z * m).sum(-1)
    assert y.var(0).mean() == pytest.approx(causal.floor(m), rel=0.03)


@pytest.mark.parametrize("order", ["original", "exchange", "roll"])
def test_a_time_invariant_model_cannot_be_better(order):
    assert floor(matrix(order), "free").mse >= causal.floor(matrix(order)) - 1e-12
