"""Hostile arrays, weights and vocabularies: objects that run code, headers that lie, numbers that are none."""

import io
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save

from attnrate.core import files
from attnrate.linear import targets as linear
from attnrate.rates import pod
from attnrate.sources import cifar10, corpora
from attnrate.translation import model as seq2seq
from attnrate.translation import tokens
from attnrate.vit import view
from tests.robustness.hostile import Touch, make_place, refused, report  # noqa: F401


def targets() -> dict[str, np.ndarray]:
    made = linear.make_all(21, 0, 0)[:2]
    return {k: np.stack([np.asarray(getattr(t, k)) for t in made]) for k in linear.KEYS}


LOADERS = {  # how it is loaded, what is in it, the array that is attacked
    "images": (view.load, cifar10.toy(train=3, test=3), "train_x"),
    "labels": (view.load, cifar10.toy(train=3, test=3), "test_y"),
    "tokens": (
        tokens.load,
        {"train_en.ids": np.arange(3, dtype=np.uint16), "train_en.starts": np.array([0, 1, 3])},
        "train_en.starts",
    ),
    "pod": (
        pod.PodTarget.load,
        {"pairing": "same", "alpha": 1.0, "rank": "2", "sigma": np.ones(2), "frequencies": np.arange(1, 3)}
        | {"x": np.eye(3), "y": np.eye(3)},
        "x",
    ),
    "linear": (linear.load, targets(), "matrix"),
}


def npy(header: str, body: bytes = b"") -> bytes:
    text = header.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


@pytest.mark.parametrize("name", LOADERS)
def test_arrays_that_are_not_what_a_stage_wrote(place, name):
    load, good, key = LOADERS[name]
    path, mark = place / "x.npz", place.parent / "mark"
    np.savez(path, **good)
    load(path)
    whole = path.read_bytes()

    def attack(content: bytes):
        path.write_bytes(content)
        with refused("arrays", place):
            load(path)

    def packed(**changes) -> bytes:
        np.savez(buffer := io.BytesIO(), **{k: v for k, v in (good | changes).items() if v is not None})
        return buffer.getvalue()

    def raw(content: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(whole)) as z, zipfile.ZipFile(buffer := io.BytesIO(), "w") as out:
            for entry in z.namelist():
                out.writestr(entry, content if entry == f"{key}.npy" else z.read(entry))
        return buffer.getvalue()

    for content in (b"", b"PK", whole[:50], whole[: len(whole) // 2], whole[:-1], pickle.dumps(Touch(mark))):
        attack(content)
    np.save(single := io.BytesIO(), np.array([Touch(mark)], dtype=object), allow_pickle=True)
    attack(single.getvalue())
    np.save(single := io.BytesIO(), np.zeros(3))
    attack(single.getvalue())
    shape = np.shape(good[key])
    for value in (
        np.array([Touch(mark)], dtype=object),
        np.full(shape, np.nan),
        np.full(shape, np.inf),
        None,
        np.zeros((1, 2, 3)),
        np.array("x"),
    ):
        attack(packed(**{key: value}))
    attack(raw(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }", b"\0" * 80)))
    attack(raw(npy(f"__import__('os').mkdir({str(mark)!r})")))
    attack(raw(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", pickle.dumps([Touch(mark)]))))
    assert not mark.exists()


def test_tokens_that_lead_out_of_their_array(place):
    path, ids = place / "x.npz", np.arange(3, dtype=np.uint16)
    for starts in ([0, 2], [0, 4], [0, 9, 3], [1, 3], [-1, 3], []):
        np.savez(path, **{"train_en.ids": ids, "train_en.starts": np.array(starts, dtype=np.int64)})
        with refused("arrays", place):
            tokens.load(path)


def test_weights_that_are_not_what_a_stage_wrote(place):
    sizes = {"vocabulary": 100, "width": 8, "depth": 1, "heads": 1, "ff": 8, "dropout": 0.0}
    path, good = place / "x.safetensors", seq2seq.weights(seq2seq.build(seed=0, **sizes))
    path.write_bytes(whole := save(good))
    seq2seq.load(path, **sizes)
    name, length = "model.shared.weight", struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8 : 8 + length])

    def lying(**changes) -> bytes:
        text = json.dumps(header | {name: header[name] | changes}).encode()
        return struct.pack("<Q", len(text)) + text + whole[8 + length :]

    torch.save({name: Touch(place.parent / "mark")}, buffer := io.BytesIO())
    attacks = [
        b"",
        whole[:4],
        whole[:100],
        whole[:-1],
        struct.pack("<Q", 1 << 60) + whole[8:],
        struct.pack("<Q", 3) + b"{}}" + whole[8:],
        struct.pack("<Q", 10) + b"[" * 10,
        buffer.getvalue(),
        lying(shape=[1 << 40, 8]),
        lying(shape=[-1]),
        lying(dtype="F64"),
        lying(dtype="X"),
        lying(data_offsets=[0, 1 << 50]),
        lying(data_offsets=[10, 0]),
        save({k: v for k, v in good.items() if k != name}),
        save(good | {"another": torch.zeros(1)}),
        save(good | {name: torch.zeros(3, 8)}),
        save(good | {name: torch.full((100, 8), torch.nan)}),
    ]
    for content in attacks:
        path.write_bytes(content)
        with refused("weights", place):
            seq2seq.load(path, **sizes)
    path.write_bytes(save(good | {name: torch.full((100, 8), torch.inf)}))
    with refused("weights", place):
        files.read_weights(path)
    assert not (place.parent / "mark").exists()


def test_vocabularies_that_are_none(place):
    path = place / "v.model"
    model = tokens.learn([side for pair in corpora.toy()["train"] for side in pair], 300)
    for content in (b"", b"\0" * 1000, model[: len(model) // 2], np.random.default_rng(0).bytes(1000), pickle.dumps(1)):
        path.write_bytes(content)
        with refused("vocabularies", place):
            tokens.Vocabulary(path)
