"""Tables for `dvc plots show` and `dvc plots diff` on CIFAR10 and translation."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.report import plots


def main(cfg, args):
    files.write_csv(args.error, plots.error(pd.read_csv(args.vit)))
    files.write_csv(args.spectra_out, plots.spectra(pd.read_csv(args.spectra)))
    files.write_csv(args.vit_curve, plots.curve(pd.read_csv(args.vit_history)))
    files.write_csv(args.translation_curve, plots.curve(pd.read_csv(args.translation_history)))


if __name__ == "__main__":
    stage.run(
        main, inputs=["vit", "spectra", "vit_history", "translation_history"],
        outs=["error", "spectra_out", "vit_curve", "translation_curve"],
    )  # fmt: skip
