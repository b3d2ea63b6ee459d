"""How time and memory grow: exponents on doubly logarithmic axes, and a figure.

What should be linear must not exceed an exponent of 1.1. Attention forms τ² weights, so the stack may grow with τ²; QR
factors cost τ m_h² and their singular values m_h³.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.ticker import LogLocator

from attnrate.laws.powerlaw import loglog_slope
from attnrate.report.style import figure
from attnrate.small.loop import train
from attnrate.small.transformer import Transformer
from attnrate.spectra.measure import measure
from attnrate.spectra.values import singular_values
from attnrate.translation import beam
from attnrate.translation import model as seq2seq
from attnrate.translation.tokens import Sentences
from attnrate.vit import model as vit
from benchmarks import data_paths
from benchmarks.common import PARAMS, Row, alternate, as_stage
from benchmarks.memory import peak

SLACK = 0.1
Call = Callable[[], object]


@dataclass
class Curve:
    path: str
    axis: str
    order: int  # the exponent that the algorithm should have at most
    sizes: list[int]
    seconds: list[float] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)


def stack_step(models: int = 8, tau: int = 32, mh: int = 16, batch: int = 8) -> Call:
    model = Transformer([mh] * models, list(range(models)))
    x = torch.rand(batch, tau, 1)
    return lambda: train(model, lambda _: model(x).square().mean((1, 2, 3)), steps=2, lr=1e-6)


def spectra(matrices: int = 64, tau: int = 128, mh: int = 16) -> Call:
    q, k = torch.randn(2, matrices, tau, mh)
    return lambda: singular_values(q, k)


def shape() -> dict:
    return {k: PARAMS.vit.model[k] for k in ("image_size", "patch", "width", "depth", "heads", "mlp_ratio")}


def vit_spectra(images: int) -> Call:
    model, x = vit.build("qk", 16, **shape()), torch.randn(images, 3, 32, 32)
    return lambda: measure(model, x.split(16), "tokens")


def vit_step(images: int = 32, mh: int = 8) -> Call:
    model = vit.build("qk", mh, **shape())
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    x, y = torch.randn(images, 3, 32, 32), torch.randint(0, 10, (images,))

    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimiser.step()

    return step


def decode(tokens: int, sentences: int = 8) -> Call:
    p = PARAMS.translation
    model = seq2seq.build(vocabulary=p.tokens.vocabulary, **p.model | {"dropout": 0.0}, seed=0)
    source = Sentences.of(np.random.default_rng(0).integers(3, p.tokens.vocabulary, (sentences, tokens)))
    return lambda: beam.translate(model, source, beams=1, length_penalty=1.0, batch=sentences)


CASES: list[tuple[str, str, int, list[int], Callable[[int], Call]]] = [
    ("stack step", "models", 1, [4, 8, 16, 32], lambda n: stack_step(models=n)),
    ("stack step", "τ", 2, [32, 64, 128, 256], lambda n: stack_step(tau=n)),
    ("stack step", "m_h", 1, [8, 16, 32, 64], lambda n: stack_step(mh=n)),
    ("spectra", "images", 1, [64, 128, 256, 512], vit_spectra),
    ("spectra", "τ", 1, [64, 128, 256, 512], lambda n: spectra(tau=n)),
    ("spectra", "m_h", 3, [8, 16, 32, 64], lambda n: spectra(mh=n)),
    ("ViT step", "images", 1, [16, 32, 64, 128], lambda n: vit_step(images=n)),
    ("ViT step", "m_h", 1, [4, 8, 16, 32], lambda n: vit_step(mh=n)),
    ("decoding", "tokens", 1, [16, 32, 64, 128], decode),
]
DATA = {
    "cifar10": [7_500, 15_000, 30_000, 60_000],
    "wmt14": [20_000, 40_000, 80_000, 160_000],
    "files": [20_000, 40_000, 80_000, 160_000],
}


def in_process(quick: bool) -> Iterator[Curve]:
    for path, axis, order, sizes, make in CASES:
        sizes = [s // 4 for s in sizes[:3]] if quick else sizes
        calls = {str(n): make(n) for n in sizes}
        times = alternate(calls, 1 if quick else 5)
        yield Curve(path, axis, order, sizes, [times[str(n)] for n in sizes], [peak(call) for call in calls.values()])


def in_processes(quick: bool) -> Iterator[tuple[Curve, float]]:
    """Curves of the data paths, and peak memory over the bytes of the largest input."""
    for kind, sizes in DATA.items():
        curve = Curve(kind, data_paths.KINDS[kind], 1, [sizes[0] // 50] if quick else sizes)
        with tempfile.TemporaryDirectory() as folder:
            for n in curve.sizes:
                held = data_paths.prepare(kind, Path(folder) / str(n), n)
                runs = [data_paths.measure(kind, Path(folder) / str(n), n) for _ in range(1 if quick else 3)]
                curve.seconds.append(float(np.median([r["seconds"] for r in runs])))
                curve.bytes.append(float(np.median([r["bytes"] for r in runs])))
        yield curve, curve.bytes[-1] / held


def rows(curve: Curve) -> Iterator[Row]:
    for what, values in (("time", curve.seconds), ("memory", curve.bytes)):
        name = f"{curve.path}: exponent of {what} in {curve.axis}"
        if len(values) < 3 or min(values) == 0:  # too few points, or nothing beyond what the process already held
            yield Row(name, "", None, curve.order + SLACK, "≤", "")
            continue
        fit = loglog_slope(curve.sizes, values)
        note = f"95 %: {fit['low']:.2f} to {fit['high']:.2f}; {curve.axis} {curve.sizes[0]:,} to {curve.sizes[-1]:,}"
        yield Row(name, "", float(fit["slope"]), curve.order + SLACK, "≤", "", note=note)


def draw(curves: list[Curve], out: Path) -> None:
    """Time and memory over those of the smallest size, against the size over the smallest."""
    axes_of = {"m_h": "$m_h$"} | dict.fromkeys(("images", "lines"), "images and lines")
    axes_of |= dict.fromkeys(("τ", "tokens"), "τ and tokens")
    panels = list(dict.fromkeys(axes_of.get(c.axis, c.axis) for c in curves))
    fig, axes = figure.plt.subplots(2, len(panels), figsize=(3 * len(panels), 5.4), squeeze=False, sharex="col")
    for column, panel in enumerate(panels):
        shown = [c for c in curves if axes_of.get(c.axis, c.axis) == panel]
        for ax, key in zip(axes[:, column], ("seconds", "bytes"), strict=True):
            for curve in shown:
                values = np.array(getattr(curve, key))
                if values.min() > 0:
                    ax.loglog(np.array(curve.sizes) / curve.sizes[0], values / values[0], "o-", label=curve.path)
            ax.loglog([1, 8], [1, 8], ":", color="0.5", lw=1, label="linear")
            ax.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
            ax.yaxis.set_major_locator(LogLocator(base=2))
            ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
            ax.minorticks_off()
        axes[0, column].set_title(panel)
        axes[1, column].set_xlabel("size over the smallest")
        axes[0, column].legend()
    axes[0, 0].set_ylabel("time over that of the smallest")
    axes[1, 0].set_ylabel("memory over that of the smallest")
    figure.save("growth", fig, out)


def run(quick: bool, out: Path) -> Iterator[Row]:
    curves, extra, beam.EXTRA = [], beam.EXTRA, 0  # random weights do not stop
    torch.manual_seed(0)
    try:
        with as_stage():
            for curve in in_process(quick):
                curves.append(curve)
                yield from rows(curve)
    finally:
        beam.EXTRA = extra
    for curve, share in in_processes(quick):
        curves.append(curve)
        yield from rows(curve)
        note = f"{curve.sizes[-1]:,} {curve.axis}"
        yield Row(f"{curve.path}: peak memory over the bytes read", "", share, None, "≤", "x", note=note)
    draw(curves, out)
