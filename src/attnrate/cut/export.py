"""A checkpoint with smaller heads: only m_h rows of each head's W_Q and W_K.

The tensors have the names of the model's own. An architecture that takes queries and keys of another size than values,
as this project's ViT does (`vit.model.build("qk", m_h)`), loads them as they are if all heads have one m_h. `restore`
fills a model of the original shape, with zeros where rows are gone, which gives the same scores.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from attnrate.core.errors import UserError
from attnrate.cut.advice import Advice
from attnrate.cut.origins import Origin, Trail

Rows = dict[str, tuple[int, list[int]]]  # name of a tensor → dimension, and what is left of it


def _home(model: nn.Module, tensor: Tensor) -> tuple[str, int]:
    """The name of the parameter that a tensor is, or a part of, and its first row there."""
    for name, mine in model.named_parameters():
        if mine.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr():
            step = mine.stride(0) if mine.dim() > 1 else 1
            return name, (tensor.storage_offset() - mine.storage_offset()) // step
    raise UserError("not exported: queries or keys have a weight that is no parameter of the model")


def check(model: nn.Module, found: Sequence[Origin | None]) -> None:
    """Refuse what has no smaller weights; it can be told before anything is measured."""
    if not all(found):
        raise UserError("not exported: queries or keys are more than a linear layer's output (rotary positions, norms)")
    done: dict[str, int] = {}
    for i, origin in enumerate(found):
        weights = [t for trail in (origin.q, origin.k) for t in (trail.weight, trail.bias) if t is not None]
        names = [_home(model, t)[0] for t in weights]
        if done.setdefault(names[0], i) != i:
            raise UserError(f"not exported: {names[0]} serves more than one attention")


@torch.no_grad()
def smaller(model: nn.Module, found: Advice) -> tuple[dict[str, Tensor], Rows]:
    """The model's tensors with its advised heads, cut by data, and the rows that are left."""
    setting, layers = found.advised(), found.scan.layers
    once = {(t.data_ptr(), t.shape): (name, t) for name, t in reversed(model.state_dict().items())}  # tied ones
    state = {name: tensor.detach().cpu().clone() for name, tensor in reversed(once.values())}
    check(model, [layer.origin for layer in layers])
    dropped: dict[str, set[int]] = {}
    dims: dict[str, int] = {}
    for i, layer in enumerate(layers):
        m, parts = setting.sizes[i], found.study.fixed[setting.method][i]
        for trail, forms in ((layer.origin.q, parts.left), (layer.origin.k, parts.right)):
            for head, rows in enumerate(trail.rows):
                if trail is layer.origin.k and head % layer.group:
                    continue  # keys that were cut with the first head of their group
                small = forms[head, :, :m].mT @ trail.matrix().cpu()[rows]  # (m, n + 1)
                _place(state, dropped, dims, model, trail, rows, small)
    kept: Rows = {}
    for name, gone in dropped.items():
        rows = [r for r in range(state[name].shape[dims[name]]) if r not in gone]
        kept[name] = dims[name], rows
        state[name] = state[name].index_select(dims[name], torch.tensor(rows)).contiguous()
    return state, kept


def _place(state: dict, dropped: dict, dims: dict, model: nn.Module, trail: Trail, rows: Tensor, small: Tensor) -> None:
    """Write the first m rows of a head and mark the others as gone."""
    for tensor, new in ((trail.weight, small[:, :-1]), (trail.bias, small[:, -1])):
        if tensor is None:
            continue
        name, first = _home(model, tensor)
        into = state[name].mT if trail.across and tensor.dim() > 1 else state[name]
        into[rows[: len(new)] + first] = new.to(into)
        dims[name] = 1 if trail.across and tensor.dim() > 1 else 0
        dropped.setdefault(name, set()).update((rows[len(new) :] + first).tolist())


def save(path: Path, state: Mapping[str, Tensor], kept: Rows) -> None:
    """One safetensors file; which rows are left stands in its metadata."""
    save_file(dict(state), path, {"rows": json.dumps(kept)})


@torch.no_grad()
def restore(model: nn.Module, path: Path) -> nn.Module:
    """Load such a file into a model of the original shape."""
    with safe_open(path, "pt") as f:
        kept, state = json.loads(f.metadata()["rows"]), {name: f.get_tensor(name) for name in f.keys()}
    own = model.state_dict()
    for name, tensor in state.items():
        full = torch.zeros_like(own[name]) if name in kept else tensor
        if name in kept:
            dim, rows = kept[name]
            full.index_copy_(dim, torch.tensor(rows, device=full.device), tensor.to(full))
        state[name] = full
    model.load_state_dict(own | state)
    return model
