"""Profiles become `-S key=value` options that DVC reads back as the same values."""

import json
from pathlib import Path

import pytest
from dvc.cli import DvcParserError, parse_args
from dvc.utils.hydra import apply_overrides

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import profile
from tests.conftest import ROOT


def run(*args: str) -> None:
    profile.main([*args, "--params", str(ROOT / "params.yaml"), "--profiles", str(ROOT / "profiles")])


@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "profiles").glob("*.yaml")))
def test_dvc_reads_the_options_back_as_the_overlay(name, tmp_path, capsys):
    """Through DVC's own parser, into the file, and out of our reader."""
    run(name)
    words = capsys.readouterr().out.split()
    assert words[::2] == ["-S"] * (len(words) // 2)
    copy = tmp_path / "params.yaml"
    copy.write_text((ROOT / "params.yaml").read_text())
    apply_overrides(copy, words[1::2])
    path = ROOT / "profiles" / f"{name}.yaml"
    assert params.read(copy) == profile.overlay(params.read(ROOT / "params.yaml"), params.read(path), path)


def test_an_overlay_changes_only_what_it_names():
    base = {"a": 1, "b": {"c": [1, 2], "d": 3}}
    assert profile.overlay(base, {"b": {"c": [9]}}, Path("p")) == {"a": 1, "b": {"c": [9], "d": 3}}
    assert base == {"a": 1, "b": {"c": [1, 2], "d": 3}}


@pytest.mark.parametrize(("top", "key"), [({"z": 1}, "z"), ({"b": {"z": 1}}, r"b\.z")])
def test_an_overlay_cannot_add_a_key(top, key):
    with pytest.raises(UserError, match=f"p: {key} is not a key of params.yaml"):
        profile.overlay({"a": 1, "b": {"c": 2}}, top, Path("p"))


def test_options_hold_no_spaces_and_booleans_and_null_are_yaml():
    words = profile.options({"a": {"flag": True, "list": [1, 2.5, "inf"], "none": None}, "b": "x"})
    assert words == ["-S", "a.flag=true", "-S", "a.list=[1,2.5,inf]", "-S", "a.none=null", "-S", "b=x"]


def test_an_unknown_profile_names_the_known_ones():
    with pytest.raises(SystemExit, match=r"nope\.yaml: no such profile \(known: .*paper.*smoke.*\)"):
        run("nope")


def test_a_bad_profile_is_refused_and_dvc_does_not_go_on_without_it(tmp_path, capsys):
    (tmp_path / "bad.yaml").write_text("mh: 0\n")
    with pytest.raises(SystemExit, match=r"bad\.yaml: mh = 0 is not allowed"):
        profile.main(["bad", "--params", str(ROOT / "params.yaml"), "--profiles", str(tmp_path)])
    with pytest.raises(DvcParserError):
        parse_args(["exp", "run", *capsys.readouterr().out.split(), "validate"])


def test_a_profile_lies_on_the_laptops_parameters_or_on_its_own(tmp_path, capsys):
    """What desk changes and paper does not would stay."""
    own, path = tmp_path / "params.yaml", ROOT / "profiles" / "desk.yaml"
    own.write_text(json.dumps(profile.overlay(params.read(ROOT / "params.yaml"), params.read(path), path)))
    profile.main(["desk", "--params", str(own), "--profiles", str(path.parent)])
    assert "profile=desk" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"params\.yaml has the profile desk, not laptop; `git checkout .*` first"):
        profile.main(["paper", "--params", str(own), "--profiles", str(path.parent)])


def test_a_branch_adds_its_stages(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    run("desk", "figure-1")
    *_, last = words = capsys.readouterr().out.split()
    assert {"rates_train", "fig1"} <= set(words) and "linear_train" not in words and last == "equivariance"
    with pytest.raises(SystemExit, match=r"figure-9 is no branch: .*tables-2-and-3"):
        run("desk", "figure-9")
