"""Attention by hand: a softmax in other words, what is none, and gates that are no attention."""

import torch
import torch.nn.functional as F
from torch import nn

X = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0))
LATER = torch.ones(5, 5).triu(1).bool()


class Attention(nn.Module):
    """Two heads of 4; how(q, k, v) attends, with scores q kᵀ / 2."""

    def __init__(self, how):
        super().__init__()
        self.how, self.qkv = how, nn.Linear(8, 24)
        for i, weight in enumerate(self.parameters()):  # large enough for softmax to matter
            nn.init.normal_(weight, std=0.5, generator=torch.Generator().manual_seed(i))

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4).unbind()
        return self.how(q, k, v).transpose(1, 2).flatten(2)


def scores(q, k):
    return q @ k.mT / 2


def softmax(q, k, v):
    return scores(q, k).softmax(-1) @ v


def causal(q, k, v):
    return scores(q, k).masked_fill(LATER, -torch.inf).softmax(-1) @ v


def exp_over_sum(q, k, v):
    e = torch.exp(scores(q, k))
    return e / e.sum(-1, keepdim=True) @ v


def largest_taken_away(q, k, v):
    s = scores(q, k)
    e = (s - s.max(-1, keepdim=True).values).exp()
    return e / (e.sum(-1, keepdim=True) + 1e-9) @ v


def in_place(q, k, v):
    e = scores(q, k)
    e -= e.amax(-1, keepdim=True)
    e = e.exp_()
    e /= e.sum(-1, keepdim=True)
    return e @ v


def log_softmax(q, k, v):
    return F.log_softmax(scores(q, k), -1).exp() @ v


def logsumexp(q, k, v):
    s = scores(q, k)
    return (s - s.logsumexp(-1, keepdim=True)).exp() @ v


def reciprocal(q, k, v):
    e = scores(q, k).exp()
    return torch.matmul(e * (1 / e.sum(-1, keepdim=True)), v)


def divided_late(q, k, v):
    s = scores(q, k)
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return (e @ v) / e.sum(-1, keepdim=True)


def divided_late_by_a_product(q, k, v):
    e = scores(q, k).exp()
    return (1 / e.sum(-1, keepdim=True)) * torch.einsum("bhij,bhjd->bhid", e, v)


def masked_before(q, k, v):
    e = (scores(q, k) + torch.zeros(5, 5).masked_fill(LATER, -1e4)).exp()
    return e / e.sum(-1, keepdim=True) @ v


def masked_after(q, k, v):
    e = scores(q, k).exp() * ~LATER
    return e / e.sum(-1, keepdim=True) @ v


def masked_after_in_place(q, k, v):
    e = scores(q, k).exp().masked_fill_(LATER, 0)
    return e @ v / e.sum(-1, keepdim=True)


FULL = [exp_over_sum, largest_taken_away, in_place, log_softmax, logsumexp, reciprocal]
FULL += [divided_late, divided_late_by_a_product]
HALF = [masked_before, masked_after, masked_after_in_place]
PAIRS = [(how, softmax) for how in FULL] + [(how, causal) for how in HALF]


def sigmoid(q, k, v):
    return scores(q, k).sigmoid() @ v


def relu_squared(q, k, v):
    return F.relu(scores(q, k)).square() / 5 @ v


def clamped(q, k, v):
    w = scores(q, k).clamp(min=0)
    return w / w.sum(-1, keepdim=True).clamp(min=1e-6) @ v


def no_sum(q, k, v):
    return scores(q, k).exp() @ v


def over_queries(q, k, v):
    return scores(q, k).log_softmax(-2).exp() @ v


def retention(q, k, v):
    return scores(q, k).masked_fill(LATER, 0) @ v


def linear(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(-2, keepdim=True).mT)


def performer(q, k, v):
    features = torch.ones(4, 6)
    q, k = torch.exp(q @ features), torch.exp(k @ features)
    return q @ (k.mT @ v)


def running_sums(q, k, v):
    return torch.einsum("bhtd,bhtde->bhte", q, torch.einsum("bhtd,bhte->bhtde", k, v).cumsum(2))


def by_einsum(q, k, v):
    return torch.einsum("bhij,bhjd->bhid", torch.einsum("bhid,bhjd->bhij", q, k).sigmoid(), v)


