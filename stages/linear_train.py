"""The Transformer of eq. (5) with position encoding on the cells of Tables 2 and 3, one stack a recipe."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.linear import targets
from attnrate.linear.train import curves, fresh_mse, result_row, train_transformer

CHOSEN = {
    "centred": lambda t: True,
    "plain": lambda t: t.name == "exp/original",  # PyTorch's defaults, for comparison
    "learned-filter": lambda t: bool(t.filter),  # does a filter in front win back what mixing cost?
}


def main(p, to, recipe):
    stage.set_threads(p.threads)
    named = [t for t in targets.load(stage.data("targets") / "linear.npz") if t.name in p.linear.cells.names]
    cells = [(t, s) for t in named if CHOSEN[recipe](t) for s in p.linear.cells.seeds]
    aims, seeds = zip(*cells, strict=True)
    model, history = train_transformer(
        aims, seeds, p.mh, recipe, p.linear.recipes[recipe], p.linear.model, p.linear.train
    )
    mse = fresh_mse(model, aims, **p.linear.eval)
    rows = [result_row(t, "transformer", recipe, s, mse[i], mh=p.mh) for i, (t, s) in enumerate(cells)]
    files.write_csv(to.results / "errors.csv", pd.DataFrame(rows))
    files.write_csv(to.results / "history.csv", pd.concat(curves(history, cells, "transformer", recipe)))
    files.write_weights(to.data / "weights.safetensors", model.state_dict())


if __name__ == "__main__":
    stage.run(main)
