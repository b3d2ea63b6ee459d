"""Order and depth: what one layer misses, what two can do, and who does not care."""

import numpy as np
import pytest
import torch

from attnrate.beyond import depth
from attnrate.core.params import Group
from attnrate.small.transformer import Transformer

OWN = Group(alpha=2.0, rank=2, tau=8, mh=4, n=12, width=16, permutation_seed=0, eval_seed=7)


@pytest.mark.parametrize("order", ["roll", "random"])
def test_every_time_is_moved(order):
    p = depth.permutation(order, 8, 3)
    assert sorted(p) == list(range(8)) and (p != np.arange(8)).all()


@pytest.mark.parametrize("order", depth.ORDERS)
def test_the_target_is_that_of_the_original_order(order):
    x = np.random.default_rng(0).random((5, 8))
    p = depth.permutation(order, 8, 1)
    assert depth.target("inputs", p, OWN, x[:, p]) == pytest.approx(depth.target("inputs", np.arange(8), OWN, x))


def test_who_asks_from_outside_gives_one_output_that_its_bias_orders():
    x, roll = np.random.default_rng(0).random((50, 8)), depth.permutation("roll", 8, 0)
    y = depth.target("outside", np.arange(8), OWN, x)
    assert y.shape == (50, 1) and np.abs(y - depth.target("outside", roll, OWN, x)).max() > 0.05


def test_models_have_as_many_parameters():
    own = Group(OWN | {"n": 32, "width": 64, "mh": 16})
    counts = [depth.parameters(own, d, a, depth.equal_width(own, d, a)) for _, d, a in depth.MODELS]
    assert max(counts) / min(counts) < 1.03


@torch.no_grad()
def test_two_layers_undo_a_permutation_exactly():
    """The first attends by position and carries z(p⁻¹(t)) to t; the second is any one-layer model."""
    tau, n, p = OWN.tau, OWN.n, depth.permutation("random", OWN.tau, 5)
    one = Transformer([OWN.mh], [3], n=n, width=OWN.width).double()
    two = Transformer([tau], [0], n=n, width=OWN.width, positions=(tau, n), depth=2).double()
    for w in two.parameters():
        w.zero_()
    two.A[0, tau] = 1  # channel τ holds z, the first τ the place
    two.e[0, 0, :, :tau] = torch.eye(tau)
    for w in (*two.f.weight, two.W_V):
        w[0, : tau + 1, : tau + 1] = torch.eye(tau + 1)
    two.W_Q[0, :, :tau] = 800 * torch.eye(tau)[np.argsort(p)].mT  # t asks for the place p⁻¹(t)
    two.W_K[0, :, :tau] = torch.eye(tau)
    second = two.deeper[0]
    second.f.weight[0][0, :, tau] = one.f.weight[0][0, :, 0]
    second.f.weight[1].copy_(one.f.weight[1])
    second.f.weight[2].copy_(one.f.weight[2])
    for to, source in ((second.f.bias, one.f.bias), (two.F.bias, one.F.bias), (two.F.weight, one.F.weight)):
        for a, b in zip(to, source, strict=True):
            a.copy_(b)
    second.W_Q[0, : OWN.mh], second.W_K[0, : OWN.mh] = one.W_Q[0], one.W_K[0]
    second.W_V.copy_(one.W_V)
    x = torch.rand(20, tau, 1, dtype=torch.float64)
    assert torch.allclose(two(x[:, p]), one(x), atol=1e-12)


def test_the_floor_of_an_affine_layer_is_there_rolled_and_vanishes_in_the_original_order():
    floor = depth.affine_floor(OWN, degree=12, size=1 << 12, asks=2)
    assert floor["roll"] > 0.01 > 0.003 > floor["original"]


def test_the_floor_is_a_lower_bound_for_models_of_its_kind():
    """A one-layer model with an affine F̂, whatever its weights, is off by more than √λ somewhere."""
    p, floor = depth.permutation("roll", OWN.tau, 0), depth.affine_floor(OWN, degree=12, size=1 << 12, asks=2)
    z = np.random.default_rng(1).random((500, OWN.tau))
    y = depth.target("inputs", p, OWN, z)
    model = Transformer([4] * 5, range(5), n=OWN.n, width=16, positions=(OWN.tau, OWN.n), affine=True)
    with torch.no_grad():
        model.standardise(torch.tensor(y.mean()), torch.tensor(y.std()))
        guess = model(torch.tensor(z, dtype=torch.float32)[..., None])[..., 0].numpy()
    assert (np.abs(guess - y).max((1, 2)) > floor["roll"]).all()


def test_a_small_run_has_a_row_for_each_order_and_seed():
    small = {"seeds": [0, 1], "steps": 3, "batch": 4, "lr": 0.001, "muon": 0.01, "warmup": 1, "gain": 1.0}
    own = Group(OWN | small | {"eval_size": 8})
    rows = [row for model in (("inputs", 2, True), ("outside", 1, False)) for row in depth.run(*model, own)]
    assert len(rows) == 2 * 3 + 2 * 2 and all(0 < row["share"] < 5 for row in rows)
