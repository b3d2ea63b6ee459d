"""The Transformer of eq. (5): one layer, one head, no residual, no layer norm.

    h(s) = f̂(x(s)),   Ĥ_t(x) = F̂( Σ_s softmax[(W_Q h(t))ᵀ W_K h(·)](s) W_V h(s) )

f̂ and F̂ are ReLU networks of three linear maps. Every parameter has a leading model axis M, so that
many small models train as one; head sizes m_h smaller than the largest are padded with zero rows of
W_Q and W_K. A zero row stays zero: its gradient is a multiple of its (zero) partner row.

What the paper leaves open (section 7) is part of the same model: several heads, whose averages stand side by side in
the d_v = n channels of F̂; more layers, each with an f̂ of its own on the averages of the one before; a causal mask; an
affine F̂.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn


def default_uniform(shape: tuple[int, ...], fan_in: int, generator: torch.Generator) -> Tensor:
    """PyTorch's default for nn.Linear weights and biases: U(-1/√fan_in, 1/√fan_in)."""
    return (torch.rand(shape, generator=generator) * 2 - 1) / fan_in**0.5


class FeedForward(nn.Module):
    """M networks d_in → width → width → d_out with ReLU between the maps ("depth 3"); affine: one map."""

    def __init__(self, models: int, d_in: int, width: int, d_out: int, affine: bool = False):
        super().__init__()
        sizes = [d_in, d_out] if affine else [d_in, width, width, d_out]
        pairs = list(itertools.pairwise(sizes))
        self.weight = nn.ParameterList(torch.zeros(models, o, i) for i, o in pairs)  # (M, out, in)
        self.bias = nn.ParameterList(torch.zeros(models, 1, o) for _, o in pairs)  # (M, 1, out)

    def hidden(self, x: Tensor) -> Tensor:  # (M, P, d_in) → (M, P, width)
        for w, b in zip(self.weight[:-1], self.bias[:-1], strict=True):
            x = torch.relu(torch.baddbmm(b, x, w.mT))
        return x

    def forward(self, x: Tensor) -> Tensor:  # (M, P, d_in) → (M, P, d_out)
        return torch.baddbmm(self.bias[-1], self.hidden(x), self.weight[-1].mT)

    @torch.no_grad()
    def reset(self, m: int, generator: torch.Generator) -> None:
        for w, b in zip(self.weight, self.bias, strict=True):
            w[m] = default_uniform(w.shape[1:], w.shape[-1], generator)
            b[m] = default_uniform(b.shape[1:], w.shape[-1], generator)


def per_token(network: FeedForward, x: Tensor) -> Tensor:  # (M, B, T, ·) → (M, B, T, ·)
    m, b, t, d = x.shape
    return network(x.reshape(m, b * t, d)).view(m, b, t, -1)


