"""Figure 1 and the comparison of estimators."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import fig_rates
from attnrate.report.style import figure


def main(p, to):
    folder, terms = stage.results("rates_table"), p.rates.target.terms
    rates, pod = (pd.read_csv(folder / f"{name}.csv", dtype={"rank": str}) for name in ("rates", "pod"))
    figure.save("fig1", fig_rates.figure1(rates, terms, p.profile))
    figure.save("fig1_estimators", fig_rates.figure_estimators(rates, pod, terms, p.profile))


if __name__ == "__main__":
    stage.run(main)
