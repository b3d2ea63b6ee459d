"""Weights and nodes of an ONNX file, read from its protobuf bytes; nothing is run, and no package is needed.

Field numbers are those of onnx.proto: ModelProto.graph 7; GraphProto.node 1, initializer 5; NodeProto.input 1, output
2, op_type 4; TensorProto.dims 1, data_type 2, name 8, raw_data 9.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

FLOAT = 1  # TensorProto.DataType
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5  # wire types


@dataclass(frozen=True)
class Node:
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number that begins at `at`, seven bits a byte, the lowest first; and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, content) of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = varint(data, at)
        elif wire in (BYTES, EIGHT, FOUR):
            size, at = varint(data, at) if wire == BYTES else ({EIGHT: 8, FOUR: 4}[wire], at)
            if at + size > len(data):
                raise ValueError("a field that goes on after the end")
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"wire type {wire}")
        yield number, value


def tensor(data: memoryview) -> tuple[str, np.ndarray | None]:
    """Name and values of a TensorProto; None if they are not raw 32-bit floats."""
    name, shape, kind, raw = "", [], 0, None
    for number, value in fields(data):
        if number == 1:  # one by one, or packed
            at = 0
            while not isinstance(value, int) and at < len(value):
                size, at = varint(value, at)
                shape.append(size)
            shape += [value] if isinstance(value, int) else []
        elif number == 2:
            kind = value
        elif number == 8:
            name = str(value, "utf-8")
        elif number == 9:
            raw = value
    return name, np.frombuffer(raw, "<f4").reshape(shape) if kind == FLOAT and raw is not None else None


def node(data: memoryview) -> Node:
    found: dict[int, list[str]] = {1: [], 2: [], 4: []}
    for number, value in fields(data):
        if number in found:
            found[number].append(str(value, "utf-8"))
    return Node("".join(found[4]), tuple(found[1]), tuple(found[2]))


def read(content: bytes) -> tuple[dict[str, np.ndarray], list[Node]]:
    """The float initialisers by name, views into `content`, and the nodes in their order."""
    weights, nodes = {}, []
    for graph in (value for number, value in fields(memoryview(content)) if number == 7):
        for number, value in fields(graph):
            if number == 1:
                nodes.append(node(value))
            elif number == 5:
                name, array = tensor(value)
                if array is not None:
                    weights[name] = array
    return weights, nodes
