"""Spectra of encoder self-attention against scores that are formed in full."""

import numpy as np
import pytest
import torch

from attnrate.translation import encoder_spectra
from attnrate.core.errors import UserError
from attnrate.translation.tokens import Sentences
from attnrate.translation import model as seq2seq


def test_beginnings_are_cut_and_short_sentences_left_out():
    one, two = Sentences.of([[3, 4, 5], [6, 7]]), Sentences.of([[8, 9, 10, 11]])
    assert encoder_spectra.beginnings([one, two], 3).tolist() == [[3, 4, 5], [8, 9, 10]]
    with pytest.raises(UserError, match=r"spectra_tokens = 4 tokens; the longest has 4"):
        encoder_spectra.beginnings([one, two], 4)


@pytest.mark.parametrize("tokens", [6, 20])
def test_values_are_those_of_the_models_own_scores(tokens):
    """Softmax of the recorded scores is the attention that the model reports."""
    model = seq2seq.build(vocabulary=50, width=16, depth=2, heads=2, ff=32, dropout=0.1, seed=0).eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 8 if weight.dim() > 1 and weight.requires_grad else 1
    rows = torch.from_numpy(np.random.default_rng(0).integers(3, 50, (5, tokens)))
    scores = {}
    with (
        torch.no_grad(),
        encoder_spectra.record_heads(model, [0, 1], lambda layer, q, k: scores.update({layer: q @ k.mT})),
    ):
        attention = model.model.encoder(rows, output_attentions=True).attentions
    values, ranks = encoder_spectra.measure(model, rows, batch=2)
    for layer in (0, 1):
        assert torch.allclose(scores[layer].softmax(-1), attention[layer], atol=1e-6)
        exact = torch.linalg.svdvals(scores[layer])[..., : min(tokens, 8)].mean(0) / tokens  # (h, K)
        found = values[values.layer == layer + 1].pivot(index="head", columns="index", values="mean").values
        assert np.allclose(found, exact, rtol=1e-3, atol=1e-6)
    assert (ranks.sentences == 5).all() and (ranks.tokens == tokens).all() and ranks.effective_rank.between(1, 8).all()
    assert len(values) == 2 * 2 * min(tokens, 8) and len(ranks) == 4
