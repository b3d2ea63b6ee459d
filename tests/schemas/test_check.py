"""params.yaml: what is accepted, and what a wrong value is told."""

import copy
import typing

import pytest
import yaml
from pydantic import BaseModel

from attnrate.ops import profile
from attnrate.schemas import check as config
from attnrate.core.errors import UserError
from attnrate.schemas.all import Params
from attnrate.schemas.rates import Rates
from tests.conftest import ROOT

BASE = config.read(ROOT / "params.yaml")
PROFILES = sorted(p for p in (ROOT / "profiles").glob("*.yaml") if p.stem != "rehearse")  # an overlay on paper.yaml


def with_value(key: str, value) -> dict:
    content = copy.deepcopy(BASE)
    *path, last = key.split(".")
    owner = content
    for part in path:
        owner = owner[part]
    owner[last] = value
    return content


def refusal(content: dict) -> str:
    with pytest.raises(UserError) as e:
        config.check(Params, content, "params.yaml")
    return str(e.value)


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("mh", 0, "greater than or equal to 1"),
        ("mh", -3, "greater than or equal to 1"),
        ("mh", "two", "valid integer"),
        ("mh", 1.5, "valid integer"),
        ("mh", None, "valid integer"),
        ("mh", [8], "valid integer"),
        ("mh", True, "not true or false"),
        ("mh", 10**6, "less than or equal to 256"),
        ("threads", 0, "greater than or equal to 1"),
        ("profile", "gpu", "'laptop'"),
        ("rates.steps", 0, "greater than or equal to 1"),
        ("rates.steps", "many", "valid integer"),
        ("rates.paper_lr", 0, "greater than 0"),
        ("rates.paper_lr", "nan", "greater than 0"),
        ("rates.paper_lr", float("nan"), "greater than 0"),
        ("rates.trained_slope", float("inf"), "finite"),
        ("rates.paper_lr", 2, "less than or equal to 1"),
        ("rates.eval_seed", -1, "greater than or equal to 0"),
        ("rates.alphas", [], "at least 1 item"),
        ("rates.alphas", 1.0, "valid list"),
        ("rates.alphas", [1.0, 1.0], "not name a value twice"),
        ("rates.seeds", [0, 0], "not name a value twice"),
        ("rates.mh", [4, "4"], "not name a value twice"),
        ("rates.widths", [128], "at least 2 items"),
    ],
)
def test_a_bad_value_is_named_with_its_key_and_the_rule(key, value, rule):
    message = refusal(with_value(key, value))
    assert len(message.splitlines()) == 1
    assert message.startswith("params.yaml: ") and key in message and repr(value) in message and rule in message


@pytest.mark.parametrize(
    ("key", "value", "index", "rule"),
    [
        ("rates.alphas", [1.0, 0.5], 1, "greater than 0.5"),
        ("rates.mh", [1, 2, 0], 2, "greater than or equal to 1"),
        ("rates.ranks", [0], 0, "whole number from 1 to 64, or inf"),
        ("rates.ranks", [2, "2.5"], 1, "whole number from 1 to 64, or inf"),
        ("rates.ranks", [True], 0, "whole number from 1 to 64, or inf"),
        ("rates.ranks", [float("-inf")], 0, "whole number from 1 to 64, or inf"),
    ],
)
def test_a_bad_item_of_a_list_is_named_with_its_place(key, value, index, rule):
    message = refusal(with_value(key, value))
    assert f"{key}.{index} = {value[index]!r} is not allowed" in message and rule in message


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("rates.mh", [1, 64], ("rates.mh", "64", "rates.n", "65")),
        ("rates.queries", 17, ("rates.queries = 17", "rates.tau = 16")),
        ("rates.warmup", 1000, ("rates.warmup = 1000", "rates.steps = 1000")),
        ("rates.free_modes", 8, ("rates.free_modes = 8", "rates.mh")),
    ],
)
def test_a_rule_about_several_keys_names_them(key, value, named):
    message = refusal(with_value(key, value))
    assert all(name in message for name in named)


def test_unknown_and_missing_keys_are_named_each_on_its_line():
    content = with_value("rates.stepz", 5)
    del content["rates"]["tau"]
    content["mhh"] = 3
    lines = refusal(content).splitlines()
    assert len(lines) == 3
    assert "params.yaml: rates.stepz is not a known parameter" in lines
    assert "params.yaml: mhh is not a known parameter" in lines
    assert any(line.startswith("params.yaml: rates.tau is missing (sequence length") for line in lines)


