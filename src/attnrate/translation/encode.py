"""A corpus as numbers: a joint BPE vocabulary, every sentence, and counts of them (section 6.1, appendix C)."""

from pathlib import Path

import numpy as np

from attnrate.core.errors import UserError
from attnrate.core.params import Group
from attnrate.sources.pairs import SIDES, Corpus
from attnrate.translation import clean, tokens
from attnrate.translation.tokens import Sentences


def encode(corpus: Corpus, own: Group, vocabulary: Path) -> tuple[dict[str, Sentences], dict, dict]:
    """Sentences by part and side (train_en, …), counts, and how many the altered order moves; writes the vocabulary."""
    if own.normalise:
        en, de = (clean.normaliser(side) for side in SIDES)
        corpus = {part: [(en(english), de(german)) for english, german in both] for part, both in corpus.items()}
    model = tokens.learn((side for pair in corpus["train"] for side in pair), own.vocabulary, own.coverage)
    vocabulary.write_bytes(model)
    known = tokens.Vocabulary(vocabulary)

    sentences, counts, moved = {}, {}, {}
    for part, both in corpus.items():
        en, de = (known.encode([pair[i] for pair in both]) for i in (0, 1))
        short = alike = np.ones(len(both), bool)
        if part == "train":
            short = np.maximum(en.lengths, de.lengths) <= own.max_tokens
            alike = clean.alike(en.lengths, de.lengths, own.ratio)
            if not (short & alike).any():
                raise UserError(
                    "no training pair has at most translation.tokens.max_tokens tokens and sides within its ratio"
                )
            en, de = en.select(short & alike), de.select(short & alike)
        sentences |= {f"{part}_en": en, f"{part}_de": de}
        counts[part] = {
            "pairs": len(en),
            "too_long": int((~short).sum()),
            "unlike": int((short & ~alike).sum()),
            "mean_tokens_en": en.lengths.mean(),
            "mean_tokens_de": de.lengths.mean(),
            "unknown_tokens": int(sum((s.ids == tokens.UNK).sum() for s in (en, de))),
        }
        moved[part] = int((en.lengths > tokens.MOVED).sum())
    permuted = {
        "moved_tokens": tokens.MOVED,
        "rule": f"sentences of at most {tokens.MOVED} tokens are unchanged; the end-of-sentence token stays last",
        "unchanged": {part: counts[part]["pairs"] - n for part, n in moved.items()},
        "permuted": moved,
    }
    return sentences, {"vocabulary": len(known), "parts": counts}, permuted
