"""Named pipes, devices and files that can be opened and not read, at every place that takes a file: one line, and no wait."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from taiwa.operations import batch
from tests.cli.conftest import ModelServer, Place, Taiwa

KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "unreadable": lambda path: path.symlink_to("/proc/self/mem"),
    "waiting": lambda path: path.symlink_to("/proc/kmsg"),
    "loop": lambda path: path.symlink_to(path.name),
}
DOORS = (
    "say -a FILE Hi", "say --attach-as-text -a FILE.pdf Hi", "say -f FILE Hi", "say FILE.md Hi", "say --schema FILE.json Hi",
    "say --store FILE.db Hi", "log --store FILE.db", "fsck --store FILE.db", "ask --user FILE.yaml Hi?",
    "ask --policy FILE.md Hi?", "generate --grammar FILE.lark Hi", "explain --regex a+ --vocab FILE.json a",
    "explain --regex a+ --vocab FILE.tiktoken a", "extract FILE.json Hi", "extract int --file FILE.txt", "batch plain FILE.csv",
    "batch plain FILE.jsonl", "import FILE.jsonl", "apps check FILE.md", "apps confirm FILE.md",
    "solve --examples FILE.yaml 1+1?", "user set ann --file FILE.yaml", "eval reason --data FILE.jsonl", "say -m gguf:FILE.gguf Hi",
    "chat FILE.md", "say --in FILE.md Hi", "schema FILE.py:Type", "tools show FILE.py:tool", "index FILE.md --name tea", "find tea --in FILE.md",
    "serve --port 0 --embeddings FILE",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_file_is_one_line(
    taiwa: Taiwa, place: Place, model_server: ModelServer, door: str, kind: str
) -> None:
    model_server("no")
    name = next(word for word in door.replace(":", " ").split() if word.startswith("FILE"))
    KINDS[kind](place.folder / name)

    refused = taiwa(*(word.replace("FILE", f"{place.folder}/FILE") for word in door.split()))

    assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused
    assert "unknown" not in refused.err
    assert model_server.seen == []


@pytest.mark.parametrize(
    "command",
    ["schema FILE.py:Type", "tools show FILE.py:tool", "apps check FILE.md", "explain --vocab FILE.json --regex a a"],
)
def test_a_file_of_ten_gigabytes_is_not_read(taiwa: Taiwa, place: Place, command: str) -> None:
    name = next(word for word in command.split() if word.startswith("FILE")).partition(":")[0]
    with (place.folder / name).open("w") as file:
        file.truncate(10 << 30)

    refused = taiwa(*(word.replace("FILE", f"{place.folder}/FILE") for word in command.split()))

    assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused


def test_rows_of_a_file_of_the_system_are_read_as_far_as_those_of_a_pipe(
    taiwa: Taiwa, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "MAX_PIPED_BYTES", 10_000)
    (place.folder / "rows.txt").symlink_to("/proc/self/pagemap")

    refused = taiwa("batch", "plain", str(place.folder / "rows.txt"))

    assert (refused.code, "rows.txt has 10,000 bytes or more" in refused.err) == (2, True), refused


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["config.yaml", "keys.json", "probes.json", "server.key", "tools.json"])
def test_a_file_of_the_settings_that_is_none_is_one_line(
    taiwa: Taiwa, place: Place, model_server: ModelServer, name: str, kind: str
) -> None:
    model_server("no")
    file = place.config.parent / name
    file.unlink(missing_ok=True)
    KINDS[kind](file)

    refused = taiwa(*(("serve", "--port", "0") if name == "server.key" else ("say", "-m", "openai:x", "Hi")))

    assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_of_a_sentence_model_that_is_none_is_one_line(taiwa: Taiwa, place: Place, name: str, kind: str) -> None:
    (place.folder / "tea.md").write_text("Tea is green.")
    (place.folder / "config.json").write_text('{"model_type": "bert"}')
    (place.folder / name).unlink(missing_ok=True)
    KINDS[kind](place.folder / name)

    refused = taiwa("index", str(place.folder / "tea.md"), "--name", "tea", "--embeddings", str(place.folder))

    assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused
    assert name in refused.err


@pytest.mark.parametrize("kind", KINDS)
def test_a_manifest_of_ollama_that_is_no_file_is_passed_over(
    taiwa: Taiwa, place: Place, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    manifest = place.folder / "manifests" / "host" / "library" / "qwen" / "latest"
    manifest.parent.mkdir(parents=True)
    KINDS[kind](manifest)
    monkeypatch.setenv("OLLAMA_MODELS", str(place.folder))

    assert taiwa("models", "list").code == 0


def test_a_store_that_is_no_file_is_named_by_doctor(taiwa: Taiwa, place: Place) -> None:
    for kind, make in KINDS.items():
        make(place.folder / kind)

        found = taiwa("doctor", "--store", str(place.folder / kind))
        assert (found.code, f"{kind} {'cannot be written' if kind == 'loop' else 'is not a store'}" in found.out) == (
            1,
            True,
        )
