"""Stacks of models that were trained in parts, joined again along their leading axis."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn


def plain(model: nn.Module) -> dict[str, np.ndarray]:
    """The weights of a stack as arrays, which processes can send."""
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.concatenate([part[name] for part in parts])) for name in parts[0]}
