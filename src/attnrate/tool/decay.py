"""How fast the singular values of each head decay."""

import pandas as pd

from attnrate.laws.fit import fit
from attnrate.laws.powerlaw import loglog_slope
from attnrate.laws.vit import FEWEST
from attnrate.spectra.measure import Measured

NOISE = 1e-6  # of the largest value; beyond it is rounding


def solid(rows: pd.DataFrame, inputs: int) -> pd.DataFrame:
    """Of one head: the k that every input has, and that are more than rounding."""
    return rows[(rows.n == inputs) & (rows["mean"] > NOISE * rows["mean"].max())]


def fits(measured: Measured) -> list[dict]:
    """For each head: the slope of log σ_k against log k, and c k^-a against c e^(-a k), all with 95 % intervals."""
    result = []
    for (layer, head), rows in measured.spectra.groupby(["layer", "head"]):
        part = solid(rows, measured.inputs)
        entry = {"layer": layer, "head": head, "n": len(part), "slope": None, "laws": {}}
        if len(part) >= FEWEST:
            k, mean = part.k.to_numpy(), part["mean"].to_numpy()
            entry["slope"] = loglog_slope(k, mean)
            laws = ("power b=0", "exponential b=0")
            entry["laws"] = {law: fit(k, mean, law, relative=True).to_dict() for law in laws}
        result.append(entry)
    return result
