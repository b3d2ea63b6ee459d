"""The main model of Figure 2 and Table 1, once for each seed."""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import stage
from attnrate.large.parts import holds
from attnrate.vit import model
from attnrate.vit.train import Run, train_all


def main(p, to, part):
    cores.set_threads(p.threads)
    own, sizes = p.vit.main, p.vit.model
    weights = stage.data("vit_pretrained") / "weights.safetensors"  # if it starts from them
    budget = "full" if own.start == "scratch" else "tune"

    def run(seed):
        def start():
            return model.make("qk", own.mh, seed, own.start, weights, **sizes)

        return Run("qk", own.mh, seed, "main", start, own.start, budget=budget)

    images = stage.data("vit_images") / "images.npz"
    recipe = p.vit.recipes[p.vit.main.recipe] | {"epochs": p.vit.main.epochs}
    groups = {"model": sizes, "images": p.vit.images, "train": p.vit.train, "tune": p.vit.tune}
    runs = [r for r in map(run, own.seeds) if holds(part, r.name)]
    train_all(runs, to, images, [weights], recipe=recipe, device=p.device, **groups)


if __name__ == "__main__":
    stage.run(main)
