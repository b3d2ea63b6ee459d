"""python -m tests.cluster_equals_repro: the whole smoke DAG by `dvc repro` and over two workers, byte for byte.

Prints the seconds of both. Not a test of `make test`: it runs the DAG twice.
"""

import sys
import tempfile
import time
from pathlib import Path

import yaml

from attnrate.core import config
from attnrate.profile import overlay
from tests import pipeline
from tests.conftest import Workspace, copy_repository


def smoke(path: Path) -> Workspace:
    """A copy of the tree with the smoke profile, whose stages and modules are those of the copy."""
    space = copy_repository(path)
    profile = path / "profiles" / "smoke.yaml"
    params = overlay(config.read(path / "params.yaml"), config.read(profile), profile)
    (path / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    space.env["PYTHONPATH"] = str(path / "src")
    return space


def outs(space: Workspace, stages: set[str] | None = None) -> dict[str, bytes]:
    """Every file of the outs, and what dvc.lock says of the stages."""
    wanted = [s for s in pipeline.stages(space.path) if stages is None or s.name in stages]
    paths = [space.path / out for s in wanted for out in s.outs]
    files = [f for p in paths for f in ([p] if p.is_file() else p.rglob("*")) if f.is_file()]
    lock = yaml.safe_load((space.path / "dvc.lock").read_text())["stages"]
    found = {str(f.relative_to(space.path)): f.read_bytes() for f in files}
    return found | {f"dvc.lock {s.name}": repr(lock[s.name]).encode() for s in wanted}


def main() -> None:
    commands = {"dvc repro": ["dvc", "repro"], "cluster": ["python", "-m", "attnrate.cluster", "--workers", "2"]}
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for name, command in commands.items():
            space, start = smoke(Path(folder) / name.replace(" ", "-")), time.perf_counter()
            space.ok(*command)
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
            results.append(outs(space))
            assert "Running stage" not in space.ok("dvc", "repro")
    one, two = results
    different = sorted(k for k in one.keys() | two.keys() if one.get(k) != two.get(k))
    if different:
        sys.exit(f"{len(different)} of {len(one)} differ: {', '.join(different)}")
    print(f"{len(one)} files and entries of dvc.lock are the same bytes")


if __name__ == "__main__":
    main()
