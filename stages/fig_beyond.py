"""Figures of depth, filters and heads, and the table of the causal mask."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import stage
from attnrate.report import fig_beyond, tables
from attnrate.report.style import figure

OURS = ("beyond_depth", "beyond_filters", "beyond_heads", "beyond_causal")
THEIRS = ("linear_mixing/bare", "linear_mixing/filtered", "linear_train/centred", "linear_rnn")


def main(p, to):
    depth, filters, heads, causal = (pd.read_csv(stage.results(s) / "errors.csv") for s in OURS)
    bare, filtered, centred, rnn = (pd.read_csv(stage.results(s) / "errors.csv") for s in THEIRS)
    figure.save("beyond_depth", fig_beyond.depth(depth, p.profile))
    nu = pd.read_csv(stage.results("beyond_filters") / "ledger.csv").set_index(["filter", "draw"]).nu
    mixed = pd.concat([bare, filtered]).query("alteration == 'causal'")
    mixed = mixed.assign(nu=nu[pd.MultiIndex.from_frame(mixed[["filter", "draw"]])].values)
    figure.save("beyond_filters", fig_beyond.filters(filters, mixed, p.profile))
    figure.save("beyond_heads", fig_beyond.heads(heads, p.beyond.heads.targets, p.beyond.heads.budget, p.profile))
    rnn = rnn.query("model == 'rnn-bias' and recipe == 'population'")
    caption = f"A causal mask on the targets of Table 2, e^-s (median, spread; {p.profile} profile)"
    tables.save("beyond_causal", fig_beyond.causal(causal, centred, rnn), caption)


if __name__ == "__main__":
    stage.run(main)
