import numpy as np
import pytest
import torch

from attnrate.linear.floors import floor
from attnrate.small.transformer import Transformer
from attnrate.linear import targets as linear
from attnrate.linear import train as training

TARGETS = {t.name: t for t in linear.make_all(32, kernel_seed=0, filter_seed=0)}


def test_population_error_of_the_best_kernel_is_the_floor():
    names = ["exp/exchange", "exp/roll", "uniform/literal/signed"]
    matrices = torch.tensor(np.stack([TARGETS[n].matrix for n in names]))
    best = torch.tensor(np.stack([floor(TARGETS[n].matrix).kernel for n in names]))
    found = training.population_mse(best, torch.zeros_like(best), matrices)
    assert found.numpy() == pytest.approx([floor(TARGETS[n].matrix).mse for n in names])


def test_population_error_is_the_error_on_samples():
    model, mse, _ = training.train_rnn(
        [TARGETS["exp/roll"]], [0], recipe="samples", bias=True, steps=3, lr=1e-3, batch=4
    )
    x = torch.rand(20000, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        sampled = (model(x) - x @ training.stacked([TARGETS["exp/roll"]]).mT).square().mean().item()
    assert sampled == pytest.approx(mse[0], rel=0.03)


def test_rnn_learns_a_causal_kernel_and_never_beats_its_floor():
    names = ["exp/original", "exp/roll"]
    _, mse, history = training.train_rnn(
        [TARGETS[n] for n in names], [0, 0], recipe="population", bias=True, steps=300, lr=1e-3, batch=1
    )
    assert mse[0] < 0.05 * history[0].iloc[0]
    assert mse[1] >= floor(TARGETS["exp/roll"].matrix, "free").mse - 1e-7


def test_learned_filter_starts_as_the_identity_and_is_causal():
    inner = Transformer([2], [0], n=8, width=8, positions=(32, 8))
    model = training.Filtered(inner)
    x = torch.rand(3, 32, 1)
    assert torch.allclose(model(x), inner(x), atol=1e-6)
    with torch.no_grad():
        model.filter.copy_(torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0]]))
    shifted = torch.cat([torch.zeros(3, 1, 1), x[:, :-1]], 1)
    assert torch.allclose(model(x), inner(shifted), atol=1e-6)


def test_training_improves_on_a_constant_and_dead_runs_are_flagged():
    target = TARGETS["exp/original"]
    model, history = training.train_transformer(
        [target], [0], 4, recipe="centred", n=16, width=32, steps=150, lr=3e-3, warmup=10, batch=16, gain=3.0
    )
    mse = training.fresh_mse(model, [target], 512, 1)[0]
    assert mse < history[0].iloc[0]
    assert not training.result_row(target, "transformer", "centred", 0, 1e-3)["dead"]
    assert training.result_row(target, "transformer", "centred", 0, 0.0985)["dead"]  # the variance of y is 0.0988
