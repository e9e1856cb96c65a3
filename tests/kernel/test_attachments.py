"""Attachments: what may be attached, and how a record refers to it."""

import os
import pickle
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from taiwa.kernel import attachments as module
from taiwa.kernel.attachments import MAX_COUNT, Attachment, read_attachments, read_reference
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Request, Response, assistant, user
from taiwa.kernel.serialization import digest, record, restore
from taiwa.kernel.usage_limits import max_usage
from tests.files import FILES, PNG, TEXT
from tests.strategies import attachments, texts


@pytest.mark.parametrize("media_type", FILES)
@pytest.mark.parametrize("name", ["x", "x.png", "x.txt"])
def test_the_beginning_of_the_bytes_decides_the_type_and_not_the_name(media_type: str, name: str) -> None:
    found = Attachment.from_bytes(FILES[media_type], name)

    assert (found.media_type, found.size, found.name) == (media_type, len(FILES[media_type]), name)
    assert found.sha256 == sha256(FILES[media_type]).hexdigest()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cat.png is empty"),
        (b"PK\x03\x04", "cat.png is neither a PNG, JPEG, WebP or GIF image, a PDF, nor text in UTF-8"),
        (b"a\x00b", "nor text in UTF-8"),
        ("é".encode("latin-1"), "nor text in UTF-8"),
    ],
)
def test_what_no_model_reads_is_refused_by_name(data: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Attachment.from_bytes(data, "cat.png")


def test_a_file_is_named_by_the_last_part_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(PNG)

    assert Attachment.from_path(tmp_path / "cat.png") == Attachment.from_bytes(PNG, "cat.png")
    assert Attachment.from_path(str(tmp_path / "cat.png")).data == PNG


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    path = tmp_path / "long.txt"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(InputError, match=r"long\.txt is too large; an attachment may have 100 bytes"):
        Attachment.from_path(path)


def test_folders_pipes_devices_and_missing_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for path, why in (
        (tmp_path, "is a folder"),
        (tmp_path / "pipe", "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path / "gone", "No such file"),
        ("a\0b", "invalid file name"),
    ):
        with pytest.raises(InputError, match=why):
            Attachment.from_path(path)


@pytest.mark.parametrize("url", ["https://example.org/cat.png", " HTTP://x", "data:image/png;base64,AAAA", "ftp://x/y"])
def test_nothing_is_downloaded(url: str) -> None:
    with pytest.raises(InputError, match=r"attachments are not downloaded: save .* as a file and attach that"):
        Attachment.from_path(url)


def test_paths_bytes_and_attachments_may_be_mixed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    named = Attachment.from_bytes(PNG, "cat.png")

    found = read_attachments([tmp_path / "a.txt", PNG, named])

    assert [each.label for each in found] == ["a.txt", f"{sha256(PNG).hexdigest()[:8]}.png", "cat.png"]
    assert found[1] == replace(named, name="")


def test_a_message_of_the_user_takes_what_every_call_takes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)

    message = user("What?", [tmp_path / "a.txt", PNG])

    assert message.attachments == read_attachments([tmp_path / "a.txt", PNG])
    assert message.text == "What?"


@pytest.mark.parametrize("alone", ["cat.png", b"x", Path("cat.png"), Attachment.from_bytes(PNG)])
def test_one_attachment_outside_a_list_is_refused(alone: Any) -> None:
    with pytest.raises(InputError, match="attachments must be a list"):
        read_attachments(alone)


def test_too_many_and_other_things_are_refused() -> None:
    wrong: Any = [1]

    with pytest.raises(InputError, match="at most 20 attachments, got 21"):
        read_attachments([PNG] * (MAX_COUNT + 1))
    with pytest.raises(InputError, match="must be a path, bytes or an Attachment, got a int"):
        read_attachments(wrong)


@given(attachments)
def test_records_hashes_and_comparisons_leave_out_the_bytes(attachment: Attachment) -> None:
    bare = replace(attachment, data=b"")

    assert restore(record(attachment)) == attachment == bare
    assert restore(record(attachment)).data == b""
    assert digest(attachment) == digest(bare)
    assert repr(attachment) == repr(bare)
    assert pickle.loads(pickle.dumps(attachment)).data == attachment.data


@given(attachments)
def test_a_reference_is_read_back(attachment: Attachment) -> None:
    assert read_reference(attachment.reference()) == attachment


GOOD = Attachment.from_bytes(PNG, "cat.png").reference()


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "0" * 63},
        {"sha256": "G" * 64},
        {"sha256": None},
        {"type": "text/html"},
        {"type": ["image/png"]},
        {"size": 0},
        {"size": -1},
        {"size": True},
        {"size": 1e3},
        {"size": 20_000_001},
        {"name": 5},
        {"name": "../cat.png"},
        {"name": "a\nb"},
        {"more": 1},
    ],
)
def test_a_reference_of_a_stranger_is_checked(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="an attachment must have sha256, type, size and perhaps a name"):
        read_reference(GOOD | change)


@given(texts)
def test_a_name_is_one_printable_line_without_folders(name: str) -> None:
    found = Attachment.from_bytes(PNG, name)

    assert found.name.isprintable()
    assert "/" not in found.name
    assert Attachment.from_bytes(PNG, found.name) == found
    assert found.label


def test_missing_bytes_are_named() -> None:
    bare = replace(Attachment.from_bytes(PNG, "cat.png"), data=b"")

    with pytest.raises(InputError, match=r"the bytes of the attachment cat\.png are missing"):
        bare.require_data()


def test_the_bound_on_an_interrupted_call_covers_its_attachments() -> None:
    def bound(data: bytes) -> int:
        request = Request((user("What is this?", [Attachment.from_bytes(data)]),))
        return max_usage(request, Response(assistant(""))).input_tokens

    assert bound(PNG) > 50_000
    assert bound(FILES["application/pdf"]) > 1_000_000
    assert bound(b"a" * 5_000) > 5_000
