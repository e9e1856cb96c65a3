"""A folder and its index: what is new, changed, gone, closed, or no business of ours."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.retrieval import Index, Library, ingest, readers
from taiwa.retrieval.document_access import SIDECAR
from taiwa.retrieval.ingest import Folder
from tests.retrieval.documents import docx, pdf


def sources(index: Index, query: str, *who: str) -> list[str]:
    return sorted({passage.source for passage in index.find(query, 50, who)})


def problems(done: ingest.RefreshReport) -> dict[str, str]:
    return {problem.path: problem.why for problem in done.problems}


@pytest.fixture
def filled(index: Index, folder: Path) -> Index:
    (folder / "leave.md").write_text("# Leave\n\nTen days of holiday.")
    (folder / "kyuka.txt").write_bytes("有給休暇は十日です。申請は前の週までに。".encode("cp932"))
    (folder / "people.csv").write_text("name,phone\nAnn,12\n")
    (folder / "part").mkdir()
    (folder / "part" / "travel.pdf").write_bytes(pdf("Travel by train.", "Keep receipts.", outline=(("Receipts", 1),)))
    (folder / "part" / "meet.docx").write_bytes(docx(("Heading1", "Meetings"), "On Mondays."))
    (folder / "page.html").write_text("<h1>Safety</h1><p>Know the exits of your floor.</p>")
    index.refresh()
    return index


def test_every_format_is_found_with_its_place(filled: Index) -> None:
    assert sources(filled, "holidays") == ["leave.md"]
    assert sources(filled, "休暇の申請") == ["kyuka.txt"]
    assert sources(filled, "phone of Ann") == ["people.csv"]
    assert sources(filled, "exit") == ["page.html"]
    assert filled.find("mondays")[0].heading == ("Meetings",)
    receipts = filled.find("receipts")[0]
    assert (receipts.source, receipts.page, receipts.heading) == ("part/travel.pdf", 2, ("Receipts",))


def test_one_file_is_indexed_alone_with_the_rules_of_its_folder(library: Library, folder: Path) -> None:
    (folder / "part").mkdir()
    (folder / "part" / "pay.md").write_text("Pay is monthly.")
    (folder / "part" / "leave.md").write_text("Leave is yearly.")
    (folder / "part" / "plan.xyz").write_text("Plans are weekly.")
    (folder / SIDECAR).write_text("part/pay.md: [group:hr]\n")
    (folder / "part" / SIDECAR).write_text("leave.md: [user:ann]\n")
    pay, leave = (library.create(folder / "part" / name) for name in ("pay.md", "leave.md"))

    assert [pay.refresh().added, leave.refresh().added] == [1, 1]

    assert (pay.name, sources(pay, "pay"), sources(pay, "pay", "group:hr")) == ("pay.md", [], ["pay.md"])
    assert (sources(leave, "leave"), sources(leave, "leave", "user:ann")) == ([], ["leave.md"])
    assert sources(leave, "pay", "group:hr") == []
    (folder / "part" / "pay.md").write_text("Pay is weekly now, and this is new.")
    assert pay.refresh().changed == 1
    with pytest.raises(InputError, match="suffix is not that of a document"):
        Folder(folder / "part" / "plan.xyz")


def test_a_second_run_finds_nothing_to_do(filled: Index) -> None:
    again = filled.refresh()

    assert (again.added, again.changed, again.removed, again.same) == (0, 0, 0, 6)


def test_only_what_changed_is_read_again(filled: Index, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = readers.IsolatedReader.read

    def recording(self: readers.IsolatedReader, raw: bytes, kind: readers.DocumentFormat) -> readers.ReadDocument:
        read.append(kind)
        return original(self, raw, kind)

    monkeypatch.setattr(readers.IsolatedReader, "read", recording)
    (folder / "leave.md").write_text("# Leave\n\nTen weeks of vacation.")
    (folder / "kyuka.txt").unlink()
    (folder / "new.txt").write_text("brand new")
    os.utime(folder / "people.csv")  # the same bytes at another time

    done = filled.refresh()

    assert (done.added, done.changed, done.removed, done.same) == (1, 1, 1, 4)
    assert sorted(read) == ["markdown", "text"]
    assert sources(filled, "holidays") == []
    assert sources(filled, "vacation") == ["leave.md"]
    assert sources(filled, "休暇") == []


def test_a_change_within_the_same_second_and_of_the_same_size_is_seen(index: Index, folder: Path) -> None:
    path = folder / "a.txt"
    path.write_text("apples")
    index.refresh()
    when = path.stat().st_mtime_ns
    path.write_text("quince")
    os.utime(path, ns=(when, when))

    index.refresh()

    assert sources(index, "quince") == ["a.txt"]


def test_reading_an_unchanged_file_again_changes_no_score(index: Index, folder: Path) -> None:
    for name in "abc":
        (folder / f"{name}.txt").write_text("apples and pears " * (1 + ord(name) % 3))
    index.refresh()
    before = index.find("apples")

    for _ in range(3):
        os.utime(folder / "a.txt")
        assert index.refresh().changed == 0

    assert index.find("apples") == before


def test_a_folder_that_is_not_there_empties_nothing(filled: Index, folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))

    with pytest.raises(InputError, match=r"folder .* not found"):
        filled.refresh()

    assert sources(filled, "holidays") == ["leave.md"]


def test_what_cannot_be_read_is_a_row_and_no_end(index: Index, folder: Path) -> None:
    (folder / "good.md").write_text("apples")
    (folder / "scan.pdf").write_bytes(pdf(""))
    (folder / "locked.pdf").write_bytes(pdf("x", password="p"))
    (folder / "broken.docx").write_bytes(b"PK no")
    (folder / "binary.txt").write_bytes(bytes(range(9)) * 99)
    with (folder / "huge.csv").open("wb") as huge:
        huge.truncate(ingest.LARGEST_FILE + 1)

    done = index.refresh()

    assert set(problems(done)) == {"scan.pdf", "locked.pdf", "broken.docx", "binary.txt", "huge.csv"}
    assert "no text layer" in problems(done)["scan.pdf"]
    assert "larger than 64 MB" in problems(done)["huge.csv"]
    assert sources(index, "apples") == ["good.md"]
    assert problems(index.refresh()) == problems(done)
    assert index.summary().problems == 5


def test_a_fragment_is_kept_said_and_read_again(index: Index, folder: Path) -> None:
    (folder / "pages.pdf").write_bytes(pdf("1", "2"))

    first, again = index.refresh(), index.refresh()

    assert problems(first)["pages.pdf"] == problems(again)["pages.pdf"]
    assert "pages.pdf" in sources(index, "2")
    assert index.backend.known()["pages.pdf"].reader == readers.MISSING
    assert (again.added, again.changed) == (0, 0)


def test_what_was_mended_is_read(index: Index, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(b"broken")
    index.refresh()
    (folder / "a.pdf").write_bytes(pdf("apples"))

    done = index.refresh()

    assert (done.changed, done.problems) == (1, ())
    assert sources(index, "apples") == ["a.pdf"]


def test_no_file_outside_the_folder_is_read(index: Index, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret apples")
    (folder / "real.txt").write_text("apples")
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "linked").symlink_to(outside)
    (folder / "inner.txt").symlink_to(folder / "real.txt")
    (folder / "up").symlink_to("..")

    done = index.refresh()

    assert sources(index, "apples") == ["real.txt"]
    assert set(problems(done)) == {"link.txt", "linked", "up"}
    assert "leads out of the folder" in problems(done)["link.txt"]


def test_a_file_that_becomes_a_link_between_two_looks_is_not_followed(
    index: Index, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("secret apples")
    (folder / "part").mkdir()
    (folder / "part" / "a.txt").write_text("apples")
    looking = Folder(folder)
    files = [*looking.files()]
    (folder / "part" / "a.txt").unlink()
    (folder / "part").rmdir()
    (folder / "part").symlink_to(tmp_path)
    (tmp_path / "a.txt").symlink_to(tmp_path / "secret.txt")

    with pytest.raises(InputError, match="cannot be read"):
        looking.read(files[0].path)
    with pytest.raises(InputError, match="cannot be read"):
        looking.read("../secret.txt/../secret.txt")


def test_hidden_files_version_folders_pipes_and_other_kinds_are_left_out(index: Index, folder: Path) -> None:
    for place in (".git", ".hidden", "node_modules", "CVS"):
        (folder / place).mkdir()
        (folder / place / "a.md").write_text("apples")
    (folder / ".a.md").write_text("apples")
    (folder / "~$a.docx").write_text("apples")
    (folder / "a.png").write_bytes(b"apples")
    os.mkfifo(folder / "pipe.txt")

    done = index.refresh()

    assert sources(index, "apples") == []
    assert done.others == {".png": 1}
    assert done.problems == ()


def test_rules_and_front_matter_say_who_may_see_what(index: Index, folder: Path) -> None:
    (folder / "hr").mkdir()
    (folder / SIDECAR).write_text('hr/**: [group:hr, group:board]\n"**/salary*": group:board\n')
    (folder / "hr" / "rules.md").write_text("apples")
    (folder / "hr" / "salary.md").write_text("apples")
    (folder / "own.md").write_text("---\naccess: [user:ann]\n---\napples")
    (folder / "open.md").write_text("apples")
    (folder / "hr" / "own.md").write_text("---\naccess: everybody\n---\napples")

    index.refresh()

    assert sources(index, "apples") == ["open.md"]
    assert sources(index, "apples", "group:hr") == ["hr/rules.md", "open.md"]
    assert sources(index, "apples", "group:board") == ["hr/rules.md", "hr/salary.md", "open.md"]
    assert sources(index, "apples", "user:ann") == ["open.md", "own.md"]
    assert "hr/own.md" in sources(index, "apples", "group:hr", "everybody")


def test_changed_rules_hold_without_reading_the_documents_again(index: Index, folder: Path) -> None:
    (folder / "a.md").write_text("---\naccess: [x]\n---\napples")
    index.refresh()
    (folder / SIDECAR).write_text("a.md: [y]")

    done = index.refresh()

    assert done.changed == 1
    assert sources(index, "apples", "x") == []
    assert sources(index, "apples", "x", "y") == ["a.md"]
    (folder / SIDECAR).unlink()
    index.refresh()
    assert sources(index, "apples", "x") == ["a.md"]
    assert sources(index, "apples") == []


def test_a_part_of_a_folder_keeps_the_rules_of_the_whole(library: Library, folder: Path) -> None:
    (folder / "hr" / "deep").mkdir(parents=True)
    (folder / SIDECAR).write_text("hr/deep/*: [group:hr]")
    (folder / "hr" / SIDECAR).write_text("'*.md': [user:ann]")
    (folder / "hr" / "deep" / "a.txt").write_text("apples")
    index = library.create(folder / "hr" / "deep", "part")

    index.refresh()

    assert sources(index, "apples") == []
    assert sources(index, "apples", "group:hr") == ["a.txt"]


@pytest.mark.parametrize(
    "rules", ["- a list", "a.md: 3", "a.md: [3]", "a.md: {x: y}", "a: [b", "? [3]\n: [x]", "a.md: ''", "*.md: [x]"]
)
def test_rules_that_cannot_be_understood_stop_the_indexing(index: Index, folder: Path, rules: str) -> None:
    (folder / "a.md").write_text("apples")
    (folder / SIDECAR).write_text(rules)

    with pytest.raises(ConfigError, match=SIDECAR):
        index.refresh()

    assert sources(index, "apples") == []


@pytest.mark.parametrize("broken", ["hr.md: [group:boss", "hr.md: 3", "hrr.md: [group:boss]", None])
def test_rules_that_can_no_longer_be_understood_close_every_document(
    index: Index, folder: Path, broken: str | None
) -> None:
    (folder / "hr.md").write_text("---\naccess: [user:ann]\n---\napples")
    (folder / "open.md").write_text("apples")
    (folder / SIDECAR).write_text("hr.md: [group:hr]")
    index.refresh()
    assert sources(index, "apples", "group:hr", "user:ann") == ["hr.md", "open.md"]

    if broken is None:
        (folder / SIDECAR).unlink()
        (folder / SIDECAR).mkdir()
    else:
        (folder / SIDECAR).write_text(broken)
    trouble = index.catch_up()

    assert "closed to everyone until its access rules can be read" in trouble
    assert sources(index, "apples", "group:hr", "user:ann", "group:boss") == []
    if broken is None:
        (folder / SIDECAR).rmdir()
    (folder / SIDECAR).write_text("hr.md: [group:boss]")
    assert index.catch_up() == ""
    assert sources(index, "apples", "group:hr", "user:ann") == ["open.md"]
    assert sources(index, "apples", "group:boss", "user:ann") == ["hr.md", "open.md"]


def test_a_part_of_the_folder_that_can_no_longer_be_read_closes_every_document(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "open.md").write_text("apples")
    index.refresh()

    def refuse(*_: object, onerror: Callable[[OSError], None], **__: object) -> Iterator[Any]:
        onerror(PermissionError(13, "Permission denied", "hr"))
        yield from ()

    monkeypatch.setattr("taiwa.retrieval.ingest.os.fwalk", refuse)
    with pytest.raises(InputError, match="the folder hr cannot be read"):
        index.refresh()

    assert sources(index, "apples") == []


def test_a_rule_may_name_a_folder_that_looks_like_a_number(index: Index, folder: Path) -> None:
    (folder / "2024").mkdir()
    (folder / "2024" / "a.md").write_text("apples")
    (folder / SIDECAR).write_text("2024: [group:hr]")

    index.refresh()

    assert sources(index, "apples") == []
    assert sources(index, "apples", "group:hr") == ["2024/a.md"]


@pytest.mark.parametrize("rules", ["hr: [a]\nhr: [b]", "hr: &x [a]\npay: *x"])
def test_rules_that_could_be_meant_in_two_ways_stop_the_indexing(index: Index, folder: Path, rules: str) -> None:
    (folder / SIDECAR).write_text(rules)

    with pytest.raises(ConfigError, match=SIDECAR):
        index.refresh()


@pytest.mark.parametrize("own", ["access: 3", "access: {a: b}", "access:", '"access": [1]', "access: [a"])
def test_a_document_whose_own_rule_cannot_be_understood_is_for_nobody(index: Index, folder: Path, own: str) -> None:
    (folder / "a.md").write_text(f"---\n{own}\n---\napples")

    done = index.refresh()

    assert problems(done)["a.md"].startswith("closed to everyone")
    assert sources(index, "apples") == []
    assert index.documents() == ()


def test_progress_tells_every_file(index: Index, folder: Path) -> None:
    for name in "ab":
        (folder / f"{name}.md").write_text(name)
    told: list[tuple[int, int, str]] = []

    index.refresh(0.0, lambda done, whole, path: told.append((done, whole, path)))

    assert told == [(0, 2, "a.md"), (1, 2, "b.md"), (2, 2, "")]


def test_what_needs_an_extra_is_read_once_it_is_there(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.pdf").write_bytes(pdf("apples"))
    readers.reader_name.cache_clear()
    with monkeypatch.context() as without:
        without.setattr(readers, "find_spec", lambda name: None)
        assert "needs the extra docs" in problems(index.refresh())["a.pdf"]
        assert index.refresh().same == 1
    readers.reader_name.cache_clear()

    assert index.refresh().changed == 1
    assert sources(index, "apples") == ["a.pdf"]


def test_a_rule_holds_however_a_name_is_composed(index: Index, folder: Path) -> None:
    (folder / normalize("NFD", "がくぶ")).mkdir()
    (folder / normalize("NFD", "がくぶ") / "a.md").write_text("apples")
    (folder / normalize("NFC", "résumé")).mkdir()
    (folder / normalize("NFC", "résumé") / "b.md").write_text("apples")
    rules = {normalize("NFC", "がくぶ/**"): ["group:a"], normalize("NFD", "résumé"): ["group:b"]}
    (folder / SIDECAR).write_text(json.dumps(rules))

    index.refresh()

    assert sources(index, "apples") == []
    assert len(sources(index, "apples", "group:a", "group:b")) == 2


MISNAMED = (
    ".taiwa-access.yml taiwa-access.yaml .Taiwa-Access.yaml .TAIWA-ACCESS.YAML taiwa_access.yaml .taiwa_access.yaml taiwaaccess.yaml"
    " .taiwa-access .taiwa.access.yaml .taiwa-acces.yaml .taiwa-access.json .taiwa-access.yaml.txt taiwa-access-rules.yml .taiwa‐access.yaml"
    " taiwa-acl.yaml .taiwa-accessyaml"
).split()
LIKELY = "access.yaml access.yml .access.yaml Access.YAML access_rules.yaml access-control.json acl.yaml permissions.yaml acces.yaml rules.yaml access access.txt".split()  # fmt: skip
RULES = (
    "hr/**: [group:hr]",
    '"*": hr',
    "rules:\n  - {path: hr, read: [group:hr]}",
    '{"hr/": ["group:hr"]}',
    "hr: [group:hr",
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, "") for name in MISNAMED),
        *((name, RULES[0]) for name in LIKELY),
        *(("access.yaml", text) for text in RULES),
    ],
)
def test_rules_that_would_not_be_read_stop_the_indexing(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "hr").mkdir()
    (tmp_path / "hr" / name).write_text(text)

    with pytest.raises(
        ConfigError, match=r"is not read: rules of access are called \.taiwa-access\.yaml, so rename it"
    ):
        list(Folder(tmp_path).files())


def test_nothing_is_indexed_beside_misnamed_rules(index: Index, folder: Path) -> None:
    (folder / "pay.md").write_text("apples")
    (folder / "access.yaml").write_text("pay.md: [group:hr]\n'*': [user:ann]")

    with pytest.raises(ConfigError, match="rename it"):
        index.refresh()
    assert sources(index, "apples") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("access.md", "# Access\n\nhr/**: [group:hr] apples\n"),
        ("taiwa-access.md", "# Access\n\n```yaml\nhr/**: [group:hr]\n```\n"),
        ("access.txt", "The building: the group:hr has keys of hr/a."),
        ("access.yaml", "host: db\nuser: ann\npaths:\n  /users: read\n"),
        ("access.json", '[{"ip": "10.0.0.1", "user": "ann"}]'),
        (".taiwa-access.yaml.bak", "hr/**: [group:hr]"),
        (".taiwa-access.yaml~", "hr/**: [group:hr]"),
        ("rules.yaml", "spelling: [en, ja]"),
    ],
)
def test_a_file_that_only_resembles_rules_is_none(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "pay.md").write_text("apples")
    (tmp_path / name).write_text(text)

    assert "pay.md" in [file.path for file in Folder(tmp_path).files()]


def test_misnamed_rules_of_a_folder_above_stop_the_indexing(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "taiwa_access.yaml").write_text("")

    with pytest.raises(ConfigError, match="rename it"):
        list(Folder(tmp_path / "documents").files())


def test_a_pipe_named_as_rules_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "pay.md").write_text("apples")
    os.mkfifo(tmp_path / "access.yaml")

    assert [file.path for file in Folder(tmp_path).files()] == ["pay.md"]


def test_a_folder_in_the_place_of_rules_opens_nothing(index: Index, folder: Path) -> None:
    (folder / "pay.md").write_text("apples")
    (folder / SIDECAR).mkdir()

    with pytest.raises(ConfigError, match="cannot be read"):
        index.refresh()
    assert sources(index, "apples") == []