def distances(q, k, v):
    return torch.exp(-torch.cdist(q, k)) @ v


def one_by_one(q, k, v):
    heads = zip(*(x.flatten(0, 1) for x in (q, k, v)), strict=True)
    return torch.stack([softmax(*head) for head in heads]).unflatten(0, (3, 2))


def of_two_dimensions(q, k, v):
    return torch.vmap(torch.vmap(softmax))(q, k, v)


def in_parts(q, k, v):
    return torch.stack([s.sigmoid() @ v[:, i] for i, s in enumerate(scores(q, k).unbind(1))], 1)


def with_a_sink(q, k, v):
    return torch.cat([scores(q, k), torch.zeros(3, 2, 5, 1)], -1).sigmoid()[..., :-1] @ v


def assigned(q, k, v):
    w = torch.zeros(3, 2, 5, 5)
    w[:, :, 1:] = scores(q, k)[:, :, 1:]
    return w.sigmoid() @ v


def three_at_once(q, k, v):
    return torch.einsum("bhid,bhjd,bhje->bhie", q, k, v)


def synthesizer(q, k, v):
    return F.linear(q, torch.ones(5, 4)).softmax(-1) @ v


def library(q, k, v):
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0]


def internal(q, k, v):
    return torch._softmax(scores(q, k), -1, False) @ v


NAMED = {
    sigmoid: "sigmoid",
    relu_squared: "relu",
    clamped: "products alone",
    no_sum: "exp",
    over_queries: "exp",
    retention: "products alone",
    linear: "products alone",
    performer: "products alone",
    running_sums: "einsum",
    by_einsum: "einsum",
    distances: "cdist",
    one_by_one: "matmul of 2 dimensions",
    of_two_dimensions: "matmul of 2 dimensions",
    in_parts: "unbind",
    with_a_sink: "cat",
    assigned: "__getitem__",
    three_at_once: "einsum",
    synthesizer: "softmax of a linear layer's output",
    library: "_scaled_dot_product_flash_attention_for_cpu",
    internal: "_softmax",
}


class Gates(nn.Module):
    """What multiplies activations and does not attend."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.a, self.b = kind, nn.Linear(8, 8), nn.Linear(8, 8)
        self.up, self.down = (nn.Parameter(torch.randn(3, *size)) for size in ((8, 6), (6, 8)))
        self.register_buffer("table", torch.randn(1, 8, 4))

    def forward(self, x):
        if self.kind == "SwiGLU":
            return self.b(F.silu(self.a(x)) * self.b(x))
        if self.kind == "squeeze and excitation":
            return x * self.b(self.a(x.mean(1, keepdim=True)).relu()).sigmoid()
        if self.kind == "router":
            gates = (self.a(x) / 0.5).softmax(-1)
            best, which = gates.topk(2)
            return sum(best[..., i, None] * self.b(x) * (which[..., i, None] + 1) for i in range(2))
        if self.kind == "router, all experts":
            outs = torch.stack([self.b(x)] * 8, -2)  # (B, τ, experts, W)
            return (self.a(x).softmax(-1)[..., None, :] @ outs)[..., 0, :]
        if self.kind == "router, einsum":
            return torch.einsum("bte,bted->btd", self.a(x).sigmoid(), torch.stack([self.b(x)] * 8, -2))
        if self.kind == "experts":
            hidden = torch.bmm(x, self.up)
            return torch.bmm(F.silu(hidden) * hidden, self.down)
        if self.kind == "experts, einsum":
            return torch.einsum("btn,bnd->btd", torch.einsum("btd,bdn->btn", x, self.up).relu(), self.down)
        if self.kind == "features":
            return x + torch.cat([(x @ self.table.expand(3, 8, 4)).cos()] * 2, -1)
        if self.kind == "bilinear":
            return self.a(torch.cat([x @ x.mT, x], -1)[..., :8]) * x
        return self.b(x).log_softmax(-1).exp()  # "probabilities"


KINDS = ["SwiGLU", "squeeze and excitation", "router", "router, all experts", "router, einsum", "experts"]
KINDS += ["experts, einsum", "features", "bilinear", "probabilities"]
