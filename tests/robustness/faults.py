"""A full disk, a folder that cannot be written to: one clear line, no half-written out, the same bytes afterwards."""

import ctypes
import os
import resource
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Workspace
from tests.pipeline import Stage
from tests.robustness.undisturbed import Reference, remove_outs, run

# One stage for each kind of writer: JSON, CSV, npz, figures, weights, checkpoints.
FULL_DISK = ("mixing_rank", "rates_constructive", "linear_targets", "fig1", "linear_train@plain", "vit_sweep@qk-1")
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


def problems(fault: Callable, stage: Stage, space: Workspace, reference: Reference) -> list[str]:
    """What is wrong after a fault, and after another run without it; prints the last line of the stage."""
    code, output = fault(space, stage, reference)
    lines = [line for line in output.splitlines() if line.strip()]
    print(f"{fault.__name__.replace('_', ' ')}, {stage.name}: {lines[-1] if lines else 'no word'}")
    found = [] if code else ["exit code 0"]
    if len(lines) != 1 or not lines[0].startswith(f"{stage.name}: "):
        found.append(f"not one clear line:\n{output}")
    found += reference.differences(space.path, killed=stage)
    code, output = run(space, stage)
    return found + ([f"cannot be run again:\n{output}"] if code else []) + reference.differences(space.path)


def check(reference: Reference, folder: Path) -> bool:
    """Both faults for every stage above that the reference has."""
    space, good = reference.copy(folder / "faults"), True
    for fault, names in ((full_disk, FULL_DISK), (read_only, READ_ONLY)):
        for stage in (reference.stages[name] for name in names if name in reference.seconds):
            found = problems(fault, stage, space, reference)
            print("".join(f"     WRONG: {p}\n" for p in found), end="", flush=True)
            good = good and not found
    return good
