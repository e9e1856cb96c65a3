"""What is special about the place on this machine: the words are derived, and made again when they are not there or older."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from taiwa.kernel.errors import ConflictError, StoreError
from taiwa.retrieval import Library, sqlite
from taiwa.retrieval import sqlite as module
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.sqlite import SqliteLibraryBackend
from taiwa.retrieval.types import Batch
from tests.retrieval.test_conformance import document, found, put

INDEXER = """
import sys
from taiwa.retrieval import Library, ingest
ingest.BATCH_FILES = 3
Library.open(sys.argv[1]).index("docs").refresh(0.0)
"""
FINDER = """
import sys
from taiwa.retrieval import Library
Library.open(sys.argv[1]).index("docs").find("apples")
"""
HOLDER = """
import sys, time
from taiwa.retrieval import Library
with Library.open(sys.argv[1]).index("docs").backend.write_lock(0.0):
    print("holding", flush=True)
    time.sleep(600)
"""


def start(script: str, path: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def committed(path: Path) -> int:
    with closing(sqlite3.connect(path)) as sql:
        return int(sql.execute("SELECT count(*) FROM document").fetchone()[0])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "library.db"


def words_of(place: Path) -> Path:
    (only,) = [each for each in place.with_suffix(".words").iterdir() if each.is_dir()]
    return only


def test_words_that_were_deleted_are_made_again(place: Path) -> None:
    with closing(SqliteLibraryBackend(place)) as shelves:
        put(shelves.create("docs", "", Analyzer()), document("a", "apples"))
        assert found(shelves.open("docs"), "apples") == ["a"]
    shutil.rmtree(place.with_suffix(".words"))

    with closing(SqliteLibraryBackend(place)) as shelves:
        assert found(shelves.open("docs"), "apples") == ["a"]


@pytest.mark.parametrize("damage", ["", "{}", "not json"])
def test_words_that_were_damaged_are_made_again(place: Path, damage: str) -> None:
    with closing(SqliteLibraryBackend(place)) as shelves:
        put(shelves.create("docs", "", Analyzer()), document("a", "apples"))
        found(shelves.open("docs"), "apples")
    (words_of(place) / "meta.json").write_text(damage)

    with closing(SqliteLibraryBackend(place)) as shelves:
        assert found(shelves.open("docs"), "apples") == ["a"]


def test_words_from_a_future_that_was_put_back_are_made_again(place: Path, tmp_path: Path) -> None:
    with closing(SqliteLibraryBackend(place)) as shelves:
        put(shelves.create("docs", "", Analyzer()), document("a", "apples"))
    shutil.copy(place, tmp_path / "copy.db")
    with closing(SqliteLibraryBackend(place)) as shelves:
        put(shelves.open("docs"), document("b", "apples"))
        assert len(found(shelves.open("docs"), "apples")) == 2
    shutil.copy(tmp_path / "copy.db", place)

    with closing(SqliteLibraryBackend(place)) as shelves:
        put(shelves.open("docs"), document("c", "apples"))

        assert sorted(found(shelves.open("docs"), "apples")) == ["a", "c"]


def test_another_analyzer_makes_the_words_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteLibraryBackend(place)) as shelves:
        put(shelves.create("docs", "", Analyzer()), document("a", "apples"))
        assert found(shelves.open("docs"), "apples") == ["a"]
    monkeypatch.setattr(Analyzer, "terms", lambda self, text: [*text.split()])
    monkeypatch.setattr(Analyzer, "asked", lambda self, text: [*text.split()])
    kept = Analyzer.__init__

    def newer(self: Analyzer, language: str = "english") -> None:
        kept(self, language)
        self.name = f"words-2/{language}"

    monkeypatch.setattr(Analyzer, "__init__", newer)

    with closing(SqliteLibraryBackend(place)) as shelves:
        assert found(shelves.open("docs"), "apple") == []
        assert found(shelves.open("docs"), "apples") == ["a"]


def test_only_what_changed_is_told_to_the_words(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[list[int], int, bool]] = []
    change = sqlite.TantivyIndex.change

    def listening(
        self: sqlite.TantivyIndex,
        mark: sqlite.IndexMark,
        gone: list[int],
        added: list[sqlite.AddedPassage],
        *,
        rebuild: bool,
    ) -> None:
        gone, added = [*gone], [*added]
        told.append((gone, len(added), rebuild))
        change(self, mark, gone, added, rebuild=rebuild)

    monkeypatch.setattr(sqlite.TantivyIndex, "change", listening)
    with closing(SqliteLibraryBackend(place)) as shelves:
        docs = shelves.create("docs", "", Analyzer())
        put(docs, *(document(f"d{n}", "apples") for n in range(20)))
        found(docs, "apples")
        put(docs, document("d3", "pears", "plums"), gone=("d4",))
        found(docs, "pears")
        found(docs, "pears")

    assert [(len(gone), added, rebuild) for gone, added, rebuild in told] == [(0, 20, True), (2, 2, False)]


def test_what_is_closed_stays_closed_where_another_holds_the_writer(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    with closing(SqliteLibraryBackend(place)) as shelves:
        docs = shelves.create("docs", "", Analyzer())
        put(docs, *(document(f"d{n}", "apples") for n in range(12)))
        assert len(found(docs, "apples", k=3)) == 3

        def busy(*given: object, **named: object) -> None:
            raise ConflictError("another process is bringing the words up to date")

        monkeypatch.setattr(sqlite.TantivyIndex, "change", busy)
        put(docs, *(document(f"d{n}", "apples", audience=(("x",),)) for n in range(9)), gone=("d9",))

        assert sorted(found(docs, "apples", k=3)) == ["d10", "d11"]


def test_the_library_of_another_program_is_left_alone(place: Path) -> None:
    with closing(sqlite3.connect(place)) as sql:
        sql.execute("CREATE TABLE t(x)")

    with pytest.raises(StoreError, match="name another file for the library"):
        SqliteLibraryBackend(place)


@pytest.mark.slow
def test_what_was_read_before_a_kill_is_not_read_again_and_nothing_is_lost(place: Path, folder: Path) -> None:
    files = 400
    for number in range(files):
        (folder / f"{number:03}.md").write_text(
            f"# Part {number}\n\n" + f"apples and fruit{number} of all kinds. " * 40
        )
    with Library.open(place) as library:
        library.create(folder, "docs")
    for wanted in (10, 150, 280):
        one = start(INDEXER, place)
        while committed(place) < wanted and one.poll() is None:
            time.sleep(0.002)
        os.kill(one.pid, signal.SIGKILL)
        one.communicate()
        assert one.returncode == -signal.SIGKILL
    before = committed(place)

    with Library.open(place) as library:
        index = library.index("docs")
        done = index.refresh()

        assert 280 <= before < files
        assert (done.added, done.same) == (files - before, before)
        assert all(index.find(f"fruit{number}", 1)[0].source == f"{number:03}.md" for number in range(files))
        assert index.evidence("apples").passages == sum(each.passages for each in index.documents())


def test_a_kill_while_the_words_are_written_leaves_them_to_the_next_who_asks(place: Path) -> None:
    with closing(SqliteLibraryBackend(place)) as shelves:
        docs = shelves.create("docs", "", Analyzer())
        put(docs, *(document(f"d{n}", f"apples and fruit{n} of all kinds. " * 20) for n in range(3_000)))
    one = start(FINDER, place)
    while one.poll() is None and not place.with_suffix(".words").exists():
        time.sleep(0.001)
    time.sleep(0.05)
    os.kill(one.pid, signal.SIGKILL)
    one.communicate()

    with closing(SqliteLibraryBackend(place)) as shelves:
        docs = shelves.open("docs")

        assert one.returncode == -signal.SIGKILL
        assert all(found(docs, f"fruit{n}") == [f"d{n}"] for n in range(0, 3_000, 60))
        assert docs.counts(["appl"], frozenset()).holders == {"appl": 3_000}


@pytest.mark.slow
def test_of_two_indexers_the_second_waits_or_says_so(place: Path, folder: Path) -> None:
    (folder / "a.md").write_text("apples")
    with Library.open(place) as library:
        index = library.create(folder, "docs")
        holder = start(HOLDER, place)
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"holding\n"

        with pytest.raises(ConflictError, match="another process is indexing 'docs'"):
            index.refresh(0.1)
        assert index.find("apples") == ()
        holder.kill()
        holder.communicate()

        assert index.refresh(5.0).added == 1


def test_a_batch_half_done_is_not_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteLibraryBackend(place)) as shelves:
        docs = shelves.create("docs", "", Analyzer())

        with pytest.raises(AttributeError):
            docs.commit(Batch((document("a", "apples"), None)))

        assert docs.known() == {}