class Layer(nn.Module):
    """M times h(s) = f̂(x(s)) and its averages Σ_s softmax[(W_Q h(t))ᵀ W_K h(·)](s) W_V h(s); model i has mh[i]."""

    def __init__(self, mh: Sequence[int], d: int, n: int, width: int, heads: int = 1, causal: bool = False):
        super().__init__()
        m, size = len(mh), max(mh)
        self.mh, self.heads, self.causal = tuple(mh), heads, causal
        self.f = FeedForward(m, d, width, n)
        self.W_Q = nn.Parameter(torch.zeros(m, heads * size, n))
        self.W_K = nn.Parameter(torch.zeros(m, heads * size, n))
        self.W_V = nn.Parameter(torch.zeros(m, n, n))  # d_v = n

    @torch.no_grad()
    def reset_attention(self, i: int, g: torch.Generator) -> None:
        n = self.W_V.shape[-1]
        for w in (self.W_Q, self.W_K):
            w[i] = 0
            w[i].view(self.heads, -1, n)[:, : self.mh[i]] = default_uniform((self.heads, self.mh[i], n), n, g)
        self.W_V[i] = default_uniform((n, n), n, g)

    def split(self, values: Tensor) -> Tensor:  # (M, B, T, h ·) → (M, B, h, T, ·)
        return values.unflatten(-1, (self.heads, -1)).transpose(2, 3)

    def couple(self, q: Tensor, k: Tensor) -> Tensor:
        """ρ̂ of every head, -∞ where a mask hides s > t: (M, B, T, h m_h), (M, B, τ, h m_h) → (M, B, [h,] T, τ)."""
        if self.heads > 1:
            q, k = self.split(q), self.split(k)
        scores = q @ k.mT
        if self.causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        return scores

    def average(self, weights: Tensor, h_s: Tensor) -> Tensor:
        """Σ_s weights(t, s) W_V h(s): (M, B, [h,] T, τ), (M, B, τ, n) → (M, B, T, n)."""
        return self.weigh(weights, h_s @ self.W_V.mT.unsqueeze(1))

    def weigh(self, weights: Tensor, v: Tensor) -> Tensor:
        return weights @ v if self.heads == 1 else (weights @ self.split(v)).transpose(2, 3).flatten(3)

    def scores(self, h_t: Tensor, h_s: Tensor) -> Tensor:
        """ρ̂(x(t), x(s)) = (W_Q h(t))ᵀ W_K h(s), eq. (18): (M, B, T, n), (M, B, τ, n) → (M, B, [h,] T, τ)."""
        return self.couple(h_t @ self.W_Q.mT.unsqueeze(1), h_s @ self.W_K.mT.unsqueeze(1))

    def attend(self, h: Tensor) -> Tensor:  # (M, B, τ, n) → (M, B, τ, n)
        return self.average(self.scores(h, h).softmax(-1), h)


