"""Figure 3's sweep: train a ViT with heads of size m_h on CIFAR10, once for each seed."""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import stage
from attnrate.vit import model
from attnrate.vit.train import Run, train_all


def main(p, to, name):
    cores.set_threads(p.threads)
    reading, mh = name.split("-")
    own, sizes = p.vit.sweep, p.vit.model

    def run(seed):
        return Run(
            reading,
            int(mh),
            seed,
            "original",
            lambda: model.make(reading, int(mh), seed, own.start, **sizes),
            own.start,
        )

    images = stage.data("vit_images") / "images.npz"
    groups = {"model": sizes, "images": p.vit.images, "train": p.vit.train, "device": p.device}
    train_all([run(seed) for seed in own.seeds], to, images, [], recipe=p.vit.recipes[p.vit.sweep.recipe], **groups)


if __name__ == "__main__":
    stage.run(main)
