"""The schema of params.yaml: what it accepts, and what a wrong value is told."""

import copy
import typing

import pytest
from pydantic import BaseModel

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import profile
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from tests.conftest import ROOT

BASE = params.read(ROOT / "params.yaml")
TRAINED, LINEAR, NEAREST = (  # steps
    group.steps for group in (BASE.rates.recipes.trained, BASE.linear.train, BASE.examples.tasks.nearest)
)
PROFILES = sorted(p for p in (ROOT / "profiles").glob("*.yaml") if p.stem != "rehearse")  # an overlay on paper.yaml


def with_value(key: str, value) -> dict:
    content = copy.deepcopy(BASE)
    *path, last = key.split(".")
    owner = content
    for part in path:
        owner = owner[part]
    owner[last] = value
    return content


@pytest.mark.parametrize("revision", ["0123abc", "main", "v1.0-a"])
def test_a_timm_model_may_name_its_revision(revision):
    content = with_value("vit.main.start", f"vit_base_patch16_224.augreg_in21k@{revision}")
    content["vit"]["model"]["pool"] = "token"
    check(Params, content, "params.yaml")


def refusal(content: dict) -> str:
    with pytest.raises(UserError) as e:
        check(Params, content, "params.yaml")
    return str(e.value)


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("mh", 0, "greater than or equal to 1"),
        ("mh", -3, "greater than or equal to 1"),
        ("mh", "two", "valid integer"),
        ("mh", None, "valid integer"),
        ("mh", [8], "valid integer"),
        ("mh", 10**6, "less than or equal to 256"),
        ("threads", 0, "greater than or equal to 1"),
        ("profile", "gpu", "'laptop'"),
        ("launch", "rm -rf /", "accelerate launch"),
        ("launch", "srun --gpus=1", "srun may stand before it"),
        ("rates.recipes.paper.steps", 0, "greater than or equal to 1"),
        ("rates.recipes.paper.lr", 0, "greater than 0"),
        ("rates.recipes.paper.lr", float("nan"), "finite number"),
        ("rates.recipes.trained.hats", float("inf"), "finite"),
        ("rates.recipes.trained.muon", 0, "greater than 0"),
        ("examples.tasks.mass.muon", 2, "less than or equal to 1"),
        ("vit.main.recipe", "sgd", "'adamw', 'muon' or 'authors'"),
        ("vit.recipes.muon.optimiser", "adam", "'adamw', 'muon' or 'sgd'"),
        ("translation.train.optimiser", "sgd", "'adamw' or 'muon'"),
        ("rates.recipes.paper.lr", 2, "less than or equal to 1"),
        ("rates.recipes.paper.schedule", "linear", "'constant' or 'cosine'"),
        ("rates.target.eval_seed", -1, "greater than or equal to 0"),
        ("rates.target.alphas", [], "at least 1 item"),
        ("rates.target.alphas", 1.0, "valid list"),
        ("rates.target.alphas", [1.0, 1.0], "not name a value twice"),
        ("rates.target.pairings", [], "at least 1 item"),
        ("rates.target.pairings", ["same", "same"], "not name a value twice"),
        ("rates.train.seeds", [0, 0], "not name a value twice"),
        ("rates.constructive.widths", [128], "at least 2 items"),
        ("linear.recipes.centred.gain", 0.0, "greater than 0"),
        ("vit.main.start", "resnet50", "name of a timm model"),
        ("vit.main.start", "resnet50@main", "name of a timm model"),
        ("vit.main.start", "vit_tiny_patch16_224@", "a revision or tag of the hub may follow"),
        ("vit.main.start", "vit_tiny_patch16_224@a@b", "a revision or tag of the hub may follow"),
        ("vit.sweep.start", "dinov2-saliency", "name of a timm model"),
        ("vit.sweep.start", "scratch@0123abc", "name of a timm model"),
        ("vit.pretrained.image_size", 100, "multiple of 14"),
        ("translation.data.train", ["one"], "two paths"),
    ],
)
def test_a_bad_value_is_named_with_its_key_and_the_rule(key, value, rule):
    message = refusal(with_value(key, value))
    assert len(message.splitlines()) == 1
    assert message.startswith("params.yaml: ") and key in message and repr(value) in message and rule in message


@pytest.mark.parametrize("value", [1000.0, 1.5, "5", "1e3", True, False])
@pytest.mark.parametrize("key", ["mh", "rates.recipes.paper.steps", "vit.train.epochs"])
def test_a_whole_number_is_written_as_one(key, value):
    """A stage takes params.yaml as it is: nothing is put right on the way."""
    (line,) = refusal(with_value(key, value)).splitlines()
    assert f"params.yaml: {key} = {value!r} is not allowed" in line and "valid integer" in line


@pytest.mark.parametrize("value", ["0.1", "1e-3", True])
def test_a_number_is_neither_a_word_nor_a_truth(value):
    (line,) = refusal(with_value("vit.recipes.adamw.lr", value)).splitlines()
    assert f"vit.recipes.adamw.lr = {value!r} is not allowed" in line and "valid number" in line


@pytest.mark.parametrize("value", [3, 0.5, True, ["x"]])
def test_a_word_is_a_word(value):
    (line,) = refusal(with_value("vit.train.schedule", value)).splitlines()
    assert f"vit.train.schedule = {value!r} is not allowed" in line and "'one-cycle'" in line


