import pytest
import torch

from attnrate.small.rnn import LinearRNN, Response


@pytest.mark.parametrize("bias", [False, True])
def test_recurrence_equals_kernel_and_offset(bias):
    """Eq. (74): running h(t) = W h(t-1) + U x(t) is the convolution with cᵀ W^s U."""
    model = LinearRNN([0, 1, 2], hidden=16, bias=bias).double()
    x = torch.rand(4, 12, dtype=torch.float64)
    kernel, offset = model.kernel_and_offset(12)
    direct = torch.stack(
        [
            torch.stack([sum(kernel[m, s] * x[:, t - s] for s in range(t + 1)) + offset[m, t] for t in range(12)], 1)
            for m in range(3)
        ]
    )
    assert torch.allclose(model(x), direct)
    assert bias == bool(offset.abs().max() > 0)


@pytest.mark.parametrize("bias", [False, True])
def test_each_model_may_have_its_own_inputs(bias):
    model = LinearRNN([0, 1, 2], hidden=16, bias=bias).double()
    x = torch.rand(3, 4, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for m in range(3):
        assert torch.allclose(model(x)[m], model(x[m])[m], atol=1e-14, rtol=0)


def test_a_model_is_the_same_in_any_stack():
    alone, stacked = LinearRNN([7], hidden=8), LinearRNN([1, 7], hidden=8)
    assert torch.equal(alone.W[0], stacked.W[1]) and torch.equal(alone.c[0], stacked.c[1])


def test_response_has_the_right_gradient():
    g = torch.Generator().manual_seed(0)
    w, v, c = (
        0.5 * torch.randn(shape, generator=g, dtype=torch.float64) for shape in ((2, 4, 4), (2, 2, 4), (2, 1, 4))
    )
    inputs = [t.requires_grad_() for t in (w, v, c)]
    assert torch.autograd.gradcheck(lambda w, v, c: Response.apply(w, v, c, 5), inputs)
