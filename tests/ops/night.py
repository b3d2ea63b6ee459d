"""A small pipeline of two branches that DVC ran on a laptop and then at desk scale."""

import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import yaml
from dvc.repo import Repo

SCRIPT = Path(__file__).with_name("night_stage.py").read_text(encoding="utf-8")
ALONE = {"DVC_GLOBAL_CONFIG_DIR": "/nowhere", "DVC_NO_ANALYTICS": "1"}  # without the user's settings
PYTHON = f"{sys.executable} stages/work.py"
GIT = {"cache": False}


def stage(name: str, branch: str, deps: list, outs: list, params: list = (), **more) -> dict:
    own = {"cmd": f"{PYTHON} {name}", "deps": [*deps, "stages/work.py"], "outs": outs, "meta": {"branch": branch}}
    return own | ({"params": list(params)} if params else {}) | more


STAGES = {
    "validate": stage("validate", "report", ["params.yaml"], [{"reports/params.ok": GIT | {"persist": True}}]),
    "examples_train": stage(
        "examples_train/${item.task}",
        "Appendix B",
        ["reports/params.ok", "src/lib"],
        [{"reports/results/examples_train/${item.task}": GIT}, "data/examples_train/${item.task}"],
        ["examples", "threads"],
        matrix={"task": ["mass", "nearest"]},
    ),
    "examples_table": stage(
        "examples_table",
        "Appendix B",
        ["reports/results/examples_train"],
        [{"reports/results/examples_table": GIT}],
        ["examples"],
    ),
    "fig_examples": stage(
        "fig_examples",
        "Appendix B",
        ["reports/results/examples_table"],
        [{"reports/figures/fig4.svg": GIT}, {"reports/figures/fig4.png": GIT}],
        ["profile"],
    ),
    "beyond_heads": stage(
        "beyond_heads", "Beyond", ["reports/params.ok"], [{"reports/results/beyond_heads": GIT}], ["beyond"]
    ),
    "table1": stage(
        "table1",
        "report",
        ["reports/results/examples_table", "reports/results/beyond_heads"],
        [{"reports/tables/table1.csv": GIT}],
        ["profile"],
    ),
    "plots": stage("plots", "report", ["reports/results"], [{"reports/plots": GIT}]),
    "claims": stage(
        "claims",
        "report",
        ["reports/results"],
        [{"reports/claims.json": GIT}, {"reports/metrics/summary.json": GIT}],
        ["profile"],
    ),
}
PARAMS = {"profile": "laptop", "threads": 2, "examples": {"steps": 1, "seeds": [0]}, "beyond": {"steps": 5}}
FILES = {
    "dvc.yaml": yaml.safe_dump({"stages": STAGES, "metrics": ["reports/metrics/summary.json"]}, sort_keys=False),
    "params.yaml": yaml.safe_dump(PARAMS, sort_keys=False),
    "profiles/desk.yaml": "profile: desk\nexamples: {steps: 9}\n",
    "stages/work.py": SCRIPT,
    "src/lib/code.py": "x = 1\n",
    ".gitignore": "/data/*\n.scratch/\n.runs.jsonl\n",
    "reports/published/state.json": '{"changed": {}, "costs": {}}',
}


def run(*command: str) -> str:
    return subprocess.run(command, env=os.environ | ALONE, check=True, capture_output=True, text=True).stdout


def repro(*targets: str, single_item: bool = False) -> None:
    """`dvc repro`, in this process."""
    with mock.patch.dict(os.environ, ALONE), Repo() as repo:
        repo.reproduce(list(targets) or None, single_item=single_item)


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


def make(folder: Path) -> Path:
    """A committed laptop run, then a run of the desk profile."""
    here = Path.cwd()
    os.chdir(folder)
    for name, text in FILES.items():
        write(name, text)
    run("git", "init", "--quiet")
    run("git", "config", "user.name", "Test")
    run("git", "config", "user.email", "test@example.org")
    run(sys.executable, "-m", "dvc", "init", "--quiet")
    repro()
    for path in Path("data").rglob(".gitignore"):
        path.unlink()
    run("git", "add", "--all")
    run("git", "commit", "--quiet", "--message", "laptop")
    write("params.yaml", yaml.safe_dump(PARAMS | {"profile": "desk", "examples": {"steps": 9, "seeds": [0]}}))
    repro()
    os.chdir(here)
    return folder
