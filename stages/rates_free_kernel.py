"""The optimised rank-m_h kernel, then the network fitted to it, for every (α, r, m_h) with 2 m_h + 1 ≤ n."""

import bootstrap  # noqa: F401

import numpy as np
import pandas as pd

from attnrate.core import files, stage
from attnrate.models import constructive
from attnrate.schemas.rates import Rates
from attnrate.targets import pod
from attnrate.training import free_kernel
from attnrate.training.rates import predict

PARAMS = (
    "profile", "threads", "rates.alphas", "rates.ranks", "rates.mh", "rates.seeds", "rates.n", "rates.width",
    "rates.free_steps", "rates.free_batch", "rates.free_lr", "rates.free_modes",
)  # fmt: skip


def main(cfg, args):
    p = cfg.rates
    basis = constructive.fourier(np.linspace(0, 1, constructive.FIT_GRID), p.free_modes)
    rows = []
    for target in pod.load_grid(args.targets, p.alphas, p.ranks):
        rank = len(target.sigma)
        cells = [(mh, i) for mh in p.mh if 2 * mh + 1 <= p.n for i in range(len(p.seeds))]
        start = {(mh, i): free_kernel.pod_start(target, min(mh, rank), p.free_modes) for mh, i in cells}
        open_cells = [(mh, i) for mh, i in cells if mh < rank]  # from m_h = r on the POD is exact
        kernels = {c: (a, a) for c, a in start.items()} | free_kernel.optimise(
            target, {c: start[c] for c in open_cells}, p.seeds,
            modes=p.free_modes, steps=p.free_steps, batch=p.free_batch, lr=p.free_lr,
        )  # fmt: skip
        for (mh, i), (a, b) in kernels.items():
            model = constructive.build(mh, basis @ a, basis @ b, np.ones(a.shape[1]), n=p.n, width=p.width)
            mse = ((predict(model, target.x)[0] - target.y) ** 2).mean()
            rows.append({"alpha": target.alpha, "rank": target.rank, "mh": mh, "seed": p.seeds[i], "mse": mse})
    files.write_csv(args.out, pd.DataFrame(rows))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"rates": Rates}, inputs=["targets"], outs=["out", "record"])
