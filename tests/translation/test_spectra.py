"""Spectra of encoder self-attention against scores that are formed in full."""

import numpy as np
import pytest
import torch

from attnrate.core.errors import UserError
from attnrate.spectra.attention import Catch
from attnrate.spectra.measure import measure
from attnrate.translation import model as seq2seq
from attnrate.translation.tokens import Sentences


def test_beginnings_are_cut_and_short_sentences_left_out():
    one, two = Sentences.of([[3, 4, 5], [6, 7]]), Sentences.of([[8, 9, 10, 11]])
    assert seq2seq.beginnings([one, two], 3).tolist() == [[3, 4, 5], [8, 9, 10]]
    with pytest.raises(UserError, match=r"translation\.spectra\.tokens = 4 tokens; the longest has 4"):
        seq2seq.beginnings([one, two], 4)


@pytest.mark.parametrize("tokens", [6, 20])
def test_values_are_those_of_the_models_own_scores(tokens):
    """Softmax of the caught scores is the attention that the model reports."""
    model = seq2seq.build(vocabulary=50, width=16, depth=2, heads=2, ff=32, dropout=0.1, seed=0).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 8 if weight.dim() > 1 and weight.requires_grad else 1
    encoder, rows = model.model.encoder, torch.from_numpy(np.random.default_rng(0).integers(3, 50, (5, tokens)))
    scores = {}
    catch = Catch(lambda call: scores.update({call.layer: call.q @ call.k.mT}))
    with torch.no_grad(), catch.watching(encoder):
        catch.begin(5)
        encoder(rows)
    found = measure(encoder, rows.split(2), "tokens")
    model.set_attn_implementation("eager")  # which reports its attention
    with torch.no_grad():
        attention = encoder(rows, output_attentions=True).attentions
    for layer in (0, 1):
        assert torch.allclose(scores[layer].softmax(-1), attention[layer], atol=1e-6)
        exact = torch.linalg.svdvals(scores[layer])[..., : min(tokens, 8)].mean(0) / tokens  # (h, K)
        part = found.spectra[found.spectra.layer == layer + 1]
        assert np.allclose(part.pivot(index="head", columns="k", values="mean"), exact, rtol=1e-3, atol=1e-6)
    assert (found.ranks.n == 5).all() and found.ranks.effective.between(1, 8).all()
    assert len(found.spectra) == 2 * 2 * min(tokens, 8) and len(found.ranks) == 4
