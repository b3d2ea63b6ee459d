"""Linear RNNs on every reading, by the exact error and by samples, without and with biases."""

import launcher  # noqa: F401

import numpy as np
import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.linear import targets
from attnrate.linear.floors import floor
from attnrate.linear.train import curves, result_row, train_rnn
from attnrate.small.stacks import joined, plain

MODELS = 8  # of a stack: their matrices stay in a core's cache for the τ products of a step


def main(p, to):
    cores.set_threads(p.threads)
    own, rows, histories, kernels, weights = p.linear.rnn, [], [], [], {}
    every = targets.load(stage.data("targets") / "linear.npz")
    printed = list(dict.fromkeys([*p.linear.cells.names, *p.linear.mixing.bare]))  # the Transformer's targets too
    others = [name for name in targets.NAMES if name not in printed]
    judged, beside = targets.replicates(every, printed, own.seeds), targets.replicates(every, printed, own.seeds[:1])
    rest = targets.replicates(every, others, own.seeds[:1])
    runs = [  # every seed for what is judged, the first for what stands beside it
        ("rnn", "population", False, [*beside, *rest], own.steps),
        ("rnn-bias", "population", True, [*judged, *rest], own.steps),
        ("rnn-bias", "samples", True, beside, own.sample_steps),
    ]

    def fit(part):
        _, recipe, bias, cells, steps = part
        aims, seeds = zip(*cells, strict=True)
        model, mse, history = train_rnn(aims, seeds, recipe=recipe, bias=bias, steps=steps, lr=own.lr, batch=own.batch)
        learned, _ = model.kernel_and_offset(len(every[0].matrix))
        return mse, history, learned.detach().numpy(), plain(model)

    parts = [(*run[:3], cells, run[4]) for run in runs for cells in cores.stacks(run[3], MODELS)]
    for (name, recipe, bias, cells, _), found in zip(parts, cores.side_by_side(fit, parts), strict=True):
        mse, history, learned, arrays = found
        histories += curves(history, cells, name, recipe)
        for i, (t, seed) in enumerate(cells):
            best = floor(t.matrix, "free" if bias else "none")
            rows.append(result_row(t, name, recipe, seed, mse[i], floor=best.mse))
            if name == "rnn":
                k = {"s": np.arange(len(best.kernel)), "best": best.kernel, "learned": learned[i]}
                kernels.append(pd.DataFrame({"target": t.name, "seed": seed, **k}))
        weights.setdefault(f"{name}.{recipe}", []).append(arrays)
    weights = {f"{name}.{k}": v for name, found in weights.items() for k, v in joined(found).items()}
    files.write_csv(to.results / "errors.csv", pd.DataFrame(rows))
    files.write_csv(to.results / "history.csv", pd.concat(histories))
    files.write_csv(to.results / "kernels.csv", pd.concat(kernels))
    files.write_weights(to.data / "weights.safetensors", weights)


if __name__ == "__main__":
    stage.run(main)
