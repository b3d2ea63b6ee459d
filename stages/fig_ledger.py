"""Every claim in one picture: numbers, effects against their margins, verdicts."""

import launcher  # noqa: F401

from attnrate.core import files, stage
from attnrate.report import fig_ledger
from attnrate.report.style import figure


def main(p, to):
    figure.save("ledger", fig_ledger.ledger(files.read_json("reports/claims.json"), p.profile))


if __name__ == "__main__":
    stage.run(main)
