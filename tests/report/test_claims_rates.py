"""Verdicts follow the results: a world in which the paper is right, and every way to break it."""

import json

import numpy as np
import pandas as pd
import pytest

from attnrate.rates import table as rates
from attnrate.report import claims
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, Untestable
from attnrate.report.claims.rates import EVALUATORS

LIMITS = {k: v["limits"] for k, v in claims.read_criteria().items()}
ALPHAS, RANKS, HEADS = (0.55, 1.0, 1.5, 2.0), ("2", "6", "inf"), (1, 2, 4, 6, 8)


def ideal():
    """Results as the paper would have them."""
    rows = []
    for alpha in ALPHAS:
        for rank in RANKS:
            for mh in HEADS:
                r = float(rank)
                error = 1e-8 if mh >= r else (1 if rank == "inf" else r / 10) * mh ** -(2 * alpha - 1)
                key = {"alpha": alpha, "rank": rank, "mh": mh}
                rows.append(key | {"seed": None, "estimator": "constructive", "mse": error})
                rows += [key | {"seed": s, "estimator": "paper", "mse": 1.5 * error} for s in (0, 1)]
    table = pd.DataFrame(rows).astype({"seed": "Int64"})
    width = [{"width": w, "alpha": a, "l1": w**-2.5} for w in (16, 32, 64) for a in ALPHAS]
    return {
        "rates": table,
        "rates_width": pd.DataFrame(width),
        "rates_bounds": table[table.estimator == "constructive"].assign(l1=0.5, literal=1.0, constants=2.0, root=2.0),
        "equivariance": {"models": 10, "permutations": 20, "without_positions": 1e-13, "with_positions": 1.0},
        "mixing_rank": {
            "paper": {"mixed": [1.265, 0.5, 0.4]},
            "quadrature": {"mixed": [1.2622, 0.5, 0.3961, 0.0]},
            "grid_256": {"mixed": [1.265, 0.498, 0.3968]},
            "rank": {"rho": 2, "mixed": 3},
        },
    }


def verdict(name, world, folder):
    table = world["rates"]
    pod = table[table.estimator == "constructive"].assign(mse_without_diagonal=1.0, tail_sum=1.0)
    files = {"rates_slopes": rates.slopes(table, pod)} | world
    for key, content in files.items():
        if isinstance(content, dict):
            (folder / f"{key}.json").write_text(json.dumps(content))
        else:
            content.to_csv(folder / f"{key}.csv", index=False)
    return EVALUATORS[name](folder, LIMITS[name])


@pytest.mark.parametrize("name", EVALUATORS)
def test_in_the_papers_world_every_claim_is_reproduced(name, tmp_path):
    found = verdict(name, ideal(), tmp_path)
    assert found.verdict == REPRODUCED
    assert found.measured and found.spread and found.n > 0 and found.why.endswith(".")


def scale(table, factor, **where):
    """table with mse multiplied in the rows that `where` selects."""
    rows = np.logical_and.reduce([table[k].isin(np.atleast_1d(v)) for k, v in where.items()])
    return table.assign(mse=table.mse * np.where(rows, factor, 1.0))


def rates_with(*args, **where):
    return lambda w: w | {"rates": scale(w["rates"], *args, **where)}


def deep(file, *path, value):
    def change(world):
        node = world[file]
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value
        return world

    return change


def flat(world, alphas=ALPHAS):
    """No decay with m_h at r = ∞."""
    t = world["rates"]
    rows = (t["rank"] == "inf") & t.alpha.isin(alphas)
    noise = 1 + 0.01 * np.sin(7.0 * t.mh)  # least squares needs some residual
    return world | {"rates": t.assign(mse=t.mse.where(~rows, 0.1 * noise))}


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("equivariance", deep("equivariance", "without_positions", value=1e-6), PARTLY),
        (
            "equivariance",
            lambda w: deep("equivariance", "with_positions", value=0)(
                deep("equivariance", "without_positions", value=1)(w)
            ),
            NOT,
        ),
        ("bound", lambda w: w | {"rates_bounds": w["rates_bounds"].assign(l1=1.5)}, PARTLY),
        ("bound", lambda w: w | {"rates_bounds": w["rates_bounds"].assign(l1=3.0)}, NOT),
        (
            "width",
            lambda w: (
                w | {"rates_width": w["rates_width"].assign(l1=lambda d: d.width ** np.where(d.alpha > 1, -1.5, -2.5))}
            ),
            PARTLY,
        ),
        ("width", lambda w: w | {"rates_width": w["rates_width"].assign(l1=lambda d: d.width**-1.5)}, NOT),
        ("finite-rank", rates_with(1e3, alpha=2.0, rank="6", mh=8), PARTLY),
        ("finite-rank", rates_with(1e3, rank=["2", "6"]), NOT),
        ("rank-order", rates_with(100, rank="6", mh=[4], alpha=ALPHAS), PARTLY),
        ("rank-order", rates_with(1e-9, rank="inf"), NOT),
        ("rate-by-alpha", lambda w: flat(w, [0.55, 1.0, 1.5]), PARTLY),
        ("rate-by-alpha", flat, NOT),
        ("rate-value", lambda w: flat(w, [0.55]), PARTLY),
        ("rate-value", flat, NOT),
        ("recipe", rates_with(10, estimator="paper", mh=[1]), PARTLY),
        ("recipe", rates_with(10, estimator="paper"), NOT),
        ("mixing-rank", deep("mixing_rank", "quadrature", "mixed", value=[1.4, 0.5, 0.4, 0]), PARTLY),
        ("mixing-rank", deep("mixing_rank", "rank", "mixed", value=2), NOT),
    ],
)
def test_a_broken_world_is_noticed(name, change, expected, tmp_path):
    assert verdict(name, change(ideal()), tmp_path).verdict == expected


@pytest.mark.parametrize(
    ("name", "keep"),
    [
        ("width", lambda w: w | {"rates_width": w["rates_width"].query("width < 64")}),
        ("finite-rank", lambda w: w | {"rates": w["rates"][w["rates"]["rank"] == "inf"]}),
        ("rank-order", lambda w: w | {"rates": w["rates"][w["rates"]["rank"] == "2"]}),
        ("rate-by-alpha", lambda w: w | {"rates": w["rates"].query("mh < 4")}),
        ("rate-by-alpha", lambda w: w | {"rates": w["rates"].query("alpha == 2")}),
        ("rate-value", lambda w: w | {"rates": w["rates"].query("mh < 4")}),
        ("recipe", lambda w: w | {"rates": w["rates"].query("alpha < 1.5")}),
    ],
)
def test_what_the_results_do_not_hold_cannot_be_tested(name, keep, tmp_path):
    with pytest.raises(Untestable):
        verdict(name, keep(ideal()), tmp_path)


def test_exceptions_are_listed(tmp_path):
    found = verdict("rank-order", rates_with(100, rank="2", mh=[1], alpha=2.0)(ideal()), tmp_path)
    assert "(α = 2, m_h = 1)" in found.why and "m_h = 4" not in found.why
    assert found.n == len(ALPHAS) * (3 + 5), "r = 2 and 6 are compared at m_h = 1, 2, 4; 6 and ∞ at every m_h"
