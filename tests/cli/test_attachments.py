"""Attachments on the command line: what is sent, what is refused in one line, and what is shown afterwards."""

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from taiwa.store import Store
from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.files import PDF, PNG, TEXT
from tests.peers.faults import silence
from tests.retrieval.documents import pdf

IMAGE_URI = f"data:image/png;base64,{b64encode(PNG).decode()}"


@pytest.fixture
def files(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place.folder)
    for name, data in {"cat.png": PNG, "notes.txt": TEXT, "report.pdf": PDF}.items():
        (place.folder / name).write_bytes(data)
    return place.folder


def content(model_server: ModelServer, number: int = -1) -> Any:
    return model_server.requests[number]["messages"][-1]["content"]


def text_part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


IMAGE_PART = {"type": "image_url", "image_url": {"url": IMAGE_URI}}


def test_say_sends_attachments_before_the_text_and_again_with_the_next_turn(
    taiwa: Taiwa, model_server: ModelServer, files: Path
) -> None:
    model_server("A cat.", "Yes.")

    taiwa.ok("say", "-a", "cat.png", "--attach", "notes.txt", "What is this?")
    taiwa.ok("say", "-c", "Sure?")

    assert content(model_server, 0) == [
        IMAGE_PART,
        text_part(f"notes.txt\n```\n{TEXT.decode()}```\n\nWhat is this?"),
    ]
    assert model_server.requests[1]["messages"][0] == model_server.requests[0]["messages"][0]


@pytest.mark.parametrize("words", [("What?",), ("plain", "What?"), ()])
def test_bytes_are_piped_in(taiwa: Taiwa, model_server: ModelServer, files: Path, words: tuple[str, ...]) -> None:
    model_server("A cat.")

    taiwa.ok("say", "-a", "-", *words, input=PNG)

    assert content(model_server) == [IMAGE_PART, *([text_part("What?")] if words else [])]


def test_an_edit_and_a_retry_keep_the_attachments_unless_others_are_given(
    taiwa: Taiwa, model_server: ModelServer, files: Path
) -> None:
    model_server("A cat.", "A cat.", "A cat.", "Two teas.")
    taiwa.ok("say", "-a", "cat.png", "What is this?")

    taiwa.ok("retry")
    taiwa.ok("edit", "1", "What is that?")
    assert content(model_server) == [IMAGE_PART, text_part("What is that?")]
    taiwa.ok("edit", "1", "-a", "notes.txt", "And this?")
    assert content(model_server).endswith("And this?")


def test_extract_and_generate_take_attachments(taiwa: Taiwa, model_server: ModelServer, files: Path) -> None:
    (files / "order.json").write_text('{"type": "object", "properties": {"cups": {"type": "integer"}}}')
    model_server('{"cups": 2}', '{"cups": 2}', "A cat.")

    assert taiwa.ok("extract", "order.json", "-a", "cat.png").json == {"cups": 2}
    assert content(model_server) == [IMAGE_PART]
    assert taiwa.ok("extract", "order.json", "Read it.", "-a", "cat.png").json == {"cups": 2}
    assert content(model_server) == [IMAGE_PART, text_part("Read it.")]
    assert taiwa.ok("generate", "What is this?", "-a", "cat.png").out == "A cat.\n"
    assert content(model_server) == [IMAGE_PART, text_part("What is this?")]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-a", "gone.png", "x"), "gone.png: No such file or directory"),
        (("-a", "https://example.org/cat.png", "x"), "attachments are not downloaded"),
        (("-a", "pipe", "x"), "pipe is not a regular file"),
        (("-a", ".", "x"), ". is a folder"),
        (("-a", "empty", "x"), "empty is empty"),
        (("-a", "zip", "x"), "zip is neither a PNG, JPEG, WebP or GIF image, a PDF, nor text in UTF-8"),
        (("-a", "-", "-a", "-", "x"), "standard input (-) can be attached once"),
        (("-a", "-", "x"), "the attachment is empty"),
        ((*("-a", "cat.png") * 21, "x"), "a message can have at most 20 attachments, got 21"),
        (
            ("-a", "report.pdf", "x"),
            "cannot read PDFs (report.pdf); attach its text (--attach-as-text; in Python taiwa.document_text)",
        ),
        (("--attach-as-text", "-a", "report.pdf", "x"), "report.pdf: broken: not a PDF that can be opened"),
    ],
)
def test_what_cannot_be_attached_is_one_line_and_nothing_is_sent(
    taiwa: Taiwa, model_server: ModelServer, files: Path, arguments: tuple[str, ...], why: str
) -> None:
    model_server("no")
    os.mkfifo(files / "pipe")
    (files / "empty").touch()
    (files / "zip").write_bytes(b"PK\x03\x04")

    result = taiwa("say", *arguments)

    assert (result.code, result.err.count("\n")) == (2, 1)
    assert why in result.err
    assert model_server.seen == []
    assert taiwa.ok("log", "--json").json == []


