"""The best error of section 5.1 that any network reached, and the pairings that it is judged on."""

import pandas as pd

NETWORKS = ("paper", "trained", "constructive", "free-kernel")  # Transformers of eq. (5); pod is a kernel only


def draws(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the pairings drawn at random, which are replicates; all rows where there are none."""
    drawn = table[table.pairing != "same"]
    return table if drawn.empty else drawn


def best(table: pd.DataFrame) -> pd.DataFrame:
    """The least error over networks and seeds at each (pairing, α, r, m_h), from any head size up to m_h.

    Every estimate bounds the infimum from above, and a model is also a model of any larger head size. Head sizes are
    those of the free kernel, if it is there: between them the minimum would be a staircase.
    """
    networks, target = table[table.estimator.isin(NETWORKS)], ["pairing", "alpha", "rank"]
    optimised = set(networks[networks.estimator == "free-kernel"].mh) or set(networks.mh)
    networks = networks[networks.mh.isin(optimised)]
    least = networks.loc[networks.groupby([*target, "mh"]).mse.idxmin()].sort_values([*target, "mh"])
    return least.assign(mse=least.groupby(target).mse.cummin()).reset_index(drop=True)
