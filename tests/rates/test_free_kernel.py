"""The free kernel starts at the POD truncation and never ends worse."""

import numpy as np
import pytest

from attnrate.core.params import Group
from attnrate.rates import free_kernel, pod
from attnrate.rates.constructive import fourier

MODES = 7
OPTIONS = {"modes": MODES, "batch": 32, "lr": 3e-3}


@pytest.fixture(scope="module", params=["same", "dyadic-0"])
def target(request):
    return pod.make(request.param, 1.5, 5, terms=16, tau=8, size=512, seed=0)


def error(target, a, b):
    """MSE of the kernel ρ̂ = Σ φ̂_k ψ̂_k on the evaluation set, free of any network."""
    basis = fourier(target.x.astype(float), MODES)
    rho = (basis @ a) @ (basis @ b).swapaxes(-1, -2)
    return ((pod.softmax_average(rho, target.x) - target.y) ** 2).mean()


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_the_start_is_the_truncation(target, rank):
    a, b = free_kernel.pod_start(target, rank, MODES)
    truncated = ((target.truncated(rank) - target.y) ** 2).mean()
    assert a.shape == b.shape == (1 + 2 * MODES, rank)
    assert error(target, a, b) == pytest.approx(truncated, rel=1e-3, abs=1e-12)


def test_optimising_never_hurts_and_helps_below_the_rank(target):
    seeds = [0, 1]
    cells = {(mh, i): free_kernel.pod_start(target, mh, MODES) for mh in (1, 2, 4) for i in range(2)}
    found = free_kernel.optimise(target, cells, seeds, steps=150, **OPTIONS)
    assert set(found) == set(cells)
    for (mh, i), (a, b) in found.items():
        assert a.shape == b.shape == (1 + 2 * MODES, mh)
        start = error(target, *cells[mh, i])
        assert error(target, a, b) < 0.75 * start
    assert not np.array_equal(found[1, 0][0], found[1, 1][0]), "seeds see the same samples"


def test_a_cell_does_not_depend_on_its_neighbours(target):
    start = {(mh, 0): free_kernel.pod_start(target, mh, MODES) for mh in (1, 3)}
    together = free_kernel.optimise(target, start, [5], steps=20, **OPTIONS)
    alone = free_kernel.optimise(target, {(1, 0): start[1, 0]}, [5], steps=20, **OPTIONS)
    assert together[1, 0][0] == pytest.approx(alone[1, 0][0], abs=1e-5)


def test_errors_cover_the_heads_that_n_allows_and_are_exact_from_the_rank_on(target):
    """n ≥ 2 m_h + 1; below the rank the optimised kernel, fitted by a network, beats the truncation."""
    own = Group(mh=[2, 5, 7, 8], seeds=[0, 3], steps=150, **OPTIONS)
    rows = free_kernel.errors(target, own, Group(n=15, width=128))
    assert [(r["mh"], r["seed"]) for r in rows] == [(mh, seed) for mh in (2, 5, 7) for seed in (0, 3)]
    for row in rows:
        limit = 0.75 * ((target.truncated(2) - target.y) ** 2).mean() if row["mh"] == 2 else 1e-6
        assert row["mse"] < limit and (row["pairing"], row["alpha"], row["rank"]) == (target.pairing, 1.5, 5)


def test_no_cells_need_no_training(target):
    assert free_kernel.optimise(target, {}, [0], steps=10**9, **OPTIONS) == {}
