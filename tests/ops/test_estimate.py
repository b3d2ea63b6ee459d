"""Estimates of the paper profile: counted operations against closed forms, and growth of work."""

import copy

import pytest
import torch
from torch import nn

from attnrate.ops import estimate
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from tests import pipeline
from tests.conftest import ROOT
from tests.schemas.test_check import BASE, with_value

RATES = BASE.rates


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
    cost = estimate.vit_cost(paper.vit.model, "qk", 64)
    assert cost.parameters == pytest.approx(85.8e6, rel=0.002)
    assert cost.flops / 6 == pytest.approx(17.5e9, rel=0.03)
    assert estimate.vit_cost(paper.vit.model, "qk", 1).flops < cost.flops


def test_hours_grow_with_steps_seeds_and_cells():
    laptop, paper = estimate.profiles(ROOT)
    seconds = {"linear_train@a": 1800.0, "linear_train@b": 1800.0, "linear_rnn": 36.0, "examples_train@mass": 36.0}
    found = dict(estimate.on_cpu(laptop, laptop, seconds))
    assert found["linear_train"] == pytest.approx(1.0) and found["linear_rnn"] == pytest.approx(0.01)
    assert found["examples_train"] == pytest.approx(0.01)
    before, after = laptop.linear, paper.linear
    seeds = len(after.rnn.seeds) / len(before.rnn.seeds)
    exact = after.rnn.steps / before.rnn.steps * seeds
    samples = after.rnn.sample_steps * after.rnn.batch * len(after.cells.names)
    samples /= before.rnn.sample_steps * before.rnn.batch * len(before.cells.names)
    hours = dict(estimate.on_cpu(laptop, paper, seconds))["linear_rnn"]
    assert exact < hours / 0.01 < samples and hours / 0.01 == pytest.approx(0.8 * exact + 0.2 * samples)


@pytest.mark.parametrize(
    ("stage", "key", "value", "times"),
    [
        ("rates_train", "rates.train.seeds", [5, 6], 2 / len(RATES.train.seeds)),
        ("rates_train", "rates.target.pairings", [*RATES.target.pairings, "dyadic-99"], 1),
        ("rates_free_kernel", "rates.target.pairings", RATES.target.pairings[:-1], 1 - 1 / len(RATES.target.pairings)),
        ("rates_free_kernel", "rates.free_kernel.mh", [1, 2], 2 / len(RATES.free_kernel.mh)),
    ],
)
def test_hours_of_section_5_1_follow_its_grid(stage, key, value, times):
    laptop, _ = estimate.profiles(ROOT)
    other = check(Params, with_value(key, value), "params.yaml")
    hours = dict(estimate.on_cpu(laptop, other, {"rates_train@paper": 3600.0, "rates_free_kernel": 3600.0}))
    assert hours[stage] == pytest.approx(times)


def test_hours_of_trainings_grow_with_the_steps_of_each_recipe():
    """Twice as many in both is twice the time; in one alone, something between."""
    laptop, _ = estimate.profiles(ROOT)
    content, hours = copy.deepcopy(BASE), []
    for recipe in content.rates.recipes.values():
        recipe["steps"] *= 2
        more = check(Params, content, "params.yaml")
        hours.append(dict(estimate.on_cpu(laptop, more, {"rates_train@trained": 3600.0}))["rates_train"])
    assert 1 < hours[0] < hours[1] == pytest.approx(2)


def test_accumulation_saves_memory_and_no_time():
    _, paper = estimate.profiles(ROOT)
    few = {"grid": {"models": ["qk-1"]}, "beside": {"mh": [1], "seeds": [0]}}  # quick
    few = {name: getattr(paper.vit, name).model_copy(update=changes) for name, changes in few.items()}
    paper = paper.model_copy(update={"vit": paper.vit.model_copy(update=few)})
    train = paper.translation.train.model_copy(update={"accumulate": 1})
    whole = paper.model_copy(update={"translation": paper.translation.model_copy(update={"train": train})})
    parts, one = ({name: cost for name, *cost in estimate.on_gpu(p)} for p in (paper, whole))
    _, hours, memory = parts["translation_main"]
    _, same, more = one["translation_main"]
    assert paper.translation.train.accumulate > 1 and hours == same and memory < more
    wanted = {s.name.partition("@")[0] for s in pipeline.stages(ROOT) if s.meta.get("gpu")}
    assert set(parts) == wanted - {"translation_bleu"}  # which translates, and trains nothing
