"""Eq. (5), its stack with padded head sizes, and A.1."""

import numpy as np
import pytest
import torch

from attnrate.small.loop import train
from attnrate.small.transformer import Transformer, predict

TAU, SHAPE = 6, {"n": 8, "width": 12}


def sequences(count=5, tau=TAU, d=1, seed=0):
    return torch.rand(count, tau, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def relu_network(net, x):  # one point of the first model, in plain NumPy
    for k in range(3):
        x = net.weight[k][0].detach().numpy() @ x + net.bias[k][0, 0].detach().numpy()
        x = np.maximum(x, 0) if k < 2 else x
    return x


def test_forward_is_equation_5():
    model = Transformer([3], [1], d=2, **SHAPE).double()
    W_Q, W_K, W_V = (w[0].detach().numpy() for w in (model.W_Q, model.W_K, model.W_V))
    x = sequences(1, d=2)
    h = [relu_network(model.f, v) for v in x[0].numpy()]
    for t in range(TAU):
        scores = np.array([(W_Q @ h[t]) @ (W_K @ h[s]) for s in range(TAU)])
        softmax = np.exp(scores) / np.exp(scores).sum()
        expected = relu_network(model.F, sum(softmax[s] * W_V @ h[s] for s in range(TAU)))
        assert model(x)[0, 0, t].detach().numpy() == pytest.approx(expected, abs=1e-12)


def test_rows_of_the_attention_sum_to_one():
    a = Transformer([2, 4], [0, 1], **SHAPE).double().attention(sequences())
    assert a.min() > 0 and torch.allclose(a.sum(-1), torch.ones_like(a.sum(-1)))


@pytest.mark.parametrize("mh", [1, 2, 5])
def test_the_coupling_has_rank_at_most_mh(mh):
    """Eq. (18): ρ̂ is a sum of m_h products, so a matrix of its values has at most m_h singular values."""
    model = Transformer([mh, 7], [0, 1], **SHAPE).double()
    h = model.features(sequences(1, tau=40, seed=3))
    values = torch.linalg.svdvals(model.scores(h, h)[0, 0])
    assert values[mh] < 1e-12 * values[0] < values[mh - 1]


@torch.no_grad()
def sharp(model: Transformer) -> Transformer:
    """Far from uniform attention, so that a wrong weight shows."""
    model.W_Q *= 20
    model.W_K *= 20
    return model.double()


def test_permuted_inputs_give_permuted_outputs_unless_positions_are_encoded():
    """A.1, and section 4.1's remedy."""
    p, x = torch.tensor([3, 0, 5, 1, 2, 4]), sequences()
    for positions in (None, (TAU, 3)):
        model = sharp(Transformer([4], [0], positions=positions, **SHAPE))
        y = model(x)
        change = (model(x[:, p]) - y[:, :, p]).abs().max() / y.std()
        assert change > 0.1 if positions else change < 1e-10


def alone(stack: Transformer, i: int, **options) -> Transformer:
    return Transformer([stack.mh[i]], [SEEDS[i]], **options)


HEADS, SEEDS = (1, 5, 3), (11, 12, 13)


@pytest.mark.parametrize("options", [{}, {"d": 2}, {"positions": (TAU, 3)}], ids=["plain", "d=2", "positions"])
def test_a_padded_model_in_a_stack_is_the_small_model(options):
    stack = Transformer(HEADS, SEEDS, **SHAPE, **options).double()
    x = sequences(d=options.get("d", 1))
    for i in range(3):
        small = alone(stack, i, **SHAPE, **options).double()
        assert small.W_Q.shape[1] == HEADS[i] < stack.W_Q.shape[1] or HEADS[i] == 5
        assert torch.allclose(stack(x)[i], small(x)[0], atol=1e-14, rtol=0)


@pytest.mark.parametrize(("heads", "muon"), [(HEADS, None), ((2, 5, 3), 0.02)])  # one row is no matrix
def test_it_stays_the_small_model_while_it_trains(heads, muon):
    """Ten steps on its own inputs: same outputs, and the padding still zero."""
    inputs = torch.stack([sequences(seed=s) for s in SEEDS])  # (M, B, τ, 1)

    def fit(model, x):
        train(model, lambda _: (model(x) - x.flip(-2)).square().mean((1, 2, 3)), steps=10, lr=1e-2, muon=muon)
        return model

    stack = fit(Transformer(heads, SEEDS, **SHAPE).double(), inputs)
    for i, seed in enumerate(SEEDS):
        small = fit(Transformer([heads[i]], [seed], **SHAPE).double(), inputs[i : i + 1])
        start = Transformer([heads[i]], [seed], **SHAPE).double()
        assert (small(inputs[i]) - start(inputs[i])).abs().max() > 1e-2, "nothing was learned"
        assert torch.allclose(stack(inputs)[i], small(inputs[i])[0], atol=1e-10, rtol=0)
        for w in (stack.W_Q, stack.W_K):
            assert (w[i, heads[i] :] == 0).all() and (w[i, : heads[i]] != 0).all()


def test_points_give_what_the_sequences_of_them_give():
    model = Transformer(HEADS, SEEDS, d=2, **SHAPE).double()
    model.standardise(torch.tensor([1.0, 2.0, 3.0]).view(-1, 1, 1, 1), torch.tensor([0.5]).view(1, 1, 1, 1))
    g = torch.Generator().manual_seed(0)
    points = torch.rand(3, 9, 2, generator=g, dtype=torch.float64)
    index = torch.randint(0, 9, (3, 4, TAU), generator=g)
    x = torch.stack([own[i] for own, i in zip(points, index, strict=True)])  # (M, B, τ, 2)
    for queries in (1, TAU):
        found = model.on_points(points, index, queries)
        assert torch.allclose(found, model(x)[:, :, :queries], atol=1e-14, rtol=0)


def test_standardising_shifts_and_scales_the_output():
    model, x = Transformer([2, 3], [0, 1], **SHAPE).double(), sequences()
    raw = model(x)
    mean, std = torch.tensor([5.0, -1.0]).view(-1, 1, 1, 1), torch.tensor([2.0, 0.1]).view(-1, 1, 1, 1)
    model.standardise(mean, std)
    assert torch.allclose(model(x), mean + std * raw)


def test_knots_lie_evenly_where_asked():
    """Unit k of the first layer turns on at its knot, and every slope is ±4."""
    model = Transformer([1], [0], n=4, width=5)
    model.spread_knots(4.0, low=-1.0, high=1.0)
    w, b = model.f.weight[0][0, :, 0], model.f.bias[0][0, 0]
    assert (-b / w).tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert w.tolist() == [4.0, -4.0, 4.0, -4.0, 4.0]


@pytest.mark.parametrize(("width", "half"), [(4, 1), (12, 1), (33, 2), (128, 8)])
@torch.no_grad()
def test_hats_stand_evenly_on_the_unit_interval(width, half):
    """Of the given height, from one zero to the other 2 · half knots wide; the first `half` units stay as they were."""
    start, model = (Transformer([1, 2], [0, 1], n=4, width=width).double() for _ in range(2))
    model.spread_hats(3.0)
    x = torch.linspace(0, 1, 2001, dtype=torch.float64)[:, None]
    peaks = torch.linspace(0, 1, width - half, dtype=torch.float64)
    distance = (x - peaks).abs() * (width - half - 1)  # in knots
    hats = 3.0 * (1 - distance / half).clamp_min(0)
    for found in model.f.hidden(x.expand(2, -1, 1)):
        assert torch.allclose(found[:, half:], hats, atol=1e-5, rtol=0)
    for now, before in ((model.f.weight[1], start.f.weight[1]), (model.f.bias[1].mT, start.f.bias[1].mT)):
        assert torch.equal(now[:, :half], before[:, :half])
    others = ("f.weight.2", "f.bias.2", "W_Q", "F.weight.0")
    assert all(torch.equal(model.state_dict()[k], start.state_dict()[k]) for k in others)


def test_initialisation_is_pytorchs_default():
    """Weights and biases uniform on ±1/√fan_in."""
    model = Transformer([16], [0], n=32, width=128)
    for w, fan_in in ((model.f.weight[1], 128), (model.F.bias[0], 32), (model.F.weight[0], 32), (model.W_Q, 32)):
        bound = fan_in**-0.5
        assert 0.9 * bound < w.abs().max() <= bound
        assert abs(w.std() / bound - 3**-0.5) < 0.12


def test_different_seeds_differ_and_equal_seeds_agree():
    a, b, c = Transformer([2, 2, 2], [0, 1, 0], **SHAPE)(sequences().float())
    assert torch.equal(a, c) and not torch.allclose(a, b)


def test_predictions_do_not_depend_on_the_chunks():
    model, x = Transformer([2, 3], [0, 1], **SHAPE), sequences(64)[..., 0].numpy()
    whole = predict(model, x, chunk=1000)
    assert whole.shape == (2, *x.shape) and whole.dtype == np.float64
    assert predict(model, x, chunk=7) == pytest.approx(whole, abs=1e-6)


def test_heads_are_attentions_of_their_own_side_by_side():
    model = Transformer([3], [1], heads=2, **SHAPE).double()
    h = model.features(sequences())
    q, k, v = (h @ w.mT for w in (model.W_Q, model.W_K, model.W_V))
    by_head = []
    for j in range(2):
        rows, channels = slice(3 * j, 3 * j + 3), slice(4 * j, 4 * j + 4)
        by_head.append((q[..., rows] @ k[..., rows].mT).softmax(-1) @ v[..., channels])
    assert torch.allclose(model.attend(h), torch.cat(by_head, -1))


def test_on_points_has_heads_too():
    model = Transformer([2, 2], [0, 1], heads=4, **SHAPE).double()
    points = sequences(2, tau=9)
    index = torch.stack([torch.randperm(9)[:TAU] for _ in range(10)]).view(2, 5, TAU)
    x = torch.stack([p[i] for p, i in zip(points, index, strict=True)])  # (M, B, τ, 1)
    assert torch.allclose(model.on_points(points, index, 3), model(x)[:, :, :3])


def test_a_mask_hides_what_is_later():
    model, x = sharp(Transformer([3], [1], causal=True, positions=(TAU, 8), **SHAPE)), sequences()
    later = x.clone()
    later[:, 4:] = 1 - later[:, 4:]
    assert torch.equal(model(x)[:, :, :4], model(later)[:, :, :4])
    assert not torch.allclose(model(x)[:, :, 4:], model(later)[:, :, 4:])


def test_a_second_layer_acts_on_the_averages_of_the_first():
    model = Transformer([3], [1], depth=2, affine=True, **SHAPE).double()
    first = model.attend(model.features(sequences()))
    h = model.deeper[0].f(first.flatten(1, 2)).view_as(first)
    expected = model.deeper[0].attend(h) @ model.F.weight[0].mT + model.F.bias[0]
    assert len(model.F.weight) == 1 and torch.allclose(model(sequences()), expected)


def test_more_layers_leave_the_start_of_the_first_alone():
    one, two = (Transformer([3], [5], depth=d, **SHAPE).state_dict() for d in (1, 2))
    assert all(torch.equal(one[name], two[name]) for name in one) and len(two) > len(one)
