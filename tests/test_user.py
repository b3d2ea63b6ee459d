"""What a user meets: mistakes that cost nothing but a line."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests import pipeline
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

STAGES = {s.name: s for s in pipeline.stages(ROOT)}
SCRIPTS = sorted({s.script for s in STAGES.values()})


@pytest.fixture(autouse=True)
def clean(workspace):
    yield
    workspace.restore()


def refused(workspace, code: int, output: str, *words: str) -> None:
    """A refusal: not a success, the words in one line, no traceback, and nothing lost."""
    assert code != 0 and "Traceback" not in output
    assert [line for line in output.splitlines() if all(w in line for w in words)], output
    ran = set(re.findall(r"Running stage '([^']+)'", output))
    assert ran <= {"validate"}
    workspace.ok("git", "checkout", "--quiet", "params.yaml")
    assert workspace.changes() == ""


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("rates.recipes.paper.steps=0", "0", "greater than or equal to 1"),
        ("mh=-3", "-3", "greater than or equal to 1"),
        ("mh=two", "'two'", "valid integer"),
        ("mh=1.5", "1.5", "valid integer"),
    ],
)
def test_a_bad_parameter_stops_before_anything_is_lost(workspace, option, value, rule):
    code, output = workspace.dvc("exp", "run", "-S", option)
    refused(workspace, code, output, "params.yaml", f"{option.split('=')[0]} = {value} is not allowed", rule)


def test_a_head_size_that_would_become_a_stage_is_refused_first(workspace):
    code, output = workspace.dvc("exp", "run", "-S", "vit.grid.models=[qk-0,qk-1]")
    refused(workspace, code, output, "vit.grid.models.0 = 'qk-0' is not allowed")


def test_an_unknown_parameter_is_refused_by_dvc_itself(workspace):
    code, output = workspace.dvc("exp", "run", "-S", "rates.train.stepz=5")
    refused(workspace, code, output, "Could not override 'rates.train.stepz'")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    tau: 16\n", "", "rates.target.tau is missing (sequence length"),
        ("    tau: 16\n", "    tau: 16\n    tauu: 16\n", "rates.target.tauu is not a known parameter"),
        ("    tau: 16\n", "    tau: 16.0\n", "rates.target.tau = 16.0 is not allowed"),
        ("    tau: 16\n", "    tau: 16\n    tau: 8\n", 'found duplicate key "tau"'),
        ("    tau: 16\n", "    tau: [16\n", "params.yaml"),
    ],
    ids=["missing", "unknown", "float", "twice", "broken"],
)
def test_a_slip_in_params_yaml_is_named(workspace, old, new, says):
    workspace.edit("params.yaml", old, new)
    code, output = workspace.dvc("repro")
    refused(workspace, code, output, says)


def bare(workspace, script: str, *args: str):
    """Run a script by the same interpreter without any installed package."""
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return workspace.run(str(python), "-S", "-E", "-s", script, *args)


def test_a_stage_without_the_environment_says_how_to_get_it(workspace):
    for script in SCRIPTS:
        code, output = bare(workspace, script)
        (line,) = output.splitlines()
        assert code == 1 and "environment is missing" in line and "`make env`" in line, script


def test_a_stage_finds_the_environment_that_is_not_active(workspace):
    """With .venv in place the stage goes on in it, with the same arguments."""
    python = workspace.path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "in the environment: $@"\n')
    python.chmod(0o755)
    try:
        for script in SCRIPTS:
            assert bare(workspace, script, "an item") == (0, f"in the environment: {script} an item\n")
    finally:
        shutil.rmtree(workspace.path / ".venv")


def run(workspace, name: str) -> tuple[int, str]:
    return workspace.run(*STAGES[name].cmd.split(), env={"DVC_STAGE": name})


@pytest.mark.parametrize(
    ("name", "part"), [("rates_table", "rates_constructive"), ("plots", "rates_table"), ("claims", "equivariance")]
)
def test_a_missing_input_is_named_with_its_remedy(workspace, name, part):
    gone = f"reports/results/{part}"
    shutil.rmtree(workspace.path / gone)
    before = workspace.changes()
    code, output = run(workspace, name)
    (line,) = output.splitlines()
    assert code == 1 and line.startswith(f"{name}: {gone}/")
    assert "is missing" in line and f"`dvc repro {name}`" in line and "`dvc checkout`" in line
    assert workspace.changes() == before


def test_a_stage_without_its_item_says_how_it_is_called(workspace):
    code, output = workspace.run("python", "stages/vit_sweep.py")
    (line,) = output.splitlines()
    assert code == 1 and line.endswith("usage: python stages/vit_sweep.py NAME")


def test_a_stage_runs_the_library_of_its_own_tree(workspace):
    """An experiment in a copy of the repository must not run the code of the installed one."""
    workspace.edit("src/attnrate/linear/mixing_rank.py", "EXACT = {", 'EXACT = {\n    "copy": [1.0],')
    code, output = run(workspace, "mixing_rank")
    assert code == 0, output
    assert '"copy"' in (workspace.path / "reports/results/mixing_rank/values.json").read_text()


def test_the_workspace_is_cut_off(workspace):
    """Otherwise the tests above would prove less than they say."""
    assert not (workspace.path / ".venv").exists() and not (workspace.path / ".dvc" / "cache").exists()
    probe = "import urllib.request as u; u.urlopen('http://example.org', timeout=5)"
    code, output = workspace.run("python", "-c", probe)
    assert code != 0 and "refused" in output
    assert Path(workspace.ok("git", "rev-parse", "--show-toplevel").strip()) == Path(os.path.realpath(workspace.path))
