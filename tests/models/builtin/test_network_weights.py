import json
from pathlib import Path

import numpy as np
import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.models.builtin.network import load_weights
from tests.models.builtin.small_model import SMALL, file_of, weights


def refused(path: Path, held: bytes) -> str:
    path.write_bytes(held)
    with pytest.raises(ConfigError) as caught:
        load_weights(path)
    return str(caught.value)


@pytest.mark.parametrize(("kind", "near"), [("F16", 2e-3), ("F32", 0.0)])
def test_reads_what_was_written(tmp_path: Path, kind: str, near: float) -> None:
    model = weights()
    path = tmp_path / "weights.safetensors"
    path.write_bytes(file_of(SMALL, model.tensors, kind=kind))

    found = load_weights(path)

    assert found.config == SMALL
    assert found.count == model.count
    for name, each in model.tensors.items():
        assert found.tensors[name].dtype == np.float32
        assert np.allclose(found.tensors[name], each, rtol=0, atol=near)


def test_a_library_reads_the_same(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    model = weights()
    path = tmp_path / "weights.safetensors"
    numpy.save_file(model.tensors, path, {"format": "taiwa-builtin-1", "config": _config()})
    assert np.array_equal(load_weights(path).tensors["0.qkv"], model.tensors["0.qkv"])


def _config() -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(SMALL))


def test_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    path, tensors = tmp_path / "weights.safetensors", weights().tensors
    whole = file_of(SMALL, tensors)
    assert "cannot read" in refused_missing(tmp_path / "none")
    for held in (b"", b"\xff" * 8, whole[:7], whole[:200], whole[:-1], whole[:8] + b"[]" + whole[10:]):
        assert "does not contain weights of the built-in model" in refused(path, held)
    for header in (
        [],
        "x",
        None,
        {"__metadata__": []},
        {"__metadata__": {"format": "taiwa-builtin-1", "config": "[]"}},
    ):
        written = json.dumps(header).encode()
        assert "does not contain weights" in refused(path, len(written).to_bytes(8, "little") + written)
    far = [10**30, 10**30 + 2 * 16]
    moved = _header(whole) | {"norm": {"dtype": "F16", "shape": [16], "data_offsets": far}}
    written = json.dumps(moved).encode()
    assert "does not contain weights" in refused(path, len(written).to_bytes(8, "little") + written + b"\0" * 20_000)
    assert "not 'taiwa-builtin-1'" in refused(path, file_of(SMALL, tensors, told={"format": "other"}))
    assert "vocab is 'many'" in refused(
        path, file_of(SMALL, tensors, told={"config": _config().replace("40", '"many"')})
    )
    assert "heads do not divide" in refused(
        path, file_of(SMALL, tensors, told={"config": _config().replace('"heads": 2', '"heads": 3')})
    )
    other = {**tensors, "1.out": tensors["1.out"][:, :3]}
    assert "1.out has the shape [16, 3], not [16, 16]" in refused(path, file_of(SMALL, other))
    broken = {**tensors, "norm": tensors["norm"] * np.float32("nan")}
    assert "norm contains values that are not finite" in refused(path, file_of(SMALL, broken))


def _header(held: bytes) -> dict[str, object]:
    found: dict[str, object] = json.loads(held[8 : 8 + int.from_bytes(held[:8], "little")])
    return found


def refused_missing(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_weights(path)
    return str(caught.value)
