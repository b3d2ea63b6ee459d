"""What the paper profile costs on a GPU: operations counted on the true models, a device and a utilisation assumed.

Operations: torch.utils.flop_counter on one forward pass; a training step takes three times that. Memory: what autograd
keeps of that pass, in bfloat16, and 16 bytes for each parameter (weight, gradient and Adam's two moments in float32).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from attnrate.ops.profile import overlay
from attnrate.schemas import check as config
from attnrate.schemas.all import Params
from attnrate.translation import model as seq2seq
from attnrate.translation.train import Trainee
from attnrate.vit import model as vit

DEVICE, PEAK, UTILISATION = "A100 (bfloat16)", 312e12, 0.4
SENTENCE = 32  # tokens of a side, about WMT14's mean
SAMPLED = 0.2  # share of linear_rnn's seconds on a laptop that go to the recipe `samples`: 15 of 72


@dataclass(frozen=True)
class Cost:
    """Of one pass over one image or one pair of sentences, and of the model."""

    flops: float  # of training on it
    kept: float  # bytes of activations
    parameters: int

    def hours(self, items: float) -> float:
        return items * self.flops / (PEAK * UTILISATION) / 3600

    def gigabytes(self, items: float) -> float:
        return (self.parameters * 16 + items * self.kept) / 1e9


def count(model: nn.Module, forward: Callable[[], Tensor]) -> Cost:
    own = {p.untyped_storage()._cdata for p in model.parameters()}
    kept = {}

    def keep(tensor: Tensor) -> Tensor:
        block = tensor.untyped_storage()
        if block._cdata not in own:
            kept[block._cdata] = block, block.nbytes() * min(tensor.element_size(), 2) / tensor.element_size()
        return tensor

    with FlopCounterMode(display=False) as counter, saved_tensors_hooks(keep, lambda t: t):
        forward()
    size = sum(nbytes for _, nbytes in kept.values())  # each block was held, so that no identity stands for two
    return Cost(3 * counter.get_total_flops(), size, sum(p.numel() for p in model.parameters()))


def vit_cost(p, reading: str, mh: int) -> Cost:
    with torch.device("meta"):  # shapes without numbers
        model = vit.make(p, reading, mh, 0)
        x = torch.zeros(1, 3, p.image_size, p.image_size)
        return count(model, lambda: model(x))


def translation_cost(p) -> Cost:
    trainee = Trainee(seq2seq.make(p, 0), p.smoothing, p.steps, p.average, p.average_every)
    ids = torch.full((1, SENTENCE), 9)
    return count(trainee.model, lambda: trainee(ids, ids))


def on_gpu(params: Params) -> Iterator[tuple[str, str, float, float]]:
    """(stage, what, hours, GB) of the stages that want a GPU."""
    p = params.vit
    batch, full, tuned = p.batch // p.accumulate, p.train_images * p.epochs, p.train_images * p.tune_epochs
    sweep = {(r, mh): vit_cost(p, r, mh) for r in p.readings for mh in p.mh_sweep}
    hours, memory = sum(c.hours(full) for c in sweep.values()), max(c.gigabytes(batch) for c in sweep.values())
    yield "train_vit", f"{len(sweep) * len(p.seeds)} models, {p.epochs} epochs", hours * len(p.seeds), memory
    main, seeds, extra = vit_cost(p, "qk", p.main_mh), len(p.table_seeds), len(p.extra_seeds)
    start = full if p.main_start == "scratch" else tuned
    yield "train_vit_main", f"{seeds} models", seeds * main.hours(start), main.gigabytes(batch)
    items = (2 * seeds + extra) * tuned + extra * start
    yield "train_vit_permuted", f"{2 * (seeds + extra)} models", main.hours(items), main.gigabytes(batch)
    images = (len(sweep) + 1) * p.spectra_images
    yield (
        "spectra_vit",
        f"{len(sweep) + 1} models, {p.spectra_images:,} images, forward passes alone",
        main.hours(images) / 3,
        main.gigabytes(0),
    )
    t = params.translation
    pair, step = translation_cost(t), t.batch_tokens / SENTENCE  # pairs of sentences
    altered = sum(t.steps if v == "permuted-scratch" else t.tune_steps for v in t.variants)
    for name, what, steps in (
        ("train_translation", f"{len(t.seeds)} models", t.steps),
        ("train_translation_permuted", f"{len(t.seeds) * len(t.variants)} models", altered),
    ):
        yield name, what, len(t.seeds) * pair.hours(steps * step), pair.gigabytes(step / t.accumulate)


def on_cpu(laptop: Params, paper: Params, seconds: dict[str, float]) -> Iterator[tuple[str, float]]:
    """(stage, hours) of the small models: the laptop's measured seconds, times the growth of the work."""

    def growth(work: Callable[[Params], float]) -> float:
        return work(paper) / work(laptop)

    def transformers(p: Params) -> float:
        return p.linear.steps * p.linear.batch * len(p.linear.cells) * len(p.linear.seeds)

    def sampled(p: Params) -> float:
        return p.linear.rnn_sample_steps * p.linear.batch * len(p.linear.cells) * len(p.linear.seeds)

    exact = growth(lambda p: p.linear.rnn_steps * len(p.linear.seeds))
    factors = {
        "rates_free_kernel": growth(lambda p: p.rates.free_steps * len(p.rates.seeds)),
        "rates_train": growth(lambda p: p.rates.steps * p.rates.batch * len(p.rates.seeds) * len(p.rates.train_mh)),
        "linear_rnn": (1 - SAMPLED) * exact + SAMPLED * growth(sampled),
        "linear_train": growth(transformers),
        "gallery_train": growth(
            lambda p: (
                (p.gallery.nearest_steps + p.gallery.mass_steps + p.gallery.selection_steps)
                * p.gallery.batch
                * len(p.gallery.seeds)
            )
        ),
    }
    for stage, factor in factors.items():
        yield stage, factor * sum(s for name, s in seconds.items() if name.partition("@")[0] == stage) / 3600


def profiles(root: Path) -> tuple[Params, Params]:
    base, path = config.read(root / "params.yaml"), root / "profiles" / "paper.yaml"
    return (config.check(Params, content, path) for content in (base, overlay(base, config.read(path), path)))


def markdown(seconds: dict[str, float], root: Path = Path(".")) -> str:
    laptop, paper = profiles(root)
    found = list(on_gpu(paper))
    lines = [
        f"One {DEVICE} at {UTILISATION:.0%} of its {PEAK / 1e12:.0f} TFLOP/s; operations are counted on the true models "
        f"(a training step as three forward passes; sentences of {SENTENCE} tokens a side), memory as what autograd keeps "
        "of a batch in bfloat16 and 16 bytes for each parameter.",
        "",
        "| stage | what | GPU hours | GPU memory (GB) |",
        "|---|---|---:|---:|",
        *(f"| {name} | {what} | {hours:.1f} | {memory:.0f} |" for name, what, hours, memory in found),
        f"| **all** | | **{sum(r[2] for r in found):.0f}** | **{max(r[3] for r in found):.0f}** |",
        "",
        "Small models, on the laptop's cores: the measured seconds above, times the growth of steps, batch and models. "
        "Decoding (`translate`) and the preparation of WMT14 are not estimated.",
        "",
        "| stage | CPU hours |",
        "|---|---:|",
        *(f"| {name} | {hours:.1f} |" for name, hours in on_cpu(laptop, paper, seconds)),
    ]
    return "\n".join(lines)
