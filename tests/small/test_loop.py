"""One loop for many models, each of which follows its own path."""

import math

import pytest
import torch
from torch import nn

from attnrate.core.errors import UserError
from attnrate.linear.train import Filtered
from attnrate.optim.muon import Muon
from attnrate.small.loop import make_optimiser, train
from attnrate.small.streams import Streams
from attnrate.small.transformer import Transformer


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


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("warmup", [0, 4])
def test_the_schedule_is_obeyed(schedule, warmup):
    """Adam's first step is the learning rate itself, whatever the gradient."""
    model = Points([7.0])
    train(model, lambda _: model.x * 3, steps=1, lr=0.25, warmup=warmup, schedule=schedule)
    assert 7.0 - model.x.item() == pytest.approx(0.25 / max(1, warmup), rel=1e-6)


def test_muon_has_its_own_rate_and_the_same_schedule():
    """Its first step has singular values near the rate times √(rows / columns), whatever the gradient."""
    model, size = nn.Module(), torch.tensor([[1.0], [1e-3]]).view(2, 1, 1)
    model.matrix, model.bias = nn.Parameter(torch.zeros(2, 8, 2)), nn.Parameter(torch.zeros(2, 1, 8))
    g = torch.randn(2, 8, 2, generator=torch.Generator().manual_seed(0)) * size

    def loss(_):
        return (model.matrix * g).sum((1, 2)) + model.bias.sum((1, 2))

    train(model, loss, steps=1, lr=0.25, muon=0.1, warmup=4)
    assert model.bias.detach().numpy() == pytest.approx(-0.25 / 4)
    found = torch.linalg.svdvals(model.matrix.detach()) / (0.1 / 4 * 2)
    assert 0.6 < found.min() and found.max() < 1.3
    assert (model.matrix * g).sum((1, 2)).max() < 0


def owners(model, muon):
    """The names of the parameters of each group of the optimiser."""
    optimiser, names = make_optimiser(model, 0.1, muon), {id(p): n for n, p in model.named_parameters()}
    return type(optimiser), [{names[id(p)] for p in group["params"]} for group in optimiser.param_groups]


def test_matrices_of_more_than_one_row_and_column_go_to_muon():
    model = Filtered(Transformer([2, 3], [0, 1], n=8, width=12, positions=(6, 4)))
    model.inner.W_V.requires_grad_(False)
    kind, (matrices, rest) = owners(model, 0.1)
    inner = {f"f.weight.{i}" for i in range(3)} | {"F.weight.0", "F.weight.1", "W_Q", "W_K"}
    assert kind is Muon and matrices == {f"inner.{name}" for name in inner}
    biases = {f"{net}.bias.{i}" for net in "fF" for i in range(3)}
    assert rest == {"filter", *(f"inner.{name}" for name in ({"A", "e", "F.weight.2"} | biases))}
    kind, (every,) = owners(model, None)
    assert kind is torch.optim.Adam and every == matrices | rest
    _, (matrices, rest) = owners(Transformer([2], [0], n=8, width=12), 0.1)
    assert "f.weight.0" in rest and "f.weight.1" in matrices  # scalar inputs


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


def gated(steps, halfway):
    """A model on noisy inputs of its own stream, with the state that `halfway` saw."""
    streams, model, seen = Streams([0, 1]), nn.Module(), []
    model.x = nn.Parameter(torch.full((2, 3, 4), 2.0))
    model.b = nn.Parameter(torch.ones(2, 1, 3))

    def loss(_):
        noise = streams.rand(3, 4)[streams.which]
        return (model.x - noise).square().mean((1, 2)) + (model.b - noise.mean()).square().mean((1, 2))

    note = (lambda: seen.append([p.detach().clone() for p in model.parameters()])) if halfway else None
    how = {"lr": 0.05, "muon": 0.05, "warmup": 3, "schedule": "trunk", "streams": streams}
    history = train(model, loss, steps=steps, halfway=note, **how)
    return list(model.parameters()), history, seen


def test_halfway_is_what_half_the_steps_give_and_the_rest_does_not_notice():
    """To the last bit: with Muon, Adam, their momenta and the streams of inputs."""
    plain, without, _ = gated(40, False)
    whole, with_, (seen,) = gated(40, True)
    half, _, _ = gated(20, False)
    assert all(torch.equal(a, b) for a, b in zip(plain, whole, strict=True)) and without.equals(with_)
    assert all(torch.equal(a, b) for a, b in zip(half, seen, strict=True))
    assert not torch.equal(seen[0], whole[0])
