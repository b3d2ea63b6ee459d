"""Figures 4, 5 and 6, and the model whose loss is low but whose attention is not the rule."""

import bootstrap  # noqa: F401

import numpy as np
import pandas as pd

from attnrate.core import stage
from attnrate.report import claims, fig_gallery, figure
from attnrate.schemas.gallery import Gallery

PARAMS = ("profile", "gallery.eval_size")
TASKS = ("nearest", "mass", "selection")
FIGURES = ("fig4", "fig5", "fig6", "counterexample")
OUTS = (
    "fig4_svg",
    "fig4_png",
    "fig5_svg",
    "fig5_png",
    "fig6_svg",
    "fig6_png",
    "counterexample_svg",
    "counterexample_png",
)


def main(cfg, args):
    table = pd.read_csv(args.table)
    note = f"{cfg.gallery.eval_size:,} fresh inputs, {cfg.profile} profile"
    panels = {}
    for task in TASKS:
        with np.load(getattr(args, task), allow_pickle=False) as z:
            panels[task] = dict(z)
    drawn = [fig_gallery.figure(task, table, panels[task], note) for task in TASKS]
    drawn.append(
        fig_gallery.counterexample(table, panels["mass"], note, claims.read_criteria()["low-loss-rule"]["limits"])
    )
    for name, f in zip(FIGURES, drawn, strict=True):
        figure.save(f, getattr(args, f"{name}_svg"), getattr(args, f"{name}_png"))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"gallery": Gallery}, inputs=("table", *TASKS), outs=OUTS)
