"""CIFAR10, every pixel and label checked, as one npz; or a small stand-in for tests."""

import bootstrap  # noqa: F401

from attnrate.core import stage
from attnrate.data import cifar10
from attnrate.schemas.vit import Vit

PARAMS = ("profile", "vit.data", "vit.data_folder")


def main(cfg, args):
    cifar10.save(args.out, cifar10.toy() if cfg.vit.data == "toy" else cifar10.obtain(cfg.vit.data_folder))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"vit": Vit}, outs=["out", "record"])
