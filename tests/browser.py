"""A headless Chromium, driven through a pipe by its own DevTools protocol: no driver, no port, no network."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


def installed() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """`with Browser(folder) as b: b.open(file)`; then b.requests and b.complaints hold what happened."""

    def __init__(self, profile: Path, patience: float = 240):
        self.deadline, self.count, self.events = time.monotonic() + patience, 0, []
        self.requests: list[str] = []
        self.complaints: list[str] = []
        (to_read, self.writer), (self.reader, to_write) = os.pipe(), os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        shell = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        command = ["bash", "-c", shell, installed(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            command,
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.session = b"", None

    def __enter__(self):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        os.close(self.writer)
        os.close(self.reader)

    def receive(self) -> dict:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reader], [], [], max(0, self.deadline - time.monotonic()))
            assert ready, "Chromium does not answer"
            part = os.read(self.reader, 1 << 20)
            assert part, "Chromium has ended"
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return self.note(json.loads(message))

    def note(self, message: dict) -> dict:
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("warning", "error", "assert"):
            self.complaints.append(str(params["args"]))
        return message

    def send(self, method: str, **params) -> Any:
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self.count:
            self.events.append(answer.get("method"))
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def open(self, file: Path) -> None:
        self.events.clear()
        self.send("Page.navigate", url=file.resolve().as_uri())
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.receive().get("method"))

    def value(self, script: str) -> Any:
        """What a script gives, once a promise is kept."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def view(self, width: int, dark: bool = False) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
