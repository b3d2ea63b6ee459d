"""A model by its timm name, its directory or its hub name, with what turns images or texts into its inputs."""

import difflib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import timm
import torch
from PIL import Image
from safetensors import SafetensorError
from safetensors.torch import load_file
from timm.models import get_pretrained_cfg_value
from torch import Generator, Tensor, nn
from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

from attnrate.core.errors import UserError
from attnrate.spectra.attention import brief

TOKENS = 512  # the most of a model that names no limit


@dataclass(frozen=True)
class Loaded:
    model: nn.Module
    weights: str  # where they come from
    argument: str  # of the model's forward: "x" for timm
    reader: Callable[
        [int], Callable[[Any], Tensor]
    ]  # (most tokens) gives what turns an image or text into a batch of one
    random: Callable[[int, Generator], Tensor]  # (tokens, generator) → a batch of one
    longest: int = 0  # tokens that a text may have
    notes: list[str] = field(default_factory=list)

    @property
    def of_texts(self) -> bool:
        return self.argument == "input_ids"


def load(name: str, *, texts: bool, weights: Path | None = None, pretrained: bool = False, seed: int = 0) -> Loaded:
    """texts: a model of texts and images, such as CLIP, is asked for its text half."""
    if timm.is_model(name) and not Path(name).exists():
        return _timm(name, weights, pretrained, seed)
    if weights or pretrained:
        raise UserError(
            f"{name}: --weights and --pretrained are for timm models, and timm has no such model{_near(name)}"
        )
    return _transformers(name, texts)


def digest(model: nn.Module) -> str:
    """SHA-256 of names, types, shapes and bytes of the weights."""
    total = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).contiguous().view(torch.uint8).numpy())
    return total.hexdigest()


def _near(name: str) -> str:
    close = difflib.get_close_matches(name, timm.list_models(), 3)
    return f" (did you mean {', '.join(close)}?)" if close else ""


def _timm(name: str, weights: Path | None, pretrained: bool, seed: int) -> Loaded:
    if weights and pretrained:
        raise UserError("--weights and --pretrained are two sources of weights: give one of them")
    tensors = _safetensors(weights) if weights else {}
    head = tensors.get(f"{get_pretrained_cfg_value(name, 'classifier')}.weight")
    options = {"num_classes": 0 if head is None else len(head)} if weights else {}
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = timm.create_model(name, pretrained=pretrained, **options)
    except Exception as e:  # whatever the network, the hub or timm have to say
        raise UserError(f"{name}: timm could not load it ({type(e).__name__}: {brief(e)})") from None
    if weights:
        try:
            model.load_state_dict(tensors)
        except RuntimeError as e:
            raise UserError(f"{weights}: these are not the weights of {name} ({brief(e)})") from None
    source = str(weights) if weights else "pretrained" if pretrained else f"random, timm's initialisation, seed {seed}"
    data = timm.data.resolve_model_data_config(model)

    def reader(_: int | None) -> Callable[[Image.Image], Tensor]:
        transform = timm.data.create_transform(**data, is_training=False)
        return lambda image: transform(image)[None]

    return Loaded(model, source, "x", reader, lambda _, g: torch.randn(1, *data["input_size"], generator=g))


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as e:
        raise UserError(f"{path}: cannot be read as a safetensors file ({brief(e)})") from None


def _transformers(name: str, texts: bool) -> Loaded:
    options = {"attn_implementation": "sdpa", "dtype": torch.float32, "output_loading_info": True}
    model, info = _pretrained(AutoModel, name, **options)
    if missing := sorted(key for key in info["missing_keys"] if _matters(model, key)):
        raise UserError(f"{name}: its weights lack {missing[0]} ({len(missing)} in all), which would be random")
    notes = []
    half = "text_model" if texts else "vision_model"
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
        notes.append("of encoder and decoder, the encoder is measured")
    elif hasattr(model, half):
        model = getattr(model, half)
        notes.append(f"its {half} is measured")
    model.config.use_cache = False
    config, argument = model.config, model.main_input_name
    if argument == "pixel_values":
        side = config.image_size
        size = (config.num_channels, *((side, side) if isinstance(side, int) else side))

        def reader(_: int | None) -> Callable[[Image.Image], Tensor]:
            processor = _pretrained(AutoImageProcessor, name)
            return lambda image: processor(image, return_tensors="pt")["pixel_values"]

        return Loaded(model, name, argument, reader, lambda _, g: torch.randn(1, *size, generator=g), notes=notes)
    if argument == "input_ids":
        padding = config.pad_token_id

        def random(tokens: int, g: Generator) -> Tensor:
            ids = torch.randint(config.vocab_size - (padding is not None), (1, tokens), generator=g)
            return ids if padding is None else ids + (ids >= padding)  # any token but padding

        longest = getattr(config, "max_position_embeddings", TOKENS)

        def reader(tokens: int | None) -> Callable[[str], Tensor]:
            tokenizer = _pretrained(AutoTokenizer, name)
            cut = {"truncation": True, "max_length": min(tokens or longest, longest, tokenizer.model_max_length)}
            notes.append(f"texts are cut after {cut['max_length']} tokens")
            return lambda text: tokenizer(text, return_tensors="pt", **cut)["input_ids"]

        return Loaded(model, name, argument, reader, random, longest, notes)
    raise UserError(f"{name}: takes {argument}; supported are models of images and of texts")


def _matters(model: nn.Module, key: str) -> bool:
    """Whether a weight that a checkpoint lacks is random and bears on attention."""
    return "pooler" not in key and "Sinusoidal" not in type(model.get_submodule(key.rpartition(".")[0])).__name__


def _pretrained(kind: type, name: str, **options) -> Any:
    try:
        return kind.from_pretrained(name, **options)
    except Exception as e:  # whatever the network, the hub or transformers have to say
        if "scaled_dot_product_attention" in str(e):
            raise UserError(f"{name}: {brief(e).split(' yet')[0]}; {SUPPORTED}") from None
        known = "" if Path(name).exists() else f"timm has no such model{_near(name)}, and "
        raise UserError(f"{name}: {known}transformers' {kind.__name__} cannot load it ({brief(e)})") from None
