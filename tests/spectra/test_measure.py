"""The one measurer, on this project's own models: singular values of scores formed in full from the weights."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from attnrate.core.errors import UserError
from attnrate.spectra.attention import Catch
from attnrate.spectra.measure import Rows, measure
from attnrate.translation import model as seq2seq
from attnrate.vit import model as vit

VIT = {"image_size": 16, "patch": 4, "width": 16, "depth": 3, "heads": 2, "mlp_ratio": 2.0}
ENCODER = {"vocabulary": 50, "width": 16, "depth": 2, "heads": 2, "ff": 32, "dropout": 0.1}


@torch.no_grad()
def shaken(model):
    """Random weights and biases large enough for softmax to matter."""
    generator = torch.Generator().manual_seed(1)
    for weight in model.parameters():
        weight += 0.3 * torch.randn(weight.shape, generator=generator)
    return model.eval()


@contextmanager
def watched(modules):
    """The inputs of some modules, in the order of calls."""
    seen = []
    hooks = [
        m.register_forward_pre_hook(lambda _, given, named: seen.append([*given, *named.values()][0]), with_kwargs=True)
        for m in modules
    ]
    yield seen
    for hook in hooks:
        hook.remove()


def by_hand(x, query, key, heads, scale):
    """Singular values of every head, from W x + b of queries and keys: (B, τ, W), two (weight, bias) → (B, h, τ)."""
    x = x.double()
    q, k = (
        (x @ weight.double().T + bias.double()).unflatten(-1, (heads, -1)).transpose(1, 2)
        for weight, bias in (query, key)
    )
    return torch.linalg.svdvals(q @ k.mT * scale)


@torch.no_grad()
def of_vit(model, x):
    with watched([block.attn for block in model.blocks]) as inputs:
        model(x)
    layers = []
    for block, given in zip(model.blocks, inputs, strict=True):
        weight, bias = block.attn.qkv.weight, block.attn.qkv.bias
        width, heads = given.shape[-1], VIT["heads"]
        size = heads * block.attn.qk
        pairs = [(weight[i : i + size], bias[i : i + size]) for i in (0, size)]
        layers.append(by_hand(given, *pairs, heads, (width // heads) ** -0.5))
    return layers


@torch.no_grad()
def of_encoder(encoder, rows):
    attentions = [layer.self_attn for layer in encoder.layers]
    with watched(attentions) as inputs:
        encoder(rows)
    heads, scale = ENCODER["heads"], (ENCODER["width"] // ENCODER["heads"]) ** -0.5
    pairs = [[(p.weight, p.bias) for p in (a.q_proj, a.k_proj)] for a in attentions]
    return [by_hand(x, *pair, heads, scale) for x, pair in zip(inputs, pairs, strict=True)]


def check(found, exact, size):
    """Everything that is measured without normalisation, against the values of each input; to 1e-5 of the largest."""
    kept = min(size, exact[0].shape[-1])
    for layer, values in enumerate(exact, 1):
        assert (values[..., kept:] < 1e-9 * values.max()).all(), "the rank is at most m_h"
        s, limit = values[..., :kept].numpy(), 1e-5 * float(values.max())
        part = found.spectra[found.spectra.layer == layer]
        for name, expected in (("mean", s.mean(0)), ("sd", s.std(0, ddof=1))):
            assert np.allclose(part.pivot(index="head", columns="k", values=name), expected, rtol=0, atol=limit)
        assert (part.n == len(s)).all()
        shares, energy = s / s.sum(-1, keepdims=True), (s**2).cumsum(-1) / (s**2).sum(-1, keepdims=True)
        ranks = found.ranks[found.ranks.layer == layer]
        entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum(-1)
        assert np.allclose(ranks.effective, np.exp(entropy).mean(0), rtol=1e-4)
        assert np.allclose(ranks.effective_sd, np.exp(entropy).std(0, ddof=1), rtol=1e-3, atol=1e-4)
        for name, share in (("energy90", 0.9), ("energy99", 0.99)):
            assert np.allclose(ranks[name], (1 + (energy < share).sum(-1)).mean(0))
        for end in {1: ["first"], len(exact): ["last"]}.get(layer, []):
            assert np.allclose(found.violins[end], s[:, 0], rtol=0, atol=limit)
    assert len(found.layers) == len(exact) and found.inputs == len(exact[0])


@pytest.mark.parametrize(("reading", "mh"), [("qk", 8), ("qk", 3), ("qk", 1), ("head", 3), ("width", 4)])
@pytest.mark.parametrize("pool", ["token", "avg"])
def test_our_vit(reading, mh, pool):
    model, x = shaken(vit.build(reading, mh, **VIT, pool=pool)), torch.randn(6, 3, 16, 16)
    found = measure(model, x.split(4))
    check(found, of_vit(model, x), mh)
    assert found.layers == [f"blocks.{i}.attn" for i in range(3)] and not found.notes


@pytest.mark.parametrize("tokens", [5, 8, 20])
def test_our_encoder(tokens):
    encoder = shaken(seq2seq.build(**ENCODER, seed=0)).model.encoder
    rows = torch.from_numpy(np.random.default_rng(0).integers(3, 50, (7, tokens)))
    found = measure(encoder, rows.split(3))
    check(found, of_encoder(encoder, rows), 8)
    assert found.layers == [f"layers.{i}.self_attn" for i in range(2)] and not found.notes


@pytest.mark.parametrize("normalisation", ["tokens", "largest"])
def test_values_are_normalised_input_by_input_and_ranks_are_not(normalisation):
    model, x = shaken(vit.build("qk", 3, **VIT)), torch.randn(6, 3, 16, 16)
    plain, found = measure(model, [x]), measure(model, [x], normalisation)
    first = of_vit(model, x)[0][..., :3]
    expected = first / 17 if normalisation == "tokens" else first / first[..., :1]
    mean = found.spectra[found.spectra.layer == 1].pivot(index="head", columns="k", values="mean")
    assert np.allclose(mean, expected.mean(0), rtol=0, atol=1e-5 * float(expected.max()))
    assert found.ranks.equals(plain.ranks)


def test_what_is_caught_multiplies_to_the_scores_and_the_model_stays_as_it_was():
    """Queries and keys carry the root of the scale each."""
    model, seen = shaken(vit.build("qk", 3, **VIT)), {}
    x = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        before = model(x)
        tokens = model.blocks[0].norm1(model.norm_pre(model._pos_embed(model.patch_embed(x))))
        q, k, _ = model.blocks[0].attn.split_heads(tokens)
        catch = Catch(lambda call: seen.update({call.layer: call.q @ call.k.mT}))
        with catch.watching(model):
            catch.begin(2)
            assert torch.equal(model(x), before)
        assert sorted(seen) == [0, 1, 2] and seen[0].shape == (2, 2, 17, 17)
        assert torch.allclose(seen[0], q @ k.mT / 8**0.5, atol=1e-5)
        seen.clear()
        assert torch.equal(model(x), before) and not seen
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())


def test_hooks_go_even_when_the_model_fails():
    model = vit.build("qk", 3, **VIT)
    with pytest.raises(UserError, match="forward pass failed"):
        measure(model, [torch.randn(2, 4, 16, 16)])
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())


def test_one_input_is_not_enough():
    with pytest.raises(UserError, match="give two or more"):
        measure(vit.build("qk", 3, **VIT), [torch.randn(1, 3, 16, 16)])


@torch.no_grad()
def test_centred_keys_leave_the_softmax_and_drop_what_it_ignores():
    """A bias of the queries alone adds row constants: the centred spectrum does not see it, the plain one does."""
    model = shaken(vit.build("qk", 3, seed=0, **VIT))
    x = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(2))
    with watched([model.blocks[0].attn]) as inputs:
        model(x)
    q, k, _ = model.blocks[0].attn.split_heads(inputs[0].double().float())
    scores = q.double() @ k.double().mT * model.blocks[0].attn.scale
    wanted = torch.linalg.svdvals(scores - scores.mean(-1, keepdim=True))[..., :3].mean(0)
    plain, centred = (measure(model, [x], centred=c).spectra.query("layer == 1") for c in (False, True))
    assert centred["mean"].to_numpy() == pytest.approx(wanted.flatten().numpy(), rel=1e-4, abs=1e-5)
    assert not np.allclose(plain["mean"], centred["mean"], rtol=1e-2)


def test_inputs_that_grow_longer_and_longer_do_not_blow_up_the_table():
    rows, lengths = Rows(), range(1, 60)
    for length in lengths:
        rows.add(np.full((1, length), float(length), np.float32))
    assert rows.n == len(lengths) and rows.table.shape[0] <= 2 * rows.n
    assert [int(np.isfinite(row).sum()) for row in rows.table[: rows.n]] == list(lengths)
