"""How large the heads of a model must be: the least m_h that keeps its loss, and what smaller heads save.

found = advise(model, batches)    # batches: a list, or a function that gives them anew; (inputs, labels) with labels
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import nn
from tqdm import tqdm

from attnrate.core.errors import UserError
from attnrate.cut.factors import METHODS
from attnrate.cut.study import (
    Batches,
    Layer,
    Scan,
    Setting,
    Study,
    announce,
    available,
    default_sizes,
    each,
    scan,
    settings,
)
from attnrate.laws.fit import compare
from attnrate.laws.vit import FEWEST
from attnrate.rates.theory import tail_sum

BEST = "data"  # the method whose cut is advised: the best that does not look at the input itself
HARDLY = "the loss hardly changes whatever is cut; random weights, or a last layer of zeros, do this"


@dataclass(frozen=True)
class Advice:
    errors: pd.DataFrame  # method, layers ("all", a number, "advised"), mh, errors with intervals
    tails: pd.DataFrame  # layers, mh, tail: Σ_{k > m_h} σ_k² over Σ σ_k², of the mean singular values
    least: pd.DataFrame  # method, layers, mh, sure: whether the interval keeps the tolerance too
    savings: list[dict]
    fits: dict
    scan: Scan
    study: Study
    sizes: list[int]
    tolerance: float
    notes: list[str]

    @property
    def blind(self) -> str:
        """Why the loss tells nothing about heads, where it does not."""
        rows = self.errors[self.errors.layers == "all"]
        cut, full = rows[rows.mh < max(self.sizes)], rows[rows.mh == max(self.sizes)].iloc[0]
        if self.scan.kind == "classes" and full.accuracy <= 1 / self.scan.classes:
            return (
                f"the model is right on {full.accuracy:.3g} of the inputs, no more than chance: are these its classes?"
            )
        # an accuracy of a few inputs may stay as it is; their cross-entropy tells more
        moved = cut.loss / max(full.loss, 1e-30) - 1 if self.scan.kind == "classes" else cut.change
        barely = moved.abs().max() <= self.tolerance / 100 and cut.scores.max() > self.tolerance
        return HARDLY if barely else ""

    def advised(self, method: str = BEST) -> Setting:
        """The sizes to take: of each layer its own if they hold together, else one for all."""
        rows = self.errors[(self.errors.method == method) & (self.errors.layers == "advised")]
        if len(rows) and rows.change.iloc[0] <= self.tolerance:
            return _together(self.least, method, self.scan.layers)
        m = _least(self.least, method, "all")
        return Setting(method, "all", m, {i: min(m, x.size) for i, x in enumerate(self.scan.layers)})


def advise(
    model: nn.Module,
    batches: Batches,
    *,
    sizes: Sequence[int] | None = None,
    tolerance: float = 0.01,
    methods: Sequence[str] = METHODS,
    kind: str | None = None,
    progress: bool = False,
) -> Advice:
    """Cut the heads of every layer alone and of all at once to each size, and measure what it does.

    kind, of loss: one of `losses.KINDS`; without it, what labels and outputs ask for.
    """
    number = 0

    def counted() -> Iterator[tuple]:
        nonlocal number
        for batch in each(batches):
            number += 1
            yield batch

    seen = scan(model, counted, kind)
    largest = max(layer.size for layer in seen.layers)
    sizes = sorted({*(sizes or default_sizes(largest)), largest})
    if sizes[0] < 1 or sizes[-1] > largest:
        raise UserError(f"sizes {sizes[0]} to {sizes[-1]}: should lie between 1 and the largest head, {largest}")
    if len(sizes) == 1:
        raise UserError(f"nothing to try: heads have a size of {largest}, and no smaller size is given")
    found = available(seen.layers, methods)
    notes = [f"{what}: {names[0]} and the like" for what, names in seen.notes.items()]
    if "weights" in methods and "weights" not in found:
        name = next(layer.name for layer in seen.layers if not layer.origin)
        notes.append(
            f"not cut by weights: queries or keys of {name} are more than a linear layer's output (rotary positions, "
            "norms); a cut by data would be a projection after that, and saves key cache, not parameters"
        )
    study, cases = Study(model, seen, found), settings(seen.layers, found, sizes)
    if progress:
        announce(seen, len(cases) + 1)
    passes = number * (len(cases) + len(found) * (len(seen.layers) > 1))  # batch by batch
    with tqdm(total=passes, unit="pass", disable=None if progress else True) as bar:
        errors = study.run(batches, cases, bar)
        least = _all_least(errors, tolerance)
        if len(seen.layers) > 1:
            together = [_together(least, method, seen.layers) for method in found]
            errors = pd.concat([errors, study.run(batches, together, bar)], ignore_index=True)
    saved = []
    if BEST in found:
        m = _least(least, BEST, "all")
        saved.append(savings(seen.layers, {i: min(m, x.size) for i, x in enumerate(seen.layers)}, model, "all"))
        if len(seen.layers) > 1:
            saved.append(savings(seen.layers, _together(least, BEST, seen.layers).sizes, model, "advised"))
    return Advice(errors, tails(seen.layers, sizes), least, saved, fits(errors), seen, study, sizes, tolerance, notes)


def _all_least(errors: pd.DataFrame, tolerance: float) -> pd.DataFrame:
    """The least size from which on every size keeps the tolerance."""
    rows = []
    for (method, layers), part in errors.groupby(["method", "layers"], sort=False):
        part = part.sort_values("mh", ascending=False)
        kept = part[(part.change <= tolerance).cumprod().astype(bool)]
        best = kept.iloc[-1]
        rows.append(
            {"method": method, "layers": layers, "mh": int(best.mh), "sure": bool(best.change_high <= tolerance)}
        )
    return pd.DataFrame(rows)


def _least(least: pd.DataFrame, method: str, layers: str) -> int:
    return int(least[(least.method == method) & (least.layers == layers)].mh.iloc[0])


def _together(least: pd.DataFrame, method: str, layers: list[Layer]) -> Setting:
    alone = len(layers) > 1
    sizes = {i: min(x.size, _least(least, method, str(i + 1) if alone else "all")) for i, x in enumerate(layers)}
    return Setting(method, "advised", 0, sizes)


def tails(layers: list[Layer], sizes: Sequence[int]) -> pd.DataFrame:
    """The theory's tail sum (11), a share of the whole; a layer's is the mean of its heads'."""
    rows = []
    for m in sizes:
        shares = [
            np.mean([tail_sum(s, m) / max(tail_sum(s, 0), 1e-300) for s in layer.values.mean]) for layer in layers
        ]
        rows += [{"layers": str(i), "mh": m, "tail": share} for i, share in enumerate(shares, 1)]
        rows.append({"layers": "all", "mh": m, "tail": np.mean(shares)})
    return pd.DataFrame(rows)


