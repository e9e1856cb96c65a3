"""`taiwa index` and `taiwa find`: a folder of documents, and what is found in it."""

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from taiwa.cli.index import cut
from taiwa.cli.output import bracketed
from tests.cli.conftest import Taiwa
from tests.retrieval.documents import pdf


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "handbook"
    made.mkdir()
    (made / "leave.md").write_text("# Leave\n\nTen days of holiday.\n\n## Sick leave\n\nTell your lead.")
    (made / "休暇.txt").write_bytes("有給休暇は十日です。申請は前の週までに。".encode("euc_jp"))
    (made / "travel.pdf").write_bytes(pdf("Travel by train.", "Keep receipts.", title="Travel"))
    (made / "pay.md").write_text("---\naccess: [group:hr]\n---\nsalary table")
    (made / "scan.pdf").write_bytes(pdf(""))
    return made


def test_a_folder_is_indexed_and_found(taiwa: Taiwa, folder: Path) -> None:
    result = taiwa.ok("index", str(folder))

    assert result.lines[0].startswith("handbook: 4 documents, 6 passages (files: 5 new; ")
    assert any("scan.pdf" in line and "no text layer" in line for line in result.lines)
    found = taiwa.ok("find", "sick leaves").lines
    assert found[0].startswith("1. leave.md › Leave › Sick leave  ")
    assert found[1] == "   ## [Sick] [leave]  Tell your lead."
    assert "[休暇]は" in taiwa.ok("find", "休暇の申請", "--in", "handbook").out
    assert "travel.pdf, page 2" in taiwa.ok("find", "receipts").out


def test_an_index_keeps_its_name_and_its_language(taiwa: Taiwa, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taiwa.ok("index", str(folder), "--name", "kept", "--language", "German")
    monkeypatch.chdir(folder)

    for place in ("kept", "."):
        taiwa.ok("index", place, "--name", "kept", "--language", "german")
        for option, own in (("name", "kept"), ("language", "german")):
            refused = taiwa("index", place, f"--{option}", "english")
            assert refused.code == 2
            assert f"has the {option} '{own}'; remove it to change that: taiwa index remove kept" in refused.err


def test_programs_get_the_place_and_the_marks(taiwa: Taiwa, folder: Path) -> None:
    (row,) = taiwa.ok("find", "receipts", "--in", str(folder), "--json").json

    assert (row["path"], row["page"], row["title"]) == ("travel.pdf", 2, "Travel")
    assert [row["text"][start:end] for start, end in row["marks"]] == ["receipts"]
    assert row["end"] - row["start"] == len(row["text"])
    assert row["score"] > 0


def test_a_folder_named_on_the_way_is_brought_up_to_date_each_time(taiwa: Taiwa, folder: Path) -> None:
    taiwa.ok("find", "apples", "--in", str(folder))
    (folder / "new.md").write_text("apples")

    found = taiwa.ok("find", "apples", "--in", str(folder))

    assert found.lines[0].startswith("1. new.md")
    assert "scan.pdf: no text layer" in found.err
    assert [row["index"] for row in taiwa.ok("index", "list", "--json").json] == ["handbook"]


@pytest.mark.parametrize("place", ["notes", "./notes"])
def test_an_index_answers_from_its_folder_as_it_is_now_however_it_is_named(
    taiwa: Taiwa, folder: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    words = ("--in", place)
    folder = folder.rename(folder.with_name("notes"))
    monkeypatch.chdir(folder.parent)
    taiwa.ok("index", "./notes")
    (folder / "leave.md").write_text("Twelve weeks of vacation.")
    (folder / "travel.pdf").unlink()

    assert [row["path"] for row in taiwa.ok("find", "vacation", *words, "--json").json] == ["leave.md"]
    assert taiwa.ok("find", "holiday", *words, "--json").json == []
    assert taiwa.ok("find", "receipts", *words, "--json").json == []
    assert "Twelve weeks" in taiwa.ok("ask", "How long is the vacation?", *words).out
    (folder / "leave.md").write_text("Thirteen weeks of vacation.")
    assert "Thirteen weeks" in taiwa.ok("find", "vacation").out
    taiwa.ok("index", "remove", "notes")


def test_an_index_whose_folder_is_gone_is_searched_with_a_warning(taiwa: Taiwa, folder: Path) -> None:
    taiwa.ok("index", str(folder))
    folder.rename(folder.with_name("elsewhere"))

    found = taiwa.ok("find", "receipts", "--in", "handbook")

    assert "travel.pdf" in found.out
    assert "searched as it was indexed before" in found.err


def test_the_owner_sees_the_rules_and_who_may_see_what(taiwa: Taiwa, folder: Path) -> None:
    (folder / ".taiwa-access.yaml").write_text("'*.pdf': [group:staff]")
    (folder / "shut.md").write_text("---\nAccess: [group:hr]\n---\nsecret")
    taiwa.ok("index", str(folder))

    shown = taiwa.ok("index", "show", "handbook", "--access")
    data = taiwa.ok("index", "show", "handbook", "--access", "--json").json

    assert [(row["pattern"], row["for"], row["files"]) for row in data["rules"]] == [("*.pdf", ["group:staff"], 2)]
    assert {row["path"]: row["audience"] for row in data["files"]}["shut.md"] == [[]]
    assert ".taiwa-access.yaml:1" in shown.out
    assert "closed to everyone" in shown.out
    (folder / ".taiwa-access.yaml").write_text("'*.PDF': [group:staff]")
    refused = taiwa("index", str(folder))
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
    assert "matches no file" in refused.err


def test_restricted_documents_are_neither_found_nor_listed(taiwa: Taiwa, folder: Path) -> None:
    taiwa.ok("index", str(folder), "--json")

    assert taiwa.ok("find", "salary", "--json").json == []
    assert "no visible passage" in taiwa.ok("find", "salary").err
    assert len(taiwa.ok("find", "salary " * 9_000).err) < 300
    assert [row["path"] for row in taiwa.ok("find", "salary", "--as", "group:hr", "--json").json] == ["pay.md"]
    assert "pay.md" not in taiwa.ok("index", "show", "handbook").out
    shown = taiwa.ok("index", "show", "handbook", "--all", "--json").json
    assert {each["path"]: each["audience"] for each in shown["files"]}["pay.md"] == [["group:hr"]]


def test_indexes_are_listed_refreshed_by_name_and_removed(taiwa: Taiwa, folder: Path) -> None:
    assert "there are no indexes yet" in taiwa.ok("index", "list").err
    taiwa.ok("index", str(folder), "--name", "rules")
    (folder / "leave.md").unlink()

    again = taiwa.ok("index", "rules", "--json").json

    assert (again["index"], again["removed"], again["same"]) == ("rules", 1, 4)
    assert taiwa.ok("index", "list").lines[1].split()[0] == "rules"
    assert taiwa.ok("index", "remove", "rules").out == "removed rules\n"
    assert taiwa.ok("index", "list", "--json").json == []
    assert folder.is_dir()


def test_a_folder_that_is_called_like_a_command_is_written_with_a_dot(
    taiwa: Taiwa, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "list").mkdir()
    (folder / "list" / "a.md").write_text("apples")

    assert taiwa.ok("index", "./list", "--json").json["index"] == "list"
    assert taiwa.ok("index", "list", "--json").json[0]["index"] == "list"


def test_folders_of_the_same_name_get_different_indexes(taiwa: Taiwa, tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place / "docs").mkdir(parents=True)
        (tmp_path / place / "docs" / "x.md").write_text(f"apples {place}")

    names = [taiwa.ok("index", str(tmp_path / place / "docs"), "--json").json["index"] for place in ("a", "b", "a")]

    assert names == ["docs", "docs-2", "docs"]
    assert {row["path"] for row in taiwa.ok("find", "apples", "--json").json} == {"docs/x.md", "docs-2/x.md"}


@pytest.mark.slow
def test_two_commands_at_once_make_one_index_and_both_end_well(taiwa: Taiwa, folder: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "shared.db")
    both = [taiwa.fork("index", str(folder), "--json", "--store", store) for _ in range(2)]

    result = [json.loads(one.communicate()[0]) for one in both]

    assert [one.returncode for one in both] == [0, 0]
    assert {each["index"] for each in result} == {"handbook"}
    assert sorted(each["added"] for each in result) == [0, 5]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("index", "nowhere"), "folder nowhere not found"),
        (("index", "show", "nothing"), "index 'nothing' not found"),
        (("index", "remove", "nothing"), "index 'nothing' not found"),
        (("find", "x"), "no index found"),
        (("index", "docs", "--store", "pyproject.toml/taiwa.db"), "pyproject.toml"),
        (("find", " "), "at least one word"),
        (("find", "x", "--in", "nowhere"), "neither an index nor a folder"),
        (("find", "x", "--in", "-"), "save standard input to a file"),
        (("index", ".", "--language", "klingon"), "unknown stemmer language 'klingon'"),
        (("index", ".", "--name", "a/b"), "cannot be called 'a/b'"),
    ],
)
def test_errors_name_the_remedy(taiwa: Taiwa, words: tuple[str, ...], expected: str) -> None:
    refused = taiwa(*words)

    assert (refused.code, refused.out) == (2, "")
    assert expected in refused.err
    assert "Traceback" not in refused.err


