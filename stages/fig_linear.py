"""Training curves and RNN kernels of Tables 2 and 3."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.report import fig_linear, figure

PARAMS = ("profile",)


def main(cfg, args):
    history = pd.concat([pd.read_csv(args.rnn_history), pd.read_csv(args.history)])
    centred = history[history.recipe == "centred"]
    files.write_csv(args.plot, centred.groupby(["step", "target"]).mse.median().unstack().reset_index())
    figure.save(fig_linear.curves(history, pd.read_csv(args.floors), cfg.profile), args.curves_svg, args.curves_png)
    figure.save(fig_linear.kernels(pd.read_csv(args.kernels), cfg.profile), args.kernels_svg, args.kernels_png)


if __name__ == "__main__":
    stage.run(
        main, PARAMS, inputs=["rnn_history", "history", "floors", "kernels"],
        outs=["curves_svg", "curves_png", "kernels_svg", "kernels_png", "plot"],
    )  # fmt: skip
