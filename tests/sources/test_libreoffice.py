"""LibreOffice's help from small packages with Debian's layout: alignment, what is left out, and what a user hears."""

import io
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from attnrate.core.errors import UserError
from attnrate.report.table_translation import NAMES
from attnrate.sources import corpora, debian, libreoffice
from attnrate.sources.corpora import Source

FOLDERS = {"en": "en-US", "de": "de"}
PAGES = {
    "en": {
        "a/one.html": '<p id="par_id1" class="paragraph">Opens the <span>new</span> window. Closes it again now.</p>'
    },
    "de": {"a/one.html": '<p id="par_id1" class="paragraph">Öffnet das neue Fenster. Schließt es jetzt wieder.</p>'},
}
PAIRS = [("Opens the new window.", "Öffnet das neue Fenster."), ("Closes it again now.", "Schließt es jetzt wieder.")]


def member(name: str, content: bytes) -> bytes:
    return (
        f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2)
    )


def deb(path: Path, side: str, pages: dict[str, str]) -> Path:
    """A Debian package with these pages, and a file that is none."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for name, text in {"text/x.png": "no page", **{f"text/{n}": t for n, t in pages.items()}}.items():
            info = tarfile.TarInfo(f"./usr/share/libreoffice/help/{FOLDERS[side]}/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    parts = {"debian-binary": b"2.0", "control.tar.xz": b"odd", "data.tar.xz": data.getvalue()}
    path.write_bytes(debian.MAGIC + b"".join(member(*part) for part in parts.items()))
    return path


def packages(folder: Path, pages=PAGES, revision="1") -> dict[str, Path]:
    name = "{}_4%3a" + f"{libreoffice.VERSION}-{revision}_all.deb"
    return {s: deb(folder / name.format(libreoffice.PACKAGES[s]), s, pages[s]) for s in pages}


@pytest.fixture(autouse=True)
def pinned(monkeypatch):
    content = {side: {n: t.encode() for n, t in pages.items()} for side, pages in PAGES.items()}
    monkeypatch.setattr(libreoffice, "SHA256", {side: libreoffice.digest(pages) for side, pages in content.items()})


def apt(monkeypatch, code=0, stderr="", write=packages):
    calls = []

    def run(command, cwd, **_):
        calls.append(command)
        write(Path(cwd))
        return subprocess.CompletedProcess(command, code, "", stderr)

    monkeypatch.setattr(debian.subprocess, "run", run)
    return calls


def refused(message: str, folder: Path | None) -> None:
    with pytest.raises(UserError, match=message) as e:
        corpora.obtain("help", Source(folder))
    assert "\n" not in str(e.value) and "translation.data.folder" in str(e.value)


def aligned(english: str, german: str) -> list:
    page = '<p id="par_id1" class="paragraph">{}</p>'
    sides = ({"x.html": page.format(text).encode()} for text in (english, german))
    return libreoffice.pairs_by_page(*sides)["x.html"]


# pairs ----------------------------------------------------------------------------------------------------------------


def test_a_folder_with_both_packages_gives_pairs_of_sentences(tmp_path):
    packages(tmp_path)
    corpus = corpora.obtain("help", Source(tmp_path))
    assert [pair for part in corpus.values() for pair in part] == PAIRS


def test_revisions_with_the_same_pages_give_the_same_corpus(tmp_path):
    for revision in ("1", "1+deb12u15"):
        (tmp_path / revision).mkdir()
        packages(tmp_path / revision, revision=revision)
    one, two = (corpora.obtain("help", Source(folder)) for folder in sorted(tmp_path.iterdir()))
    assert one == two


def test_paragraphs_meet_by_identifier_and_those_of_one_side_or_twice_on_a_page_are_left_out():
    page = "".join('<p id="par_id{}" class="paragraph">{}</p>'.format(*p) for p in enumerate("abcd")).encode()
    assert libreoffice.paragraphs(page + b'<p id="par_id2" dir="auto">x</p>') == dict(
        par_id0="a", par_id1="b", par_id3="d"
    )
    assert not libreoffice.paragraphs(b'<p id="par_id1" class="code">Print it now.</p><p id="bm_x">No text.</p>')
    text = {side: pages["a/one.html"].encode() for side, pages in PAGES.items()}
    moved = text["de"].replace(b"par_id1", b"par_id9")
    found = libreoffice.pairs_by_page(
        {"x": text["en"], "y": text["en"], "z": text["en"]}, {"x": text["de"], "y": moved}
    )
    assert found == {"x": PAIRS, "y": []}


@pytest.mark.parametrize(
    "english, german",
    [
        ("Select <a href='x'>the &quot;old&quot; entry</a>\n here.", "Wählen Sie hier den &quot;alten&quot; Eintrag."),
        (
            "It ends before December 30, 1899 (not inclusive).",
            "Es endet vor dem 30. Dezember 1899 (nicht einschließlich).",
        ),
        ("Is this (really) what you want?", "Ist es (wirklich) das, was Sie wollen?"),
    ],
)
def test_plain_sentences_stay_and_lose_their_markup(english, german):
    [(en, de)] = aligned(english, german)
    assert not re.search(r"[<>&\n]", en + de) and en.endswith(english[-2:]) and de.endswith(german[-2:])


@pytest.mark.parametrize(
    "english, german",
    [
        ("Too few words.", "Das sind zu wenige."),
        (f"So{' very' * 25} long.", f"So{' sehr' * 25} lang."),
        ("The same on both sides.", "The same on both sides."),
        ("No mark at the end", "Kein Zeichen am Ende"),
        ("Choose the menu Tools - Options.", "Wählen Sie das Menü Extras – Optionen."),
        ("Choose the menu Tools now.", "Wählen Sie jetzt das Menü Extras…"),
        ("name: The name of the sheet.", "name: Der Name der Tabelle."),
        ("The function call(x) returns a value.", "Die Funktion call(x) gibt einen Wert zurück."),
        ("Open the file config.xml with care.", "Öffnen Sie die Datei config.xml mit Vorsicht."),
        ("The key some_name is a value.", "Der Schlüssel some_name ist ein Wert."),
        ("Type = and then a value here.", "Geben Sie = und dann einen Wert ein."),
        ("Fill the column down to E11 now.", "Füllen Sie die Spalte jetzt bis E10 aus."),
        ("Compiles the Basic macro now.", "Durch Anklicken dieses Symbols wird das gesamte Basic-Makro neu übersetzt."),
        ("First one sentence here. Then another one here.", "Auf Deutsch steht hier nur ein einziger langer Satz."),
        ("Click the <img src='x'> icon there now.", "Klicken Sie dort jetzt auf das Symbol."),
        ('Press the <span class="switchinline">A</span> key twice.', "Drücken Sie zweimal die Taste."),
        ('Type <span class="literal">x</span> into the field.', "Geben Sie x in das Feld ein."),
    ],
)
def test_what_is_no_pair_of_whole_sentences_is_left_out(english, german):
    assert aligned(english, german) == []


def test_tables_name_the_version_and_that_it_is_not_the_papers():
    assert f"LibreOffice {libreoffice.VERSION}" in NAMES["help"] and "not WMT14" in NAMES["help"]
    assert set(NAMES) == set(corpora.SOURCES)


# packages -------------------------------------------------------------------------------------------------------------


def test_apt_get_delivers_into_the_cache_once_whatever_the_revision(monkeypatch):
    calls = apt(monkeypatch)
    assert corpora.obtain("help", Source()) == corpora.obtain("help", Source())
    assert len(calls) == 1 and calls[0][:2] == ["apt-get", "download"]
    wanted = [f"{package}=4:{libreoffice.VERSION}-*" for package in libreoffice.PACKAGES.values()]
    assert calls[0][-2:] == wanted and len(list(libreoffice.CACHE.iterdir())) == 2


def test_no_apt_get_no_such_version_and_half_of_it_leave_nothing(monkeypatch):
    monkeypatch.setenv("PATH", "")
    refused("apt-get cannot be run", None)
    apt(monkeypatch, 100, "W: x\nE: Version '4:7.4.7-*' for 'y' was not found\n", lambda folder: None)
    refused("was not found.*apt-get update.*another version by now", None)
    apt(monkeypatch, 0, "", lambda folder: packages(folder, {"en": PAGES["en"]}))
    refused("could not download", None)
    assert not [path for path in Path(".scratch").rglob("*") if path.is_file()]


def test_other_pages_under_the_name_of_the_version_are_refused(tmp_path, monkeypatch):
    other = PAGES | {"de": {"a/one.html": PAGES["de"]["a/one.html"].replace("neue", "alte")}}
    own = packages(tmp_path, other)
    refused(r"help-de_.*sha256 differs.*put libreoffice-help-en-us_", tmp_path)
    assert own["de"].exists(), "a user's own file is never removed"
    apt(monkeypatch, write=lambda folder: packages(folder, other))
    refused("sha256 differs", None)
    assert not libreoffice.CACHE.exists()
    packages(tmp_path, PAGES | {"de": {"a/two.html": PAGES["de"]["a/one.html"]}})
    refused("help-de_.*sha256 differs", tmp_path)


def test_a_missing_package(tmp_path):
    refused("holds no libreoffice-help-en-us 7", tmp_path / "gone")
    packages(tmp_path)["de"].unlink()
    refused("holds no libreoffice-help-de 7", tmp_path)


def test_a_package_that_is_cut_anywhere_is_refused_in_one_line(tmp_path, monkeypatch):
    path = packages(tmp_path)["de"]
    whole = path.read_bytes()
    for end in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:end])
        refused("help-de_", tmp_path)
    for content in (
        b"PK\x05\x06" + b"\0" * 90,
        debian.MAGIC + b"\xff" * 60,
        debian.MAGIC + member("data.tar.zst", b"x" * 99),
    ):
        path.write_bytes(content)
        refused("is not a readable Debian package", tmp_path)
    path.write_bytes(whole)
    monkeypatch.setattr(debian, "LIMIT", 50)
    refused("more than 50 bytes", tmp_path)


def test_a_damaged_cache_is_removed_and_downloaded_again(monkeypatch):
    calls = apt(monkeypatch)
    whole = corpora.obtain("help", Source())
    next(libreoffice.CACHE.glob("*-de_*")).write_bytes(b"half")
    refused("run again to download it", None)
    assert corpora.obtain("help", Source()) == whole and len(calls) == 2


def test_a_header_that_points_back_does_not_hang(tmp_path):
    path = packages(tmp_path)["en"]
    path.write_bytes(debian.MAGIC + member("x", b"")[:48] + f"{-60:<10}`\n".encode() + b"x" * 30)
    refused("is not a readable Debian package", tmp_path)
