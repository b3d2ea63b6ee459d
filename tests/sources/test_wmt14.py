"""WMT14 from small archives with the official names and layout, served by a local HTTP server."""

import functools
import hashlib
import http.server
import io
import tarfile
import threading
from dataclasses import replace

import pytest

from attnrate.core.errors import UserError
from attnrate.sources import fetch, wmt14

SGM = """<{kind}set setid="newstest2014" srclang="any" trglang="de">
<doc sysid="ref" docid="1" genre="news" origlang="en">
<p>
<seg id="1">{first}</seg>
<seg id="2"> AT&amp;T  {last}
 goes on </seg>
</p>
</doc>
</{kind}set>
"""
TEXTS = {
    "training/europarl-v7.de-en.en": "Resumption of the session\n\nThank you\u2028all.\n",
    "training/europarl-v7.de-en.de": "Wiederaufnahme\nLeer links\nDanke.\n",
    "commoncrawl.de-en.en": "Cheap hotels\n",
    "commoncrawl.de-en.de": "Billige Hotels\n",
    "training/news-commentary-v9.de-en.en": "News\n",
    "training/news-commentary-v9.de-en.de": "Neues\n",
    "test/newstest2013-src.en.sgm": SGM.format(kind="src", first="A dev line", last="x"),
    "test/newstest2013-src.de.sgm": SGM.format(kind="ref", first="Eine Zeile", last="y"),
    "test-full/newstest2014-deen-src.en.sgm": SGM.format(kind="src", first="A test line", last="z"),
    "test-full/newstest2014-deen-ref.de.sgm": SGM.format(kind="ref", first="Eine Testzeile", last="w"),
}


def archive(names, texts):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name in ("training/europarl-v7.cs-en.cs", *names):  # the real ones hold other languages too
            data = texts.get(name, "jiný").encode() if isinstance(texts.get(name, ""), str) else texts[name]
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return content.getvalue()


def publish(folder, texts):
    """Archives below a folder as the host has them, and the table with their digests."""
    table = []
    for entry in wmt14.ARCHIVES:
        data = archive([n for n in (entry.german, entry.english) if n in texts], texts)
        path = folder / entry.address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        table.append(replace(entry, digest=hashlib.new(entry.algorithm, data).hexdigest()))
    return tuple(table)


