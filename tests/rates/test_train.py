"""Training on POD targets: unbiased samples, the right outputs, cells that do not disturb each other."""

import numpy as np
import pytest
import torch

from attnrate.core.params import Group
from attnrate.rates import constructive, pod, train
from attnrate.small.transformer import Transformer, predict

TAU = 8
KINDS = (("same", 1.0, 2), ("same", 2.0, "inf"), ("dyadic-0", 1.0, 5), ("dyadic-0", 2.0, "inf"))
TARGETS = [pod.make(*kind, terms=12, tau=TAU, size=64, seed=0) for kind in KINDS]
MODEL = Group(n=8, width=16)
TRAINED = Group(lr=2e-3, muon=0.02, schedule="cosine", warmup=5, hats=3.0)
PAPER = Group(lr=1e-30, muon=None, schedule="constant", warmup=0, hats=None)


def fit(cells, recipe, steps):
    recipe = Group(recipe | {"steps": steps, "batch": 8})
    return train.fit(TARGETS, cells, recipe, MODEL, Group(points=16, queries=2), label="test")


def sampler(cells, batch=32, points=16, queries=3):
    return train.Sampler(TARGETS, cells, Group(points=points, queries=queries), batch)


def sequences(points, index):
    """x of every cell: (M, G), (M, B, τ) → (M, B, τ)."""
    return np.stack([own[i].double().numpy() for own, i in zip(points, index, strict=True)])


def test_samples_carry_the_outputs_of_the_target_of_their_cell():
    cells = [(t, 1, seed) for seed in (5, 0) for t in (2, 0, 3, 1)]
    points, index, y = sampler(cells).draw()
    assert points.shape == (8, 16) and index.shape == (8, 32, TAU) and y.shape == (8, 32, 3)
    for (t, _, _), x, found in zip(cells, sequences(points, index), y, strict=True):
        rho = pod.coupling(TARGETS[t].sigma, TARGETS[t].frequencies, x)
        assert found.numpy() == pytest.approx(pod.softmax_average(rho, x)[:, :3], abs=2e-5)


def test_cells_of_one_pairing_and_seed_share_their_inputs_and_others_do_not():
    points, index, _ = sampler([(0, 1, 0), (1, 4, 0), (2, 1, 0), (0, 1, 1)]).draw()
    for a in (points, index):
        assert torch.equal(a[0], a[1])
        assert not any(torch.equal(a[i], a[j]) for i, j in ((0, 2), (0, 3), (2, 3)))


@pytest.fixture(scope="module")
def many():
    """One sequence of each of 4000 draws, with as many points as it has inputs: (4000, τ), (4000, τ)."""
    s = sampler([(0, 1, 0)], batch=1, points=TAU, queries=1)
    drawn = [s.draw() for _ in range(4000)]
    return np.concatenate([sequences(p, i)[0] for p, i, _ in drawn]), np.concatenate(
        [i[0].numpy() for _, i, _ in drawn]
    )


def test_a_sequence_takes_different_points_in_any_order(many):
    _, index = many
    assert (np.sort(index) == np.arange(TAU)).all()
    assert np.bincount(index[:, 0]) / len(index) == pytest.approx(1 / TAU, abs=0.025)


def test_its_inputs_are_uniform_and_uncorrelated(many):
    """Points that may be taken twice would correlate them by 1 / 8."""
    x, _ = many
    uniform = np.arange(1, len(x) + 1) / len(x)
    assert np.abs(np.sort(x, 0) - uniform[:, None]).max() < 0.03  # Kolmogorov-Smirnov, each input
    for values in (x, (x - 0.5) ** 2):
        assert np.abs(np.corrcoef(values.T) - np.eye(TAU)).max() < 0.06


@pytest.mark.parametrize("t", [0, 3])
def test_the_loss_is_unbiased(t):
    """That of the constant 1/2 is what independent sequences give, up to four standard errors, each below 1 %."""
    s = sampler([(t, 1, 0)])
    found = np.array([((s.draw()[2] - 0.5) ** 2).mean().item() for _ in range(2000)])
    x = np.random.default_rng(0).random((20_000, TAU))
    y = pod.softmax_average(pod.coupling(TARGETS[t].sigma, TARGETS[t].frequencies, x), x)
    plain = ((y - 0.5) ** 2).mean(1)
    error = np.hypot(*(a.std() / len(a) ** 0.5 for a in (found, plain)))
    assert found.mean() == pytest.approx(plain.mean(), abs=4 * error) and error < 0.01 * plain.mean()


def test_the_robust_recipe_learns_and_its_history_is_in_units_of_the_output():
    target = TARGETS[3]
    model, history = fit([(3, 4, 0)], TRAINED, steps=300)
    mse = ((predict(model, target.x)[0] - target.y) ** 2).mean()
    assert mse < 0.2 * target.y.var()
    assert 0.3 < history[0].iloc[-1] / mse < 3


def test_a_cell_learns_the_same_in_any_stack():
    cells = [(0, 2, 3), (3, 4, 3), (0, 2, 4)]
    stack, _ = fit(cells, TRAINED, steps=10)
    x = TARGETS[0].x
    together = predict(stack, x)
    for cell, found in zip(cells, together, strict=True):
        alone, _ = fit([cell], TRAINED, steps=10)
        assert predict(alone, x)[0] == pytest.approx(found, abs=1e-4)
    assert np.abs(together[0] - together[2]).max() > 1e-3


def test_the_papers_recipe_keeps_the_default_start_and_raw_outputs():
    model, _ = fit([(0, 2, 0)], PAPER, steps=1)
    assert model.shift.item() == 0 and model.scale.item() == 1
    assert torch.equal(model.f.weight[0], Transformer([2], [2], n=8, width=16).f.weight[0])


def test_the_robust_recipe_starts_from_hats_and_standard_outputs():
    model, _ = fit([(3, 2, 0)], Group(TRAINED | {"lr": 0.0, "muon": 0.0}), steps=1)
    expected = Transformer([2], [3002], n=8, width=16)
    expected.spread_hats(3.0)
    assert all(torch.equal(a, b) for a, b in zip(model.f.parameters(), expected.f.parameters(), strict=True))
    assert model.scale.item() == pytest.approx(TARGETS[3].y.std(), rel=1e-3)
    assert model.shift.item() == pytest.approx(TARGETS[3].y.mean(), rel=1e-3)


def test_the_spectrum_of_the_proofs_network_is_the_targets():
    """Whatever constant in v is added to its scores."""
    target = pod.make("dyadic-0", 1.5, 3, terms=12, tau=TAU, size=4, seed=0)
    grid = np.linspace(0, 1, constructive.FIT_GRID)
    table = pod.phi(np.concatenate([np.arange(1, 4), target.frequencies]), grid)
    model = constructive.build(4, table, np.arange(3), np.arange(3, 6), target.sigma, n=16, width=128)
    assert train.learned_spectrum(model)[0, :4] == pytest.approx([*target.sigma, 0], rel=1e-3, abs=1e-6)
    with torch.no_grad():
        model.f.bias[2][0, 0, 3:6] += 5.0
    assert train.learned_spectrum(model)[0, :3] == pytest.approx(target.sigma, rel=1e-3)
