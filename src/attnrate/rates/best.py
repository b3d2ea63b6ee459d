"""The best error of section 5.1 that any network reached."""

import pandas as pd

NETWORKS = ("paper", "trained", "constructive", "free-kernel")  # Transformers of eq. (5); pod is a kernel only


def best(table: pd.DataFrame) -> pd.DataFrame:
    """The least error over networks and seeds at each (α, r, m_h), from any head size up to m_h.

    Every estimate bounds the infimum from above, and a model is also a model of any larger head size.
    """
    networks = table[table.estimator.isin(NETWORKS)]
    least = networks.loc[networks.groupby(["alpha", "rank", "mh"]).mse.idxmin()].sort_values(["alpha", "rank", "mh"])
    return least.assign(mse=least.groupby(["alpha", "rank"]).mse.cummin()).reset_index(drop=True)
