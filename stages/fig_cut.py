"""Extra figure, heads cut after training beside heads trained at that size."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import fig_cut
from attnrate.report.style import figure
from attnrate.report.table1 import NAMES

TEST = {"cifar10": "all 10,000 test images"}


def main(p, to):
    curves = pd.read_csv(stage.results("vit_cut") / "curves.csv")
    vit = pd.read_csv(stage.results("vit_table") / "vit.csv")
    note = f"{NAMES[p.vit.data.name]} and English-German, {p.profile} profile"
    recipes = (p.vit.sweep.recipe, p.vit.beside.recipe)
    test = TEST.get(p.vit.data.name, "all test images")
    figure.save("cut", fig_cut.figure(curves, vit, recipes, p.vit.pretrained.name, test, note))


if __name__ == "__main__":
    stage.run(main)
