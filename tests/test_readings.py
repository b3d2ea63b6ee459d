"""Small computations behind rows of docs/readings.md."""

import numpy as np
import pytest
from scipy.special import softmax

from attnrate.linear import complexity, targets
from attnrate.linear.mixing_rank import by_quadrature
from attnrate.rates import pod, theory

RNG = np.random.default_rng


def target(t, x):
    """Some H_t(x) of all inputs that depends on t."""
    return np.sin((t + 1) * x[0] + x[1] * x[2]) + t * x[2] ** 2


@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.01])
def test_a_coupling_of_rank_1_and_any_size_represents_any_target(epsilon):
    """(12): C₁ alone has infimum 0; K_F pays for it."""
    a, b, x = np.array([0.2, 0.5, 0.9]), np.array([0.0, 0.6, 1.0]), RNG(0).random((20, 3))
    rho = epsilon * np.outer(a, b)  # on I^(t) × I^(s)
    w = softmax(rho, 1)
    values = np.zeros((20, 3, 4))  # f(x(s)) = (0 … x(s) … 0, b_s)
    values[:, range(3), range(3)], values[..., 3] = x, b
    h = np.einsum("ts,nsk->ntk", w, values)  # what F gets at each t

    def read(h):  # F: h alone gives t, and then all inputs
        t = int(np.argmin(np.abs(h[-1] - w @ b)))
        return target(t, h[:-1] / w[t])

    y = np.array([[target(t, row) for t in range(3)] for row in x])
    assert np.array([[read(h[n, t]) for t in range(3)] for n in range(20)]) == pytest.approx(y)
    size = np.linalg.norm(a) * np.linalg.norm(b)
    assert np.linalg.svd(rho, compute_uv=False) == pytest.approx([epsilon * size, 0, 0])
    assert np.max(np.abs(np.diff(y)) / np.linalg.norm(np.diff(h, axis=1), axis=2)) > 1 / epsilon  # K_F is at least that
    # Proposition B.1 (1): f(x) by itself, with zeros in all blocks but one, is not among the h.
    assert h[..., :-1].min() > 0 and (values[:, 0, 1:3] == 0).all()


def test_sampled_spectra_are_too_large_where_singular_values_decay_slowly():
    """5.2: 64 independent points and a symmetric kernel with σ_k = 1/k."""
    t = pod.make("same", 1.0, "inf", terms=256, tau=64, size=20, seed=7)
    sampled = np.linalg.svd(pod.coupling(t.sigma, t.frequencies, t.x.astype(float)), compute_uv=False) / 64
    ratio = sampled.mean(0)[:16] / t.sigma[:16]
    assert ratio[0] == pytest.approx(1.1, abs=0.1) and ratio[15] == pytest.approx(1.5, abs=0.1)


def test_the_pairs_of_disjoint_intervals_cover_the_square_once():
    """(46) without s = t: with I^(s) = [s, s+1] the sum over t, s is the integral over I × I, not τ² times it."""

    def g(u, v):
        return np.cos(u - 2 * v) * (1 + u)

    tau, x = 3, RNG(2).random((20000, 3)) + np.arange(3)
    off = ~np.eye(tau, dtype=bool)
    summed = (g(x[:, :, None], x[:, None, :]) ** 2)[:, off].sum(1).mean()
    u = (np.arange(300) + 0.5) / 100
    other = np.floor(u)[:, None] != np.floor(u)
    integral = np.sum(g(u[:, None], u) ** 2 * other) / 100**2
    assert summed == pytest.approx(integral, rel=0.02)


def test_the_first_term_of_the_bound_needs_the_square_root():
    """(46) to (50): the proof's network with exact bases has a larger L¹ error than the literal first term of (17)."""
    t, mh = pod.make("same", 2.0, "inf", terms=512, tau=16, size=64, seed=7), 64
    l1 = np.abs(t.truncated(mh) - t.y).mean(0).sum()
    first = {r: theory.bound(t.sigma, t.frequencies, 2.0, mh, 10**12, 16, r) for r in theory.READINGS}
    assert l1 == pytest.approx(3.5e-3, rel=0.1) and first["literal"] == pytest.approx(9.8e-4, rel=0.01)
    assert max(first["literal"], first["constants"]) < l1 < first["root"] == pytest.approx(0.82, abs=0.01)


@pytest.mark.parametrize(("sigma", "holds"), [(1.0, True), (0.1, True), (10.0, False)])
def test_singular_values_above_one_cannot_be_left_out(sigma, holds):
    """(48): |σφψ - σφ̂ψ̂| against the bound without σ."""
    phi = pod.phi(np.array([1]), np.linspace(0, 1, 50))
    psi, error = phi, 0.01 * np.sign(phi)
    left = sigma * np.abs(phi * psi - (phi + error) * (psi + error))
    right = 2 * np.abs(phi) * np.abs(error) + error**2
    assert bool((left <= right + 1e-12).all()) == holds


def test_the_power_of_mh_in_the_second_term_is_not_that_of_shared_networks():
    """(52): 2m_h + 1 networks that share m_FF cost (2m_h + 1)^β, not m_h^(β+1), of C₂ / m_FF^β."""
    mh = np.arange(1, 20)
    more = (2 * mh + 1) ** theory.BETA > mh ** (theory.BETA + 1)
    assert mh[more].tolist() == [1, 2, 3, 4]


def test_a_permuted_convolution_can_stay_causal():
    """Proposition 6.1: ρ = δ_1 with inputs 0 and 1 exchanged sees no future, but varies with time."""
    matrix = targets.toeplitz(np.eye(6)[1]) @ np.eye(6)[[1, 0, 2, 3, 4, 5]].T
    assert not complexity.depends_on_future(matrix) and complexity.c_rnn(matrix) == np.inf
    z = np.arange(10.0, 16.0)
    assert (matrix @ z).tolist() == [0, z[1], z[0], z[2], z[3], z[4]]


def test_permuted_pieces_change_the_lipschitz_constant():
    """(91): constant pieces on [0, 1], [2, 3], [4, 5]."""

    def lipschitz(values):
        gaps = {(0, 1): 1, (1, 2): 1, (0, 2): 3}
        return max(abs(values[i] - values[j]) / gap for (i, j), gap in gaps.items())

    assert lipschitz([0, 1, 2]) == 1 and lipschitz([0, 2, 1]) == 2


@pytest.mark.parametrize(("w", "stable"), [(-2.0, False), (0.5, True), (-0.5, True)])
def test_stability_is_a_matter_of_the_spectral_radius(w, stable):
    """Below (74): powers decay if |w| < 1, whatever the sign."""
    assert bool(abs(w**50) < 1e-9) == stable == (abs(w) < 1)


def test_mixing_raises_the_rank_that_softmax_sees_from_1_to_2():
    """(101) without the constant, which softmax ignores."""

    def sine(x):
        return np.sin(2 * np.pi * x)

    before = by_quadrature(lambda u, v: 2 * sine(u) * sine(v))
    after = by_quadrature(lambda u, v: 2 * sine(u) * sine(u + v))
    assert before[:2] == pytest.approx([1, 0]) and after[:3] == pytest.approx([np.sqrt(3) / 2, 0.5, 0])
