"""`attnrate spectrum`: exact singular values of other people's models."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from attnrate import cli
from attnrate.core.errors import UserError
from attnrate.spectra.measure import measure
from attnrate.tool.spectrum import OUTS, spectrum
from tests.conftest import NOWHERE, ROOT

WORDS = "[PAD] [UNK] [CLS] a b c d e f g h".split()
LINES = ["a b c", "", "a b c d e f g h a b c d", "h g f", "x b a c d e f g h h a a", "c"]
SMALL = {"vocab_size": len(WORDS), "pad_token_id": 0}
BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
CONFIGS = {
    "bert": transformers.BertConfig(**SMALL, **BERT, max_position_embeddings=16),
    "gpt2": transformers.GPT2Config(
        **SMALL, n_embd=16, n_layer=2, n_head=2, n_positions=16, bos_token_id=2, eos_token_id=2
    ),
    "llama": transformers.LlamaConfig(**SMALL, **BERT | {"num_attention_heads": 4, "num_key_value_heads": 2}),
    "marian": transformers.MarianConfig(
        **SMALL,
        d_model=16,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        decoder_start_token_id=0,
        eos_token_id=2,
        max_position_embeddings=16,
    ),
}


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def draw(folder):
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(3):
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    return folder


@pytest.fixture
def pictures(tmp_path):
    return draw(tmp_path / "pictures")


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES))
    return path


def shaken(model: nn.Module) -> nn.Module:
    """Random weights and biases large enough for softmax to matter."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=generator)
    return model.eval()


def save(name: str, path) -> nn.Module:
    """A small model with random weights and its tokenizer, saved as save_pretrained does."""
    config = CONFIGS[name]
    kinds = {"bert": "BertForMaskedLM", "gpt2": "GPT2LMHeadModel", "llama": "LlamaModel", "marian": "MarianMTModel"}
    model = shaken(getattr(transformers, kinds[name])(config))
    if name == "marian":  # its positions are sinusoids and not saved
        for part in (model.model.encoder, model.model.decoder):
            part.embed_positions.weight.data = part.embed_positions.create_weight()
    model.save_pretrained(path)
    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]")
    tokenizer.save_pretrained(path)
    return model.base_model


def heads(x: torch.Tensor, count: int) -> torch.Tensor:
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def scores(name: str, model: nn.Module, ids: torch.Tensor) -> list[torch.Tensor]:
    """Scores of every layer from its own weights and its input: (1, h, τ, τ) each."""
    found = []

    def hook(module, inputs, named):
        x = inputs[0] if inputs else named["hidden_states"]
        if name == "bert":
            q, k, n = module.query(x), module.key(x), 2
        elif name == "gpt2":
            (q, k, _), n = (x @ module.c_attn.weight + module.c_attn.bias).split(16, -1), 2
        else:
            q, k, n = module.q_proj(x), module.k_proj(x), 4 if name == "llama" else 2
        q, k = heads(q, n), heads(k, 2)
        if name == "llama":
            q, k = apply_rotary_pos_emb(q, k, *named["position_embeddings"])
            k = k[:, [0, 0, 1, 1]]
        found.append(q.double() @ k.double().mT / q.shape[-1] ** 0.5)

    part = model.get_encoder() if name == "marian" else model
    kind = {"bert": "BertSelf", "gpt2": "GPT2", "llama": "Llama", "marian": "Marian"}[name]
    modules = [m for m in part.modules() if type(m).__name__ == f"{kind}Attention"]
    hooks = [m.register_forward_pre_hook(hook, with_kwargs=True) for m in modules]
    with torch.no_grad():
        part(ids)
    for h in hooks:
        h.remove()
    assert len(found) == len(modules) == 2
    return found


def table(rows, layer: int, value: str = "mean") -> np.ndarray:
    return rows[rows.layer == layer].pivot(index="head", columns="k", values=value).to_numpy()


