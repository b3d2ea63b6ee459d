"""Heads against rank: h softmaxes of rank m_h at h m_h fixed, on one coupling and on sums of couplings."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.beyond import heads
from attnrate.core import files, stage


def main(p, to):
    stage.set_threads(p.threads)
    own = p.beyond.heads

    def targets(names):
        return [heads.make(name, draw, own) for name in names for draw in own.draws]

    rows = [row for h in own.heads for row in heads.free(targets(own.targets), h, own)]
    for h in own.trained.heads:
        rows += heads.trained(targets(own.trained.targets), h, own, p.rates.model)
    files.write_csv(to.results / "errors.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    stage.run(main)
