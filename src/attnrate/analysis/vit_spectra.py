"""Spectra of every layer and head of a ViT over a stream of images (section 5.2, Figures 2 and 3a)."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from attnrate.analysis.spectra import Spectra
from attnrate.models.vit import record_heads

RANKS = ("effective", "energy90", "energy99")


@torch.no_grad()
def measure(
    model, images: Tensor, view: Callable[[Tensor], Tensor], normalisation: str, chunk: int = 64
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, np.ndarray]]:
    """Singular values by (layer, head, k) and ranks by (layer, head): mean and sd over images; layers, heads, k from 1.

    Also the values of each image for the first head of the first and of the last layer, (N, K) each, for violins.
    """
    depth, device = len(model.blocks), next(model.parameters()).device
    found = {layer: Spectra(normalisation) for layer in range(depth)}
    kept: dict[int, np.ndarray] = {}

    def use(layer: int, q: Tensor, k: Tensor) -> None:
        s = found[layer].add(q.cpu(), k.cpu())
        if layer in (0, depth - 1):
            if layer not in kept:
                kept[layer] = np.empty((len(images), s.shape[-1]), np.float32)
            n = found[layer].values.n
            kept[layer][n - len(s) : n] = s[:, 0]

    with record_heads(model, found, use):
        for part in images.split(chunk):
            model(view(part.to(device)))

    values, ranks = [], []
    for layer, spectra in found.items():
        v, r = spectra.values, spectra.ranks
        for head in range(v.mean.shape[0]):
            for k in range(v.mean.shape[1]):
                values.append((layer + 1, head + 1, k + 1, v.mean[head, k], v.sd[head, k], v.n))
            pairs = [x for i in range(len(RANKS)) for x in (r.mean[head, i], r.sd[head, i])]
            ranks.append((layer + 1, head + 1, *pairs, r.n))
    columns = [c for name in RANKS for c in (name, f"{name}_sd")]
    return (
        pd.DataFrame(values, columns=["layer", "head", "k", "mean", "sd", "n"]),
        pd.DataFrame(ranks, columns=["layer", "head", *columns, "n"]),
        {"first": kept[0], "last": kept[depth - 1]},
    )
