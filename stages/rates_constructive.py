"""The network of the proof of Theorem 4.1 on every (pairing, α, r, m_h), and a sweep of its width m_FF."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.rates import constructive, pod


def main(p, to):
    stage.set_threads(p.threads)
    own, n = p.rates.constructive, p.rates.model.n
    targets = pod.load_grid(stage.data("targets") / "pod", p.rates.target)
    rows = [constructive.errors(t, mh, **p.rates.model) for t in targets for mh in own.mh]
    files.write_csv(to.results / "errors.csv", pd.DataFrame(rows))

    rows = []  # m_h = r: the first term of (17) is zero, the second remains
    for alpha in p.rates.target.alphas:
        target = pod.of_rank(alpha, own.width_rank, targets[0].x)
        rows += [{"width": w, **constructive.errors(target, own.width_rank, n=n, width=w)} for w in own.widths]
    files.write_csv(to.results / "widths.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    stage.run(main)