def test_the_text_of_a_pdf_is_attached_in_its_place(taiwa: Taiwa, model_server: ModelServer, files: Path) -> None:
    (files / "leave.pdf").write_bytes(pdf("You have 20 days of paid leave."))
    model_server("Twenty.", "Twenty.")

    taiwa.ok("say", "-a", "leave.pdf", "--attach-as-text", "How many days?")
    assert content(model_server) == "leave.pdf.txt\n```\nYou have 20 days of paid leave.\n```\n\nHow many days?"
    taiwa.ok("say", "-a", "-", "--attach-as-text", "How many days?", input=pdf("You have 20 days of paid leave."))
    assert "20 days of paid leave" in content(model_server)


def test_a_dry_run_names_attachments_and_has_the_exact_body(
    taiwa: Taiwa, model_server: ModelServer, files: Path
) -> None:
    model_server("A cat.")
    taiwa.ok("say", "-a", "cat.png", "What is this?")

    shown = taiwa.ok("say", "--dry-run", "-c", "-a", "notes.txt", "And this?").out
    body = taiwa.ok("say", "--dry-run", "-c", "-a", "notes.txt", "And this?", "--json").json["body"]

    assert "[cat.png: image/png, 69 bytes]" in shown
    assert "two teas" in shown
    assert "3 messages, and 1 image or PDF" in shown
    assert body["messages"][0]["content"][0] == IMAGE_PART
    assert len(model_server.seen) == 1


def test_chat_attaches_to_the_next_text_and_keeps_it_until_it_is_sent(
    taiwa: Taiwa, model_server: ModelServer, files: Path
) -> None:
    model_server("A cat.", "Yes.", "Two teas.")
    lines = "/attach cat.png\n/attach gone\nWhat?\nSure?\n/attach 'notes.txt'\n/attach\n/attach \"notes.txt\"\nRead.\n"

    result = taiwa("chat", input=lines)

    assert result.out == "A cat.\nYes.\nTwo teas.\n"
    assert content(model_server, 0) == [IMAGE_PART, text_part("What?")]
    assert content(model_server, 1) == "Sure?"
    assert content(model_server, 2).endswith("Read.")
    assert content(model_server, 2).count("two teas") == 1
    assert "attached to the next text: cat.png (image/png, 69 bytes)" in result.err


def test_a_text_that_fails_keeps_its_attachments_for_the_next_try(
    taiwa: Taiwa, model_server: ModelServer, files: Path
) -> None:
    from tests.peers.faults import status

    model_server(status(400, b'{"error": {"message": "no"}}'), "A cat.")

    taiwa("chat", input="/attach cat.png\nWhat?\nWhat?\n")

    assert [content(model_server, number) for number in (0, 1)] == [[IMAGE_PART, text_part("What?")]] * 2


def test_lists_name_the_attachments_of_a_turn_without_text(
    taiwa: Taiwa, model_server: ModelServer, files: Path
) -> None:
    model_server("A cat.")
    taiwa.ok("say", "-s", "cat", "-a", "cat.png", "-a", "notes.txt")

    assert taiwa.ok("log", "--json").json[0]["text"] == "cat.png, notes.txt"
    assert [line.split()[:2] for line in taiwa.ok("log", "cat").lines if line.startswith("attached")] == [
        ["attached:", "cat.png"], ["attached:", "notes.txt"],
    ]  # fmt: skip


