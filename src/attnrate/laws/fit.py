"""Decay laws fitted by least squares: y = c m^-a + b (Figure 3b), against b = 0 and against c e^(-a m) + b.

For a given exponent a each law is linear in (c, b), so the residual sum of squares is a function of a alone and its
minimum is found on a grid and refined: no start values, no local minima. Intervals are profile-likelihood ones: the
values of a parameter at which the best fit is not significantly worse, by an F test.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy import optimize, stats

AUTHORS_MH = (1, 2, 3, 5, 6, 7, 8, 10, 14, 16, 20, 24, 25, 30, 32, 35, 40, 50, 64)  # Figure 3(b), read from their files
AUTHORS_ERROR = (
    1.75,
    1.61,
    1.58,
    1.50,
    1.48,
    1.47,
    1.45,
    1.43,
    1.39,
    1.39,
    1.38,
    1.34,
    1.34,
    1.32,
    1.32,
    1.31,
    1.31,
    1.30,
    1.29,
)
EXPONENTS = np.geomspace(1e-3, 20, 4001)  # the range of a that is looked at
SHAPES: dict[str, Callable] = {  # x (n,), a (k, 1) → (k, n)
    "power": lambda x, a: x**-a,
    "exponential": lambda x, a: np.exp(-a * x),
}


@dataclass(frozen=True)
class Fit:
    law: str
    n: int
    a: float
    b: float
    c: float
    rss: float
    aicc: float | None  # None where there are too few points to correct for
    low: dict[str, float | None]  # 95 % profile interval of each parameter; None: unbounded on that side
    high: dict[str, float | None]

    def __call__(self, x) -> np.ndarray:
        return self.c * SHAPES[self.law.split()[0]](np.asarray(x, float), self.a) + self.b

    def to_dict(self) -> dict:
        return asdict(self)


def _linear(shape: np.ndarray, y: np.ndarray, w: np.ndarray, offset: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best c, b and their residual sum of squares for each row of shape (k, n)."""
    s0 = w.sum()
    mean_s, mean_y = (shape @ w)[:, None] / s0 * offset, (y @ w) / s0 * offset
    centred = shape - mean_s
    c = (centred * (y - mean_y)) @ w / np.maximum((centred**2) @ w, 1e-300)
    b = mean_y - c * mean_s[:, 0]
    return c, b, ((y - c[:, None] * shape - b[:, None]) ** 2) @ w


def fit(
    x: Sequence[float], y: Sequence[float], law: str = "power", *, relative: bool = False, level: float = 0.95
) -> Fit:
    """law: "power" (c x^-a + b), "power b=0" or "exponential"; relative: residuals in units of y."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    kind, offset = law.split()[0], "b=0" not in law
    n, free = len(x), 3 if offset else 2
    if n <= free:
        raise ValueError(f"{n} points cannot decide {free} parameters")
    w = y**-2.0 if relative else np.ones(n)

    def at(a):
        return _linear(SHAPES[kind](x, np.reshape(a, (-1, 1))), y, w, offset)

    exponents = EXPONENTS / (np.median(x) if kind == "exponential" else 1)
    i = int(np.argmin(at(exponents)[2]))
    ends = np.log(exponents[[max(i - 1, 0), min(i + 1, len(exponents) - 1)]])
    a = float(np.exp(optimize.minimize_scalar(lambda t: at(np.exp(t))[2][0], bounds=ends, method="bounded").x))
    c, b, rss = (float(v[0]) for v in at(a))
    k = free + 1  # the variance of the residuals too
    aicc = float(n * np.log(max(rss, 1e-300) / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)) if n > k + 1 else None
    limit = rss * (1 + stats.f.ppf(level, 1, n - free) / (n - free)) + 1e-14 * (
        w @ y**2
    )  # rounding, if the fit is exact
    exponents = np.sort(np.append(exponents, a))
    low, high = {}, {}
    low["a"], high["a"] = _bounds(exponents, at(exponents)[2], limit)
    if offset:
        shapes = SHAPES[kind](x, exponents[:, None])  # (k, n)
        low["b"], high["b"] = _profile(b, limit, lambda t: _linear(shapes, y - t, w, False)[2].min())
        low["c"], high["c"] = _profile(c, limit, lambda t: _rss_given_c(t * shapes, y, w).min())
    return Fit(law, n, a, b if offset else 0.0, c, rss, aicc, low, high)


def _rss_given_c(shapes: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    rest = y - shapes
    return ((rest - (rest @ w)[:, None] / w.sum()) ** 2) @ w


def _bounds(grid: np.ndarray, rss: np.ndarray, limit: float) -> tuple[float | None, float | None]:
    inside = np.flatnonzero(rss <= limit)
    first, last = inside[0], inside[-1]
    return None if first == 0 else float(grid[first]), None if last == len(grid) - 1 else float(grid[last])


def _profile(best: float, limit: float, rss: Callable[[float], float]) -> tuple[float | None, float | None]:
    """Where the profile crosses the limit on each side of its minimum; None if it does not within 100 times |best|."""
    ends: list[float | None] = []
    for sign in (-1, 1):
        step, end = 1e-3 * max(abs(best), 1e-6), None
        while step < 100 * max(abs(best), 1e-6):
            if rss(best + sign * step) > limit:
                end = float(optimize.brentq(lambda t: rss(t) - limit, best, best + sign * step, xtol=1e-9))
                break
            step *= 1.5
        ends.append(end)
    return ends[0], ends[1]


def compare(x: Sequence[float], y: Sequence[float], *, relative: bool = False) -> dict[str, Fit]:
    """All three laws on the same points."""
    return {law: fit(x, y, law, relative=relative) for law in ("power", "power b=0", "exponential")}
