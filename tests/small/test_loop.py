"""One loop for many models, each of which follows its own path."""

import math

import pytest
import torch
from torch import nn

from attnrate.core.errors import UserError
from attnrate.small.loop import cosine, train


class Points(nn.Module):
    """Models that are single numbers."""

    def __init__(self, values):
        super().__init__()
        self.x = nn.Parameter(torch.tensor(values, dtype=torch.float64))


def quadratic(model, targets):
    return lambda _: (model.x - torch.tensor(targets, dtype=torch.float64)).square()


def test_each_model_trains_as_if_it_were_alone():
    """Even next to one whose loss is a million times larger."""
    stack = Points([0.0, 1.0, -3.0])
    scales, targets = torch.tensor([1.0, 1e6, 1e-3]), torch.tensor([1.0, -1.0, 2.0])
    history = train(stack, lambda _: scales * (stack.x - targets).square(), steps=40, lr=0.05, warmup=5)
    for i, start in enumerate((0.0, 1.0, -3.0)):
        one = Points([start])
        alone = train(
            one, lambda _, i=i, one=one: scales[i] * (one.x - targets[i]).square(), steps=40, lr=0.05, warmup=5
        )
        assert stack.x[i].item() == one.x[0].item()
        assert history[i].tolist() == alone[0].tolist()


def test_it_finds_the_minimum_and_its_history_falls():
    model = Points([5.0, -5.0])
    history = train(model, quadratic(model, [1.0, 2.0]), steps=400, lr=0.1, history=10)
    assert model.x.tolist() == pytest.approx([1.0, 2.0], abs=1e-2)
    assert list(history.index) == list(range(40, 401, 40)) and history.index.name == "step"
    assert history[0].iloc[0] > 1 > 1e-6 > history[0].iloc[-1]


def test_history_is_the_mean_of_its_window_and_ends_at_the_last_step():
    model, losses = Points([0.0]), []

    def loss(step):
        value = (model.x - step).square()
        losses.append(value.item())
        return value

    history = train(model, loss, steps=7, lr=0.1, history=2)  # every three steps, and the last
    assert list(history.index) == [3, 6, 7]
    assert history[0].tolist() == pytest.approx([sum(losses[:3]) / 3, sum(losses[3:6]) / 3, losses[6]])


def test_the_schedule_warms_up_then_falls_to_nothing():
    factors = [cosine(s, 100, 10) for s in range(100)]
    assert factors[:10] == pytest.approx([(s + 1) / 10 for s in range(10)])
    assert factors[10] == 1 and factors[55] == pytest.approx(0.5) and 0 < factors[99] < 1e-3
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert cosine(0, 1, 0) == 1


def test_the_schedule_is_obeyed():
    """Adam's first step is the learning rate itself, whatever the gradient."""
    for schedule, first in (("constant", 0.25), ("cosine", 0.25 / 4)):
        model = Points([7.0])
        train(model, lambda _, m=model: m.x * 3, steps=1, lr=0.25, warmup=4, schedule=schedule)
        assert 7.0 - model.x.item() == pytest.approx(first, rel=1e-6)


def test_frozen_parameters_stay():
    model = Points([1.0])
    model.y = nn.Parameter(torch.tensor([2.0], dtype=torch.float64), requires_grad=False)
    train(model, lambda _: (model.x * model.y).square(), steps=5, lr=0.1)
    assert model.y.item() == 2.0 and model.x.item() < 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_with_the_models_and_the_step(bad):
    model = Points([1.0, 1.0, 1.0])

    def loss(step):
        return model.x * torch.tensor([1.0, bad if step == 4 else 1.0, 1.0])

    with pytest.raises(
        UserError, match=r"demo: the loss of model\(s\) \[1\] is not finite at step 6 .*lower the learning rate"
    ):
        train(model, loss, steps=12, lr=0.1, history=4, label="demo")
