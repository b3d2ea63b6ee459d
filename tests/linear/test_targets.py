import numpy as np
import pytest

from attnrate.linear import targets

TARGETS = {t.name: t for t in targets.make_all(32, kernel_seed=0, filter_seed=0)}
X = np.random.default_rng(1).random((5, 32))


def convolve(rho, x):
    """H_t(x) = Σ_s ρ(s) x(t-s), eq. (69), term by term."""
    return np.array([[sum(rho[s] * row[t - s] for s in range(t + 1)) for t in range(len(row))] for row in x])


def test_every_name_is_a_target_and_the_first_output_is_rho0_x0():
    assert list(TARGETS) == targets.NAMES
    assert np.allclose(X @ TARGETS["exp/original"].matrix.T, convolve(np.exp(-np.arange(32)), X))


@pytest.mark.parametrize("kernel", targets.KERNELS)
def test_exchange_swaps_the_first_and_last_ten_inputs(kernel):
    target = TARGETS[f"{kernel}/exchange"]
    seen = X.copy()
    seen[:, :10], seen[:, 22:] = X[:, 22:], X[:, :10]
    assert np.allclose(seen @ target.matrix.T, convolve(target.rho, X))  # H̃(x ∘ p) = H(x)


def test_roll_moves_the_first_ten_inputs_to_the_end():
    target = TARGETS["exp/roll"]
    seen = np.concatenate([X[:, 10:], X[:, :10]], 1)
    assert np.allclose(seen @ target.matrix.T, convolve(target.rho, X))


def test_mixing_filters_the_input():
    rho = TARGETS["exp/original"].rho
    theta = targets.draw_filter("signed", 0)
    past = np.array([[sum(theta[j] * row[t - j] for j in range(min(5, t + 1))) for t in range(32)] for row in X])
    future = np.array([[sum(theta[j] * row[t + j] for j in range(min(5, 32 - t))) for t in range(32)] for row in X])
    assert np.allclose(X @ TARGETS["exp/causal/signed"].matrix.T, convolve(rho, past))
    assert np.allclose(X @ TARGETS["exp/literal/signed"].matrix.T, convolve(rho, future))


def test_altered_kernel_of_an_exponential_is_only_rescaled():
    """Eqs. (96) to (98): Σ_j θ(j) e^-(s+j) = e^-s Σ_j θ(j) e^-j."""
    theta = targets.draw_filter("positive", 0)
    kernel = TARGETS["exp/altered-kernel/positive"].matrix[:, 0]
    assert np.allclose(kernel / np.exp(-np.arange(32)), (theta * np.exp(-np.arange(5))).sum())


def test_positive_filter_has_norm_one():
    theta = targets.draw_filter("positive", 3)
    assert (theta > 0).all() and theta.sum() == pytest.approx(1)


def test_saved_targets_come_back(tmp_path):
    targets.save(tmp_path / "t.npz", list(TARGETS.values()))
    back = targets.load(tmp_path / "t.npz")
    assert [t.name for t in back] == targets.NAMES
    assert all(np.array_equal(a.matrix, TARGETS[a.name].matrix) and a.table == TARGETS[a.name].table for a in back)


def test_what_is_random_is_drawn_anew_and_the_first_draw_stays():
    """A later draw is the first of the next seed."""
    drawn = targets.make_all(32, kernel_seed=0, filter_seed=0, draws=3)
    shifted = {t.name: t for t in targets.make_all(32, kernel_seed=2, filter_seed=2)}
    by_name = {n: [t for t in drawn if t.name == n] for n in targets.NAMES}
    for name, own in by_name.items():
        random = name.startswith("uniform") or name.count("/") == 2
        assert [t.draw for t in own] == ([0, 1, 2] if random else [0])
        assert (own[0].matrix == TARGETS[name].matrix).all()
        assert (own[-1].matrix == shifted[name].matrix).all()


def test_each_seed_meets_its_own_draw():
    drawn = targets.make_all(32, kernel_seed=0, filter_seed=0, draws=3)
    found = targets.replicates(drawn, ["exp/original", "uniform/roll"], [7, 8, 9])
    assert [(t.name, t.draw, seed) for t, seed in found] == [
        *(("exp/original", 0, s) for s in (7, 8, 9)),
        *(("uniform/roll", i, s) for i, s in enumerate((7, 8, 9))),
    ]
