"""The translation model: its configuration, and decoding against an independent loop without cache."""

import logging
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from attnrate.translation import beam, bleu
from attnrate.translation import model as seq2seq
from attnrate.translation.tokens import EOS, PAD, Sentences

SHAPE = {"vocabulary": 23, "width": 16, "depth": 2, "heads": 2, "ff": 32, "dropout": 0.1}


@pytest.fixture(scope="module")
def model():
    """Random weights with sharp distributions that end after some tokens."""
    model = seq2seq.build(**SHAPE, seed=3).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 12 if weight.dim() > 1 and weight.requires_grad else 1
        model.model.shared.weight *= 2.5
        model.final_logits_bias[0, EOS] = 3.0
    return model


def sources(n=12):
    rng = np.random.default_rng(1)
    return Sentences.of([rng.integers(3, 23, rng.integers(1, 15)).tolist() for _ in range(n)])


def log_probabilities(model, source, prefix):
    """Of the next token, from nothing: the whole source and prefix go through the model."""
    row = torch.tensor([[*source.tolist(), EOS]])
    with torch.no_grad():
        logits = model(input_ids=row, decoder_input_ids=torch.tensor([prefix]), use_cache=False).logits[0, -1]
    return torch.log_softmax(logits, -1).tolist()


def reference(model, source, beams, penalty, limit):
    """Beam search by the book: keep `beams` open prefixes, end with as many whole sentences."""
    running, whole = [(0.0, [PAD])], []
    for length in range(1, limit + 1):
        scored = [
            (score + p, [*prefix, token])
            for score, prefix in running
            for token, p in enumerate(log_probabilities(model, source, prefix))
        ]
        best = sorted(scored, key=lambda x: -x[0])[: 2 * beams]
        ended = [s[1][-1] == EOS or length == limit for s in best]
        whole += [(score / length**penalty, s) for (score, s), end in zip(best[:beams], ended, strict=False) if end]
        running = [s for s, end in zip(best, ended, strict=True) if not end][:beams]
        if len(whole) >= beams or not running:
            break
    found = max(whole, key=lambda x: x[0])[1][1:]
    return found[: found.index(EOS)] if EOS in found else found


@pytest.mark.parametrize("beams, penalty", [(1, 1.0), (4, 0.6), (3, 0.0)])
def test_cached_batched_decoding_equals_a_plain_loop(model, monkeypatch, beams, penalty):
    monkeypatch.setattr(beam, "EXTRA", 8)
    source = sources()
    found = beam.translate(model, source, beams=beams, length_penalty=penalty, batch=len(source))
    limit = int(source.lengths.max()) + 1 + 8
    expected = [reference(model, source[i], beams, penalty, limit) for i in range(len(source))]
    assert found == expected
    assert len({len(s) for s in found}) > 2 and any(len(s) < limit for s in found), "a weak test: all of one length"


def test_batches_and_their_order_do_not_matter(model):
    source = sources()
    whole = beam.translate(model, source, beams=4, length_penalty=0.6, batch=12)
    short = [i for i, s in enumerate(whole) if len(s) < 50]  # the limit on length depends on the batch
    one = beam.translate(model, source, beams=4, length_penalty=0.6, batch=1)
    assert len(short) > 6 and all(whole[i] == one[i] for i in short)


def test_decoding_is_quiet_and_a_sentence_beyond_all_positions_is_cut(model, caplog):
    caplog.set_level(logging.WARNING)
    logging.getLogger("transformers").propagate = True
    long = Sentences.of([[5] * 2000, [6, 7], []])
    found = beam.translate(model, long, beams=2, length_penalty=0.6, batch=1)
    assert len(found) == 3 and all(len(s) < seq2seq.POSITIONS for s in found)
    beam.translate(model, long, beams=1, length_penalty=0.6, batch=4)
    assert not caplog.records


def test_the_configuration_is_vaswanis():
    model = seq2seq.build(vocabulary=37000, width=512, depth=6, heads=8, ff=2048, dropout=0.1, seed=0)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    layers = 6 * (4 * 512 * 513 + 2 * 2 * 512 + 2 * 512 * 2048 + 2048 + 512)  # encoder: attention, norms, feed-forward
    layers += 6 * (8 * 512 * 513 + 3 * 2 * 512 + 2 * 512 * 2048 + 2048 + 512)
    assert trained == 37000 * 512 + layers == 63_082_496
    weight = model.model.encoder.embed_positions.weight
    assert not weight.requires_grad and abs(weight[3, 0] - math.sin(3)) < 1e-6 and weight[0, -1] == 1
    assert model.lm_head.weight is model.model.shared.weight is model.model.decoder.embed_tokens.weight
    assert model.config.activation_function == "relu" and model.config.scale_embedding


def test_the_same_seed_gives_the_same_weights_whatever_came_before():
    one = seq2seq.build(**SHAPE, seed=1)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    two, other = seq2seq.build(**SHAPE, seed=1), seq2seq.build(**SHAPE, seed=2)
    assert torch.equal(torch.get_rng_state(), state)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one.lm_head.weight, other.lm_head.weight)


def test_weights_go_to_disk_once_each_and_come_back_tied(model, tmp_path):
    state = seq2seq.weights(model)
    assert seq2seq.SHARED in state and not set(seq2seq.TIED) & set(state)
    save_file(state, tmp_path / "w.safetensors")
    again = seq2seq.load(tmp_path / "w.safetensors", **SHAPE)
    source = sources()
    options = {"beams": 2, "length_penalty": 0.6, "batch": 5}
    assert beam.translate(again, source, **options) == beam.translate(model, source, **options)
    assert again.lm_head.weight is again.model.shared.weight


def test_pad_puts_the_end_of_sentence_after_each():
    rows = seq2seq.pad([np.array([5, 6], np.uint16), np.array([], np.uint16)])
    assert rows.tolist() == [[5, 6, EOS], [EOS, PAD, PAD]] and rows.dtype == torch.int64


def test_scores_are_those_of_the_command_line(tmp_path):
    references = ["Das Gerät ist nicht erreichbar.", "Gib {name} ein, bitte!", "„Ja“, sagte er."]
    hypotheses = ["Das Gerät ist erreichbar.", "Bitte {name} eingeben!", "Ja, sagte er."]
    for name, lines in (("ref.de", references), ("hyp.de", hypotheses)):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = bleu.scores(hypotheses, references)
    assert found["pairs"] == 3 and found["signature"].startswith(
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"
    )
    for metric in ("bleu", "chrf"):
        command = [sys.executable, "-m", "sacrebleu", "ref.de", "-i", "hyp.de", "-m", metric, "-b", "-w", "6"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert math.isclose(float(printed), found[metric], abs_tol=1e-6)
