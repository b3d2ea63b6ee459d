"""A forward pass under watch: which module runs, what is to be told about it, and what cannot be followed."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from attnrate.core.errors import UserError
from attnrate.spectra import flow

SUPPORTED = (
    "supported is attention between tokens through torch's scaled_dot_product_attention or nn.MultiheadAttention, or "
    "written as product, softmax and product"
)
LEFT = "left out, for it attends without a softmax of scores that can be followed"


class Below(TorchDispatchMode):
    """Hands the operations of scripted code, which call no Python function, to the watch above."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Watch(TorchFunctionMode):
    """`layers` holds the names of the modules that attend, `notes` what a reader of their scores should know."""

    def __init__(self):
        super().__init__()
        self.batch = 0
        self.layers: list[str] = []
        self.notes: dict[str, list[str]] = {}  # what → names of modules
        self.running: list[tuple[str, nn.Module]] = []
        self.streams: list[int] = []  # of tokens that those modules were given: two are cross-attention

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Know which module runs, and catch. Modules are in eval mode meanwhile, and nothing runs compiled."""
        hooks, training = [], [module for module in model.modules() if module.training]
        model.eval()
        for name, module in model.named_modules():

            def enter(module, inputs, named, name=name):
                self.running.append((name, module))
                self.streams.append(flow.streams(inputs, named))
                self.enter(module, inputs)

            def leave(*_):
                self.running.pop()
                self.streams.pop()

            hooks.append(module.register_forward_pre_hook(enter, with_kwargs=True))
            hooks.append(module.register_forward_hook(leave))
        buffers = list(model.buffers())
        for buffer in buffers:
            buffer._constant = True
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # one call for a whole layer
        compiles = "torch._dynamo" in sys.modules
        try:
            with torch.compiler.set_stance("force_eager") if compiles else nullcontext(), self, Below():
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            for hook in hooks:
                hook.remove()
            for module in training:
                module.training = True
            for buffer in buffers:
                vars(buffer).pop("_constant", None)

    def enter(self, module: nn.Module, inputs: tuple) -> None:
        """A module starts."""

    def begin(self, batch: int) -> None:
        """A forward pass with so many inputs comes next."""
        self.batch, self.running, self.streams = batch, [], []

    def run(self, model: nn.Module, batch: Mapping[str, Tensor] | Tensor) -> Any:
        """The model's output, inside `watching`."""
        named = isinstance(batch, Mapping)
        self.begin(len(next(iter(batch.values())) if named else batch))
        try:
            return model(**batch) if named else model(batch)
        except (TypeError, ValueError, IndexError, RuntimeError) as e:
            raise UserError(f"the model's forward pass failed ({type(e).__name__}: {brief(e)})") from e

    def note(self, what: str, name: str | None = None) -> None:
        names = self.notes.setdefault(what, [])
        name = (self.running[-1][0] if name is None else name) or "the model"
        if name not in names:
            names.append(name)

    def leave_out(self, via: str, name: str | None = None) -> None:
        self.note(f"{LEFT} ({via})", name)

    def refuse(self, why: str) -> NoReturn:
        name, module = next(pair for pair in reversed(self.running) if not isinstance(pair[1], nn.Softmax))
        raise UserError(f"{name or 'the model'} is a {type(module).__qualname__}, {why}; {SUPPORTED}")

    def something(self) -> None:
        """Refuse a model in which nothing was found."""
        if not self.layers:
            left = "".join(f"; {names[0]} is {what}" for what, names in self.notes.items())
            raise UserError(f"the model has no attention that can be seen{left}; {SUPPORTED}")


def brief(e: Exception) -> str:
    text = " ".join(str(e).split())
    return text if len(text) <= 300 else f"{text[:300]} …"
