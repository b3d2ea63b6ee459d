"""Heads against rank: h softmaxes of rank m_h at h m_h fixed, on one coupling and on sums of couplings."""

import launcher  # noqa: F401

from itertools import chain

import pandas as pd

from attnrate import cores
from attnrate.beyond import heads
from attnrate.core import files, stage


def main(p, to):
    cores.set_threads(p.threads)
    own = p.beyond.heads

    def targets(names):
        return [heads.make(name, draw, own) for name in names for draw in own.draws]

    def fit(case):
        estimator, h = case
        if estimator == "free":
            return heads.free(targets(own.targets), h, own)
        return heads.trained(targets(own.trained.targets), h, own, p.rates.model)

    cases = [*(("free", h) for h in own.heads), *(("trained", h) for h in own.trained.heads)]
    files.write_csv(to.results / "errors.csv", pd.DataFrame(chain(*cores.side_by_side(fit, cases))))


if __name__ == "__main__":
    stage.run(main)
