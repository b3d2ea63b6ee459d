"""Every claim in one picture: numbers, effects against their margins, verdicts."""

import launcher  # noqa: F401

from attnrate.core import files, stage
from attnrate.report import fig_ledger
from attnrate.report.style import figure

DPI = 115  # a long picture: 1,300 pixels wide can be read, and keep file and page small


def main(p, to):
    with figure.plt.rc_context({"savefig.dpi": DPI}):
        figure.save("ledger", fig_ledger.ledger(files.read_json("reports/claims.json"), p.profile))


if __name__ == "__main__":
    stage.run(main)
