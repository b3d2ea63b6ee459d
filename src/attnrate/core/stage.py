"""The run of a stage: `python stages/NAME.py ITEM` reads params.yaml and writes a folder of its name, or two.

reports/results/NAME/ITEM holds what is small, and is in git; data/NAME/ITEM what is not, and is in DVC's cache.
"""

import inspect
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from attnrate.core import files, params
from attnrate.core.errors import UserError


def results(stage: str = "") -> Path:
    return Path("reports/results") / stage


def data(stage: str) -> Path:
    return Path("data") / stage


class Outs(ExitStack):
    """The folders of a stage: drafts, which `close` moves into place."""

    name: str

    @cached_property
    def results(self) -> Path:
        return self._draft(results(self.name))

    @cached_property
    def data(self) -> Path:
        return self._draft(data(self.name))

    def _draft(self, path: Path) -> Path:
        draft = self.enter_context(files.atomic(path))
        draft.mkdir()
        return draft


def run(main: Callable[..., None]) -> None:
    """main(p, to, *items): the parameters, the folders to write, the words of the command line."""
    items = [name.upper() for name in list(inspect.signature(main).parameters)[2:]]
    if len(sys.argv) - 1 != len(items):
        raise UserError(f"usage: python {' '.join([sys.argv[0], *items])}")
    with Outs() as to:
        to.name = f"{Path(sys.argv[0]).stem}/{'-'.join(sys.argv[1:])}".rstrip("/")
        main(params.read("params.yaml"), to, *sys.argv[1:])
