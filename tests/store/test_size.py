"""A store stays small and flat."""

from collections.abc import Callable
from pathlib import Path

from taiwa.conversation.history import Node
from taiwa.sql.sqlite import SqliteDatabase
from taiwa.store import Store
from tests.store.turns import APP, answered, begin

TURNS = 200
TEXT = "この文は、辞書にない言葉や地名、たとえば第{0}駅や{1}通りを含むので、くり返しだけでは小さくならない。"


def said(number: int) -> str:
    """About a thousand bytes that differ from turn to turn."""
    return "".join(TEXT.format(number * 7 + part, chr(0x4E00 + number * 11 + part * 3)) for part in range(7))


def commit_turns(store: Store, tip: str, count: int) -> str:
    for number in range(count):
        node = Node(tip, "turn", APP.hash, f"text {number}", "answer " * 20)
        tip = store.commit("main", [node], expected=tip)
    return tip


def database_steps(store: Store, action: Callable[[], object]) -> int:
    """The instructions of SQLite's virtual machine that an action runs."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    database = store._db
    assert isinstance(database, SqliteDatabase)
    database._sql.set_progress_handler(step, 1)
    action()
    database._sql.set_progress_handler(None, 1)
    return count


def test_two_hundred_turns_of_213_kilobytes_take_less_than_a_megabyte(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    texts = [said(number) for number in range(TURNS)]
    assert sum(len(text.encode()) for text in texts) > 190_000
    with Store.open(path) as store:
        tip = begin(store)
        for text in texts:
            run = store.runs.begin("main", tip, APP.hash, text[:100])
            store.runs.sink(run, model="m")(answered(text[:100], text[100:]))
            node = Node(tip, "turn", APP.hash, text[:100], text[100:], {"topics": [text[:5]]}, "1" * 32)
            tip = store.commit("main", [node], expected=tip, run=run)
        assert store.search("第7駅")
        for _ in range(500):
            store.undo("main")
            store.redo("main")

    assert path.stat().st_size < 1_000_000


def test_a_turn_costs_the_same_after_thousands(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        tip = begin(store)

        early = database_steps(store, lambda: commit_turns(store, tip, 100))
        tip = commit_turns(store, store.refs.tip("main"), 2_000)
        late = database_steps(store, lambda: commit_turns(store, tip, 100))

        assert late < 1.5 * early
