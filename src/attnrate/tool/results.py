"""A folder of results: whole or not there, and never in place of somebody else's files."""

import os
import platform
from collections.abc import Callable, Set
from contextlib import chdir, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attnrate.core import files
from attnrate.core.errors import UserError

PACKAGES = ("attnrate", "torch", "torchvision", "timm", "transformers", "numpy", "pillow")


def free(out: Path, ours: Set[str]) -> Path:
    """out, if writing it destroys nothing but an older result."""
    if out.is_dir() and (others := sorted({p.name for p in out.iterdir()} - ours)):
        raise UserError(f"{out}: is not empty (it holds {others[0]}); name a new folder")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: is a file; name a new folder")
    return out


def write(out: Path, fill: Callable[[Path], None]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    with chdir(out.parent):  # drafts stand beside the folder, on the same disk
        try:
            with files.atomic(out.name) as draft:
                fill(draft)
        finally:
            with suppress(OSError):  # others may be at work in it
                os.rmdir(files.SCRATCH)


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def names(modules: list[str]) -> str:
    return ", ".join(modules) if len(modules) <= 3 else f"{modules[0]} … {modules[-1]} ({len(modules)} modules)"