def obtain(folder):
    return {part: list(pairs) for part, pairs in wmt14.obtain(folder).items()}


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A local host with the archives; gives its folder and the list of requests."""
    folder = tmp_path / "host"
    monkeypatch.setattr(wmt14, "ARCHIVES", publish(folder, TEXTS))
    requests = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            requests.append((self.path, self.headers.get("Range")))

    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setattr(wmt14, "HOSTS", [f"http://127.0.0.1:{server.server_port}"])
        yield folder, requests
        server.shutdown()
        thread.join()


def test_the_five_official_archives_are_pinned():
    assert [a.address for a in wmt14.ARCHIVES] == [
        "wmt13/training-parallel-europarl-v7.tgz",
        "wmt13/training-parallel-commoncrawl.tgz",
        "wmt14/training-parallel-nc-v9.tgz",
        "wmt13/test.tgz",
        "wmt14/test-full.tgz",
    ]
    assert all(len(a.digest) == {"sha256": 64, "md5": 32}[a.algorithm] for a in wmt14.ARCHIVES)
    assert len({a.name for a in wmt14.ARCHIVES}) == 5


def test_the_test_sets_are_those_of_sacrebleu():
    from sacrebleu.dataset import DATASETS

    for entry, name in zip(wmt14.ARCHIVES[3:], ("wmt13", "wmt14/full"), strict=True):
        assert DATASETS[name].md5 == [entry.digest] and DATASETS[name].data[0].endswith(entry.address)
        assert DATASETS[name].langpairs["en-de"] == [entry.english, entry.german]


def test_all_parts_are_downloaded_once_and_read(served):
    _, requests = served
    for _ in range(2):
        corpus = obtain(None)
        assert corpus["train"] == [
            ("Resumption of the session", "Wiederaufnahme"),
            ("Thank you\u2028all.", "Danke."),
            ("Cheap hotels", "Billige Hotels"),
            ("News", "Neues"),
        ]
        assert corpus["dev"] == [("A dev line", "Eine Zeile"), ("AT&T x goes on", "AT&T y goes on")]
        assert corpus["test"] == [("A test line", "Eine Testzeile"), ("AT&T z goes on", "AT&T w goes on")]
    assert len(requests) == 5


def test_a_broken_download_goes_on_where_it_stopped_or_anew(served):
    folder, _ = served
    entry = wmt14.ARCHIVES[0]
    whole = (folder / entry.address).read_bytes()
    part = wmt14.CACHE / entry.part / (entry.address.rpartition("/")[2] + ".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(whole[: len(whole) // 2])
    assert wmt14.locate(entry, None).read_bytes() == whole and not part.exists()


def test_an_archive_that_is_not_the_official_one_is_refused(served):
    folder, _ = served
    (folder / wmt14.ARCHIVES[1].address).write_bytes(b"another file")
    with pytest.raises(UserError, match=r"commoncrawl\.tgz could not be downloaded: .*sha256 differs.*data\.folder"):
        obtain(None)


def test_no_host_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(wmt14, "HOSTS", ["http://127.0.0.1:9"])
    monkeypatch.setattr(fetch, "PATIENCE", 2)
    with pytest.raises(UserError, match=r"europarl-v7\.tgz could not be downloaded.*translation\.data\.folder"):
        obtain(None)


def test_a_folder_with_the_archives_will_do(served, tmp_path):
    host, requests = served
    folder = tmp_path / "mine"
    folder.mkdir()
    for entry in wmt14.ARCHIVES:
        own = entry.address.rpartition("/")[2] if entry.part == "train" else entry.name
        (folder / own).write_bytes((host / entry.address).read_bytes())
    assert obtain(folder)["dev"][0] == ("A dev line", "Eine Zeile") and not requests
    (folder / "wmt14-test-full.tgz").write_bytes(b"x")
    with pytest.raises(UserError, match=r"wmt14-test-full\.tgz: is damaged or another file \(md5 differs\)"):
        obtain(folder)
    (folder / "wmt14-test-full.tgz").unlink()
    with pytest.raises(UserError, match=r"holds neither wmt14-test-full\.tgz nor test-full\.tgz"):
        obtain(folder)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"commoncrawl.de-en.de": "one\ntwo\n"}, r"commoncrawl\.de-en\.en has 1 lines, commoncrawl\.de-en\.de has 2"),
        (
            {"training/news-commentary-v9.de-en.de": b"a\nb\xff\n"},
            r"news-commentary-v9\.de-en\.de, line 2: is not UTF-8",
        ),
        ({"test/newstest2013-src.de.sgm": '<seg id="1"></seg><seg id="2">x</seg>'}, "empty segments"),
        ({"test/newstest2013-src.de.sgm": "<p>no segment</p>"}, r"has 2 lines, .* has 0"),
    ],
)
def test_damage_inside_an_archive_is_named(tmp_path, monkeypatch, changes, message):
    monkeypatch.setattr(wmt14, "ARCHIVES", publish(tmp_path / "a", TEXTS | changes))
    flat(tmp_path)
    with pytest.raises(UserError, match=message):
        obtain(tmp_path / "flat")


def test_a_missing_member_and_no_archive_at_all(tmp_path, monkeypatch):
    texts = {k: v for k, v in TEXTS.items() if k != "commoncrawl.de-en.de"}
    monkeypatch.setattr(wmt14, "ARCHIVES", publish(tmp_path / "a", texts))
    flat(tmp_path)
    with pytest.raises(UserError, match=r"holds no commoncrawl\.de-en\.de"):
        obtain(tmp_path / "flat")
    (tmp_path / "x.tgz").write_bytes(b"\x1f\x8b no")
    with pytest.raises(UserError, match="not a readable archive"):
        list(wmt14.lines(tmp_path / "x.tgz", "a"))


def flat(tmp_path):
    (tmp_path / "flat").mkdir()
    for entry in wmt14.ARCHIVES:
        (tmp_path / "flat" / entry.name).write_bytes((tmp_path / "a" / entry.address).read_bytes())
