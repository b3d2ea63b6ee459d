"""The table of section 5.1: every estimate of the best error, their minimum, slopes and the bound (17)."""

import pandas as pd

from attnrate.laws.powerlaw import loglog_slope
from attnrate.rates import theory
from attnrate.rates.best import best
from attnrate.rates.pod import PodTarget, coupling, name, softmax_average


def truncation(target: PodTarget, sizes: list[int]) -> list[dict]:
    """Errors of the POD truncation at each m_h, with s = t in and out of the sum, and the tail sum of σ²."""
    without = softmax_average(coupling(target.sigma, target.frequencies, target.x), target.x, diagonal=False)
    return [
        {
            **target.key,
            "mh": mh,
            "mse": ((target.truncated(mh) - target.y) ** 2).mean(),
            "mse_without_diagonal": ((target.truncated(mh, diagonal=False) - without) ** 2).mean(),
            "tail_sum": theory.tail_sum(target.sigma, mh),
            "mse_to_copy": ((target.x - target.y) ** 2).mean(),
        }
        for mh in sizes
    ]


def join(parts: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One row for each (pairing, α, r, m_h, seed, estimator); seed is empty where nothing is random."""
    columns = ["pairing", "alpha", "rank", "mh", "seed", "estimator", "mse"]
    frames = [part.assign(estimator=estimator).reindex(columns=columns) for estimator, part in parts.items()]
    table = pd.concat(frames).astype({"seed": "Int64"})
    return table.sort_values(["pairing", "alpha", "rank", "mh", "estimator", "seed"], ignore_index=True)


def slopes(table: pd.DataFrame, pod: pd.DataFrame) -> pd.DataFrame:
    """Slope of log error against log m_h at r = ∞ for each pairing, α and estimator, with 95 % intervals.

    Each is that of the median over seeds.
    """
    pod = pod[pod["rank"] == "inf"]
    infinite = table[table["rank"] == "inf"]
    curves = dict(iter(infinite.groupby("estimator")))
    curves["best"] = best(infinite)
    curves["pod, s ≠ t"] = pod.assign(mse=pod.mse_without_diagonal)
    curves["tail sum"] = pod.assign(mse=pod.tail_sum)
    rows = []
    for estimator, curve in curves.items():
        for (pairing, alpha), part in curve.groupby(["pairing", "alpha"]):
            median = part.groupby("mh").mse.median()
            if len(median) >= 3:
                key = {"pairing": pairing, "alpha": alpha, "estimator": estimator, "predicted": -(2 * alpha - 1)}
                rows.append(key | loglog_slope(median.index, median))
    return pd.DataFrame(rows, columns=["pairing", "alpha", "estimator", "predicted", "slope", "low", "high", "n"])


def bounds(constructive: pd.DataFrame, targets: list[PodTarget], width: int) -> pd.DataFrame:
    """Measured L1 error Σ_t E|H_t - Ĥ_t| of the network of the proof beside the bound (17)."""
    by_name, rows = {t.name: t for t in targets}, []
    for key, l1 in constructive.groupby(["pairing", "alpha", "rank", "mh"]).l1.max().items():
        *cell, mh = key
        t = by_name[name(*cell)]
        sizes = (t.alpha, mh, width, t.x.shape[1])
        values = {r: theory.bound(t.sigma, t.frequencies, *sizes, r) for r in theory.READINGS}
        rows.append(dict(zip(("pairing", "alpha", "rank", "mh"), key, strict=True)) | {"l1": l1} | values)
    return pd.DataFrame(rows)
