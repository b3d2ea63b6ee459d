"""ONNX files written by hand, byte by byte, for tests of the reader."""

from collections.abc import Iterable

import numpy as np


def number(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)


def field(key: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return number(key << 3) + number(value)
    return number(key << 3 | 2) + number(len(value)) + value


def tensor(name: str, array: np.ndarray, packed: bool = False) -> bytes:
    sizes = [field(1, b"".join(map(number, array.shape)))] if packed else [field(1, n) for n in array.shape]
    kind = {"f": 1, "i": 7}[array.dtype.kind]
    return b"".join([*sizes, field(2, kind), field(8, name.encode()), field(9, array.tobytes())])


def node(kind: str, inputs: Iterable[str], output: str) -> bytes:
    return b"".join(field(1, name.encode()) for name in inputs) + field(2, output.encode()) + field(4, kind.encode())


def model(tensors: Iterable[bytes], nodes: Iterable[bytes] = ()) -> bytes:
    graph = b"".join([*(field(1, n) for n in nodes), field(2, b"graph"), *(field(5, t) for t in tensors)])
    return field(1, 7) + field(2, b"maker") + field(7, graph)
