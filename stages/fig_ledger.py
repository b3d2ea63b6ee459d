"""Every claim in one picture: numbers, effects against their margins, verdicts; and the same effects against scale."""

import launcher  # noqa: F401

from pathlib import Path

from attnrate.core import files, stage
from attnrate.report import fig_ledger, fig_scale, published
from attnrate.report.style import figure


def main(p, to):
    columns = published.columns(files.read_json("reports/claims.json"), Path("reports/published"))
    rows = published.headline(columns)
    with figure.plt.rc_context({"savefig.dpi": "figure"}):
        figure.save("ledger", fig_ledger.ledger(rows))
    figure.save("scale", fig_scale.scales(columns))


if __name__ == "__main__":
    stage.run(main)
