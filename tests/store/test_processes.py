"""Several processes at one file: one wins, nobody loses anything, and a killed one leaves a sound store."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from taiwa.store import Store
from tests.store.turns import begin

RACE = """
import sys
from taiwa.conversation.node import Node
from taiwa.kernel.effects import Complete
from taiwa.kernel.errors import ConflictError
from taiwa.kernel.journal import Entry
from taiwa.kernel.values import Request, Response, assistant, user
from taiwa.store import Store

path, me = sys.argv[1:]
store = Store.open(path)
tip = store.refs.tip("main")
app = store.nodes.get(tip).app
run = store.runs.begin("main", tip, app, me)
store.runs.sink(run)(Entry((), 0, Complete(Request((user(me),))), Response(assistant(me))))
print("ready", flush=True)
input()
try:
    store.commit("main", [Node(tip, "turn", app, me)], expected=tip, run=run)
    print("won")
except ConflictError:
    print("lost")
"""
OPEN = """
import sys
from taiwa.store import Store
print("ready", flush=True)
input()
Store.open(sys.argv[1]).close()
print("opened")
"""
WRITE = """
import sys
from taiwa.conversation.node import Node
from taiwa.store import Store
store = Store.open(sys.argv[1])
tip = store.refs.tip("main")
app = store.nodes.get(tip).app
for number in range(10**6):
    tip = store.commit("main", [Node(tip, "turn", app, f"turn {number}", "answer " * 100)], expected=tip)
    if number % 50 == 0:
        store.search(f"turn {number}")
    print(tip, flush=True)
"""


def start(script: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip


def race(children: list[subprocess.Popen[str]]) -> list[str]:
    """Let all go at once when all are ready, and return their last words."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    return [child.communicate(timeout=30)[0].strip() for child in children]


def test_of_several_writers_to_one_session_one_wins_and_the_others_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        tip = begin(store, "main", "a")

        outcomes = race([start(RACE, str(path), f"writer {number}") for number in range(3)])

        assert sorted(outcomes) == ["lost", "lost", "won"]
        assert store.refs.back(store.refs.tip("main"), 1) == tip
        runs = [store.runs.run(number) for number in (1, 2, 3)]
        assert sorted(run.status for run in runs) == ["done", "lost", "lost"]
        assert [run.calls for run in runs] == [1, 1, 1]
        assert store.bill("session")[0].requests == 3
        assert store.fsck() == ()


def test_several_processes_may_make_one_store_at_once(tmp_path: Path) -> None:
    outcomes = race([start(OPEN, str(tmp_path / "new.db")) for _ in range(4)])

    assert outcomes == ["opened"] * 4
    with Store.open(tmp_path / "new.db") as store:
        assert store.fsck() == ()


@pytest.mark.parametrize("turns", [1, 60, 130])
def test_a_process_killed_while_it_writes_leaves_a_sound_store(tmp_path: Path, turns: int) -> None:
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        begin(store, "main")
    with start(WRITE, str(path)) as child:
        assert child.stdout is not None
        told = [child.stdout.readline().strip() for _ in range(turns)]
        child.send_signal(signal.SIGKILL)
        told += child.stdout.read().split("\n")

    with Store.open(path) as store:
        kept = [name for name, _ in store.nodes.path(store.refs.tip("main"))]
        assert set(told[:turns]) <= set(kept)
        assert len(kept) - 1 <= len(told) + 1
        assert store.fsck() == ()
        assert store.search("answer", limit=1)[0].hash == kept[0]
