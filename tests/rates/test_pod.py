"""Eq. (8) targets: the prescribed singular values are the singular values."""

import itertools

import numpy as np
import pytest

from attnrate.core.params import Group
from attnrate.laws.powerlaw import loglog_slope
from attnrate.rates import pod

PAIRINGS = ("same", "dyadic-0", "dyadic-1", "dyadic-2")
x_q, w_q = np.polynomial.legendre.leggauss(128)
x_q, w_q = (x_q + 1) / 2, w_q / 2


def on_nodes(sigma, pairing="same"):
    """√w_i ρ(x_i, x_j) √w_j, whose singular values are those of the integral operator."""
    frequencies = pod.pair(pairing, 99)[: len(sigma)]
    return np.sqrt(w_q[:, None] * w_q) * pod.coupling(sigma, frequencies, x_q[None])[0]


@pytest.mark.parametrize("pairing", PAIRINGS[:2])
@pytest.mark.parametrize("alpha", [0.55, 1.0, 2.0])
@pytest.mark.parametrize("rank", [1, 2, 6])
def test_singular_values_by_quadrature_are_those_prescribed(alpha, rank, pairing):
    found = np.linalg.svd(on_nodes(pod.singular_values(alpha, rank, 99), pairing), compute_uv=False)
    assert found[:rank] == pytest.approx(np.arange(1, rank + 1) ** -alpha, rel=1e-10)
    assert found[rank] < 1e-10


