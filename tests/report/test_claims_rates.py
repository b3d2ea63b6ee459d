"""Verdicts follow the results: a world in which the paper is right, and every way to break it."""

import itertools

import numpy as np
import pandas as pd
import pytest

from attnrate.rates.table import slopes
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, Untestable
from attnrate.report.claims.rates import EVALUATORS
from tests.report.common import LIMITS, write

PAIRINGS = ("dyadic-0", "dyadic-1", "same")
ALPHAS, RANKS, HEADS = (0.55, 1.0, 1.5, 2.0), ("2", "6", "inf"), (1, 2, 4, 6, 8)
RATES, WIDTHS, BOUNDS = "rates_table/rates.csv", "rates_constructive/widths.csv", "rates_table/bounds.csv"
EQUIVARIANCE, MIXING = "equivariance/deviation.json", "mixing_rank/values.json"


def ideal():
    """Results as the paper would have them."""
    rows = []
    for pairing, alpha, rank, mh in itertools.product(PAIRINGS, ALPHAS, RANKS, HEADS):
        r = float(rank)
        error = 1e-8 if mh >= r else (1 if rank == "inf" else r / 10) * mh ** -(2 * alpha - 1)
        if rank == "inf" and pairing == "dyadic-1":
            error *= mh**-0.02  # draws differ
        key = {"pairing": pairing, "alpha": alpha, "rank": rank, "mh": mh}
        rows.append(key | {"seed": None, "estimator": "constructive", "mse": error})
        rows.append(key | {"seed": 0, "estimator": "free-kernel", "mse": error})
        if pairing != "same":
            rows += [key | {"seed": s, "estimator": "paper", "mse": 1.5 * error} for s in (0, 1)]
    table = pd.DataFrame(rows).astype({"seed": "Int64"})
    width = [{"width": w, "alpha": a, "l1": w**-2.5} for w in (16, 32, 64) for a in ALPHAS]
    return {
        RATES: table,
        WIDTHS: pd.DataFrame(width),
        BOUNDS: table[table.estimator == "constructive"].assign(l1=0.5, literal=1.0, constants=2.0, root=2.0),
        EQUIVARIANCE: {"models": 10, "permutations": 20, "without_positions": 1e-13, "with_positions": 1.0},
        MIXING: {
            "paper": {"mixed": [1.265, 0.5, 0.4]},
            "quadrature": {"mixed": [1.2622, 0.5, 0.3961, 0.0]},
            "grid_256": {"mixed": [1.265, 0.498, 0.3968]},
            "rank": {"rho": 2, "mixed": 3},
        },
    }


def judged(name, world, folder):
    table = world[RATES]
    pod = table[table.estimator == "constructive"].assign(mse_without_diagonal=1.0, tail_sum=1.0)
    write(folder, world | {"rates_table/slopes.csv": slopes(table, pod)})
    return EVALUATORS[name](folder, LIMITS[name])


@pytest.mark.parametrize("name", EVALUATORS)
def test_in_the_papers_world_every_claim_is_reproduced(name, tmp_path):
    found = judged(name, ideal(), tmp_path)
    assert found.verdict == REPRODUCED
    assert found.measured and found.spread and found.n > 0 and found.why.endswith(".")


def errors(factor, **where):
    """A world with errors multiplied in the rows that `where` selects."""

    def change(world):
        t = world[RATES]
        rows = np.logical_and.reduce([t[k].isin(np.atleast_1d(v)) for k, v in where.items()])
        return world | {RATES: t.assign(mse=t.mse * np.where(rows, factor, 1.0))}

    return change


def columns(file, **values):
    return lambda world: world | {file: world[file].assign(**values)}


def entries(file, **values):
    return lambda world: world | {file: world[file] | values}


def only(file, condition):
    return lambda world: world | {file: world[file].query(condition)}


