"""Models of appendix B.1: what goes in, how they start, and what is measured."""

import numpy as np
import pytest
import torch

from attnrate.core.params import Group
from attnrate.examples import tasks, train
from attnrate.schemas.examples import Tasks
from attnrate.small.transformer import Transformer

CASES = [(task, name) for task, variants in train.VARIANTS.items() for name in variants]
each_case = pytest.mark.parametrize(("task", "name"), CASES)


def fit(task, name, seeds, mh=4, n=8, width=16, steps=3, muon=0.01, **changes):
    budget = Group(seeds=seeds, batch=8, lr=1e-2, warmup=1, gain=3.0) | changes
    own = Group(steps=steps, muon=muon, token_weight=5.0)
    return train.fit(task, name, mh, Group(n=n, width=width), Group(budget), own)


def sample(task, size=16):
    return tasks.solve(task, tasks.draw(task, size, np.random.default_rng(5)))


@pytest.mark.parametrize("task", tasks.TASKS)
def test_the_parameters_name_every_variant(task):
    own = Tasks.model_fields[task].annotation.model_json_schema()["properties"]["variants"]["items"]
    assert own.get("enum", [own.get("const")]) == list(train.VARIANTS[task])


def test_the_segment_id_joins_the_input():
    x = sample("mass").x
    found = train.with_segment(x)
    assert np.array_equal(found[..., :3], x)
    assert np.array_equal(found[..., 3:].argmax(-1), tasks.segments(x)) and (found[..., 3:].sum(-1) == 1).all()


def test_each_index_becomes_one_hot():
    x = sample("selection").x
    found = train.with_one_hot(x)
    assert np.array_equal(found[..., :2], x[..., :2])
    assert np.array_equal(found[..., 2:].reshape(16, 8, 3, 8).argmax(-1), x[..., 2:])


@each_case
def test_every_variant_trains(task, name):
    model, history = fit(task, name, [0, 1])
    assert history.shape == (3, 2) and np.isfinite(history.values).all()
    s = sample(task)
    y, attention, ff = train.inspect(model, train.VARIANTS[task][name].encode(s.x))
    assert y.shape == ff.shape == (2, *s.y.shape) and attention.shape == (2, *s.attention.shape)
    assert attention.sum(-1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("mh", [1, 2, 64])
def test_any_head_size(mh):
    model, _ = fit("mass", "segment-id", [0], mh=mh)
    assert model.W_Q.shape == (1, mh, 8)


@pytest.mark.parametrize(("name", "tied"), [("segment-id", True), ("untied", False)])
def test_the_start(name, tied):
    model, _ = fit("mass", name, [3], lr=0.0, muon=0.0)
    default = Transformer([4], [3], d=6, n=8, width=16, positions=(10, 8))
    assert torch.equal(model.W_Q, 3 * default.W_Q)
    assert torch.equal(model.W_K, model.W_Q if tied else 3 * default.W_K)
    assert torch.equal(model.f.weight[0], default.f.weight[0]), "only W_Q and W_K differ from PyTorch's default"


@each_case
def test_a_seed_is_the_same_in_any_stack(task, name):
    stack, alone = fit(task, name, [0, 7])[0], fit(task, name, [7])[0]
    for a, b in zip(stack.parameters(), alone.parameters(), strict=True):
        assert torch.allclose(a[1], b[0], atol=1e-5)


def test_a_short_training_learns():
    _, history = fit("nearest", "plain", [0, 1], mh=16, n=16, width=64, steps=300, batch=32)
    assert (history.iloc[-1] < 0.5 * history.iloc[0]).all()


def test_ff_is_the_output_on_a_constant_sequence():
    """Proposition B.1 (1): all weights fall on the same value."""
    model, _ = fit("nearest", "plain", [0])
    x = np.repeat(sample("nearest").x[:, :1], 6, 1)
    y, _, ff = train.inspect(model, x)
    assert y == pytest.approx(ff, abs=1e-5)


@pytest.mark.parametrize("task", tasks.TASKS)
def test_the_task_itself_measures_as_perfect(task):
    s = sample(task)
    found = train.measure(s, s.y, s.attention, s.ff)
    assert found == pytest.approx(
        {"mse": 0, "argmax_agreement": 1, "attention_corr": 1, "attention_maxdev": 0, "ff_rmse": 0}, abs=1e-12
    )


def test_measures_of_a_known_error():
    s = sample("mass")
    rolled = np.roll(s.attention, 1, -1)
    found = train.measure(s, s.y + 0.1, rolled, s.ff - 0.2)
    assert found["mse"] == pytest.approx(0.01) and found["ff_rmse"] == pytest.approx(0.2)
    assert found["attention_maxdev"] == 1 and found["attention_corr"] < 0.2
    assert found["argmax_agreement"] < 0.05


def test_only_a_unique_argmax_counts():
    """s(t) = (0, 1, 2) names three items as often: any argmax will do; s(t) = (1, 1, 2) names item 1."""
    x = np.array([[[0.1, 0.2, 0, 1, 2], [0.3, 0.4, 1, 1, 2], [0.5, 0.6, 1, 1, 2]]])
    s = tasks.selection(x)
    attention = np.eye(3)[[[2, 1, 0]]]
    assert train.measure(s, s.y, attention, s.ff)["argmax_agreement"] == 0.5
