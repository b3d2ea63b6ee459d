"""Muon (Jordan et al., 2024) on matrices, AdamW on every other parameter, in one optimiser.

A matrix moves along the orthogonal factor of its momentum, found by Newton-Schulz steps. The rule is that of
`torch.optim.Muon`, but in single precision, since bfloat16 is slow on most CPUs, and for each matrix of a stack
(…, rows, columns), since a parameter of many small models has a leading axis.
"""

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the step that takes singular values towards 1
STEPS = 5
EPSILON = 1e-7
CHUNK = 1 << 18  # numbers that fit the caches of a CPU with their products: a third faster than all at once


def orthogonal(g: Tensor, steps: int = STEPS) -> Tensor:
    """About U Vᵀ for g = U S Vᵀ, all singular values near 1: (…, rows, columns), each matrix by itself."""
    a, b, c = COEFFICIENTS
    x = g.mT if g.shape[-2] > g.shape[-1] else g
    shape, x = x.shape, x.reshape(-1, *x.shape[-2:])
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp_min(EPSILON)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    x = x.view(shape)
    return x.mT if g.shape[-2] > g.shape[-1] else x


def spectral(rows: int, columns: int) -> float:
    """The length of a step whose spectral norm suits the shape."""
    return max(1, rows / columns) ** 0.5


def like_adam(rows: int, columns: int) -> float:
    """The length of a step whose numbers are as large as AdamW's, so that learning rates carry over."""
    return 0.2 * max(rows, columns) ** 0.5


class Muon(torch.optim.AdamW):
    """Groups with a `length`, a function of (rows, columns), follow Muon; the others AdamW."""

    def __init__(self, groups: list[dict], *, momentum: float = 0.95, ns_steps: int = STEPS, **adamw):
        self.momentum, self.ns_steps = momentum, ns_steps
        super().__init__(groups, fused=True, **adamw)

    @torch.no_grad()
    def step(self, closure=None):
        every = self.param_groups
        self.param_groups = [g for g in every if "length" not in g]
        super().step(closure)
        self.param_groups = every
        for group in every:
            if "length" in group:
                self._move([p for p in group["params"] if p.grad is not None], group)

    def _move(self, params: list[Tensor], group: dict) -> None:
        by_shape: dict[torch.Size, list[Tensor]] = {}
        for p in params:
            by_shape.setdefault(p.shape[-2:], []).append(p)
        for shape, same in by_shape.items():  # one call for all of a shape: many small products at once are faster
            ahead = torch.cat([self._ahead(p).view(-1, *shape) for p in same])
            at_once = CHUNK // shape.numel() if ahead.is_cpu else len(ahead)
            factors = torch.cat([orthogonal(part, self.ns_steps) for part in ahead.split(max(1, at_once))])
            for p, factor in zip(same, factors.split([p.numel() // shape.numel() for p in same]), strict=True):
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(factor.view_as(p), alpha=-group["lr"] * group["length"](*shape))

    def _ahead(self, p: Tensor) -> Tensor:
        """The momentum with Nesterov's look ahead."""
        state = self.state[p]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(p)
            state["step"] = torch.zeros(())  # AdamW's reader of states asks for it
        state["momentum_buffer"].lerp_(p.grad, 1 - self.momentum)
        return p.grad.lerp(state["momentum_buffer"], self.momentum)
