"""Linear RNNs on every reading, by the exact error and by samples, without and with biases."""

import launcher  # noqa: F401

import numpy as np
import pandas as pd

from attnrate.core import files, stage
from attnrate.linear import targets
from attnrate.linear.floors import floor
from attnrate.linear.train import curves, result_row, train_rnn


def main(p, to):
    stage.set_threads(p.threads)
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
    for name, recipe, bias, cells, steps in runs:
        aims, seeds = zip(*cells, strict=True)
        model, mse, history = train_rnn(aims, seeds, recipe=recipe, bias=bias, steps=steps, lr=own.lr, batch=own.batch)
        learned, _ = model.kernel_and_offset(len(every[0].matrix))
        histories += curves(history, cells, name, recipe)
        for i, (t, seed) in enumerate(cells):
            best = floor(t.matrix, "free" if bias else "none")
            rows.append(result_row(t, name, recipe, seed, mse[i], floor=best.mse))
            if name == "rnn":
                k = {"s": np.arange(len(best.kernel)), "best": best.kernel, "learned": learned[i].detach().numpy()}
                kernels.append(pd.DataFrame({"target": t.name, "seed": seed, **k}))
        weights |= {f"{name}.{recipe}.{k}": v for k, v in model.state_dict().items()}
    files.write_csv(to.results / "errors.csv", pd.DataFrame(rows))
    files.write_csv(to.results / "history.csv", pd.concat(histories))
    files.write_csv(to.results / "kernels.csv", pd.concat(kernels))
    files.write_weights(to.data / "weights.safetensors", weights)


if __name__ == "__main__":
    stage.run(main)
