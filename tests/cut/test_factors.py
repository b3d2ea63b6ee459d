"""The best bilinear forms against dense SVDs."""

import pytest
import torch

from attnrate.cut.factors import factors, grouped, left_out, second_moments, shared
from attnrate.vit.model import truncate_head


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def best(matrix, m):
    u, s, vt = torch.linalg.svd(matrix, full_matrices=False)
    return (u[..., :m] * s[..., None, :m]) @ vt[..., :m, :]


@pytest.mark.parametrize("tokens", [5, 20])
def test_by_an_inputs_own_moments_scores_are_truncated_by_their_svd(tokens):
    q, k = draw(2, 3, tokens, 8), draw(2, 3, tokens + 2, 8, seed=1) * torch.logspace(0, -3, 8)
    found = factors(second_moments(q), second_moments(k))
    for m in range(1, 9):
        assert torch.allclose(q @ found.form(m) @ k.mT, best(q @ k.mT, m), atol=1e-7 * float((q @ k.mT).norm()))


def test_white_inputs_give_the_svd_of_the_weights():
    w_q, w_k = draw(6, 20), draw(6, 20, seed=1)
    found = factors(w_q @ w_q.mT, w_k @ w_k.mT)
    for m in (1, 3, 5):
        a, b = truncate_head(w_q, w_k, m)
        assert torch.allclose(w_q.mT @ found.form(m) @ w_k, a.mT @ b, atol=1e-8)


def test_the_errors_of_all_sizes_are_those_of_each():
    q, k, other = draw(4, 9, 5), draw(4, 7, 5, seed=1), draw(4, 9, 5, seed=2)
    found = factors(second_moments(other), second_moments(k))  # made for other queries
    errors = left_out(found, second_moments(q), second_moments(k))
    for m in range(6):
        wanted = (q @ k.mT - q @ found.form(m) @ k.mT).square().sum((-1, -2))
        assert torch.allclose(errors[:, m], wanted, rtol=1e-6, atol=1e-8)


def test_no_form_of_that_rank_is_better_on_the_data():
    """Neither the plain SVD of the weights nor one of a thousand neighbours."""
    x = draw(400, 12) @ (draw(12, 12, seed=3) * torch.logspace(1, -2, 12))
    w_q, w_k = draw(6, 12, seed=1), draw(6, 12, seed=2)
    q, k = x @ w_q.mT, x @ w_k.mT
    a, b = second_moments(q), second_moments(k)
    data, weights = factors(a, b), factors(w_q @ w_q.mT, w_k @ w_k.mT)
    errors = left_out(data, a, b)
    assert (errors[1:6] < 0.7 * left_out(weights, a, b)[1:6]).all()
    left, right = data.left[:, :3], data.right[:, :3]
    for seed in range(1000):
        near = (left + 1e-2 * left.norm() * draw(6, 3, seed=seed)) @ (right + 1e-2 * right.norm() * draw(6, 3)).mT
        assert (q @ k.mT - q @ near @ k.mT).square().sum() >= errors[3] * (1 - 1e-9)


def test_keys_of_low_rank_and_no_keys():
    q, k = draw(9, 6), draw(9, 2, seed=1) @ draw(2, 6, seed=2)
    found = factors(second_moments(q), second_moments(k))
    assert torch.allclose(q @ found.form(2) @ k.mT, q @ k.mT, atol=1e-6)
    assert factors(second_moments(q), torch.zeros(6, 6, dtype=torch.float64)).form(3).isfinite().all()


def test_heads_that_share_keys_are_cut_together():
    k = draw(2, 2, 7, 3).repeat_interleave(3, 1)
    assert shared(k) == 3 and shared(draw(2, 6, 7, 3)) == 1
    a = grouped(draw(6, 3, 3), 3)
    assert torch.equal(a[0], a[2]) and not torch.equal(a[2], a[3])
    assert torch.allclose(a[0], draw(6, 3, 3)[:3].mean(0))
