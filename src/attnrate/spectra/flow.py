"""Attention written out as product, softmax, product: which calls carry scores on, and what they do to them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

PRODUCTS = {"matmul", "bmm", "baddbmm"}
MOVES = {"view", "view_as", "reshape", "reshape_as", "transpose", "permute", "swapaxes", "swapdims", "movedim"}
MOVES |= {"moveaxis", "contiguous", "flatten", "unflatten", "squeeze", "unsqueeze", "clone", "detach", "__get__"}
MOVES |= {"expand", "expand_as", "__getitem__", "t"}
CASTS = {"float", "double", "half", "bfloat16", "to", "type", "type_as"}
TIMES, OVER = {"mul", "mul_", "multiply"}, {"div", "div_", "divide", "true_divide"}
OTHERS = {"add", "add_", "sub", "sub_", "masked_fill", "masked_fill_", "where", "max", "maximum", "clamp", "clamp_min"}
OTHERS |= {"clamp_", "tanh", "dropout", "dropout_", "nan_to_num"}
CARRY = MOVES | CASTS | TIMES | OVER | OTHERS  # what else is done to scores, such as a mixing of heads, ends the trail


@dataclass
class Scores:
    """A product q kᵀ that may be attention, and the number of it among the products of a forward pass."""

    number: int
    name: str  # of the module
    q: Tensor  # (N, h, τ, D)
    k: Tensor  # (N, h, τ', D)
    capped: bool = False  # by a tanh
    masked: bool = False
    causal: bool = False
    biased: bool = False
    weights: Tensor | None = None  # after the softmax


@dataclass(frozen=True)
class Tag:
    """What a tensor is: scores times a factor, or (after the softmax) weights."""

    scores: Scores
    factor: Any = 1.0  # a number, or a tensor (…, h, 1, 1)
    weights: bool = False


def tag(value: Any) -> Tag | None:
    return getattr(value, "_attends", None) if isinstance(value, Tensor) else None


def put(value: Tensor, what: Tag) -> None:
    value._attends = what  # lives as long as the tensor does


def given(args: tuple, kwargs: dict) -> list:
    return [*args, *kwargs.values()]


def carry(name: str, args: tuple, kwargs: dict, out: Any) -> None:
    """Tag what comes out of a call that took tagged scores or weights."""
    values = given(args, kwargs)
    mine = next((value for value in values if tag(value)), None)
    if mine is None or not isinstance(out, Tensor) or out.numel() != mine.numel():
        return
    was = tag(mine)
    factor = was.factor
    if name == "tanh":
        was.scores.capped = True
    elif not was.weights and name in TIMES | OVER and mine is values[0 if name in OVER else values.index(mine)]:
        factor = scaled(factor, next((v for v in values if v is not mine), 1.0), name in OVER)
    put(out, Tag(was.scores, factor, was.weights))


def scaled(factor: Any, other: Any, over: bool) -> Any:
    """The factor after a multiplication or division: by a number, or by one for each head."""
    if isinstance(other, Tensor):
        if other.numel() == 1:
            other = other.item()
        elif other.dim() < 3 or other.shape[-1] != 1 or other.shape[-2] != 1:
            return factor  # a mask that multiplies
    return factor / other if over else factor * other


def canonical(x: Tensor, batch: int) -> Tensor | None:
    """(B h, τ, D), (B n, h, τ, D) or (B, n, h, τ, D) → (B n, h, τ, D), n windows an input; None: none of these."""
    if x.dim() == 3 and x.shape[0] % batch == 0:
        return x.unflatten(0, (batch, -1))
    if x.dim() == 5 and x.shape[0] == batch:
        return x.flatten(0, 1)
    return x if x.dim() == 4 and x.shape[0] % batch == 0 else None


def streams(args: tuple, kwargs: dict) -> int:
    """How many sequences of tokens a module is given; masks and positions have other dimensions."""
    return len({id(x) for x in given(args, kwargs) if isinstance(x, Tensor) and x.dim() == 3})


def together(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """q and k with the same leading dimensions, which a product broadcasts."""
    if q.shape[:-2] == k.shape[:-2]:
        return q, k
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    return q.expand(*lead, *q.shape[-2:]), k.expand(*lead, *k.shape[-2:])


def examine(scores: Scores, logits: Tensor, factor: Any, inputs: int) -> None:
    """What was done to the scores before the softmax, of the first input: masks shut out, biases are added."""
    q, k = (x[: len(x) // inputs] for x in (scores.q, scores.k))
    factor = factor.float() if isinstance(factor, Tensor) else factor
    plain = (q.float() @ k.float().mT * factor).flatten(0, -3)  # (n h, τ, τ')
    found = logits.reshape(-1, *logits.shape[-2:])[: len(plain)].float()
    shut = found <= plain.amin() - 1e4  # -inf, the least number, or -10,000 in older code
    scores.masked, scores.causal = bool(shut.any()), is_causal(shut)
    rest = torch.where(shut, 0.0, found - plain).abs().max()
    scores.biased = not scores.capped and bool(rest > 1e-3 * plain.abs().max().clamp(min=1e-6))


def is_causal(shut: Tensor) -> bool:
    """Whether exactly the later tokens are shut out: (…, τ, τ)."""
    tokens, keys = shut.shape[-2:]
    later = torch.ones(tokens, keys, dtype=torch.bool, device=shut.device).triu(1)
    return tokens == keys > 1 and bool((shut == later).all())


def shared(q: Tensor, k: Tensor) -> Tensor:
    """Keys, repeated for the queries that share them."""
    return k.repeat_interleave(q.shape[1] // k.shape[1], 1) if q.dim() == 4 and 1 < k.shape[1] < q.shape[1] else k


def softmax(q: Tensor, k: Tensor, scale: float, mask: Tensor | None, later: bool) -> Tensor:
    """What scaled_dot_product_attention multiplies values with; rows that are shut out in full are zero."""
    scores = q.float() @ k.float().mT * scale
    if later:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask.float()
    return scores.softmax(-1).nan_to_num(0.0)


def effects(mask: Tensor | None) -> tuple[bool, bool, bool]:
    """Whether a mask shuts anything out (False, -inf or the least number), adds anything else, and is causal."""
    if mask is None:
        return False, False, False
    if mask.dtype == torch.bool:
        return not bool(mask.all()), False, is_causal(~mask)
    shut = mask <= torch.finfo(mask.dtype).min / 2
    return bool(shut.any()), bool(((mask != 0) & ~shut).any()), is_causal(shut)
