"""WMT14 English-German from the official archives (section 6.1): checked by digest, cached, resumed, read in place.

Training: Europarl v7, Common Crawl, News Commentary v9, 4.5 million pairs. Dev: newstest2013. Test: the whole
newstest2014, 3,003 lines. Digests of the training parts are TensorFlow Datasets', of the others sacreBLEU's.
"""

import html
import re
import sys
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import IO

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.sources import fetch
from attnrate.sources.pairs import PARTS, Corpus, Pair

CACHE = files.SCRATCH / "downloads" / "wmt14"
HOSTS = ("https://www.statmt.org", "https://statmt.org", "http://www.statmt.org")  # digests make the last one safe


@dataclass(frozen=True)
class Archive:
    part: str
    address: str  # below the host
    algorithm: str
    digest: str
    english: str  # members
    german: str

    @property
    def name(self) -> str:
        return self.address.replace("/", "-")  # wmt13-test.tgz


ARCHIVES = (
    Archive(
        "train",
        "wmt13/training-parallel-europarl-v7.tgz",
        "sha256",
        "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        "training/europarl-v7.de-en.en",
        "training/europarl-v7.de-en.de",
    ),
    Archive(
        "train",
        "wmt13/training-parallel-commoncrawl.tgz",
        "sha256",
        "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
        "commoncrawl.de-en.en",
        "commoncrawl.de-en.de",
    ),
    Archive(
        "train",
        "wmt14/training-parallel-nc-v9.tgz",
        "sha256",
        "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
        "training/news-commentary-v9.de-en.en",
        "training/news-commentary-v9.de-en.de",
    ),
    Archive(
        "dev",
        "wmt13/test.tgz",
        "md5",
        "48eca5d02f637af44e85186847141f67",
        "test/newstest2013-src.en.sgm",
        "test/newstest2013-src.de.sgm",
    ),
    Archive(
        "test",
        "wmt14/test-full.tgz",
        "md5",
        "a8cd784e006feb32ac6f3d9ec7eb389a",
        "test-full/newstest2014-deen-src.en.sgm",
        "test-full/newstest2014-deen-ref.de.sgm",
    ),
)


def locate(archive: Archive, folder: Path | None) -> Path:
    """The archive in the user's folder, under its own name or ours, else in the cache or from the network."""
    if folder is None:
        try:
            urls = fetch.addresses(archive.address, HOSTS)
            return fetch.web(urls, archive.algorithm, archive.digest, CACHE / archive.part)
        except fetch.Unavailable as e:
            raise UserError(
                f"{archive.address} could not be downloaded: {e}. What arrived is kept and resumed; or give "
                f"translation.data.folder a folder that holds {', '.join(a.name for a in ARCHIVES)}"
            ) from None
    own = archive.address.rpartition("/")[2]
    path = next((folder / name for name in (archive.name, own) if (folder / name).is_file()), None)
    if path is None:
        raise UserError(f"{folder}: holds neither {archive.name} nor {own}")
    if fetch.digest(path, archive.algorithm) != archive.digest:
        raise UserError(f"{path}: is damaged or another file ({archive.algorithm} differs); put a whole copy there")
    return path


@contextmanager
def member(path: Path, name: str) -> Iterator[IO[bytes]]:
    """One member of a compressed archive, read where it lies."""
    try:
        with tarfile.open(path) as archive:
            found = next((m for m in archive if m.name.removeprefix("./") == name and m.isfile()), None)
            if found is None:
                raise UserError(f"{path}: holds no {name}")
            yield archive.extractfile(found)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as e:
        raise UserError(f"{path}: is not a readable archive ({type(e).__name__}: {e})") from None


def lines(path: Path, name: str) -> Iterator[str]:
    """The lines of a text member, or the <seg> elements of an SGM one, in order."""
    with member(path, name) as content:
        sgm = name.endswith(".sgm")
        for number, line in enumerate([content.read()] if sgm else content, 1):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as e:
                number += e.object[: e.start].count(b"\n")
                raise UserError(f"{path}, {name}, line {number}: is not UTF-8 ({e.reason})") from None
            yield from segments(text) if sgm else [text.strip()]


def segments(text: str) -> list[str]:
    """The <seg> elements of an SGM file, in order."""
    found = re.findall(r"<seg\b[^>]*>(.*?)</seg>", text, re.DOTALL | re.IGNORECASE)
    return [" ".join(html.unescape(segment).split()) for segment in found]


def pairs(archive: Archive, path: Path) -> Iterator[Pair]:
    """Aligned pairs, one after the other; those with an empty side, as in Europarl, are left out of training."""
    count = Counter()
    both = (lines(path, name) for name in (archive.english, archive.german))
    for en, de in zip_longest(*both):
        count["en"] += en is not None
        count["de"] += de is not None
        if en and de:
            count["whole"] += 1
            yield en, de
    if count["en"] != count["de"]:
        raise UserError(f"{path}: {archive.english} has {count['en']:,} lines, {archive.german} has {count['de']:,}")
    empty = count["en"] - count["whole"]
    if not count["whole"] or (archive.part != "train" and empty):
        raise UserError(f"{path}: {archive.english} or {archive.german} has empty segments")
    print(f"{path.name}: {count['whole']:,} pairs, {empty:,} with an empty side left out", file=sys.stderr)


def obtain(folder: Path | None) -> Corpus:
    located = [(archive, locate(archive, folder)) for archive in ARCHIVES]  # all of them before hours of reading
    return {part: chain(*(pairs(a, path) for a, path in located if a.part == part)) for part in PARTS}