def test_what_is_accepted_is_what_was_written():
    """An integer may stand for a float; it is used as it stands."""
    found = check(Params, with_value("vit.model.mlp_ratio", 2), "params.yaml")
    assert found.vit.model.mlp_ratio == 2
    assert check(Params, BASE, "params.yaml").model_dump(by_alias=True) == BASE


@pytest.mark.parametrize(
    ("key", "value", "index", "rule"),
    [
        ("rates.target.alphas", [1.0, 0.5], 1, "greater than 0.5"),
        ("rates.recipes.paper.mh", [1, 2, 0], 2, "greater than or equal to 1"),
        ("rates.recipes.paper.mh", [4, "4"], 1, "valid integer"),
        *(
            ("rates.target.pairings", ["same", value], 1, "same, or dyadic- and the seed of a draw")
            for value in ("dyadic", "dyadic-", "dyadic-01", "dyadic--1", "dyadic-1\n", "dyadic-1234567890", "../same")
        ),
        ("rates.recipes.paper.pairings", [0], 0, "valid string"),
        ("rates.target.ranks", [0], 0, "whole number from 1 to 64, or inf"),
        ("rates.target.ranks", [2, "2.5"], 1, "whole number from 1 to 64, or inf"),
        ("rates.target.ranks", [True], 0, "whole number from 1 to 64, or inf"),
        ("rates.target.ranks", [float("inf")], 0, "whole number from 1 to 64, or inf"),
    ],
)
def test_a_bad_item_of_a_list_is_named_with_its_place(key, value, index, rule):
    message = refusal(with_value(key, value))
    assert f"{key}.{index} = {value[index]!r} is not allowed" in message and rule in message


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("rates.constructive.mh", [1, 64], ("rates.constructive.mh", "64", "rates.model.n", "66")),
        (
            "rates.recipes.paper.pairings",
            ["dyadic-9"],
            ("rates.recipes.paper.pairings = ['dyadic-9']", "rates.target.pairings = ["),
        ),
        ("linear.target.draws", 7, ("linear.rnn.seeds has 8 seeds", "linear.target.draws = 7")),
        ("rates.target.terms", 5, ("rates.target.ranks up to 6", "rates.target.terms = 5")),
        ("rates.train.queries", 17, ("rates.train.queries = 17", "rates.target.tau = 16")),
        ("rates.train.points", 15, ("rates.train.points = 15", "rates.target.tau = 16")),
        ("rates.recipes.trained.warmup", TRAINED, ("rates.recipes.trained.warmup =", f"its steps = {TRAINED}")),
        ("rates.recipes.paper.alphas", [3.0], ("rates.recipes.paper.alphas = [3.0]", "rates.target.alphas = [")),
        ("vit.beside.mh", [1, 33], ("vit.beside.mh", "vit.model.width / heads = 32")),
        ("rates.free_kernel.modes", 8, ("rates.free_kernel.modes = 8", "at least 15", "rates.free_kernel.mh = 15")),
        (
            "linear.recipes.centred.warmup",
            LINEAR,
            ("linear.recipes.centred.warmup =", f"linear.train.steps = {LINEAR}"),
        ),
        ("examples.train.warmup", NEAREST, ("examples.train.warmup =", f"examples.tasks.nearest.steps = {NEAREST}")),
    ],
)
def test_a_rule_about_several_keys_names_them(key, value, named):
    message = refusal(with_value(key, value))
    assert all(name in message for name in named)


def test_unknown_and_missing_keys_are_named_each_on_its_line():
    content = with_value("rates.train.stepz", 5)
    del content["rates"]["target"]["tau"]
    content["mhh"] = 3
    lines = refusal(content).splitlines()
    assert len(lines) == 3
    assert "params.yaml: rates.train.stepz is not a known parameter" in lines
    assert "params.yaml: mhh is not a known parameter" in lines
    assert any(line.startswith("params.yaml: rates.target.tau is missing (sequence length") for line in lines)


@pytest.mark.parametrize("group", ["rates", "rates.recipes.paper", "linear.recipes.centred"])
def test_a_missing_group_is_named(group):
    content = copy.deepcopy(BASE)
    *path, last = group.split(".")
    owner = content
    for part in path:
        owner = owner[part]
    del owner[last]
    assert refusal(content).startswith(f"params.yaml: {group} is missing")


def test_what_was_checked_cannot_be_changed():
    found = check(Params, BASE, "params.yaml")
    with pytest.raises(ValueError, match="frozen"):
        found.mh = 3


def fields(model: type[BaseModel], prefix: str = ""):
    """Every leaf of a schema, with its dotted key."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        inner = [a for a in (field.annotation, *typing.get_args(field.annotation)) if isinstance(a, type)]
        nested = [a for a in inner if issubclass(a, BaseModel)]
        if nested:
            assert field.is_required(), f"{key}: a default would hide a group from params.yaml"
            yield from (leaf for n in nested for leaf in fields(n, f"{key}."))
        else:
            yield key, field


@pytest.mark.parametrize(("key", "field"), [*fields(Params)])
def test_every_parameter_is_described_and_has_no_hidden_default(key, field):
    assert field.description and len(field.description) > 5
    assert field.is_required(), "a default would hide a key from params.yaml"


def test_the_schema_and_the_file_have_the_same_keys():
    assert set(profile.flatten(BASE)) == {key for key, _ in fields(Params)}


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.stem)
def test_every_profile_is_valid_and_says_its_name(path):
    merged = check(Params, profile.overlay(BASE, params.read(path), path), path)
    assert merged.profile == ("laptop" if path.stem == "other-seeds" else path.stem)