def test_shown_and_exported_conversations_name_their_attachments(
    taiwa: Taiwa, model_server: ModelServer, files: Path
) -> None:
    (files / "a'<b>`.png").write_bytes(PNG)
    model_server("A cat.", "Two teas.")
    taiwa.ok("say", "-a", "a'<b>`.png", "-a", "notes.txt", "What is this?")

    assert "attached: notes.txt (text/plain, 17 bytes)" in taiwa.ok("show").out
    assert [each["name"] for each in taiwa.ok("show", "--json").json["attachments"]] == ["a'<b>`.png", "notes.txt"]
    markdown = taiwa.ok("export", "--format", "md").out
    assert "> `a'<b> .png (image/png, 69 bytes)`\n> `notes.txt (text/plain, 17 bytes)`\n" in markdown
    page = taiwa.ok("export", "--format", "html").out
    assert f'<img src="{IMAGE_URI}" alt="a&#x27;&lt;b&gt;`.png">' in page
    assert "img-src data:" in page
    assert 'src="http' not in page
    assert IMAGE_URI not in taiwa.ok("export", "--format", "html", "--no-attachments").out


def test_an_export_carries_the_bytes_unless_they_are_left_out(
    taiwa: Taiwa, model_server: ModelServer, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server("A cat.", "Yes.")
    taiwa.ok("say", "-s", "cat", "-a", "cat.png", "What is this?")
    whole, bare = (taiwa.ok("export", "cat", *more).out for more in ((), ("--no-attachments",)))
    monkeypatch.setenv("TAIWA_STORE", str(files / "other.db"))

    taiwa.ok("import", "-", input=bare)
    refused = taiwa("say", "-s", "cat", "Sure?")
    assert refused.code == 2
    assert "the bytes of the attachment cat.png are missing: an import left them out" in refused.err
    assert len(model_server.seen) == 1

    taiwa.ok("import", "-", input=whole)
    taiwa.ok("say", "-s", "cat", "Sure?")
    assert model_server.requests[-1]["messages"][0]["content"][0] == IMAGE_PART
    taiwa.ok("fsck")


def test_a_killed_turn_is_resumed_with_its_attachments(
    taiwa: Taiwa, model_server: ModelServer, files: Path, place: Place
) -> None:
    model_server.plays(silence())
    process = taiwa.fork("say", "-s", "cat", "-a", "cat.png", "What is this?")
    while not model_server.seen:
        assert process.poll() is None
    process.kill()
    process.communicate()
    (files / "cat.png").unlink()
    model_server("A cat.")

    assert "A cat." in taiwa.ok("resume").out

    assert content(model_server) == [IMAGE_PART, text_part("What is this?")]
    with Store.open(place.store) as store:
        assert [each.name for each in store.nodes.get(store.refs.tip("cat")).attachments] == ["cat.png"]


def test_rows_of_a_batch_have_attachments_beside_their_file(
    taiwa: Taiwa, model_server: ModelServer, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[dict[str, Any]] = [
        {"text": "What?", "attachments": ["cat.png"]},
        {"text": "What?", "attachments": ["notes.txt"]},
        {"text": "What?", "attachments": ["gone.png"]},
        {"text": "What?", "attachments": "cat.png"},
        {"text": "What?", "attachments": ["http://example.org/x.png"]},
    ]
    (files / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (files / "elsewhere").mkdir()
    monkeypatch.chdir(files / "elsewhere")
    model_server("A cat.", "Two teas.")

    result = taiwa("batch", "plain", "../rows.jsonl", "--mode", "map", "-j", "1")

    assert result.code == 1
    assert [row["answer"] for row in result.rows] == ["A cat.", "Two teas.", None, None, None]
    assert content(model_server, 0) == [IMAGE_PART, text_part("What?")]
    errors = [row["error"]["message"] for row in result.rows[2:]]
    assert "line 3: ../gone.png: No such file" in errors[0]
    assert errors[1] == "line 4: attachments must be a list of paths"
    assert "line 5: attachments are not downloaded" in errors[2]
    again = taiwa("batch", "plain", "../rows.jsonl", "--mode", "map", "-j", "1", "--resume")
    assert [row["answer"] for row in again.rows[:2]] == ["A cat.", "Two teas."]
    assert len(model_server.seen) == 2
