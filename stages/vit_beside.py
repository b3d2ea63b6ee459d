"""Figure 3(b) once more: some head sizes of the sweep (qk) by another recipe, once for each seed."""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import stage
from attnrate.large.parts import holds
from attnrate.vit import model
from attnrate.vit.train import Run, train_all


def main(p, to, part):
    cores.set_threads(p.threads)
    own, sizes = p.vit.beside, p.vit.model

    def run(mh, seed):
        return Run("qk", mh, seed, "beside", lambda: model.make("qk", mh, seed, **sizes))

    images = stage.data("vit_images") / "images.npz"
    groups = {"model": sizes, "images": p.vit.images, "train": p.vit.train, "device": p.device}
    recipe = p.vit.recipes[p.vit.beside.recipe] | {"epochs": own.epochs}
    runs = [run(mh, seed) for mh in own.mh for seed in own.seeds]
    train_all([r for r in runs if holds(part, r.name)], to, images, [], recipe=recipe, **groups)


if __name__ == "__main__":
    stage.run(main)
