"""A linear classifier on a model's features, where it has none of its own."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DECAY = 1e-2  # of the weights of a softmax regression on standardised features
STEPS = 100


@torch.no_grad()
def features(model: nn.Module, batches) -> Tensor:
    return torch.cat([model.eval()(batch).float().cpu() for batch in batches])


def probe(x: Tensor, y: Tensor, classes: int) -> nn.Linear:
    """Softmax regression by L-BFGS from zero, which has one answer: (N, n), (N,) → a layer for features as they are."""
    x, mean, sd = x.double(), x.double().mean(0), x.double().std(0).clamp(min=1e-6)
    z = (x - mean) / sd
    weight = torch.zeros(classes, x.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS([weight, bias], max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        value = F.cross_entropy(z @ weight.T + bias, y) + DECAY * weight.square().sum() / 2
        value.backward()
        return value

    with torch.enable_grad():
        solver.step(loss)
    layer = nn.Linear(x.shape[1], classes)
    with torch.no_grad():
        layer.weight.copy_(weight / sd)
        layer.bias.copy_(bias - weight @ (mean / sd))
    return layer
