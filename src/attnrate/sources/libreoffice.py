"""English and German sentences of LibreOffice's help, out of Debian's packages: people's translations, MPL-2.0.

Both packages have the same HTML pages, with the same paragraphs under the same identifiers. Debian's archive drops a
revision for the next one, but the revisions of one version hold the same pages (7.4.7-1+deb12u13 and -1+deb12u14 do):
so the pages are pinned, by a digest, and not the packages. Parts are made as those of `interface`, from whole pages.
"""

import hashlib
import html
import re
from collections import Counter
from pathlib import Path

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.sources import debian, interface
from attnrate.sources.pairs import Corpus, Pair

VERSION = "7.4.7"
DEBIAN = f"4:{VERSION}"  # as Debian counts, without its revision
PACKAGES = {"en": "libreoffice-help-en-us", "de": "libreoffice-help-de"}
SHA256 = {  # of all pages
    "en": "ab17529f5c9c528f586a1a5b1ab4cb4a591bb85db463afbf0c433d7fa98cefc7",
    "de": "abd8b76eadfaa2460fc963263c3534a48e47b38c64c7d78c78196ddf24d0d9c3",
}
CACHE = files.SCRATCH / "downloads" / "libreoffice-help"
REMEDY = (
    f"put {' and '.join(f'{package}_*{VERSION}-*.deb' for package in PACKAGES.values())} into a folder and name it in "
    "translation.data.folder"
)

PAGE = re.compile(r"\./usr/share/libreoffice/help/[^/]+/text/(.+\.html)")
PARAGRAPH = re.compile(r'<p id="(par_\w+)"(?![^>]*code)[^>]*>(.*?)</p>', re.DOTALL)
UNFIT = re.compile(r'<(?!/?(?:span|a)\b)|class="(?:switch|literal|input|code)')  # images; words per system; code
NEXT = re.compile(r'(?<=\D[.!?]) (?=[A-ZÄÖÜ"„])')  # between two sentences, but not within 30. Dezember
WHOLE = re.compile(r"""[A-ZÄÖÜ"„][\w ,;.!?()"„“”'’/%&-]*[^\W\d_]["“”)]?[.!?]""")  # a sentence without signs of code
BROKEN = re.compile(r"_| - |\.\.|\w[.(]\w")  # some_name; menu - command; omissions; file.name, call(x)
RATIO = 0.6, 2.0  # German characters for an English one: with others, one side says more than the other


def checked(folder: Path, side: str) -> dict[str, bytes]:
    """name → HTML of every page of a side."""
    path = debian.find(folder, PACKAGES[side], DEBIAN)
    if path is None:
        raise UserError(f"{folder}: holds no {PACKAGES[side]} {VERSION}")
    pages = debian.members(path, PAGE)
    if digest(pages) != SHA256[side]:
        raise UserError(f"{path}: its pages are not those of LibreOffice {VERSION}'s help (sha256 differs)")
    return pages


def digest(pages: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name, content in sorted(pages.items()):
        total.update(name.encode() + b"\0" + content)
    return total.hexdigest()


def paragraphs(page: bytes) -> dict[str, str]:
    """identifier → inner HTML; identifiers that stand there twice are left out."""
    found = PARAGRAPH.findall(page.decode("utf-8"))
    count = Counter(key for key, _ in found)
    return {key: text for key, text in found if count[key] == 1}


def sentences(paragraph: str) -> list[str]:
    return NEXT.split(" ".join(html.unescape(re.sub(r"<[^>]*>", "", paragraph)).split()))


def fit(english: str, german: str) -> bool:
    """Whether these are two whole sentences of the same content, as far as their looks tell."""
    both = english, german
    return (
        len(english.split()) in interface.WORDS
        and english != german
        and all(WHOLE.fullmatch(text) and not BROKEN.search(text) for text in both)
        and RATIO[0] <= len(german) / len(english) <= RATIO[1]
        and len({"".join(sorted(re.findall(r"\d", text))) for text in both}) == 1
    )


def pairs_by_page(english: dict[str, bytes], german: dict[str, bytes]) -> dict[str, list[Pair]]:
    """page → its pairs, in order; paragraphs with more sentences on one side than on the other give none."""
    found: dict[str, list[Pair]] = {}
    for page in sorted(english.keys() & german.keys()):
        other = paragraphs(german[page])
        found[page] = []
        for key, text in paragraphs(english[page]).items():
            if key in other and not UNFIT.search(text + other[key]):
                en, de = sentences(text), sentences(other[key])
                if len(en) == len(de):
                    found[page] += [pair for pair in zip(en, de, strict=True) if fit(*pair)]
    return found


def obtain(folder: Path | None) -> Corpus:
    again = "" if folder else "run again to download it, or "
    try:
        if folder is None and not all(debian.find(CACHE, package, DEBIAN) for package in PACKAGES.values()):
            again = ""
            debian.download(PACKAGES.values(), DEBIAN, CACHE)
        pages = [checked(folder or CACHE, side) for side in PACKAGES]
    except UserError as e:
        if folder is None:
            files.remove(CACHE)
        raise UserError(f"{e}; {again}{REMEDY}") from None
    return interface.split(pairs_by_page(*pages))
