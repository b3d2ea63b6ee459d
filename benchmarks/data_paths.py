"""Reading CIFAR10 and parallel text of n, 2n, 4n … items, each in a process of its own: seconds and peak memory.

python -m benchmarks.data_paths KIND FOLDER N          # what growth.py starts
"""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np

from attnrate.core import files
from attnrate.sources import cifar10, corpora, pairs, wmt14
from benchmarks.memory import peak

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"cifar10": "images", "wmt14": "lines", "files": "lines"}
LINE = b"The quick brown fox jumps over the lazy dog, and then it rests for a while in the shade.\n"


def prepare(kind: str, folder: Path, n: int) -> int:
    """Write n made-up items in the real layout; returns the bytes that a reader must hold."""
    folder.mkdir(parents=True)
    if kind == "cifar10":
        rng = np.random.default_rng(0)
        for name in cifar10.BATCHES:
            rng.integers(0, 10, (n // 6, 1 + cifar10.PIXELS), np.uint8).tofile(folder / f"{name}.bin")
        return n * cifar10.PIXELS
    text = b"".join(b"%d %s" % (i, LINE) for i in range(n))
    if kind == "files":
        for side in ("en", "de"):
            (folder / f"text.{side}").write_bytes(text)
    else:
        with tarfile.open(folder / "archive.tgz", "w:gz", compresslevel=1) as archive:
            for name in (wmt14.ARCHIVES[0].english, wmt14.ARCHIVES[0].german):
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
    return 2 * len(text)


def read(kind: str, folder: Path, n: int) -> None:
    """The code of the project's stages on these items."""
    if kind == "cifar10":
        files.write_npz(folder / "cifar10.npz", cifar10.verified(folder))
    elif kind == "files":
        corpora.aligned(folder / "text.en", folder / "text.de")
    else:
        train = wmt14.pairs(wmt14.ARCHIVES[0], folder / "archive.tgz")
        pairs.save(folder / "corpus", "wmt14", {"train": train, "dev": [], "test": []})


def accept(folder: Path, n: int) -> None:
    """Let cifar10.py take these pixels for CIFAR10: their number and digests in place of the pinned ones."""
    cifar10.ROWS = n // 6
    batches = {name: cifar10.from_binary((folder / f"{name}.bin").read_bytes()) for name in cifar10.BATCHES}
    for name, arrays in batches.items():
        cifar10.BATCHES[name] = tuple(hashlib.sha256(np.ascontiguousarray(a)).hexdigest() for a in arrays)


def measure(kind: str, folder: Path, n: int) -> dict[str, float]:
    """{seconds, bytes} of a fresh process that reads the items."""
    command = [sys.executable, "-m", "benchmarks.data_paths", kind, str(folder), str(n)]
    env = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    done = subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(kind: str, folder: Path, n: int) -> None:
    if kind == "cifar10":
        accept(folder, n)
    found = {}

    def timed() -> None:
        start = time.perf_counter()
        read(kind, folder, n)
        found["seconds"] = time.perf_counter() - start

    found["bytes"] = peak(timed)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
