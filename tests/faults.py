"""A full disk and a folder that cannot be written to: one clear line, no half-written out, and the same bytes afterwards."""

import ctypes
import os
import resource
from pathlib import Path

from tests.conftest import Workspace
from tests.pipeline import Stage
from tests.undisturbed import Reference, remove_outs, run

# One stage for each kind of writer: JSON, CSV, npz, figures, weights, checkpoints.
FULL_DISK = ("mixing_rank", "rates_pod", "linear_targets", "fig1", "linear_train@plain", "train_vit@qk-1")
READ_ONLY = ("mixing_rank", "linear_targets")
DROP, OVERRIDE = 24, 1  # prctl(2), capabilities(7): root's right to write where permission bits forbid it


def full_disk(space: Workspace, stage: Stage, reference: Reference) -> tuple[int, str]:
    """No file may grow beyond half of the largest out."""
    root = reference.space.path
    files = [p for out in stage.outs for p in ((root / out).rglob("*") if (root / out).is_dir() else [root / out])]
    limit = max(p.stat().st_size for p in files) // 2
    return run(space, stage, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))


def read_only(space: Workspace, stage: Stage, reference: Reference) -> tuple[int, str]:
    """The folders of its outs cannot be written to."""

    def obey() -> None:
        if os.getuid() == 0 and ctypes.CDLL(None).prctl(DROP, OVERRIDE, 0, 0, 0):
            raise PermissionError("root cannot give up CAP_DAC_OVERRIDE here")

    remove_outs(space.path, stage)
    folders = {(space.path / out).parent for out in stage.outs}
    for folder in folders:
        folder.chmod(0o555)
    try:
        return run(space, stage, preexec_fn=obey)
    finally:
        for folder in folders:
            folder.chmod(0o755)


def check(reference: Reference, folder: Path) -> bool:
    """Both faults for every stage above that the reference has; prints a line for each."""
    space, good = reference.copy(folder / "faults"), True
    for fault, name in [(full_disk, n) for n in FULL_DISK] + [(read_only, n) for n in READ_ONLY]:
        if name not in reference.seconds:
            continue
        stage = reference.stages[name]
        code, output = fault(space, stage, reference)
        lines = [line for line in output.splitlines() if line.strip()]
        problems = [] if code else ["exit code 0"]
        if len(lines) != 1 or not lines[0].startswith(f"{name}: "):
            problems.append(f"not one clear line:\n{output}")
        problems += reference.differences(space.path, killed=stage)
        code, output = run(space, stage)
        problems += ([f"cannot be run again:\n{output}"] if code else []) + reference.differences(space.path)
        print(f"{fault.__name__.replace('_', ' ')}, {name}: {lines[-1] if lines else 'no word'}")
        print("".join(f"     WRONG: {p}\n" for p in problems), end="", flush=True)
        good = good and not problems
    return good
