"""The Transformer of eq. (5) set by hand on causal convolutions whose kernels decay: what its sizes allow."""

import launcher  # noqa: F401

import pandas as pd

from attnrate import cores
from attnrate.core import files, stage
from attnrate.linear import handset, targets
from attnrate.linear.train import fresh_mse, result_row

DECAYING = ("original", "causal", "altered-kernel")  # of kernel e^-s; permute-kernel has its mass at the last lags


def main(p, to):
    cores.set_threads(p.threads)
    rows = []
    for t in targets.load(stage.data("targets") / "linear.npz"):
        if t.kernel == "exp" and t.alteration in DECAYING:
            kernel = t.matrix[:, 0]
            _, lags = handset.sizes(len(kernel), **p.linear.model)
            mse = fresh_mse(handset.build(kernel, **p.linear.model), [t], **p.linear.eval)[0]
            floor = handset.cut(kernel, lags)
            rows.append(result_row(t, "hand-set", "constructive", 0, mse, mh=handset.HEAD, floor=floor))
    files.write_csv(to.results / "errors.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    stage.run(main)
