"""The optimised rank-m_h kernel, then the network fitted to it, for every (pairing, α, r, m_h) with 2 m_h + 1 ≤ n."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.rates import free_kernel, pod


def main(p, to):
    stage.set_threads(p.threads)
    targets = pod.load_grid(stage.data("targets") / "pod", p.rates.target)
    rows = [row for target in targets for row in free_kernel.errors(target, p.rates.free_kernel, p.rates.model)]
    files.write_csv(to.results / "errors.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    stage.run(main)
