"""Error of the POD truncation at each m_h, with s = t in and out of the sum, and the tail sum of σ²."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.analysis.theory import tail_sum
from attnrate.core import files, stage
from attnrate.schemas.rates import Rates
from attnrate.targets import pod

PARAMS = ("profile", "rates.alphas", "rates.ranks", "rates.mh")


def main(cfg, args):
    rows = []
    for t in pod.load_grid(args.targets, cfg.rates.alphas, cfg.rates.ranks):
        without = pod.softmax_average(pod.coupling(t.sigma, t.x), t.x, diagonal=False)
        for mh in cfg.rates.mh:
            rows.append({
                "alpha": t.alpha, "rank": t.rank, "mh": mh,
                "mse": ((t.truncated(mh) - t.y) ** 2).mean(),
                "mse_without_diagonal": ((t.truncated(mh, diagonal=False) - without) ** 2).mean(),
                "tail_sum": tail_sum(t.sigma, mh),
                "mse_to_copy": ((t.x - t.y) ** 2).mean(),
            })  # fmt: skip
    files.write_csv(args.out, pd.DataFrame(rows))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"rates": Rates}, inputs=["targets"], outs=["out", "record"])
