"""The table of section 5.1: every estimate of the best error, their minimum, slopes and the bound (17)."""

import pandas as pd

from attnrate.laws.powerlaw import loglog_slope
from attnrate.rates import theory
from attnrate.rates.best import best
from attnrate.rates.pod import PodTarget, coupling, singular_values, softmax_average


def truncation(target: PodTarget, sizes: list[int]) -> list[dict]:
    """Errors of the POD truncation at each m_h, with s = t in and out of the sum, and the tail sum of σ²."""
    without = softmax_average(coupling(target.sigma, target.x), target.x, diagonal=False)
    return [
        {
            "alpha": target.alpha,
            "rank": target.rank,
            "mh": mh,
            "mse": ((target.truncated(mh) - target.y) ** 2).mean(),
            "mse_without_diagonal": ((target.truncated(mh, diagonal=False) - without) ** 2).mean(),
            "tail_sum": theory.tail_sum(target.sigma, mh),
            "mse_to_copy": ((target.x - target.y) ** 2).mean(),
        }
        for mh in sizes
    ]


def join(parts: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One row for each (α, r, m_h, seed, estimator); seed is empty where nothing is random."""
    columns = ["alpha", "rank", "mh", "seed", "estimator", "mse"]
    frames = [part.assign(estimator=name).reindex(columns=columns) for name, part in parts.items()]
    table = pd.concat(frames).astype({"seed": "Int64"})
    return table.sort_values(["alpha", "rank", "mh", "estimator", "seed"], ignore_index=True)


def slopes(table: pd.DataFrame, pod: pd.DataFrame) -> pd.DataFrame:
    """Slope of log error against log m_h at r = ∞ for each estimator (median over seeds), with 95 % intervals."""
    pod = pod[pod["rank"] == "inf"]
    infinite = table[table["rank"] == "inf"]
    curves = {name: group for name, group in infinite.groupby("estimator")}
    curves["best"] = best(infinite)
    curves["pod, s ≠ t"] = pod.assign(mse=pod.mse_without_diagonal)
    curves["tail sum"] = pod.assign(mse=pod.tail_sum)
    rows = []
    for name, curve in curves.items():
        for alpha, part in curve.groupby("alpha"):
            median = part.groupby("mh").mse.median()
            if len(median) >= 3:
                fit = loglog_slope(median.index, median)
                rows.append({"alpha": alpha, "estimator": name, "predicted": -(2 * alpha - 1), **fit})
    return pd.DataFrame(rows, columns=["alpha", "estimator", "predicted", "slope", "low", "high", "n"])


def bounds(constructive: pd.DataFrame, *, terms: int, width: int, tau: int) -> pd.DataFrame:
    """Measured L1 error Σ_t E|H_t - Ĥ_t| of the network of the proof beside the bound (17)."""
    rows = []
    for (alpha, rank, mh), part in constructive.groupby(["alpha", "rank", "mh"]):
        sigma = singular_values(alpha, rank if rank == "inf" else int(rank), terms)
        values = {r: theory.bound(sigma, alpha, mh, width, tau, r) for r in theory.READINGS}
        rows.append({"alpha": alpha, "rank": rank, "mh": mh, "l1": part.l1.max(), **values})
    return pd.DataFrame(rows)
