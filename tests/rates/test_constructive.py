"""The network of the proof of Theorem 4.1 does what the proof says."""

import numpy as np
import pytest
import torch

from attnrate.rates import pod
from attnrate.rates.constructive import FIT_GRID, build, errors, fourier
from attnrate.small.transformer import predict

GRID = np.linspace(0, 1, FIT_GRID)


def network(target, mh, **shape):
    rank = min(mh, len(target.sigma))
    shape = {"n": 32, "width": 128} | shape
    return build(mh, pod.phi(np.arange(1, rank + 1), GRID), None, target.sigma[:rank], **shape)


@pytest.fixture(scope="module")
def target():
    return pod.make(1.5, 6, terms=6, tau=16, size=64, seed=3)


@pytest.mark.parametrize("mh", [1, 3, 6, 9])
def test_it_is_the_pod_truncation(target, mh):
    error = predict(network(target, mh), target.x)[0] - target.truncated(mh)
    assert (error**2).mean() < 1e-7


def test_a_finite_rank_is_reached_at_mh_equal_r_and_not_before(target):
    mse = [((predict(network(target, mh), target.x)[0] - target.y) ** 2).mean() for mh in (5, 6, 12)]
    assert mse[0] > 1e-5 > 1e-7 > mse[1]
    assert mse[2] == pytest.approx(mse[1], rel=1e-3)  # further rows of W_Q and W_K are zero


def test_the_measured_errors_are_those_of_that_network(target):
    for mh in (3, 9):
        found = errors(target, mh, n=32, width=128)
        error = predict(network(target, mh), target.x)[0] - target.y
        assert (found["alpha"], found["rank"], found["mh"]) == (1.5, 6, mh)
        assert found["mse"] == pytest.approx((error**2).mean())
        assert found["l1"] == pytest.approx(sum(np.abs(error[:, t]).mean() for t in range(16)))


def test_separate_bases_give_the_same_coupling(target):
    """φ̂ and ψ̂ as separate rows of f̂, as eq. (18) has them, and shared."""
    phi = pod.phi(np.arange(1, 5), GRID)
    shared, both = (build(4, phi, psi, target.sigma[:4], n=32, width=128) for psi in (None, phi))
    assert predict(shared, target.x)[0] == pytest.approx(predict(both, target.x)[0], abs=1e-5)


def test_different_bases_are_not_mixed_up():
    """ρ̂(u, v) = 3 u (1 - v): queries use φ̂, keys use ψ̂."""
    model = build(1, GRID[:, None], 1 - GRID[:, None], np.array([3.0]), n=3, width=16)
    x = torch.tensor([[[0.25], [1.0]]])
    h = model.features(x)
    assert model.scores(h, h)[0, 0].detach().numpy() == pytest.approx(
        np.array([[0.75 * 0.75, 0.0], [3 * 0.75, 0.0]]), abs=1e-5
    )


def test_values_pass_through_unchanged():
    """W_V picks x and F̂ is the identity: a constant sequence comes out as it went in."""
    model = build(2, pod.phi(np.arange(1, 3), GRID), None, np.ones(2), n=8, width=32)
    x = np.linspace(0, 1, 11)[:, None].repeat(4, 1)
    assert predict(model, x)[0] == pytest.approx(x, abs=1e-5)


def test_the_error_falls_with_the_square_of_the_width(target):
    """Eq. (13) with β = 2: twice the knots, a quarter of the error."""
    worst = [np.abs(predict(network(target, 6, width=w), target.x)[0] - target.y).mean() for w in (64, 128)]
    assert 3 < worst[0] / worst[1] < 6


@pytest.mark.parametrize(("shared", "fits"), [(True, 7), (False, 3)])
def test_n_limits_the_rank(shared, fits):
    """n ≥ r + 1 with a shared basis, n ≥ 2 r + 1 in the theorem's own budget."""
    for rank, n in ((fits, 8), (fits + 1, 8)):
        phi = pod.phi(np.arange(1, rank + 1), GRID)
        arguments = (rank, phi, None if shared else phi, np.ones(rank))
        if rank == fits:
            build(*arguments, n=n, width=32)
        else:
            with pytest.raises(ValueError, match="but n = 8"):
                build(*arguments, n=n, width=32)


def test_the_fourier_basis_is_orthonormal():
    x, w = np.polynomial.legendre.leggauss(64)
    basis = fourier((x + 1) / 2, 5)  # (64, 11)
    assert basis.T @ (basis * w[:, None] / 2) == pytest.approx(np.eye(11), abs=1e-12)
    assert fourier(np.zeros((2, 3)), 4).shape == (2, 3, 9)


def test_the_first_sines_of_the_basis_are_the_pod_basis():
    """free_kernel.pod_start writes √σ_k into row k of the sines."""
    assert fourier(GRID, 7)[:, 1:4] == pytest.approx(pod.phi(np.arange(1, 4), GRID), abs=1e-12)
