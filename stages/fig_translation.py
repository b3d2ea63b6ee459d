"""Extra figure: spectra of the encoder's self-attention in translation."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import fig_translation, figure
from attnrate.report.table_translation import corpus_name

PARAMS = ("profile",)


def main(cfg, args):
    note = f"{corpus_name(pd.read_csv(args.translation))}; {cfg.profile} profile, first seed"
    drawn = fig_translation.spectra(pd.read_csv(args.values), pd.read_csv(args.ranks), note)
    figure.save(drawn, args.svg, args.png)


if __name__ == "__main__":
    stage.run(main, PARAMS, inputs=["values", "ranks", "translation"], outs=["svg", "png"])
