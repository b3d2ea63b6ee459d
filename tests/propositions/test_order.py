import numpy as np
import pytest

from attnrate.linear.targets import permutation
from attnrate.propositions import order
from attnrate.rates.pod import coupling, softmax_average

ROLL = {tau: np.roll(np.arange(tau), -1) for tau in order.LENGTHS}


def solution(rho, a):
    """G_t and G_u(v_k) of an unmoved query."""
    v = (np.arange(order.POINTS) + 0.5) / order.POINTS
    return np.exp(np.concatenate([rho(a, a)[None], *[rho(a, v)] * 2]))


def test_equations_hold_for_the_coupling_itself_when_the_query_stays():
    matrix = order.system(order.pod_coupling, np.array([0, 2, 1]))  # p moves the others
    weights = solution(order.pod_coupling, np.array(order.FIXED))
    assert matrix.shape == (order.POINTS**2, len(weights))
    assert np.abs(matrix @ weights).max() < 1e-14
    assert np.abs(order.system(order.pod_coupling, ROLL[3]) @ weights).max() > 0.1


def test_the_target_of_the_equations_is_the_altered_one():
    """y = H_t(z ∘ p⁻¹), with the coupling of rates.pod: the row of z is Σ_u (z_u - y) where every G is 1."""
    z = np.array([[order.FIXED, 0.5 / order.POINTS, 1.5 / order.POINTS]])  # the second row: k = 0 and 1
    x = z[:, np.argsort(ROLL[3])]
    y = softmax_average(coupling(np.array([1, 0.25]), np.array([1, 2]), x), x)[0, 0]
    row = order.system(order.pod_coupling, ROLL[3])[1]
    assert row.sum() == pytest.approx((z - y).sum())


@pytest.mark.parametrize("tau", order.LENGTHS)
def test_no_coupling_gives_a_moved_query_but_the_controls_have_one(tau):
    assert order.solve(order.pod_coupling, ROLL[tau])["ratio"] > 1e-3
    for control in (order.solve(order.pod_coupling, np.arange(tau)), order.solve(order.separable, ROLL[tau])):
        assert control["ratio"] < 1e-12 and control["one_sign"]


def test_couplings_of_positions_move_with_p_and_not_with_its_inverse():
    rng, p = np.random.default_rng(3), permutation("roll", 32)
    rho, x = rng.standard_normal((32, 32)), rng.random((5, 32))
    y = softmax_average(rho, x)
    assert order.of_positions("exchange") < 1e-12 and order.of_positions("roll") < 1e-12
    assert np.abs(softmax_average(rho[:, np.argsort(p)], x[:, p]) - y).max() > 0.05


@pytest.mark.parametrize("name", ["exchange", "roll"])
def test_a_query_from_outside_sees_no_order_and_one_from_inside_does(name):
    assert order.from_outside(name) < 1e-12
    x = np.random.default_rng(3).random((5, 32))
    outputs = [softmax_average(order.pod_coupling(z[:, :1], z)[:, None], z) for z in (x, x[:, permutation(name, 32)])]
    assert np.abs(outputs[0] - outputs[1]).max() > 0.05
