"""The Vision Transformer of section 5.2: timm's, with attention heads of a free size m_h.

Three readings of "the size of each attention head" (W = width, h = heads, D = W / h of the original model):
    qk      queries and keys have size m_h, values keep D: the m_h of eq. (5)
    head    queries, keys and values have size m_h
    width   the whole model shrinks to W = h m_h, as in the authors' working files
Scores are q·k / √D in all of them. At m_h = D each is timm's model and takes its weights.
"""

from collections.abc import Mapping
from pathlib import Path

import timm
import torch
import torch.nn.functional as F
from timm.layers import resample_abs_pos_embed
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from attnrate.core import files
from attnrate.core.errors import UserError

READINGS = ("qk", "head", "width")


class Attention(nn.Module):
    """Self-attention with queries and keys of size `qk` and values of size `v`, in timm's layout of weights."""

    qk: int
    v: int

    def __init__(self, dim: int, num_heads: int, qkv_bias: bool = True, proj_bias: bool = True, **_):
        super().__init__()
        self.heads, self.scale = num_heads, (dim // num_heads) ** -0.5
        self.sizes = [num_heads * self.qk, num_heads * self.qk, num_heads * self.v]
        self.qkv = nn.Linear(dim, sum(self.sizes), bias=qkv_bias)  # rows: q of head 1 … h, k of head 1 … h, v likewise
        self.proj = nn.Linear(num_heads * self.v, dim, bias=proj_bias)

    def split_heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, τ, W) → q, k (B, h, τ, m_h) and v (B, h, τ, v)."""
        parts = self.qkv(x).split(self.sizes, -1)
        return tuple(p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts)

    def forward(self, x: Tensor, **_) -> Tensor:  # (B, τ, W) → (B, τ, W)
        q, k, v = self.split_heads(x)
        if q.is_cpu:  # at these lengths no slower than the fused kernel, and a small m_h stays small
            out = (q * self.scale @ k.mT).softmax(-1) @ v  # (B, h, τ, v)
        else:  # the fused kernels want one size; zeros leave q·k as it is
            q, k = (F.pad(p, (0, self.v - self.qk)) for p in (q, k))
            out = F.scaled_dot_product_attention(q, k, v, scale=self.scale)
        return self.proj(out.transpose(1, 2).flatten(2))


def build(
    reading: str,
    mh: int,
    *,
    image_size: int,
    patch: int,
    width: int,
    depth: int,
    heads: int,
    mlp_ratio: float,
    classes: int = 10,
    seed: int = 0,
    pool: str = "token",
    position_std: float = 0.02,
) -> VisionTransformer:
    """An untrained model by PyTorch's default initialisation; the same seed gives the same weights.

    The class is read from a class token (`token`), or from the mean of all patches, without that token (`avg`).
    """
    width = heads * mh if reading == "width" else width
    full = width // heads
    sizes = {"qk": mh, "v": full if reading == "qk" else mh}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = VisionTransformer(
            img_size=image_size,
            patch_size=patch,
            num_classes=classes,
            embed_dim=width,
            depth=depth,
            num_heads=heads,
            mlp_ratio=mlp_ratio,
            weight_init="reset",
            attn_layer=type("HeadAttention", (Attention,), sizes),
            global_pool=pool,
            class_token=pool == "token",
        )
        nn.init.trunc_normal_(model.pos_embed, std=position_std)
    return model


def truncate_head(w_q: Tensor, w_k: Tensor, mh: int) -> tuple[Tensor, Tensor]:
    """The best W_Q, W_K of m_h rows for the bilinear form W_Qᵀ W_K: (D, n), (D, n) → (m_h, n), (m_h, n).

    Its SVD comes from those of D x D factors: W_Qᵀ = U₁ R₁ and W_Kᵀ = U₂ R₂ give W_Qᵀ W_K = U₁ (R₁ R₂ᵀ) U₂ᵀ.
    """
    u1, r1 = torch.linalg.qr(w_q.double().mT)
    u2, r2 = torch.linalg.qr(w_k.double().mT)
    u, s, vt = torch.linalg.svd(r1 @ r2.mT)
    root = s[:mh].sqrt()[:, None]
    return (root * (u1 @ u[:, :mh]).mT).to(w_q), (root * (u2 @ vt[:mh].mT).mT).to(w_k)


@torch.no_grad()
def start_from(model: VisionTransformer, weights: Mapping[str, Tensor]) -> None:
    """Load the weights of timm's model of the same configuration; heads of the qk reading are cut to m_h by an SVD.

    Without a classifier among them, the model keeps its own. Biases count as one more column of W_Q and W_K, and the
    scale 1/√D stays, so that the scores keep their size. Positions are resized to the model's patches. LayerScale
    (DINOv2's) becomes part of the map whose outputs it multiplies.
    """
    weights = dict(weights)
    weights["pos_embed"] = resample_abs_pos_embed(
        weights["pos_embed"], list(model.patch_embed.grid_size), num_prefix_tokens=model.num_prefix_tokens
    )
    for name in [name for name in weights if name.endswith((".ls1.gamma", ".ls2.gamma"))]:
        gamma, block = weights.pop(name), name.rpartition(".ls")[0]
        linear = f"{block}.{'attn.proj' if '.ls1.' in name else 'mlp.fc2'}"
        weights[f"{linear}.weight"] = gamma[:, None] * weights[f"{linear}.weight"]
        weights[f"{linear}.bias"] = gamma * weights[f"{linear}.bias"]
    for i, block in enumerate(model.blocks):
        attn, name = block.attn, f"blocks.{i}.attn.qkv"
        if attn.qk == attn.v:
            continue
        full = torch.cat([weights[f"{name}.weight"], weights[f"{name}.bias"][:, None]], 1)  # (3 W, W + 1)
        q, k, v = full.chunk(3)
        cut = [truncate_head(*pair, attn.qk) for pair in zip(q.chunk(attn.heads), k.chunk(attn.heads), strict=True)]
        full = torch.cat([*(pair[0] for pair in cut), *(pair[1] for pair in cut), v])
        weights[f"{name}.weight"], weights[f"{name}.bias"] = full[:, :-1], full[:, -1]
    own = {k: v for k, v in model.state_dict().items() if k.startswith("head.")}
    model.load_state_dict(own | weights)


def pretrained(name: str, image_size: int) -> dict[str, Tensor]:
    """The weights of a timm model by its name, or NAME@REVISION of the hub, without its classifier."""
    model, _, revision = name.partition("@")
    pinned = {"pretrained_cfg_overlay": {"hf_hub_id": f"timm/{name}"}} if revision else {}
    try:
        return timm.create_model(model, pretrained=True, num_classes=0, img_size=image_size, **pinned).state_dict()
    except Exception as e:  # whatever the network, the hub or timm have to say
        raise UserError(
            f"{name}: timm could not load its weights ({type(e).__name__}: {e}); check name and network"
        ) from None


def make(
    reading: str, mh: int, seed: int, start: str = "scratch", path: Path | None = None, **sizes
) -> VisionTransformer:
    """The model of those sizes, untrained or with trained weights: of a timm model (vit_…), else those at `path`."""
    model = build(reading, mh, seed=seed, **sizes)
    if start != "scratch":
        hub = start.startswith("vit_")
        weights = pretrained(start, sizes["image_size"]) if hub else files.read_weights(path)
        try:
            start_from(model, weights)
        except (KeyError, RuntimeError) as e:
            raise UserError(
                f"{start}: is of another size than vit.model's image_size, patch, width, depth, heads and mlp_ratio "
                f"({' '.join(str(e).split())[:200]})"
            ) from None
    return model


def load(path: Path, reading: str, mh: int, **sizes) -> VisionTransformer:
    """The trained model of those sizes."""
    model, weights = build(reading, mh, **sizes), files.read_weights(path)
    with files.reading(path):
        model.load_state_dict(weights)
    return model.eval()
