"""The three tasks of appendix B.1, each of the form (8) with its attention and F∘f in closed form.

    nearest    x(t) = (u_t, v_t): y(t) is the v nearest to u_t, eqs. (54), (55);         F∘f(u, v) = v
    mass       point masses x(t) = (x_t, m_t) in segments, each opened by a prediction
               token: |centre of gravity| at the token, |x_t| elsewhere, eqs. (57)-(62);  F∘f(x, m) = |x|
    selection  x(t) = (v_t, s_t): the average of the k items s_t names, eq. (63);         F∘f(v, s) = v

Eq. (53) says that softmax acts on columns, which would normalise over the outputs t. As in eq. (8), the weights here
are normalised over the inputs s: attention[t, s], rows sum to 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

TASKS = ("nearest", "mass", "selection")
POINTS = 6  # |U| = |V|
LENGTH, SEGMENT = 10, 2  # length of a mass input, fewest points in a segment
ITEMS, CHOSEN = 8, 3  # τ and k of the selection
LIGHTEST = 0.1  # masses are U[0.1, 1], so that x_pred = (0, 0, 0) is no point mass
FIGURE_5 = (3, 5)  # the segments of Figure 5; their tokens are x(0) and x(4), not x(5) as the paper says
INDICES_65 = ((0, 0, 1), (0, 1, 2), (2, 2, 2))  # eq. (65) counts from 1, here from 0
INDICES_66 = ((4, 5, 5), (4, 4, 4), (1, 1, 7), (5, 5, 5), (0, 3, 7), (0, 6, 7), (2, 2, 2), (2, 3, 4))


@dataclass(frozen=True)
class Sample:
    x: np.ndarray  # (N, τ, d)
    y: np.ndarray  # (N, τ, d_out)
    attention: np.ndarray  # (N, τ, τ): the weight of x(s) in y(t)
    ff: np.ndarray  # (N, τ, d_out): F∘f(x(t)); NaN at prediction tokens, where the task leaves it free


def nearest(x: np.ndarray) -> Sample:
    """Eq. (55): hard-max of ρ(u, v) = -|u - v| (the paper drops the sign below (56))."""
    u, v = np.split(x, 2, -1)
    distance = np.linalg.norm(u[:, :, None] - v[:, None], axis=-1)  # (N, τ, τ)
    attention = np.eye(x.shape[1])[distance.argmin(-1)]
    return Sample(x, attention @ v, attention, v)


def tokens(x: np.ndarray) -> np.ndarray:
    """Where x(t) = x_pred: (N, τ, d + 1) → (N, τ)."""
    return (x == 0).all(-1)


def segments(x: np.ndarray) -> np.ndarray:
    """Number of the segment that x(t) is in, from 0: a segment starts at its token. (N, τ, d + 1) → (N, τ)."""
    return tokens(x).cumsum(-1) - 1


def mass(x: np.ndarray) -> Sample:
    """Eq. (62): at a token the normalised masses of its segment, eq. (59); elsewhere the point itself."""
    points, token, segment = x[..., :-1], tokens(x), segments(x)
    same = segment[:, :, None] == segment[:, None]
    weights = np.where(same, x[:, None, :, -1], 0)  # x_pred has mass 0
    weights = weights / weights.sum(-1, keepdims=True)
    attention = np.where(token[..., None], weights, np.eye(x.shape[1]))
    y = np.linalg.norm(attention @ points, axis=-1, keepdims=True)
    return Sample(x, y, attention, np.where(token[..., None], np.nan, y))


def selection(x: np.ndarray, k: int = CHOSEN) -> Sample:
    """Eq. (63): the weight of s is how often s(t) names it, over k: 0, 1/3, 2/3 or 1 (the 1/2 below (64) is a slip)."""
    v, chosen = x[..., :-k], x[..., -k:].astype(int)
    attention = np.eye(x.shape[1])[chosen].mean(-2)
    return Sample(x, attention @ v, attention, v)


def segmentations(length: int) -> Iterator[tuple[int, ...]]:
    """Numbers of points in the segments that, each with its token, fill `length`."""
    if length == 0:
        yield ()
    for first in range(SEGMENT, length):
        yield from ((first, *rest) for rest in segmentations(length - first - 1))


SEGMENTATIONS = tuple(segmentations(LENGTH))


def token_mask(points: tuple[int, ...]) -> np.ndarray:  # (τ,)
    return np.concatenate([np.arange(n + 1) == 0 for n in points])


MASKS = np.stack([token_mask(s) for s in SEGMENTATIONS])


def draw(task: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """Random inputs (N, τ, d). Points: U[-1, 1]², but U[0, 1]² for masses; every segmentation is as likely."""
    if task == "nearest":
        return rng.uniform(-1, 1, (size, POINTS, 4))
    if task == "selection":
        v, chosen = rng.uniform(-1, 1, (size, ITEMS, 2)), rng.integers(ITEMS, size=(size, ITEMS, CHOSEN))
        return np.concatenate([v, chosen], -1)
    x = rng.uniform((0, 0, LIGHTEST), 1, (size, LENGTH, 3))
    x[MASKS[rng.integers(len(MASKS), size=size)]] = 0
    return x


def solve(task: str, x: np.ndarray) -> Sample:
    return {"nearest": nearest, "mass": mass, "selection": selection}[task](x)


def showcase(task: str, rng: np.random.Generator) -> Sample:
    """The one input of Figures 4, 5 and 6: the paper's segments and indices (66) with random points."""
    x = draw(task, 1, rng)
    if task == "mass":
        x = rng.uniform((0, 0, LIGHTEST), 1, x.shape)
        x[0, token_mask(FIGURE_5)] = 0
    elif task == "selection":
        x[0, :, -CHOSEN:] = INDICES_66
    return solve(task, x)