def fits(errors: pd.DataFrame) -> dict:
    """c m^-a + b, with and without b, and c e^(-a m) + b, on what all layers at once give at m_h < D."""
    found = {}
    rows = errors[(errors.layers == "all") & (errors.mh < errors.mh.max())]
    for method, part in rows.groupby("method"):
        if len(part) >= FEWEST:
            laws = {what: compare(part.mh, part[what]) for what in ("change", "scores")}
            found[method] = {what: {k: v.to_dict() for k, v in each.items()} for what, each in laws.items()}
    return found


def savings(layers: list[Layer], sizes: dict[int, int], model: nn.Module, name: str) -> dict:
    """Of queries and keys: parameters, FLOPs of an input (projections and scores), bytes of key cache a token."""
    total = {"parameters": 0, "flops": 0.0, "key_cache": 0}
    saved = dict(total)
    width = next(model.parameters()).element_size()
    counted = set()
    for i, layer in enumerate(layers):
        gone, keys = layer.size - sizes[i], layer.heads // layer.group
        for into, many in ((total, layer.size), (saved, gone)):
            into["flops"] += 2 * layer.pairs * layer.heads * many
            if layer.kind.startswith("causal"):
                into["key_cache"] += keys * many * width
            if layer.origin:
                each = ((layer.origin.q, layer.heads, layer.queries), (layer.origin.k, keys, layer.keys))
                for trail, heads, tokens in each:
                    inputs = trail.weight.shape[0 if trail.across else 1]
                    into["flops"] += 2 * tokens * heads * inputs * many
                    if layer.name not in counted:  # layers may share weights
                        into["parameters"] += heads * many * (inputs + (trail.bias is not None))
        counted.add(layer.name)
    number = sum(p.numel() for p in model.parameters())
    return {"layers": name, "sizes": [sizes[i] for i in range(len(layers))], "model_parameters": number} | {
        key: {"of": total[key], "saved": saved[key]} for key in total
    }
