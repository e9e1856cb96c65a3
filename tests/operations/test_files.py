"""Files of the user are read within bounds."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from taiwa.kernel import attachments
from taiwa.kernel.errors import InputError
from taiwa.operations import batch
from tests.cli.conftest import Place, Taiwa, place, taiwa

__all__ = ["place", "taiwa"]
COMMANDS = {
    "import": ("import", "{file}"),
    "parse": ("parse", "{file}", "--type", "{schema}"),
    "the type of parse": ("parse", "{schema}", "--type", "{file}.json"),
    "batch": ("batch", "plain", "{file}", "--mode", "map"),
    "rows of extract": ("extract", "{schema}", "--file", "{file}"),
    "a grammar": ("explain", "--grammar", "{file}"),
    "a schema": ("explain", "--schema", "{file}"),
}


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    return path


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_named_pipe_or_a_device_is_refused_at_once(
    taiwa: Taiwa, tmp_path: Path, schema: Path, kind: str, command: tuple[str, ...]
) -> None:
    file = tmp_path / "endless"
    suffixed = tmp_path / "endless.json"
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    suffixed.symlink_to(file)

    refused = taiwa(*(word.format(file=file, schema=schema) for word in command))

    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "is not a regular file; pipe its content in and pass -" in refused.err


@pytest.mark.parametrize("command", [("import", "-"), ("parse", "-", "--type", "{schema}")])
def test_endless_standard_input_is_cut_off(
    taiwa: Taiwa, schema: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(attachments, "MAX_FILE_BYTES", 1_000)

    refused = taiwa(*(word.format(schema=schema) for word in command), input=b"x" * 1_001)

    assert (refused.code, refused.err) == (
        2, "taiwa: standard input is too large; at most 1,000 bytes are read\n",
    )  # fmt: skip


def test_endless_rows_are_cut_off(taiwa: Taiwa, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MAX_PIPED_BYTES", 1_000)

    refused = taiwa("batch", "plain", "-", "--mode", "map", "--dry-run", input=b"x\n" * 501)

    assert refused.code == 2
    assert refused.err == "taiwa: standard input has 1,000 bytes or more; write it to a file, and name the file\n"


def test_a_file_that_is_too_large_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_FILE_BYTES", 3)
    path = tmp_path / "long.txt"
    path.write_bytes(b"four")

    with pytest.raises(InputError, match=r"long\.txt is too large; at most 3 bytes are read$"):
        attachments.read_file(path)


def test_a_pipe_that_the_shell_passes_by_name_is_read(place: Place, schema: Path) -> None:
    command = f"{sys.executable} -m taiwa parse <(echo '{{\"a\": 1}}') --type {schema} --json"

    done = subprocess.run(
        ["bash", "-c", command], check=True, capture_output=True, text=True, env=place.environment()
    )  # fmt: skip

    assert done.stdout == '{"value": {"a": 1}, "fixes": [], "guessed": false}\n'


def test_a_pipe_of_this_process_is_read_to_its_end() -> None:
    reader, writer = os.pipe()
    thread = threading.Thread(target=lambda: (os.write(writer, b"one\n"), os.close(writer)))
    thread.start()

    assert attachments.read_file(Path(f"/dev/fd/{reader}")) == "one\n"
    thread.join()
    os.close(reader)
