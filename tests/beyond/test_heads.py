import numpy as np
import pytest
import torch

from attnrate.beyond import heads
from attnrate.core.params import Group
from attnrate.rates.pod import of_rank

OWN = Group(budget=4, modes=5, alpha=1.0, tau=6, eval_size=32, eval_seed=1, batch=4, free_steps=3, free_lr=0.003)
OWN |= dict(steps=3, lr=0.001, muon=0.01, warmup=1, hats=1.0, points=12, queries=2)
OWN = Group(OWN)


def test_one_coupling_on_the_diagonal_is_equation_8():
    matrix = np.diag([1.0, 0.25, 0, 0, 0])[None, None]
    x = np.random.default_rng(0).random((7, 6))
    found = heads.exact(torch.tensor(matrix, dtype=torch.float32), torch.tensor(x, dtype=torch.float32))
    assert found[0].numpy() == pytest.approx(of_rank(2.0, 2, x).y, abs=1e-5)


@pytest.mark.parametrize(("structure", "singular"), [("1x4", [1, 1 / 2, 1 / 3, 1 / 4]), ("2x2", [1, 1 / 2])])
def test_couplings_have_the_singular_values_asked_for_and_differ(structure, singular):
    target = heads.make(structure, 3, OWN)
    for coupling in target.matrix:
        assert np.linalg.svd(coupling, compute_uv=False)[: len(singular)] == pytest.approx(singular)
        assert np.linalg.matrix_rank(coupling) == len(singular)
    assert len(target.matrix) == 1 or not np.allclose(*target.matrix)


@pytest.mark.parametrize(("structure", "h"), [("1x2", 1), ("1x2", 2), ("2x2", 2), ("1x4", 1)])
def test_where_they_fit_the_start_is_exact(structure, h):
    """Heads with one coupling each, or several with the same."""
    target, size = heads.make(structure, 0, OWN), OWN.budget // h
    assert heads.fits(target, h, size)
    start = (torch.tensor(w, dtype=torch.float32)[None] for w in heads.start(target, h, size, 0))
    x, y = heads.evaluation([target], OWN)
    with torch.no_grad():
        assert torch.allclose(heads.Heads(*start)(x[None], OWN.modes), y, atol=1e-6)


def test_optimised_and_trained_heads_have_a_row_for_each_target():
    targets = [heads.make(name, draw, OWN) for name in ("1x4", "2x2") for draw in (0, 1)]
    free = heads.free(targets, 1, OWN)
    assert [row["exact"] for row in free] == [True, True, False, False]
    assert [row["mse"] > 0 for row in free] == [False, False, True, True]
    trained = heads.trained(targets, 2, OWN, Group(n=8, width=16))
    assert len(trained) == 4 and all(0 < row["mse"] < 1 for row in trained)
