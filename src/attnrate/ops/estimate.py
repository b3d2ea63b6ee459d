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

from attnrate.core import params
from attnrate.ops.profile import overlay
from attnrate.schemas.all import Params
from attnrate.schemas.check import Section, check
from attnrate.translation import model as translation
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


def vit_cost(sizes: Section, reading: str, mh: int) -> Cost:
    with torch.device("meta"):  # shapes without numbers
        model = vit.make(reading, mh, 0, **dict(sizes))
        x = torch.zeros(1, 3, sizes.image_size, sizes.image_size)
        return count(model, lambda: model(x))


def translation_cost(p: Section) -> Cost:
    model = translation.build(vocabulary=p.tokens.vocabulary, seed=0, **dict(p.model))
    trainee = Trainee(model, p.train.smoothing, p.train.steps, p.train.average, p.train.average_every)
    ids = torch.full((1, SENTENCE), 9)
    return count(trainee.model, lambda: trainee(ids, ids, torch.arange(SENTENCE)))


def on_gpu(paper: Params) -> Iterator[tuple[str, str, float, float]]:
    """(stage, what, hours, GB) of the stages that want a GPU."""
    p = paper.vit
    batch, full = p.train.batch // p.train.accumulate, p.images.train * p.train.epochs
    tuned, spectra = p.images.train * p.tune.epochs, p.spectra.images
    sweep = [vit_cost(p.model, r, mh) for r, mh in p.grid.split()]
    models, memory = len(sweep) * len(p.sweep.seeds), max(c.gigabytes(batch) for c in sweep)
    hours = sum(c.hours(full) for c in sweep) * len(p.sweep.seeds)
    yield "vit_sweep", f"{models} models, {p.train.epochs} epochs", hours, memory
    other, times = [vit_cost(p.model, "qk", mh) for mh in p.beside.mh], len(p.beside.seeds)
    yield "vit_beside", f"{len(other) * times} models", times * sum(c.hours(full) for c in other), memory
    main, seeds, extra = vit_cost(p.model, "qk", p.main.mh), len(p.main.seeds), len(p.permuted.seeds)
    start = p.images.train * p.main.epochs if p.main.start == "scratch" else tuned
    yield "vit_main", f"{seeds} models", seeds * main.hours(start), main.gigabytes(batch)
    items = (2 * seeds + extra) * tuned + extra * start
    yield "vit_permuted", f"{2 * (seeds + extra)} models", main.hours(items), main.gigabytes(batch)
    measured = models + 2 * seeds  # the main model untrained too; each as it is and centred
    what = f"{measured} models, {spectra:,} images, forward passes alone"
    yield "vit_spectra", what, main.hours(2 * measured * spectra) / 3, main.gigabytes(0)
    t, variants = paper.translation.train, paper.translation.tune.variants
    pair, step = translation_cost(paper.translation), t.batch_tokens / SENTENCE  # pairs of sentences
    altered = sum(t.steps if v == "permuted-scratch" else paper.translation.tune.steps for v in variants)
    for name, what, steps in (
        ("translation_main", f"{len(t.seeds)} models", t.steps),
        ("translation_permuted", f"{len(t.seeds) * len(variants)} models", altered),
    ):
        yield name, what, len(t.seeds) * pair.hours(steps * step), pair.gigabytes(step / t.accumulate)


def on_cpu(laptop: Params, paper: Params, seconds: dict[str, float]) -> Iterator[tuple[str, float]]:
    """(stage, hours) of the small models: the laptop's measured seconds, times the growth of the work."""

    def cells(p: Params) -> int:
        return len(p.linear.cells.names) * len(p.linear.cells.seeds)

    def mixing(p: Params) -> int:
        own = p.linear.mixing
        return own.train.steps * own.train.batch * (len(own.bare) + len(own.filtered)) * len(own.seeds)

    def examples(p: Params) -> int:
        steps = sum(task.steps for _, task in p.examples.tasks)
        return steps * p.examples.train.batch * len(p.examples.train.seeds)

    def rates(p: Params) -> int:
        own = p.rates.train
        recipes = (r for _, r in p.rates.recipes)
        work = sum(r.steps * r.batch * len(r.pairings) * len(r.alphas) * len(r.mh) for r in recipes)
        return work * len(own.seeds)

    def free_kernel(p: Params) -> int:
        own = p.rates.free_kernel
        return own.steps * len(p.rates.target.pairings) * len(own.seeds) * len(own.mh)

    def growth(work: Callable[[Params], float]) -> float:
        return work(paper) / work(laptop)

    exact = growth(lambda p: p.linear.rnn.steps * len(p.linear.rnn.seeds))
    sampled = growth(lambda p: p.linear.rnn.sample_steps * p.linear.rnn.batch * len(p.linear.cells.names))
    factors = {
        "rates_free_kernel": growth(free_kernel),
        "rates_train": growth(rates),
        "linear_rnn": (1 - SAMPLED) * exact + SAMPLED * sampled,
        "linear_train": growth(lambda p: p.linear.train.steps * p.linear.train.batch * cells(p)),
        "linear_mixing": growth(mixing),
        "examples_train": growth(examples),
    }
    for stage, factor in factors.items():
        yield stage, factor * sum(s for name, s in seconds.items() if name.partition("@")[0] == stage) / 3600


def profiles(root: Path) -> tuple[Params, Params]:
    base, path = params.read(root / "params.yaml"), root / "profiles" / "paper.yaml"
    return check(Params, base, "params.yaml"), check(Params, overlay(base, params.read(path), path), path)


def markdown(seconds: dict[str, float], root: Path = Path(".")) -> str:
    laptop, paper = profiles(root)
    found = list(on_gpu(paper))
    lines = [
        f"One {DEVICE} at {UTILISATION:.0%} of its {PEAK / 1e12:.0f} TFLOP/s; operations are counted on the true "
        f"models (a training step as three forward passes; sentences of {SENTENCE} tokens a side), memory as what "
        "autograd keeps of a batch in bfloat16 and 16 bytes for each parameter.",
        "",
        "| stage | what | GPU hours | GPU memory (GB) |",
        "|---|---|---:|---:|",
        *(f"| {name} | {what} | {hours:.1f} | {memory:.0f} |" for name, what, hours, memory in found),
        f"| **all** | | **{sum(r[2] for r in found):.0f}** | **{max(r[3] for r in found):.0f}** |",
        "",
        "Small models, on the laptop's cores: the measured seconds above, times the growth of steps, batch and models. "
        "Decoding (`translation_bleu`) and the preparation of WMT14 are not estimated.",
        "",
        "| stage | CPU hours |",
        "|---|---:|",
        *(f"| {name} | {hours:.1f} |" for name, hours in on_cpu(laptop, paper, seconds)),
    ]
    return "\n".join(lines)
