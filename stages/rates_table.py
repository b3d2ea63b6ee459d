"""Join the estimators of section 5.1 with the POD truncation; slopes against m_h; the bound (17)."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.rates import pod, table

PARTS = {
    "constructive": "rates_constructive",
    "free-kernel": "rates_free_kernel",
    "paper": "rates_train/paper",
    "trained": "rates_train/trained",
}


def main(p, to):
    targets = pod.load_grid(stage.data("targets") / "pod", p.rates.target)
    rows = [row for t in targets for row in table.truncation(t, p.rates.constructive.mh)]
    files.write_csv(to.results / "pod.csv", pd.DataFrame(rows))
    paths = {"pod": to.results / "pod.csv"} | {n: stage.results(f) / "errors.csv" for n, f in PARTS.items()}
    parts = {name: pd.read_csv(path, dtype={"rank": str}) for name, path in paths.items()}
    joined = table.join(parts)
    files.write_csv(to.results / "rates.csv", joined)
    files.write_csv(to.results / "slopes.csv", table.slopes(joined, parts["pod"]))
    files.write_csv(to.results / "bounds.csv", table.bounds(parts["constructive"], targets, p.rates.model.width))


if __name__ == "__main__":
    stage.run(main)
