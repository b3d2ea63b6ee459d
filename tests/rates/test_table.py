"""The table of section 5.1: joined, minimised, fitted."""

import numpy as np
import pandas as pd
import pytest

from attnrate.rates import table as rates
from attnrate.rates import theory
from attnrate.rates.best import draws
from attnrate.rates.pod import make

HEADS = (1, 2, 4, 8)


def frame(mse, rank="inf", alpha=1.0, seeds=(None,), heads=HEADS, pairing="dyadic-0"):
    key = {"pairing": pairing, "alpha": alpha, "rank": rank}
    rows = [
        key | {"mh": mh, "mse": mse(mh, seed)} | ({} if seed is None else {"seed": seed})
        for mh in heads
        for seed in seeds
    ]
    return pd.DataFrame(rows)


def table_of(**parts):
    return rates.join({name.replace("_", "-"): part for name, part in parts.items()})


def test_joining_keeps_every_row_under_the_agreed_columns():
    table = table_of(
        pod=frame(lambda m, _: 1 / m).assign(tail_sum=9.0),
        paper=frame(lambda m, s: m + s, seeds=(0, 1)),
        free_kernel=frame(lambda m, s: m, rank="6", seeds=(1,)),
    )
    assert list(table.columns) == ["pairing", "alpha", "rank", "mh", "seed", "estimator", "mse"]
    assert table.estimator.value_counts().to_dict() == {"paper": 8, "pod": 4, "free-kernel": 4}
    assert table.seed.isna().equals(table.estimator == "pod") and table.seed.dtype == "Int64"


def test_joining_does_not_depend_on_the_order_of_the_parts():
    parts = {"pod": frame(lambda m, _: 1 / m), "paper": frame(lambda m, s: m + s, seeds=(1, 0))}
    assert rates.join(parts).equals(rates.join(dict(reversed(parts.items()))))


def test_the_best_is_the_least_over_networks_and_seeds_but_not_the_pod():
    table = table_of(
        pod=frame(lambda m, _: 0.0),
        paper=frame(lambda m, s: 5 / m if s else 9, seeds=(0, 1)),
        constructive=frame(lambda m, _: 4 / m),
    )
    best = rates.best(table)
    assert best.mse.tolist() == [4 / m for m in HEADS] and set(best.estimator) == {"constructive"}


def test_a_small_model_is_also_a_large_one():
    """A worse estimate at a larger head size never raises the best error."""
    errors = dict(zip(HEADS, (3.0, 1.0, 2.0, 0.5), strict=True))
    table = table_of(trained=frame(lambda m, s: errors[m], seeds=(0,)))
    assert rates.best(table).mse.tolist() == [3.0, 1.0, 1.0, 0.5]


def test_the_best_never_crosses_from_one_target_to_another():
    table = table_of(
        trained=pd.concat(
            [
                frame(lambda m, _: 1e-9, alpha=2.0),
                frame(lambda m, _: 1.0),
                frame(lambda m, _: 1e-3, rank="2"),
                frame(lambda m, _: 1e-6, pairing="same"),
            ]
        )
    )
    found = rates.best(table).set_index(["pairing", "alpha", "rank", "mh"]).mse
    drawn = found["dyadic-0"]
    assert (drawn[1.0, "inf"] == 1).all() and (drawn[1.0, "2"] == 1e-3).all() and (drawn[2.0, "inf"] == 1e-9).all()
    assert (found["same"] == 1e-6).all()


def test_the_draws_are_the_rows_of_random_pairings_or_all_there_are():
    drawn, same = frame(lambda m, _: 1.0), frame(lambda m, _: 2.0, pairing="same")
    assert draws(pd.concat([drawn, same])).equals(drawn)
    assert draws(same).equals(same)


def test_every_pairing_has_its_own_slopes():
    parts = [frame(lambda m, _, k=k: m**k, pairing=p) for p, k in (("dyadic-0", -1.0), ("dyadic-1", -2.0))]
    pod = pd.concat(parts).assign(mse_without_diagonal=1.0, tail_sum=1.0)
    found = rates.slopes(table_of(free_kernel=pod), pod).set_index(["estimator", "pairing"]).slope
    assert found["best"].to_dict() == pytest.approx({"dyadic-0": -1, "dyadic-1": -2})


