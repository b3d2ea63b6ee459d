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
SCRIPT = "stages/linear_train.py"  # of those that begin with the launcher, as all do (test_dvc_yaml.py)


@pytest.fixture(autouse=True)
def clean(workspace):
    yield
    workspace.restore()


def refused(workspace, code: int, output: str, *says: str) -> None:
    """A refusal: not a success, a line for each reason, no traceback, and nothing lost."""
    assert code != 0 and "Traceback" not in output
    lines = output.splitlines()
    assert [s for s in says if not any(s in line for line in lines)] == [], output
    ran = set(re.findall(r"Running stage '([^']+)'", output))
    assert ran <= {"validate"}
    workspace.ok("git", "checkout", "--quiet", "params.yaml")
    assert workspace.changes() == ""


def test_bad_parameters_stop_before_anything_is_lost(workspace):
    """All are told at once. A head size is refused before it becomes a stage."""
    rules = {
        "rates.recipes.paper.steps=0": "rates.recipes.paper.steps = 0 is not allowed: should be greater than",
        "linear.mixing.mh=-3": "linear.mixing.mh = -3 is not allowed: should be greater than",
        "mh=two": "mh = 'two' is not allowed: should be a valid integer",
        "vit.main.mh=1.5": "vit.main.mh = 1.5 is not allowed: should be a valid integer",
        "vit.grid.models=[qk-0,qk-1]": "vit.grid.models.0 = 'qk-0' is not allowed",
    }
    code, output = workspace.dvc("exp", "run", *(word for option in rules for word in ("-S", option)))
    refused(workspace, code, output, *(f"params.yaml: {rule}" for rule in rules.values()))


def test_an_unknown_parameter_is_refused_by_dvc_itself(workspace):
    code, output = workspace.dvc("exp", "run", "-S", "rates.train.stepz=5")
    refused(workspace, code, output, "Could not override 'rates.train.stepz'")


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (
            "    tauu: 16.0\n",
            ["rates.target.tau is missing (sequence length", "rates.target.tauu is not a known parameter"],
        ),
        ("    tau: 16.0\n", ["rates.target.tau = 16.0 is not allowed"]),
        ("    tau: 16\n    tau: 8\n", ['found duplicate key "tau"']),
        ("    tau: [16\n", ["params.yaml"]),
    ],
    ids=["another name", "float", "twice", "broken"],
)
def test_a_slip_in_params_yaml_is_named(workspace, new, says):
    workspace.edit("params.yaml", "    tau: 16\n", new)
    code, output = workspace.dvc("repro")
    refused(workspace, code, output, *says)


def bare(workspace, script: str, *args: str):
    """Run a script by the same interpreter without any installed package."""
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return workspace.run(str(python), "-S", "-E", "-s", script, *args)


def test_a_stage_without_the_environment_says_how_to_get_it(workspace):
    code, output = bare(workspace, SCRIPT)
    (line,) = output.splitlines()
    assert code == 1 and "environment is missing" in line and "`make env`" in line


def test_a_stage_finds_the_environment_that_is_not_active(workspace):
    """With .venv in place the stage goes on in it, with the same arguments."""
    python = workspace.path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nprintf "in the environment: %s\\n" "$@"\n')
    python.chmod(0o755)
    try:
        code, output = bare(workspace, SCRIPT, "an item")
        words = [word for line in output.splitlines() for word in line.split("in the environment: ")[1:]]
        assert code == 0 and words == [SCRIPT, "an item"], output
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
    code, output = workspace.run("python", SCRIPT)
    (line,) = output.splitlines()
    assert code == 1 and line.endswith(f"usage: python {SCRIPT} RECIPE")


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
