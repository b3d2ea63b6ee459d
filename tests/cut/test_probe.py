"""The classifier of a model that has none."""

import torch
import torch.nn.functional as F

from attnrate.cut.probe import DECAY, probe


def test_it_is_the_minimum_of_its_loss():
    """Where the gradient in standardised features is zero, whatever their scale."""
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 4, generator=g) * torch.tensor([1.0, 10, 0.1, 3]) + 5, torch.arange(60) % 3
    x[y == 1] += torch.tensor([1.0, 0, 0.2, 0])
    layer, sd = probe(x, y, 3), x.std(0)
    z, weight = (x - x.mean(0)) / sd, (layer.weight * sd).detach().requires_grad_()
    bias = (layer.bias + layer.weight @ x.mean(0)).detach().requires_grad_()
    loss = F.cross_entropy(z @ weight.T + bias, y) + DECAY * weight.square().sum() / 2
    loss.backward()
    assert loss.item() < 0.95 * torch.tensor(3.0).log().item()
    assert weight.grad.abs().max() < 1e-4 and bias.grad.abs().max() < 1e-4
    assert layer(x)[y == 1].argmax(-1).bincount().argmax() == 1
