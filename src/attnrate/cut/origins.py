"""Which rows of which weights a head's queries and keys come from, by following a linear layer's output.

A tensor of row numbers goes the way of the output: views, transpositions, splits. What else is done to queries or keys
(norms, rotary positions, a bias of their own) ends the trail: then no smaller weights give the cut scores.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnrate.spectra import flow
from attnrate.spectra.attention import Catch

MOVES = flow.MOVES | {"chunk", "split", "split_with_sizes", "tensor_split", "unbind", "repeat_interleave", "narrow"}
SAME = flow.CASTS | flow.TIMES | flow.OVER | {"dropout"}


@dataclass(frozen=True)
class Trail:
    weight: Tensor
    bias: Tensor | None
    across: bool  # whether outputs are columns of the weight, as in GPT-2's Conv1D
    rows: Tensor  # the output that each entry is

    def matrix(self) -> Tensor:
        """Weight and bias side by side, outputs in rows: (O, n + 1)."""
        weight = (self.weight.mT if self.across else self.weight).double()
        bias = weight.new_zeros(len(weight)) if self.bias is None else self.bias.double()
        return torch.cat([weight, bias[:, None]], 1)


@dataclass(frozen=True)
class Origin:
    """Of one layer: (h, D) rows each."""

    q: Trail
    k: Trail

    def moments(self) -> tuple[Tensor, Tensor]:
        """W_Q W_Qᵀ and W_K W_Kᵀ of every head: (h, D, D)."""
        pair = (trail.matrix()[trail.rows.to(trail.weight.device)] for trail in (self.q, self.k))
        return tuple(w @ w.mT for w in pair)


class Follow(Catch):
    """Catches, and leaves in `found` the trails of each product."""

    def __init__(self, use=lambda call: None):
        super().__init__(use)
        self.offers, self.found = False, {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs)
        self.trace(func, args, kwargs or {}, out)
        return out

    def count(self, q: Tensor, k: Tensor) -> int:
        self.found[self.products] = tuple(getattr(x, "_trail", None) for x in (q, k))
        return super().count(q, k)

    def trace(self, func, args: tuple, kwargs: dict, out) -> None:
        name = getattr(func, "__name__", "")
        if name in ("linear", "addmm"):
            if len(args) < 3:
                args = (*args, *(kwargs.get(key) for key in ("input", "weight", "bias") if key in kwargs))
            across = name == "addmm"
            weight, bias = (args[2], args[0]) if across else (args[1], args[2] if len(args) > 2 else None)
            rows = torch.arange(out.shape[-1], device=out.device).expand(out.shape).contiguous()
            out._trail = Trail(weight, bias, across, rows)
            return
        if name == "cat":  # a cache of keys, empty so far
            parts = [part for part in args[0] if part.numel()]
            if len(parts) == 1 and hasattr(parts[0], "_trail"):
                out._trail = parts[0]._trail
            return
        if name not in MOVES | SAME:
            return
        mine = next((v for v in flow.given(args, kwargs) if isinstance(v, Tensor) and hasattr(v, "_trail")), None)
        parts = out if isinstance(out, (tuple, list)) else (out,)
        if mine is None or not all(isinstance(part, Tensor) for part in parts):
            return
        trail = mine._trail
        if name in SAME:
            if out.shape == mine.shape and _scalar(args, mine, name):
                out._trail = trail
            return
        moved = func(*(trail.rows if v is mine else v for v in args), **kwargs)
        for part, rows in zip(parts, moved if isinstance(out, (tuple, list)) else (moved,), strict=True):
            part._trail = Trail(trail.weight, trail.bias, trail.across, rows)


def _scalar(args: tuple, mine: Tensor, name: str) -> bool:
    """Whether all that queries meet in a product is a number: how large scores are does not change their best form."""
    others = [v for v in args if isinstance(v, Tensor) and v is not mine]
    return name in flow.CASTS or all(v.numel() == 1 for v in others)


@torch.no_grad()
def origins(model: nn.Module, batch) -> list[Origin | None]:
    """Of every attention of the model, in order; None where the trail ends."""
    one = {k: v[:1] for k, v in batch.items()} if isinstance(batch, Mapping) else batch[:1]
    follow = Follow()
    with follow.watching(model):
        follow.run(model, one)
    found: list[Origin | None] = [None] * len(follow.layers)
    for number, layer in follow.plan.items():
        q, k = follow.found[number]
        if q is None or k is None:
            continue
        if not _constant(k.rows):  # keys that were transposed for the product
            k = Trail(k.weight, k.bias, k.across, k.rows.mT)
        if not (_constant(q.rows) and _constant(k.rows)):
            continue
        rows = [_heads(trail.rows) for trail in (q, k)]
        rows[1] = rows[1].repeat_interleave(len(rows[0]) // len(rows[1]), 0)
        pair = (Trail(t.weight, t.bias, t.across, r.cpu()) for t, r in zip((q, k), rows, strict=True))
        found[layer] = Origin(*pair)
    return found


def _constant(rows: Tensor) -> bool:
    """Whether every token has the same rows, (…, τ, D)."""
    return bool((rows == rows[..., :1, :]).all())


def _heads(rows: Tensor) -> Tensor:
    """(…, τ, D) of one input → (h, D); windows alike."""
    rows = flow.canonical(rows, 1)
    return rows[0, :, 0]
