"""What an index on a server must do beside what every index does: many processes, kills, ranks, and extensions that lack."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.retrieval import Library
from taiwa.retrieval import postgres as module
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.backend import IndexBackend
from taiwa.retrieval.postgres import PostgresLibraryBackend
from taiwa.retrieval.types import Batch
from taiwa.sql import PostgresUrl
from tests.database import Database
from tests.retrieval.measured import filled, ndcg, rows
from tests.retrieval.test_conformance import HR, NOBODY, document, found, put

INDEXING = """
import sys
from pathlib import Path
from taiwa.retrieval import Library
place, folder = sys.argv[1:]
with Library.open(place) as library:
    index = library.find_by_folder(folder) or library.create(folder, "docs")
    print("ready", flush=True)
    input()
    done = index.refresh(60.0)
    print(len(index.find("apples", 1000)), flush=True)
"""


@pytest.fixture
def shelves(database: Database) -> Iterator[PostgresLibraryBackend]:
    with closing(PostgresLibraryBackend(PostgresUrl.parse(database.url))) as opened:
        yield opened


@pytest.fixture
def shelf(shelves: PostgresLibraryBackend) -> IndexBackend:
    return shelves.create("docs", "/documents", Analyzer())


def start(database: Database, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", INDEXING, database.url, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def go(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    child.stdin.write("\n")
    child.stdin.flush()


@pytest.mark.parametrize("name", ["jsquad", "jaquad"])
def test_real_questions_find_what_they_find_in_a_file(
    name: str, shared_data: Path, database: Database, tmp_path: Path
) -> None:
    passages = rows(shared_data / "rag" / f"{name}_passages.jsonl")[:500]
    there = {each["id"] for each in passages}
    asked = [one for one in rows(shared_data / "rag" / f"{name}_questions.jsonl") if set(one["rel"]) <= there][:100]
    quality: list[float] = []
    for place in (tmp_path / "library.db", database.url):
        with Library.open(place) as library:
            index = filled(library, name, passages)
            values = [ndcg([each.source for each in index.find(one["q"], 10)], set(one["rel"])) for one in asked]
            quality.append(math.fsum(values) / len(values))

    assert len(asked) == 100
    assert abs(quality[0] - quality[1]) < 0.01


def test_few_candidates_give_the_same_ranks_as_all(shelf: IndexBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(7)
    common = [f"word{number}" for number in range(40)]
    texts = [" ".join(chance.choice(common, size=chance.integers(3, 40))) for _ in range(300)]
    put(shelf, *(document(f"d{number}", text) for number, text in enumerate(texts)))
    questions = [{word: float(chance.random() + 0.1) for word in chance.choice(common, 6)} for _ in range(20)]

    def ranks() -> list[list[tuple[str, float]]]:
        return [
            [(each.source, round(each.score, 9)) for each in shelf.search(asked, 10, NOBODY)] for asked in questions
        ]

    with monkeypatch.context() as patched:
        patched.setattr(module, "ENOUGH_AT_FIRST", 10**9)
        every = ranks()
    monkeypatch.setattr(module, "ENOUGH_AT_FIRST", 1)

    assert ranks() == every
    monkeypatch.setattr(module, "MOST_HOLDERS", 20)
    assert all(len(found) == 10 for found in ranks())


def test_what_is_closed_to_somebody_does_not_move_what_they_find(shelf: IndexBackend) -> None:
    put(shelf, document("a", "apples"), document("b", "apples and pears"))
    before = shelf.search({"appl": 1.0, "pear": 1.0}, 5, NOBODY)

    put(shelf, *(document(f"h{number}", "pears", audience=(("group:hr",),)) for number in range(20)))

    assert shelf.search({"appl": 1.0, "pear": 1.0}, 5, NOBODY) == before
    assert shelf.counts(["pear"], HR).holders == {"pear": 21}


def test_sums_stay_right_whatever_is_changed_closed_and_deleted(shelf: IndexBackend, database: Database) -> None:
    put(shelf, *(document(f"d{number}", f"apples number{number}") for number in range(30)))
    shelf.update_derived()
    put(shelf, document("d0", "pears"), document("d1", "apples", audience=(("group:hr",),)), gone=("d2",))
    known = shelf.known()["d3"]
    shelf.commit(Batch(touched=(("d3", known),)))
    for _ in range(4):
        put(shelf, *(document(f"d{number}", f"apples number{number}") for number in range(4, 30)))
    before = shelf.counts(["appl", "pear", "number2"], NOBODY), shelf.counts(["appl"], HR)

    shelf.update_derived()

    assert before[0].holders == {"appl": 27, "pear": 1, "number2": 0}
    assert before[1].holders == {"appl": 28}
    assert (shelf.counts(["appl", "pear", "number2"], NOBODY), shelf.counts(["appl"], HR)) == before
    assert database.run("SELECT min(holders) FROM taiwa_library.tally") == [(1,)]


def test_a_character_that_the_server_does_not_keep_leaves_the_others_where_they_are(shelf: IndexBackend) -> None:
    put(shelf, document("a", "before\0after apples"))

    (passage,) = shelf.search({"appl": 1.0}, 1, NOBODY)

    assert passage.text == "before\ufffdafter apples"
    assert shelf.search({"a\0b": 1.0}, 1, NOBODY) == ()
    assert shelf.counts(["a\0b"], NOBODY).holders == {"a\0b": 0}


def test_two_processes_may_index_one_folder_at_once(database: Database, folder: Path) -> None:
    for number in range(40):
        (folder / f"{number}.md").write_text(f"apples {number}")
    with Library.open(database.url) as library:
        library.create(folder, "docs")
    children = [start(database, folder) for _ in range(2)]
    for child in children:
        go(child)

    assert [child.communicate(timeout=300)[0].strip() for child in children] == ["40", "40"]
    with Library.open(database.url) as library:
        assert len(library.index("docs").documents(None)) == 40


def test_an_indexer_that_is_killed_leaves_whole_documents_and_no_lock(database: Database, folder: Path) -> None:
    for number in range(400):
        (folder / f"{number}.md").write_text(f"# {number}\n\napples\n\n" + f"text {number} " * 200)
    with Library.open(database.url) as library:
        library.create(folder, "docs")
        with start(database, folder) as child:
            go(child)
            deadline = time.monotonic() + 300
            while not library.index("docs").documents(None) and time.monotonic() < deadline:
                time.sleep(0.01)
            child.send_signal(signal.SIGKILL)

        index = library.index("docs")
        listed = index.documents(None)
        assert listed
        assert all(each.passages for each in listed)
        assert index.backend.counts(["appl"], NOBODY).holders["appl"] == len(index.find("apples", 1000))
        done = index.refresh(10.0)
        assert len(index.documents(None)) == 400
        assert done.added == 400 - len(listed)
        assert len(index.find("apples", 1000)) == 400


def test_within_one_process_too_one_indexes_at_a_time(shelves: PostgresLibraryBackend, shelf: IndexBackend) -> None:
    with shelf.write_lock(0.0), pytest.raises(ConflictError), shelves.open("docs").write_lock(0.06):
        pass


def test_an_address_that_is_none_is_not_repeated() -> None:
    with pytest.raises(InputError, match="the library is not a PostgreSQL URL") as caught:
        Library.open("postgresql://ann:zeugma")

    assert "zeugma" not in caught.value.message


def test_found_again_after_the_process_forks(shelf: IndexBackend) -> None:
    put(shelf, document("a", "apples"))
    child = os.fork()
    if child == 0:
        os._exit(0 if found(shelf, "apples") == ["a"] else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert found(shelf, "apples") == ["a"]
