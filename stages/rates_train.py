"""Train the Transformer of eq. (5) on every POD target by one recipe, the cells in stacks."""

import launcher  # noqa: F401

import numpy as np
import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.core.params import Group
from attnrate.rates import pod, train
from attnrate.small.stacks import joined, plain
from attnrate.small.transformer import predict


def main(p, to, recipe):
    cores.set_threads(p.threads)
    budget, own = p.rates.train, p.rates.recipes[recipe]
    chosen = Group(p.rates.target | {"pairings": own.pairings, "alphas": own.alphas})
    targets = pod.load_grid(stage.data("targets") / "pod", chosen)
    cells = [(t, mh, seed) for t in range(len(targets)) for mh in own.mh for seed in budget.seeds]

    def fit(part):
        model, history = train.fit(targets, part, own, p.rates.model, budget, label=recipe)
        return history, predict(model, targets[0].x), train.learned_spectrum(model), plain(model)

    histories, outputs, spectra, weights = zip(*cores.side_by_side(fit, cores.stacks(cells)), strict=True)
    history = pd.concat(histories, axis=1, ignore_index=True)
    keys = [targets[t].key | {"mh": mh, "seed": seed} for t, mh, seed in cells]
    mse = [((out - targets[t].y) ** 2).mean() for out, (t, _, _) in zip(np.concatenate(outputs), cells, strict=True)]
    files.write_csv(to.results / "errors.csv", pd.DataFrame(keys).assign(mse=mse))
    curves = [pd.DataFrame({"step": history.index, **key, "mse": history[i].values}) for i, key in enumerate(keys)]
    files.write_csv(to.results / "history.csv", pd.concat(curves))
    rows = [
        key | {"k": k, "sigma": sigma, "learned": learned}
        for key, (t, mh, _), values in zip(keys, cells, np.concatenate(spectra), strict=True)
        if targets[t].rank != "inf" and targets[t].rank <= mh
        for k, (sigma, learned) in enumerate(zip(targets[t].sigma, values, strict=False), 1)
    ]
    files.write_csv(to.results / "spectrum.csv", pd.DataFrame(rows, columns=[*keys[0], "k", "sigma", "learned"]))
    files.write_weights(to.data / "weights.safetensors", joined(weights))


if __name__ == "__main__":
    stage.run(main)