@pytest.mark.parametrize("name", CONFIGS)
def test_texts_give_the_singular_values_of_scores_formed_in_full(name, tmp_path, lines):
    """Each line alone, so that padding would show; the k-th value counts the lines that have it."""
    model = save(name, tmp_path / "model")
    found = spectrum(str(tmp_path / "model"), tmp_path / "out", text=lines)
    ids = [torch.tensor([[WORDS.index(w) if w in WORDS else 1 for w in line.split()]]) for line in LINES if line]
    size = 4 if name == "llama" else 8  # m_h
    every = [scores(name, model, row) for row in ids]
    for layer in (1, 2):
        values = [torch.linalg.svdvals(s[layer - 1][0]).numpy()[:, :size] for s in every]  # (h, K)
        for k in range(size):
            those = np.stack([v[:, k] for v in values if v.shape[1] > k])
            for value, expected in (("mean", those.mean(0)), ("sd", those.std(0, ddof=1))):
                measured = table(found.spectra, layer, value)[:, k]
                assert np.allclose(measured, expected, rtol=0, atol=1e-5 * those.max())
            assert (table(found.spectra, layer, "n")[:, k] == len(those)).all()
    assert found.inputs == 5
    notes = json.loads((tmp_path / "out" / "provenance.json").read_text())["notes"]
    assert "fits and figures stop at k = 1, since the shortest input has no more tokens" in notes
    masked = any("masked" in note for note in found.notes)
    assert masked == (name != "bert")
    kinds = {"bert": ["self"] * 2, "marian": ["self", "self", "causal", "cross"]}
    assert found.kinds == kinds.get(name, ["causal"] * 2)


