"""Singular values of attention before the softmax, over test images, all layers and heads of every model, first seed.

values.csv and ranks.csv have the models of Figure 3, main_values.csv and main_ranks.csv the main model, of Figure 2;
the folder of data has each image's values for the first head.
"""

import launcher  # noqa: F401

import pandas as pd
import torch

from attnrate.core import files, stage
from attnrate.spectra.measure import measure
from attnrate.vit import model
from attnrate.vit.view import View, load


def main(p, to):
    stage.set_threads(p.threads)
    main, sweep = p.vit.main, p.vit.sweep
    cases = {
        f"{reading}-{mh}": (reading, mh, sweep.start, f"vit_sweep/{reading}-{mh}/original_seed{min(sweep.seeds)}")
        for reading in p.vit.grid.readings
        for mh in p.vit.grid.mh
    }
    cases["main"] = ("qk", main.mh, main.start, f"vit_main/main_seed{min(main.seeds)}")

    images = torch.from_numpy(load(stage.data("vit_images") / "images.npz")["test_x"][: p.vit.spectra.images])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    values, ranks = {}, {}
    for name, (reading, mh, start, weights) in cases.items():
        trained = model.load(stage.data(f"{weights}.safetensors"), reading, mh, **p.vit.model).to(device)
        view = View(p.vit.model.image_size, start)
        found = measure(trained, (view(part.to(device)) for part in images.split(64)), p.vit.spectra.normalisation)
        keys = {"reading": reading, "mh": mh}
        values[name], ranks[name] = (pd.DataFrame(keys, index=t.index).join(t) for t in (found.spectra, found.ranks))
        files.write_npz(to.data / f"{name}.npz", found.violins)
    for name, parts in (("values", values), ("ranks", ranks)):
        files.write_csv(to.results / f"main_{name}.csv", parts.pop("main"))
        joined = pd.concat(parts.values()).sort_values(["reading", "mh"], kind="stable")
        files.write_csv(to.results / f"{name}.csv", joined)


if __name__ == "__main__":
    stage.run(main)
