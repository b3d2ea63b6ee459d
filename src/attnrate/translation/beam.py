"""Beam search with cached keys and values, as in Vaswani et al. (2017), section 6.1: Hugging Face's."""

import numpy as np
import torch
from transformers import MarianMTModel

from attnrate.translation.model import POSITIONS, pad
from attnrate.translation.tokens import EOS, PAD, Sentences

EXTRA = 50  # tokens that a translation may have beyond its source


@torch.no_grad()
def translate(
    model: MarianMTModel, source: Sentences, *, beams: int, length_penalty: float, batch: int
) -> list[list[int]]:
    """The best translation of each sentence, without EOS, by beam search with cached keys and values.

    The score is the log-probability over length^length_penalty; a search ends with `beams` whole translations.
    Sentences of like length go together, those beyond the model's positions are cut.
    """
    model.eval()
    search = {"num_beams": beams} | ({"length_penalty": length_penalty, "early_stopping": True} if beams > 1 else {})
    found: dict[int, list[int]] = {}
    order = np.argsort(source.lengths, kind="stable")
    for chunk in np.split(order, range(batch, len(order), batch)):
        rows = pad([source[i][: POSITIONS - 1] for i in chunk]).to(model.device)
        out = model.generate(
            input_ids=rows,
            attention_mask=(rows != PAD).long(),
            do_sample=False,
            use_cache=True,
            max_new_tokens=min(rows.shape[1] + EXTRA, POSITIONS - 1),
            **search,
        )
        for i, row in zip(chunk, out[:, 1:].tolist(), strict=True):
            found[int(i)] = row[: row.index(EOS)] if EOS in row else row
    return [found[i] for i in range(len(source))]
