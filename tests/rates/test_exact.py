"""What needs no network: truncations and sampled matrices against closed forms and the targets' own code."""

import numpy as np
import pytest

from attnrate.rates import exact, pod, theory


@pytest.mark.parametrize("pairing", ["same", "dyadic-3"])
def test_truncations_are_those_of_the_targets(pairing):
    sizes = {"terms": 32, "tau": 5, "size": 20, "seed": 1}
    rows = exact.truncations(pairing, [1.0, 2.0], [1, 2, 5, 20], **sizes)
    assert [(r["alpha"], r["mh"]) for r in rows] == [(a, m) for a in (1.0, 2.0) for m in (1, 2, 5, 20)]
    x = np.random.default_rng(1).random((20, 5))
    for row in rows:
        sigma, p = pod.singular_values(row["alpha"], "inf", 32), pod.pair(pairing, 32)
        for diagonal, key in ((True, "mse"), (False, "mse_without_diagonal")):
            whole, cut = (pod.softmax_average(pod.coupling(sigma[:m], p[:m], x), x, diagonal) for m in (32, row["mh"]))
            assert row[key] == pytest.approx(((whole - cut) ** 2).mean(), rel=1e-9)
        assert row["tail_sum"] == theory.tail_sum(sigma, row["mh"])


def test_the_first_term_is_what_the_bound_tends_to_for_wide_networks():
    sigma, p = pod.singular_values(2.0, "inf", 64), pod.pair("same", 64)
    for reading in theory.READINGS:
        first = theory.first_term(sigma, 2.0, 8, 16, reading)
        assert theory.bound(sigma, p, 2.0, 8, 10**9, 16, reading) == pytest.approx(first, rel=1e-6)
        assert theory.bound(sigma, p, 2.0, 8, 128, 16, reading) > 2 * first


def test_the_printed_first_term_breaks_and_the_square_root_holds():
    """α = 2, ψ = φ, m_h = 64: about 3.5e-3 against 9.8e-4 (docs/readings.md)."""
    (row,) = exact.truncations("same", [2.0], [64], terms=512, tau=16, size=128, seed=7)
    assert 2e-3 < row["l1"] < 5e-3 and row["literal"] == pytest.approx(16**2 / 64**3) and row["l1"] < row["root"]


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_the_decay_of_a_sampled_matrix_tends_to_the_operators(alpha):
    off = [abs(exact.sampled_decay("same", alpha, tau, 20, 0, 256) + alpha) for tau in (16, 256)]
    assert off[1] < 0.03 and (alpha == 2.0 or off[1] < off[0])
