"""Judge the paper's claims by the criteria of criteria.toml; the one metrics file."""

import launcher  # noqa: F401

from attnrate.core import files, stage
from attnrate.report.claims import beyond, examples, ledger, linear, propositions, rates, summary, translation, vit
from attnrate.report.table1 import NAMES

GROUPS = (rates, propositions, linear, translation, vit, examples, beyond)


def main(p, to):
    evaluators = {name: evaluate for group in GROUPS for name, evaluate in group.EVALUATORS.items()}
    rows = ledger.judge(evaluators, stage.results(), p.profile, NAMES[p.vit.data.name])
    files.write_json("reports/claims.json", rows)
    files.write_text("reports/claims.md", ledger.markdown(rows))
    # What `dvc metrics diff` and `dvc exp show` compare.
    files.write_json("reports/metrics/summary.json", summary.collect(rows, stage.results()), digits=4)


if __name__ == "__main__":
    stage.run(main)