@pytest.mark.parametrize(("text", "number"), [("1e-05", 1e-5), ("1e-4", 1e-4), ("0.002", 0.002)])
def test_numbers_that_yaml_takes_for_strings_are_numbers(text, number):
    value = config.check(Params, with_value("rates.paper_lr", text), "params.yaml").rates.paper_lr
    assert type(value) is float and value == number


@pytest.mark.parametrize("value", ["1e3", 1000.0, "1000"])
def test_a_whole_number_may_be_written_as_a_float(value):
    steps = config.check(Params, with_value("rates.steps", value), "params.yaml").rates.steps
    assert type(steps) is int and steps == 1000


def test_a_hand_written_exponent_survives_the_file(tmp_path):
    """PyYAML reads 1e-4 as a string."""
    assert yaml.safe_load("a: 1e-4") == {"a": "1e-4"}
    (tmp_path / "p.yaml").write_text("rates:\n  free_lr: 1e-4\n  ranks: [inf, .inf]\n")
    assert config.load("p.yaml", ["rates.free_lr"], {"rates": Rates}).rates.free_lr == 1e-4


@pytest.mark.parametrize("value", ["inf", float("inf")])
def test_infinite_rank_has_one_name(value):
    assert config.check(Params, with_value("rates.ranks", [2, value]), "params.yaml").rates.ranks == [2, "inf"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mh: 1\nrates: {}\nmh: 2\n", "key 'mh' stands twice"),
        ("rates:\n  tau: 1\n  tau: 1\n", "key 'tau' stands twice"),
        ("mh: [1\n", "not valid YAML"),
        ("a: !!python/object/apply:os.getcwd []\n", "not valid YAML"),
        ("- 1\n", "should be a mapping"),
        ("", "should be a mapping"),
    ],
)
def test_a_broken_file_is_told_in_one_line(tmp_path, text, says):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(UserError) as e:
        config.read("p.yaml")
    assert says in str(e.value) and str(e.value).startswith("p.yaml: ") and "\n" not in str(e.value)


def test_a_missing_file_is_told_in_one_line():
    with pytest.raises(UserError, match=r"^nowhere\.yaml: cannot be read"):
        config.read("nowhere.yaml")


def test_load_gives_the_declared_keys_and_no_others():
    cfg = config.load(ROOT / "params.yaml", ["threads", "rates.tau"], {"rates": Rates})
    assert (cfg.threads, cfg.rates.tau) == (BASE["threads"], BASE["rates"]["tau"])
    for owner, name in ((cfg, "mh"), (cfg.rates, "steps")):
        with pytest.raises(AttributeError):
            getattr(owner, name)


def test_load_minds_only_the_declared_keys(tmp_path):
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(with_value("rates.steps", 0)))
    assert config.load("p.yaml", ["rates.tau"], {"rates": Rates}).rates.tau == BASE["rates"]["tau"]
    with pytest.raises(UserError, match=r"rates\.steps = 0 is not allowed"):
        config.load("p.yaml", ["rates.tau", "rates.steps"], {"rates": Rates})


def test_load_names_a_missing_section(tmp_path):
    (tmp_path / "p.yaml").write_text("mh: 3\n")
    with pytest.raises(UserError, match="rates is missing"):
        config.load("p.yaml", ["mh", "rates.tau"], {"rates": Rates})


def test_a_configuration_cannot_be_changed():
    cfg = config.load(ROOT / "params.yaml", ["mh"], {})
    with pytest.raises(ValueError, match="frozen"):
        cfg.mh = 3


def fields(model: type[BaseModel], prefix: str = ""):
    """Every leaf of a schema, with its dotted key."""
    for name, field in model.model_fields.items():
        inner = [a for a in (field.annotation, *typing.get_args(field.annotation)) if isinstance(a, type)]
        nested = [a for a in inner if issubclass(a, BaseModel)]
        if nested:
            yield from (leaf for n in nested for leaf in fields(n, f"{prefix}{name}."))
        else:
            yield f"{prefix}{name}", field


@pytest.mark.parametrize(("key", "field"), [*fields(Params)])
def test_every_parameter_is_described_and_has_no_hidden_default(key, field):
    assert field.description and len(field.description) > 5
    assert field.is_required(), "a default would hide a key from params.yaml"


def test_the_schema_and_the_file_have_the_same_keys():
    assert set(profile.flatten(BASE)) == {key for key, _ in fields(Params)}


def test_params_yaml_is_valid():
    config.check(Params, BASE, "params.yaml")


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.stem)
def test_every_profile_is_valid_and_says_its_name(path):
    merged = config.check(Params, profile.overlay(BASE, config.read(path), path), path)
    assert merged.profile == path.stem
