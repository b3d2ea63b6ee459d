"""`make twice`: the smoke profile twice from nothing, side by side, in two folders; every byte of every out must agree.

The first run is `dvc repro`. The second is `python -m attnrate.ops.cluster`, with another time zone, another locale and
a longer path, and with hash seeds that Python draws for each stage.
"""

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from tests import pipeline
from tests.conftest import Workspace
from tests.pipeline import covers
from tests.robustness.undisturbed import remove_outs, smoke, snapshot

CLUSTER = ("python", "-m", "attnrate.ops.cluster")
RUNS = {  # folder: command, and what it prints of each stage that it runs; environment
    "first": ((("dvc", "repro"), "Running stage"), {"PYTHONHASHSEED": "1", "TZ": "UTC0", "LC_ALL": "C.UTF-8"}),
    "the-second-of-two-runs-in-a-folder-with-a-longer-name": (
        ((*CLUSTER, "--workers", "1"), ": done in"),
        {"TZ": "ABC-5:45", "LC_ALL": "C"},
    ),
}


def outs(root: Path) -> list[str]:
    return [out for stage in pipeline.stages(root) for out in stage.outs]


def build(folder: Path, command: tuple[tuple[str, ...], str], surroundings: dict[str, str]) -> Workspace:
    """All stages of the smoke profile, with no out, no lock and no cache to start from."""
    space = smoke(folder, {})
    for stage in pipeline.stages(folder):
        remove_outs(folder, stage)
    words, says = command
    output = space.ok(*words, env=surroundings, timeout=1200)
    assert output.count(says) == len(pipeline.stages(folder)), output
    assert "Running stage" not in space.ok("dvc", "repro")
    return space


def locked(root: Path) -> dict[str, str]:
    """The hash of every out, as DVC has it."""
    stages = yaml.safe_load((root / "dvc.lock").read_text())["stages"]
    return {out["path"]: out["md5"] for stage in stages.values() for out in stage["outs"]}


def main() -> int:
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="twice-") as name:
        folders = [Path(name, folder) for folder in RUNS]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(build, folders, *zip(*RUNS.values(), strict=True)))
        names = outs(folders[0])
        first, second = ({f: h for f, h in snapshot(r).items() if any(covers(o, f) for o in names)} for r in folders)
        size = sum((folders[0] / f).stat().st_size for f in first)
        hashes = [locked(folder) for folder in folders]
    differ = [f for f in sorted(first.keys() | second.keys()) if first.get(f) != second.get(f)]
    differ += [f"{o} in dvc.lock" for o in names if hashes[0][o] != hashes[1][o]]
    for file in differ:
        print(f"differs: {file}")
    print(
        f"{len(names)} outs, {len(first)} files, {size:,} bytes compared; {len(differ)} differ; "
        f"{time.perf_counter() - begin:.0f} s"
    )
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
