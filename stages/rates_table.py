"""Join the estimators of section 5.1 into one table; slopes against m_h; the bound (17)."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.analysis import rates
from attnrate.core import files, stage
from attnrate.schemas.rates import Rates

PARAMS = ("profile", "rates.terms", "rates.width", "rates.tau")
ESTIMATORS = ("pod", "constructive", "free_kernel", "paper", "trained")


def main(cfg, args):
    parts = {name.replace("_", "-"): pd.read_csv(getattr(args, name), dtype={"rank": str}) for name in ESTIMATORS}
    table = rates.join(parts)
    files.write_csv(args.out, table)
    files.write_csv(args.slopes, rates.slopes(table, parts["pod"]))
    wide = rates.best(table[table["rank"] == "inf"]).pivot(index="mh", columns="alpha", values="mse")
    files.write_csv(args.plot, wide.add_prefix("alpha ").reset_index())
    p = cfg.rates
    files.write_csv(args.bounds, rates.bounds(parts["constructive"], terms=p.terms, width=p.width, tau=p.tau))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"rates": Rates}, inputs=ESTIMATORS, outs=["out", "slopes", "bounds", "plot", "record"])