def flat(*alphas, pairings=PAIRINGS):
    """No decay with m_h at r = ∞."""

    def change(world):
        t = world[RATES]
        rows = (t["rank"] == "inf") & t.alpha.isin(alphas) & t.pairing.isin(pairings)
        noise = 1 + 0.01 * np.sin(7.0 * t.mh)  # least squares needs some residual
        return world | {RATES: t.assign(mse=t.mse.where(~rows, 0.1 * noise))}

    return change


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("equivariance", entries(EQUIVARIANCE, without_positions=1e-6), PARTLY),
        ("equivariance", entries(EQUIVARIANCE, without_positions=1, with_positions=0), NOT),
        ("bound", columns(BOUNDS, l1=1.5), PARTLY),
        ("bound", columns(BOUNDS, l1=3.0), NOT),
        ("width", columns(WIDTHS, l1=lambda d: d.width ** np.where(d.alpha > 1, -1.5, -2.5)), PARTLY),
        ("width", columns(WIDTHS, l1=lambda d: d.width**-1.5), NOT),
        ("finite-rank", errors(1e3, alpha=2.0, rank="6", mh=8), PARTLY),
        ("finite-rank", errors(1e3, rank=["2", "6"]), NOT),
        ("rank-order", errors(100, rank="6", mh=[4], alpha=ALPHAS), PARTLY),
        ("rank-order", errors(1e-9, rank="inf"), NOT),
        ("rate-by-alpha", flat(0.55, 1.0, 1.5), PARTLY),
        ("rate-by-alpha", flat(*ALPHAS), NOT),
        ("rate-value", flat(0.55), PARTLY),
        ("rate-value", flat(*ALPHAS), NOT),
        ("rate-by-alpha", flat(*ALPHAS, pairings=["same"]), REPRODUCED),
        ("rate-value", flat(*ALPHAS, pairings=["same"]), REPRODUCED),
        ("rate-by-alpha", flat(*ALPHAS, pairings=["dyadic-1"]), NOT),
        ("recipe", errors(10, estimator="paper", mh=[1]), PARTLY),
        ("recipe", errors(10, estimator="paper"), NOT),
        ("mixing-rank", entries(MIXING, quadrature={"mixed": [1.4, 0.5, 0.4, 0]}), PARTLY),
        ("mixing-rank", entries(MIXING, rank={"rho": 2, "mixed": 2}), NOT),
    ],
)
def test_a_broken_world_is_noticed(name, change, expected, tmp_path):
    assert judged(name, change(ideal()), tmp_path).verdict == expected


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("width", only(WIDTHS, "width < 64")),
        ("finite-rank", only(RATES, "rank == 'inf'")),
        ("rank-order", only(RATES, "rank == '2'")),
        ("rate-by-alpha", only(RATES, "mh < 4")),
        ("rate-by-alpha", only(RATES, "alpha == 2")),
        ("rate-value", only(RATES, "mh < 4")),
        ("rate-value", only(RATES, "pairing == 'same'")),
        ("recipe", only(RATES, "alpha < 1.5")),
    ],
)
def test_what_the_results_do_not_hold_cannot_be_tested(name, change, tmp_path):
    with pytest.raises(Untestable):
        judged(name, change(ideal()), tmp_path)


def test_exceptions_are_listed(tmp_path):
    found = judged("rank-order", errors(100, rank="2", mh=[1], alpha=2.0, pairing="same")(ideal()), tmp_path)
    assert "(same, α = 2, m_h = 1)" in found.why and "m_h = 4" not in found.why and "dyadic" not in found.why
    assert found.n == len(PAIRINGS) * len(ALPHAS) * (3 + 5), (
        "r = 2 and 6 are compared at m_h = 1, 2, 4; 6 and ∞ at every m_h"
    )


def test_slopes_are_means_over_the_draws_with_all_their_intervals_and_equal_bases_in_brackets(tmp_path):
    found = judged("rate-value", flat(*ALPHAS, pairings=["same"])(ideal()), tmp_path)
    assert "-1.01 (α = 1)" in found.measured and "[with ψ_i = φ_i: " in found.measured
    assert found.spread.startswith(
        "95 % intervals, joined over the draws of the pairing, 2: [-0.12, -0.10], [-1.02, -1.00]"
    )


def test_one_draw_has_the_intervals_of_its_fit(tmp_path):
    found = judged("rate-by-alpha", only(RATES, "pairing == 'dyadic-0'")(ideal()), tmp_path)
    assert found.verdict == REPRODUCED and "the pairing, 1: " in found.spread
    assert "[with" not in found.measured
