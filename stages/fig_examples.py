"""Figures 4, 5 and 6, and the model whose loss is low but whose attention is not the rule."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.report import fig_examples
from attnrate.report.claims import ledger
from attnrate.report.style import figure

FIGURES = {"fig4": "nearest", "fig5": "mass", "fig6": "selection"}


def main(p, to):
    table = pd.read_csv(stage.results("examples_table") / "examples.csv")
    note = f"{p.examples.eval.size:,} fresh inputs, {p.profile} profile"
    panels = {t: files.read_npz(stage.results("examples_train") / t / "panels.npz") for t in FIGURES.values()}
    for name, task in FIGURES.items():
        figure.save(name, fig_examples.figure(task, table, panels[task], note))
    limits = ledger.read_criteria()["low-loss-rule"]["limits"]
    figure.save("figB_counterexample", fig_examples.counterexample(table, panels["mass"], note, limits))


if __name__ == "__main__":
    stage.run(main)
