"""Eq. (8) targets: the prescribed singular values are the singular values."""

import numpy as np
import pytest

from attnrate.core.params import Group
from attnrate.rates import pod

x_q, w_q = np.polynomial.legendre.leggauss(128)
x_q, w_q = (x_q + 1) / 2, w_q / 2


def on_nodes(sigma):
    """√w_i ρ(x_i, x_j) √w_j, whose singular values are those of the integral operator."""
    return np.sqrt(w_q[:, None] * w_q) * pod.coupling(sigma, x_q[None])[0]


@pytest.mark.parametrize("alpha", [0.55, 1.0, 2.0])
@pytest.mark.parametrize("rank", [1, 2, 6])
def test_singular_values_by_quadrature_are_those_prescribed(alpha, rank):
    found = np.linalg.svd(on_nodes(pod.singular_values(alpha, rank, 99)), compute_uv=False)
    assert found[:rank] == pytest.approx(np.arange(1, rank + 1) ** -alpha, rel=1e-10)
    assert found[rank] < 1e-10


@pytest.mark.parametrize("mh", [1, 3, 5])
def test_truncation_is_the_best_kernel_of_its_rank(mh):
    """Eq. (11): its squared error is the tail sum, and no other kernel of rank m_h tried here does better."""
    sigma = pod.singular_values(1.0, 8, 8)
    full, cut = on_nodes(sigma), on_nodes(sigma[:mh])
    tail = np.sum(sigma[mh:] ** 2)
    assert np.sum((full - cut) ** 2) == pytest.approx(tail, rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        left = rng.standard_normal((len(x_q), mh))
        best_for_left = left @ np.linalg.lstsq(left, full, rcond=None)[0]
        assert np.sum((full - best_for_left) ** 2) > tail


def test_infinite_rank_is_cut_at_the_stated_terms():
    assert len(pod.singular_values(1.0, "inf", 37)) == 37
    assert len(pod.singular_values(1.0, 5, 37)) == 5


def test_alpha_2_has_the_closed_form_of_bernoulli():
    """Σ i^-2 2 sin 2πiu sin 2πiv = π² (B_2(|u - v|) - B_2({u + v})), B_2(x) = x² - x + 1/6."""

    def b2(x):
        return x**2 - x + 1 / 6

    u = np.random.default_rng(1).random((3, 7))
    closed = np.pi**2 * (b2(np.abs(u[:, :, None] - u[:, None])) - b2((u[:, :, None] + u[:, None]) % 1))
    terms = 4096
    found = pod.coupling(pod.singular_values(2.0, "inf", terms), u)
    assert np.abs(found - closed).max() < 2 / terms


def test_the_output_is_the_softmax_average_of_the_inputs():
    t = pod.make(1.0, 3, terms=3, tau=5, size=4, seed=0)
    for x, y in zip(t.x.astype(float), t.y, strict=True):
        for k in range(5):
            rho = sum(
                t.sigma[i] * 2 * np.sin(2 * np.pi * (i + 1) * x[k]) * np.sin(2 * np.pi * (i + 1) * x) for i in range(3)
            )
            assert y[k] == pytest.approx(np.sum(np.exp(rho) * x) / np.exp(rho).sum(), abs=1e-6)


def test_softmax_ignores_row_constants_and_survives_large_scores():
    rng = np.random.default_rng(0)
    rho, x = rng.standard_normal((3, 6, 6)), rng.random((3, 6))
    assert pod.softmax_average(rho + rng.standard_normal((3, 6, 1)), x) == pytest.approx(pod.softmax_average(rho, x))
    hard = pod.softmax_average(1e6 * rho, x)
    assert hard == pytest.approx(np.take_along_axis(x, rho.argmax(-1), 1))


def test_leaving_out_the_diagonal_leaves_out_exactly_that():
    rng = np.random.default_rng(0)
    rho, x = rng.standard_normal((2, 4, 4)), rng.random((2, 4))
    found = pod.softmax_average(rho, x, diagonal=False)
    for n in range(2):
        for t in range(4):
            others = [s for s in range(4) if s != t]
            w = np.exp(rho[n, t, others])
            assert found[n, t] == pytest.approx(w @ x[n, others] / w.sum())


@pytest.mark.parametrize("diagonal", [True, False])
def test_a_truncation_beyond_the_rank_is_the_target(diagonal):
    t = pod.make(1.5, 2, terms=9, tau=8, size=16, seed=0)
    exact = pod.softmax_average(pod.coupling(t.sigma, t.x), t.x, diagonal)
    assert t.truncated(2, diagonal) == pytest.approx(exact, abs=1e-7)
    assert t.truncated(7, diagonal) == pytest.approx(exact, abs=1e-7)
    assert np.abs(t.truncated(1, diagonal) - exact).max() > 1e-3


def test_targets_of_one_seed_share_their_inputs():
    a, b, c = (pod.make(al, r, terms=4, tau=3, size=5, seed=s) for al, r, s in ((1, 2, 0), (2, "inf", 0), (1, 2, 1)))
    assert np.array_equal(a.x, b.x) and not np.array_equal(a.x, c.x)
    assert a.x.min() >= 0 and a.x.max() < 1


def test_a_grid_is_made_of_every_pair():
    sizes = {"terms": 4, "tau": 3, "eval_size": 5, "eval_seed": 0}
    made = list(pod.make_grid(**Group(alphas=[0.55, 2.0], ranks=[2, "inf"], **sizes)))
    assert [t.name for t in made] == ["alpha0.55_rank2", "alpha0.55_rankinf", "alpha2_rank2", "alpha2_rankinf"]
    one = pod.make(2.0, 2, terms=4, tau=3, size=5, seed=0)
    assert np.array_equal(made[2].x, one.x) and np.array_equal(made[2].y, one.y)


def test_a_target_on_given_inputs_is_the_target():
    made = pod.make(1.5, 3, terms=9, tau=4, size=6, seed=0)
    again = pod.of_rank(1.5, 3, made.x.astype(float))
    assert np.array_equal(again.sigma, made.sigma) and again.y == pytest.approx(made.y, abs=1e-6)


def test_a_folder_gives_the_asked_grid_and_nothing_else(tmp_path):
    for alpha in (0.55, 1.0, 2.0):
        for rank in (2, "inf"):
            t = pod.make(alpha, rank, terms=4, tau=3, size=5, seed=0)
            t.save(tmp_path / f"{t.name}.npz")
    found = pod.load_grid(tmp_path, Group(alphas=[2.0, 0.55], ranks=["inf"]))
    assert [(t.alpha, t.rank) for t in found] == [(2.0, "inf"), (0.55, "inf")]
    fresh = pod.make(2.0, "inf", terms=4, tau=3, size=5, seed=0)
    for name in ("sigma", "x", "y"):
        assert np.array_equal(getattr(found[0], name), getattr(fresh, name))


def test_saving_twice_gives_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        pod.make(1.0, 2, terms=4, tau=3, size=5, seed=0).save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
