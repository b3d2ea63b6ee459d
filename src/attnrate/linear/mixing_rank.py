"""D.3: temporal mixing raises the rank of a coupling from 2 to 3 (eqs. 100 and 101).

ρ(x1, x2) = 1 + 2 sin(2πx1) sin(2πx2) and, with x2 replaced by x1 + x2, ρ̃ = 1 + 2 sin(2πx1) sin(2π(x1 + x2)).
In the basis (1, √2 cos 2πx, √2 sin 2πx), up to frequency two in x1, ρ̃ is the matrix
[[1, 1/√2, 0], [0, -1/2, 0], [0, 0, 1/2]] with singular values √((7 ± √33)/8) and 1/2.
"""

import math

import numpy as np

EXACT = {
    "rho": [1.0, 1.0],
    "mixed": [math.sqrt((7 + math.sqrt(33)) / 8), 0.5, math.sqrt((7 - math.sqrt(33)) / 8)],
}


def rho(x1, x2):  # eq. (100)
    return 1 + 2 * np.sin(2 * np.pi * x1) * np.sin(2 * np.pi * x2)


def mixed(x1, x2):  # eq. (101)
    return rho(x1, x1 + x2)


def by_quadrature(kernel, points: int = 64) -> np.ndarray:
    """Singular values of the integral operator on L²[0, 1], by Gauss-Legendre quadrature."""
    x, w = np.polynomial.legendre.leggauss(points)
    x, w = (x + 1) / 2, w / 2
    return np.linalg.svd(np.sqrt(w[:, None] * w) * kernel(x[:, None], x), compute_uv=False)


def by_grid(kernel, points: int = 256) -> np.ndarray:
    """Singular values of the kernel on an even grid with both end points, divided by its size."""
    x = np.linspace(0, 1, points)
    return np.linalg.svd(kernel(x[:, None], x), compute_uv=False) / points
