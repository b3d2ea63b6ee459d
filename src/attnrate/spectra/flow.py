"""Attention written out as product, softmax, product: which calls carry scores on, and what they do to them.

A softmax may be written by hand, as exponentials over their sum. Whatever else is done to a product of two things that
depend on the inputs is followed by name, so that attention without a softmax of scores does not go unseen.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

PRODUCTS = {"matmul", "bmm", "baddbmm", "mm", "linalg_matmul"}
LOOSE = {"einsum", "tensordot", "inner", "cdist", "linear", "addmm"}  # of these, queries and keys are not read
MOVES = {"view", "view_as", "reshape", "reshape_as", "transpose", "permute", "swapaxes", "swapdims", "movedim"}
MOVES |= {"moveaxis", "contiguous", "flatten", "unflatten", "squeeze", "unsqueeze", "clone", "detach", "__get__"}
MOVES |= {"expand", "expand_as", "__getitem__", "t"}
CASTS = {"float", "double", "half", "bfloat16", "to", "type", "type_as", "cpu", "cuda"}
TIMES, OVER = {"mul", "mul_", "multiply"}, {"div", "div_", "divide", "true_divide"}
OTHERS = {"add", "add_", "sub", "sub_", "masked_fill", "masked_fill_", "where", "max", "maximum", "clamp", "clamp_min"}
OTHERS |= {"clamp_", "tanh", "dropout", "dropout_", "nan_to_num"}
CARRY = MOVES | CASTS | TIMES | OVER | OTHERS
EXPS = {"exp", "exp_"}
PARTS = {"__getitem__", "__setitem__", "split", "chunk", "unbind", "narrow", "select", "cat", "stack"}
LAYERS = {"linear", "bilinear", "embedding"}  # with convolutions: they end every trail, also a mixing of heads

# what a tensor is; the last two are none of scores: a linear layer's output, and what else was made of a product
SCORES, EXP, WEIGHTS, OUT, GATE, OTHER = "scores", "exp", "weights", "exp times values", "gate", "other"


@dataclass
class Scores:
    """A product q kᵀ that may be attention, and the number of it among the products of a forward pass."""

    number: int
    name: str  # of the module
    q: Tensor | None = None  # (N, h, τ, D)
    k: Tensor | None = None  # (N, h, τ', D)
    learned: bool = False  # whether q or k do not depend on the inputs
    capped: bool = False  # by a tanh
    masked: bool = False
    causal: bool = False
    biased: bool = False
    weights: Tensor | None = None  # after the softmax, or so far exponentials
    zeros: int = 0  # among them at first


@dataclass(frozen=True)
class Tag:
    """What a tensor is: a stage of scores times a factor."""

    scores: Scores
    factor: Any = 1.0  # a number, or a tensor (…, h, 1, 1)
    stage: str = SCORES
    via: str = ""  # of OTHER: the function that made it so


LAYER = Tag(Scores(-1, ""), stage=GATE)
ROUTED = Tag(Scores(-1, ""), stage=OTHER, via="softmax of a linear layer's output")


def tag(value: Any) -> Tag | None:
    return getattr(value, "_attends", None) if isinstance(value, Tensor) else None


def put(value: Tensor, what: Tag) -> None:
    value._attends = what  # lives as long as the tensor does


def given(args: tuple, kwargs: dict) -> list:
    return [*args, *kwargs.values()]


def tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)


def constant(value: Tensor) -> bool:
    """Whether it does not depend on the model's inputs."""
    return isinstance(value, nn.Parameter) or hasattr(value, "_constant")


def settle(name: str, args: tuple, kwargs: dict, out: Any) -> None:
    """Mark what came out of constants, and of nothing, as constant."""
    outs = [*tensors(out), *(args[:1] if name == "__setitem__" else ())]
    if not outs:
        return
    fixed = all(map(constant, tensors(given(args, kwargs))))
    for each in outs:
        if fixed:
            each._constant = True
        else:
            for changed in (each, each._base):  # something was written into a constant
                vars(changed).pop("_constant", None) if changed is not None else None