class Transformer(Layer):
    """A stack of M = len(mh) models of eq. (5); model i has head size mh[i] and random seed seeds[i].

    With `positions = (τ, d')` the input is first encoded as x(t) ↦ A x(t) + e(t), e learned (section 4.1).
    """

    def __init__(
        self,
        mh: Sequence[int],
        seeds: Sequence[int],
        *,
        d: int = 1,
        n: int = 32,
        width: int = 128,
        d_out: int = 1,
        positions: tuple[int, int] | None = None,
        heads: int = 1,
        depth: int = 1,
        causal: bool = False,
        affine: bool = False,
    ):
        m = len(mh)
        super().__init__(mh, positions[1] if positions else d, n, width, heads, causal)
        self.encode = positions is not None
        if positions:
            tau, d_pos = positions
            self.A = nn.Parameter(torch.zeros(m, d_pos, d))
            self.e = nn.Parameter(torch.zeros(m, 1, tau, d_pos))
        self.F = FeedForward(m, n, width, d_out, affine)
        self.deeper = nn.ModuleList(Layer(mh, n, n, width, heads, causal) for _ in range(depth - 1))
        # Output y = shift + scale * F̂(…): a fixed affine map that F̂'s last layer could absorb.
        self.register_buffer("shift", torch.zeros(m, 1, 1, d_out))
        self.register_buffer("scale", torch.ones(m, 1, 1, d_out))
        for i, seed in enumerate(seeds):
            self.reset(i, seed)

    @torch.no_grad()
    def reset(self, i: int, seed: int) -> None:
        """PyTorch's default initialisation of model i, the same whatever stack it is in."""
        g = torch.Generator().manual_seed(seed)
        self.f.reset(i, g)
        self.F.reset(i, g)
        self.reset_attention(i, g)
        if self.encode:
            self.A[i] = default_uniform(self.A.shape[1:], self.A.shape[-1], g)
            self.e[i] = torch.randn(self.e.shape[1:], generator=g)
        for layer in self.deeper:
            layer.f.reset(i, g)
            layer.reset_attention(i, g)

    def features(self, x: Tensor) -> Tensor:
        """f̂ with position encoding; x is (B, τ, d), shared by all models, or (M, B, τ, d) → (M, B, τ, n)."""
        if x.dim() == 3:
            x = x.expand(len(self.mh), *x.shape)
        if self.encode:
            x = x @ self.A.mT.unsqueeze(1) + self.e
        return per_token(self.f, x)

    def output(self, averages: Tensor) -> Tensor:  # F̂: (M, B, T, n) → (M, B, T, d_out)
        return self.shift + self.scale * per_token(self.F, averages)

    def attention(self, x: Tensor) -> Tensor:  # (M, B, [h,] τ, τ) of the first layer, rows sum to 1
        h = self.features(x)
        return self.scores(h, h).softmax(-1)

    def forward(self, x: Tensor) -> Tensor:  # (B, τ, d) or (M, B, τ, d) → (M, B, τ, d_out)
        averages = self.attend(self.features(x))
        for layer in self.deeper:
            averages = layer.attend(per_token(layer.f, averages))
        return self.output(averages)

    def on_points(self, points: Tensor, index: Tensor, queries: int) -> Tensor:
        """Ĥ_t for the first `queries` of the τ times of sequences x = points[index]; one layer, no mask.

        f̂, W_Q, W_K and W_V act on the G points once instead of on all B τ inputs.
        points (M, G, d), index (M, B, τ) → (M, B, queries, d_out)
        """
        (m, g, _), (b, tau) = points.shape, index.shape[1:]
        rows = index + g * torch.arange(m).view(m, 1, 1)  # of all models' points

        def gathered(values: Tensor, times: int) -> Tensor:  # (M, G, ·) → (M, B, times, ·)
            return values.flatten(0, 1).index_select(0, rows[..., :times].reshape(-1)).view(m, b, times, -1)

        h = self.f(points)  # (M, G, n)
        q, k, v = (h @ w.mT for w in (self.W_Q, self.W_K, self.W_V))
        weights = self.couple(gathered(q, queries), gathered(k, tau)).softmax(-1)
        return self.output(self.weigh(weights, gathered(v, tau)))

    @torch.no_grad()
    def standardise(self, mean: Tensor, std: Tensor) -> None:
        """Let F̂ learn centred outputs of unit variance; mean, std broadcast to (M, 1, 1, d_out)."""
        self.shift.copy_(mean.expand_as(self.shift))
        self.scale.copy_(std.expand_as(self.scale))

    @torch.no_grad()
    def spread_knots(self, slope: float, low: float = 0.0, high: float = 1.0) -> None:
        """First layer of f̂ for scalar inputs: ReLU knots evenly on [low, high], slopes ±slope in turn."""
        w, b = self.f.weight[0], self.f.bias[0]
        knots = torch.linspace(low, high, w.shape[1])
        signs = slope * (1 - 2 * (torch.arange(w.shape[1]) % 2)).to(w.dtype)
        w.copy_(signs.view(1, -1, 1).expand_as(w))
        b.copy_((-signs * knots).view(1, 1, -1).expand_as(b))

    @torch.no_grad()
    def spread_hats(self, height: float, slope: float = 4.0) -> None:
        """f̂ for scalar inputs: second-layer units are hats of that height, evenly on [0, 1].

        Random ReLU layers begin almost blind to high frequencies, which the φ_i of eq. (68) have; hats see all alike.
        A hat with its peak at a knot is the second difference of the first layer's ramps, `half` knots apart; the
        first `half` units, whose hats would lie below 0, keep their random start.
        """
        (first, second, _), (first_bias, second_bias, _) = self.f.weight, self.f.bias
        width = first.shape[1]
        half = max(1, width // 16)
        step = 1 / (width - half - 1)
        first.fill_(slope)
        first_bias.copy_((-slope * step * (torch.arange(width) - half)).expand_as(first_bias))
        second[:, half:], second_bias[..., half:] = 0, 0
        ramp, peak = height / (slope * step * half), torch.arange(half, width)
        second[:, peak, peak - half] = ramp
        second[:, peak, peak] = -2 * ramp
        second[:, peak[:-half], peak[:-half] + half] = ramp


@torch.no_grad()
def predict(model: Transformer, x: np.ndarray, chunk: int = 64) -> np.ndarray:
    """Ĥ(x) of every model, in parts that fit memory: (N, τ) → (M, N, τ)."""
    inputs = torch.tensor(x, dtype=torch.float32)[..., None]
    return torch.cat([model(part)[..., 0] for part in inputs.split(chunk)], 1).double().numpy()
