"""A model by its timm or torchvision name, its directory or its hub name, with what makes inputs for it."""

import hashlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Generator, Tensor, nn

from attnrate.core.errors import UserError
from attnrate.spectra.watch import brief
from attnrate.tool import hub
from attnrate.tool.hub import library

TOKENS = 512  # the most of a model that names no limit
DTYPES = ("float32", "bfloat16", "float16")


@dataclass
class Loaded:
    model: nn.Module
    weights: str  # where they come from
    argument: str = ""  # of the model's forward: "x" for timm
    reader: Callable[[int | None], Callable[[Any], Tensor]] | None = None  # (most tokens) → what makes a batch of one
    random: Callable[[int, Generator], Tensor] | None = None  # (tokens, generator) → a batch of one
    longest: int = 0  # tokens that a text may have
    kind: str | None = None  # of loss, where labels do not decide; "language": the inputs are their own labels
    start: int | None = None  # the decoder's first token, of an encoder and decoder
    notes: list[str] = field(default_factory=list)
    device: torch.device | str = "cpu"
    dtype: torch.dtype = torch.float32

    @property
    def of_texts(self) -> bool:
        return self.argument == "input_ids"

    def place(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, self.dtype if tensor.is_floating_point() else None)


def load(
    name: str,
    *,
    texts: bool = False,
    whole: bool = False,
    untrained: bool = False,
    weights: str | Path | None = None,
    pretrained: bool = False,
    seed: int = 0,
    device: str = "auto",
    dtype: str = "float32",
    revision: str | None = None,
) -> Loaded:
    """texts: a model of texts and images, such as CLIP, is asked for its text half. whole: with its own last layers.

    untrained: of the same configuration, with random weights.
    """
    place = find_device(device)
    if dtype not in DTYPES:
        raise UserError(f"--dtype {dtype}: should be one of {', '.join(DTYPES)}")
    if found := zoo(name):
        if revision:
            raise UserError("--revision is for names on the hub, which transformers loads")
        if weights and pretrained:
            raise UserError("--weights and --pretrained are two sources of weights: give one of them")
        loaded = found(name, None if untrained else weights, pretrained and not untrained, seed)
    else:
        if weights or pretrained:
            none = "it is none" if Path(name).exists() else hub.nowhere(name)
            raise UserError(f"{name}: --weights and --pretrained are for timm and torchvision models, and {none}")
        loaded = _transformers(name, texts, whole, untrained, seed, getattr(torch, dtype), revision)
    loaded.device, loaded.dtype = place, getattr(torch, dtype)
    loaded.model.to(loaded.device, loaded.dtype).eval()
    return loaded


def own(model: nn.Module, beside: str = "") -> Loaded:
    """A module of one's own, where it is and as it is."""
    if not isinstance(model, nn.Module):
        raise UserError(f"{model!r}: is no nn.Module")
    weight = next(model.parameters(), torch.zeros(0))
    return Loaded(model, f"{type(model).__qualname__}{beside}", device=weight.device, dtype=weight.dtype)


def zoo(name: str) -> Callable[..., Loaded] | None:
    """What makes a model that timm or torchvision has; a folder of its name may be an older result."""
    if (Path(name) / "config.json").exists():
        return None
    timm, vision = library("timm"), library("torchvision")
    if timm and timm.is_model(name):
        return _timm
    return _torchvision if vision and name in vision.models.list_models() else None


def find_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise UserError(f"--device {name}: PyTorch has no such device here") from None
    return device


def digest(model: nn.Module) -> str:
    """SHA-256 of names, types, shapes and bytes of the weights."""
    total = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if not isinstance(tensor, Tensor):  # what a module of one's own keeps beside them
            continue
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(tensor.cpu().reshape(-1).contiguous().view(torch.uint8).numpy())
    return total.hexdigest()


def _built(name: str, of: str, seed: int, make: Callable[[], nn.Module]) -> nn.Module:
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return make()
    except Exception as e:  # whatever the network, the hub or the library have to say
        raise UserError(f"{name}: {of} could not load it ({type(e).__name__}: {brief(e)})") from None


def _fill(model: nn.Module, name: str, weights: str | Path, tensors: dict[str, Tensor]) -> None:
    try:
        model.load_state_dict(tensors)
    except RuntimeError as e:
        raise UserError(f"{weights}: these are not the weights of {name} ({brief(e)})") from None


def _source(of: str, weights: str | Path | None, pretrained: bool, seed: int) -> str:
    return str(weights) if weights else "pretrained" if pretrained else f"random, {of}'s initialisation, seed {seed}"


def _timm(name: str, weights: str | Path | None, pretrained: bool, seed: int) -> Loaded:
    timm = library("timm")
    tensors = _safetensors(weights) if weights else {}
    head = tensors.get(f"{timm.models.get_pretrained_cfg_value(name, 'classifier')}.weight")
    options = {"num_classes": 0 if head is None else len(head)} if weights else {}
    with hub.asked() if pretrained else nullcontext():
        model = _built(name, "timm", seed, lambda: timm.create_model(name, pretrained=pretrained, **options))
    if weights:
        _fill(model, name, weights, tensors)
    data = timm.data.resolve_model_data_config(model)

    def reader(_: int | None) -> Callable[[Any], Tensor]:
        transform = timm.data.create_transform(**data, is_training=False)
        return lambda image: transform(image)[None]

    def random(_: int, g: Generator) -> Tensor:
        return torch.randn(1, *data["input_size"], generator=g)

    kind = "divergence" if model.num_classes else "features"
    return Loaded(model, _source("timm", weights, pretrained, seed), "x", reader, random, kind=kind)


