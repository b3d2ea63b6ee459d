"""English-German corpora behind one interface (section 6.1, appendix C): each gives train, dev and test pairs.

wmt14       the paper's: Europarl v7, Common Crawl, News Commentary v9; newstest2013; newstest2014
interface   English and German strings of Home Assistant, which any machine can get; not the paper's
help        English and German sentences of LibreOffice's help, where apt-get has Debian's packages; not the paper's
files       aligned text files of the user's
toy         generated; for tests
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from attnrate.core.errors import UserError
from attnrate.sources import interface, libreoffice, wmt14
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

    folder: Path | None = None  # with the wheel, the packages or the archives, already there
    train: str | list[str] | None = None  # files: a prefix, of which .en and .de are the sides; or both paths
    dev: str | list[str] | None = None
    test: str | list[str] | None = None


def unescape(line: str) -> str:
    for escape, character in MOSES.items():
        line = line.replace(escape, character)
    return line


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, one after the other, each with something in it."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):  # ends at \n alone, never at U+2028 and its like
                yield unescape(_text(line, f"{path}, line {number}", "utf-8-sig" if number == 1 else "utf-8"))
    except OSError as e:
        raise UserError(f"{path}: cannot be read ({e.strerror}); both sides of a corpus are needed") from None


def _text(line: bytes, where: str, encoding: str) -> str:
    try:
        text = line.decode(encoding).strip()
    except UnicodeDecodeError as e:
        raise UserError(f"{where}: is not UTF-8 ({e.reason} at byte {e.start + 1} of it)") from None
    if not text:
        raise UserError(f"{where}: is empty; remove it here and on the other side")
    if "\0" in text:
        raise UserError(f"{where}: holds a zero byte; is this a text file?")
    return text


def aligned(english: Path, german: Path) -> Iterator[Pair]:
    """Pairs, read as they are written; what is wrong with a file is told when it is reached."""
    count = Counter()
    for pair in zip_longest(read_lines(english), read_lines(german)):
        count.update(side for side, text in zip(SIDES, pair, strict=True) if text is not None)
        if None not in pair:
            yield pair
    if not count["en"] or not count["de"]:
        raise UserError(f"{german if count['en'] else english}: is empty")
    if count["en"] != count["de"]:
        raise UserError(
            f"{english} has {count['en']:,} lines, {german} has {count['de']:,}: the sides are not aligned "
            f"(from line {min(count.values()) + 1} on at the latest)"
        )


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
        for path in paths:
            next(read_lines(Path(path)), None)  # a missing one is told now, not after the others were read
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
    "help": lambda source: libreoffice.obtain(source.folder),
    "files": from_files,
    "toy": lambda source: toy(),
}


def obtain(name: str, source: Source) -> Corpus:
    return SOURCES[name](source)
