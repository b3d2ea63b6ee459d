"""Muon: the rule of torch.optim.Muon, in single precision and for every matrix of a stack."""

import pytest
import torch
from torch import nn
from torch.optim import _muon

from attnrate.optim import muon
from attnrate.optim.muon import Muon, like_adam, orthogonal, spectral

SHAPES = [(32, 32), (128, 32), (32, 128)]


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Single:
    """PyTorch whose bfloat16 is single precision."""

    bfloat16 = torch.float32

    def __getattr__(self, name):
        return getattr(torch, name)


@pytest.fixture
def in_single_precision(monkeypatch):
    monkeypatch.setattr(_muon, "torch", Single())


def factor(g):
    return _muon._zeropower_via_newtonschulz(g, (_muon.DEFAULT_A, _muon.DEFAULT_B, _muon.DEFAULT_C), 5, _muon.EPS)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_factor_is_pytorchs(shape):
    """Up to bfloat16, in which PyTorch computes."""
    g = draw(*shape)
    mine, theirs = orthogonal(g), factor(g).float()
    assert (mine - theirs).norm() < 1e-2 * theirs.norm() * 2


@pytest.mark.parametrize("shape", SHAPES)
def test_in_single_precision_it_is_the_same(shape, in_single_precision):
    g = draw(3, *shape)
    for mine, one in zip(orthogonal(g), g, strict=True):
        assert torch.allclose(mine, factor(one), atol=1e-6, rtol=0)


@pytest.mark.parametrize("length, rule", [(spectral, "original"), (like_adam, "match_rms_adamw")])
def test_steps_are_pytorchs(length, rule, in_single_precision):
    ours, theirs = (nn.Parameter(draw(24, 8, seed=1)) for _ in range(2))
    mine = Muon([{"params": [ours], "length": length}], lr=0.02, weight_decay=0.1)
    other = torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, momentum=0.95, adjust_lr_fn=rule)
    for step in range(5):
        ours.grad = theirs.grad = draw(24, 8, seed=step + 2)
        mine.step(), other.step()
        assert torch.allclose(ours, theirs, atol=1e-6, rtol=0)


def test_a_matrix_of_a_stack_moves_as_it_would_alone():
    """Even beside one whose gradient is a million times larger."""
    start, scales = draw(3, 16, 8), torch.tensor([1.0, 1e6, 1e-6]).view(3, 1, 1)
    stack, alone = nn.Parameter(start.clone()), [nn.Parameter(m.clone()) for m in start]
    optimisers = [Muon([{"params": [p], "length": spectral}], lr=0.1, weight_decay=0.0) for p in (stack, *alone)]
    for step in range(4):
        stack.grad = draw(3, 16, 8, seed=step) * scales
        for p, g in zip(alone, stack.grad, strict=True):
            p.grad = g.clone()
        for optimiser in optimisers:
            optimiser.step()
    for together, one in zip(stack, alone, strict=True):
        assert torch.allclose(together, one, atol=1e-5)


def test_parts_of_a_stack_move_as_all_at_once(monkeypatch):
    found = []
    for chunk in (1, 3 * 12 * 8, 1 << 30):
        monkeypatch.setattr(muon, "CHUNK", chunk)
        p = nn.Parameter(draw(7, 12, 8))
        p.grad = draw(7, 12, 8, seed=1)
        Muon([{"params": [p], "lr": 0.1, "length": spectral}], weight_decay=0.0).step()
        found.append(p.detach())
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_singular_values_come_near_one_and_directions_stay():
    u, _, vt = torch.linalg.svd(draw(32, 20).double(), full_matrices=False)
    inner = u.mT @ orthogonal(u * torch.linspace(1, 0.1, 20) @ vt) @ vt.mT
    assert (inner - inner.diag().diag()).abs().max() < 1e-6
    assert 0.6 < inner.diag().min() and inner.diag().max() < 1.3


def test_rows_of_zeros_stay():
    """The padding of small head sizes."""
    g = draw(2, 8, 6)
    g[0, 3:] = 0
    assert (orthogonal(g)[0, 3:] == 0).all() and torch.allclose(orthogonal(g)[0, :3], orthogonal(g[0, :3]), atol=1e-6)
    assert (orthogonal(torch.zeros(1, 4, 4)) == 0).all()


def test_the_rest_follows_adam():
    matrix, vector, other = nn.Parameter(draw(4, 4)), nn.Parameter(draw(4)), nn.Parameter(draw(4))
    groups = [{"params": [matrix], "lr": 0.5, "length": spectral}, {"params": [vector], "lr": 0.01}]
    muon, adam = Muon(groups, weight_decay=0.0), torch.optim.Adam([other], lr=0.01)
    for step in range(3):
        matrix.grad, vector.grad = draw(4, 4, seed=step), draw(4, seed=step)
        other.grad = vector.grad.clone()
        muon.step(), adam.step()
    assert torch.allclose(vector, other, atol=1e-7)


def test_its_state_can_be_saved_and_put_back():
    def fit(steps, state=None, start=None):
        p = nn.Parameter(draw(6, 4) if start is None else start.clone())
        optimiser = Muon([{"params": [p], "length": spectral}], lr=0.1, weight_decay=0.01)
        if state:
            optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
        for step in steps:
            p.grad = draw(6, 4, seed=step)
            optimiser.step()
        return p.detach(), optimiser.state_dict()["state"]

    whole, _ = fit(range(6))
    half, state = fit(range(3))
    assert torch.equal(fit(range(3, 6), state, half)[0], whole)
