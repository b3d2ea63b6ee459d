"""A Transformer of eq. (5) set by hand for y(t) = Σ_l k(l) x(t-l), eq. (69): what its sizes allow, without training.

The times fall into C classes s mod C, with C a divisor of τ, and the lags l < L = 3 C / 4 are kept.

A x + e   (section 4.1) holds x(s) - 1 + [s ≡ c mod C] for each class c, and the places of s on two circles, of τ and
          of C times
f̂         the ReLU leaves x(s) in channel s mod C and 0 in the others; the places pass
ρ̂         κ cos(2π (t - s - centre) / τ), of rank two, so that m_h = 2 is enough. Its softmax is the same bump a(l) over
          the lags l = t - s mod τ at every t, and each kept lag has e^16 times the weight of any other lag of its
          class: channel (t - l) mod C of the average is a(l) x(t - l). The classes that are left over are its guard
F̂         the averages of the places lie on circles too and tell t mod C and t. The first layer passes the channels,
          which are not negative, and has a gate for each class of t, 0 when t is in it; the second has two units for
          each, for the positive and the negative k(l) / a(l), which the gate shuts. A time t < L - 1 has a gate of its
          own: its lags l > t came round from the end of the sequence, and are taken away again

The lags that are cut add their mean. Signs cost nothing: attention brings the inputs apart, and F̂ weighs them.
"""

import numpy as np
import torch

from attnrate.linear.floors import MEAN, constant_predictor
from attnrate.linear.targets import toeplitz
from attnrate.small.transformer import Transformer

SHARP = 16.0  # e^-16 is the last bit of single precision
HEAD = 2  # m_h: the rank of ρ̂


def sizes(tau: int, *, n: int, width: int) -> tuple[int, int]:
    """The most classes C and lags L that n and the width m_FF admit."""
    # The bump needs another time in each class to look away from: C < τ.
    pairs = [(c, max(1, 3 * c // 4)) for c in range(1, tau) if tau % c == 0]
    fits = [(c, lags) for c, lags in pairs if c + 4 <= min(n, width) and 2 * (c + lags - 1) <= width]
    if not fits:
        raise ValueError(f"one lag of a hand-set network needs n ≥ 5 and width ≥ 5, but n = {n} and width = {width}")
    return fits[-1]


def rest(kernel: np.ndarray, lags: int) -> np.ndarray:
    """The part of y = M z that the first lags leave out: (τ,) → (τ, τ)."""
    return toeplitz(np.where(np.arange(len(kernel)) < lags, 0.0, kernel))


def cut(kernel: np.ndarray, lags: int) -> float:
    """The exact error of the first lags and the best constant."""
    return constant_predictor(rest(kernel, lags))


def circle(times: np.ndarray, period: int) -> np.ndarray:  # (T,) → (T, 2)
    angle = 2 * np.pi * times / period
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def bump(tau: int, classes: int, lags: int) -> tuple[float, np.ndarray]:
    """κ and the attention a(l) for l = 0 … τ-1."""
    centre = (lags - 1) / 2
    farthest = circle(np.array([centre, classes - centre]), tau)[:, 0]  # of the lags 0 … L-1, and its nearest rival
    kappa = SHARP / (farthest[0] - farthest[1])
    weights = np.exp(kappa * (circle(np.arange(tau) - centre, tau)[:, 0] - 1))
    return kappa, weights / weights.sum()


@torch.no_grad()
def build(kernel: np.ndarray, *, n: int, width: int, mh: int = HEAD) -> Transformer:
    """The network for k = kernel, τ = len(kernel)."""
    if mh < HEAD:
        raise ValueError(f"a hand-set network has scores of rank {HEAD}, but m_h = {mh}")
    tau = len(kernel)
    classes, lags = sizes(tau, n=n, width=width)
    used, centre, s = classes + 4, (lags - 1) / 2, np.arange(tau)
    kappa, a = bump(tau, classes, lags)
    model = Transformer([mh], [0], n=n, width=width, positions=(tau, n))
    for p in model.parameters():
        p.zero_()

    places = np.concatenate([circle(s, tau), circle(s, classes)], 1)  # (τ, 4)
    model.A[0, :classes] = 1
    model.e[0, 0, :, :used] = torch.tensor(np.concatenate([np.eye(classes)[s % classes] - 1, places + 1], 1))
    for identity in (*model.f.weight, model.W_V):
        identity[0, :used, :used] = torch.eye(used)
    model.f.bias[2][0, 0, classes:used] = -1  # the places passed the ReLU as 1 + cos, 1 + sin

    (cos, sin), place = circle(np.array([centre]), tau)[0], slice(classes, classes + 2)
    model.W_Q[0, :2, place] = kappa**0.5 * torch.tensor([[cos, sin], [-sin, cos]])  # back by the centre
    model.W_K[0, :2, place] = kappa**0.5 * torch.eye(2)

    # What F̂ weighs the channels by: in the first C rows at t ≡ 0 … C-1 mod C, then, to correct it, at t = 0 … L-2.
    t = np.concatenate([np.arange(classes), np.arange(lags - 1)])  # (K,)
    gates, early = len(t), np.arange(len(t)) >= classes
    lag = (t[:, None] - np.arange(classes)) % classes  # (K, C): of each channel at t
    rows = np.pad(kernel[:lags] / a[:lags], (0, classes - lags))[lag]
    rows *= np.where(early[:, None], -1.0 * (lag > t[:, None]), 1.0)

    # A gate is a half-plane: -1 at its own place on the circle, which opens it, and ≥ 1 at the others.
    towards = np.zeros((gates, 4))
    bias = np.zeros(gates)
    for own, period, plane in ((early, tau, slice(0, 2)), (~early, classes, slice(2, 4))):
        radius, half = a @ circle(s - centre, period)[:, 0], np.cos(np.pi / period)
        towards[own, plane] = -circle(t[own] - centre, period) / (radius * (1 - half))
        bias[own] = half / (1 - half)
    first, second, last = (w[0] for w in model.F.weight)
    first[:classes, :classes] = torch.eye(classes)
    first[classes : classes + gates, classes:used] = torch.tensor(towards)
    model.F.bias[0][0, 0, classes : classes + gates] = torch.tensor(bias)
    for i, sign in enumerate((1, -1)):
        units = slice(i * gates, (i + 1) * gates)
        second[units, :classes] = torch.tensor(np.maximum(sign * rows, 0))
        # The channels sum to at most 1, so that the largest weight would do; twice, for rounding.
        second[units, classes : classes + gates] = torch.tensor(np.diag(-2 * np.abs(rows).max(1)))
        last[0, units] = sign
    model.F.bias[2][0, 0, 0] = MEAN * rest(kernel, lags).sum(1).mean()
    return model