@pytest.mark.parametrize("pairing", PAIRINGS[:2])
@pytest.mark.parametrize("mh", [1, 3, 5])
def test_truncation_is_the_best_kernel_of_its_rank(mh, pairing):
    """Eq. (11): its squared error is the tail sum, and no other kernel of rank m_h tried here does better."""
    sigma = pod.singular_values(1.0, 8, 8)
    full, cut = on_nodes(sigma, pairing), on_nodes(sigma[:mh], pairing)
    tail = np.sum(sigma[mh:] ** 2)
    assert np.sum((full - cut) ** 2) == pytest.approx(tail, rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        left = rng.standard_normal((len(x_q), mh))
        best_for_left = left @ np.linalg.lstsq(left, full, rcond=None)[0]
        assert np.sum((full - best_for_left) ** 2) > tail


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("terms", [1, 2, 3, 11, 64])
def test_a_pairing_maps_each_dyadic_block_onto_itself(pairing, terms):
    """{1}, {2, 3}, {4 … 7}, …; the last block may be incomplete."""
    p, first = pod.pair(pairing, terms), 1
    assert len(p) == terms
    while first <= terms:
        last = min(2 * first - 1, terms)
        assert sorted(p[first - 1 : last]) == list(range(first, last + 1))
        first *= 2


def test_same_is_the_identity_and_each_draw_is_another():
    assert pod.pair("same", 64).tolist() == list(range(1, 65))
    drawn = [pod.pair(f"dyadic-{seed}", 64) for seed in (0, 1, 0)]
    assert np.array_equal(drawn[0], drawn[2]) and not np.array_equal(drawn[0], drawn[1])
    assert all((d != pod.pair("same", 64)).any() for d in drawn)


def test_every_block_is_permuted_in_every_way():
    """{4 … 7} has 24 orders, and over 600 draws each is as frequent as chance allows."""
    orders, counts = np.unique([pod.pair(f"dyadic-{seed}", 7)[3:] for seed in range(600)], axis=0, return_counts=True)
    assert len(orders) == 24 and counts.min() > 8 and counts.max() < 50


def test_a_finite_rank_cuts_the_pairing_of_all_terms():
    """So ψ_i may have a frequency above r."""
    whole, cut = (pod.make("dyadic-0", 1.0, r, terms=64, tau=3, size=5, seed=0) for r in ("inf", 5))
    assert np.array_equal(cut.frequencies, whole.frequencies[:5]) and len(cut.sigma) == 5
    assert cut.frequencies.max() > 5


@pytest.mark.parametrize(
    ("alpha", "drawn", "same"), [(0.55, -0.45, -0.85), (1.0, -0.8, -0.5), (1.5, -1.97, -1.2), (2.0, -2.9, -2.3)]
)
def test_drawn_pairings_have_the_papers_slopes_and_equal_bases_do_not(alpha, drawn, same):
    """POD truncation at r = ∞ over m_h = 1 … 16; -(2α-1) is -0.1, -1, -2, -3."""
    found = []
    for pairing in PAIRINGS:
        t = pod.make(pairing, alpha, "inf", terms=512, tau=16, size=48, seed=7)
        found.append(loglog_slope(range(1, 17), [((t.truncated(m) - t.y) ** 2).mean() for m in range(1, 17)])["slope"])
    assert found[0] == pytest.approx(same, abs=0.15)
    assert found[1:] == pytest.approx([drawn] * 3, abs=0.2)


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
    found = pod.coupling(pod.singular_values(2.0, "inf", terms), pod.pair("same", terms), u)
    assert np.abs(found - closed).max() < 2 / terms


def test_the_output_is_the_softmax_average_of_the_inputs():
    t = pod.make("dyadic-2", 1.0, 5, terms=7, tau=5, size=4, seed=0)
    assert t.frequencies.tolist() == [1, 2, 3, 6, 5]
    for x, y in zip(t.x.astype(float), t.y, strict=True):
        for k in range(5):
            rho = sum(
                i**-1.0 * 2 * np.sin(2 * np.pi * i * x[k]) * np.sin(2 * np.pi * p * x)
                for i, p in enumerate((1, 2, 3, 6, 5), 1)
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
    t = pod.make("dyadic-0", 1.5, 2, terms=9, tau=8, size=16, seed=0)
    exact = pod.softmax_average(pod.coupling(t.sigma, t.frequencies, t.x), t.x, diagonal)
    assert t.truncated(2, diagonal) == pytest.approx(exact, abs=1e-7)
    assert t.truncated(7, diagonal) == pytest.approx(exact, abs=1e-7)
    assert np.abs(t.truncated(1, diagonal) - exact).max() > 1e-3


def test_targets_of_one_seed_share_their_inputs():
    cells = (("same", 1, 2, 0), ("dyadic-0", 2, "inf", 0), ("same", 1, 2, 1))
    a, b, c = (pod.make(*target, terms=4, tau=3, size=5, seed=seed) for *target, seed in cells)
    assert np.array_equal(a.x, b.x) and not np.array_equal(a.x, c.x)
    assert a.x.min() >= 0 and a.x.max() < 1


def test_a_grid_is_made_of_every_triple():
    sizes = {"terms": 4, "tau": 3, "eval_size": 5, "eval_seed": 0}
    grid = Group(pairings=["dyadic-0", "same"], alphas=[0.55, 2.0], ranks=[2, "inf"], **sizes)
    made = list(pod.make_grid(**grid))
    names = ["alpha0.55_rank2", "alpha0.55_rankinf", "alpha2_rank2", "alpha2_rankinf"]
    assert [t.name for t in made] == [f"{pairing}_{n}" for pairing in ("dyadic-0", "same") for n in names]
    one = pod.make("same", 2.0, 2, terms=4, tau=3, size=5, seed=0)
    assert np.array_equal(made[6].x, one.x) and np.array_equal(made[6].y, one.y)


def test_a_target_on_given_inputs_is_the_target():
    made = pod.make("same", 1.5, 3, terms=9, tau=4, size=6, seed=0)
    again = pod.of_rank(1.5, 3, made.x.astype(float))
    assert np.array_equal(again.sigma, made.sigma) and again.y == pytest.approx(made.y, abs=1e-6)


def test_a_folder_gives_the_asked_grid_and_nothing_else(tmp_path):
    for cell in itertools.product(("same", "dyadic-1"), (0.55, 1.0, 2.0), (2, "inf")):
        t = pod.make(*cell, terms=4, tau=3, size=5, seed=0)
        t.save(tmp_path / f"{t.name}.npz")
    found = pod.load_grid(tmp_path, Group(pairings=["dyadic-1"], alphas=[2.0, 0.55], ranks=["inf"]))
    assert [(t.pairing, t.alpha, t.rank) for t in found] == [("dyadic-1", 2.0, "inf"), ("dyadic-1", 0.55, "inf")]
    fresh = pod.make("dyadic-1", 2.0, "inf", terms=4, tau=3, size=5, seed=0)
    for name in ("sigma", "frequencies", "x", "y"):
        assert np.array_equal(getattr(found[0], name), getattr(fresh, name))


def test_saving_twice_gives_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        pod.make("dyadic-0", 1.0, 2, terms=4, tau=3, size=5, seed=0).save(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
