"""Queries and keys of every self-attention of a PyTorch model, caught where they enter scaled_dot_product_attention.

What is caught is what the kernel gets: after projections, norms and rotary positions, so that q·k times the scale is
the score before masks and softmax. A module that takes no such kernel may offer its `split_heads(x)`, queries, keys and
values, and its `scale`, as this project's ViT does. Any other attention is refused, never guessed at.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnrate.core.errors import UserError

SOFTMAX = {F.softmax, torch.softmax, Tensor.softmax, torch.special.softmax}
CHANNELS = {"XCA"}  # timm's XCiT, which may pass channels to the same function as if they were tokens
SUPPORTED = (
    "supported is full attention between tokens through torch's scaled_dot_product_attention, as in ViT, DeiT, BEiT, "
    "EVA, DINOv2, CLIP, BERT, RoBERTa, GPT-2, Llama, BART and Marian"
)


class Catch(TorchFunctionMode):
    """While active, calls use(layer, q, k) for each self-attention: layer from 0 by order of calls.

    q and k, (B, h, τ, m_h) each, are multiplied by the root of the scale. `layers` holds the modules' names, `notes`
    what a reader of the scores should know.
    """

    def __init__(self, use: Callable[[int, Tensor, Tensor], None]):
        super().__init__()
        self.use, self.batch, self.layer = use, 0, 0
        self.layers: list[str] = []
        self.notes: dict[str, list[str]] = {}  # what → names of modules
        self.running: list[tuple[str, nn.Module]] = []

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Know which module runs, and catch."""
        hooks = []
        for name, module in model.named_modules():

            def enter(module, inputs, name=name):
                self.running.append((name, module))
                if offers_heads(module):
                    self.attention(*module.split_heads(inputs[0]), scale=module.scale)

            def leave(*_):
                self.running.pop()

            hooks += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
        try:
            with self:
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def begin(self, batch: int) -> None:
        """A forward pass with so many inputs comes next."""
        self.batch, self.layer = batch, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.running and offers_heads(self.running[-1][1]):  # caught when it was entered
            return func(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            self.attention(*args, **kwargs)
        elif func is F.multi_head_attention_forward:  # (τ, B, W) each
            if args[0].shape[0] == args[1].shape[0]:
                self.refuse("which is torch.nn.MultiheadAttention")
            self.note("not counted: queries and keys are of different number (pooling or cross-attention)")
        elif func in SOFTMAX and (args[0] if args else kwargs["input"]).dim() > 2:
            self.refuse("which takes a softmax of its own")
        return func(*args, **kwargs)

    def attention(
        self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ) -> None:
        """The arguments of scaled_dot_product_attention."""
        q, k = query, key
        name, module = self.running[-1]
        if type(module).__name__ in CHANNELS:
            self.refuse("which attends between channels")
        if q.dim() != 4 or q.shape[0] != self.batch:
            self.refuse(
                f"whose queries are {tuple(q.shape)} for {self.batch} inputs, so attend within windows or groups"
            )
        if q.shape[-2] != k.shape[-2]:
            return self.note("not counted: queries and keys are of different number (pooling or cross-attention)")
        shut, bias = effects(attn_mask)
        if is_causal or shut:
            self.note("masked (causal, or in part): the scores are those before the mask")
        if bias:
            self.note("with a bias added to the scores (relative positions): it is no part of QKᵀ and left out")
        if not (q.isfinite().all() and k.isfinite().all()):
            raise UserError(f"{name}: its queries or keys hold nan or inf; check the weights")
        if self.layer == len(self.layers):
            self.layers.append(name)
        elif self.layers[self.layer] != name:
            raise UserError(f"{name}: the order of layers changes between inputs; {SUPPORTED}")
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)  # grouped queries share keys
        root = (q.shape[-1] ** -0.5 if scale is None else scale) ** 0.5
        self.use(self.layer, q.float().cpu() * root, k.float().cpu() * root)
        self.layer += 1

    def note(self, what: str) -> None:
        names = self.notes.setdefault(what, [])
        if self.running[-1][0] not in names:
            names.append(self.running[-1][0])

    def refuse(self, why: str) -> None:
        name, module = next(pair for pair in reversed(self.running) if not isinstance(pair[1], nn.Softmax))
        raise UserError(f"{name or 'the model'} is a {type(module).__qualname__}, {why}; {SUPPORTED}")


def offers_heads(module: nn.Module) -> bool:
    return hasattr(module, "split_heads")


def effects(mask: Tensor | None) -> tuple[bool, bool]:
    """Whether a mask shuts anything out (False, -inf or the least number), and whether it adds anything else."""
    if mask is None or mask.dtype == torch.bool:
        return mask is not None and not bool(mask.all()), False
    shut = mask <= torch.finfo(mask.dtype).min / 2
    return bool(shut.any()), bool(((mask != 0) & ~shut).any())
