"""What `pip install attnrate` brings is enough for the tool; what an extra brings is imported where it is needed."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import pipeline
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
MODULES = {"pillow": "PIL", "pyyaml": "yaml", "markdown-it-py": "markdown_it", "distributed": "distributed dask"}
OPTIONAL = {"timm", "torchvision", "transformers"}  # whose models are measured where they are installed
BROUGHT = {"networkx", "huggingface_hub", "dvc_data", "dask_cuda"}  # by torch, timm, dvc; only where it is installed


def modules(requirements: list[str]) -> set[str]:
    names = [re.match(r"[\w.-]+", r)[0] for r in requirements if not r.startswith("attnrate[")]
    return {module for name in names for module in MODULES.get(name, name).split()}


def imported(file: Path, everywhere: bool) -> set[str]:
    """Other people's modules that a file imports: when it is imported itself, or in its functions too."""
    body = pipeline.parse(file).body
    nodes = [n for part in body for n in (ast.walk(part) if everywhere else [part])]
    names = [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
    names += [n.module for n in nodes if isinstance(n, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"attnrate", "launcher"}


def tool() -> list[Path]:
    """The files behind the commands of the tool: all that cli.py imports but `trace`, which is the pipeline's."""
    cli = ROOT / "src/attnrate/cli.py"
    starts = [f for f in pipeline.neighbours(ROOT, cli) if f.parent.name != "ops"]
    found = {name for start in starts for name in pipeline.closure(ROOT, start.relative_to(ROOT).as_posix())}
    return [cli, *(ROOT / name for name in sorted(found) if name.endswith(".py"))]


def test_the_tool_needs_only_what_is_always_installed():
    base = modules(PROJECT["dependencies"])
    assert len(tool()) > 8
    for file in tool():
        assert imported(file, everywhere=False) <= base, file
        assert imported(file, everywhere=True) <= base | OPTIONAL, file


def test_whatever_is_imported_is_declared():
    declared = modules([*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]) | BROUGHT
    for file in [*(ROOT / "src").rglob("*.py"), *(ROOT / "stages").glob("*.py")]:
        assert imported(file, everywhere=True) <= declared, file


def test_everything_is_in_the_lock_and_the_tests_have_every_extra():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    named = [r for extra in EXTRAS.values() for r in extra] + PROJECT["dependencies"]
    wanted = {re.match(r"[\w.-]+", r)[0].replace(".", "-") for r in named} - {"attnrate"}
    assert wanted <= set(re.findall(r"^([\w-]+)==", text, re.MULTILINE))
    reached, queue = set(), ["dev"]
    while queue:
        name = queue.pop()
        reached.add(name)
        queue += [e for r in EXTRAS[name] if r.startswith("attnrate[") for e in r[9:-1].split(",") if e not in reached]
    assert reached == set(EXTRAS)


@pytest.mark.parametrize("missing", ["dvc", "transformers"])
def test_without_an_extra_the_command_starts_and_says_which_one_it_needs(missing, tmp_path):
    hide = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv[0] = 'attnrate'; from attnrate.cli import main; main()"
    )
    command = [sys.executable, "-c", hide, *(["trace", "x"] if missing == "dvc" else ["--help"])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    if missing == "dvc":
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and "attnrate[pipeline]" in done.stderr
    else:
        assert done.returncode == 0 and "spectrum" in done.stdout
