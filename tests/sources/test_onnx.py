"""The reader of ONNX files, on bytes written by hand."""

import numpy as np
import pytest

from attnrate.sources import onnx
from tests.sources.protobuf import field, model, node, number, tensor

A = np.arange(600, dtype=np.float32).reshape(2, 300)


@pytest.mark.parametrize("packed", [False, True])
def test_initialisers_come_back_with_name_shape_and_values(packed):
    weights, nodes = onnx.read(model([tensor("a.b", A, packed), tensor("scalar", np.float32(3)[None][0], packed)]))
    assert list(weights) == ["a.b", "scalar"] and nodes == []
    assert np.array_equal(weights["a.b"], A) and weights["a.b"].shape == (2, 300)
    assert weights["scalar"].shape == () and weights["scalar"] == 3


def test_what_is_no_float_is_left_out_and_unknown_fields_are_passed_over():
    strange = field(99, 12) + field(98, b"xyz") + number(97 << 3 | 1) + bytes(8) + number(96 << 3 | 5) + bytes(4)
    weights, _ = onnx.read(strange + model([tensor("whole", np.arange(3)), tensor("a", A) + strange]) + strange)
    assert list(weights) == ["a"] and np.array_equal(weights["a"], A)


def test_nodes_keep_their_order_and_the_order_of_their_inputs():
    _, nodes = onnx.read(model([], [node("MatMul", ["x", "w"], "y"), node("Add", ["b", "y"], "z")]))
    assert nodes == [onnx.Node("MatMul", ("x", "w"), ("y",)), onnx.Node("Add", ("b", "y"), ("z",))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model([tensor("a", A)])[:-100], "after the end"),
        (number(7 << 3 | 3), "wire type 3"),
        (b"\xff" * 12, "more than 64 bits"),
        (model([field(1, 7) + field(2, 1) + field(9, bytes(8))]), "reshape"),
    ],
)
def test_bytes_that_are_no_onnx_are_an_error(content, message):
    with pytest.raises(ValueError, match=message):
        onnx.read(content)
