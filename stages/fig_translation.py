"""Extra figure: spectra of the encoder's self-attention in translation."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import fig_translation
from attnrate.report.style import figure
from attnrate.report.table_translation import corpus_name


def main(p, to):
    corpus = corpus_name(pd.read_csv(stage.results("translation_bleu") / "bleu.csv"))
    values, ranks = (pd.read_csv(stage.results("translation_spectra") / f"{t}.csv") for t in ("values", "ranks"))
    drawn = fig_translation.spectra(values, ranks, f"{corpus}; {p.profile} profile, first seed")
    figure.save("translation_spectra", drawn)


if __name__ == "__main__":
    stage.run(main)
