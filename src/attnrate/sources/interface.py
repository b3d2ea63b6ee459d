"""English and German strings of Home Assistant, out of its PyPI wheel: people's translations, Apache-2.0.

Whole components go to train, dev or test, and what is left for training holds no string of the other parts, be it
with other digits or capitals.
"""

import hashlib
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.sources import fetch
from attnrate.sources.pairs import Corpus, Pair

PACKAGE = "homeassistant==2026.10.4"
WHEEL = "homeassistant-2026.10.4-py3-none-any.whl"
SHA256 = "71843060980a763187d856a8ff170640f1e287a7b741334cd838c81404f1f452"
CACHE = files.SCRATCH / "downloads"
WORDS = range(4, 26)  # English words of a pair
SHARES = {"test": 8, "dev": 4}  # per cent of the components
MOST = 15  # strings of one component that are tested: a few have hundreds


def wheel(folder: Path | None) -> Path:
    return fetch.wheel(PACKAGE, WHEEL, SHA256, CACHE, folder, "translation.data")


def strings(tree: Any, key: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """(key, text) of every string of a nested JSON object, white space made plain."""
    if isinstance(tree, dict):
        for name, inner in tree.items():
            yield from strings(inner, (*key, name))
    elif isinstance(tree, str):
        yield key, " ".join(tree.split())


def pairs_by_component(path: Path) -> dict[str, list[Pair]]:
    """component → its pairs, in the order of names and keys; the wheel is read in place."""
    found: dict[str, list[Pair]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            for name in sorted(n for n in names if n.endswith("/translations/en.json")):
                other = name.removesuffix("en.json") + "de.json"
                if other in names:
                    english, german = (dict(strings(json.loads(archive.read(n)))) for n in (name, other))
                    both = [(text, german[key]) for key, text in english.items() if german.get(key)]
                    found[name.split("/")[-3]] = [p for p in both if len(p[0].split()) in WORDS and p[0] != p[1]]
    except (zipfile.BadZipFile, OSError, ValueError, EOFError) as e:
        raise UserError(f"{path}: is not a readable wheel ({type(e).__name__}: {e})") from None
    return found


def part(component: str) -> str:
    """By a hash of the name, so that a new component moves no other."""
    place = int(hashlib.sha256(component.encode()).hexdigest(), 16) % 100
    return "test" if place < SHARES["test"] else "dev" if place < sum(SHARES.values()) else "train"


def same(text: str) -> str:
    """What two strings share if they differ in digits and capitals alone."""
    return re.sub(r"\d+", "0", text.casefold())


def split(components: dict[str, list[Pair]]) -> Corpus:
    """Test first, then dev, then train: a string stays where it is seen first, on either side."""
    corpus: Corpus = {name: [] for name in ("train", "dev", "test")}
    seen: set[str] = set()
    for name in ("test", "dev", "train"):
        for component in (c for c in sorted(components) if part(c) == name):
            fresh = []
            for english, german in components[component]:
                if not {same(english), same(german)} & seen:
                    fresh.append((english, german))
                    seen |= {same(english), same(german)}
            corpus[name] += fresh if name == "train" else fresh[:MOST]
    return corpus


def obtain(folder: Path | None) -> Corpus:
    return split(pairs_by_component(wheel(folder)))
