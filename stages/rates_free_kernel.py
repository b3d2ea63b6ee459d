"""The optimised rank-m_h kernel, then the network fitted to it, for every (pairing, α, r, m_h) with 2 m_h + 1 ≤ n."""

import launcher  # noqa: F401

from itertools import chain

import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.rates import free_kernel, pod


def main(p, to):
    cores.set_threads(p.threads)
    targets = pod.load_grid(stage.data("targets") / "pod", p.rates.target)
    found = cores.side_by_side(lambda target: free_kernel.errors(target, p.rates.free_kernel, p.rates.model), targets)
    files.write_csv(to.results / "errors.csv", pd.DataFrame(chain(*found)))


if __name__ == "__main__":
    stage.run(main)
