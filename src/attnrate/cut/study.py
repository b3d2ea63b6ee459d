"""The error of scores, of attention outputs and of a model's loss against m_h, for each layer alone and for all."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor, nn
from tqdm import tqdm

from attnrate.core.errors import UserError
from attnrate.cut import losses
from attnrate.cut.factors import METHODS, Factors, factors, grouped, left_out, second_moments, shared
from attnrate.cut.origins import Origin, origins
from attnrate.spectra.attention import Call, Catch
from attnrate.spectra.measure import split
from attnrate.spectra.values import Moments, singular_values

Batch = Mapping[str, Tensor] | Tensor | tuple[Any, Tensor]
Batches = Sequence[Batch] | Callable[[], Iterable[Batch]]


@dataclass
class Layer:
    """What a scan of all inputs leaves of one attention."""

    name: str
    kind: str
    heads: int
    size: int  # D
    group: int  # heads that share keys
    a: Tensor  # second moments of queries and of keys, (h, D, D)
    b: Tensor
    values: Moments = field(default_factory=Moments)  # singular values of scores, (h, D)
    pairs: float = 0.0  # of queries and keys, of queries, of keys: mean over inputs
    queries: float = 0.0
    keys: float = 0.0
    origin: Origin | None = None


@dataclass(frozen=True)
class Setting:
    method: str
    layers: str  # "all", the number of a layer, or "advised"
    mh: int  # 0: each layer its own
    sizes: dict[int, int]  # layer → m_h


@dataclass(frozen=True)
class Scan:
    layers: list[Layer]
    notes: dict[str, list[str]]
    inputs: int
    seconds: float
    kind: str  # of loss
    classes: int  # outputs of the model, the last dimension


def each(batches: Batches) -> Iterator[tuple[Any, Tensor | None]]:
    found = batches() if callable(batches) else batches
    if found is batches and iter(found) is found:
        raise UserError("batches are read several times: give a list, or a function that gives them anew")
    yield from map(split, found)


@torch.no_grad()
def scan(model: nn.Module, batches: Batches, kind: str | None = None) -> Scan:
    """One pass over all inputs; a second one over the first of them, for the weights."""
    layers: list[Layer] = []

    def use(call: Call) -> None:
        q, k = call.q, call.k
        a, b = (second_moments(x).sum(0) for x in (q, k))
        if call.layer == len(layers):
            name, attends = catch.layers[call.layer], catch.kinds[call.layer]
            zero = torch.zeros_like(a)
            layers.append(Layer(name, attends, q.shape[1], q.shape[-1], shared(k), zero, zero.clone()))
        layer = layers[call.layer]
        layer.a += a
        layer.b += b
        s = singular_values(q.flatten(0, 1), k.flatten(0, 1)).unflatten(0, (-1, call.windows, layer.heads)).mean(1)
        layer.values.add(torch.nn.functional.pad(s, (0, layer.size - s.shape[-1])))
        n = len(q) * q.shape[-2]
        layer.queries, layer.keys = layer.queries + n, layer.keys + len(k) * k.shape[-2]
        layer.pairs += n * k.shape[-2]

    catch, inputs, start = Catch(use), 0, time.perf_counter()
    catch.offers = False
    first, classes = None, 0
    with catch.watching(model):
        for batch, target in each(batches):
            out = catch.run(model, batch)
            kind = kind or losses.kind_of(out, target)
            said = losses.outputs(out)
            losses.check(kind, said, target)
            classes = said.shape[-1]
            first = batch if first is None else first
            inputs += catch.batch
    seconds = time.perf_counter() - start
    catch.something()
    if inputs < 2:
        raise UserError("one input has no mean and no spread: give two or more")
    for layer, origin in zip(layers, origins(model, first), strict=True):
        layer.origin = origin
        layer.queries, layer.keys, layer.pairs = (x / inputs for x in (layer.queries, layer.keys, layer.pairs))
    return Scan(layers, catch.notes, inputs, seconds, kind, classes)


def static(layers: list[Layer], method: str) -> list[Factors]:
    """The factors of every layer that are the same for all inputs."""
    found = []
    for layer in layers:
        a, b = layer.origin.moments() if method == "weights" else (layer.a, layer.b)
        found.append(factors(grouped(a.cpu(), layer.group), b.cpu()))
    return found


def available(layers: list[Layer], methods: Sequence[str] = METHODS) -> list[str]:
    """Without `weights` where queries or keys are not a linear layer's output."""
    return [m for m in methods if m != "weights" or all(layer.origin for layer in layers)]


