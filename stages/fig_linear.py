"""Training curves and RNN kernels of Tables 2 and 3."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import fig_linear
from attnrate.report.style import figure

PARTS = ("linear_rnn", "linear_train/centred", "linear_mixing/bare")


def main(p, to):
    history = [pd.read_csv(stage.results(s) / "history.csv") for s in PARTS]
    floors = pd.read_csv(stage.results("linear_table") / "floors.csv")
    figure.save("linear_curves", fig_linear.curves(pd.concat(history), floors, p.profile))
    kernels = pd.read_csv(stage.results("linear_rnn") / "kernels.csv")
    figure.save("linear_kernels", fig_linear.kernels(kernels, p.profile))


if __name__ == "__main__":
    stage.run(main)
