"""Singular values of attention before the softmax, over test images, all layers and heads of every model.

values.csv and ranks.csv have the models of Figure 3, main_values.csv and main_ranks.csv the main model, of Figure 2,
and beside it the same model untrained; each also `centred`: without what is constant in a row, as the softmax sees it.
The folder of data has each image's values for the first head, keys centred, of the first seed and of that untrained.
"""

import launcher  # noqa: F401

from functools import partial

import pandas as pd
import torch

from attnrate import cores
from attnrate.core import files, stage
from attnrate.large import device as devices
from attnrate.large import parts
from attnrate.spectra.measure import measure
from attnrate.vit import model
from attnrate.vit.view import View, load


def main(p, to):
    cores.set_threads(p.threads)
    main, sweep, sizes = p.vit.main, p.vit.sweep, p.vit.model

    def cases():  # (name, what stands in the table, what its inputs are made for, how its model is made)
        for name in p.vit.grid.models:
            reading, mh = name.split("-")[0], int(name.split("-")[1])
            for seed in sweep.seeds:
                weights = stage.data(f"vit_sweep/{name}/original_seed{seed}.safetensors")
                keys = {"reading": reading, "mh": mh, "seed": seed}
                yield name, keys, sweep.start, partial(model.load, weights, reading, mh, **sizes)
        for seed in main.seeds:
            keys = {"reading": "qk", "mh": main.mh, "seed": seed}
            weights = parts.weights(stage.data("vit_main"), main.parts, f"main_seed{seed}")
            yield "main", keys | {"state": "trained"}, main.start, partial(model.load, weights, "qk", main.mh, **sizes)
            untrained = partial(model.build, "qk", main.mh, seed=seed, **sizes)
            yield "untrained", keys | {"state": "untrained"}, main.start, untrained

    images = torch.from_numpy(load(stage.data("vit_images") / "images.npz")["test_x"][: p.vit.spectra.images])
    device = devices.choose(p.device)

    def spectra(case):
        _, keys, start, make = case
        found, view, seen = make().to(device).eval(), View(sizes.image_size, start), {}
        for centred in (False, True):
            batches = (view(part.to(device)) for part in images.split(64))
            seen[centred] = measure(found, batches, p.vit.spectra.normalisation, centred)

        def keyed(centred, table):
            return pd.DataFrame(keys | {"centred": centred}, index=table.index).join(table)

        values, ranks = ([keyed(c, getattr(s, what)) for c, s in seen.items()] for what in ("spectra", "ranks"))
        return values, ranks, seen[True].violins

    every = list(cases())
    tables = {"values": [], "ranks": [], "main_values": [], "main_ranks": []}
    kept = set()
    for (name, *_), found in zip(every, cores.for_device(device)(spectra, every), strict=True):
        prefix, (values, ranks, violins) = "main_" if name in ("main", "untrained") else "", found
        tables[f"{prefix}values"] += values
        tables[f"{prefix}ranks"] += ranks
        if name not in kept:
            kept.add(name)
            files.write_npz(to.data / f"{name}.npz", violins)
    for name, found in tables.items():
        joined = pd.concat(found).sort_values(["reading", "mh", "seed"], kind="stable")
        files.write_csv(to.results / f"{name}.csv", joined)


if __name__ == "__main__":
    stage.run(main)