class Study:
    """Measures settings, a forward pass each, on batches; the full model's pass of each batch is shared."""

    def __init__(self, model: nn.Module, seen: Scan, methods: Sequence[str]):
        self.model, self.seen, self.methods = model, seen, methods
        self.fixed = {m: static(seen.layers, m) for m in methods if m != "scores"}
        self.scores = {(m, i): Moments() for m in methods for i in range(len(seen.layers))}  # of relative errors
        self.forms: dict[tuple, Tensor] = {}

    @torch.no_grad()
    def run(self, batches: Batches, settings: Sequence[Setting], bar: tqdm | None = None) -> pd.DataFrame:
        """A row for each setting: loss, change and their like, with 95 % intervals over inputs."""
        loss = [Moments() for _ in settings]
        out = [{i: Moments() for i in setting.sizes} for setting in settings]
        for batch, target in each(batches):
            outs: list[Tensor] = []
            own: list[Factors] = []  # of the inputs themselves

            def look(call: Call, outs=outs, own=own) -> None:
                outs.append(call.out)
                self._errors(call, own)

            catch = Catch(look)
            catch.offers = False
            with catch.watching(self.model):
                full = losses.outputs(catch.run(self.model, batch))
            target = None if target is None else target.to(full.device)
            for setting, moments, errors in zip(settings, loss, out, strict=True):

                def compare(call: Call, errors=errors, outs=outs, n=catch.batch) -> None:
                    if call.layer in errors:
                        before, after = (x.float().reshape(n, -1) for x in (outs[call.layer], call.out))
                        size = before.norm(dim=1).clamp(min=1e-30)
                        errors[call.layer].add(((after - before).norm(dim=1) / size).cpu())

                cut = Catch(compare, self._cut(setting, own), catch.plan)
                with cut.watching(self.model):
                    changed = losses.outputs(cut.run(self.model, batch))
                moments.add(losses.compare(self.seen.kind, full, changed, target))
                if bar is not None:
                    bar.update()
        return pd.DataFrame([self._row(*row) for row in zip(settings, loss, out, strict=True)])

    @torch.no_grad()
    def outputs(self, batch: Any, setting: Setting) -> Tensor:
        """What the model says with heads cut so."""
        plan = Catch(lambda call: None)
        plan.offers = False
        with plan.watching(self.model):
            plan.run(self.model, batch)
        cut = Catch(lambda call: None, self._cut(setting, []), plan.plan)
        with cut.watching(self.model):
            return losses.outputs(cut.run(self.model, batch))

    def _errors(self, call: Call, own: list[Factors]) -> None:
        """Relative errors of scores for all m_h at once, of every method."""
        a, b = second_moments(call.q), second_moments(call.k)  # (N, h, D, D)
        norms = (a * b).sum((-1, -2))
        for method in self.methods:
            if method == "scores":
                found = factors(a, b)
                own.append(found)
            else:
                found = self.fixed[method][call.layer]
            parts = left_out(found, a, b).unflatten(0, (-1, call.windows)).sum((1, 2))  # (B, D + 1)
            total = norms.unflatten(0, (-1, call.windows)).sum((1, 2))[:, None].clamp(min=1e-300)
            self.scores[method, call.layer].add((parts / total).sqrt())

    def _cut(self, setting: Setting, own: list[Factors]) -> Callable[[int, Tensor, Tensor], Tensor]:
        def cut(layer: int, q: Tensor, k: Tensor) -> Tensor:
            m = setting.sizes.get(layer, q.shape[-1])
            if m >= q.shape[-1]:
                return q
            if setting.method != "scores":
                key = (setting.method, layer, m)
                if key not in self.forms:
                    self.forms[key] = self.fixed[setting.method][layer].form(m).to(q)
                return q @ self.forms[key]
            alone = len(setting.sizes) == 1  # then its queries and keys are the full model's
            found = own[layer] if alone else factors(*(second_moments(x.float().cpu()) for x in (q, k)))
            return q @ found.form(m).to(q)

        return cut

    def _row(self, setting: Setting, loss: Moments, out: dict[int, Moments]) -> dict:
        column = dict(zip(losses.COLUMNS, loss.mean, strict=True))
        half = stats.t.ppf(0.975, max(1, loss.n - 1)) * loss.sd / np.sqrt(loss.n)
        change, width = (x[1] / max(column["unit"], 1e-30) for x in (loss.mean, half))
        row = {"method": setting.method, "layers": setting.layers, "mh": setting.mh, "n": loss.n}
        scores = [self.scores[setting.method, i] for i in setting.sizes]
        at = list(setting.sizes.values())
        for name, parts in (
            ("scores", [(s.mean[m], s.sd[m]) for s, m in zip(scores, at, strict=True)]),
            ("outputs", [(float(o.mean), float(o.sd)) for o in out.values()]),
        ):
            mean, sd = np.mean(parts, 0)  # over layers; inputs move them together, so that sds are not divided
            wide = stats.t.ppf(0.975, max(1, loss.n - 1)) * sd / np.sqrt(loss.n)
            row |= {name: mean, f"{name}_low": max(0.0, mean - wide), f"{name}_high": mean + wide}
        row |= {"loss": column["loss"], "loss_low": column["loss"] - half[0], "loss_high": column["loss"] + half[0]}
        row |= {"change": change, "change_low": change - width, "change_high": change + width}
        return row | {"accuracy": column["accuracy"]}


def settings(layers: list[Layer], methods: Sequence[str], sizes: Sequence[int], alone: bool = True) -> list[Setting]:
    """All layers at once, and each alone, at every size; a layer whose heads are smaller keeps them."""
    found = []
    for method in methods:
        for m in sizes:
            found.append(Setting(method, "all", m, {i: min(m, x.size) for i, x in enumerate(layers)}))
            if alone and len(layers) > 1:
                parts = ((i, x) for i, x in enumerate(layers) if m <= x.size)
                found += [Setting(method, str(i + 1), m, {i: m}) for i, x in parts]
    return found


def default_sizes(largest: int, number: int = 8) -> list[int]:
    """Up to `number` sizes from 1 to D, evenly on a logarithmic scale; where that is too fine, the least others."""
    even = {round(m) for m in np.geomspace(1, largest, number)}
    others = [m for m in range(1, largest + 1) if m not in even]
    return sorted([*even, *others[: number - len(even)]])


def announce(seen: Scan, number: int) -> None:
    seconds = seen.seconds * number
    about = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    print(f"{number} forward passes over {seen.inputs} inputs, about {about}", file=sys.stderr)


def curves(
    model: nn.Module, batches: Batches, sizes: Sequence[int], methods: Sequence[str] = ("scores", "data")
) -> pd.DataFrame:
    """Only all layers at once, for a stage: loss, accuracy and errors at every size, one row each."""
    seen = scan(model, batches)
    methods = available(seen.layers, methods)
    return Study(model, seen, methods).run(batches, settings(seen.layers, methods, sizes, alone=False))
