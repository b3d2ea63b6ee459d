"""Debian packages, downloaded by apt-get where that exists, and read in place: nothing is installed."""

import io
import lzma
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from attnrate.core import files
from attnrate.core.errors import UserError

OPTIONS = ["--quiet", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20"]
MAGIC = b"!<arch>\n"
LIMIT = 100_000_000  # bytes of the files that are asked for; LibreOffice's help has a quarter of that


def find(folder: Path, package: str, version: str) -> Path | None:
    """The package in a folder, of whatever revision; a name may have or lack what stands before the version's colon."""
    return max(folder.glob(f"{package}_*{version.rpartition(':')[2]}-*.deb"), default=None)


def download(packages: Iterable[str], version: str, folder: Path) -> None:
    """All packages into a folder of their own, or nothing; the latest revision that the archive has of a version."""
    print(f"downloading {', '.join(packages)} {version} with apt-get", file=sys.stderr)
    command = ["apt-get", "download", *OPTIONS, *(f"{package}={version}-*" for package in packages)]
    with files.atomic(folder) as draft:
        draft.mkdir()
        try:
            done = subprocess.run(command, cwd=draft, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        except OSError as e:
            raise UserError(f"apt-get cannot be run ({e.strerror})") from None
        if done.returncode or not all(find(draft, package, version) for package in packages):
            lines = [line.removeprefix("E: ") for line in done.stderr.splitlines() if line.startswith("E:")]
            why = "; ".join(lines[:2]) or f"exit code {done.returncode}"
            raise UserError(
                f"apt-get could not download {', '.join(packages)} {version} ({why}); `apt-get update` may help; if "
                "the archive has another version by now, this one has to come from elsewhere"
            )


def members(path: Path, names: re.Pattern[str]) -> dict[str, bytes]:
    """What the group of `names` matched → content, of every file of a package whose path matches."""
    found, left = {}, LIMIT
    try:
        with tarfile.open(fileobj=io.BytesIO(_data(path.read_bytes())), mode="r:xz") as archive:
            for member in archive:
                if member.isfile() and (name := names.fullmatch(member.name)):
                    left -= member.size
                    if left < 0:
                        raise ValueError(f"more than {LIMIT:,} bytes")
                    found[name[1]] = archive.extractfile(member).read()
    except (tarfile.TarError, lzma.LZMAError, OSError, EOFError, ValueError) as e:
        raise UserError(f"{path}: is not a readable Debian package ({type(e).__name__}: {e})") from None
    return found


def _data(package: bytes) -> bytes:
    """The archive of files in a package: a member of an ar archive, in which 60 bytes stand before each."""
    place = len(MAGIC) if package.startswith(MAGIC) else len(package)
    while header := package[place : place + 60]:
        place, size = place + 60, abs(int(header[48:58]))
        if header.startswith(b"data.tar.xz") and place + size <= len(package):
            return package[place : place + size]
        place += size + size % 2
    raise ValueError("it holds no whole data.tar.xz")
