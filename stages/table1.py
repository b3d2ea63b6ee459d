"""Table 1 as CSV, Markdown and LaTeX."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import table1, tables


def main(p, to):
    vit = pd.read_csv(stage.results("vit_table") / "vit.csv")
    sentences = pd.read_csv(stage.results("translation_bleu") / "bleu.csv")
    table = table1.join(vit, p.vit.main.mh, p.vit.data.name, sentences)
    tables.save("table1", table, table1.caption(p.profile, sentences.signature.iloc[0]), table1.wide(table))


if __name__ == "__main__":
    stage.run(main)
