"""WMT14 English-German from the official archives (section 6.1): checked by digest, cached, resumed, read in place.

Training: Europarl v7, Common Crawl, News Commentary v9, 4.5 million pairs. Dev: newstest2013. Test: the whole
newstest2014, 3,003 lines. Digests of the training parts are TensorFlow Datasets', of the others sacreBLEU's.
"""

import html
import re
import sys
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from attnrate.core import files
from attnrate.core.stage import UserError
from attnrate.data import fetch
from attnrate.data.pairs import Corpus, Pairs

CACHE = files.SCRATCH / "downloads" / "wmt14"
HOST = "https://www.statmt.org"


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
    Archive("train", "wmt13/training-parallel-europarl-v7.tgz", "sha256",
            "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
            "training/europarl-v7.de-en.en", "training/europarl-v7.de-en.de"),
    Archive("train", "wmt13/training-parallel-commoncrawl.tgz", "sha256",
            "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
            "commoncrawl.de-en.en", "commoncrawl.de-en.de"),
    Archive("train", "wmt14/training-parallel-nc-v9.tgz", "sha256",
            "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
            "training/news-commentary-v9.de-en.en", "training/news-commentary-v9.de-en.de"),
    Archive("dev", "wmt13/test.tgz", "md5", "48eca5d02f637af44e85186847141f67",
            "test/newstest2013-src.en.sgm", "test/newstest2013-src.de.sgm"),
    Archive("test", "wmt14/test-full.tgz", "md5", "a8cd784e006feb32ac6f3d9ec7eb389a",
            "test-full/newstest2014-deen-src.en.sgm", "test-full/newstest2014-deen-ref.de.sgm"),
)  # fmt: skip


def locate(archive: Archive, folder: Path | None) -> Path:
    """The archive in the user's folder, under its own name or ours, else in the cache or from the network."""
    if folder is None:
        try:
            return fetch.web(f"{HOST}/{archive.address}", archive.algorithm, archive.digest, CACHE / archive.part)
        except fetch.Unavailable as e:
            raise UserError(
                f"{HOST}/{archive.address} could not be downloaded: {e}. What arrived is kept and resumed; or give "
                f"translation.data_folder a folder that holds {', '.join(a.name for a in ARCHIVES)}"
            ) from None
    own = archive.address.rpartition("/")[2]
    path = next((folder / name for name in (archive.name, own) if (folder / name).is_file()), None)
    if path is None:
        raise UserError(f"{folder}: holds neither {archive.name} nor {own}")
    if fetch.digest(path, archive.algorithm) != archive.digest:
        raise UserError(f"{path}: is damaged or another file ({archive.algorithm} differs); put a whole copy there")
    return path


def members(path: Path, names: tuple[str, str]) -> list[str]:
    """The text of two members, in one pass over a compressed archive."""
    found = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if name in names and member.isfile():
                    found[name] = archive.extractfile(member).read()
                    if len(found) == len(names):
                        break
    except (tarfile.TarError, OSError, EOFError, zlib.error) as e:
        raise UserError(f"{path}: is not a readable archive ({type(e).__name__}: {e})") from None
    if missing := [name for name in names if name not in found]:
        raise UserError(f"{path}: holds no {' and no '.join(missing)}")
    texts = []
    for name in names:
        try:
            texts.append(found.pop(name).decode("utf-8"))
        except UnicodeDecodeError as e:
            line = e.object[: e.start].count(b"\n") + 1
            raise UserError(f"{path}, {name}, line {line}: is not UTF-8 ({e.reason})") from None
    return texts


def segments(text: str) -> list[str]:
    """The <seg> elements of an SGM file, in order."""
    found = re.findall(r"<seg\b[^>]*>(.*?)</seg>", text, re.DOTALL | re.IGNORECASE)
    return [" ".join(html.unescape(segment).split()) for segment in found]


def pairs(archive: Archive, path: Path) -> Pairs:
    """Aligned pairs; those with an empty side, of which Europarl has a few, are left out of training."""
    texts = members(path, (archive.english, archive.german))
    plain = not archive.english.endswith(".sgm")
    en, de = ([s.strip() for s in t.removesuffix("\n").split("\n")] if plain else segments(t) for t in texts)
    if len(en) != len(de):
        raise UserError(f"{path}: {archive.english} has {len(en):,} lines, {archive.german} has {len(de):,}")
    whole = [pair for pair in zip(en, de, strict=True) if all(pair)]
    if not whole or (archive.part != "train" and len(whole) < len(en)):
        raise UserError(f"{path}: {archive.english} or {archive.german} has empty segments")
    print(f"{path.name}: {len(whole):,} pairs, {len(en) - len(whole):,} with an empty side left out", file=sys.stderr)
    return whole


def obtain(folder: Path | None) -> Corpus:
    paths = [locate(archive, folder) for archive in ARCHIVES]  # all of them before hours of reading
    corpus: Corpus = {"train": [], "dev": [], "test": []}
    for archive, path in zip(ARCHIVES, paths, strict=True):
        corpus[archive.part] += pairs(archive, path)
    return corpus
