"""What a model is told, on models whose answer is known."""

import io

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

from attnrate.core.errors import UserError
from attnrate.cut import export
from attnrate.cut.advice import advise
from attnrate.cut.study import curves, default_sizes
from attnrate.spectra.measure import measure
from attnrate.vit import model as vit
from tests.tool.zoo import CASES, IDS, build

SIZES = [1, 2, 3, 4, 8, 12, 14, 16]


@torch.no_grad()
def encoder(rank: int, noise: float) -> nn.Module:
    """Two layers of two heads of size 16, whose W_Q and W_K have a rank."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    for layer in model.layers:
        for part in layer.self_attn.in_proj_weight[:64].split(16):  # a head's queries or keys
            part.copy_(torch.randn(16, rank) @ torch.randn(rank, 32) * rank**-0.5 / 2 + noise * torch.randn(16, 32))
        layer.self_attn.in_proj_bias.zero_()
    return model.eval()


def inputs(n: int = 8) -> list[torch.Tensor]:
    return list(torch.randn(n, 20, 32, generator=torch.Generator().manual_seed(1)).split(4))


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_heads_of_rank_3_are_told_3(noise):
    found = advise(encoder(3, noise), inputs(), sizes=SIZES)
    assert set(found.least.method) == {"scores", "weights", "data"}
    assert (found.least.mh == 3).all() and found.least.sure.all()
    together = found.errors[found.errors.layers == "advised"]
    assert (together.change <= 0.01).all() and found.advised().sizes == {0: 3, 1: 3}
    at_three = found.errors[found.errors.mh == 3]
    assert (at_three.scores < (1e-5 if not noise else 2e-2)).all()


def test_full_heads_are_told_about_their_size():
    found = advise(encoder(16, 0.0), inputs(), sizes=SIZES)
    assert (found.least[found.least.method != "scores"].mh >= 12).all()
    assert (found.errors[found.errors.mh == 16].change == 0).all()


def test_data_beats_weights_and_the_oracle_beats_both():
    model = encoder(16, 0.0)
    skewed = [x * torch.logspace(1, -1, 32) for x in inputs()]
    table = advise(model, skewed, sizes=[2, 4, 8]).errors.query("layers == 'all' and mh < 16")
    scores = table.pivot(index="mh", columns="method", values="scores")
    assert (scores.data < 0.9 * scores.weights).all() and (scores.scores <= scores.data).all()


def test_each_setting_costs_one_forward_pass(monkeypatch):
    model, count, bars = encoder(16, 0.0), [], []
    model.register_forward_hook(lambda *_: count.append(1))
    monkeypatch.setattr(
        "attnrate.cut.advice.tqdm", lambda total, **_: bars.append(tqdm(total=total, file=io.StringIO())) or bars[0]
    )
    found = advise(model, inputs(), sizes=[2, 4])
    settings = 3 * 3 * (1 + 2)  # methods, sizes with D, all layers and each
    assert len(found.errors) == settings + 3
    assert bars[0].n == bars[0].total == 2 * (settings + 3)
    # two batches: a scan, the full model beside all settings, and once more beside the advised; one for the weights
    assert len(count) == 2 * (1 + 1 + settings + 1 + 3) + 1


@torch.no_grad()
def test_what_is_measured_is_what_smaller_weights_do(tmp_path):
    """The exported file in a fresh model gives the loss of the table; a reader with room for m_h loads it as it is."""
    sizes = {"image_size": 32, "patch": 8, "width": 32, "depth": 2, "heads": 2, "mlp_ratio": 2.0}
    torch.manual_seed(0)
    model = vit.build("qk", 16, **sizes, position_std=1.0).eval()
    for block in model.blocks:
        block.attn.qkv.weight *= 4
    x, y = torch.randn(12, 3, 32, 32), torch.randint(10, (12,))
    found = advise(model, [(x[:6], y[:6]), (x[6:], y[6:])], sizes=[5], tolerance=1e9)  # anything goes: 5 is advised
    state, kept = export.smaller(model, found)
    assert state["blocks.0.attn.qkv.weight"].shape == (2 * 5 * 2 + 32, 32)
    export.save(tmp_path / "cut.safetensors", state, kept)
    again = export.restore(vit.build("qk", 16, **sizes), tmp_path / "cut.safetensors").eval()
    small = vit.build("qk", 5, **sizes).eval()
    small.load_state_dict(state)
    row = found.errors.query("method == 'data' and layers == 'all' and mh == 5").iloc[0]
    for other in (again, small):
        assert F.cross_entropy(other(x), y).item() == pytest.approx(row.loss, rel=1e-4)
        assert (other(x).argmax(-1) == y).float().mean().item() == pytest.approx(row.accuracy)
    assert row.loss != pytest.approx(F.cross_entropy(model(x), y).item(), rel=1e-3)
    saved = found.savings[0]
    assert saved["parameters"] == {"of": 2 * 2 * 32 * 33, "saved": 2 * 2 * 2 * 11 * 33}
    assert saved["flops"]["saved"] == 2 * 2 * 11 * 2 * (17 * 17 + 2 * 17 * 32)
    assert saved["key_cache"] == {"of": 0, "saved": 0}


@torch.no_grad()
def test_a_language_models_loss_is_its_own(tmp_path):
    torch.manual_seed(0)
    config = CASES["GPT-2"].make().config
    model = transformers.GPT2LMHeadModel(config).eval()
    for weight in model.parameters():
        weight += 0.2 * torch.randn(weight.shape)
    target = torch.cat([IDS[:, 1:], torch.full((3, 1), -100)], 1)
    found = advise(model, [({"input_ids": IDS}, target)], sizes=[2])
    row = found.errors.query("layers == 'all' and mh == 8").iloc[0]
    assert row.loss == pytest.approx(model(IDS, labels=IDS).loss.item(), rel=1e-5)
    assert found.savings[0]["key_cache"]["of"] == 2 * 2 * 8 * 4  # layers, heads, size, bytes
    # GPT-2's weights stand the other way round, and its embedding is tied
    state, kept = export.smaller(model, found)
    export.save(tmp_path / "x", state, kept)
    again = export.restore(transformers.GPT2LMHeadModel(config).eval(), tmp_path / "x")
    wanted = found.study.outputs({"input_ids": IDS}, found.advised())
    assert torch.allclose(again(IDS).logits, wanted, atol=1e-4 * float(wanted.abs().max()))


@pytest.mark.parametrize("name", ["Llama", "T5", "timm Swin", "torchvision ViT", "BLOOM"])
def test_any_attention_can_be_cut(name):
    """At its own size nothing changes, and rotary positions leave no cut by weights."""
    case = CASES[name]
    found = advise(build(case), [case.inputs], sizes=[2])
    full, cut = (found.errors[found.errors.mh == m] for m in (8, 2))
    assert (full.change == 0).all() and (cut.change > 0).all() and (cut.outputs > 0).all()
    assert ("weights" in set(found.errors.method)) == (name != "Llama")
    if name == "Llama":
        assert any("rotary" in note for note in found.notes)
        with pytest.raises(UserError, match="not exported: queries or keys are more than a linear layer"):
            export.smaller(build(case), found)


def test_the_tail_sum_is_that_of_the_mean_spectrum():
    model = encoder(16, 0.0)
    found, spectra = advise(model, inputs(), sizes=[4]), measure(model, inputs()).spectra
    values = spectra[spectra.layer == 2].pivot(index="head", columns="k", values="mean").to_numpy()
    share = (values[:, 4:] ** 2).sum(1) / (values**2).sum(1)
    row = found.tails.query("layers == '2' and mh == 4")
    assert row["tail"].item() == pytest.approx(np.mean(share), rel=1e-4)


def test_curves_for_a_stage_have_all_layers_only():
    table = curves(encoder(3, 0.0), inputs(), [1, 3])
    assert list(zip(table.method, table.mh, strict=True)) == [("scores", 1), ("scores", 3), ("data", 1), ("data", 3)]
    assert (table[table.mh == 3].change < 1e-3).all() and set(table.layers) == {"all"}


def test_sizes():
    assert default_sizes(64) == [1, 2, 3, 6, 11, 20, 35, 64] and default_sizes(1) == [1]
    assert default_sizes(16) == [1, 2, 3, 4, 5, 7, 11, 16] and default_sizes(6) == [1, 2, 3, 4, 5, 6]
    with pytest.raises(UserError, match="nothing to try: heads have a size of 16"):
        advise(encoder(3, 0.0), inputs(), sizes=[16])
    with pytest.raises(UserError, match="between 1 and the largest head, 16"):
        advise(encoder(3, 0.0), inputs(), sizes=[3, 17])
    with pytest.raises(UserError, match="no attention that can be seen"):
        advise(nn.Linear(32, 3), inputs())


class Classifier(nn.Module):
    """Means over tokens of an encoder, and a linear layer, whose weights have a size."""

    def __init__(self, size: float):
        super().__init__()
        self.encoder, self.head = encoder(16, 0.0), nn.Linear(32, 5)
        nn.init.normal_(self.head.weight, std=size)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


def test_batches_of_a_data_loader_and_a_model_in_training():
    """Lists of inputs alone or with labels; the user's model goes on training afterwards, layer by layer as before."""
    x, model = torch.cat(inputs()), Classifier(1.0)
    model.train()
    model.encoder.layers[1].eval()
    with torch.no_grad():
        y = model.eval()(x).argmax(-1)
    model.train().encoder.layers[1].eval()
    wanted = advise(model, [x[:4], x[4:]], sizes=[4], kind="features").errors
    given = DataLoader(TensorDataset(x), batch_size=4)
    assert advise(model, given, sizes=[4], kind="features").errors.equals(wanted)
    found = advise(model, DataLoader(TensorDataset(x, y), batch_size=4), sizes=[4])
    assert found.scan.kind == "classes" and found.errors[found.errors.mh == 16].accuracy.eq(1).all()
    labelled = DataLoader(TensorDataset(x, y), batch_size=4)
    assert measure(model, labelled).ranks.equals(measure(model, given).ranks)
    assert model.training and model.encoder.layers[0].dropout.training and not model.encoder.layers[1].training
    for once in (iter(inputs()), (x for x in inputs())):
        with pytest.raises(UserError, match="batches are read several times: give a list, or a function"):
            advise(model, once)


