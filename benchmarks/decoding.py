"""Beam search with cached keys and values against the same search that runs the decoder over the whole prefix."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from attnrate.translation import beam
from attnrate.translation import model as seq2seq
from attnrate.translation.tokens import Sentences
from benchmarks.common import PARAMS, Row, alternate, as_stage, ratio


def sentences(count: int, vocabulary: int, shortest: int = 20) -> Sentences:
    """Random sentences of 20 to 40 tokens."""
    rng = np.random.default_rng(0)
    return Sentences.of(
        rng.integers(3, vocabulary, rng.integers(shortest, 2 * shortest, endpoint=True)) for _ in range(count)
    )


@torch.no_grad()
def uncached(model, source: Sentences, **options) -> list[list[int]]:
    """beam.translate with `use_cache=False`."""
    generate = model.generate
    model.generate = lambda **given: generate(**given | {"use_cache": False})
    try:
        return beam.translate(model, source, **options)
    finally:
        del model.generate


def run(quick: bool) -> Iterator[Row]:
    p = PARAMS.translation
    count, repeats, shortest = (2, 1, 3) if quick else (64, 3, 20)
    model = seq2seq.build(vocabulary=p.tokens.vocabulary, **p.model | {"dropout": 0.0}, seed=0)
    source = sentences(count, p.tokens.vocabulary, shortest)
    extra, beam.EXTRA = beam.EXTRA, 0  # random weights do not stop: as many tokens as the source has
    try:
        for beams in (p.decode.beams, 1):
            options = p.decode | {"beams": beams}
            calls = {
                "ours": partial(beam.translate, model, source, **options),
                "theirs": partial(uncached, model, source, **options),
            }
            with as_stage():
                cached, reference = (call() for call in calls.values())
                assert cached == reference, "the cache changes the translations"
                times = alternate(calls, repeats)
            tokens = float(np.mean([len(s) for s in cached]))
            yield ratio(
                f"decoding, {beams} beam{'s' if beams > 1 else ''}",
                "the same search without a cache",
                times["ours"],
                times["theirs"],
                3.0,
                f"{count} sentences, {tokens:.0f} tokens each",
            )
    finally:
        beam.EXTRA = extra
