"""Training on POD targets: unbiased samples, the right outputs, cells that do not disturb each other."""

import numpy as np
import pytest
import torch

from attnrate.core.params import Group
from attnrate.rates import pod, train
from attnrate.small.transformer import Transformer, predict

TAU = 8
TARGETS = [pod.make(a, r, terms=5, tau=TAU, size=64, seed=0) for a, r in ((1.0, 2), (2.0, "inf"))]
MODEL = Group(n=8, width=16)
TRAINED = Group(lr=2e-3, schedule="cosine", warmup=5, slope=4.0)
PAPER = Group(lr=1e-30, schedule="constant", warmup=0, slope=None)


def fit(cells, recipe, steps):
    budget = Group(steps=steps, batch=8, grid=16, queries=2)
    return train.fit(TARGETS, cells, recipe, MODEL, budget, label="test")


def sampler(**changes):
    return train.Sampler(TARGETS, **{"batch": 32, "grid": 16, "queries": 3, "seed": 0} | changes)


def test_samples_carry_the_outputs_of_every_target():
    grid, index, y = sampler().draw()
    x = grid[index].double().numpy()
    assert y.shape == (2, 32, 3)
    for target, found in zip(TARGETS, y, strict=True):
        exact = pod.softmax_average(pod.coupling(target.sigma, x), x)[:, :3]
        assert found.numpy() == pytest.approx(exact, abs=2e-5)


def test_each_input_is_uniform_though_it_falls_on_a_grid():
    """Kolmogorov-Smirnov distance of one input over many draws, far below that of a fixed grid (1/16)."""
    s = sampler(batch=1, queries=1)
    x = np.sort([grid[index[0, 3]].item() for grid, index, _ in (s.draw() for _ in range(3000))])
    uniform = np.arange(1, len(x) + 1) / len(x)
    assert np.abs(x - uniform).max() < 0.03


def test_two_inputs_of_a_sequence_may_meet_but_are_otherwise_independent():
    s = sampler(batch=4000, queries=1)
    grid, index, _ = s.draw()
    x = grid[index].numpy()
    assert abs(np.corrcoef(x[:, 0], x[:, 1])[0, 1]) < 0.06
    assert (index[:, 0] == index[:, 1]).float().mean().item() == pytest.approx(1 / 16, abs=0.02)


def test_the_robust_recipe_learns_and_its_history_is_in_units_of_the_output():
    target = TARGETS[1]
    model, history = fit([(1, 4, 0)], TRAINED, steps=300)
    mse = ((predict(model, target.x)[0] - target.y) ** 2).mean()
    assert mse < 0.2 * target.y.var()
    assert 0.3 < history[0].iloc[-1] / mse < 3


def test_a_cell_learns_the_same_in_any_stack_that_starts_with_its_seed():
    cells = [(0, 1, 3), (1, 4, 3), (1, 2, 4)]
    stack, _ = fit(cells, TRAINED, steps=10)
    x = TARGETS[0].x
    together = predict(stack, x)
    for i in (0, 1):
        small, _ = fit([cells[i]], TRAINED, steps=10)
        assert predict(small, x)[0] == pytest.approx(together[i], abs=1e-4)
    assert np.abs(together[1] - together[2]).max() > 1e-3


def test_the_papers_recipe_keeps_the_default_start_and_raw_outputs():
    model, _ = fit([(0, 2, 0)], PAPER, steps=1)
    assert model.shift.item() == 0 and model.scale.item() == 1
    assert torch.equal(model.f.weight[0], Transformer([2], [2], n=8, width=16).f.weight[0])
