"""Figures 2 and 3, and Figure 2 on a pretrained ViT."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.report import fig_pretrained, fig_vit
from attnrate.report.style import figure
from attnrate.report.table1 import NAMES


def main(p, to):
    vit, normalisation = pd.read_csv(stage.results("vit_table") / "vit.csv"), p.vit.spectra.normalisation
    note = f"{NAMES[p.vit.data.name]}, {p.profile} profile"
    images, null = (files.read_npz(stage.data("vit_spectra") / f"{name}.npz") for name in ("main", "untrained"))
    model = f"$m_h$ = {p.vit.main.mh}, from {p.vit.main.start}, 1 seed"
    figure.save("fig2", fig_vit.figure2(images, null, normalisation, f"{note}, {model}"))

    tables = (pd.read_csv(stage.results("vit_pretrained") / f"{name}.csv") for name in ("quantiles", "heads", "values"))
    figure.save("fig2_pretrained", fig_pretrained.figure(*tables, p.vit.pretrained.name, note))

    recipes, seeds = (p.vit.sweep.recipe, p.vit.beside.recipe), (len(p.vit.sweep.seeds), len(p.vit.beside.seeds))
    counts = ", ".join(f"{n} ({recipe})" for n, recipe in zip(seeds, recipes, strict=True))
    note += f"; seeds at each $m_h$: {counts}; spectra of the first"
    spectra = pd.read_csv(stage.results("vit_spectra") / "values.csv")
    fits = files.read_json(stage.results("vit_table") / "fits.json")
    figure.save("fig3", fig_vit.figure3(vit, spectra, fits, normalisation, recipes, note))


if __name__ == "__main__":
    stage.run(main)
