"""The network set by hand gives the first lags of any convolution, and errs by what it leaves out."""

import numpy as np
import pytest
import torch

from attnrate.linear import handset, targets
from attnrate.linear.floors import MEAN, VARIANCE, constant_predictor
from attnrate.linear.targets import toeplitz
from attnrate.linear.train import fresh_mse

TARGETS = {t.name: t for t in targets.make_all(32, kernel_seed=0, filter_seed=0)}
SIGNED = TARGETS["exp/causal/signed"].matrix[:, 0]
PAPER = {"n": 32, "width": 128}
SIZES = [(5, 5, 1), (6, 8, 1), (8, 16, 3), (12, 26, 6), (20, 54, 12), (32, 128, 12)]  # n, width, lags


def signed_kernel(seed):
    return np.convolve(targets.draw_filter("signed", seed), np.exp(-np.arange(32)))[:32]


@torch.no_grad()
def response(model, tau):
    """The affine map that the network is: outputs for x = 0 (τ,), and what each input adds (τ, τ)."""
    y = model(torch.cat([torch.zeros(1, tau), torch.eye(tau)])[..., None])[0, ..., 0].double().numpy()
    return y[0], (y[1:] - y[0]).T


def exact_mse(kernel, offset, matrix):
    difference = toeplitz(kernel) - matrix
    return (VARIANCE * (difference**2).sum(1) + (MEAN * difference.sum(1) - offset) ** 2).mean()


@pytest.mark.parametrize(("n", "width", "lags"), SIZES)
def test_it_is_the_convolution_with_the_first_lags(n, width, lags):
    """Hence causal, though its attention is not: every input beyond t has the weight 0."""
    assert handset.sizes(32, n=n, width=width)[1] == lags
    offset, matrix = response(handset.build(SIGNED, n=n, width=width), 32)
    left = handset.rest(SIGNED, lags)
    assert matrix == pytest.approx(toeplitz(SIGNED) - left, abs=1e-5)
    assert offset == pytest.approx(np.full(32, MEAN * left.sum(1).mean()), abs=1e-5)


@pytest.mark.parametrize(("n", "width", "lags"), SIZES)
def test_its_error_is_that_of_the_cut(n, width, lags):
    model = handset.build(SIGNED, n=n, width=width)
    assert exact_mse(SIGNED, *response(model, 32)) == pytest.approx(handset.cut(SIGNED, lags), rel=1e-3)
    sampled = fresh_mse(model, [TARGETS["exp/causal/signed"]], 512, 1)[0]
    assert sampled == pytest.approx(handset.cut(SIGNED, lags), rel=0.1)  # 512 sequences


def test_more_lags_err_less():
    errors = [exact_mse(SIGNED, *response(handset.build(SIGNED, n=n, width=w), 32)) for n, w, _ in SIZES[1:5]]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 1e-6 * errors[0]
    cuts = [handset.cut(SIGNED, lags) for lags in range(33)]
    assert cuts[0] == pytest.approx(constant_predictor(toeplitz(SIGNED))) and cuts[32] == 0


def test_the_paper_sizes_allow_the_paper_error():
    """Table 2 reports 2.39e-4 under mixing."""
    for seed in range(20):
        kernel = signed_kernel(seed)
        mse = exact_mse(kernel, *response(handset.build(kernel, **PAPER), 32))
        assert mse == pytest.approx(handset.cut(kernel, 12), rel=1e-2)
        assert mse < 1e-6 and mse < 1e-6 * constant_predictor(toeplitz(kernel))


def test_attention_is_the_same_bump_at_every_time_whatever_the_input():
    model = handset.build(SIGNED, **PAPER)
    kappa, a = handset.bump(32, 16, 12)
    lag = np.subtract.outer(np.arange(32), np.arange(32)) % 32
    with torch.no_grad():
        found = model.attention(torch.rand(2, 32, 1, generator=torch.Generator().manual_seed(0)))[0].numpy()
    assert found == pytest.approx(np.broadcast_to(a[lag], found.shape), rel=1e-4)
    assert a[:12] / a[16:28] == pytest.approx(np.exp(2 * kappa * np.cos((np.arange(12) - 5.5) * np.pi / 16)))
    assert (a[:12] >= np.exp(handset.SHARP * 0.999) * a[16:28]).all()
    assert np.linalg.matrix_rank((model.W_Q[0].mT @ model.W_K[0]).detach().numpy()) == handset.HEAD


def test_f_is_the_input_in_the_channel_of_its_class():
    x = torch.rand(3, 32, 1, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        h = handset.build(SIGNED, **PAPER).features(x)[0]
    assert torch.equal(h[..., :16], x * torch.eye(16).repeat(2, 1))
    assert not h[..., 20:].any()


@pytest.mark.parametrize("tau", [21, 24, 31, 100])
def test_any_kernel_and_length(tau):
    """Nothing in it asks for a decaying kernel; a prime τ has one class only."""
    kernel = np.random.default_rng(tau).standard_normal(tau)
    _, lags = handset.sizes(tau, **PAPER)
    assert lags == {21: 5, 24: 9, 31: 1, 100: 18}[tau]
    _, matrix = response(handset.build(kernel, **PAPER), tau)
    assert matrix == pytest.approx(toeplitz(kernel) - handset.rest(kernel, lags), abs=1e-3)


def test_a_larger_head_changes_nothing():
    small, large = (response(handset.build(SIGNED, mh=mh, **PAPER), 32)[1] for mh in (2, 32))
    assert small == pytest.approx(large, abs=1e-6)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"n": 4}, "but n = 4 and width = 128"), ({"width": 4}, "but n = 32 and width = 4"), ({"mh": 1}, "but m_h = 1")],
)
def test_sizes_that_are_too_small_say_so(wrong, says):
    with pytest.raises(ValueError, match=says):
        handset.build(SIGNED, **{**PAPER, **wrong})
