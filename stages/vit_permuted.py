"""Table 1: go on from the main model on permuted patches, and as long on the original ones; train from scratch too.

continued: original order; permuted: first 10 patches to the end; unadapted: as permuted, but only tested; random: a
random permutation; permuted-scratch: as permuted, but from where the main model itself started.
"""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import stage
from attnrate.large import parts
from attnrate.vit import model
from attnrate.vit.permute import permutation
from attnrate.vit.train import Run, train_all


def main(p, to, part):
    cores.set_threads(p.threads)
    main, own, sizes, weights = p.vit.main, p.vit.permuted, p.vit.model, stage.data("vit_main")
    given = stage.data("vit_pretrained") / "weights.safetensors"  # if the main model started from them
    patches = (sizes.image_size // sizes.patch) ** 2
    first10, random = (permutation(reading, patches, own.permutation_seed) for reading in ("first10", "random"))
    budget = "full" if main.start == "scratch" else "tune"

    def fresh(seed):
        return model.make("qk", main.mh, seed, main.start, given, **sizes)

    def trained(seed):
        path = parts.weights(weights, main.parts, f"main_seed{seed}")
        return model.load(path, "qk", main.mh, **sizes)

    def runs(variant, seeds, start, order, budget):
        return [
            Run("qk", main.mh, seed, variant, lambda seed=seed: start(seed), main.start, order, budget)
            for seed in seeds
        ]

    every = [
        *runs("continued", main.seeds, trained, None, "tune"),
        *runs("unadapted", main.seeds, trained, first10, "none"),
        *runs("permuted", main.seeds, trained, first10, "tune"),
        *runs("random", own.seeds, trained, random, "tune"),
        *runs("permuted-scratch", own.seeds, fresh, first10, budget),
    ]
    images = stage.data("vit_images") / "images.npz"
    recipe = p.vit.recipes[p.vit.main.recipe] | {"epochs": p.vit.main.epochs}
    groups = {"model": sizes, "images": p.vit.images, "train": p.vit.train, "tune": p.vit.tune}
    every = [run for run in every if parts.holds(part, run.name)]
    train_all(every, to, images, [weights, given], recipe=recipe, device=p.device, **groups)


if __name__ == "__main__":
    stage.run(main)
