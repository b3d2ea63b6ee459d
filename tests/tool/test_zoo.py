"""Everything that attends: each model's spectra against a dense SVD of scores by a route of their own."""

import numpy as np
import pytest
import timm
import torch
from torch import Tensor, nn

from attnrate.core.errors import UserError
from attnrate.spectra.measure import measure_all
from tests.tool.zoo import CASES, IMAGES, build, run, scores

EXPECTED = ("masked", "different number", "windows")  # notes that a model's kinds already tell


def table(rows, layer: int) -> np.ndarray:
    return rows[rows.layer == layer].pivot(index="head", columns="k", values="mean").to_numpy()


def close(found: np.ndarray, matrices: Tensor, inputs: int) -> None:
    """Mean values of (N, h, τ, τ'), windows averaged with the inputs."""
    exact = torch.linalg.svdvals(matrices.double()).unflatten(0, (inputs, -1)).mean((0, 1))
    assert found.shape[0] == exact.shape[0]
    assert np.allclose(found, exact[:, : found.shape[1]], rtol=0, atol=1e-5 * float(exact.max()))
    assert (exact[:, found.shape[1] :] <= 1e-5 * exact.max()).all()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*")
@pytest.mark.parametrize("name", CASES)
def test_the_values_are_those_of_a_dense_svd(name):
    case = CASES[name]
    model = build(case)
    found = measure_all(model, [case.inputs])
    exact = scores(case, model)
    layers = found["scores"].layers
    assert len(exact) == len(layers) == case.layers
    for layer, matrix in enumerate(exact, 1):
        close(table(found["scores"].spectra, layer), matrix, 3)
        close(table(found["centred"].spectra, layer), matrix - matrix.mean(-1, keepdim=True), 3)
    assert set(found["scores"].kinds) == case.kinds
    told = [what for what in found["scores"].notes if not any(word in what for word in EXPECTED)]
    assert [case.note in what for what in told] == ([True] if case.note else [])
    if case.attentions:
        model.set_attn_implementation("eager")
        with torch.no_grad():
            weights = run(model, case.inputs, output_attentions=True).attentions
        for layer, matrix in enumerate(weights, 1):
            close(table(found["softmax"].spectra, layer), matrix, 3)


class Written(nn.Module):
    """Attention by hand, in one of several styles."""

    def __init__(self, style: str):
        super().__init__()
        self.qkv, self.mix, self.style = nn.Linear(8, 24), nn.Linear(2, 2), style

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        if self.style == "late scale":
            scores = torch.matmul(q, k.transpose(-2, -1)) / 2.0
            scores = scores.masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), float("-inf"))
            return nn.functional.dropout(scores.softmax(-1), 0.1, self.training) @ v
        if self.style == "early scale":
            return torch.softmax(q / 2 @ k.mT, -1) @ v
        if self.style == "talking heads":
            scores = self.mix((q @ k.mT).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            return scores.softmax(-1) @ v
        if self.style == "over queries":
            return (q @ k.mT).softmax(-2) @ v
        if self.style == "einsum":
            return torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1) @ v
        return (q @ k.mT).softmax(-1).sum(-1)  # "no values"


@pytest.mark.parametrize("style", ["late scale", "early scale"])
def test_attention_by_hand_is_recognised(style):
    torch.manual_seed(0)
    model, x = Written(style), torch.randn(3, 5, 8)
    found = measure_all(model, [x])
    with torch.no_grad():
        q, k, _ = model.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
    matrix = q @ k.mT / 2
    close(table(found["scores"].spectra, 1), matrix, 3)
    if style == "late scale":
        matrix = matrix.masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), -torch.inf)
    close(table(found["softmax"].spectra, 1), matrix.softmax(-1), 3)
    assert found["scores"].kinds == ["causal" if style == "late scale" else "self"]
    notes = {what.partition(":")[0] for what in found["scores"].notes}
    assert notes == ({"causal"} if style == "late scale" else set())


def test_keys_that_are_pooled_are_no_cross_attention():
    model = timm.create_model("pvt_v2_b0")
    found = measure_all(model, [torch.randn(2, 3, 64, 64)], which=["scores"])["scores"]
    assert set(found.kinds) == {"pooled", "self"}


@pytest.mark.parametrize(
    ("style", "says"),
    [
        ("talking heads", "softmax of what is no product of queries and keys"),
        ("einsum", "softmax of what is no product of queries and keys"),
        ("over queries", "over another dimension than the keys"),
        ("no values", "not multiplied with values"),
    ],
)
def test_what_is_not_understood_is_refused_by_the_name_of_its_class(style, says):
    with pytest.raises(UserError, match=f"0 is a Written, .*{says}.*supported is"):
        measure_all(nn.Sequential(Written(style)), [torch.randn(3, 5, 8)])


@pytest.mark.parametrize("fused", [False, True])
def test_channels_are_not_taken_for_tokens(fused):
    model = timm.models.Xcit(32, 8, embed_dim=16, depth=1, num_heads=2)
    model.blocks[0].attn.fused_attn = fused
    with pytest.raises(UserError, match=r"blocks\.0\.attn is a XCA, which attends between channels"):
        measure_all(model, [IMAGES])


def test_a_model_is_left_as_it_was():
    """Also the shortcut of nn.MultiheadAttention."""
    model = build(CASES["torchvision ViT"])
    with torch.no_grad():
        before = model(IMAGES)
        measure_all(model, [IMAGES])
        assert torch.equal(model(IMAGES), before)
    assert torch.backends.mha.get_fastpath_enabled()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
