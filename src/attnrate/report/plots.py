"""Tables for `dvc plots`: a column for x, a column for each line."""

import pandas as pd

from attnrate.laws.vit import last_layer
from attnrate.rates.best import best, draws


def rates(table: pd.DataFrame) -> pd.DataFrame:
    """Figure 1: the best error at r = ∞ against m_h, median over draws of the pairing, a column for each α."""
    wide = best(draws(table[table["rank"] == "inf"])).groupby(["mh", "alpha"]).mse.median().unstack()
    return wide.add_prefix("alpha ").reset_index()


def linear(history: pd.DataFrame) -> pd.DataFrame:
    """Tables 2 and 3: the Transformer's training error against step, median over seeds."""
    return history.groupby(["step", "target"]).mse.median().unstack().reset_index()


def error(vit: pd.DataFrame) -> pd.DataFrame:
    """Figure 3(b): losses against m_h, mean over seeds."""
    sweep = vit[(vit.reading == "qk") & (vit.variant == "original")]
    return sweep.groupby("mh")[["train_loss", "test_loss"]].mean().reset_index()


def spectra(values: pd.DataFrame) -> pd.DataFrame:
    """Figure 3(a): mean singular values of the first head of the last layer, for the smallest and the largest m_h."""
    wide = last_layer(values, "qk")
    ends = wide[[wide.columns.min(), wide.columns.max()]].set_axis(["smallest m_h", "largest m_h"], axis=1)
    return ends.reset_index()


def curve(history: pd.DataFrame) -> pd.DataFrame:
    """Training loss of the first variant against step, mean over seeds."""
    return history[history.variant == history.variant.iloc[0]].groupby("step").loss.mean().reset_index()