def _torchvision(name: str, weights: str | Path | None, pretrained: bool, seed: int) -> Loaded:
    models = library("torchvision").models
    tensors = _safetensors(weights) if weights else {}
    source = "DEFAULT" if pretrained else None
    model = _built(name, "torchvision", seed, lambda: models.get_model(name, weights=source))
    if weights:
        _fill(model, name, weights, tensors)
    prepare = models.get_model_weights(name).DEFAULT.transforms()
    side = getattr(prepare, "crop_size", [224])[0]

    def reader(_: int | None) -> Callable[[Any], Tensor]:
        return lambda image: prepare(image)[None]

    def random(_: int, g: Generator) -> Tensor:
        return torch.randn(1, 3, side, side, generator=g)

    text = _source("torchvision", weights, pretrained, seed)
    argument = next(iter(inspect.signature(model.forward).parameters))
    return Loaded(model, text, argument, reader, random, kind="divergence")


def _safetensors(path: str | Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as e:
        raise UserError(f"{path}: cannot be read as a safetensors file ({brief(e)})") from None


def _transformers(
    name: str, texts: bool, whole: bool, untrained: bool, seed: int, dtype: torch.dtype, revision: str | None
) -> Loaded:
    tf = library("transformers")
    if tf is None:
        if Path(name).exists() or "/" in name:
            raise UserError(f"{name}: is read by transformers, which is missing: pip install 'attnrate[transformers]'")
        raise UserError(f"{name}: {hub.nowhere(name, ('timm', 'torchvision', 'transformers'))}")
    tf.utils.logging.set_verbosity_error()
    tf.utils.logging.disable_progress_bar()
    from_hub = {"revision": revision} if revision else {}
    config = hub.pretrained(tf.AutoConfig, name, **from_hub)
    architectures = [getattr(tf, a, None) for a in (config.architectures or [])] if whole else []
    kind = next(filter(None, architectures), tf.AutoModel)
    if untrained:
        make = kind.from_config if kind is tf.AutoModel else kind
        config.dtype = dtype  # AutoModel's choice; other classes take PyTorch's
        with _default(dtype):  # in float32 first, it would take twice the memory
            model = _built(name, "transformers", seed, lambda: make(config)).to(dtype)
        source = f"random, transformers' initialisation, seed {seed}"
    else:
        model, info = hub.pretrained(kind, name, dtype=dtype, output_loading_info=True, **from_hub)
        if missing := sorted(key for key in info["missing_keys"] if _matters(model, key)):
            raise UserError(f"{name}: its weights lack {missing[0]} ({len(missing)} in all), which would be random")
        source = name if revision is None else f"{name}, revision {revision}"
    notes, half = [], "text_model" if texts else "vision_model"
    if hasattr(model, half) and not model.config.is_encoder_decoder:
        model = getattr(model, half)
        notes.append(f"its {half} is measured")
    for module in model.modules():  # keys of earlier tokens are no part of a pass over a whole input
        if hasattr(module, "config"):
            module.config.use_cache = False
    config, argument, start = model.config, model.main_input_name, None
    loss = "divergence" if hasattr(model, "lm_head") or "For" in type(model).__name__ else "features"
    if type(model).__name__.endswith(("ForCausalLM", "LMHeadModel")):
        loss = "language"
    if config.is_encoder_decoder:
        start = config.decoder_start_token_id
        loss = "language" if type(model).__name__.endswith(("ForConditionalGeneration", "MTModel")) else loss
    common = {"kind": loss, "start": start, "notes": notes}
    if argument == "pixel_values":
        side = config.image_size
        size = (config.num_channels, *((side, side) if isinstance(side, int) else side))

        def see(_: int | None) -> Callable[[Any], Tensor]:
            processor = hub.pretrained(tf.AutoImageProcessor, name, **from_hub)
            return lambda image: processor(image, return_tensors="pt")["pixel_values"]

        return Loaded(model, source, argument, see, lambda _, g: torch.randn(1, *size, generator=g), **common)
    if argument == "input_ids":
        padding = config.pad_token_id

        def random(tokens: int, g: Generator) -> Tensor:
            ids = torch.randint(config.vocab_size - (padding is not None), (1, tokens), generator=g)
            return ids if padding is None else ids + (ids >= padding)  # any token but padding

        longest = getattr(config, "max_position_embeddings", TOKENS)

        def read(tokens: int | None) -> Callable[..., Tensor]:
            tokenizer = hub.tokenizer(tf.AutoTokenizer, name, **from_hub)
            cut = {"truncation": True, "max_length": min(tokens or longest, longest, tokenizer.model_max_length)}
            if (note := f"texts are cut after {cut['max_length']} tokens") not in notes:
                notes.append(note)

            def ids(text: str, target: bool = False) -> Tensor:
                given = {"text_target": text} if target else {"text": text}
                return tokenizer(**given, return_tensors="pt", **cut)["input_ids"]

            return ids

        return Loaded(model, source, argument, read, random, longest, **common)
    raise UserError(f"{name}: takes {argument}; supported are models of images and of texts")


@contextmanager
def _default(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _matters(model: nn.Module, key: str) -> bool:
    """Whether a weight that a checkpoint lacks is random and bears on attention."""
    return "pooler" not in key and "Sinusoidal" not in type(model.get_submodule(key.rpartition(".")[0])).__name__
