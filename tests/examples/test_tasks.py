"""Appendix B.1: the three tasks against their equations, number by number."""

import itertools

import numpy as np
import pytest

from attnrate.examples import tasks

SHAPES = {"nearest": (6, 4, 2), "mass": (10, 3, 1), "selection": (8, 5, 2)}  # τ, d, d_out
each_task = pytest.mark.parametrize("task", tasks.TASKS)


def samples(task, size=64, seed=0):
    return tasks.solve(task, tasks.draw(task, size, np.random.default_rng(seed)))


def masses(*points):
    """A mass input (1, τ, 3) from its point masses; None is a prediction token."""
    return np.array([[(0, 0, 0) if p is None else p for p in points]], dtype=float)


# All three -------------------------------------------------------------------------------------------------------


@each_task
def test_shapes_and_weights(task):
    s, (tau, d, d_out) = samples(task), SHAPES[task]
    assert s.x.shape == (64, tau, d) and s.attention.shape == (64, tau, tau)
    assert s.y.shape == s.ff.shape == (64, tau, d_out)
    assert (s.attention >= 0).all()
    assert s.attention.sum(-1) == pytest.approx(1, abs=1e-12), "normalised over the inputs s"


@each_task
def test_the_same_seed_gives_the_same_inputs(task):
    assert np.array_equal(samples(task).x, samples(task).x)
    assert not np.array_equal(samples(task).x, samples(task, seed=1).x)


@pytest.mark.parametrize("task", ["nearest", "selection"])
def test_y_is_the_weighted_average_of_the_identity(task):
    """Eq. (8) with F∘f the identity on v."""
    s = samples(task)
    assert s.y == pytest.approx(np.einsum("nts,nsd->ntd", s.attention, s.ff), abs=1e-12)


@each_task
def test_a_constant_sequence_gives_f_of_f(task):
    """The proof of Proposition B.1 (1)."""
    x = samples(task).x
    x = x[~tasks.tokens(x)] if task == "mass" else x.reshape(-1, x.shape[-1])
    s = tasks.solve(task, np.repeat(x[:50, None], SHAPES[task][0], 1))
    assert s.y == pytest.approx(s.ff, abs=1e-12)


# Nearest point ---------------------------------------------------------------------------------------------------


def test_eq_54_is_the_nearest_point_of_v():
    s = samples("nearest")
    for x, y, attention in zip(s.x, s.y, s.attention, strict=True):
        for t in range(6):
            distances = [np.hypot(*(x[t, :2] - v)) for v in x[:, 2:]]
            assert np.array_equal(y[t], x[np.argmin(distances), 2:])
            assert attention[t].tolist() == [float(k == np.argmin(distances)) for k in range(6)]


def test_eq_55_needs_its_minus_sign():
    """Hard-max of +|u - v|, as the text below (56) has ρ, would take the farthest point."""
    x = np.array([[[0, 0, 0.1, 0], [0, 0, 0.9, 0]]])
    assert tasks.nearest(x).y.tolist() == [[[0.1, 0], [0.1, 0]]]


def test_nearest_is_permutation_equivariant():
    x, p = tasks.draw("nearest", 8, np.random.default_rng(0)), np.random.default_rng(1).permutation(6)
    assert np.array_equal(tasks.nearest(x[:, p]).y, tasks.nearest(x).y[:, p])


# Centre of mass --------------------------------------------------------------------------------------------------


def test_eqs_60_and_61_segments_of_three_and_two():
    p = [(0.1, 0.2, 1.0), (0.5, 0.9, 0.5), (0.7, 0.3, 0.25), (0.2, 0.8, 0.6), (0.9, 0.1, 0.2)]
    s = tasks.mass(masses(None, *p[:3], None, *p[3:]))

    def centre(points):  # eq. (59)
        total = sum(m for *_, m in points)
        return [sum(m * q[k] for *q, m in points) / total for k in range(2)]

    expected = [np.hypot(*centre(p[:3])), *(np.hypot(*q[:2]) for q in p[:3])]
    expected += [np.hypot(*centre(p[3:])), *(np.hypot(*q[:2]) for q in p[3:])]
    assert s.y[0, :, 0] == pytest.approx(expected, abs=1e-12)
    assert s.attention[0, 0] == pytest.approx([0, 1 / 1.75, 0.5 / 1.75, 0.25 / 1.75, 0, 0, 0], abs=1e-12)
    assert s.attention[0, 4] == pytest.approx([0, 0, 0, 0, 0, 0.75, 0.25], abs=1e-12)


