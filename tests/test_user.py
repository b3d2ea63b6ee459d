"""What a user meets: edits that rerun what they must, and mistakes that cost nothing but a line."""

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
SCRIPTS = {s.script: s for s in STAGES.values()}  # one stage for each script


@pytest.fixture(autouse=True)
def clean(workspace):
    yield
    workspace.restore()


@pytest.fixture(scope="module")
def planned(workspace):
    """The stages that the committed lock leaves to run; none in a released tree."""
    return workspace.planned()


def test_a_colour_concerns_the_figure_alone(workspace, planned):
    workspace.edit("src/attnrate/report/fig_rates.py", '"C0"', '"C5"')
    assert workspace.planned() - planned == {"fig1"} - planned


def test_seeds_concern_what_is_random(workspace, planned):
    text = (workspace.path / "params.yaml").read_text()
    new = re.sub(r"(\n  seeds:.*\n)((?:    - \d+\n)+)", r"\1\2    - 77\n", text)
    assert new != text
    (workspace.path / "params.yaml").write_text(new)
    now = workspace.planned()
    assert {"rates_train@paper", "rates_train@trained", "rates_free_kernel"} <= now
    assert not (now - planned) & {"pod_targets", "rates_pod", "rates_constructive", "mixing_rank", "equivariance"}


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
        ("rates.steps=0", "0", "should be greater than or equal to 1"),
        ("mh=0", "0", "should be greater than or equal to 1"),
        ("mh=-3", "-3", "should be greater than or equal to 1"),
        ("mh=two", "'two'", "should be a valid integer"),
        ("mh=1.5", "1.5", "should be a valid integer"),
    ],
)
def test_a_bad_parameter_stops_before_anything_is_lost(workspace, option, value, rule):
    code, output = workspace.dvc("exp", "run", "-S", option)
    refused(workspace, code, output, "params.yaml", f"{option.split('=')[0]} = {value} is not allowed", rule)


def test_an_unknown_parameter_is_refused_by_dvc_itself(workspace):
    code, output = workspace.dvc("exp", "run", "-S", "rates.stepz=5")
    refused(workspace, code, output, "Could not override 'rates.stepz'")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  tau: 16\n", "", "rates.tau is missing (sequence length"),
        ("  tau: 16\n", "  tau: 16\n  tauu: 16\n", "rates.tauu is not a known parameter"),
        ("  tau: 16\n", "  tau: 16\n  tau: 8\n", 'found duplicate key "tau"'),
        ("  tau: 16\n", "  tau: [16\n", "params.yaml"),
    ],
    ids=["missing", "unknown", "twice", "broken"],
)
def test_a_slip_in_params_yaml_is_named(workspace, old, new, says):
    workspace.edit("params.yaml", old, new)
    code, output = workspace.dvc("repro")
    refused(workspace, code, output, says)


def bare(workspace, script: str, *args: str):
    """Run a script by the same interpreter without any installed package."""
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return workspace.run(str(python), "-S", "-E", "-s", script, *args)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_stage_without_the_environment_says_how_to_get_it(workspace, script):
    code, output = bare(workspace, script)
    assert code == 1
    assert output == "attnrate's environment is missing: run `make env`, then `source .venv/bin/activate`\n"


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_stage_finds_the_environment_that_is_not_active(workspace, script):
    """With .venv in place the stage goes on in it, with the same arguments."""
    python = workspace.path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "in the environment: $@"\n')
    python.chmod(0o755)
    try:
        assert bare(workspace, script, "--out", "x") == (0, f"in the environment: {script} --out x\n")
    finally:
        shutil.rmtree(workspace.path / ".venv")


@pytest.mark.parametrize("name", ["rates_table", "claims", "summary"])
def test_a_missing_input_is_named_with_its_remedy(workspace, name):
    stage = STAGES[name]
    first = pipeline.declared(ROOT, stage.script)["inputs"][0]
    path = workspace.path / stage.flags[first]
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    words = stage.cmd.split()
    code, output = workspace.run(*words, env={"DVC_STAGE": name})
    assert code == 1
    assert (
        output == f"{name}: {stage.flags[first]} is missing; `dvc repro {name}` makes it, `dvc checkout` restores it\n"
    )


def test_a_stage_runs_the_library_of_its_own_tree(workspace):
    """An experiment in a copy of the repository must not run the code of the installed one."""
    workspace.edit("src/attnrate/analysis/mixing_rank.py", "EXACT = {", 'EXACT = {\n    "copy": [1.0],')
    stage = STAGES["mixing_rank"]
    workspace.ok(*stage.cmd.split())
    assert '"copy"' in (workspace.path / stage.flags["out"]).read_text()


def test_the_workspace_is_cut_off(workspace):
    """Otherwise the tests above would prove less than they say."""
    assert not (workspace.path / ".venv").exists() and not (workspace.path / ".dvc" / "cache").exists()
    probe = "import urllib.request as u; u.urlopen('http://example.org', timeout=5)"
    code, output = workspace.run("python", "-c", probe)
    assert code != 0 and "refused" in output
    assert Path(workspace.ok("git", "rev-parse", "--show-toplevel").strip()) == Path(os.path.realpath(workspace.path))
