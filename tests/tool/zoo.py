"""Tiny models by configuration, random weights, and the scores of each by a route of its own.

The route is a pass of the model as it is, with hooks on the modules that make queries and keys: their outputs, cut into
heads as the model does, with rotary positions by the model's own function, give q kᵀ · scale in full, in doubles.
"""

from collections.abc import Callable
from dataclasses import dataclass

import timm
import torch
import torchvision
import transformers as tf
from timm.models import swin_transformer as swin
from torch import Tensor, nn
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

TEXT = {"vocab_size": 50, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 2}
BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
SHORT = TEXT | BERT | {"max_position_embeddings": 32}
SHARED = SHORT | {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
PAIR = {f"{side}_{key}": n for side in ("encoder", "decoder") for key, n in (("attention_heads", 2), ("ffn_dim", 16))}
PAIR |= TEXT | {"d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "decoder_start_token_id": 0}
DEBERTA = SHORT | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
TIMM = {"img_size": 32, "patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 2, "num_classes": 3}

IDS = torch.randint(3, 50, (3, 10), generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SOUNDS = torch.randn(3, 8, 40, generator=torch.Generator().manual_seed(0))
BOTH = {"input_ids": IDS, "decoder_input_ids": IDS[:, :9]}


@dataclass(frozen=True)
class Case:
    make: Callable[[], nn.Module]
    inputs: dict | Tensor
    parts: Callable[[str, Tensor], dict[str, Tensor]]  # (a module's name, its output) → q, k or both, (N, h, τ, D)
    layers: int
    scale: float | None = None  # 1/√D
    kinds: set[str] = frozenset({"self"})
    note: str = ""  # a word of the only notes beside those on masks, numbers of tokens and windows
    attentions: bool = False  # whether the model tells its attention after the softmax


def heads(x: Tensor, n: int) -> Tensor:
    return x.unflatten(-1, (n, -1)).transpose(-3, -2)


def apart(q: str, k: str, n: int = 2, shared: int | None = None):
    """Two modules, by the end of their names."""

    def parts(name: str, out: Tensor) -> dict[str, Tensor]:
        end = name.rpartition(".")[2]
        return {"q": heads(out, n)} if end == q else {"k": heads(out, shared or n)} if end == k else {}

    return parts


def stacked(end: str, order: str = "chd"):
    """One module for queries, keys and values: all of one after the other, or ("hcd") head by head."""

    def parts(name: str, out: Tensor) -> dict[str, Tensor]:
        if name.rpartition(".")[2] != end:
            return {}
        if order == "chd":
            return {key: heads(part, 2) for key, part in zip("qk", out.chunk(3, -1)[:2], strict=True)}
        return {key: out.unflatten(-1, (2, 3, -1))[..., i, :].transpose(1, 2) for i, key in enumerate("qk")}

    return parts


def none(name: str, out: Tensor) -> dict[str, Tensor]:
    return {}


BERT_LIKE, PROJ = apart("query", "key"), apart("q_proj", "k_proj")
GROUPED = apart("q_proj", "k_proj", 4, 2)
CAUSAL, TWO = {"causal"}, {"self", "causal", "cross"}


def encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 16, batch_first=True), 2, enable_nested_tensor=False)


def clip() -> nn.Module:
    text, vision = SHORT, BERT | {"image_size": 32, "patch_size": 8}
    return tf.CLIPModel(tf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))


CASES = {
    "timm ViT": Case(lambda: timm.models.VisionTransformer(**TIMM), IMAGES, stacked("qkv"), 2),
    "timm DeiT": Case(lambda: timm.models.deit.VisionTransformerDistilled(**TIMM), IMAGES, stacked("qkv"), 2),
    "timm BEiT": Case(lambda: timm.models.Beit(**TIMM, use_rel_pos_bias=True), IMAGES, none, 2, note="bias"),
    "timm EVA": Case(lambda: timm.models.Eva(**TIMM), IMAGES, none, 2),
    "timm Swin": Case(
        lambda: swin.SwinTransformer(32, 2, embed_dim=16, depths=(2,), num_heads=(2,), window_size=4),
        IMAGES,
        stacked("qkv"),
        2,
        kinds={"self, windows"},
        note="bias",
    ),
    "torchvision ViT": Case(lambda: torchvision.models.VisionTransformer(32, 8, 2, 2, 16, 16), IMAGES, none, 2),
    "torchvision Swin": Case(
        lambda: torchvision.models.SwinTransformer([2, 2], 16, [2], [2], [4, 4]),
        IMAGES,
        none,
        2,
        kinds={"self, windows"},
        note="bias",
    ),
    "nn.TransformerEncoder": Case(encoder, torch.randn(3, 10, 16), none, 2),
    "BERT": Case(lambda: tf.BertModel(tf.BertConfig(**SHORT)), IDS, BERT_LIKE, 2, attentions=True),
    "RoBERTa": Case(lambda: tf.RobertaModel(tf.RobertaConfig(**SHORT)), IDS, BERT_LIKE, 2, attentions=True),
    "DistilBERT": Case(
        lambda: tf.DistilBertModel(tf.DistilBertConfig(**TEXT, dim=16, n_layers=2, n_heads=2, hidden_dim=16)),
        IDS,
        apart("q_lin", "k_lin"),
        2,
        attentions=True,
    ),
    "ALBERT": Case(lambda: tf.AlbertModel(tf.AlbertConfig(**SHORT, embedding_size=8)), IDS, BERT_LIKE, 2),
    "DeBERTa": Case(lambda: tf.DebertaModel(tf.DebertaConfig(**DEBERTA)), IDS, none, 2, scale=24**-0.5, note="bias"),
    "DeBERTa v2": Case(
        lambda: tf.DebertaV2Model(tf.DebertaV2Config(**DEBERTA)),
        IDS,
        apart("query_proj", "key_proj"),
        2,
        scale=24**-0.5,
        note="bias",
    ),
    "GPT-2": Case(
        lambda: tf.GPT2Model(tf.GPT2Config(**TEXT, n_embd=16, n_layer=2, n_head=2, n_positions=32)),
        IDS,
        stacked("c_attn"),
        2,
        kinds=CAUSAL,
        attentions=True,
    ),
    "OPT": Case(
        lambda: tf.OPTModel(tf.OPTConfig(**SHORT, ffn_dim=16, word_embed_proj_dim=16)), IDS, PROJ, 2, kinds=CAUSAL
    ),
    "BLOOM": Case(
        lambda: tf.BloomModel(tf.BloomConfig(**TEXT, hidden_size=16, n_layer=2, n_head=2)),
        IDS,
        stacked("query_key_value", "hcd"),
        2,
        kinds=CAUSAL,
        note="bias",
    ),
    "Llama": Case(lambda: tf.LlamaModel(tf.LlamaConfig(**SHARED)), IDS, GROUPED, 2, kinds=CAUSAL, attentions=True),
    "Mistral": Case(lambda: tf.MistralModel(tf.MistralConfig(**SHARED)), IDS, GROUPED, 2, kinds=CAUSAL),
    "Qwen 2": Case(lambda: tf.Qwen2Model(tf.Qwen2Config(**SHARED)), IDS, GROUPED, 2, kinds=CAUSAL),
    "Gemma 2": Case(
        lambda: tf.Gemma2Model(tf.Gemma2Config(**SHARED, query_pre_attn_scalar=5)),
        IDS,
        GROUPED,
        2,
        scale=5**-0.5,
        kinds=CAUSAL,
        note="tanh",
        attentions=True,
    ),
    "T5": Case(
        lambda: tf.T5Model(tf.T5Config(**TEXT, d_model=16, d_kv=8, num_heads=2, num_layers=2, d_ff=16)),
        BOTH,
        apart("q", "k"),
        6,
        scale=1.0,
        kinds=TWO,
        note="bias",
    ),
    "BART": Case(lambda: tf.BartModel(tf.BartConfig(**PAIR)), BOTH, PROJ, 4, kinds=TWO),
    "Marian": Case(lambda: tf.MarianModel(tf.MarianConfig(**PAIR)), BOTH, PROJ, 4, kinds=TWO),
    "Whisper": Case(
        lambda: tf.WhisperModel(tf.WhisperConfig(**PAIR, num_mel_bins=8, max_source_positions=20)),
        {"input_features": SOUNDS, "decoder_input_ids": IDS},
        PROJ,
        4,
        kinds=TWO,
    ),
    "CLIP": Case(clip, {"input_ids": IDS, "pixel_values": IMAGES}, PROJ, 4, kinds={"self", "causal"}),
}


@torch.no_grad()
def build(case: Case) -> nn.Module:
    """Random weights and biases large enough for softmax to matter."""
    torch.manual_seed(0)
    model = case.make().eval()
    for weight in model.parameters():
        weight += 0.3 * torch.randn(weight.shape)
    if hasattr(model, "config"):
        model.config.use_cache = False
    return model


def run(model: nn.Module, inputs: dict | Tensor, **more):
    return model(**inputs, **more) if isinstance(inputs, dict) else model(inputs, **more)


def by_hand(module: nn.Module, x: Tensor) -> tuple[Tensor, Tensor] | None:
    """Queries and keys of modules that keep them to themselves, from their weights."""
    kind = type(module).__name__
    if kind == "MultiheadAttention":
        out = x @ module.in_proj_weight.T + module.in_proj_bias
    elif kind == "DisentangledSelfAttention" and hasattr(module, "in_proj"):  # DeBERTa: q, k, v head by head
        out = (x @ module.in_proj.weight.T).unflatten(-1, (2, 3, -1)).transpose(-3, -2).flatten(-3)
        out[..., :16] += module.q_bias
    elif kind == "ShiftedWindowAttention":  # torchvision's: windows of 4 x 4, shifted
        x = torch.roll(x, [-s for s in module.shift_size], (1, 2))
        x = x.unflatten(2, (-1, 4)).unflatten(1, (-1, 4)).transpose(2, 3).flatten(3, 4).flatten(0, 2)
        out = x @ module.qkv.weight.T + module.qkv.bias
    elif kind in ("Attention", "EvaAttention") and hasattr(module, "q_bias"):  # timm's BEiT and EVA: keys have no bias
        out = x @ module.qkv.weight.T
        if module.q_bias is not None:
            out[..., :16] += module.q_bias
    else:
        return None
    return tuple(heads(part, 2) for part in out.chunk(3, -1)[:2])


@torch.no_grad()
def scores(case: Case, model: nn.Module) -> list[Tensor]:
    """q kᵀ · scale of every attention, in order: (N, h, τ, τ')."""
    found, rotary, hooks = [], [], []

    def leave(name: str):
        def hook(module, given, out):
            if isinstance(out, Tensor):
                for key, part in case.parts(name, out).items():
                    found.append({}) if key == "q" else None
                    found[-1][key] = part
            if isinstance(out, tuple) and "rotary" in name:
                rotary.append(out)

        return hook

    def enter(module, given, named):
        x = given[0] if given else named.get("hidden_states", named.get("x"))
        if case.parts is none and (pair := by_hand(module, x)):
            found.append({"q": pair[0], "k": pair[1]})

    for name, module in model.named_modules():
        hooks.append(module.register_forward_hook(leave(name)))
        hooks.append(module.register_forward_pre_hook(enter, with_kwargs=True))
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    run(model, case.inputs)
    torch.backends.mha.set_fastpath_enabled(fast)
    for hook in hooks:
        hook.remove()
    result = []
    for pair in found:
        q, k = pair["q"], pair["k"]
        if rotary:
            q, k = apply_rotary_pos_emb(q, k, *rotary[0])
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        result.append(q.double() @ k.double().mT * (q.shape[-1] ** -0.5 if case.scale is None else case.scale))
    return result