def weighing(pair: list[Tensor]) -> Tag | None:
    """What values may be multiplied with here: weights, or whatever else was made of a product."""
    found = [t for x in pair if (t := tag(x)) and not (t.scores is ROUTED.scores and 1 in x.shape[-2:])]
    found = [t for t in found if t.stage not in (GATE, OUT)]
    return min(found, key=lambda t: (t.stage != WEIGHTS, t.scores.learned, t.stage != EXP), default=None)


def carry(name: str, args: tuple, kwargs: dict, out: Any) -> None:
    """Tag what comes out of a call that took tagged tensors."""
    values = given(args, kwargs)
    tagged = [value for value in tensors(values) if tag(value)]
    if not tagged:
        return
    # of several it is the scores, not what is added to them: a bias that is a product too, a linear layer's output
    mine = min(tagged, key=lambda value: (*(tag(value).stage == x for x in (GATE, OTHER)), tag(value).scores.learned))
    for each in args[:1] if name == "__setitem__" and mine is not args[0] else tensors(out):
        now = followed(name, values, mine, each) if each.is_floating_point() else None
        if now or tag(each):  # a call that works in place may end a trail
            put(each, now)


def followed(name: str, values: list, mine: Tensor, out: Tensor) -> Tag | None:
    was, same = tag(mine), out.numel() == mine.numel()
    stage, scores = was.stage, was.scores
    if stage in (GATE, OUT):
        return was if same and name in (CARRY - MOVES if stage == GATE else MOVES | CASTS) else None
    if same and name in CARRY and (stage == SCORES or name != "tanh"):
        if name == "tanh":
            scores.capped = True
        if stage in (EXP, WEIGHTS) and name not in MOVES | CASTS:
            scores.weights = out.detach()  # which does not know its scores: that were a cycle
        if stage == SCORES and (name in TIMES or (name in OVER and mine is values[0])):
            other = next((v for v in values if v is not mine), 1.0)
            return replace(was, factor=scaled(was.factor, other, name in OVER))
        return was
    if same and stage == SCORES and name in EXPS | {"log_softmax"}:  # the latter takes a constant from each row
        return replace(was, stage=EXP) if name in EXPS else was
    if (same or name in PARTS) and name not in LAYERS and "conv" not in name:
        return replace(was, stage=OTHER, via=was.via or ("exp" if stage == EXP else name))
    return None


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
    """What was done to the scores before the softmax, of the first input: masks shut out, biases are added.

    A constant of a row is none of these.
    """
    q, k = (x[: len(x) // inputs] for x in (scores.q, scores.k))
    factor = factor.float() if isinstance(factor, Tensor) else factor
    plain = (q.float() @ k.float().mT * factor).flatten(0, -3)  # (n h, τ, τ')
    rest = logits.reshape(-1, *logits.shape[-2:])[: len(plain)].float() - plain
    rest = rest - rest.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    shut = rest < -5e3  # -inf, the least number, or -10,000 in older code
    scores.masked, scores.causal = bool(shut.any()), is_causal(shut)
    rest = torch.where(shut, 0.0, rest).abs().max()
    scores.biased = not scores.capped and bool(rest > 1e-3 * plain.abs().max().clamp(min=1e-6))


def weigh(scores: Scores, weights: Tensor) -> None:
    """Remember what a softmax or an exponential gave."""
    scores.weights, scores.zeros = weights.detach(), int((weights == 0).sum())


def totals(scores: Scores) -> Tensor:
    return scores.weights.float().sum(-1)


def whole(scores: Scores) -> bool:
    """Whether exponentials were divided by their sum; rows that are shut out in full may be zero."""
    sums = totals(scores)
    return bool((((sums - 1).abs() < 1e-2) | (sums == 0)).all())  # bfloat16 is so coarse


def divides(scores: Scores, by: Tensor) -> bool:
    """Whether exponentials that met values already are now divided by their sum."""
    sums = totals(scores)
    return (
        isinstance(by, Tensor)
        and by.numel() == sums.numel()
        and torch.allclose(by.reshape_as(sums).float(), sums, 1e-2)
    )


def masked_after(scores: Scores) -> None:
    """A mask may also come after the exponential."""
    shut = scores.weights == 0
    if int(shut.sum()) > scores.zeros:
        scores.masked, scores.causal = True, is_causal(shut)


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
