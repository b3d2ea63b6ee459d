"""Estimates of the paper profile: counted operations against closed forms, and growth of work."""

import pytest
import torch
from torch import nn

from attnrate.ops import estimate
from tests.conftest import ROOT


def test_operations_memory_and_parameters_of_two_linear_maps():
    model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4))
    x = torch.zeros(5, 8)
    cost = estimate.count(model, lambda: model(x))
    assert cost.flops == 3 * 2 * 5 * (8 * 16 + 16 * 4)
    assert cost.kept == 2 * 5 * (8 + 16)  # the inputs of both maps, two bytes a number
    assert cost.parameters == 8 * 16 + 16 + 16 * 4 + 4
    assert cost.gigabytes(3) == pytest.approx((16 * cost.parameters + 3 * cost.kept) / 1e9)


def test_vit_b16_has_the_known_size():
    """86 M parameters and 17.6 G multiplications and additions a forward pass (Dosovitskiy et al.; timm)."""
    _, paper = estimate.profiles(ROOT)
    cost = estimate.vit_cost(paper.vit, "qk", 64)
    assert cost.parameters == pytest.approx(85.8e6, rel=0.002)
    assert cost.flops / 6 == pytest.approx(17.5e9, rel=0.03)
    assert estimate.vit_cost(paper.vit, "qk", 1).flops < cost.flops


def test_hours_grow_with_steps_seeds_and_cells():
    laptop, paper = estimate.profiles(ROOT)
    found = dict(
        estimate.on_cpu(laptop, laptop, {"linear_train@a": 1800.0, "linear_train@b": 1800.0, "linear_rnn": 36.0})
    )
    assert found["linear_train"] == pytest.approx(1.0) and found["linear_rnn"] == pytest.approx(0.01)
    before, after = laptop.linear, paper.linear
    seeds = len(after.seeds) / len(before.seeds)
    exact = after.rnn_steps / before.rnn_steps * seeds
    samples = seeds * after.rnn_sample_steps * after.batch * len(after.cells)
    samples /= before.rnn_sample_steps * before.batch * len(before.cells)
    (hours,) = (h for name, h in estimate.on_cpu(laptop, paper, {"linear_rnn": 36.0}) if name == "linear_rnn")
    assert exact < hours / 0.01 < samples and hours / 0.01 == pytest.approx(0.8 * exact + 0.2 * samples)


def test_accumulation_saves_memory_and_no_time():
    _, paper = estimate.profiles(ROOT)
    paper = paper.model_copy(
        update={"vit": paper.vit.model_copy(update={"readings": ["qk"], "mh_sweep": [1]})}
    )  # quick
    whole = paper.model_copy(update={"translation": paper.translation.model_copy(update={"accumulate": 1})})
    parts, one = ({name: cost for name, *cost in estimate.on_gpu(p)} for p in (paper, whole))
    _, hours, memory = parts["train_translation"]
    _, same, more = one["train_translation"]
    assert paper.translation.accumulate > 1 and hours == same and memory < more
