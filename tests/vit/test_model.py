"""The ViT with a free head size: timm's model where it should be, cut by the best bilinear form elsewhere."""

import pytest
import timm
import torch
from safetensors.torch import save_file
from timm.layers import resample_abs_pos_embed
from timm.models.vision_transformer import VisionTransformer

from attnrate.core.errors import UserError
from attnrate.vit import model as vit
from attnrate.vit.permute import permute_patches
from attnrate.vit.view import View

SMALL = {"image_size": 32, "patch": 8, "width": 48, "depth": 3, "heads": 4, "mlp_ratio": 2.0}  # D = 12
BASE = {"image_size": 224, "patch": 16, "width": 768, "depth": 12, "heads": 12, "mlp_ratio": 4.0}


@torch.no_grad()
def shake(model, seed=0, size=1.0):
    """Random weights with biases, so that each of them counts."""
    g = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p.add_(size * torch.randn(p.shape, generator=g) / p.shape[-1] ** 0.5)
    return model.eval()


def timm_twin(shape, seed=0, size=1.0):
    names = {"img_size": "image_size", "patch_size": "patch", "embed_dim": "width", "num_heads": "heads"}
    names |= {name: name for name in ("depth", "mlp_ratio")}
    twin = VisionTransformer(num_classes=10, **{theirs: shape[ours] for theirs, ours in names.items()})
    return shake(twin, seed, size)


@torch.no_grad()
@pytest.mark.parametrize("reading", vit.READINGS)
def test_full_head_size_is_timms_model(reading):
    twin = timm_twin(SMALL)
    model = vit.build(reading, 12, **SMALL).eval()
    vit.start_from(model, twin.state_dict())
    x = torch.randn(3, 3, 32, 32)
    assert torch.allclose(model(x), twin(x), atol=1e-5)


@torch.no_grad()
def test_layer_scale_and_positions_of_another_size_are_taken_over(tmp_path):
    """As DINOv2 has them: the model of 32² is timm's own, resized from 48²."""
    sizes = {"patch_size": 8, "embed_dim": 48, "depth": 3, "num_heads": 4, "mlp_ratio": 2.0, "num_classes": 10}
    larger = shake(VisionTransformer(img_size=48, init_values=1.0, **sizes))
    twin = VisionTransformer(img_size=32, init_values=1.0, **sizes).eval()
    path, weights = tmp_path / "w.safetensors", larger.state_dict()
    save_file(weights, path)
    positions = resample_abs_pos_embed(weights["pos_embed"], [4, 4], num_prefix_tokens=1)
    twin.load_state_dict(weights | {"pos_embed": positions})
    model, x = vit.make("qk", 12, 0, "dinov2-saliency", path, **SMALL).eval(), torch.randn(3, 3, 32, 32)
    assert torch.allclose(model(x), twin(x), atol=1e-5)
    assert not torch.allclose(vit.make("qk", 2, 0, "toy", path, **SMALL).eval()(x), twin(x), atol=1e-2), "heads are cut"


def test_pixels_are_standardised_as_the_start_was_trained():
    white = torch.full((1, 32, 32, 3), 255, dtype=torch.uint8)
    for start, red in (("scratch", 0.5086 / 0.247), ("vit_x", 1.0), ("dinov2-saliency", 0.515 / 0.229)):
        assert View(14, start)(white)[0, 0, 0, 0].item() == pytest.approx(red, rel=1e-5)


@pytest.mark.slow
@torch.no_grad()
def test_full_size_takes_the_weights_of_vit_b16():
    twin = shake(timm.create_model("vit_base_patch16_224.augreg_in21k", pretrained=False, num_classes=10), size=0.3)
    model = vit.build("qk", 64, **BASE).eval()
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in twin.parameters()) > 85e6
    vit.start_from(model, twin.state_dict())
    x = torch.randn(2, 3, 224, 224)
    assert torch.allclose(model(x), twin(x), atol=1e-5)


def test_a_timm_start_has_the_seeds_own_classifier(monkeypatch):
    twin = timm_twin(SMALL)
    body = {k: v for k, v in twin.state_dict().items() if not k.startswith("head.")}
    monkeypatch.setattr(vit, "pretrained", lambda *_: body)
    models = []
    for seed in (1, 1, 2):
        torch.rand(seed)  # whatever was drawn before
        models.append(vit.make("qk", 12, seed, "vit_x", **SMALL))
    one, same, other = (m.head.weight for m in models)
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert all(torch.equal(m.state_dict()[k], body[k]) for m in models for k in body)


@pytest.mark.parametrize(
    ("reading", "width", "qkv", "proj"),
    [("qk", 48, 2 * 4 * 3 + 48, 48), ("head", 48, 3 * 4 * 3, 12), ("width", 12, 36, 12)],
)
def test_readings_of_the_head_size(reading, width, qkv, proj):
    attn = vit.build(reading, 3, **SMALL).blocks[0].attn
    assert attn.qkv.weight.shape == (qkv, width) and attn.proj.weight.shape == (width, proj)
    assert attn.scale == (width // 4) ** -0.5


@torch.no_grad()
def test_attention_is_softmax_of_scores_times_values():
    model = shake(vit.build("qk", 3, **SMALL))
    attn, x = model.blocks[0].attn, torch.randn(2, 17, 48)
    q, k, v = attn.split_heads(x)
    out = ((q @ k.mT) * attn.scale).softmax(-1) @ v
    assert torch.allclose(attn(x), attn.proj(out.transpose(1, 2).reshape(2, 17, 48)), atol=1e-5)


@torch.no_grad()
def test_cutting_heads_keeps_the_best_bilinear_form():
    g = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 12, 49, generator=g, dtype=torch.float64)
    u, s, vt = torch.linalg.svd(q.mT @ k)
    for mh in (1, 5, 12):
        a, b = vit.truncate_head(q, k, mh)
        assert a.shape == b.shape == (mh, 49)
        assert torch.allclose(a.mT @ b, (u[:, :mh] * s[:mh]) @ vt[:mh], atol=1e-10)


