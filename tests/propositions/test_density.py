import numpy as np
import pytest

from attnrate.propositions import density


def test_the_papers_f_cannot_tell_inputs_apart_that_targets_can():
    found = density.check()
    assert found["collision"] == 0
    assert found["inputs_apart"] == pytest.approx(0.5) and found["needed_apart"] > 0.2  # H̃_1(x) = x_1 asks for it
    assert found["recovered"] < 1e-10 and found["times_recovered"] == 1


def test_psi_maps_to_the_unit_interval_and_the_collision_is_the_diagonal():
    for x in np.linspace(0, 1, 11):
        assert (density.a(x) >= 0.5).all() and (density.a(x) <= 1).all()  # so 2 - 2 a_q is in [0, 1]
        assert density.seen(x, x) == pytest.approx(np.full(density.TERMS, 2.0))
    assert np.abs(density.seen(0.2, 0.3) - density.seen(0.2, 0.2)).max() > 0.05


@pytest.mark.parametrize(("tau", "d"), [(2, 1), (5, 2)])
def test_blocks_are_an_average_of_pointwise_values_in_the_unit_cube(tau, d):
    x = np.random.default_rng(1).random((10, tau, d))
    x[0], x[1] = 0, 1  # the ends of every I^(s)
    blocks = density.f(density.encode(x))
    assert blocks.reshape(10, tau, -1).shape[-1] == tau * d  # n
    assert blocks.min() >= 0 and blocks.max() <= 1
    order = np.random.default_rng(2).permutation(tau)  # pointwise: f knows the time from the value alone
    assert np.array_equal(density.f(density.encode(x)[:, order]), blocks[:, order])
    for t in range(tau):
        time, inputs = density.F(density.average(blocks, t))
        assert (time == t).all() and np.allclose(inputs, x, atol=1e-12)


def test_uniform_weights_hide_the_time():
    blocks = density.f(density.encode(np.random.default_rng(0).random((50, 4, 1))))
    time, _ = density.F(blocks.mean(1))
    assert any((time != t).any() for t in range(4))
    assert not np.array_equal(density.average(blocks, 0), density.average(blocks, 1))
