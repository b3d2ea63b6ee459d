"""Does depth repair order? Proposition 6.2 for couplings of inputs, one layer against two.

The model sees z = x ∘ p and must give H_t(x) = Σ_s softmax[ρ(x(t), x(·))](s) x(s), eq. (8), with ρ of finite rank. It
asks with z(t), the target with x(t) = z(p⁻¹(t)). Three kinds of targets:

inputs      ρ(x(t), x(s)): one layer has the wrong query; the first of two can carry the right one to t, by position
positions   ρ(t / τ, s / τ): permuting the inputs permutes the columns of a matrix
outside     ρ(c, x(s)) + b(s), asked by a token of its own: there is no t to be wrong about
"""

import numpy as np
import torch
from torch import Tensor

from attnrate.core.params import Group
from attnrate.rates.pod import coupling, pair, phi, singular_values, softmax_average
from attnrate.small.loop import train
from attnrate.small.streams import Streams
from attnrate.small.transformer import Transformer

ORDERS = ("original", "roll", "random")
# Kind of target, depth, whether F̂ is affine; the controls, which have no depth to compare, are rolled alone.
MODELS = [*(("inputs", depth, affine) for depth in (1, 2) for affine in (True, False))]
MODELS += [("positions", 1, False), ("outside", 1, False)]
ASKED = 0.3  # c
CONTRAST = 2.0  # factor on couplings of positions and on b, so that they matter as much as those of inputs


