"""Figures 2 and 3."""

import bootstrap  # noqa: F401

import numpy as np
import pandas as pd

from attnrate.core import files, stage
from attnrate.report import fig_vit, figure
from attnrate.report.table1 import NAMES
from attnrate.schemas.vit import Vit

PARAMS = ("profile", "vit.data", "vit.main_mh", "vit.normalisation")


def main(cfg, args):
    p, vit = cfg.vit, pd.read_csv(args.vit)
    with args.images.open("rb") as f, np.load(f, allow_pickle=False) as z:
        images = {name: z[name] for name in z.files}
    note = f"{NAMES[p.data]}, {cfg.profile} profile"
    figure.save(
        fig_vit.figure2(images, p.normalisation, f"{note}, $m_h$ = {p.main_mh}, 1 seed"), args.fig2_svg, args.fig2_png
    )
    seeds = vit[vit.variant == "original"].groupby(["reading", "mh"]).seed.count()
    note += f"; seeds at each $m_h$: {seeds.min()} to {seeds.max()}; spectra of the first seed"
    drawn = fig_vit.figure3(vit, pd.read_csv(args.spectra), files.read_json(args.fits), p.normalisation, note)
    figure.save(drawn, args.fig3_svg, args.fig3_png)


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"vit": Vit}, inputs=["images", "vit", "spectra", "fits"],
        outs=["fig2_svg", "fig2_png", "fig3_svg", "fig3_png"],
    )  # fmt: skip
