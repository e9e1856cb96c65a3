"""What keeps a model from being loaded, told in one line before anything heavy is done."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.models.inprocess import transformers_model
from taiwa.models.inprocess.generator import available_memory
from taiwa.models.inprocess.transformers_model import (
    LocalModel,
    ModelSpec,
    check_memory,
    count_weights,
    find_local_folder,
    model_folder,
    parse_spec,
)


def safetensors(path: Path, tensors: dict[str, tuple[str, list[int]]], width: int = 4) -> Path:
    """A file whose head says what it holds; the numbers are zeros."""
    head, end = {}, 0
    for name, (kind, shape) in tensors.items():
        size = width
        for each in shape:
            size *= each
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    raw = json.dumps({"__metadata__": {"format": "pt"}, **head}).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(end))
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    safetensors(tmp_path / "model.safetensors", {"a": ("F32", [10, 20]), "b": ("F32", [5])})
    return tmp_path


def test_a_name_has_options() -> None:
    assert parse_spec("./qwen?device=cuda:1&dtype=bfloat16&threads=4&context=512") == ModelSpec(
        "./qwen", "cuda:1", "bfloat16", 4, 512
    )
    assert parse_spec("a folder/with spaces") == ModelSpec("a folder/with spaces")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "does not name a model"),
        ("?device=cpu", "does not name a model"),
        ("x?devise=cpu", "did you mean 'device'"),
        ("x?dtype=int3", "unknown dtype 'int3'"),
        ("x?threads=many", "whole number"),
    ],
)
def test_a_wrong_name_says_what_is_right(text: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        parse_spec(text)


def test_a_folder_is_looked_at_before_it_is_loaded(model: Path) -> None:
    assert find_local_folder(ModelSpec(str(model))) == model
    assert find_local_folder(ModelSpec("vendor/name")) is None


@pytest.mark.parametrize(
    ("breaks", "fault"),
    [
        (lambda folder: (folder / "config.json").unlink(), "does not contain a model"),
        (lambda folder: (folder / "model.safetensors").unlink(), "missing"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "pickled"),
    ],
)
def test_a_folder_that_lacks_a_file_says_which(model: Path, breaks: Callable[[Path], object], fault: str) -> None:
    breaks(model)

    with pytest.raises(ConfigError, match=fault):
        model_folder(ModelSpec(str(model)))


@pytest.mark.parametrize("name", ["tokenizer.json", "additional_chat_templates/tool.jinja"])
@pytest.mark.parametrize("target", ["/dev/zero", "/proc/kmsg", ""], ids=["device", "waiting", "loop"])
def test_no_file_that_may_never_end_is_opened(model: Path, name: str, target: str) -> None:
    (model / name).parent.mkdir(exist_ok=True)
    (model / name).symlink_to(target or Path(name).name)

    with pytest.raises(ConfigError, match=rf"{name} is not a regular file"):
        model_folder(ModelSpec(str(model)))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "chat_template.jinja"])
def test_a_small_file_that_is_large_is_not_read(model: Path, name: str) -> None:
    with (model / name).open("a") as file:
        file.truncate(5 << 30)

    with pytest.raises(ConfigError, match=rf"{name} has 5,368,709,120 bytes"):
        model_folder(ModelSpec(str(model)))


def test_a_folder_around_the_model_names_it(model: Path) -> None:
    inner = model / "inner"
    inner.mkdir()
    for path in (model / "config.json", model / "model.safetensors"):
        path.rename(inner / path.name)

    with pytest.raises(ConfigError, match=f"did you mean {inner}"):
        find_local_folder(ModelSpec(str(model)))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")

    with pytest.raises(ConfigError, match="use gguf:FILE"):
        find_local_folder(ModelSpec(str(path)))


def test_the_numbers_of_a_file_are_counted_by_its_head(model: Path) -> None:
    assert count_weights(model) == {"F32": 205}


@pytest.mark.parametrize("cut", [0, 4, 20, 200])
def test_a_file_that_was_cut_is_told_from_its_head(model: Path, cut: int) -> None:
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:cut])

    with pytest.raises(ConfigError, match="download the file again"):
        count_weights(model)


def test_weights_that_do_not_fit_are_refused_with_what_to_do(model: Path) -> None:
    check_memory(model, 10**9, 2, 3 * 10**9)
    check_memory(model, 10**9, 4, None)
    with pytest.raises(ConfigError, match=r"needs about 4\.2 GB .* 3\.0 GB are free; .*dtype=bfloat16"):
        check_memory(model, 10**9, 4, 3 * 10**9)


def test_this_machine_says_how_much_memory_is_free() -> None:
    found = available_memory()

    assert found is None or found > 0


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    def missing(name: str) -> object:
        raise ImportError(name=name)

    monkeypatch.setattr(transformers_model, "import_module", missing)

    with pytest.raises(ConfigError, match="a model of transformers needs the extra local"):
        LocalModel(f"local:{model}").generator()
