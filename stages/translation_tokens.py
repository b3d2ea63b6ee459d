"""A joint BPE vocabulary, every sentence as numbers, and counts of them and of those that the altered order moves."""

import launcher  # noqa: F401

from attnrate.core import files, stage
from attnrate.sources import pairs
from attnrate.translation import tokens
from attnrate.translation.encode import encode


def main(p, to):
    folder = stage.data("translation_corpus")
    sentences, counts, permuted = encode(pairs.load(folder), p.translation.tokens, to.data / "vocabulary.model")
    tokens.save(to.data / "tokens.npz", sentences)
    files.write_json(to.results / "counts.json", {"corpus": pairs.load_name(folder), **counts})
    files.write_json(to.results / "permuted.json", permuted)


if __name__ == "__main__":
    stage.run(main)
