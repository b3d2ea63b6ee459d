"""A copy of the repository in which the smoke profile has run undisturbed: what every later run must agree with."""

import hashlib
import os
import shlex
import shutil
import subprocess
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

import yaml

from attnrate.core import params
from attnrate.ops.profile import overlay
from tests import pipeline
from tests.conftest import Workspace, copy_repository
from tests.pipeline import Stage, covers

ANY_RUN_WRITES = {".git", ".dvc", ".scratch", ".runs.jsonl", "__pycache__"}


def smoke(path: Path, changes: dict) -> Workspace:
    """A committed copy of the repository whose params.yaml has the smoke profile, then the changes; nothing has run."""
    space = copy_repository(path)
    (path / "dvc.lock").unlink(missing_ok=True)  # of another profile; DVC would read and write all of it for each stage
    content, profile = (params.read(path / f) for f in ("params.yaml", "profiles/smoke.yaml"))
    content = overlay(overlay(content, profile, Path("profiles/smoke.yaml")), changes, Path("the changes"))
    (path / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    space.env["PYTHONPATH"] = str(path / "src")  # for `python -m attnrate`; stages find their own
    return space


def snapshot(root: Path) -> dict[str, str]:
    """sha256 of every file but those that any run may write."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in ANY_RUN_WRITES]
        for name in (n for n in names if n not in ANY_RUN_WRITES):
            path = Path(folder, name)
            found[path.relative_to(root).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def remove_outs(root: Path, stage: Stage) -> None:
    """As DVC does before a run."""
    for out in (o for o, options in stage.outs.items() if not options.get("persist")):
        path = root / out
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def start(space: Workspace, stage: Stage, output, **options) -> subprocess.Popen:
    """The command of a stage, in a process group of its own."""
    return subprocess.Popen(
        shlex.split(stage.cmd),
        cwd=space.path,
        env=space.env | {"DVC_STAGE": stage.name},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        **options,
    )


def run(space: Workspace, stage: Stage, **options) -> tuple[int, str]:
    """Exit code and output of a stage that starts without its outs and ends by itself."""
    remove_outs(space.path, stage)
    process = start(space, stage, subprocess.PIPE, text=True, **options)
    output, _ = process.communicate(timeout=300)
    return process.returncode, output


def graph(stages: list[Stage]) -> dict[str, set[str]]:
    """The stages that each stage needs."""
    return {
        s.name: {o.name for o in stages if o is not s and any(covers(d, out) for out in o.outs for d in s.deps)}
        for s in stages
    }


def needed(names: set[str], needs: dict[str, set[str]]) -> set[str]:
    """The stages and all that they need."""
    return names.union(*(needed(needs[name], needs) for name in names))


def run_all(space: Workspace, stages: list[Stage]) -> dict[str, float]:
    """Every stage after those it needs, two at a time; the seconds of each."""
    by_name, seconds = {s.name: s for s in stages}, {}
    sorter = TopologicalSorter(graph(stages))
    sorter.prepare()

    def one(name: str) -> str:
        begin = time.perf_counter()
        code, output = run(space, by_name[name])
        assert code == 0, f"{name} fails without any kill, exit code {code}:\n{output}"
        seconds[name] = time.perf_counter() - begin
        return name

    with ThreadPoolExecutor(2) as pool:
        waiting = set()
        while sorter.is_active():
            waiting |= {pool.submit(one, name) for name in sorter.get_ready()}
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            sorter.done(*(f.result() for f in done))
    return seconds


@dataclass
class Reference:
    """The undisturbed run of some stages and all that they need."""

    space: Workspace
    names: list[str]
    stages: dict[str, Stage] = field(init=False)
    seconds: dict[str, float] = field(init=False)
    files: dict[str, str] = field(init=False)

    def __post_init__(self):
        self.stages = {s.name: s for s in pipeline.stages(self.space.path)}
        wanted = needed(set(self.names), graph(list(self.stages.values())))
        self.seconds = run_all(self.space, [self.stages[name] for name in self.stages if name in wanted])
        self.files = snapshot(self.space.path)

    def size(self, stage: Stage) -> int:
        """Bytes of the outs of a stage."""
        found = [f for f in self.files if any(covers(out, f) for out in stage.outs)]
        return sum((self.space.path / f).stat().st_size for f in found)

    def copy(self, to: Path) -> Workspace:
        shutil.copytree(self.space.path, to)
        return Workspace(to, self.space.env)

    def differences(self, root: Path, killed: Stage | None = None) -> list[str]:
        """Files that are not those of the reference; an out of a killed stage may be absent, but only as a whole."""
        files = snapshot(root)
        found = [f"{f} is new" for f in files if f not in self.files]
        found += [f"{f} differs" for f in files if f in self.files and files[f] != self.files[f]]
        gone = [out for out in (killed.outs if killed else ()) if not (root / out).exists()]
        absent = [f for f in self.files if f not in files and not any(covers(out, f) for out in gone)]
        return found + [f"{f} is missing" for f in absent]
