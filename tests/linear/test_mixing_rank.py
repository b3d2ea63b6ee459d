"""D.3: the rank rises from 2 to 3, with singular values in closed form."""

import numpy as np
import pytest

from attnrate.linear.mixing_rank import EXACT, by_grid, by_quadrature, mixed, rho


def test_closed_form_is_the_spectrum_of_the_matrix():
    matrix = np.array([[1, 1 / np.sqrt(2), 0], [0, -1 / 2, 0], [0, 0, 1 / 2]])
    assert EXACT["mixed"] == pytest.approx(np.linalg.svd(matrix, compute_uv=False), rel=1e-14)
    assert EXACT["mixed"] == pytest.approx([1.262168899, 0.5, 0.396143496], abs=1e-9)


@pytest.mark.parametrize(("kernel", "name"), [(rho, "rho"), (mixed, "mixed")])
@pytest.mark.parametrize("points", [32, 64])
def test_quadrature_gives_the_closed_form_and_nothing_more(kernel, name, points):
    values, exact = by_quadrature(kernel, points), EXACT[name]
    assert values[: len(exact)] == pytest.approx(exact, rel=1e-12)
    assert values[len(exact)] < 1e-12


def test_the_sum_of_squares_is_the_norm_of_the_kernel():
    """∫∫ ρ² = ∫∫ ρ̃² = 2: mixing changes the spectrum, not the norm."""
    for kernel in (rho, mixed):
        assert np.sum(by_quadrature(kernel) ** 2) == pytest.approx(2, rel=1e-12)


def test_mixing_is_a_shift_of_the_second_input():
    x1, x2 = np.random.default_rng(0).random((2, 10))
    assert mixed(x1, x2) == pytest.approx(1 + 2 * np.sin(2 * np.pi * x1) * np.sin(2 * np.pi * (x1 + x2)))


def test_the_papers_digits_come_from_a_grid_with_both_end_points():
    """1.265, 0.5 and 0.4 to the digits printed; the exact first value would print as 1.262."""
    values = by_grid(mixed)
    assert [f"{values[0]:.3f}", f"{values[1]:.1f}", f"{values[2]:.1f}"] == ["1.265", "0.5", "0.4"]
    assert f"{EXACT['mixed'][0]:.3f}" == "1.262"


def test_the_grid_tends_to_the_closed_form():
    errors = [np.abs(by_grid(mixed, n)[:3] - EXACT["mixed"]).max() for n in (64, 128, 256)]
    assert errors[0] > 1.9 * errors[1] > 1.9**2 * errors[2]
