"""The network of the proof of Theorem 4.1 does what the proof says."""

import dataclasses
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from attnrate.core import params
from attnrate.rates import pod
from attnrate.rates.constructive import FIT_GRID, build, errors, fourier
from attnrate.schemas.rates import Rates
from attnrate.small.transformer import predict
from tests.conftest import ROOT

GRID = np.linspace(0, 1, FIT_GRID)


def network(target, mh, **shape):
    """As eq. (18) has it: φ̂ and ψ̂ as separate components of f̂."""
    rank = min(mh, len(target.sigma))
    i = np.arange(1, rank + 1)
    table = pod.phi(np.concatenate([i, target.frequencies[:rank]]), GRID)
    return build(mh, table, i - 1, rank + i - 1, target.sigma[:rank], **{"n": 32, "width": 128} | shape)


@pytest.fixture(scope="module", params=["same", "dyadic-0"])
def target(request):
    return pod.make(request.param, 1.5, 6, terms=16, tau=16, size=64, seed=3)


@pytest.mark.parametrize("mh", [1, 3, 6, 9])
def test_it_is_the_pod_truncation(target, mh):
    error = predict(network(target, mh), target.x)[0] - target.truncated(mh)
    assert (error**2).mean() < 1e-7


def test_a_finite_rank_is_reached_at_mh_equal_r_and_not_before(target):
    mse = [((predict(network(target, mh), target.x)[0] - target.y) ** 2).mean() for mh in (5, 6, 12)]
    assert mse[0] > 1e-5 > 1e-7 > mse[1]
    assert mse[2] == pytest.approx(mse[1], rel=1e-3)  # further rows of W_Q and W_K are zero


def test_the_measured_errors_are_those_of_that_network(target):
    """Though they share the functions that φ and ψ have in common, which only rounding tells."""
    for mh in (3, 9):
        found = errors(target, mh, n=32, width=128)
        error = predict(network(target, mh), target.x)[0] - target.y
        assert [found[k] for k in ("pairing", "alpha", "rank", "mh")] == [target.pairing, 1.5, 6, mh]
        assert found["mse"] == pytest.approx((error**2).mean(), rel=1e-3)
        assert found["l1"] == pytest.approx(sum(np.abs(error[:, t]).mean() for t in range(16)), rel=1e-3)


@pytest.mark.parametrize("mh", [8, 16])
def test_32_components_hold_16_terms_of_a_drawn_pairing(mh):
    """Within 1e-6 of the POD truncation, where eq. (18) would take n ≥ 33."""
    target = pod.make("dyadic-0", 2.0, "inf", terms=64, tau=16, size=64, seed=3)
    cut = dataclasses.replace(target, y=target.truncated(mh))
    assert errors(cut, mh, n=32, width=128)["mse"] < 1e-6


@pytest.mark.parametrize(("mh", "most"), [(3, 3), (5, 7), (8, 9), (11, 15), (15, 15), (16, 17), (20, 25)])
def test_the_schema_asks_for_the_n_that_the_worst_draw_needs(mh, most):
    """m_h functions, and for each ψ of its block one beyond, as far as the block has them; with x, n ≥ that + 1."""
    draws = (pod.pair(f"dyadic-{seed}", 32)[:mh].tolist() for seed in range(400))
    assert max(len({*range(1, mh + 1), *drawn}) for drawn in draws) == most
    content = params.read(ROOT / "params.yaml").rates
    content.constructive |= {"mh": [mh], "width_rank": 1}
    content.free_kernel["mh"] = [1]
    for recipe in content.recipes.values():
        recipe["mh"] = [1]
    for n, fits in ((most + 1, True), (most, False)):
        content.model["n"] = n
        with nullcontext() if fits else pytest.raises(ValueError, match=f"rates.model.n of at least {most + 1}"):
            Rates.model_validate(content)


def test_different_bases_are_not_mixed_up():
    """ρ̂(u, v) = 3 u (1 - v): queries use φ̂, keys use ψ̂."""
    table = np.stack([GRID, 1 - GRID], 1)
    model = build(1, table, np.array([0]), np.array([1]), np.array([3.0]), n=3, width=16)
    x = torch.tensor([[[0.25], [1.0]]])
    h = model.features(x)
    assert model.scores(h, h)[0, 0].detach().numpy() == pytest.approx(
        np.array([[0.75 * 0.75, 0.0], [3 * 0.75, 0.0]]), abs=1e-5
    )


def test_values_pass_through_unchanged():
    """W_V picks x and F̂ is the identity: a constant sequence comes out as it went in."""
    k = np.arange(2)
    model = build(2, pod.phi(k + 1, GRID), k, k, np.ones(2), n=8, width=32)
    x = np.linspace(0, 1, 11)[:, None].repeat(4, 1)
    assert predict(model, x)[0] == pytest.approx(x, abs=1e-5)


def test_the_error_falls_with_the_square_of_the_width(target):
    """Eq. (13) with β = 2: twice the knots, a quarter of the error."""
    worst = [np.abs(predict(network(target, 6, width=w), target.x)[0] - target.y).mean() for w in (64, 128)]
    assert 3 < worst[0] / worst[1] < 6


@pytest.mark.parametrize(("pairing", "fits"), [("same", 7), ("dyadic-0", 5)])
def test_n_limits_the_rank(pairing, fits):
    """n ≥ r + 1 with equal bases; dyadic-0 has ψ of frequencies 1, 2, 3, 6, 4, and 12 at the eighth."""
    target = pod.make(pairing, 1.0, 9, terms=64, tau=3, size=2, seed=0)
    errors(target, fits, n=fits + 1 + (pairing != "same"), width=32)
    with pytest.raises(ValueError, match=f"rank {fits} needs"):
        errors(target, fits, n=fits + (pairing != "same"), width=32)


def test_the_fourier_basis_is_orthonormal():
    x, w = np.polynomial.legendre.leggauss(64)
    basis = fourier((x + 1) / 2, 5)  # (64, 11)
    assert basis.T @ (basis * w[:, None] / 2) == pytest.approx(np.eye(11), abs=1e-12)
    assert fourier(np.zeros((2, 3)), 4).shape == (2, 3, 9)


def test_the_first_sines_of_the_basis_are_the_pod_basis():
    """free_kernel.pod_start writes √σ_k into row k of the sines."""
    assert fourier(GRID, 7)[:, 1:4] == pytest.approx(pod.phi(np.arange(1, 4), GRID), abs=1e-12)
