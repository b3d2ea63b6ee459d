"""Training on linear targets: exact errors, floors that hold, curves and rows of the tables."""

import numpy as np
import pandas as pd
import pytest
import torch

from attnrate.core.params import Group
from attnrate.linear import targets, train
from attnrate.linear.floors import floor
from attnrate.small.rnn import LinearRNN
from attnrate.small.transformer import Transformer

TARGETS = {t.name: t for t in targets.make_all(32, kernel_seed=0, filter_seed=0)}


def test_population_error_of_the_best_kernel_is_the_floor():
    names = ["exp/exchange", "exp/roll", "uniform/literal/signed"]
    matrices = torch.tensor(np.stack([TARGETS[n].matrix for n in names]))
    best = torch.tensor(np.stack([floor(TARGETS[n].matrix).kernel for n in names]))
    found = train.population_mse(best, torch.zeros_like(best), matrices)
    assert found.numpy() == pytest.approx([floor(TARGETS[n].matrix).mse for n in names])


def test_population_error_is_the_error_on_samples():
    model, mse, _ = train.train_rnn([TARGETS["exp/roll"]], [0], recipe="samples", bias=True, steps=3, lr=1e-3, batch=4)
    x = torch.rand(20000, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        sampled = (model(x) - x @ train.stacked([TARGETS["exp/roll"]]).mT).square().mean().item()
    assert sampled == pytest.approx(mse[0], rel=0.03)


def test_rnn_learns_a_causal_kernel_and_never_beats_its_floor():
    names = ["exp/original", "exp/roll"]
    _, mse, history = train.train_rnn(
        [TARGETS[n] for n in names], [0, 0], recipe="population", bias=True, steps=300, lr=1e-3, batch=1
    )
    assert mse[0] < 0.05 * history[0].iloc[0]
    assert mse[1] >= floor(TARGETS["exp/roll"].matrix, "free").mse - 1e-7


def test_learned_filter_starts_as_the_identity_and_is_causal():
    inner = Transformer([2], [0], n=8, width=8, positions=(32, 8))
    model = train.Filtered(inner)
    x = torch.rand(3, 32, 1)
    assert torch.allclose(model(x), inner(x), atol=1e-6)
    with torch.no_grad():
        model.filter.copy_(torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0]]))
    shifted = torch.cat([torch.zeros(3, 1, 1), x[:, :-1]], 1)
    assert torch.allclose(model(x), inner(shifted), atol=1e-6)


@torch.no_grad()
def test_behind_a_filter_each_model_may_have_its_own_inputs():
    model = train.Filtered(Transformer([2, 3], [0, 1], n=8, width=8, positions=(32, 8))).double()
    g = torch.Generator().manual_seed(0)
    model.filter.copy_(torch.randn(2, 5, generator=g))
    x = torch.rand(2, 3, 32, 1, dtype=torch.float64, generator=g)
    for m in range(2):
        assert torch.allclose(model(x)[m], model(x[m])[m], atol=1e-14, rtol=0)


def fit(kind, cells, steps=10):
    """What models of cells (target, seed) give for some sequences."""
    aims, seeds = [TARGETS[name] for name, _ in cells], [seed for _, seed in cells]
    if kind == "rnn":
        model, *_ = train.train_rnn(aims, seeds, recipe="samples", bias=True, steps=steps, lr=1e-3, batch=4)
    else:
        recipe, size = Group(lr=3e-3, muon=0.02, warmup=2, gain=1.0), Group(n=8, width=16)
        model, _ = train.train_transformer(aims, seeds, 4, kind, recipe, size, Group(steps=steps, batch=4))
    x = torch.rand(5, 32, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        return model(x if kind == "rnn" else x[..., None])


KINDS = ("rnn", "centred", "plain", "learned-filter")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_trains_the_same_in_any_stack(kind):
    cells = [("exp/original", 4), ("exp/roll", 3), ("exp/original", 3)]
    together = fit(kind, cells)
    for cell, found in zip(cells, together, strict=True):
        assert torch.allclose(fit(kind, [cell])[0], found, atol=1e-4)
    assert (together[0] - together[2]).abs().max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_one_seed_see_the_same_batches_and_others_do_not(kind, monkeypatch):
    model = LinearRNN if kind == "rnn" else Transformer
    seen, forward = [], model.forward
    monkeypatch.setattr(model, "forward", lambda self, x: seen.append(x.detach()) or forward(self, x))
    fit(kind, [("exp/original", 0), ("exp/roll", 1), ("exp/roll", 0)], steps=1)
    first, other, again = seen[0]
    assert first.shape[:2] == (4, 32) and torch.equal(first, again) and not torch.equal(first, other)


def test_training_improves_on_a_constant_and_dead_runs_are_flagged():
    target = TARGETS["exp/original"]
    recipe, budget = Group(lr=3e-3, muon=0.01, warmup=10, gain=1.0), Group(steps=150, batch=16)
    model, history = train.train_transformer([target], [0], 4, "centred", recipe, Group(n=16, width=32), budget)
    mse = train.fresh_mse(model, [target], 512, 1)[0]
    assert mse < history[0].iloc[0]
    assert not train.result_row(target, "transformer", "centred", 0, 1e-3)["dead"]
    assert train.result_row(target, "transformer", "centred", 0, 0.0985)["dead"]  # the variance of y is 0.0988


def test_each_recipe_starts_as_it_says():
    """plain: PyTorch's start, raw outputs, no warm-up; the others centre outputs and enlarge W_Q and W_K."""
    target, size, budget = TARGETS["exp/causal/signed"], Group(n=8, width=8), Group(steps=1, batch=4)
    default = Transformer([2], [5], n=8, width=8, positions=(32, 8))
    for name, recipe in (
        ("plain", Group(lr=0.0)),
        ("centred", Group(lr=0.0, muon=0.0, warmup=1, gain=3.0)),
        ("learned-filter", Group(lr=0.0, muon=0.0, warmup=1, gain=3.0)),
    ):
        model, _ = train.train_transformer([target], [5], 2, name, recipe, size, budget)
        assert isinstance(model, train.Filtered) == (name == "learned-filter")
        inner = getattr(model, "inner", model)
        assert torch.equal(inner.W_Q, default.W_Q * (1 if name == "plain" else 3))
        assert (inner.shift.item(), inner.scale.item()) == (0, 1) if name == "plain" else inner.shift.item() != 0


def test_the_history_of_a_stack_becomes_a_curve_for_each_cell():
    history = pd.DataFrame({0: [4.0, 2.0], 1: [5.0, 1.0]}, index=pd.Index([10, 20], name="step"))
    cells = [(TARGETS["exp/roll"], 3), (TARGETS["uniform/exchange"], 4)]
    one, two = train.curves(history, cells, "transformer", "centred")
    assert one.to_dict("list") == {
        "step": [10, 20],
        "target": ["exp/roll"] * 2,
        "model": ["transformer"] * 2,
        "recipe": ["centred"] * 2,
        "seed": [3, 3],
        "mse": [4.0, 2.0],
    }
    assert two.mse.tolist() == [5.0, 1.0] and set(two.target) == {"uniform/exchange"} and set(two.seed) == {4}
