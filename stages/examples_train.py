"""Train the Transformer of eq. (53) on one task of appendix B.1, every variant and seed, and read its attention."""

import launcher  # noqa: F401

import numpy as np
import pandas as pd

from attnrate.core import files, stage
from attnrate.examples import train
from attnrate.examples.tasks import draw, showcase, solve

PANEL_POINTS = 500  # points of panel (c)


def main(p, to, task):
    stage.set_threads(p.threads)
    own, seeds = p.examples.tasks[task], p.examples.train.seeds
    test = solve(task, draw(task, p.examples.eval.size, np.random.default_rng(p.examples.eval.seed)))
    shown = showcase(task, np.random.default_rng(p.examples.eval.seed))
    known = np.isfinite(test.ff[..., 0])  # (N, τ): where F∘f is given
    rows, curves, weights, attention, ff = [], [], {}, [], []
    for name in own.variants:
        model, history = train.fit(task, name, p.mh, p.examples.model, p.examples.train, own)
        encode = train.VARIANTS[task][name].encode
        results = train.inspect(model, encode(test.x))
        for i, seed in enumerate(seeds):
            key = {"task": task, "variant": name, "mh": p.mh, "seed": seed}
            rows.append(key | train.measure(test, *(r[i] for r in results)))
            curves.append(pd.DataFrame({"step": history.index, **key, "loss": history[i].values}))
        weights |= {f"{name}.{k}": v for k, v in model.state_dict().items()}
        attention.append(train.inspect(model, encode(shown.x))[1][:, 0])
        ff.append(results[2][:, known][:, :PANEL_POINTS])
    files.write_csv(to.results / "errors.csv", pd.DataFrame(rows))
    files.write_csv(to.results / "history.csv", pd.concat(curves))
    files.write_weights(to.data / "weights.safetensors", weights)
    panels = {
        "x": shown.x[0],
        "true": shown.attention[0],
        "attention": np.stack(attention),  # (V, S, τ, τ)
        "ff_x": test.x[known][:PANEL_POINTS],
        "ff_true": test.ff[known][:PANEL_POINTS],
        "ff": np.stack(ff),
    }
    names = {"variants": own.variants, "seeds": seeds}
    files.write_npz(to.results / "panels.npz", names | {k: v.astype(np.float32) for k, v in panels.items()})


if __name__ == "__main__":
    stage.run(main)
