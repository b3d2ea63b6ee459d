"""All ViT runs in one table; decay laws of their error against m_h and of the singular values against k."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.laws import vit


def main(p, to):
    models, beside, main, permuted = p.vit.grid.models, p.vit.beside, p.vit.main, p.vit.permuted
    folders = [
        *(f"vit_sweep/{name}" for name in models),
        *(f"vit_beside/{part}" for part in beside.parts),
        *(f"vit_main/{part}" for part in main.parts),
        *(f"vit_permuted/{part}" for part in permuted.parts),
    ]
    runs = pd.concat(pd.read_csv(stage.results(folder) / "scores.csv") for folder in folders)
    cropped = (p.vit.recipes[p.vit.sweep.recipe].augment == "crop") & (runs.variant == vit.SWEEP)
    runs = runs.assign(
        error=runs.running_loss.where(cropped, runs.train_loss)
    )  # of Figure 3(b), as the authors have it
    full = p.vit.model.width // p.vit.model.heads
    same = runs[(runs.variant == vit.SWEEP) & (runs.reading == "qk") & (runs.mh == full)]
    others = {name.split("-")[0] for name in models} - {"qk"}  # at this size every reading is one model
    runs = pd.concat([runs, *(same.assign(reading=r) for r in sorted(others) if f"{r}-{full}" not in models)])
    if (beside.recipe, beside.epochs, "scratch") == (main.recipe, main.epochs, main.start) and main.mh not in beside.mh:
        runs = pd.concat([runs, runs[runs.variant == "main"].assign(variant=vit.BESIDE)])
    files.write_csv(to.results / "vit.csv", runs.sort_values(["reading", "mh", "variant", "seed"]))
    spectra = pd.read_csv(stage.results("vit_spectra") / "values.csv")
    files.write_json(to.results / "fits.json", vit.fits(pd.read_csv(to.results / "vit.csv"), spectra))


if __name__ == "__main__":
    stage.run(main)
