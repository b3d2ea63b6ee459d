"""The Transformer of eq. (5) with position encoding on the cells of Tables 2 and 3, one stack a recipe."""

import launcher  # noqa: F401

from attnrate import cores
from attnrate.core import files, stage
from attnrate.linear import targets
from attnrate.linear.train import run_transformer


def main(p, to, recipe):
    cores.set_threads(p.threads)
    names = ["exp/original"] if recipe == "plain" else p.linear.cells.names  # PyTorch's defaults, for comparison
    every = targets.load(stage.data("targets") / "linear.npz")
    cells = targets.replicates(every, names, p.linear.cells.seeds)
    own = p.linear.recipes[recipe]
    errors, history, weights = run_transformer(cells, p.mh, recipe, own, p.linear.model, p.linear.train, p.linear.eval)
    files.write_csv(to.results / "errors.csv", errors)
    files.write_csv(to.results / "history.csv", history)
    files.write_weights(to.data / "weights.safetensors", weights)


if __name__ == "__main__":
    stage.run(main)
