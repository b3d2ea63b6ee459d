import math

import pytest
import torch

from attnrate.spectra import values as spectra


@pytest.mark.parametrize("tau", [65, 197])
@pytest.mark.parametrize("mh", [1, 2, 8, 16, 17, 32, 64, 65])
def test_values_are_those_of_the_dense_matrix(tau, mh):
    g = torch.Generator().manual_seed(mh)
    q, k = torch.randn(2, 6, tau, mh, generator=g) * torch.logspace(0, -3, mh)
    exact = torch.linalg.svdvals(q.double() @ k.double().mT)
    found = spectra.singular_values(q, k)
    assert found.shape == (6, min(tau, mh)) and found.dtype == torch.float32
    assert ((found - exact[:, : min(tau, mh)]).abs().amax(-1) <= 1e-5 * exact[:, 0]).all()


def test_factors_without_full_rank():
    g = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 3, 65, 32, generator=g)
    q[:, :, 20:] = q[:, :, :12]
    q[1] = 0
    exact = torch.linalg.svdvals(q.double() @ k.double().mT)[:, :32]
    assert ((spectra.singular_values(q, k) - exact).abs() <= 1e-5 * exact.max()).all()


def test_more_columns_than_tokens():
    q, k = torch.randn(2, 2, 17, 32)
    exact = torch.linalg.svdvals(q @ k.mT)
    assert torch.allclose(spectra.singular_values(q, k), exact, atol=1e-4)


def test_ranks():
    flat, single = torch.ones(4), torch.tensor([1.0, 0, 0, 0])
    assert spectra.effective_rank(flat).item() == pytest.approx(4)
    assert spectra.effective_rank(single).item() == pytest.approx(1)
    s = torch.tensor([3.0, 1.0, 0.1])  # squares 9, 1, 0.01
    assert spectra.energy_rank(s, 0.89).item() == 1
    assert spectra.energy_rank(s, 0.9).item() == 2
    assert spectra.energy_rank(s, 0.9999).item() == 3
    half = torch.tensor([1.0, 1.0])
    assert spectra.effective_rank(half / half.sum()).item() == pytest.approx(math.exp(math.log(2)))


def test_statistics_do_not_depend_on_the_batches():
    q, k = torch.randn(2, 30, 2, 20, 4)
    whole, parts = spectra.Spectra("tokens"), spectra.Spectra("tokens")
    values = whole.add(q, k)
    for a, b in zip(q.split(7), k.split(7), strict=True):
        parts.add(a, b)
    assert values.shape == (30, 2, 4) and parts.values.n == 30
    for name in ("mean", "sd"):
        for one, two in ((whole.values, parts.values), (whole.ranks, parts.ranks)):
            assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-9)
    assert whole.values.mean == pytest.approx(values.double().mean(0).numpy())
    assert whole.values.sd == pytest.approx(values.double().std(0).numpy())


def test_normalisations():
    q, k = torch.randn(2, 3, 1, 20, 4)
    raw = spectra.Spectra("none").add(q, k)
    assert torch.allclose(spectra.Spectra("tokens").add(q, k), raw / 20)
    assert torch.allclose(spectra.Spectra("largest").add(q, k)[..., 0], torch.ones(3, 1))


def test_a_dead_head_has_rank_zero_and_no_value():
    """Zero rows of W_Q or W_K are no 0/0, which no figure can show."""
    s = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    assert spectra.effective_rank(s).tolist() == [0, pytest.approx(2)]
    q, k = torch.randn(2, 3, 1, 20, 4)
    for name in spectra.NORMALISATIONS:
        assert not spectra.Spectra(name).add(0 * q, k).any()
