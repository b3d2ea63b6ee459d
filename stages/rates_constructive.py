"""The network of the proof of Theorem 4.1 on every (α, r, m_h), and a sweep of its width m_FF."""

import bootstrap  # noqa: F401

import numpy as np
import pandas as pd

from attnrate.core import files, stage
from attnrate.models import constructive
from attnrate.schemas.rates import Rates
from attnrate.targets import pod
from attnrate.training.rates import predict

PARAMS = (
    "profile", "threads", "rates.alphas", "rates.ranks", "rates.mh", "rates.n", "rates.width", "rates.widths", "rates.width_rank",
)  # fmt: skip


def errors(target, mh, n, width):
    rank = min(mh, len(target.sigma))
    phi = pod.phi(np.arange(1, rank + 1), np.linspace(0, 1, constructive.FIT_GRID))
    model = constructive.build(mh, phi, None, target.sigma[:rank], n=n, width=width)
    error = predict(model, target.x)[0] - target.y
    mse, l1 = (error**2).mean(), np.abs(error).mean(0).sum()
    return {"alpha": target.alpha, "rank": target.rank, "mh": mh, "mse": mse, "l1": l1}


def main(cfg, args):
    p = cfg.rates
    targets = pod.load_grid(args.targets, p.alphas, p.ranks)
    files.write_csv(args.out, pd.DataFrame(errors(t, mh, p.n, p.width) for t in targets for mh in p.mh))

    r, x = p.width_rank, targets[0].x  # m_h = r: the first term of (17) is zero, the second remains
    rows = []
    for alpha in p.alphas:
        sigma = pod.singular_values(alpha, r, r)
        target = pod.PodTarget(alpha, r, sigma, x, pod.softmax_average(pod.coupling(sigma, x), x))
        rows += [{"width": width, **errors(target, r, p.n, width)} for width in p.widths]
    files.write_csv(args.width_out, pd.DataFrame(rows))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"rates": Rates}, inputs=["targets"], outs=["out", "width_out", "record"])
