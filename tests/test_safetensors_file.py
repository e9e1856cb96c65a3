import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taiwa.safetensors_file import TensorInfo, parse_header, read_header, read_tensor


def file_of(header: object, numbers: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


VALUES = np.array([[1.5, -2.0, 0.0], [65504.0, 2.0**-24, np.inf]], np.float32)


@pytest.mark.parametrize(
    ("dtype", "numbers", "kept"),
    [
        ("F32", VALUES.astype("<f4").tobytes(), VALUES),
        ("F16", VALUES.astype("<f2").tobytes(), VALUES),
        ("BF16", (VALUES.view("<u4") >> 16).astype("<u2").tobytes(), (VALUES.view("<u4") >> 16 << 16).view("<f4")),
    ],
)
def test_floats_of_every_width_are_read_as_f32(dtype: str, numbers: bytes, kept: np.ndarray) -> None:
    data = file_of({"__metadata__": {"format": "pt"}, "a": entry(dtype, [2, 3], 0, len(numbers))}, numbers)

    header = parse_header(data, len(data))
    tensor = read_tensor(data, header["a"])

    assert tensor.dtype == np.float32
    assert tensor.flags.aligned
    assert np.array_equal(tensor, kept)


def test_the_library_reads_and_writes_the_same(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    tensors: dict[str, Any] = {
        "a": VALUES,
        "b": VALUES.astype(np.float16),
        "c": np.arange(3),
        "d": np.zeros((2, 0), np.float32),
    }
    path = tmp_path / "a.safetensors"
    library.save_file(tensors, path, {"x": "1"})

    header, data = read_header(path), path.read_bytes()

    assert header == parse_header(data, len(data))
    assert {name: info.shape for name, info in header.items()} == {n: t.shape for n, t in tensors.items()}
    for name in "abd":
        assert np.array_equal(read_tensor(data, header[name]), library.load_file(path)[name])


def test_a_scalar_is_a_tensor_without_dimensions() -> None:
    data = file_of({"a": entry("F32", [], 0, 4)}, np.float32(3).tobytes())

    assert read_tensor(data, parse_header(data, len(data))["a"]).shape == ()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"short", b"\xff" * 8, b"\xff" * 100, file_of([]), file_of("x"), file_of(None),
        file_of({"a": 1}), file_of({"a": {}}), file_of({"a": entry("F32", [1], 0, 8)}, bytes(8)),
        file_of({"a": entry("F32", [1], 4, 0)}, bytes(8)), file_of({"a": entry("F32", [-1], 0, -4)}, bytes(8)),
        file_of({"a": entry("F32", [1], 0, 4)}, bytes(3)), file_of({"a": entry("I64", [1], 10**30, 10**30 + 8)}, bytes(8)),
        file_of({"a": {"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]}}, bytes(4)), file_of({})[:-1],
        (20_000).to_bytes(8, "little") + b"[" * 20_000,
    ],
)  # fmt: skip
def test_a_broken_file_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(data)

    with pytest.raises(ValueError, match=r"."):
        parse_header(data, len(data))
    with pytest.raises(ValueError, match=r"."):
        read_header(path)


def test_numbers_that_are_not_floats_are_counted_and_not_read() -> None:
    data = file_of({"a": entry("I64", [2], 0, 16)}, bytes(16))

    info = parse_header(data, len(data))["a"]

    assert info == TensorInfo("I64", (2,), len(data) - 16, len(data))
    with pytest.raises(ValueError, match="its numbers are I64, not F32 or F16 or BF16"):
        read_tensor(data, info)