@pytest.mark.parametrize("alpha", [0.55, 1.5])
def test_slopes_of_known_power_laws_are_found(alpha):
    law = {"pod": -0.7, "paper": -0.2, "free-kernel": -1.1}
    parts = {name: frame(lambda m, s, k=k: m**k, alpha=alpha, seeds=(0, 1)) for name, k in law.items()}
    pod = parts["pod"].assign(mse_without_diagonal=lambda d: 1.0 * d.mh**-2.0, tail_sum=lambda d: 1.0 * d.mh**-3.0)
    found = rates.slopes(rates.join(parts), pod).set_index("estimator")
    expected = law | {"best": -1.1, "pod, s ≠ t": -2.0, "tail sum": -3.0}
    assert found.slope.to_dict() == pytest.approx(expected)
    assert (found.predicted == -(2 * alpha - 1)).all() and (found.n == 4).all()


def test_the_slope_of_the_best_is_fitted_at_the_head_sizes_of_the_free_kernel():
    """Between them the best error does not fall, and would bend the line."""
    parts = {"free_kernel": frame(lambda m, _: m**-2.0), "constructive": frame(lambda m, _: 9.0, heads=range(1, 9))}
    found = rates.slopes(table_of(**parts), parts["free_kernel"].assign(mse_without_diagonal=1.0, tail_sum=1.0))
    best = found.set_index("estimator").loc["best"]
    assert best.slope == pytest.approx(-2) and best.n == len(HEADS)


def test_slopes_use_the_median_of_the_seeds_and_rank_infinity_only():
    outlier = frame(lambda m, s: {0: 1, 1: 1, 2: 10.0**m}[s] * m**-1.0, seeds=(0, 1, 2))
    other = frame(lambda m, s: m**9.0, rank="6", seeds=(0,))
    pod = frame(lambda m, _: m**-1.0).assign(mse_without_diagonal=1.0, tail_sum=1.0)
    found = rates.slopes(table_of(paper=pd.concat([outlier, other])), pod).set_index("estimator")
    assert found.slope["paper"] == pytest.approx(-1)


@pytest.mark.parametrize("mh", [1, 3, 5])
def test_the_truncation_is_measured_with_and_without_the_diagonal(mh):
    """From m_h = r on both errors and the tail sum vanish; before, none does."""
    target = make("dyadic-0", 1.0, 3, terms=9, tau=8, size=32, seed=0)
    (row,) = rates.truncation(target, [mh])
    errors = [row["mse"], row["mse_without_diagonal"], row["tail_sum"]]
    assert all(e < 1e-12 for e in errors) if mh >= 3 else all(e > 1e-4 for e in errors)
    assert row["tail_sum"] == pytest.approx(sum(i**-2.0 for i in range(mh + 1, 4)))
    assert row["mse_to_copy"] == pytest.approx(((target.x - target.y) ** 2).mean())
    assert list(row.items())[:4] == [("pairing", "dyadic-0"), ("alpha", 1.0), ("rank", 3), ("mh", mh)]


def test_two_head_sizes_make_no_slope():
    part = frame(lambda m, _: 1 / m, heads=(1, 2))
    found = rates.slopes(table_of(paper=part, pod=part), part.assign(mse_without_diagonal=1.0, tail_sum=1.0))
    assert found.empty and "slope" in found.columns


def test_bounds_stand_beside_the_largest_measured_error():
    parts = [frame(lambda m, _: 0.0, rank=r).assign(l1=lambda d: 1 / d.mh) for r in ("2", "inf")]
    targets = [make("dyadic-0", 1.0, r, terms=32, tau=16, size=2, seed=0) for r in (2, "inf")]
    found = rates.bounds(pd.concat([*parts, parts[0].assign(l1=0.0)]), targets, width=64)
    assert len(found) == 2 * len(HEADS) and np.allclose(found.l1, 1 / found.mh)
    for t in targets:
        row = found[(found["rank"] == str(t.rank)) & (found.mh == 8)].iloc[0]
        for reading in theory.READINGS:
            assert row[reading] == theory.bound(t.sigma, t.frequencies, 1.0, 8, 64, 16, reading)
