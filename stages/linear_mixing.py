"""Section 6.2: the Transformer on mixed targets, a filter for each seed, without and with a learned filter in front."""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import files, stage
from attnrate.linear import targets
from attnrate.linear.train import run_transformer

RECIPES = {"bare": "mixing", "filtered": "learned-filter"}


def main(p, to, front):
    cores.set_threads(p.threads)
    own, every = p.linear.mixing, targets.load(stage.data("targets") / "linear.npz")
    cells = targets.replicates(every, own[front], own.seeds)
    errors, history, weights = run_transformer(
        cells, own.mh, RECIPES[front], p.linear.recipes.centred, p.linear.model, own.train, p.linear.eval
    )
    files.write_csv(to.results / "errors.csv", errors)
    files.write_csv(to.results / "history.csv", history)
    files.write_weights(to.data / "weights.safetensors", weights)


if __name__ == "__main__":
    stage.run(main)
