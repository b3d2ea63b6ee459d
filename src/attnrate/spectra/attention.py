"""Queries and keys of every attention of a PyTorch model, whatever way it attends.

Caught are `scaled_dot_product_attention`, with it `nn.MultiheadAttention`, and attention written out as a product, a
softmax and a product, which is recognised by its dataflow (`flow`). What is caught is what is multiplied: after
projections, norms and rotary positions, so that q·k times the scale is the score before masks and softmax. A module may
also offer its `split_heads(x)`, queries, keys and values, their size `qk` and its `scale`, as this project's ViT does.
A softmax over anything else than such scores is refused by the name of its module, never guessed at; what attends
without a softmax of scores is named and left out.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch._ops import OpOverload

from attnrate.core.errors import UserError
from attnrate.spectra import flow
from attnrate.spectra.flow import Scores, Tag
from attnrate.spectra.watch import SUPPORTED, Watch

CHANNELS = re.compile("XCA|Channel|CrossCovariance")  # they pass channels as if they were tokens
CROSS = re.compile("cross|encoder_attn|EncDec|enc_dec|encoder_decoder|multihead_attn")
LATER = "causal: later tokens, the upper half, are masked; the scores are those before the mask"
BIASED = "with a bias added to the scores (relative positions): it is no part of QKᵀ and left out"
MASKED = "masked in part: the scores are those before the mask"
OPERANDS = ("input", "mat1", "batch1", "mat2", "batch2", "other", "weight")


@dataclass(frozen=True)
class Call:
    """One attention; q and k are multiplied by the root of the scale each."""

    layer: int  # from 0, by order of calls
    q: Tensor  # (N, h, τ, m_h); N is the number of inputs, times windows
    k: Tensor  # (N, h, τ', m_h); shared keys are repeated
    windows: int  # of an input, one after another; 1 where all tokens attend to all
    weights: Callable[[int], Tensor]  # (number of the input) → after mask and softmax, (windows, h, τ, τ')
    out: Tensor | None  # weights times values


class Catch(Watch):
    """While active, calls use(call) for each attention.

    `kinds` holds what the layers are. With `cut`, scores become those of cut(layer, q, k) and k: q, of (N, h, τ, D)
    each, without the scale. It takes the `plan` of an earlier catch of the same inputs, which tells the products that
    are scores.
    """

    def __init__(self, use: Callable[[Call], None], cut: Callable | None = None, plan: dict[int, int] | None = None):
        super().__init__()
        self.use, self.cut = use, cut
        self.plan: dict[int, int] = plan or {}  # number of the product → layer
        self.offers = cut is None  # whether split_heads is asked; a module's own scores cannot be changed there
        self.kinds: list[str] = []

    def begin(self, batch: int) -> None:
        super().begin(batch)
        self.layer, self.products = 0, 0
        self.done: set[int] = set()  # products that were attention
        # others that may be: who ran, and what was made of them; "" is a softmax that met no values yet
        self.open: dict[int, tuple[tuple[str, nn.Module], str]] = {}

    def enter(self, module: nn.Module, inputs: tuple) -> None:
        if self.offered(module):
            q, k, _ = module.split_heads(inputs[0])
            self.attention(q, k, scale=module.scale)

    def run(self, model: nn.Module, batch: Mapping[str, Tensor] | Tensor) -> Any:
        out = super().run(model, batch)
        for pair, via in self.open.values():
            self.running = [pair]
            if not via:
                self.refuse("whose softmax of scores is not multiplied with values")
            self.leave_out(via)
        return out

    def offered(self, module: nn.Module) -> bool:
        return self.offers and hasattr(module, "split_heads") and isinstance(getattr(module, "qk", None), int)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if not self.running or self.offered(self.running[-1][1]):  # caught when it was entered
            return func(*args, **kwargs)
        out = self.call(name, func, args, kwargs)
        flow.settle(name, args, kwargs, out)
        return out

    def call(self, name: str, func, args: tuple, kwargs: dict) -> Any:
        if name == "scaled_dot_product_attention":
            return self.fused(func, *args, **kwargs)
        if name == "multi_head_attention_forward":
            return self.opened(func, args, kwargs)
        if name in flow.PRODUCTS | flow.LOOSE:
            return self.product(name, func, args, kwargs)
        if name == "softmax":
            return self.softmax(func, args, kwargs)
        if name in flow.EXPS:
            return self.exponential(name, func, args, kwargs)
        if "attention" in name or (isinstance(func, OpOverload) and "softmax" in name and args[0].dim() > 2):
            self.leave_out(name.partition(".")[0])
        out = func(*args, **kwargs)
        if name in flow.TIMES | flow.OVER:
            self.divided(name in flow.OVER, flow.given(args, kwargs), out)
        flow.carry(name, args, kwargs, out)
        return out

    def opened(self, func, args, kwargs) -> Any:
        """nn.MultiheadAttention's function, with what it calls in sight: it would hand itself to this mode again."""
        before, F.has_torch_function = F.has_torch_function, lambda _: False
        try:
            with self:
                return func(*args, **kwargs)
        finally:
            F.has_torch_function = before

    def fused(self, func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **rest):
        number = self.count(query, key)
        if number in self.plan and self.cut:
            query = self.changed(number, query, key)
        out = func(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **rest)
        shut, bias, causal = flow.effects(attn_mask)
        if is_causal or shut:
            self.note(LATER if is_causal or causal else MASKED)
        if bias:
            self.note(BIASED)
        self.attention(query, key, attn_mask, is_causal, scale, causal=is_causal or causal, number=number, out=out)
        return out

    def count(self, q: Tensor, k: Tensor) -> int:
        """The number of this product of queries and keys (or transposed keys) in the forward pass."""
        self.products += 1
        return self.products - 1

    def product(self, name: str, func, args, kwargs) -> Tensor:
        args += tuple(kwargs.pop(key) for key in OPERANDS if key in kwargs)
        place = name in ("baddbmm", "addmm")  # of the queries among the arguments
        every = list(flow.tensors(args))
        pair = every[place : place + 2]
        fixed = [flow.constant(x) for x in pair]
        if name == "linear" and fixed[1]:
            out = func(*args, **kwargs)
            flow.put(out, flow.LAYER)
            return out
        if len(pair) < 2 or min(x.dim() for x in pair) < 2:
            return func(*args, **kwargs)
        met = flow.weighing(pair)
        if met and (met.stage == flow.WEIGHTS or (met.stage == flow.EXP and flow.whole(met.scores))):
            out = func(*args, **kwargs)  # weights times values
            self.written(met.scores, met.factor, out)
            return out
        number = self.count(*pair)
        q, k = None, None
        if name in flow.PRODUCTS and min(x.dim() for x in pair) > 2:
            q, k = flow.together(pair[0], pair[1].mT)
            if number in self.plan and self.cut:
                q = self.changed(number, q, k)
                args = (*args[:place], q, *args[place + 1 :])
            q, k = (flow.canonical(x, self.batch) for x in (q, k))
        out = func(*args, **kwargs)
        if met and not (any(fixed) or met.scores.learned):
            if met.stage == flow.EXP:  # may be divided by their sum later
                flow.put(out, replace(met, stage=flow.OUT))
                return out
            self.open[number] = self.running[-1], met.via or "products alone"
        if name == "einsum" and sum(not flow.constant(x) for x in every) > 2:
            self.open[number] = self.running[-1], name
        scores = Scores(number, self.running[-1][0], q, k, any(fixed))
        if q is None or k is None:
            via = name if name in flow.LOOSE else f"{name} of {out.dim()} dimensions"
            flow.put(out, Tag(scores, stage=flow.OTHER, via=via))
        else:
            flow.put(out, Tag(scores, kwargs.get("alpha", 1.0)))
        return out

    def softmax(self, func, args, kwargs) -> Tensor:
        logits = args[0] if args else kwargs["input"]
        found = flow.tag(logits)
        out = func(*args, **kwargs)
        last = kwargs.get("dim", args[1] if len(args) > 1 else None) in (-1, logits.dim() - 1)
        if found and found.stage == flow.SCORES:
            if not last:
                self.refuse("which takes a softmax of scores over another dimension than the keys")
            if not self.cut:
                flow.examine(found.scores, logits, found.factor, self.batch)
            flow.weigh(found.scores, out)
            self.open[found.scores.number] = self.running[-1], ""
            flow.put(out, replace(found, stage=flow.WEIGHTS))
        elif logits.dim() > 2:
            if not (found and found.stage == flow.GATE and last):
                self.refuse("which takes a softmax of what is no product of queries and keys")
            flow.put(out, flow.ROUTED)
        elif found and found.stage != flow.GATE:
            flow.put(out, replace(found, stage=flow.OTHER, via=found.via or "softmax"))
        return out

    def exponential(self, name: str, func, args, kwargs) -> Tensor:
        logits = flow.given(args, kwargs)[0]
        found = flow.tag(logits)
        attends = found and found.stage == flow.SCORES
        if attends and not self.cut:
            flow.examine(found.scores, logits, found.factor, self.batch)
        out = func(*args, **kwargs)
        flow.carry(name, args, kwargs, out)
        if attends:
            flow.weigh(found.scores, out)
            if not found.scores.learned:
                self.open[found.scores.number] = self.running[-1], "exp"
        return out

    def divided(self, over: bool, values: list, out: Tensor) -> None:
        """Exponentials that met their values before they were divided by their sum."""
        found = flow.tag(values[0]) or (not over and flow.tag(values[1]))
        if found and found.stage == flow.OUT:
            by = next((x for x in values if flow.tag(x) is not found), None)
            if isinstance(by, Tensor) and flow.divides(found.scores, by if over else 1 / by):
                found.scores.weights = found.scores.weights / flow.totals(found.scores)[..., None]
                self.written(found.scores, found.factor, out)

    def written(self, scores: Scores, factor: Any, out: Tensor) -> None:
        """An attention that was written out."""
        if scores.number in self.done:
            return
        self.done.add(scores.number)
        self.open.pop(scores.number, None)
        flow.masked_after(scores)
        if scores.masked:
            self.note(LATER if scores.causal else MASKED, scores.name)
        if scores.biased:
            self.note(BIASED, scores.name)
        if scores.capped:
            self.note("with scores capped by a tanh: they are those before it", scores.name)
        weights = scores.weights.reshape(*scores.q.shape[:-1], scores.k.shape[-2]).split(len(scores.q) // self.batch)
        self.emit(scores.number, scores.name, scores.q, scores.k, factor, scores.causal, weights.__getitem__, out)

    def attention(self, q, k, mask=None, later=False, scale=None, *, causal=False, number=-1, out=None) -> None:
        """Queries and keys as scaled_dot_product_attention takes them; later: later tokens are shut out."""
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        q, k = flow.together(q, flow.shared(q, k))
        four = [flow.canonical(x, self.batch) for x in (q, k)]
        if four[0] is None:
            self.refuse(f"whose queries are {tuple(q.shape)} for {self.batch} inputs")
        if mask is not None:
            mask = flow.canonical(mask.expand(*q.shape[:-1], k.shape[-2]), self.batch)

        def weights(i: int) -> Tensor:
            n = len(four[0]) // self.batch
            mine = slice(i * n, (i + 1) * n)
            return flow.softmax(four[0][mine], four[1][mine], scale, None if mask is None else mask[mine], later)

        self.emit(number, self.running[-1][0], *four, scale, causal, weights, out)

    def emit(self, number: int, name: str, q: Tensor, k: Tensor, scale: Any, causal: bool, weights, out) -> None:
        if CHANNELS.search(type(self.running[-1][1]).__name__):
            self.refuse("which attends between channels")
        if not (q.isfinite().all() and k.isfinite().all()):
            raise UserError(f"{name}: its queries or keys hold nan or inf; check the weights")
        windows, uneven = len(q) // self.batch, q.shape[-2] != k.shape[-2]
        cross = CROSS.search(name) or (uneven and self.streams[-1] > 1)
        kind = "cross" if cross else "pooled" if uneven else "causal" if causal else "self"
        kind += ", windows" if windows > 1 else ""
        if self.layer == len(self.layers):
            self.layers.append(name)
            self.kinds.append(kind)
        elif self.layers[self.layer] != name:
            raise UserError(f"{name}: the order of layers changes between inputs; {SUPPORTED}")
        elif not kind.startswith("self"):  # an input of one token tells nothing
            self.kinds[self.layer] = kind
        if uneven:
            self.note("queries and keys are of different number (pooling or cross-attention)", name)
        if windows > 1:
            self.note("attends within windows: a spectrum each, averaged over an input's windows", name)
        root = scale**0.5
        root = root.float().cpu() if isinstance(root, Tensor) else root
        q, k = q.float().cpu() * root, k.float().cpu() * root
        if not self.cut:
            self.plan[number] = self.layer
        self.layer += 1
        self.use(Call(self.layer - 1, q, k, windows, weights, out))

    def changed(self, number: int, q: Tensor, k: Tensor) -> Tensor:
        """The queries in place of q."""
        pair = (flow.canonical(x, self.batch) for x in flow.together(q, flow.shared(q, k)))
        return self.cut(self.plan[number], *pair).reshape(q.shape).to(q.dtype)
