"""Train the Transformer of eq. (53) on one task of appendix B.1, every variant and seed, and read its attention."""

import launcher  # noqa: F401

from itertools import chain

import numpy as np
import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.core.params import Group
from attnrate.examples import train
from attnrate.examples.tasks import draw, showcase, solve
from attnrate.small.stacks import joined, plain

PANEL_POINTS = 500  # points of panel (c)


def main(p, to, task):
    cores.set_threads(p.threads)
    own, seeds = p.examples.tasks[task], p.examples.train.seeds
    test = solve(task, draw(task, p.examples.eval.size, np.random.default_rng(p.examples.eval.seed)))
    shown = showcase(task, np.random.default_rng(p.examples.eval.seed))
    known = np.isfinite(test.ff[..., 0])  # (N, τ): where F∘f is given

    def fit(part):
        name, some, share = part
        budget, shorter = Group(p.examples.train | {"seeds": some}), Group(own | {"steps": own.steps // share})
        model, history = train.fit(task, name, p.mh, p.examples.model, budget, shorter)
        encode = train.VARIANTS[task][name].encode
        results, rows, curves = train.inspect(model, encode(test.x)), [], []
        for i, seed in enumerate(some):
            key = {"task": task, "variant": name, "mh": p.mh, "seed": seed}
            rows.append(key | train.measure(test, *(r[i] for r in results)))
            curves.append(pd.DataFrame({"step": history.index, **key, "loss": history[i].values}))
        panels = train.inspect(model, encode(shown.x))[1][:, 0], results[2][:, known][:, :PANEL_POINTS]
        return rows, curves, plain(model), *panels

    parts = cores.stacks(seeds)
    every = [(name, part) for name in own.variants for part in parts]
    shares = (1, 2) if p.examples.train.gate else (1,)
    found = cores.side_by_side(fit, [(*one, share) for share in shares for one in every])
    half = pd.DataFrame(chain(*(rows for rows, *_ in found[len(every) :])))
    rows, curves, weights, attention, ff = zip(*found[: len(every)], strict=True)
    errors = pd.DataFrame(chain(*rows))
    if len(half):
        keys = ["task", "variant", "mh", "seed"]
        errors = errors.join(half.drop(columns=keys).add_suffix("_half"))  # the same runs, in the same order
    files.write_csv(to.results / "errors.csv", errors)
    files.write_csv(to.results / "history.csv", pd.concat(chain(*curves)))
    of = {name: slice(i * len(parts), (i + 1) * len(parts)) for i, name in enumerate(own.variants)}
    weights = {f"{name}.{k}": v for name, own_parts in of.items() for k, v in joined(weights[own_parts]).items()}
    files.write_weights(to.data / "weights.safetensors", weights)
    panels = {
        "x": shown.x[0],
        "true": shown.attention[0],
        "attention": np.stack([np.concatenate(attention[one]) for one in of.values()]),  # (V, S, τ, τ)
        "ff_x": test.x[known][:PANEL_POINTS],
        "ff_true": test.ff[known][:PANEL_POINTS],
        "ff": np.stack([np.concatenate(ff[one]) for one in of.values()]),
    }
    names = {"variants": own.variants, "seeds": seeds}
    files.write_npz(to.results / "panels.npz", names | {k: v.astype(np.float32) for k, v in panels.items()})


if __name__ == "__main__":
    stage.run(main)