@torch.no_grad()
def test_heads_of_low_rank_lose_nothing_when_cut():
    """Rank 5 of W_Q, with biases, survives a cut to m_h = 5 and not one to 2; the scale stays 1/√D."""
    twin = timm_twin(SMALL)
    for block in twin.blocks:
        w, b = block.attn.qkv.weight, block.attn.qkv.bias
        for head in range(4):
            w[head * 12 + 5 : (head + 1) * 12] = 0
            b[head * 12 + 5 : (head + 1) * 12] = 0
    x = torch.randn(3, 3, 32, 32)
    for mh, same in ((5, True), (2, False)):
        model = vit.build("qk", mh, **SMALL).eval()
        vit.start_from(model, twin.state_dict())
        assert torch.allclose(model(x), twin(x), atol=1e-4) == same


def test_a_seed_decides_the_weights_and_leaves_other_randomness_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    a, b, c = (vit.build("qk", 3, seed=s, **SMALL).state_dict() for s in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a[k], b[k]) for k in a) and any(not torch.equal(a[k], c[k]) for k in a)


def test_a_timm_start_of_another_size_is_one_line(monkeypatch):
    monkeypatch.setattr(vit, "pretrained", lambda *_: timm_twin(SMALL | {"width": 24}).state_dict())
    with pytest.raises(UserError, match=r"^vit_x: is of another size than vit\.model's") as e:
        vit.make("qk", 3, 0, "vit_x", **SMALL)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("revision", ["", "@0123abc"])
def test_a_revision_of_the_hub_is_asked_for_if_it_is_named(monkeypatch, revision):
    name, asked = "vit_tiny_patch16_224", []

    def create(model, **options):
        asked.append((model, options.get("pretrained_cfg_overlay")))
        return timm_twin(SMALL)

    monkeypatch.setattr(vit.timm, "create_model", create)
    vit.pretrained(name + revision, 32)
    assert asked == [(name, {"hf_hub_id": f"timm/{name}{revision}"} if revision else None)]


def test_timm_asks_the_hub_for_that_revision_and_a_hub_that_fails_is_one_line(monkeypatch):
    asked = []

    def download(repo_id, filename, revision, **_):
        asked.append((repo_id, revision))
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr("timm.models._hub.hf_hub_download", download)
    name = "vit_tiny_patch16_224.augreg_in21k"
    with pytest.raises(UserError, match=rf"^{name}@0123abc: timm could not load its weights \(ConnectionError") as e:
        vit.pretrained(f"{name}@0123abc", 224)
    assert {*asked} == {(f"timm/{name}", "0123abc")} and "\n" not in str(e.value)


@torch.no_grad()
def test_saved_weights_come_back_in_the_model_of_their_sizes(tmp_path):
    path, model = tmp_path / "w.safetensors", shake(vit.build("qk", 3, **SMALL))
    save_file(model.state_dict(), path)
    x = torch.randn(2, 3, 32, 32)
    again = vit.load(path, "qk", 3, **SMALL)
    assert torch.equal(again(x), model(x)) and not again.training
    with pytest.raises(UserError, match=r"w\.safetensors: cannot be read"):
        vit.load(path, "qk", 4, **SMALL)


@pytest.mark.parametrize("mh", [3, 12])
def test_the_fused_kernel_of_gpus_computes_the_same(mh, monkeypatch):
    model = shake(vit.build("qk", mh, **SMALL))
    x = torch.randn(2, 3, 32, 32)
    grads, outputs = [], []
    for cpu in (True, False):
        monkeypatch.setattr(torch.Tensor, "is_cpu", cpu)
        model.zero_grad()
        outputs.append(model(x))
        outputs[-1].square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    assert torch.allclose(*outputs, atol=1e-5)
    assert all(torch.allclose(a, b, rtol=1e-3, atol=1e-4 * a.abs().max()) for a, b in zip(*grads, strict=True))


@torch.no_grad()
def test_the_mean_of_the_patches_knows_no_order_but_that_of_the_positions():
    model = shake(vit.build("qk", 3, **SMALL, pool="avg"))
    assert model.pos_embed.shape == (1, 16, 48), "no class token"
    x = torch.randn(2, 3, 32, 32)
    y = permute_patches(x, torch.randperm(16, generator=torch.Generator().manual_seed(0)))
    assert not torch.allclose(model(x), model(y), atol=1e-2)
    model.pos_embed.zero_()
    assert torch.allclose(model(x), model(y), atol=1e-5)


@pytest.mark.parametrize("std", [0.02, 0.2])
def test_position_encodings_start_as_wide_as_asked(std):
    assert vit.build("qk", 3, **SMALL, position_std=std).pos_embed.std().item() == pytest.approx(std, rel=0.1)