def test_a_loss_that_hardly_sees_attention_gives_no_advice():
    """What differs by rounding, or by a head of tiny weights beside its bias, is no reason to cut all heads to 1."""
    model, x = Classifier(1e-7), torch.cat(inputs())
    model.head.bias.data.normal_()
    found = advise(model, [x], sizes=[1], kind="divergence")
    assert found.errors.loss.nunique() > 1 and "hardly changes" in found.blind
    assert not advise(Classifier(1.0), [x], sizes=[1], kind="divergence").blind
    # heads of rank 1 are told 1, which is no blindness
    assert not advise(encoder(1, 0.0), inputs(), sizes=[1, 2]).blind


def test_labels_that_are_no_classes_of_the_model():
    model, x = Classifier(1.0), torch.cat(inputs())
    with torch.no_grad():
        y = model(x).argmax(-1)
    assert not advise(model, [(x, y)], sizes=[2]).blind
    assert "are these its classes?" in advise(model, [(x, (y + 1) % 5)], sizes=[2]).blind
    mistakes = {"labels 0 to 7: the model has classes 0 to 4": torch.arange(8)}
    mistakes["labels -1 to 0: the model has classes"] = -(torch.arange(8) % 2)
    mistakes["needs labels that are whole numbers"] = torch.rand(8)
    mistakes[r"labels of shape \(8, 20\) are not for outputs of shape \(8, 5\)"] = torch.zeros(8, 20).long()
    for says, labels in mistakes.items():
        with pytest.raises(UserError, match=says):
            advise(model, [(x, labels)], sizes=[2])
    with pytest.raises(UserError, match=r"labels of shape \(8,\) are not for outputs of shape \(8, 20, 32\)"):
        advise(encoder(3, 0.0), [(x, y)], sizes=[2])
