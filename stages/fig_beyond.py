"""Figures of depth, filters and heads, and the table of the causal mask."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import fig_beyond, tables
from attnrate.report.style import figure


def read(name, file="errors.csv"):
    return pd.read_csv(stage.results(name) / file)


def main(p, to):
    figure.save("beyond_depth", fig_beyond.depth(read("beyond_depth"), p.profile))
    nu = read("beyond_filters", "ledger.csv").set_index(["filter", "draw"]).nu
    mixed = pd.concat([read("linear_mixing/bare"), read("linear_mixing/filtered")]).query("alteration == 'causal'")
    ledger = mixed.assign(nu=nu[pd.MultiIndex.from_frame(mixed[["filter", "draw"]])].values)
    figure.save("beyond_filters", fig_beyond.filters(read("beyond_filters"), ledger, p.profile))
    own = p.beyond.heads
    figure.save("beyond_heads", fig_beyond.heads(read("beyond_heads"), own.targets, own.budget, p.profile))
    rnn = read("linear_rnn").query("model == 'rnn-bias' and recipe == 'population'")
    table = fig_beyond.causal(read("beyond_causal"), read("linear_train/centred"), rnn)
    caption = f"A causal mask on the targets of Table 2, e^-s (median, spread; {p.profile} profile)"
    tables.save("beyond_causal", table, caption)


if __name__ == "__main__":
    stage.run(main)
