import numpy as np
import pytest

from attnrate.linear import complexity, floors, targets

TARGETS = targets.make_all(32, kernel_seed=0, filter_seed=0)


def least_squares(matrix, offset):
    """The floor again, by least squares over Gauss points: their first two moments are those of U[0, 1]."""
    tau = len(matrix)
    # z = mean + deviation with deviations ±√variance one at a time span every quadratic in z exactly.
    rows, values = [], []
    for t in range(tau):
        for s in range(tau):  # variance of z(s) in output t
            line = np.zeros(tau + (1 if offset == "constant" else tau if offset == "free" else 0))
            if t - s >= 0:
                line[t - s] = np.sqrt(1 / 12)
            rows.append(line)
            values.append(np.sqrt(1 / 12) * matrix[t, s])
        line = np.zeros_like(line)
        line[: t + 1] = 0.5
        if offset == "constant":
            line[tau] = 1
        elif offset == "free":
            line[tau + t] = 1
        rows.append(line)
        values.append(0.5 * matrix[t].sum())
    rows, values = np.array(rows), np.array(values)
    solution = np.linalg.lstsq(rows, values, rcond=None)[0]
    return ((rows @ solution - values) ** 2).sum() / tau, solution[:tau]


@pytest.mark.parametrize("offset", floors.OFFSETS)
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_floor_agrees_with_least_squares(target, offset):
    found = floors.floor(target.matrix, offset)
    mse, kernel = least_squares(target.matrix, offset)
    assert found.mse == pytest.approx(mse, abs=1e-6)
    if offset != "free":  # with a free offset a shift of the mean can hide in it, but not here: U[0,1] has variance
        assert np.allclose(found.kernel, kernel, atol=1e-6)


def test_floor_is_what_sampled_regression_finds():
    matrix = next(t for t in TARGETS if t.name == "exp/roll").matrix
    z = np.random.default_rng(0).random((4000, 32))
    past = np.stack([np.pad(z, ((0, 0), (s, 0)))[:, :32] for s in range(32)], -1)  # z(t-s): (N, τ, τ)
    y = z @ matrix.T
    k = np.linalg.lstsq(past.reshape(-1, 32), y.reshape(-1), rcond=None)[0]
    sampled = ((past @ k - y) ** 2).mean()
    assert sampled == pytest.approx(floors.floor(matrix).mse, rel=0.03)


@pytest.mark.parametrize(
    "name, none, constant, free",
    [
        ("exp/exchange", 8.05e-2, 6.51e-2, 5.26e-2),
        ("exp/roll", 8.85e-2, 5.10e-2, 3.01e-2),
        ("exp/literal/positive", 3.61e-2, 2.28e-2, 2.08e-2),
    ],
)
def test_known_floors(name, none, constant, free):
    matrix = next(t for t in TARGETS if t.name == name).matrix
    found = [floors.floor(matrix, o).mse for o in floors.OFFSETS]
    assert found == pytest.approx([none, constant, free], rel=2e-3)


def test_causal_convolutions_have_no_floor():
    for target in TARGETS:
        causal = target.alteration in ("original", "permute-kernel", "causal", "altered-kernel")
        assert (floors.floor(target.matrix).mse == 0) == causal, target.name


def test_error_away_from_the_best_kernel_is_the_quadratic_form():
    matrix = next(t for t in TARGETS if t.name == "exp/exchange").matrix
    best = floors.floor(matrix)
    k = best.kernel + 0.1 * np.random.default_rng(0).standard_normal(32)
    difference = matrix - targets.toeplitz(k)
    direct = (floors.VARIANCE * (difference**2).sum(1) + (0.5 * difference.sum(1)) ** 2).mean()
    assert best.mse + (k - best.kernel) @ best.hessian @ (k - best.kernel) == pytest.approx(direct)


def test_constant_predictor_is_the_variance_of_y():
    matrix = TARGETS[0].matrix
    y = np.random.default_rng(0).random((20000, 32)) @ matrix.T
    assert floors.constant_predictor(matrix) == pytest.approx(y.var(), rel=0.02)


def test_rnn_complexity_of_the_paper_kernels():
    by_name = {t.name: t.matrix for t in TARGETS}
    assert complexity.c_rnn(by_name["exp/original"]) == pytest.approx(1)  # γ = 1, Proposition 6.3
    assert complexity.c_rnn(by_name["exp/original"], corrected=False) == pytest.approx(2)  # (76) as printed
    assert complexity.c_rnn(by_name["exp/altered-kernel/positive"]) <= 1
    assert complexity.c_rnn(by_name["exp/exchange"]) == np.inf
    assert complexity.depends_on_future(by_name["exp/roll"])
    assert not complexity.depends_on_future(by_name["exp/permute-kernel"])
    assert complexity.singular_value_change(by_name["exp/original"], by_name["exp/roll"]) < 1e-12
    assert complexity.singular_value_change(by_name["exp/original"], by_name["exp/causal/signed"]) > 1e-2


def test_a_row_of_the_table_holds_floors_variance_and_complexities():
    for target in TARGETS:
        row = complexity.row(target)
        assert targets.name(row["target"], row["alteration"], row["filter"]) == target.name
        floor = {offset: row[f"floor_{offset}"] for offset in floors.OFFSETS}
        assert floor["none"] >= floor["constant"] >= floor["free"] >= 0 and row["variance"] > floor["free"]
        assert row["future"] == (target.alteration in ("exchange", "roll", "literal"))
        assert (row["c_rnn"] == np.inf) == (row["c_rnn_literal"] == np.inf) == row["future"]
        if target.alteration in ("original", "exchange", "roll"):
            assert row["singular_value_change"] < 1e-12
