"""The English-German corpus as aligned text files (wmt14: 1.7 GB)."""

import bootstrap  # noqa: F401

from attnrate.core import stage
from attnrate.data import corpora, pairs
from attnrate.schemas.translation import Translation

PARAMS = (
    "profile",
    "translation.corpus",
    "translation.data_folder",
    "translation.train",
    "translation.dev",
    "translation.test",
)


def main(cfg, args):
    p = cfg.translation
    source = corpora.Source(p.data_folder, p.train, p.dev, p.test)
    pairs.save(args.out, p.corpus, corpora.obtain(p.corpus, source))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"translation": Translation}, outs=["out", "record"])
