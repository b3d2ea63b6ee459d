"""Table 1 as the paper has it: pretrained weights learn CIFAR10, then go on in the original order and in an altered.

original: the model that both go on from; continued, permuted and unadapted as in vit_permuted. One seed; its runs are
in turn, since a step of this model has work for every thread.
"""

import launcher  # noqa: F401

import pandas as pd
import torch

from attnrate import cores
from attnrate.core import files, stage
from attnrate.core.params import Group
from attnrate.large import checkpoint
from attnrate.large import loop as large
from attnrate.vit import model
from attnrate.vit.permute import permutation
from attnrate.vit.train import Images, loss, plan, scores, subset
from attnrate.vit.view import View, load

RUNS = {  # whether its patches are permuted, and its budget
    "original": (False, "full"),
    "unadapted": (True, "none"),
    "continued": (False, "tune"),
    "permuted": (True, "tune"),
}


def main(p, to, part):
    cores.set_threads(p.threads)
    own, seed = p.vit.tuned, int(part.removeprefix("seed"))
    given, data = stage.data("vit_pretrained") / "weights.safetensors", stage.data("vit_images") / "images.npz"
    source = files.read_json(stage.results("vit_pretrained") / "source.json")
    sizes = source["sizes"] | {"image_size": own.image_size}
    mh, patches = sizes["width"] // sizes["heads"], (own.image_size // sizes["patch"]) ** 2
    arrays, train = subset(load(data), own.images), Group(p.vit.train | own.recipe)
    batches = Images(arrays["train_x"], arrays["train_y"], train.batch, train.augment)
    accelerator = large.make_accelerator(p.device)
    moved = torch.from_numpy(permutation("first10", patches, 0)).to(accelerator.device)
    vit = model.make("qk", mh, seed, source["name"], given, **sizes)
    rows, curves, trained = [], [], vit.state_dict()
    with checkpoint.kept(to.name, {"own": own, "train": train, "seed": seed}, [data, given]) as folder:
        for variant, (altered, budget) in RUNS.items():
            vit.load_state_dict(trained)
            view = View(own.image_size, source["name"], moved if altered else None)
            curve = large.train(
                vit,
                batches,
                loss(view, train.smoothing),
                plan(train, own.again, len(batches.x), budget),
                seed=seed,
                checkpoint=folder / f"{variant}.safetensors",
                accelerator=accelerator,
                label=f"{source['name']}, {variant}, seed {seed}",
            )
            if variant == "original":
                trained = {name: value.clone() for name, value in vit.state_dict().items()}
            rows.append({"variant": variant, "seed": seed, **scores(vit, view, arrays, accelerator)})
            curves.append(pd.DataFrame({"variant": variant, "seed": seed}, index=curve.index).join(curve))
        if accelerator.is_main_process:
            files.write_csv(to.results / "scores.csv", pd.DataFrame(rows))
            files.write_csv(to.results / "history.csv", pd.concat(curves))
            to.close()
        accelerator.wait_for_everyone()


if __name__ == "__main__":
    stage.run(main)
