"""Statistics of the attention spectra of any PyTorch model over a stream of inputs (section 5.2)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from attnrate.core.errors import UserError
from attnrate.spectra.attention import Call, Catch
from attnrate.spectra.values import Moments, Spectra, dense_values

RANKS = ("effective", "energy90", "energy99")
SPECTRA = ("scores", "centred", "softmax")
Batch = Mapping[str, Tensor] | Tensor | Sequence[Any]  # inputs, alone or with labels, which are not looked at
KEPT = 64  # values of an attention matrix after the softmax, which has as many as tokens; ranks count all


@dataclass(frozen=True)
class Measured:
    """Layers, heads and k count from 1."""

    spectra: pd.DataFrame  # layer, head, k, mean, sd, n
    ranks: pd.DataFrame  # layer, head, three ranks with their sd, n
    layers: list[str]  # the modules' names
    kinds: list[str]  # of each: self, causal, cross or pooled, and whether in windows
    notes: dict[str, list[str]]  # what a reader should know → the modules it is true of
    violins: dict[str, np.ndarray]  # first head of the "first" and "last" layer: (inputs, K), nan where τ < k
    inputs: int


def split(batch: Any) -> tuple[Any, Tensor | None]:
    """A batch's inputs and labels, if there are any: a DataLoader gives lists of one or two."""
    if not isinstance(batch, (tuple, list)):
        return batch, None
    if not 1 <= len(batch) <= 2:
        raise UserError(f"a batch of {len(batch)} parts: should be inputs, or inputs and labels")
    return batch[0], batch[1] if len(batch) == 2 else None


def merged(parts: Iterable[Moments]) -> tuple[int, np.ndarray, np.ndarray]:
    """Number, mean and sd of several streams as if they were one."""
    parts = list(parts)
    n = sum(p.n for p in parts)
    mean = sum(p.n * p.mean for p in parts) / n
    squares = sum(p.squares + p.n * (p.mean - mean) ** 2 for p in parts)
    return n, mean, np.sqrt(squares / max(1, n - 1))


def only(moments: Moments, k: int) -> Moments:
    """Those of the k-th value of each head."""
    part = Moments()
    part.n, part.mean, part.squares = moments.n, moments.mean[:, k], moments.squares[:, k]
    return part


class Rows:
    """Values of a stream of inputs, in one table that doubles: arrays of their own would scatter the heap."""

    def __init__(self):
        self.table, self.n = np.empty((0, 0), np.float32), 0

    def add(self, values: np.ndarray) -> None:  # (B, K); nan fills up what is shorter
        n, have, k = self.n + len(values), *self.table.shape
        if n > have or values.shape[1] > k:
            rows = max(n, 2 * have) if n > have else have  # wider inputs alone do not double it
            table = np.full((rows, max(k, values.shape[1])), np.nan, np.float32)
            table[: self.n, :k] = self.table[: self.n]
            self.table = table
        self.table[self.n : n, : values.shape[1]] = values
        self.n = n


class Gathered:
    """The spectra of one kind, of every layer."""

    def __init__(self, which: str, normalisation: str):
        # rows of a softmax add up to 1 whatever the number of tokens, so that its values are not divided by it
        self.which = which
        self.normalisation = "none" if which == "softmax" and normalisation == "tokens" else normalisation
        self.found: list[dict[int, Spectra]] = []  # by number of values, which short inputs have fewer of
        self.kept: list[Rows] = []  # the first head's values; of the first layer and of the last so far

    def use(self, call: Call) -> None:
        if call.layer == len(self.found):
            self.found.append({})
            self.kept[1:] = []
            self.kept.append(Rows())
        q, k = call.q, call.k
        least = min(q.shape[-2], k.shape[-2])
        size = min(least, KEPT if self.which == "softmax" else q.shape[-1])
        spectra = self.found[call.layer].setdefault(size, Spectra(self.normalisation))
        if self.which == "softmax":
            parts = (call.weights(i) for i in range(len(q) // call.windows))  # (windows, h, τ, τ') each
            s = torch.cat([dense_values(a.flatten(0, 1)).unflatten(0, a.shape[:2]) for a in parts])
            values = spectra.take(s, 1.0, call.windows, KEPT)
        else:
            values = spectra.add(q, k - k.mean(-2, keepdim=True) if self.which == "centred" else k, call.windows)
        if call.layer in (0, len(self.found) - 1):
            self.kept[min(call.layer, 1)].add(values[:, 0].float().numpy())


@torch.no_grad()
def measure_all(
    model: nn.Module,
    batches: Iterable[Batch],
    normalisation: str = "none",
    which: Sequence[str] = SPECTRA,
) -> dict[str, Measured]:
    """Several spectra in one pass. Each batch is what the model's forward takes, without padding.

    scores: of q kᵀ times the scale. centred: without what is constant in a row of it, which the softmax ignores: keys
    minus their mean. softmax: of the attention matrix, after mask and softmax.
    Of each input two heads' values are kept.
    """
    gathered = [Gathered(name, normalisation) for name in which]
    catch = Catch(lambda call: [each.use(call) for each in gathered])
    inputs = 0
    with catch.watching(model):
        for batch in batches:
            catch.run(model, split(batch)[0])
            inputs += catch.batch
    catch.something()
    if inputs < 2:
        raise UserError("one input has no mean and no spread: give two or more")
    results = {}
    for each in gathered:
        violins = {name: rows.table[: rows.n] for name, rows in (("first", each.kept[0]), ("last", each.kept[-1]))}
        results[each.which] = Measured(*tables(each.found), catch.layers, catch.kinds, catch.notes, violins, inputs)
    return results


def measure(
    model: nn.Module,
    batches: Iterable[Batch],
    normalisation: str = "none",
    centred: bool = False,
) -> Measured:
    """The spectra of scores, plain or centred."""
    which = "centred" if centred else "scores"
    return measure_all(model, batches, normalisation, [which])[which]


def tables(found: list[dict[int, Spectra]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    values, ranks = [], []
    for layer, by_size in enumerate(found, 1):
        for k in range(max(by_size)):
            n, mean, sd = merged(only(s.values, k) for size, s in by_size.items() if k < size)
            values += [(layer, head, k + 1, mean[head - 1], sd[head - 1], n) for head in range(1, len(mean) + 1)]
        n, mean, sd = merged(s.ranks for s in by_size.values())
        for head in range(len(mean)):
            pairs = [x for i in range(len(RANKS)) for x in (mean[head, i], sd[head, i])]
            ranks.append((layer, head + 1, *pairs, n))
    columns = [c for name in RANKS for c in (name, f"{name}_sd")]
    spectra = pd.DataFrame(values, columns=["layer", "head", "k", "mean", "sd", "n"])
    return (
        spectra.sort_values(["layer", "head", "k"], ignore_index=True),
        pd.DataFrame(ranks, columns=["layer", "head", *columns, "n"]),
    )
