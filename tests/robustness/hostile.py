"""What tests of hostile files share: each file is refused in one line, and nothing beside it changes."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attnrate.core.errors import UserError
from tests.conftest import NOTES

REFUSED: Counter[str] = Counter()
PATIENCE = 60  # seconds, for a machine that is busy


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    REFUSED.clear()
    yield
    NOTES.append(f"hostile: {REFUSED.total()} refused ({', '.join(f'{n} {kind}' for kind, n in REFUSED.items())})")


@pytest.fixture(name="place")
def make_place(tmp_path) -> Path:
    """The folder that hostile files are put into; beside it a file that they aim at, and in it earlier data."""
    (tmp_path / "outside").write_text("not yours")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "earlier.npz").write_bytes(b"earlier data")
    return tmp_path / "place"


def snapshot(folder: Path) -> dict:
    return {p: p.read_bytes() if p.is_file() else p.is_symlink() for p in sorted(folder.rglob("*"))}


@contextmanager
def in_time() -> Iterator[None]:
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it hangs"))
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)


@contextmanager
def refused(kind: str, place: Path) -> Iterator[None]:
    """One UserError of one line, in time; nothing in the folder or beside it changes."""
    before = snapshot(place.parent)
    with in_time(), pytest.raises(UserError) as e:
        yield
    assert str(e.value) and "\n" not in str(e.value) and len(str(e.value)) < 1000
    assert snapshot(place.parent) == before
    REFUSED[kind] += 1


class Touch:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)