def permutation(order: str, tau: int, seed: int) -> np.ndarray:
    """p with (x ∘ p)(t) = x(p(t)); but for the original order it moves every t."""
    t = np.arange(tau)
    if order == "original":
        return t
    if order == "roll":
        return np.roll(t, -(tau // 3))
    rng = np.random.default_rng(seed)
    while ((p := rng.permutation(tau)) == t).any():
        pass
    return p


def couplings(kind: str, own: Group, x: np.ndarray) -> np.ndarray:
    """ρ for every t and s in the original order: (N, τ) → (N, τ, τ), or (N, 1, τ) asked from outside."""
    tau, frequencies = x.shape[-1], pair("same", own.rank)
    sigma, places = singular_values(own.alpha, own.rank, own.rank), (np.arange(x.shape[-1]) + 0.5) / x.shape[-1]
    if kind == "inputs":
        return coupling(sigma, frequencies, x)
    if kind == "positions":
        return np.broadcast_to(CONTRAST * coupling(sigma, frequencies, places[None]), (len(x), tau, tau))
    asked = phi(frequencies, x) @ (sigma * phi(frequencies, np.array(ASKED)))  # (N, τ)
    return (asked + CONTRAST * np.sin(2 * np.pi * places))[:, None]


def target(kind: str, p: np.ndarray, own: Group, z: np.ndarray) -> np.ndarray:
    """What a model that sees z = x ∘ p must give: (N, τ) → (N, τ), or (N, 1) asked from outside."""
    x = z[:, np.argsort(p)]  # x(t) = z(p⁻¹(t))
    return softmax_average(couplings(kind, own, x), x)


def parameters(own: Group, depth: int, affine: bool, width: int) -> int:
    stack = Transformer([own.mh], [0], n=own.n, width=width, positions=(own.tau, own.n), depth=depth, affine=affine)
    return sum(p.numel() for p in stack.parameters())


def equal_width(own: Group, depth: int, affine: bool) -> int:
    """The width m_FF that gives this model as many parameters as one layer with a full F̂ has at own.width."""
    budget = parameters(own, 1, False, own.width)
    return min(range(1, 4 * own.width), key=lambda w: abs(parameters(own, depth, affine, w) - budget))


class Asked(torch.nn.Module):
    """Every output of the Transformer, or that of a token of its own behind the inputs."""

    def __init__(self, inner: Transformer, outside: bool):
        super().__init__()
        self.inner, self.outside = inner, outside

    def forward(self, z: Tensor) -> Tensor:  # (M, B, τ) → (M, B, τ) or (M, B, 1)
        if self.outside:
            return self.inner(torch.nn.functional.pad(z, (0, 1))[..., None])[..., -1:, 0]
        return self.inner(z[..., None])[..., 0]


def run(kind: str, depth: int, affine: bool, own: Group) -> list[dict]:
    """Train a stack, a model for each order and seed; a row each."""
    orders = ORDERS if kind == "inputs" else ORDERS[:2]
    cells = [(order, seed) for order in orders for seed in own.seeds]
    permutations = [permutation(order, own.tau, own.permutation_seed) for order, _ in cells]
    outside, width = kind == "outside", equal_width(own, depth, affine)
    seeds = [seed for _, seed in cells]
    sizes = {"n": own.n, "width": width, "positions": (own.tau + outside, own.n), "depth": depth, "affine": affine}
    model = Asked(Transformer([own.mh] * len(cells), seeds, **sizes), outside)

    def outputs(z: Tensor) -> Tensor:  # (M, B, τ) → (M, B, ·)
        found = [target(kind, p, own, part) for p, part in zip(permutations, z.double().numpy(), strict=True)]
        return torch.tensor(np.stack(found), dtype=torch.float32)

    test = np.random.default_rng(own.eval_seed).random((own.eval_size, own.tau), dtype=np.float32)
    z_test = torch.tensor(test).expand(len(cells), -1, -1)
    y_test = outputs(z_test)
    inner, variance = model.inner, y_test.var((1, 2))
    inner.standardise(y_test.mean((1, 2)).view(-1, 1, 1, 1), variance.sqrt().view(-1, 1, 1, 1))
    if depth > 1:  # the first layer has to attend by position; one layer alone learns less from such a start
        with torch.no_grad():
            inner.W_Q *= own.gain
            inner.W_K *= own.gain
    streams = Streams(seeds)

    def loss(_: int) -> Tensor:
        z = streams.rand(own.batch, own.tau)[streams.which]  # (M, B, τ)
        return ((model(z) - outputs(z)) / inner.scale[..., 0]).square().mean((1, 2))

    label = f"{kind}, depth {depth}, {'affine' if affine else 'full'} F"
    train(model, loss, steps=own.steps, lr=own.lr, muon=own.muon, warmup=own.warmup, label=label)
    with torch.no_grad():
        parts = zip(z_test.split(256, 1), y_test.split(256, 1), strict=True)
        mse = sum((model(z) - y).square().sum((1, 2)) for z, y in parts) / y_test[0].numel()
    keys = {"kind": kind, "depth": depth, "affine": affine, "parameters": parameters(own, depth, affine, width)}
    rows = zip(cells, mse.tolist(), variance.tolist(), strict=True)
    return [keys | {"order": o, "seed": s, "mse": e, "variance": v, "share": e / v} for (o, s), e, v in rows]


def affine_floor(own: Group, degree: int = 18, size: int = 1 << 14, asks: int = 4) -> dict[str, float]:
    """What one layer with an affine F̂ must miss, whatever its width and head size: docs/beyond.md.

    Given z(t), such a model is N / D with N and D sums of functions of one z(s) each, so (y - ŷ) D = y D - N, and
    sup |y - ŷ|² E D² ≥ E (y D - N)² ≥ λ E D², where λ is the least value of E (y D - N)² with E D² = 1: an eigenvalue.
    The floor of the root of λ, over the largest z(t), is one of the largest error. In the original order it is zero.
    """
    t, found = 0, {}
    rng = np.random.default_rng(own.eval_seed)
    rest = rng.random((size, own.tau - 1))
    legendre = np.polynomial.legendre.legvander(2 * rest - 1, degree)[..., 1:]  # (N, τ-1, degree)
    sums = np.concatenate([np.ones((size, 1)), legendre.reshape(size, -1)], 1) / size**0.5  # (N, K)
    for order in ("original", "roll"):
        p, least = permutation(order, own.tau, own.permutation_seed), []
        for asked in (np.arange(asks) + 0.5) / asks:
            z = np.insert(rest, t, asked, axis=1)
            y = target("inputs", p, own, z)[:, t, None]
            # min over N of E (y D - N)², a quadratic form in D: what the projection on the sums leaves of y D.
            q, r = np.linalg.qr(sums)
            left = y * sums - q @ (q.T @ (y * sums))
            whitened = np.linalg.solve(r.T, (left.T @ left)) @ np.linalg.inv(r)
            least.append(max(0.0, float(np.linalg.eigvalsh((whitened + whitened.T) / 2)[0])) ** 0.5)
        found[order] = max(least)
    return found
