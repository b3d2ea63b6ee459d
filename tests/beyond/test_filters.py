import numpy as np
import pytest

from attnrate.beyond import filters


def test_negative_mass_of_known_kernels():
    assert filters.negative_mass(np.array([1.0, -1.0, 2.0])) == 0.25
    assert filters.negative_mass(np.array([1.0, 2.0])) == 0


def test_turning_a_filter_turns_its_mass():
    k = np.random.default_rng(0).standard_normal(9)
    assert filters.negative_mass(-k) == pytest.approx(1 - filters.negative_mass(k))


def test_filters_span_what_is_asked_for_and_are_causal_convolutions():
    shares = [0.0, 0.3, 0.3, 0.6]
    found = filters.spanning(shares, 24, seed=5)
    masses = [filters.negative_mass(filters.kernel(t)) for t in found]
    assert np.abs(np.subtract(masses, shares)).max() <= filters.CLOSE
    assert not np.allclose(found[1].matrix, found[2].matrix)
    for t in found:
        k = filters.kernel(t)
        assert all(np.allclose(np.diagonal(t.matrix, -s), k[s]) for s in range(24)) and not np.triu(t.matrix, 1).any()
