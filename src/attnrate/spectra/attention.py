"""Queries and keys of every attention of a PyTorch model, whatever way it attends.

Caught are `scaled_dot_product_attention`, with it `nn.MultiheadAttention`, and attention written out as a product, a
softmax and a product, which is recognised by its dataflow (`flow`). What is caught is what is multiplied: after
projections, norms and rotary positions, so that q·k times the scale is the score before masks and softmax. A module may
also offer its `split_heads(x)`, queries, keys and values, and its `scale`, as this project's ViT does. A softmax over
anything else than such scores is refused by the name of its module, never guessed at.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnrate.core.errors import UserError
from attnrate.spectra import flow
from attnrate.spectra.flow import Scores, Tag

CHANNELS = re.compile("XCA|Channel|CrossCovariance")  # they pass channels as if they were tokens
CROSS = re.compile("cross|encoder_attn|EncDec|enc_dec|encoder_decoder|multihead_attn")
LATER = "causal: later tokens, the upper half, are masked; the scores are those before the mask"
MASKED = "masked in part: the scores are those before the mask"
SUPPORTED = (
    "supported is attention between tokens through torch's scaled_dot_product_attention or nn.MultiheadAttention, or "
    "written as product, softmax and product"
)


@dataclass(frozen=True)
class Call:
    """One attention; q and k are multiplied by the root of the scale each."""

    layer: int  # from 0, by order of calls
    q: Tensor  # (N, h, τ, m_h); N is the number of inputs, times windows
    k: Tensor  # (N, h, τ', m_h); shared keys are repeated
    windows: int  # of an input, one after another; 1 where all tokens attend to all
    weights: Callable[[int], Tensor]  # (number of the input) → after mask and softmax, (windows, h, τ, τ')
    out: Tensor | None  # weights times values


class Catch(TorchFunctionMode):
    """While active, calls use(call) for each attention.

    `layers` holds the modules' names, `kinds` what they are, `notes` what a reader of the scores should know. With
    `cut`, scores become those of cut(layer, q, k) and k: q, of (N, h, τ, D) each, without the scale. It takes the
    `plan` of an earlier catch of the same inputs, which tells the products that are scores.
    """

    def __init__(self, use: Callable[[Call], None], cut: Callable | None = None, plan: dict[int, int] | None = None):
        super().__init__()
        self.use, self.cut = use, cut
        self.plan: dict[int, int] = plan or {}  # number of the product → layer
        self.offers = cut is None  # whether split_heads is asked; a module's own scores cannot be changed there
        self.batch, self.layer, self.products = 0, 0, 0
        self.layers: list[str] = []
        self.kinds: list[str] = []
        self.notes: dict[str, list[str]] = {}  # what → names of modules
        self.running: list[tuple[str, nn.Module]] = []
        self.streams: list[int] = []  # of tokens that those modules were given: two are cross-attention
        self.open: dict[int, tuple[str, nn.Module]] = {}  # a softmax of scores that met no values yet

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Know which module runs, and catch. Modules are in eval mode meanwhile."""
        hooks, training = [], [module for module in model.modules() if module.training]
        model.eval()
        for name, module in model.named_modules():

            def enter(module, inputs, named, name=name):
                self.running.append((name, module))
                self.streams.append(flow.streams(inputs, named))
                if self.offered(module):
                    q, k, _ = module.split_heads(inputs[0])
                    self.attention(q, k, scale=module.scale)

            def leave(*_):
                self.running.pop()
                self.streams.pop()

            hooks.append(module.register_forward_pre_hook(enter, with_kwargs=True))
            hooks.append(module.register_forward_hook(leave))
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # one call for a whole layer
        try:
            with self:
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            for hook in hooks:
                hook.remove()
            for module in training:
                module.training = True

    def run(self, model: nn.Module, batch: Mapping[str, Tensor] | Tensor) -> Any:
        """The model's output, inside `watching`."""
        named = isinstance(batch, Mapping)
        self.begin(len(next(iter(batch.values())) if named else batch))
        try:
            out = model(**batch) if named else model(batch)
        except (TypeError, ValueError, IndexError, RuntimeError) as e:
            raise UserError(f"the model's forward pass failed ({type(e).__name__}: {brief(e)})") from e
        for pair in self.open.values():
            self.running = [pair]
            self.refuse("whose softmax of scores is not multiplied with values")
        return out

    def begin(self, batch: int) -> None:
        """A forward pass with so many inputs comes next."""
        self.batch, self.layer, self.products = batch, 0, 0
        self.running, self.streams, self.open = [], [], {}

    def offered(self, module: nn.Module) -> bool:
        return self.offers and hasattr(module, "split_heads")

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if not self.running or self.offered(self.running[-1][1]):  # caught when it was entered
            return func(*args, **kwargs)
        if name == "scaled_dot_product_attention":
            return self.fused(func, *args, **kwargs)
        if name == "multi_head_attention_forward":
            return self.opened(func, args, kwargs)
        if name in flow.PRODUCTS:
            return self.product(name, func, args, kwargs)
        if name == "softmax":
            return self.softmax(func, args, kwargs)
        out = func(*args, **kwargs)
        if name in flow.CARRY:
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
            self.note("with a bias added to the scores (relative positions): it is no part of QKᵀ and left out")
        self.attention(query, key, attn_mask, is_causal, scale, causal=is_causal or causal, number=number, out=out)
        return out

    def count(self, q: Tensor, k: Tensor) -> int:
        """The number of this product of queries and keys (or transposed keys) in the forward pass."""
        self.products += 1
        return self.products - 1

    def product(self, name: str, func, args, kwargs) -> Tensor:
        values = flow.given(args, kwargs)
        done = next((t for t in map(flow.tag, values) if t and t.weights), None)
        if done:  # weights times values
            out, scores = func(*args, **kwargs), done.scores
            if self.open.pop(id(scores), None):
                self.written(scores, done.factor, out)
            return out
        place = name == "baddbmm"  # of the queries among the arguments
        args += tuple(kwargs.pop(key) for key in ("input", "batch1", "batch2", "mat2", "other") if key in kwargs)
        if min(args[place].dim(), args[place + 1].dim()) < 3:
            return func(*args, **kwargs)
        number = self.count(args[place], args[place + 1])
        q, k = flow.together(args[place], args[place + 1].mT)
        if number in self.plan and self.cut:
            q = self.changed(number, q, k)
            args = (*args[:place], q, *args[place + 1 :])
        out = func(*args, **kwargs)
        q, k = (flow.canonical(x, self.batch) for x in (q, k))
        if q is not None and k is not None:
            flow.put(out, Tag(Scores(number, self.running[-1][0], q, k), kwargs.get("alpha", 1.0)))
        return out

    def softmax(self, func, args, kwargs) -> Tensor:
        logits = args[0] if args else kwargs["input"]
        found = flow.tag(logits)
        out = func(*args, **kwargs)
        if found is None or found.weights:
            if logits.dim() > 2:
                self.refuse("which takes a softmax of what is no product of queries and keys")
            return out
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if dim not in (-1, logits.dim() - 1):
            self.refuse("which takes a softmax of scores over another dimension than the keys")
        if not self.cut:
            flow.examine(found.scores, logits, found.factor, self.batch)
        found.scores.weights = out
        self.open[id(found.scores)] = self.running[-1]
        flow.put(out, Tag(found.scores, found.factor, weights=True))
        return out

    def written(self, scores: Scores, factor: Any, out: Tensor) -> None:
        """An attention that was written out."""
        if scores.masked:
            self.note(LATER if scores.causal else MASKED, scores.name)
        if scores.biased:
            self.note(
                "with a bias added to the scores (relative positions): it is no part of QKᵀ and left out", scores.name
            )
        if scores.capped:
            self.note("with scores capped by a tanh: they are those before it", scores.name)
        weights = scores.weights.reshape(*scores.q.shape[:-1], scores.k.shape[-2]).split(len(scores.q) // self.batch)
        self.emit(scores.number, scores.name, scores.q, scores.k, factor, scores.causal, weights.__getitem__, out)
        scores.weights = None  # which knows its scores: a cycle, whose memory only a garbage collection would give back

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

    def note(self, what: str, name: str | None = None) -> None:
        names = self.notes.setdefault(what, [])
        name = self.running[-1][0] if name is None else name
        if name not in names:
            names.append(name)

    def refuse(self, why: str) -> None:
        name, module = next(pair for pair in reversed(self.running) if not isinstance(pair[1], nn.Softmax))
        raise UserError(f"{name or 'the model'} is a {type(module).__qualname__}, {why}; {SUPPORTED}")


def brief(e: Exception) -> str:
    text = " ".join(str(e).split())
    return text if len(text) <= 300 else f"{text[:300]} …"
