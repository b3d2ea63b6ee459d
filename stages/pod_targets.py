"""Eq. (8) targets with prescribed POD: coefficients and an evaluation set for each (α, r)."""

import bootstrap  # noqa: F401

from attnrate.core import files, stage
from attnrate.schemas.rates import Rates
from attnrate.targets import pod

PARAMS = ("profile", "rates.alphas", "rates.ranks", "rates.terms", "rates.tau", "rates.eval_size", "rates.eval_seed")


def main(cfg, args):
    p = cfg.rates
    with files.atomic(args.out) as folder:
        folder.mkdir()
        for alpha in p.alphas:
            for rank in p.ranks:
                target = pod.make(alpha, rank, terms=p.terms, tau=p.tau, size=p.eval_size, seed=p.eval_seed)
                target.save(folder / f"{target.name}.npz")


if __name__ == "__main__":
    stage.run(main, PARAMS, {"rates": Rates}, outs=["out", "record"])
