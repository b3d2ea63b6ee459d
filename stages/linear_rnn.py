"""Linear RNNs on every reading, by the exact error and by samples, without and with biases."""

import bootstrap  # noqa: F401

import numpy as np
import pandas as pd

from attnrate.analysis.floors import floor
from attnrate.core import files, stage
from attnrate.schemas.linear import Linear
from attnrate.targets import linear
from attnrate.training.linear import result_row, train_rnn

PARAMS = (
    "profile", "threads", "linear.seeds", "linear.rnn_steps", "linear.rnn_sample_steps", "linear.rnn_lr", "linear.cells",
    "linear.batch",
)  # fmt: skip


def main(cfg, args):
    p, rows, curves, kernels, weights = cfg.linear, [], [], [], {}
    every = linear.load(args.targets)
    printed = [t for t in every if t.name in p.cells]
    runs = [
        ("rnn", "population", False, every, p.rnn_steps),
        ("rnn-bias", "population", True, every, p.rnn_steps),
        ("rnn-bias", "samples", True, printed, p.rnn_sample_steps),
    ]
    for name, recipe, bias, chosen, steps in runs:
        cells = [(t, s) for t in chosen for s in p.seeds]
        model, mse, history = train_rnn(
            [t for t, _ in cells], [s for _, s in cells], recipe=recipe, bias=bias, steps=steps, lr=p.rnn_lr, batch=p.batch
        )  # fmt: skip
        learned, _ = model.kernel_and_offset(len(every[0].matrix))
        for i, (t, seed) in enumerate(cells):
            best = floor(t.matrix, "free" if bias else "none")
            rows.append(result_row(t, name, recipe, seed, mse[i], floor=best.mse))
            curves.append(pd.DataFrame({"step": history.index, "target": t.name, "model": name, "recipe": recipe,
                                        "seed": seed, "mse": history[i].values}))  # fmt: skip
            if name == "rnn":
                kernels.append(pd.DataFrame({"target": t.name, "seed": seed, "s": np.arange(len(best.kernel)), "best": best.kernel,
                                             "learned": learned[i].detach().numpy()}))  # fmt: skip
        weights |= {f"{name}.{recipe}.{k}": v for k, v in model.state_dict().items()}
    files.write_csv(args.out, pd.DataFrame(rows))
    files.write_csv(args.history, pd.concat(curves))
    files.write_csv(args.kernels, pd.concat(kernels))
    with files.atomic(args.weights) as draft:
        files.write_weights(draft, weights)


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"linear": Linear}, inputs=["targets"], outs=["out", "history", "kernels", "weights", "record"]
    )
