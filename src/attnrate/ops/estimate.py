"""What the paper profile costs: operations counted on the true models; device, utilisation and launches assumed.

Operations: torch.utils.flop_counter on one forward pass; a training step takes three times that, and no less than the
launches of its kernels. Memory: what autograd keeps of that pass, in bfloat16, and 16 bytes for each parameter (weight,
gradient and Adam's two moments in float32). Left out: making batches, which for crops takes 10 to 14 ms of CPU a step.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from attnrate.core import params
from attnrate.ops import costs
from attnrate.ops.profile import overlay
from attnrate.schemas.all import Params
from attnrate.schemas.check import Section, check
from attnrate.sources import dinov2
from attnrate.spectra.values import Spectra
from attnrate.translation import model as translation
from attnrate.translation.train import Trainee
from attnrate.vit import model as vit

DEVICE, PEAK = "A100 (bfloat16)", 312e12
# Of an A100's peak, forward and backward passes of PyTorch's layers reached 136 TFLOP/s (44 %) in BERT's, 56 (18 %) in
# T5's encoder and 47 (15 %) in its decoder: github.com/mli/transformers-benchmarks, micro-benchmarks.
VIT, SEQ2SEQ = 0.40, 0.16  # of whole steps; a ViT's layers are BERT's, Marian's are T5's
LAUNCH = 1e-5  # seconds that an operation takes at least, in eager mode: 5 to 25 µs are usual
UNCERTAIN = 2  # the hours may be so many times more, or fewer
SENTENCE = 32  # tokens of a side, about WMT14's mean
TESTED = 3003  # sentences of newstest2014
DECODE = 0.03  # seconds of a step of beam search with 6 layers: some 500 launches and transformers' own Python
WMT14 = {"translation_corpus": 0.3, "translation_tokens": 1.5}  # hours: 4.5 million pairs read; BPE, one thread
DOWNLOADS, SETS = 2.3, 2.1  # GB: archives of WMT14 and CIFAR10, timm's weights; what stages make of them
SAMPLED = 0.2  # share of linear_rnn's seconds on a laptop that go to the recipe `samples`: 15 of 72


class Launches(TorchDispatchMode):
    """Counts operations that start a kernel."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class Cost:
    """Of one pass over one image or one pair of sentences, and of the model."""

    flops: float  # of training on it
    kept: float  # bytes of activations
    parameters: int
    launches: int = 0  # of a forward pass, however many items
    utilisation: float = VIT

    def hours(self, items: float, batch: float = 1) -> float:
        """Training on so many items, a part of a batch at a time."""
        work = batch * self.flops / (PEAK * self.utilisation)
        return items / batch * max(work, 3 * self.launches * LAUNCH) / 3600

    def gigabytes(self, items: float) -> float:
        return (self.parameters * 16 + items * self.kept) / 1e9

    @property
    def weights(self) -> float:
        """GB on disk."""
        return self.parameters * 4 / 1e9


def count(model: nn.Module, forward: Callable[[], Tensor], utilisation: float = VIT) -> Cost:
    own = {p.untyped_storage()._cdata for p in model.parameters()}
    kept = {}

    def keep(tensor: Tensor) -> Tensor:
        block = tensor.untyped_storage()
        if block._cdata not in own:
            kept[block._cdata] = block, block.nbytes() * min(tensor.element_size(), 2) / tensor.element_size()
        return tensor

    launches = Launches()
    with FlopCounterMode(display=False) as counter, launches, saved_tensors_hooks(keep, lambda t: t):
        forward()
    size = sum(nbytes for _, nbytes in kept.values())  # each block was held, so that no identity stands for two
    parameters = sum(p.numel() for p in model.parameters())
    return Cost(3 * counter.get_total_flops(), size, parameters, launches.count, utilisation)


def vit_cost(sizes: Section, reading: str, mh: int) -> Cost:
    with torch.device("meta"):  # shapes without numbers
        model = vit.make(reading, mh, 0, **dict(sizes))
        x = torch.zeros(1, 3, sizes.image_size, sizes.image_size)
        return count(model, lambda: model(x))


def translation_cost(p: Section) -> Cost:
    model = translation.build(vocabulary=p.tokens.vocabulary, seed=0, **dict(p.model))
    trainee = Trainee(model, p.train.smoothing, p.train.steps, p.train.average, p.train.average_every)
    ids = torch.full((1, SENTENCE), 9)
    return count(trainee.model, lambda: trainee(ids, ids, torch.arange(SENTENCE)), SEQ2SEQ)


