"""Table 1 as CSV, Markdown and LaTeX."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.report import table1, tables
from attnrate.schemas.vit import Vit

PARAMS = ("profile", "vit.data", "vit.main_mh")


def main(cfg, args):
    table = table1.join(pd.read_csv(args.vit), cfg.vit.main_mh, cfg.vit.data, pd.read_csv(args.translation))
    shown, caption = table1.wide(table), table1.caption(cfg.profile)
    files.write_csv(args.csv, table)
    files.write_text(args.markdown, tables.markdown(shown, caption))
    files.write_text(args.tex, tables.latex(shown, caption, "tab:1"))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"vit": Vit}, inputs=["vit", "translation"], outs=["csv", "markdown", "tex"])
