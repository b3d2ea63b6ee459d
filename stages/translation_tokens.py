"""A joint BPE vocabulary, every sentence as numbers, and counts of them and of those that the altered order moves."""

import launcher  # noqa: F401

import numpy as np

from attnrate.core import files, stage
from attnrate.core.errors import UserError
from attnrate.sources import pairs
from attnrate.translation import clean, tokens


def main(p, to):
    own, folder = p.translation.tokens, stage.data("translation_corpus")
    corpus = pairs.load(folder)
    if own.normalise:
        en, de = (clean.normaliser(side) for side in pairs.SIDES)
        corpus = {part: [(en(english), de(german)) for english, german in both] for part, both in corpus.items()}
    model = tokens.learn((side for pair in corpus["train"] for side in pair), own.vocabulary, own.coverage)
    (to.data / "vocabulary.model").write_bytes(model)
    vocabulary = tokens.Vocabulary(to.data / "vocabulary.model")

    sentences, counts, moved = {}, {}, {}
    for part, both in corpus.items():
        en, de = (vocabulary.encode([pair[i] for pair in both]) for i in (0, 1))
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
    tokens.save(to.data / "tokens.npz", sentences)
    name = pairs.load_name(folder)
    files.write_json(to.results / "counts.json", {"corpus": name, "vocabulary": len(vocabulary), "parts": counts})
    permuted = {
        "moved_tokens": tokens.MOVED,
        "rule": f"sentences of at most {tokens.MOVED} tokens are unchanged; the end-of-sentence token stays last",
        "unchanged": {part: counts[part]["pairs"] - n for part, n in moved.items()},
        "permuted": moved,
    }
    files.write_json(to.results / "permuted.json", permuted)


if __name__ == "__main__":
    stage.run(main)