def spectrum_seconds(tokens: int, heads: int, mh: int, images: int = 8) -> float:
    """Seconds on this machine's cores for the singular values of one layer of one image: measured."""
    q, k = torch.randn(2, images, heads, tokens, mh)
    spectra, seconds = Spectra("tokens"), []
    for _ in range(5):  # the fastest: other work on the machine makes one ten times longer
        start = time.perf_counter()
        spectra.add(q, k)
        seconds.append((time.perf_counter() - start) / images)
    return min(seconds)


@dataclass(frozen=True)
class Row:
    """A stage that wants a GPU."""

    stage: str
    what: str
    hours: dict[str, float]  # by item of a matrix, or by run: main_seed0
    memory: float  # GB of the GPU
    weights: float = 0.0  # GB on disk

    @property
    def total(self) -> float:
        return sum(self.hours.values())


def on_gpu(paper: Params) -> Iterator[Row]:
    p = paper.vit
    batch, seen = p.train.batch // p.train.accumulate, (p.images.measure + p.images.test) / 3  # forward passes alone
    full, tuned, times = p.images.train * p.train.epochs + seen, p.images.train * p.tune.epochs + seen, p.sweep.seeds
    sweep = {f"{r}-{mh}": vit_cost(p.model, r, mh) for r, mh in p.grid.split()}
    models, memory = len(sweep) * len(times), max(c.gigabytes(batch) for c in sweep.values())
    hours = {name: len(times) * c.hours(full, batch) for name, c in sweep.items()}
    weights = len(times) * sum(c.weights for c in sweep.values())
    yield Row("vit_sweep", f"{models} models, {p.train.epochs} epochs", hours, memory, weights)
    other = {mh: vit_cost(p.model, "qk", mh) for mh in p.beside.mh}
    hours = {f"mh{mh}_seed{s}": c.hours(full, batch) for mh, c in other.items() for s in p.beside.seeds}
    weights = len(p.beside.seeds) * sum(c.weights for c in other.values())
    yield Row("vit_beside", f"{len(hours)} models", hours, memory, weights)
    main, seeds = vit_cost(p.model, "qk", p.main.mh), p.main.seeds
    start = p.images.train * p.main.epochs + seen if p.main.start == "scratch" else tuned
    memory, each = main.gigabytes(batch), main.hours(start, batch)
    hours = {f"main_seed{s}": each for s in seeds}
    yield Row("vit_main", f"{len(seeds)} models", hours, memory, len(seeds) * main.weights)
    again, other = main.hours(tuned, batch), {"unadapted": main.hours(seen, batch), "permuted-scratch": each}
    hours = {f"{variant}_seed{s}": other.get(variant, again) for variant, s in p.altered()}
    what = f"{len(hours)} models, {len(seeds)} of them only tested"
    yield Row("vit_permuted", what, hours, memory, len(hours) * main.weights)
    images, tokens = p.spectra.images, (p.model.image_size // p.model.patch) ** 2 + (p.model.pool == "token")
    sizes = [mh for _, mh in p.grid.split()] * len(p.sweep.seeds)
    sizes += [p.main.mh] * 2 * len(seeds)  # the main one untrained too
    each = {mh: p.model.depth * spectrum_seconds(tokens, p.model.heads, mh) for mh in set(sizes)}
    cpu = 2 * images * sum(each[mh] for mh in sizes) / 3600  # as it is and centred
    gpu = main.hours(2 * len(sizes) * images, 64) / 3
    what = f"{len(sizes)} models, {images:,} images; of it {cpu:.1f} h singular values on {paper.threads} CPU cores"
    yield Row("vit_spectra", what, {"": gpu + cpu}, main.gigabytes(0))
    t, variants = paper.translation.train, paper.translation.tune.variants
    pair, step = translation_cost(paper.translation), t.batch_tokens / SENTENCE  # pairs of sentences
    once = {v: t.steps if v == "permuted-scratch" else paper.translation.tune.steps for v in variants}
    for name, trained in (("translation_main", {"original": t.steps}), ("translation_permuted", once)):
        hours = {
            f"{variant}_seed{s}": pair.hours(steps * step, step / t.accumulate)
            for variant, steps in trained.items()
            for s in t.seeds
        }
        memory = pair.gigabytes(step / t.accumulate)
        yield Row(name, f"{len(hours)} models", hours, memory, len(hours) * pair.weights)
    texts, decode = len(t.seeds) * (2 + len(variants)), paper.translation.decode
    steps = TESTED / decode.batch * 1.5 * SENTENCE  # a batch goes on until its longest translation ends
    hours = {"": texts * steps * DECODE / 3600}
    yield Row("translation_bleu", f"{texts} translations, beam {decode.beams}", hours, pair.gigabytes(0))


def on_cpu(laptop: Params, paper: Params, seconds: dict[str, float]) -> Iterator[tuple[str, float]]:
    """(stage, hours) of small models and of what is mostly a CPU's: measured seconds, times the growth of the work."""

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

    def filters(p: Params) -> int:
        return p.beyond.filters.train.steps * p.beyond.filters.train.batch * len(p.beyond.filters.shares)

    def heads_cut(p: Params) -> int:
        """Factorisations of D x D matrices, a head's and an input's each, on the CPU: D³."""

        def cubes(layers: int, heads: int, width: int) -> int:
            return layers * heads * (width // heads) ** 3

        v, t, own = p.vit, p.translation, dinov2.SIZES[p.vit.pretrained.name]
        vit = len(v.cut.seeds) * v.model.depth * v.model.heads * v.main.mh**3
        text = len(t.train.seeds) * cubes(3 * t.model.depth, t.model.heads, t.model.width)  # two in a decoder's layer
        return v.cut.inputs * len(v.cut.sizes) * (vit + text + cubes(own["depth"], own["heads"], own["width"]))

    def encoder(p: Params) -> int:
        """Forward passes over as many sentences: few of WMT14's are as long as 64 tokens."""
        return p.translation.model.depth * p.translation.model.width**2 * p.translation.spectra.tokens

    exact = growth(lambda p: p.linear.rnn.steps * len(p.linear.rnn.seeds))
    sampled = growth(lambda p: p.linear.rnn.sample_steps * p.linear.rnn.batch * len(p.linear.cells.names))
    factors = {
        "rates_free_kernel": growth(free_kernel),
        "rates_train": growth(rates),
        "linear_rnn": (1 - SAMPLED) * exact + SAMPLED * sampled,
        "linear_train": growth(lambda p: p.linear.train.steps * p.linear.train.batch * cells(p)),
        "linear_mixing": growth(mixing),
        "examples_train": growth(examples),
        "vit_cut": growth(heads_cut),
        "translation_spectra": growth(encoder),
        "beyond_depth": growth(lambda p: p.beyond.depth.steps * p.beyond.depth.batch * len(p.beyond.depth.seeds)),
        "beyond_filters": growth(filters),
        "beyond_heads": growth(lambda p: p.beyond.heads.steps * p.beyond.heads.batch * len(p.beyond.heads.draws)),
        "beyond_causal": growth(lambda p: p.beyond.causal.train.steps * len(p.beyond.causal.seeds)),
    }
    if paper.translation.data.corpus == "wmt14":
        yield from WMT14.items()
    for stage, factor in factors.items():
        yield stage, factor * sum(s for name, s in seconds.items() if name.partition("@")[0] == stage) / 3600


def profiles(root: Path) -> tuple[Params, Params]:
    base, path = params.read(root / "params.yaml"), root / "profiles" / "paper.yaml"
    return check(Params, base, "params.yaml"), check(Params, overlay(base, params.read(path), path), path)


def by_stage(names: Iterable[str], rows: Iterable[Row], cpu: dict[str, float], seconds: dict[str, float]) -> dict:
    """Hours of every stage, matrix items apart: estimated, or what the laptop took where nothing grows."""
    names, found = list(names), {}
    gpu = {row.stage: row.hours for row in rows}
    for name in names:
        stage, _, item = name.partition("@")
        items = [n for n in names if n.partition("@")[0] == stage]
        if stage in gpu:
            own = [h for run, h in gpu[stage].items() if run == item or run.endswith(f"_{item}")]
            found[name] = sum(own) if own else sum(gpu[stage].values()) / len(items)
        elif stage in cpu:
            share = seconds.get(name, 0) / (sum(seconds.get(n, 0) for n in items) or 1) or 1 / len(items)
            found[name] = cpu[stage] * share
        else:
            found[name] = seconds.get(name, 0) / 3600
    return found


def disk(rows: Iterable[Row], gpus: int = 8) -> dict[str, float]:
    """GB on disk, by what they are for. DVC keeps each out in its cache and, where it cannot link, once more."""
    rows = list(rows)
    sweep = sum(row.weights for row in rows if row.stage == "vit_sweep")
    other = sum(row.weights for row in rows) - sweep
    items = {row.stage: len(row.hours) for row in rows}
    busy = sorted((3 * row.weights / items[row.stage] for row in rows for _ in row.hours), reverse=True)[:gpus]
    return {
        "weights of the sweep": sweep,
        "all other weights": other,
        "data sets and sentences": SETS,
        costs.AGAIN: sweep + other + SETS,
        "downloads": DOWNLOADS,
        f"checkpoints of {gpus} stages, at most": sum(busy),  # weights and two moments of every run, until all are done
    }
