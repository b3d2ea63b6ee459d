"""CIFAR10, every pixel and label checked, as one npz; or a small stand-in for tests."""

import launcher  # noqa: F401

from pathlib import Path

from attnrate.core import files, stage
from attnrate.sources import cifar10


def main(p, to):
    own = p.vit.data
    images = cifar10.toy() if own.name == "toy" else cifar10.obtain(own.folder and Path(own.folder))
    files.write_npz(to.data / "images.npz", images)


if __name__ == "__main__":
    stage.run(main)
