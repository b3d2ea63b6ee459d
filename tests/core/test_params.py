"""The one reader of YAML: what is a number is a number, however `dvc exp run -S` has written it."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.core.params import Group
from tests.conftest import ROOT


def value(text):
    Path("p.yaml").write_text(f"x: {text}\n")
    return params.read("p.yaml").x


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-05", 1e-5),
        ("1e-5", 1e-5),
        ("2.5E-3", 0.0025),
        ("-.5e-2", -0.005),
        ("3.e-1", 0.3),
        ("1.0", 1.0),
        ("0.3", 0.3),
        ("1e3", 1000),
        ("1E+6", 1000000),
        ("1.5e3", 1500),
        ("12", 12),
        (".inf", "inf"),
        (".Inf", "inf"),
        ("inf", "inf"),
        ("1e3x", "1e3x"),
        ("e3", "e3"),
        ("1-2", "1-2"),
        ("'1e-5'", "1e-5"),
        ("null", None),
        ("true", True),
        ("[1, 1e2, 1e-2, .inf]", [1, 100, 0.01, "inf"]),
    ],
)
def test_scalars(text, expected):
    found = value(text)
    assert found == expected and type(found) is type(expected)


def test_every_float_comes_back_as_it_is_printed():
    """Python prints 1e-05, which YAML 1.1 takes for a word; ruamel, with which DVC writes, does likewise."""
    rng = np.random.default_rng(0)
    for x in (rng.choice([-1, 1], 300) * 10.0 ** rng.uniform(-30, 30, 300)).tolist():
        assert value(repr(x)) == x


def test_keys_are_attributes_at_every_depth_and_in_lists():
    Path("p.yaml").write_text("vit: {model: {width: 64}}\nruns: [{seed: 0}, {seed: 1}]\n")
    p = params.read("p.yaml")
    assert p.vit.model.width == p["vit"]["model"]["width"] == 64
    assert [run.seed for run in p.runs] == [0, 1] and dict(**p.vit.model) == {"width": 64}


def test_an_unknown_key_says_so_and_what_there_is():
    group = Group(width=64, depth=2)
    with pytest.raises(AttributeError, match=r"params\.yaml has no height among width, depth"):
        _ = group.height
    assert not hasattr(group, "height")


@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3", "x: {a: 1, a: 1}", "x: [{b: {a: 1, c: 2, 'a': 2}}]"])
def test_a_key_that_stands_twice_is_refused(text):
    Path("p.yaml").write_text(text)
    with pytest.raises(UserError, match=r"^p\.yaml: is not valid YAML: .*key 'a' stands twice.* line \d"):
        params.read("p.yaml")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: [1", "is not valid YAML"),
        (b"a: !!python/object/apply:os.getcwd []", "is not valid YAML"),
        (b"? [a]\n: 1", "is not valid YAML"),
        (b"a: &a\n  b: *c", "is not valid YAML"),
        (b"- a", "should be a mapping"),
        (b"", "should be a mapping"),
        (b"a: \xff", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_will_not_do_costs_one_line(content, says):
    if content is not None:
        Path("p.yaml").write_bytes(content)
    with pytest.raises(UserError, match=rf"^p\.yaml: {says}") as e:
        params.read("p.yaml")
    assert "\n" not in str(e.value)


def keys(group):
    for key, inner in group.items():
        yield key
        for part in inner if isinstance(inner, list) else [inner]:
            if isinstance(part, dict):
                yield from keys(part)


def test_no_parameter_is_hidden_by_a_method_of_its_group():
    files = [ROOT / "params.yaml", *(ROOT / "profiles").glob("*.yaml")]
    found = {key for file in files for key in keys(yaml.safe_load(file.read_text(encoding="utf-8")))}
    assert "width" in found and not found & set(dir(Group))
