"""The bytes of a graph, number by number, and as onnxruntime reads them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.onnx.proto import Graph, _varying

onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")


@given(st.integers(-(2**63), 2**64 - 1))
def test_a_number_is_read_again(number: int) -> None:
    found = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(_varying(number)))
    assert found == number % 2**64
    assert [byte >> 7 for byte in _varying(number)] == [1] * (len(_varying(number)) - 1) + [0]


@given(st.integers(1, 300), st.integers(-3, 2), st.floats(-4, 4, width=32))
def test_a_graph_of_all_kinds_of_things_runs(size: int, axis: int, slope: float) -> None:
    made = Graph()
    x = made.input("x", "float32", ("n", size, 2))
    held = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
    turned = made.add("Transpose", made.add("Sub", x, made.hold(held)), perm=(0, 2, 1))
    first, second = made.split("Split", 2, made.add("LeakyRelu", turned, alpha=slope), axis=1)
    made.node("Concat", (first, second), ("y",), {"axis": axis})
    made.output("y", "float32", ("a", "b", "c"))
    session = onnxruntime.InferenceSession(made.model(), providers=["CPUExecutionProvider"])
    given_ = np.random.default_rng(size).normal(size=(3, size, 2)).astype(np.float32) + held

    (found,) = session.run(None, {"x": given_})

    flat = (given_ - held).transpose(0, 2, 1)
    bent = np.where(flat < 0, flat * np.float32(slope), flat)
    assert np.allclose(found, np.concatenate((bent[:, :1], bent[:, 1:]), axis), atol=1e-5)
