"""`make twice`: the smoke profile twice from nothing, side by side, in two folders; every byte of every out must agree.

The second run has another hash seed, another time zone, another locale and a longer path.
"""

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from tests import pipeline
from tests.conftest import Workspace
from tests.undisturbed import covers, remove_outs, smoke, snapshot

SURROUNDINGS = {
    "first": {"PYTHONHASHSEED": "1", "TZ": "UTC0", "LC_ALL": "C.UTF-8"},
    "the-second-of-two-runs-in-a-folder-with-a-longer-name": {"PYTHONHASHSEED": "2", "TZ": "ABC-5:45", "LC_ALL": "C"},
}


def outs(root: Path) -> list[str]:
    return [out for stage in pipeline.stages(root) for out in stage.outs]


def repro(folder: Path, surroundings: dict[str, str]) -> Workspace:
    """`dvc repro` of the smoke profile, with no out, no lock and no cache to start from."""
    space = smoke(folder, {})
    for stage in pipeline.stages(folder):
        remove_outs(folder, stage)
    (folder / "dvc.lock").unlink()
    output = space.ok("dvc", "repro", env=surroundings, timeout=1200)
    assert output.count("Running stage") == len(pipeline.stages(folder)), output
    return space


def locked(root: Path) -> dict[str, str]:
    """The hash of every out, as DVC has it."""
    stages = yaml.safe_load((root / "dvc.lock").read_text())["stages"]
    return {out["path"]: out["md5"] for stage in stages.values() for out in stage["outs"]}


def main() -> int:
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="twice-") as name:
        folders = [Path(name, folder) for folder in SURROUNDINGS]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(repro, folders, SURROUNDINGS.values()))
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
