"""All ViT runs in one table; decay laws of their error against m_h and of the singular values against k."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.laws import vit


def main(p, to):
    sweep = [f"vit_sweep/{reading}-{mh}" for reading in p.vit.grid.readings for mh in p.vit.grid.mh]
    folders = [*sweep, "vit_beside", "vit_main", "vit_permuted"]
    runs = pd.concat(pd.read_csv(stage.results(folder) / "scores.csv") for folder in folders)
    files.write_csv(to.results / "vit.csv", runs.sort_values(["reading", "mh", "variant", "seed"]))
    spectra = pd.read_csv(stage.results("vit_spectra") / "values.csv")
    files.write_json(to.results / "fits.json", vit.fits(pd.read_csv(to.results / "vit.csv"), spectra))


if __name__ == "__main__":
    stage.run(main)
