"""Hosts that misbehave, on this machine alone: for `make rehearse`, and for tests of what downloads survive."""

import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

KINDS = ("gone", "truncated", "other", "slow", "drops")  # the last one has the file


@contextmanager
def host(folder: Path, kind: str, asked: list[str]) -> Iterator[str]:
    """The address of a host of the folder's files.

    truncated: calls half a file the whole; other: a file of the same length; slow: some bytes a second; drops: hangs
    up after a third of what is asked for, but goes on where it is asked to; gone: answers nobody.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            begin = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-")
            asked.append(f"{kind} {self.path} {begin}")
            content = (folder / self.path.lstrip("/")).read_bytes()
            content = {"truncated": content[: len(content) // 2], "other": bytes(len(content))}.get(kind, content)
            rest = content[int(begin) :]
            if not rest:
                return self.send_error(416)
            self.send_response(206 if int(begin) else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            if kind == "slow":
                for byte in rest[:100]:  # seconds, not days
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.05)
            else:
                self.wfile.write(rest[: len(content) // 3 + 1] if kind == "drops" else rest)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # a client that has left
    server.daemon_threads = True
    address = f"http://127.0.0.1:{server.server_port}"
    if kind == "gone":
        server.server_close()
        yield address
        return
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def mirrors(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    """One of each kind: their addresses, and what they were asked for."""
    asked: list[str] = []
    with ExitStack() as stack:
        yield [stack.enter_context(host(folder, kind, asked)) for kind in KINDS], asked
