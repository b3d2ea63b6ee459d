"""Our own predictions: a world in which they hold, and every way to break one or to leave it open."""

import itertools

import pandas as pd
import pytest

from attnrate.report.claims.beyond import EVALUATORS
from attnrate.report.claims.ledger import NOT, PARTLY, REPRODUCED, UNDECIDED, read_criteria
from tests.report.common import both, entries, outcomes, write
from tests.report.common import judged as judge

DEPTH, FLOOR, FILTERS = "beyond_depth/errors.csv", "beyond_depth/floor.json", "beyond_filters/errors.csv"
HEADS, MASKED, BARE = "beyond_heads/errors.csv", "beyond_causal/errors.csv", "linear_train/centred/errors.csv"
MODELS = [("inputs", d, a) for d in (1, 2) for a in (True, False)]
MODELS += [("positions", 1, False), ("outside", 1, False)]
NOISE = (0.9, 1.0, 1.1)


def depth_rows():
    for (kind, depth, affine), order, seed in itertools.product(MODELS, ("original", "roll", "random"), range(3)):
        hurt = kind == "inputs" and depth == 1 and order != "original"
        yield kind, depth, affine, order, seed, (1e-2 if hurt else 1e-4) * NOISE[seed]


def filter_rows():
    runs = {
        ("transformer", "mixing"): 1e-2,
        ("transformer", "learned-filter"): 1e-4,
        ("hand-set", "constructive"): 1e-8,
    }
    for ((model, recipe), large), draw in itertools.product(runs.items(), range(6)):
        mse = (1e-4 if draw < 3 else large) * NOISE[draw % 3]
        yield model, recipe, draw, 0.1 * draw, mse, 1.0


def head_rows():
    for target, heads, draw in itertools.product(("1x8", "4x4"), (1, 4), range(3)):
        fits = (target == "1x8") == (heads == 1)
        yield target, draw, heads, "free", 0.0 if fits else 1e-4 * NOISE[draw], fits
        yield target, draw, heads, "trained", (1e-6 if fits else 1e-5) * NOISE[draw], fits


def linear_rows(mse):
    for order, seed in itertools.product(("original", "exchange", "roll"), range(3)):
        yield "exp", order, seed, mse * (1 + 0.01 * seed), 0.03


def ideal():
    linear = ["target", "alteration", "seed", "mse", "floor"]
    return {
        DEPTH: pd.DataFrame(depth_rows(), columns=["kind", "depth", "affine", "order", "seed", "share"]),
        FLOOR: {"original": 1e-5, "roll": 0.02},
        FILTERS: pd.DataFrame(filter_rows(), columns=["model", "recipe", "draw", "nu", "mse", "variance"]),
        HEADS: pd.DataFrame(head_rows(), columns=["target", "draw", "heads", "estimator", "mse", "exact"]),
        MASKED: pd.DataFrame(linear_rows(0.0301), columns=linear),
        BARE: pd.DataFrame(linear_rows(1e-5), columns=linear),
    }


def judged(name, change, folder):
    return judge(name, EVALUATORS[name], write(folder, change(ideal())))


@pytest.mark.parametrize("name", EVALUATORS)
def test_in_a_world_as_predicted_every_prediction_holds(name, tmp_path):
    assert judged(name, both(), tmp_path)["verdict"] == REPRODUCED


def times(file, factor, **where):
    """The errors of some rows times a factor."""

    def change(world):
        table = world[file]
        rows = (table[list(where)] == pd.Series(where)).all(axis=1)
        column = "share" if "share" in table else "mse"
        return world | {file: table.assign(**{column: table[column].where(~rows, table[column] * factor)})}

    return change


def seeds(file, n):
    return lambda world: world | {file: world[file][world[file].get("seed", world[file].get("draw")) < n]}


@pytest.mark.parametrize(
    ("name", "change", "verdict"),
    [
        ("depth-floor", entries(FLOOR, roll=1e-4), NOT),
        ("depth-floor", entries(FLOOR, original=0.1), NOT),
        ("depth-one", times(DEPTH, 0.01, depth=1, affine=False, order="roll"), PARTLY),
        ("depth-one", times(DEPTH, 100.0, order="original"), NOT),
        ("depth-two", times(DEPTH, 100.0, depth=2, affine=True, order="random"), PARTLY),
        ("depth-two", times(DEPTH, 0.01, order="original"), NOT),
        ("depth-two", seeds(DEPTH, 2), UNDECIDED),
        ("depth-controls", times(DEPTH, 100.0, kind="outside", order="roll"), PARTLY),
        ("depth-controls", times(DEPTH, 1e5, kind="outside", order="roll", seed=1), UNDECIDED),
        ("mixing-mass", times(FILTERS, 100.0, recipe="mixing", nu=0.1), UNDECIDED),
        ("mixing-won-back", times(FILTERS, 1000.0, recipe="learned-filter"), NOT),
        ("heads-structure", times(HEADS, 1e-4, estimator="free"), NOT),
        ("heads-trained", times(HEADS, 0.1, estimator="trained", target="4x4", heads=1), PARTLY),
        ("heads-trained", seeds(HEADS, 2), UNDECIDED),
        ("causal-floor", times(MASKED, 2.0, alteration="roll"), PARTLY),
        ("causal-floor", times(BARE, 3000.0, alteration="roll"), PARTLY),
    ],
)
def test_another_world_has_another_verdict(name, change, verdict, tmp_path):
    found = judged(name, change, tmp_path)
    assert found["verdict"] == verdict, outcomes(found)


def test_a_floor_and_the_error_that_meets_it_have_the_same_digits(tmp_path):
    """0.03 beside 0.0301 would look like another number; both orders say what has no mask."""
    change = times(MASKED, 0.03 / 0.0301 / 1.01, alteration="exchange")
    first, second = judged("causal-floor", change, tmp_path)["measured"].split("; ")
    assert first == "exchange: floor 0.0300, 0.0300 masked, 1.01e-05 without"
    assert second == "roll: floor 0.0300, 0.0304 masked, 1.01e-05 without"


def test_errors_that_bound_the_least_from_above_are_of_so_many_steps(tmp_path):
    found = judged("heads-structure", both(), tmp_path)
    assert found["converged"] == "not run" and found["why"].endswith("These errors bound the least from above.")


def test_ours_are_marked():
    assert {name for name, row in read_criteria().items() if row.get("ours")} == set(EVALUATORS)
