"""Hostile archives: made to escape, to execute, to hang or to fill the memory."""

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from attnrate.core.errors import UserError
from attnrate.sources import cifar10, corpora, interface, wmt14
from tests.robustness.hostile import REFUSED, Touch, in_time, make_place, refused, report, snapshot  # noqa: F401
from tests.sources.test_cifar10 import batches, contents  # noqa: F401

FIFO, DEVICE = tarfile.FIFOTYPE, tarfile.CHRTYPE


def member(name: str, content: bytes = b"", **attributes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in attributes.items():
        setattr(info, key, value)
    return info, content


def tar(path: Path, members, compression: str = "") -> Path:
    with tarfile.open(path, f"w:{compression}") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return path


def escapes(place: Path, name: str) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    """Members that stand for `name` and point elsewhere, or nowhere."""
    outside = str(place.parent / "outside")
    return {
        "symlink": member(f"d/{name}", type=tarfile.SYMTYPE, linkname=outside),
        "relative symlink": member(f"d/{name}", type=tarfile.SYMTYPE, linkname="../../outside"),
        "hard link": member(f"d/{name}", type=tarfile.LNKTYPE, linkname=outside),
        "fifo": member(f"d/{name}", type=FIFO),
        "device": member(f"d/{name}", type=DEVICE, devmajor=1, devminor=5),
        "folder": member(f"d/{name}", type=tarfile.DIRTYPE),
        "parent": member(f"../../{name}", b"evil"),
        "absolute": member(f"{place.parent}/{name}", b"evil"),
    }


@pytest.mark.parametrize("kind", escapes(Path("x"), ""))
def test_a_member_that_leaves_the_archive(batches, place, kind):  # noqa: F811
    rest = [member(f"d/{n}", c) for n, c in contents(batches, "python").items() if n != "data_batch_1"]
    path = tar(place / "cifar-10-python.tar.gz", [escapes(place, "data_batch_1")[kind], *rest])
    with refused("tar members", place):
        cifar10.obtain(place)
    english = "commoncrawl.de-en.en"
    tar(path, [escapes(place, english)[kind], member("commoncrawl.de-en.de", b"x\n")])
    with refused("tar members", place):
        list(wmt14.lines(path, "d/" + english))


@pytest.mark.parametrize("prefix", ["../../", "/nowhere/", "a/../../../"])
def test_a_path_in_an_archive_is_never_written_to(batches, place, prefix):  # noqa: F811
    path = tar(place / "x.tgz", [member(prefix + n, c) for n, c in contents(batches, "python").items()])
    before = snapshot(place.parent)
    assert cifar10.verified(path)["test_x"].shape[1:] == (32, 32, 3)
    assert snapshot(place.parent) == before


def test_a_member_that_would_fill_the_memory(batches, place, monkeypatch):  # noqa: F811
    assert 31_035_704 < cifar10.LARGEST < 1 << 28, "room for the real batches, and not for much more"
    whole = contents(batches, "binary")
    monkeypatch.setattr(cifar10, "LARGEST", 1 << 20)
    lies = {size: member("d/data_batch_1.bin", b"", size=size) for size in (1 << 40, (1 << 63) - 1)}
    for size, (info, _) in lies.items():
        header = info.tobuf(tarfile.GNU_FORMAT)
        (place / "x.tar").write_bytes(header + b"\0" * 1024)
        with refused("bombs", place):
            cifar10.verified(place / "x.tar")
        assert size > 1 << 30
    tar(
        place / "zeros.tgz",
        [member("d/data_batch_1.bin", b"\0" * (20 << 20)), *(member(n, c) for n, c in whole.items())],
    )
    with refused("bombs", place):
        cifar10.verified(place / "zeros.tgz")
    (place / "data_batch_1.bin").write_bytes(b"\0" * (2 << 20))
    with refused("bombs", place):
        cifar10.verified(place)


def test_a_fifo_in_the_folder_does_not_hang(place):
    os.mkfifo(place / "data_batch_1")
    with in_time(), pytest.raises(UserError, match="holds no data_batch_1"):
        cifar10.verified(place)
    REFUSED["bombs"] += 1


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_an_archive_cut_or_changed_anywhere(batches, place, compression):  # noqa: F811
    noise = np.random.default_rng(0).bytes(60_000)
    path = tar(place / "cifar-10-python.tar.gz", [member("d/data_batch_1", noise)], compression)
    whole = path.read_bytes()
    for share in (0, 0.01, 0.3, 0.6, 0.95):
        path.write_bytes(whole[: int(share * len(whole))])
        with refused("damaged archives", place):
            cifar10.obtain(place)
        path.write_bytes(whole[: int(share * len(whole))] + b"\xff\xff\xff" + whole[int(share * len(whole)) + 3 :])
        with refused("damaged archives", place):
            cifar10.obtain(place)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 2000, b"%PDF-1.7", b"PK\x05\x06" + b"\0" * 18, b"\x1f\x8b\x08", b"\xfd7zXZ\0"]
)
def test_another_file_under_the_name_of_an_archive(place, content):
    (place / "cifar-10-python.tar.gz").write_bytes(content)
    with refused("wrong files", place):
        cifar10.obtain(place)
    (place / wmt14.ARCHIVES[0].name).write_bytes(content)
    with refused("wrong files", place):
        wmt14.obtain(place)
    (place / interface.WHEEL).write_bytes(content)
    with refused("wrong files", place):
        interface.obtain(place)


