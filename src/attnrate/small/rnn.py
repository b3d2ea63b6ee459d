"""The linear RNN of eqs. (72) and (73): h(t) = W h(t-1) + U x(t), y(t) = cᵀ h(t), a stack of M models.

Its kernel is k(s) = cᵀ W^s U (eq. 74). With biases (h gets b, y gets a constant, as torch.nn.RNN and nn.Linear have
them) it also gives an offset o(t) = Σ_{s ≤ t} cᵀ W^s b + b_out, which depends on time.
"""

import torch
from torch import Tensor, nn

from attnrate.small.transformer import default_uniform


class Response(torch.autograd.Function):
    """cᵀ W^s v for s = 0 … τ-1: W (M, h, h), v (M, k, h), c (M, 1, h) → (M, τ, k).

    Twenty times faster than `W @ state` under autograd: rows times a contiguous matrix, one product for W's gradient.
    """

    @staticmethod
    def forward(ctx, w: Tensor, v: Tensor, c: Tensor, tau: int) -> Tensor:
        transposed, states = w.mT.contiguous(), [v]
        for _ in range(tau - 1):
            states.append(states[-1] @ transposed)
        states = torch.stack(states, 1)  # (M, τ, k, h)
        ctx.save_for_backward(w, c, states)
        return (states @ c.unsqueeze(1).mT)[..., 0]

    @staticmethod
    def backward(ctx, grad: Tensor):  # (M, τ, k)
        w, c, states = ctx.saved_tensors
        m, tau, _, h = states.shape
        direct = grad.unsqueeze(-1) * c.unsqueeze(1)  # (M, τ, k, h): what state s gets from its own output
        adjoint = [direct[:, -1]]
        for s in range(tau - 2, -1, -1):
            adjoint.append(direct[:, s] + adjoint[-1] @ w)
        adjoint = torch.stack(adjoint[::-1], 1)
        grad_w = adjoint[:, 1:].reshape(m, -1, h).mT @ states[:, :-1].reshape(m, -1, h)
        grad_c = (grad.unsqueeze(-1) * states).sum((1, 2)).unsqueeze(1)
        return grad_w, adjoint[:, 0], grad_c, None


class LinearRNN(nn.Module):
    def __init__(self, seeds: list[int], hidden: int = 128, bias: bool = False):
        super().__init__()
        m = len(seeds)
        shapes = {"W": (hidden, hidden), "U": (hidden, 1), "c": (1, hidden)}
        if bias:
            shapes |= {"b": (hidden, 1), "b_out": (1, 1)}
        self.bias = bias
        generators = [torch.Generator().manual_seed(s) for s in seeds]
        for name, shape in shapes.items():
            draws = [default_uniform(shape, hidden, g) for g in generators]
            self.register_parameter(name, nn.Parameter(torch.stack(draws).view(m, *shape)))

    def kernel_and_offset(self, tau: int) -> tuple[Tensor, Tensor]:
        """k(s) = cᵀ W^s U and o(t), both (M, τ)."""
        inputs = torch.cat([self.U, self.b], 2) if self.bias else self.U  # (M, hidden, 1 or 2)
        response = Response.apply(self.W, inputs.mT.contiguous(), self.c, tau)  # (M, τ, 1 or 2)
        if self.bias:
            return response[..., 0], response[..., 1].cumsum(1) + self.b_out[..., 0]
        return response[..., 0], torch.zeros_like(response[..., 0])

    def forward(self, x: Tensor) -> Tensor:  # (B, τ) or (M, B, τ) → (M, B, τ)
        transposed = self.W.mT.contiguous()
        h = x.new_zeros(len(self.W), x.shape[-2], self.W.shape[1])  # (M, B, hidden)
        outputs = []
        for x_t in x.unbind(-1):
            h = h @ transposed + x_t[..., None] * self.U.mT
            if self.bias:
                h = h + self.b.mT
            y = h @ self.c.mT  # (M, B, 1)
            outputs.append(y + self.b_out if self.bias else y)
        return torch.cat(outputs, 2)