def test_eq_62_away_from_tokens_the_weight_is_on_the_point_itself():
    s = samples("mass")
    token = tasks.tokens(s.x)
    assert np.array_equal(s.attention[~token], np.broadcast_to(np.eye(10), (64, 10, 10))[~token])
    assert s.y[~token][:, 0] == pytest.approx(np.linalg.norm(s.x[~token][:, :2], axis=-1), abs=1e-12)
    assert np.array_equal(np.isnan(s.ff[..., 0]), token), "F∘f is free at tokens and known elsewhere"


def test_eq_62_a_token_sees_its_own_segment_only():
    s = samples("mass")
    token, segment = tasks.tokens(s.x), tasks.segments(s.x)
    other = segment[:, :, None] != segment[:, None]
    assert (s.attention[other] == 0).all()
    assert (s.attention.swapaxes(1, 2)[token] == 0).all(), "a token weighs nothing"
    n, t = np.nonzero(token)
    for k in ("y", "attention"):
        changed = s.x.copy()
        changed[segment != 0] *= np.array([1, 1, 0.5])
        assert np.array_equal(getattr(tasks.mass(changed), k)[n, t][t == 0], getattr(s, k)[n, t][t == 0])


def test_segmentations_fill_ten_with_segments_of_at_least_two():
    brute = {c for k in (1, 2, 3) for c in itertools.product(range(2, 10), repeat=k) if sum(c) + k == 10}
    assert set(tasks.SEGMENTATIONS) == brute and len(tasks.SEGMENTATIONS) == len(brute) == 9
    drawn = tasks.tokens(tasks.draw("mass", 9000, np.random.default_rng(0)))
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(m) for m in found} == {tuple(m) for m in tasks.MASKS}
    assert counts == pytest.approx(1000, abs=150), "every segmentation is as likely"


def test_points_and_masses_stay_in_range_and_are_never_tokens():
    x = tasks.draw("mass", 500, np.random.default_rng(0))
    points = x[~tasks.tokens(x)]
    assert (points.min(0) >= [0, 0, tasks.LIGHTEST]).all() and points.max() <= 1
    assert (tasks.segments(x)[:, 0] == 0).all(), "a sequence opens with a token"


def test_the_tokens_of_figure_5_are_at_0_and_4():
    x = tasks.showcase("mass", np.random.default_rng(0)).x
    assert np.flatnonzero(tasks.tokens(x)[0]).tolist() == [0, 4]


# Selection -------------------------------------------------------------------------------------------------------


def test_eq_65():
    v = np.array([[0.3, -0.5], [0.8, 0.1], [-0.9, 0.4]])
    s = tasks.selection(np.concatenate([v, tasks.INDICES_65], -1)[None])
    expected = np.stack([2 * v[0] + v[1], v[0] + v[1] + v[2], 3 * v[2]]) / 3
    assert s.y[0] == pytest.approx(expected, abs=1e-12)


def test_eq_66():
    s = tasks.showcase("selection", np.random.default_rng(0))
    third = np.rint(3 * s.attention[0])
    assert 3 * s.attention[0] == pytest.approx(third, abs=1e-12)
    weights = [{j: int(w) for j, w in enumerate(row) if w} for row in third]
    assert weights == [
        {4: 1, 5: 2},
        {4: 3},
        {1: 2, 7: 1},
        {5: 3},
        {0: 1, 3: 1, 7: 1},
        {0: 1, 6: 1, 7: 1},
        {2: 3},
        {2: 1, 3: 1, 4: 1},
    ]


def test_eq_63_is_the_average_of_the_items_named():
    s = samples("selection")
    for x, y in zip(s.x, s.y, strict=True):
        expected = [np.mean([x[int(j), :2] for j in x[t, 2:]], axis=0) for t in range(8)]
        assert y == pytest.approx(np.array(expected), abs=1e-12)


def test_eq_64_weights_are_thirds():
    assert np.unique(np.rint(samples("selection", 500).attention * 3)).tolist() == [0, 1, 2, 3]
    assert np.unique(samples("selection", 500).attention) == pytest.approx([0, 1 / 3, 2 / 3, 1], abs=1e-12)