def test_archives_with_a_digest_are_opened_only_after_it_was_checked(place, monkeypatch):
    """So nothing that stands in such an archive can be hostile."""
    monkeypatch.setattr(tarfile, "open", lambda *a, **k: pytest.fail("opened"))
    monkeypatch.setattr(zipfile, "ZipFile", lambda *a, **k: pytest.fail("opened"))
    for archive in wmt14.ARCHIVES:
        (place / archive.name).write_bytes(b"x")
    (place / interface.WHEEL).write_bytes(b"x")
    for name in ("wmt14", "interface"):
        with refused("wrong files", place):
            corpora.obtain(name, corpora.Source(place))


@pytest.mark.parametrize("damage", ["cut", "flipped", "traversal"])
def test_a_damaged_wheel_and_one_that_points_outside(place, damage):
    path, names = place / "w.whl", [f"h/c/demo/translations/{side}.json" for side in ("en", "de")]
    text = json.dumps({"k": "one two three four five"})
    with zipfile.ZipFile(path, "w") as z:
        for name in names:
            z.writestr(f"../../{name}" if damage == "traversal" else name, text)
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-30], "flipped": whole.replace(b"three", b"THREE"), "traversal": whole}[damage])
    if damage == "traversal":
        before = snapshot(place.parent)
        interface.pairs_by_component(path)
        assert snapshot(place.parent) == before
        return
    with refused("damaged archives", place):
        interface.pairs_by_component(path)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_runs_code_is_not_run(batches, place, protocol):  # noqa: F811
    mark = place.parent / "mark"
    good = contents(batches, "python")
    evil = pickle.dumps({"labels": [1] * 50, "data": Touch(mark)}, protocol)
    for content in (evil, good["data_batch_1"] + evil, evil + good["data_batch_1"]):
        path = tar(place / "x.tgz", [member(n, c) for n, c in (good | {"data_batch_1": content}).items()])
        try:
            assert (cifar10.verified(path)["train_x"][:50] == cifar_images(batches)).all(), "only the pixels count"
        except UserError as e:
            assert "\n" not in str(e)
            REFUSED["pickles"] += 1
    assert not mark.exists()


def cifar_images(made) -> np.ndarray:
    return made["data_batch_1"][0].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def png(width: int, height: int, mode: int = 2) -> bytes:
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, mode, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0" * 99)),
        (b"IEND", b""),
    ]
    parts = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    "image",
    [b"", b"GIF89a" + b"\0" * 99, png(60000, 60000), png(1024, 50), png(8, 8, 0), png(1024, 50)[:50], png(0, 0)],
)
def test_images_that_are_no_batch(batches, place, image):  # noqa: F811
    path = tar(
        place / "x.tgz", [member(n, c) for n, c in (contents(batches, "npm") | {"data_batch_1.png": image}).items()]
    )
    with refused("images and labels", place):
        cifar10.verified(path)


@pytest.mark.parametrize(
    "labels",
    [
        b"",
        b"[" * 100_000,
        b"[NaN]",
        b'{"a": 1}',
        b"[1" + b"0" * 5000 + b"]",
        b"[300]",
        b"[-1]",
        b'["a"]',
        b"\xff",
        b"null",
        b"[1]",
    ],
)
def test_labels_that_are_none(batches, place, labels):  # noqa: F811
    path = tar(
        place / "x.tgz", [member(n, c) for n, c in (contents(batches, "npm") | {"train_lables.json": labels}).items()]
    )
    with refused("images and labels", place):
        cifar10.verified(path)
