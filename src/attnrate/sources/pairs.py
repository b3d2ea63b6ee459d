"""A corpus on disk: a folder of aligned files, train.en, train.de … test.de, and its name."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from attnrate.core import files
from attnrate.core.errors import UserError

PARTS = ("train", "dev", "test")
SIDES = ("en", "de")
Pair = tuple[str, str]  # English, German
Corpus = dict[str, Iterable[Pair]]  # by part; long ones are read as they are written


def save(path: Path, name: str, corpus: Corpus) -> None:
    with files.atomic(path) as draft:
        draft.mkdir()
        for part in PARTS:
            with ExitStack() as stack:
                out = [stack.enter_context(_open(draft / f"{part}.{side}")) for side in SIDES]
                for pair in corpus[part]:
                    for f, text in zip(out, pair, strict=True):
                        f.write(" ".join(text.splitlines()) + "\n")  # carriage returns and their like
        with _open(draft / "name.txt") as f:
            f.write(name + "\n")


def _open(path: Path) -> IO[str]:
    return path.open("w", encoding="utf-8", newline="\n")


def load(path: Path, parts: Iterable[str] = PARTS) -> dict[str, list[Pair]]:
    try:
        text = {(p, s): (path / f"{p}.{s}").read_text(encoding="utf-8") for p in parts for s in SIDES}
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"{path}: cannot be read ({e}); `dvc repro --force translation_corpus` makes it") from None
    sides = {key: content.removesuffix("\n").split("\n") for key, content in text.items()}
    return {p: list(zip(sides[p, "en"], sides[p, "de"], strict=True)) for p in parts}


def load_name(path: Path) -> str:
    return (path / "name.txt").read_text(encoding="utf-8").strip()