def test_rules_that_cannot_be_understood_index_nothing(taiwa: Taiwa, folder: Path) -> None:
    (folder / ".taiwa-access.yaml").write_text("pay.md: 3")

    refused = taiwa("index", str(folder))

    assert refused.code == 2
    assert ".taiwa-access.yaml:1: the rule 'pay.md'" in refused.err
    assert taiwa.ok("find", "holiday", "--json").json == []


def test_a_name_with_control_codes_does_not_reach_the_terminal(taiwa: Taiwa, folder: Path) -> None:
    (folder / "evil\x1b[2J.md").write_text("apples \x1b]0;x\x07")

    assert "\x1b" not in taiwa.ok("find", "apples", "--in", str(folder)).out
    assert json.loads(taiwa.ok("find", "apples", "--json").out)[0]["path"] == "evil\x1b[2J.md"


@pytest.mark.parametrize(
    ("text", "mark", "cells", "shown"),
    [
        ("short", (0, 5), 10, "[short]"),
        ("一二三四五六七八九十", (5, 6), 9, "…五[六]七…"),
        ("a b\nc", (2, 3), 9, "a [b] c"),
        ("x" * 50 + "y", (50, 51), 10, "…" + "x" * 7 + "[y]"),
    ],
)
def test_an_excerpt_is_cut_by_cells_around_what_was_found(
    text: str, mark: tuple[int, int], cells: int, shown: str
) -> None:
    part, marks = cut(text, (mark,), cells)

    assert bracketed(part, marks) == shown
    assert cell_len(part) <= cells


def test_the_library_stands_beside_the_store(taiwa: Taiwa, folder: Path) -> None:
    taiwa.ok("index", str(folder), "--store", str(folder.parent / "kept" / "own.db"))

    assert sorted(each.name for each in (folder.parent / "kept").iterdir()) == ["own-library.db", "own-library.words"]
