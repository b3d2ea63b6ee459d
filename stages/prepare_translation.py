"""A joint BPE vocabulary, every sentence as numbers, and counts of both."""

import bootstrap  # noqa: F401

import numpy as np

from attnrate.core import files, stage
from attnrate.core.stage import UserError
from attnrate.data import pairs, tokens
from attnrate.schemas.translation import Translation

PARAMS = ("profile", "translation.corpus", "translation.vocabulary", "translation.max_tokens")


def main(cfg, args):
    corpus = pairs.load(args.corpus)
    model = tokens.learn((side for pair in corpus["train"] for side in pair), cfg.translation.vocabulary)
    with files.atomic(args.vocabulary) as draft:
        draft.write_bytes(model)
    vocabulary = tokens.Vocabulary(args.vocabulary)

    sentences, counts = {}, {}
    for part, both in corpus.items():
        en, de = (vocabulary.encode([pair[i] for pair in both]) for i in (0, 1))
        if part == "train":
            keep = np.maximum(en.lengths, de.lengths) <= cfg.translation.max_tokens
            if not keep.any():
                raise UserError("no training pair has at most translation.max_tokens tokens")
            en, de = en.select(keep), de.select(keep)
        sentences |= {f"{part}_en": en, f"{part}_de": de}
        counts[part] = {
            "pairs": len(en), "too_long": len(both) - len(en), "mean_tokens_en": en.lengths.mean(),
            "mean_tokens_de": de.lengths.mean(), "unknown_tokens": int(sum((s.ids == tokens.UNK).sum() for s in (en, de))),
        }  # fmt: skip
    tokens.save(args.tokens, sentences)
    files.write_json(
        args.counts, {"corpus": pairs.load_name(args.corpus), "vocabulary": len(vocabulary), "parts": counts}
    )


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"translation": Translation}, inputs=["corpus"], outs=["vocabulary", "tokens", "counts", "record"],
    )  # fmt: skip
