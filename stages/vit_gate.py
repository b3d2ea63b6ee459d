"""Half the steps of what verdicts rest on, with a decay of the rate of their own: the budget gate of docs/verdicts.md.

permuted: Table 1's pair goes on from the main model for half as long; qk-1, ...: that model of Figure 3's sweep;
beside: the smallest and the largest m_h by the recipe beside it.
"""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import stage
from attnrate.core.params import Group
from attnrate.large import parts
from attnrate.vit import model
from attnrate.vit.permute import permutation
from attnrate.vit.train import Run, plan, train_all


def main(p, to, item):
    cores.set_threads(p.threads)
    own, sweep, beside = p.vit.main, p.vit.sweep, p.vit.beside
    sizes, train, tune = p.vit.model, p.vit.train, p.vit.tune
    weights = stage.data("vit_main")

    def half(recipe, budget):
        return {"max_steps": plan(Group(train | recipe), tune, p.vit.images.train, budget).steps // 2}

    def pair(variant, order, seed):
        path = parts.weights(weights, own.parts, f"main_seed{seed}")
        return Run(
            "qk", own.mh, seed, variant, lambda: model.load(path, "qk", own.mh, **sizes), own.start, order, "tune"
        )

    def fresh(reading, mh, seed, variant, start):
        return Run(reading, mh, seed, variant, lambda: model.make(reading, mh, seed, start, **sizes), start)

    inputs = []
    if item == "permuted":
        recipe, inputs = p.vit.recipes[own.recipe], [weights]
        tune = Group(tune | half(recipe, "tune"))
        orders = {"continued": None, "permuted": permutation("first10", (sizes.image_size // sizes.patch) ** 2, 0)}
        runs = [pair(variant, order, seed) for variant, order in orders.items() for seed in own.seeds]
    elif item == "beside":
        recipe = p.vit.recipes[beside.recipe] | {"epochs": beside.epochs}
        ends = min(beside.mh), max(*beside.mh, own.mh)
        runs = [fresh("qk", mh, seed, "beside", "scratch") for mh in ends for seed in beside.seeds]
    else:
        recipe = p.vit.recipes[sweep.recipe]
        reading, mh = item.split("-")
        runs = [fresh(reading, int(mh), seed, "original", sweep.start) for seed in sweep.seeds]
    if item != "permuted":
        recipe = recipe | half(recipe, "full")
    images = stage.data("vit_images") / "images.npz"
    groups = {"model": sizes, "images": p.vit.images, "train": train, "device": p.device}
    train_all(runs, to, images, inputs, recipe=recipe, tune=tune, **groups)


if __name__ == "__main__":
    stage.run(main)
