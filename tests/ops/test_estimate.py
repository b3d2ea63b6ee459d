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
    assert cost.weights == 4 * cost.parameters / 1e9
    assert cost.launches == 2  # a matrix product with its bias each; their transposed weights are views


def test_a_step_takes_its_operations_or_its_launches_whichever_is_more():
    wide = estimate.Cost(flops=estimate.PEAK * 0.5, kept=0, parameters=1, launches=10, utilisation=0.5)
    assert wide.hours(3600) == pytest.approx(3600 / 3600)  # a second an item
    narrow = estimate.Cost(flops=1, kept=0, parameters=1, launches=100, utilisation=0.5)
    step = 3 * 100 * estimate.LAUNCH
    assert narrow.hours(8, batch=4) == pytest.approx(2 * step / 3600)
    assert narrow.hours(8, batch=8) == pytest.approx(step / 3600)


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


def test_measurements_grow_with_the_models():
    """Every stage that the paper profile's models make longer has hours of its own."""
    laptop, paper = estimate.profiles(ROOT)
    seconds = {"vit_cut": 36.0, "translation_spectra": 36.0}
    same, hours = (dict(estimate.on_cpu(laptop, p, seconds)) for p in (laptop, paper))
    assert all(same[stage] == pytest.approx(0.01) and 0.02 < hours[stage] < 2 for stage in seconds)
    twice = copy.deepcopy(BASE)
    twice.vit.cut["inputs"] *= 2
    twice.translation.spectra["tokens"] *= 2
    more = dict(estimate.on_cpu(laptop, check(Params, twice, "params.yaml"), seconds))
    assert all(more[stage] == pytest.approx(0.02) for stage in seconds)


@pytest.fixture(scope="module")
def few():
    """The paper profile with a short sweep."""
    _, paper = estimate.profiles(ROOT)
    parts = {"grid": {"models": ["qk-1", "width-2"]}, "beside": {"mh": [1], "seeds": [0]}}
    parts = {name: getattr(paper.vit, name).model_copy(update=changes) for name, changes in parts.items()}
    return paper.model_copy(update={"vit": paper.vit.model_copy(update=parts)})


def test_accumulation_saves_memory_and_no_time(few):
    train = few.translation.train.model_copy(update={"accumulate": 1})
    whole = few.model_copy(update={"translation": few.translation.model_copy(update={"train": train})})
    parts, one = ({row.stage: row for row in estimate.on_gpu(p)} for p in (few, whole))
    assert few.translation.train.accumulate > 1
    assert parts["translation_main"].total == one["translation_main"].total
    assert parts["translation_main"].memory < one["translation_main"].memory
    wanted = {s.name.partition("@")[0] for s in pipeline.stages(ROOT) if s.meta.get("gpu")}
    assert set(parts) == wanted - {"vit_cut"}  # factorisations, which are the CPU's
    sweep, seeds = parts["vit_sweep"], len(few.vit.sweep.seeds)
    small, large = (estimate.vit_cost(few.vit.model, *case) for case in (("width", 2), ("qk", 1)))
    assert sweep.weights == pytest.approx(seeds * (small.weights + large.weights))
    assert set(sweep.hours) == {"qk-1", "width-2"} and sweep.hours["width-2"] < sweep.hours["qk-1"]
    batch = few.vit.train.batch // few.vit.train.accumulate
    assert (
        small.flops * batch / (estimate.PEAK * estimate.VIT) < 3 * small.launches * estimate.LAUNCH
    )  # launches decide


def test_disk_counts_weights_twice_and_the_largest_checkpoints():
    rows = [
        estimate.Row("vit_sweep", "", {"a": 1.0, "b": 1.0}, 0, 6.0),
        estimate.Row("vit_main", "", {"": 1.0}, 0, 1.0),
    ]
    space = estimate.disk(rows, gpus=2)
    assert space["weights of the sweep"] == 6 and space["all other weights"] == 1
    assert space["the same again, in DVC's cache"] == 7 + estimate.SETS
    assert space["checkpoints of 2 stages, at most"] == 2 * 3 * 3.0


def test_every_stage_gets_its_share_of_the_hours():
    rows = [estimate.Row("a", "", {"x": 1.0, "y": 2.0}, 0), estimate.Row("b", "", {"": 6.0}, 0)]
    rows.append(estimate.Row("e", "", {"v_seed0": 1.0, "w_seed0": 2.0, "v_seed1": 4.0, "w_seed1": 8.0}, 0))
    names = ["a@x", "a@y", "b@0", "b@1", "b@2", "c@u", "c@v", "d", "e@seed0", "e@v_seed1", "e@w_seed1"]
    hours = estimate.by_stage(names, rows, {"c": 4.0}, {"c@u": 30.0, "c@v": 10.0, "d": 36.0})
    assert hours == {"a@x": 1, "a@y": 2, "b@0": 2, "b@1": 2, "b@2": 2, "c@u": 3, "c@v": 1, "d": 0.01} | {
        "e@seed0": 3,
        "e@v_seed1": 4,
        "e@w_seed1": 8,
    }
