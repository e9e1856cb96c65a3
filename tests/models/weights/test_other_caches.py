"""Files of other programs: found where these keep them, once each, and only if they are models."""

import json
from pathlib import Path

import pytest

from taiwa.models.weights.other_caches import find_files

DIGEST = "a" * 64


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def write(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def write_manifest(home: Path, digest: str, kind: str = "model") -> None:
    layer = {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": digest, "size": 4}
    path = home / ".ollama/models/manifests/registry.ollama.ai/library/qwen2.5/0.5b"
    write(path, json.dumps({"schemaVersion": 2, "layers": [layer]}).encode())


def found() -> list[tuple[str, str, str]]:
    return [(each.program, each.name, each.model) for each in find_files()]


def test_a_model_of_ollama_is_the_blob_that_its_manifest_names(home: Path) -> None:
    write_manifest(home, f"sha256:{DIGEST}")
    write(home / f".ollama/models/blobs/sha256-{DIGEST}")

    assert found() == [("Ollama", "qwen2.5:0.5b", f"gguf:~/.ollama/models/blobs/sha256-{DIGEST}")]


@pytest.mark.parametrize("digest", [f"sha256:../../{DIGEST}", "sha256:", "", DIGEST, "sha256:" + "b" * 64])
def test_a_manifest_that_names_no_blob_is_skipped(home: Path, digest: str) -> None:
    write_manifest(home, digest)

    assert found() == []


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"layers": 5}', b'{"layers": [null, 5, {}]}', b"[" * 100_000])
def test_a_broken_manifest_is_skipped(home: Path, raw: bytes) -> None:
    write(home / ".ollama/models/manifests/registry.ollama.ai/library/x/latest", raw)

    assert found() == []


def test_a_layer_that_is_not_a_model_is_skipped(home: Path) -> None:
    write_manifest(home, f"sha256:{DIGEST}", kind="projector")
    write(home / f".ollama/models/blobs/sha256-{DIGEST}")

    assert found() == []


def test_files_of_lm_studio_and_llama_cpp_are_found(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / ".lmstudio/models/publisher/repo/model-Q4.gguf")
    write(home / ".lmstudio/models/publisher/repo/mmproj-model.gguf")
    write(tmp_path / "cache/llama.cpp/owner_repo_file.gguf")
    write(tmp_path / "cache/llama.cpp/file.gguf.json")
    write(tmp_path / "elsewhere/big-00001-of-00002.gguf")
    write(tmp_path / "elsewhere/big-00002-of-00002.gguf")

    assert [name for _, name, _ in found()] == ["model-Q4.gguf", "owner_repo_file.gguf"]
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "elsewhere"))
    assert found()[1] == ("llama.cpp", "big-00001-of-00002.gguf", f"gguf:{tmp_path}/elsewhere/big-00001-of-00002.gguf")


def test_a_file_of_the_hub_is_found_once_however_many_revisions_link_to_it(tmp_path: Path) -> None:
    repo = tmp_path / "cache/huggingface/hub/models--owner--repo"
    blob = write(repo / "blobs/abc")
    for revision in ("1", "2"):
        link = repo / "snapshots" / revision / "file.gguf"
        link.parent.mkdir(parents=True)
        link.symlink_to(blob)
    (repo / "snapshots/2/dangling.gguf").symlink_to(repo / "blobs/none")
    (repo / "snapshots/2/circle.gguf").symlink_to(repo / "snapshots/2/circle.gguf")

    assert [(program, name) for program, name, _ in found()] == [("Hugging Face", "file.gguf")]
