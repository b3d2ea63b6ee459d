"""A folder of results: whole or not there, and never in place of somebody else's files."""

import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Set
from contextlib import chdir, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attnrate.core import files
from attnrate.core.errors import UserError

PACKAGES = ("attnrate", "torch", "torchvision", "timm", "transformers", "numpy", "pillow")


def free(out: Path, ours: Set[str]) -> Path:
    """out, if it can be written and writing it destroys nothing but an older result."""
    with _told(out):
        if out.is_dir() and (others := sorted({p.name for p in out.iterdir()} - ours)):
            raise UserError(f"{out}: is not empty (it holds {others[0]}); name a new folder")
        if out.exists() and not out.is_dir():
            raise UserError(f"{out}: is a file; name a new folder")
        _try(out)
    return out


@contextmanager
def _told(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise UserError(f"{out}: cannot be written ({e.strerror or e}); name another folder") from None


def _try(out: Path) -> None:
    """Make a folder beside out, and one in it if it is there, and leave nothing: rights alone do not tell."""
    made = [p for p in out.parents if not p.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for place in (out.parent, *([out] if out.exists() else [])):
            with tempfile.TemporaryDirectory(dir=place):
                pass
    finally:
        for place in made:
            with suppress(OSError):
                place.rmdir()


def write(out: Path, fill: Callable[[Path], None]) -> None:
    with _told(out):
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
