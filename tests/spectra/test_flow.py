"""A softmax in other words is measured as one, other attention is named, also what runs out of sight, gates are not."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from attnrate.core.errors import UserError
from attnrate.cut.study import curves
from attnrate.spectra.measure import measure_all
from tests.spectra.by_hand import KINDS, NAMED, PAIRS, Attention, Gates, X, divided_late, log_softmax, scores, softmax


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(("how", "twin"), PAIRS)
def test_a_softmax_in_other_words_is_measured_as_one(how, twin, beside):
    models = [nn.Sequential(*[Attention(softmax)] * beside, Attention(each)) for each in (how, twin)]
    found, exact = (measure_all(model, [X]) for model in models)
    for which, one in found.items():
        two = exact[which]
        assert one.layers == two.layers == ["0", "1"][: 1 + beside]
        assert one.kinds == two.kinds and one.notes == two.notes
        for column in ("mean", "sd"):
            limit = 1e-5 * two.spectra["mean"].max()
            assert np.allclose(one.spectra[column], two.spectra[column], rtol=0, atol=limit)


@pytest.mark.parametrize("how", [log_softmax, divided_late])
def test_a_softmax_in_other_words_is_cut_as_one(how):
    last = nn.Linear(8, 3)
    one, two = (curves(nn.Sequential(Attention(each), last), [X], [1, 2, 4]) for each in (how, softmax))
    columns = ["mh", "scores", "outputs", "change"]
    assert np.allclose(one[columns], two[columns], rtol=0, atol=1e-5) and one.outputs.max() > 0.01


@pytest.mark.parametrize("how", NAMED)
def test_what_is_no_softmax_of_scores_is_named(how):
    found = measure_all(nn.Sequential(Attention(softmax), Attention(how)), [X], which=["scores"])["scores"]
    assert found.layers == ["0"]
    (note,) = found.notes.items()
    assert "left out" in note[0] and f"({NAMED[how]})" in note[0] and note[1] == ["1"]
    with pytest.raises(UserError, match=r"no attention that can be seen; 0 is left out, .*; supported is"):
        measure_all(nn.Sequential(Attention(how)), [X])


@pytest.mark.filterwarnings("ignore:.*torch.jit", "ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("make", ["script", "trace", "flex"])
def test_what_runs_out_of_sight_is_named(make):
    other = Attention(softmax)
    if make == "flex":
        other.how = flex_attention
    else:
        other = torch.jit.trace(other, X) if make == "trace" else Attention(torch.jit.script(scripted))
    found = measure_all(nn.Sequential(Attention(softmax), other), [X], which=["scores"])["scores"]
    assert found.layers == ["0"]
    assert [("left out" in what, names) for what, names in found.notes.items()] == [(True, ["1"])]


def scripted(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


@pytest.mark.parametrize("whole", [False, True])
def test_what_is_compiled_is_measured(whole):
    model = nn.Sequential(Attention(softmax), Attention(softmax))
    exact = measure_all(model, [X], which=["scores"])["scores"]
    if whole:
        model = torch.compile(model, backend="eager")
    else:
        model[1].compile(backend="eager")
    with torch.no_grad():
        model(X)
    found = measure_all(model, [X], which=["scores"])["scores"]
    assert found.spectra.equals(exact.spectra) and not found.notes


class Odd(nn.Module):
    """One module called as it is, by its forward, with weights given, under a checkpoint; another in a list."""

    def __init__(self):
        super().__init__()
        self.a, self.others = Attention(softmax), [Attention(softmax)]

    def forward(self, x):
        x = self.a.forward(self.a(x))
        x = torch.func.functional_call(self.a, {n: 2 * p for n, p in self.a.named_parameters()}, x)
        return self.others[0](torch.utils.checkpoint.checkpoint(self.a, x, use_reentrant=False))


def test_every_call_of_a_shared_module_is_a_layer():
    found = measure_all(Odd(), [X], which=["scores"])["scores"]
    assert found.layers == ["a", "", "a", "a", ""] and not found.notes


class Splits(Attention):
    """With names that this project's own ViT also has."""

    scale = 0.5

    def split_heads(self, x):
        return x.unflatten(-1, (2, 4)).transpose(1, 2)


def test_a_module_may_have_a_split_heads_of_its_own():
    found, exact = (measure_all(each(softmax), [X], which=["scores"])["scores"] for each in (Splits, Attention))
    assert found.spectra.equals(exact.spectra)


def test_a_bias_that_is_a_product_too_is_no_scores():
    positions = nn.Parameter(torch.randn(5, 4))

    def how(q, k, v):
        return (torch.matmul(q, positions.mT.expand(3, 2, 4, 5)) + scores(q, k)).softmax(-1) @ v

    found, exact = (measure_all(Attention(each), [X], which=["scores"])["scores"] for each in (how, softmax))
    assert found.spectra.equals(exact.spectra)
    assert ["bias" in what for what in found.notes] == [True]


@pytest.mark.parametrize("kind", KINDS)
def test_a_gate_is_no_attention(kind):
    model = nn.Sequential(Attention(softmax), Gates(kind), Attention(softmax), Gates(kind))
    found = measure_all(model, [X], which=["scores"])["scores"]
    assert found.layers == ["0", "2"] and not found.notes
