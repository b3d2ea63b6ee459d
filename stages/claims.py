"""Judge the paper's claims by the criteria of criteria.toml; the one metrics file."""

import launcher  # noqa: F401

from attnrate.core import files, stage
from attnrate.report.claims import ledger, summary
from attnrate.report.claims.all import EVALUATORS
from attnrate.report.table1 import NAMES


def main(p, to):
    rows = ledger.judge(EVALUATORS, stage.results(), p.profile, NAMES[p.vit.data.name])
    files.write_json("reports/claims.json", rows)
    files.write_text("reports/claims.md", ledger.markdown(rows))
    # What `dvc metrics diff` and `dvc exp show` compare.
    files.write_json("reports/metrics/summary.json", summary.collect(rows, stage.results()), digits=4)


if __name__ == "__main__":
    stage.run(main)
