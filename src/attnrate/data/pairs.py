"""A corpus on disk: a folder of aligned files, train.en, train.de … test.de, and its name."""

from collections.abc import Iterable
from pathlib import Path

from attnrate.core import files
from attnrate.core.stage import UserError

PARTS = ("train", "dev", "test")
SIDES = ("en", "de")
Pairs = list[tuple[str, str]]
Corpus = dict[str, Pairs]  # part → (English, German) pairs


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as f:
        f.writelines(" ".join(line.splitlines()) + "\n" for line in lines)  # carriage returns and their like


def save(path: Path, name: str, corpus: Corpus) -> None:
    with files.atomic(path) as draft:
        draft.mkdir()
        for part in PARTS:
            for i, side in enumerate(SIDES):
                _write(draft / f"{part}.{side}", (pair[i] for pair in corpus[part]))
        _write(draft / "name.txt", [name])


def load(path: Path, parts: Iterable[str] = PARTS) -> Corpus:
    try:
        text = {(p, s): (path / f"{p}.{s}").read_text(encoding="utf-8") for p in parts for s in SIDES}
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"{path}: cannot be read ({e}); `dvc repro --force download_translation` makes it") from None
    sides = {key: content.removesuffix("\n").split("\n") for key, content in text.items()}
    return {p: list(zip(sides[p, "en"], sides[p, "de"], strict=True)) for p in parts}


def load_name(path: Path) -> str:
    return (path / "name.txt").read_text(encoding="utf-8").strip()
