"""The order of the tests, what they have to say at the end, and `workspace`, a copy in which the pipeline may run."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

SHARED = "PYTEST_XDIST_WORKER" in os.environ  # one of several processes that share the tests
if SHARED:
    os.environ |= {"OMP_NUM_THREADS": "1", "ATTNRATE_CORES": "1"}  # each has one core

ROOT = Path(__file__).resolve().parent.parent
NOWHERE = "http://127.0.0.1:9"  # the discard port: whatever wants the network fails at once


NOTES: list[str] = []  # counts that the tests leave, such as how much they refused


def pytest_collection_modifyitems(items):
    """Fast tests first; where processes share the tests, slow ones, so that fast ones fill the gaps at the end."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is not None) is not SHARED)


def pytest_sessionfinish(session):
    if SHARED:
        session.config.workeroutput["notes"] = NOTES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    NOTES.extend(getattr(node, "workeroutput", {}).get("notes", []))


def pytest_terminal_summary(terminalreporter):
    for note in sorted(NOTES):
        terminalreporter.write_line(note)


@dataclass(frozen=True)
class Workspace:
    """A committed copy of the working tree with an empty cache, cut off from the network and the user's settings."""

    path: Path
    env: dict[str, str]

    def run(self, *command: str, env: dict[str, str] | None = None, timeout: float = 600) -> tuple[int, str]:
        """Exit code and output (both streams) of a command run here."""
        done = subprocess.run(
            command,
            cwd=self.path,
            env=self.env | (env or {}),
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.returncode, done.stdout

    def ok(self, *command: str, **options) -> str:
        code, output = self.run(*command, **options)
        assert code == 0, f"{' '.join(command)} exited with {code}:\n{output}"
        return output

    def dvc(self, *args: str) -> tuple[int, str]:
        return self.run("dvc", *args)

    def planned(self) -> tuple[set[str], set[str]]:
        """The stages that `dvc repro` would run, and those behind them that it cannot judge beforehand.

        Where data are missing, as in a clone without cache, DVC fails at a stage that it would run.
        """
        _, output = self.run("dvc", "repro", "--dry", "--allow-missing", "--keep-going")
        assert "Traceback" not in output and re.search("Running stage|failed to reproduce|up to date", output), output
        failed = "".join(re.findall(r"failed to reproduce (.*)", output))
        behind = "".join(re.findall(r"Stages? (.*) will be skipped due to this failure", output))
        found = {*re.findall(r"Running stage '([^']+)'", output), *re.findall(r"'([^']+)'", failed)}
        return found, set(re.findall(r"'([^']+)'", behind))

    def changes(self) -> str:
        """What `git status` has to say; nothing when the tree is as committed."""
        return self.ok("git", "status", "--porcelain")

    def restore(self) -> None:
        self.ok("git", "reset", "--quiet", "--hard")
        self.ok("git", "clean", "--quiet", "-fd")

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.path / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{file} does not hold {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def params(self) -> dict[str, Any]:
        return yaml.safe_load((self.path / "params.yaml").read_text(encoding="utf-8"))

    def set(self, key: str, value: Any) -> None:
        """As `-S key=value` does to params.yaml, but for its comments."""
        content = self.params()
        *groups, last = key.split(".")
        owner = content
        for group in groups:
            owner = owner[group]
        assert owner[last] != value, f"{key} is {value} already"
        owner[last] = value
        (self.path / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def copy_repository(path: Path) -> Workspace:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        source = ROOT / name
        if source.is_file():  # a tracked file may have been deleted
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, path / name)

    # Under a git hook GIT_DIR would send git to the wrong repository.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "DVC_"))}
    env |= {name: NOWHERE for p in ("http", "https", "all") for name in (f"{p}_proxy", f"{p}_proxy".upper())}
    env |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}",
        "NO_PROXY": "",
        "no_proxy": "",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "DVC_GLOBAL_CONFIG_DIR": f"{path}.dvc/global",
        "DVC_SYSTEM_CONFIG_DIR": f"{path}.dvc/system",
        "DVC_SITE_CACHE_DIR": f"{path}.dvc/site",
    }
    space = Workspace(path, env)
    space.ok("git", "init", "--quiet", "--initial-branch", "main")
    space.ok("git", "config", "user.name", "Test")
    space.ok("git", "config", "user.email", "test@example.org")
    space.ok("git", "add", "--all")
    space.ok("git", "commit", "--quiet", "--message", "Copy of the working tree")
    return space


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    return copy_repository(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(autouse=True)
def in_scratch(request, tmp_path, monkeypatch):
    """Fast tests run in an empty folder: the library writes .scratch/ where it stands."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.chdir(tmp_path)
