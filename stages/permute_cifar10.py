"""The two fixed permutations of an image's patches; training applies one to each batch, so no image is copied."""

import bootstrap  # noqa: F401

import numpy as np

from attnrate.core import files, stage
from attnrate.data import permute
from attnrate.schemas.vit import Vit

PARAMS = ("profile", "vit.data", "vit.image_size", "vit.patch", "vit.permutation_seed")


def main(cfg, args):
    patches = (cfg.vit.image_size // cfg.vit.patch) ** 2
    for reading in permute.READINGS:
        with files.atomic(getattr(args, reading)) as draft, draft.open("wb") as f:
            np.savez(f, p=permute.permutation(reading, patches, cfg.vit.permutation_seed))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"vit": Vit}, outs=["first10", "random", "record"])
