"""The linear RNN of eqs. (72) and (73): h(t) = W h(t-1) + U x(t), y(t) = cᵀ h(t), a stack of M models.

Its kernel is k(s) = cᵀ W^s U (eq. 74). With biases (h gets b, y gets a constant, as torch.nn.RNN and nn.Linear have
them) it also gives an offset o(t) = Σ_{s ≤ t} cᵀ W^s b + b_out, which depends on time.
"""

import torch
from torch import Tensor, nn

from attnrate.models.transformer import default_uniform


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
        state = torch.cat([self.U, self.b], 2) if self.bias else self.U  # (M, hidden, 1 or 2)
        outputs = [self.c @ state]
        for _ in range(tau - 1):
            state = self.W @ state
            outputs.append(self.c @ state)
        response = torch.cat(outputs, 1)  # (M, τ, 1 or 2)
        if self.bias:
            return response[..., 0], response[..., 1].cumsum(1) + self.b_out[..., 0]
        return response[..., 0], torch.zeros_like(response[..., 0])

    def forward(self, x: Tensor) -> Tensor:  # (B, τ) → (M, B, τ)
        h = x.new_zeros(len(self.W), self.W.shape[1], x.shape[0])  # (M, hidden, B)
        outputs = []
        for x_t in x.T:
            h = self.W @ h + self.U * x_t
            if self.bias:
                h = h + self.b
            y = self.c @ h  # (M, 1, B)
            outputs.append(y + self.b_out if self.bias else y)
        return torch.cat(outputs, 1).mT
