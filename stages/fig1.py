"""Figure 1 and the comparison of estimators."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import fig_rates, figure
from attnrate.schemas.rates import Rates

PARAMS = ("profile", "rates.terms")


def main(cfg, args):
    table, pod = (pd.read_csv(p, dtype={"rank": str}) for p in (args.rates, args.pod))
    figure.save(fig_rates.figure1(table, cfg.rates.terms, cfg.profile), args.svg, args.png)
    estimators = fig_rates.figure_estimators(table, pod, cfg.rates.terms, cfg.profile)
    figure.save(estimators, args.estimators_svg, args.estimators_png)


if __name__ == "__main__":
    stage.run(
        main, PARAMS, {"rates": Rates}, inputs=["rates", "pod"],
        outs=["svg", "png", "estimators_svg", "estimators_png"],
    )  # fmt: skip