@pytest.mark.parametrize("options", [{}, {"qk_norm": True}, {"class_token": False, "global_pool": "avg"}])
def test_a_timm_vit_gives_the_singular_values_of_scores_formed_in_full(options):
    model = shaken(timm.create_model("test_vit", num_classes=0, img_size=64, **options))
    x = torch.randn(5, 3, 64, 64)
    found, exact = measure(model, [x[:3], x[3:]]), []

    def hook(module, inputs):
        q, k, _ = module.qkv(inputs[0]).unflatten(-1, (3, module.num_heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = module.q_norm(q), module.k_norm(k)
        exact.append(torch.linalg.svdvals(q.double() @ k.double().mT / q.shape[-1] ** 0.5)[..., : q.shape[-1]])

    for block in model.blocks:
        block.attn.register_forward_pre_hook(hook)
    with torch.no_grad():
        model(x)
    assert len(found.layers) == len(exact) == 6
    for layer, s in enumerate(exact, 1):
        assert np.allclose(table(found.spectra, layer), s.mean(0), rtol=0, atol=1e-5 * float(s.max()))
        energy = (s**2).cumsum(-1) / (s**2).sum(-1, keepdim=True)
        ranks = found.ranks[found.ranks.layer == layer]
        assert np.allclose(ranks.energy90, 1 + (energy < 0.9).sum(-1).double().mean(0))
    assert np.allclose(found.violins["first"], exact[0][:, 0], rtol=0, atol=1e-5 * float(exact[0].max()))
    assert np.allclose(found.violins["last"], exact[-1][:, 0], rtol=0, atol=1e-5 * float(exact[-1].max()))


def test_a_bias_a_pooling_and_a_mask_are_told(tmp_path):
    beit = shaken(
        timm.models.Beit(img_size=32, patch_size=8, embed_dim=16, depth=1, num_heads=2, use_rel_pos_bias=True)
    )
    (what,) = measure(beit, [torch.randn(2, 3, 32, 32)]).notes
    assert "bias" in what
    config = transformers.SiglipVisionConfig(**BERT, image_size=32, patch_size=8)
    found = measure(transformers.SiglipVisionModel(config), [torch.randn(2, 3, 32, 32)])
    assert found.kinds == ["self", "self", "cross"]
    assert [v for k, v in found.notes.items() if "different number" in k] == [["head.attention"]]


def test_broken_weights_and_no_attention_are_refused():
    model = timm.create_model("test_vit", img_size=32)
    model.blocks[2].attn.qkv.weight.data.fill_(torch.nan)
    with pytest.raises(UserError, match=r"blocks\.2\.attn: its queries or keys hold nan"):
        measure(model, [torch.randn(2, 3, 32, 32)])
    with pytest.raises(UserError, match="no attention that can be seen"):
        measure(timm.create_model("test_resnet"), [torch.randn(2, 3, 64, 64)])
    with pytest.raises(UserError, match="forward pass failed"):
        measure(timm.create_model("test_vit"), [torch.randn(2, 4, 32, 32)])


def test_the_command_writes_everything_and_the_same_bytes_again(tmp_path, pictures):
    weights = timm.create_model("test_vit", num_classes=7).state_dict()
    save_file(weights, "w.safetensors")
    args = ["spectrum", "test_vit", "--weights", "w.safetensors", "--images", str(pictures), "--out", "deep/out"]
    runs = []
    for _ in range(2):
        cli.main(args)  # the second run replaces the first
        assert {p.name for p in (tmp_path / "deep" / "out").iterdir()} == OUTS
        runs.append({p.name: p.read_bytes() for p in (tmp_path / "deep" / "out").iterdir()})
    assert runs[0] == runs[1]
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["out"]
    assert runs[0]["spectra.csv"].decode().splitlines()[0] == "spectrum,layer,head,k,mean,sd,n"
    assert len(runs[0]["spectra.csv"].decode().splitlines()) == 1 + 6 * 2 * (32 + 32 + 64)
    fits = json.loads(runs[0]["fits.json"])
    assert [(f["layer"], f["head"]) for f in fits[:12]] == [(layer, head) for layer in range(1, 7) for head in (1, 2)]
    assert all(f["slope"]["low"] < f["slope"]["slope"] < f["slope"]["high"] < 0 for f in fits)
    origin = json.loads(runs[0]["provenance.json"])
    assert origin["model"] == "test_vit" and origin["weights"]["source"] == "w.safetensors"
    assert origin["inputs"]["number"] == 3 and origin["versions"]["torch"] == torch.__version__.split("+")[0]
    other = spectrum("test_vit", "other", images=pictures, seed=1)
    elsewhere = json.loads((tmp_path / "other/provenance.json").read_text())
    assert elsewhere["weights"]["sha256"] != origin["weights"]["sha256"] and other.inputs == 3


def test_normalisations_divide_by_tokens_and_by_the_largest():
    plain, tokens, largest = (
        spectrum("test_vit", "out", random=2, normalisation=n).spectra for n in ("none", "tokens", "largest")
    )
    assert np.allclose(plain["mean"], 101 * tokens["mean"])  # 10 x 10 patches and a class token
    assert np.allclose(largest[largest.k == 1]["mean"], 1) and largest["mean"].max() <= 1


def test_the_module_runs_as_a_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "attnrate", "spectrum", "test_vit", "--random", "2", "--out", "out"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "src"), "https_proxy": NOWHERE},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and not done.stderr and Path(done.stdout.strip()) == Path("out/summary.md")
    assert "blocks.5.attn" in (tmp_path / "out" / "summary.md").read_text()


def test_texts_of_many_lengths_fit(tmp_path):
    """Each longer text once doubled the table of values: 60 of them filled all memory."""
    save("gpt2", tmp_path / "gpt2")
    (tmp_path / "lines.txt").write_text("\n".join(" ".join("abcdefgh"[i % 8] for i in range(n)) for n in range(2, 16)))
    found = spectrum("gpt2", tmp_path / "out", text=tmp_path / "lines.txt", which=["softmax"])
    assert found.violins["first"].shape == (14, 15) and len(found.violins["first"].base) <= 2 * 14
