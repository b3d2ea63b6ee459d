"""The English-German corpus as aligned text files (wmt14: 1.7 GB)."""

import launcher  # noqa: F401

from pathlib import Path

from attnrate.core import stage
from attnrate.sources import corpora, pairs


def main(p, to):
    own = p.translation.data
    source = corpora.Source(own.folder and Path(own.folder), own.train, own.dev, own.test)
    pairs.save(to.data, own.corpus, corpora.obtain(own.corpus, source))


if __name__ == "__main__":
    stage.run(main)
