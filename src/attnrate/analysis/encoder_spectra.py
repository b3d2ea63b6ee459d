"""Spectra of the encoder's self-attention in translation, by the same measure as the ViT's (section 5.2)."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from transformers import MarianMTModel

from attnrate.analysis.spectra import Spectra
from attnrate.core.stage import UserError
from attnrate.data.tokens import Sentences


def beginnings(sentences: list[Sentences], tokens: int) -> Tensor:
    """The first `tokens` tokens of every sentence that has as many: (N, tokens)."""
    rows = [s[i][:tokens] for s in sentences for i in np.flatnonzero(s.lengths >= tokens)]
    if len(rows) < 2:
        longest = max(int(s.lengths.max()) for s in sentences)
        raise UserError(
            f"fewer than two dev and test sentences have translation.spectra_tokens = {tokens} tokens; the longest has {longest}"
        )
    return torch.from_numpy(np.stack(rows).astype(np.int64))


@contextmanager
def record_heads(
    model: MarianMTModel, layers: Iterable[int], use: Callable[[int, Tensor, Tensor], None]
) -> Iterator[None]:
    """While open, each pass of the encoder calls use(layer, q √scale, k √scale), (B, h, τ, m_h): q·k are the scores."""
    hooks = []
    for layer in layers:

        def hook(attention, inputs, named, layer=layer):
            x = inputs[0] if inputs else named["hidden_states"]
            q, k = (
                p(x).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
                for p in (attention.q_proj, attention.k_proj)
            )
            use(layer, q * attention.scaling**0.5, k * attention.scaling**0.5)

        hooks.append(model.model.encoder.layers[layer].self_attn.register_forward_pre_hook(hook, with_kwargs=True))
    try:
        yield
    finally:
        for h in hooks:
            h.remove()


@torch.no_grad()
def measure(model: MarianMTModel, rows: Tensor, batch: int = 64) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Singular values over the number of tokens (layer, head, index, mean, sd), and ranks (layer, head, …).

    rows (N, τ): source sentences without padding.
    """
    model.eval()
    found = [Spectra("tokens") for _ in model.model.encoder.layers]
    with record_heads(model, range(len(found)), lambda layer, q, k: found[layer].add(q, k)):
        for part in rows.split(batch):
            model.model.encoder(part)
    values, ranks = [], []
    for layer, spectra in enumerate(found, 1):
        for (head, index), mean in np.ndenumerate(spectra.values.mean):
            sd = spectra.values.sd[head, index]
            values.append({"layer": layer, "head": head + 1, "index": index + 1, "mean": mean, "sd": sd})
        for head, (mean, sd) in enumerate(zip(spectra.ranks.mean, spectra.ranks.sd, strict=True), 1):
            names = ("effective_rank", "energy90", "energy99")
            ranks.append({
                "layer": layer, "head": head, "sentences": len(rows), "tokens": rows.shape[1],
                **dict(zip(names, mean, strict=True)), **{f"{n}_sd": s for n, s in zip(names, sd, strict=True)},
            })  # fmt: skip
    return pd.DataFrame(values), pd.DataFrame(ranks)
