"""Statistics of the attention spectra of any PyTorch model over a stream of inputs (section 5.2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from attnrate.core.errors import UserError
from attnrate.spectra.attention import SUPPORTED, Catch
from attnrate.spectra.values import Moments, Spectra

RANKS = ("effective", "energy90", "energy99")


@dataclass(frozen=True)
class Measured:
    """Layers, heads and k count from 1."""

    spectra: pd.DataFrame  # layer, head, k, mean, sd, n
    ranks: pd.DataFrame  # layer, head, three ranks with their sd, n
    layers: list[str]  # the modules' names
    notes: dict[str, list[str]]  # what a reader should know → the modules it is true of
    violins: dict[str, np.ndarray]  # first head of the "first" and "last" layer: (inputs, K), nan where τ < k
    inputs: int


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
            table = np.full((max(n, 2 * have), max(k, values.shape[1])), np.nan, np.float32)
            table[: self.n, :k] = self.table[: self.n]
            self.table = table
        self.table[self.n : n, : values.shape[1]] = values
        self.n = n


@torch.no_grad()
def measure(
    model: nn.Module,
    batches: Iterable[Mapping[str, Tensor] | Tensor],
    normalisation: str = "none",
    centred: bool = False,
) -> Measured:
    """Each batch is what the model's forward takes, without padding; of each input two heads' values are kept.

    centred: without what is constant in a row of q kᵀ, which the softmax ignores: keys minus their mean.
    """
    found: list[dict[int, Spectra]] = []  # for each layer by number of values, which short inputs have fewer of
    kept: list[Rows] = []  # the first head's values; of the first layer and of the last so far

    def use(layer: int, q: Tensor, k: Tensor) -> None:
        if layer == len(found):
            found.append({})
            kept[1:] = []
            kept.append(Rows())
        if centred:
            k = k - k.mean(-2, keepdim=True)
        spectra = found[layer].setdefault(min(q.shape[-2:]), Spectra(normalisation))
        values = spectra.add(q, k)[:, 0]
        if layer in (0, len(found) - 1):
            kept[min(layer, 1)].add(values.float().numpy())

    catch = Catch(use)
    inputs = 0
    model.eval()
    with catch.watching(model):
        for batch in batches:
            named = isinstance(batch, Mapping)
            size = len(next(iter(batch.values())) if named else batch)
            catch.begin(size)
            try:
                model(**batch) if named else model(batch)
            except (TypeError, ValueError, IndexError, RuntimeError) as e:
                raise UserError(f"the model's forward pass failed ({type(e).__name__}: {brief(e)})") from e
            inputs += size
    if not found:
        raise UserError(f"the model has no self-attention that can be seen; {SUPPORTED}")
    if inputs < 2:
        raise UserError("one input has no mean and no spread: give two or more")
    spectra, ranks = tables(found)
    violins = {name: rows.table[: rows.n] for name, rows in (("first", kept[0]), ("last", kept[-1]))}
    return Measured(spectra, ranks, catch.layers, catch.notes, violins, inputs)


def brief(e: Exception) -> str:
    text = " ".join(str(e).split())
    return text if len(text) <= 300 else f"{text[:300]} …"


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
