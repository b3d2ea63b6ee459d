"""Figure 1, the comparison of estimators, and the bound (17)."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import fig_bound, fig_rates
from attnrate.report.style import figure


def main(p, to):
    folder, terms = stage.results("rates_table"), p.rates.target.terms
    rates, pod, bounds = (pd.read_csv(folder / f"{n}.csv", dtype={"rank": str}) for n in ("rates", "pod", "bounds"))
    truncation, both = pd.read_csv(stage.results("rates_exact") / "truncation.csv"), (terms, p.rates.exact.terms)
    figure.save("fig1", fig_rates.figure1(rates, terms, p.profile))
    figure.save("fig1_estimators", fig_rates.figure_estimators(rates, pod, terms, p.profile))
    figure.save("bound", fig_bound.figure_bound(bounds, truncation, p.rates.model.width, both, p.profile))


if __name__ == "__main__":
    stage.run(main)
