"""Several processes at one file: one wins, nobody loses anything, and a killed one leaves a sound store."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from taiwa.store import Store
from tests.database import Database
from tests.store.turns import APP, begin, turn

RACE = """
import sys
from taiwa.conversation.history import Node
from taiwa.kernel.effects import Complete
from taiwa.kernel.errors import ConflictError
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import Request, Response, assistant, user
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
    print("conflict")
"""
OPEN = """
import sys
from taiwa.store import Store
print("ready", flush=True)
for place in sys.stdin:
    Store.open(place.strip()).close()
    print("opened", flush=True)
"""
WRITE = """
import sys
from taiwa.conversation.history import Node
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


APPEND = """
import sys
from taiwa.conversation.history import Node
from taiwa.kernel.errors import ConflictError
from taiwa.store import Store

place, me, count = sys.argv[1:]
store = Store.open(place)
start = store.refs.tip("main")
app = store.nodes.get(start).app
store.refs.create(me, start)
print("ready", flush=True)
input()
for number in range(int(count)):
    for name in (me, "main"):
        while True:
            tip = store.refs.tip(name)
            said = f"{me} {number} in {name}"
            run = store.runs.begin(name, tip, app, said)
            try:
                store.commit(name, [Node(tip, "turn", app, said)], expected=tip, run=run)
                break
            except ConflictError:
                pass
print(len(store.search(me, 1000)))
"""
HALF = """
import sys, time
from taiwa.conversation.history import Node
from taiwa.store import Store
store = Store.open(sys.argv[1])
tip = store.refs.tip("main")
with store.transaction("main"):
    store.commit("main", [Node(tip, "turn", store.nodes.get(tip).app, "half")], expected=tip)
    print("in the middle", flush=True)
    time.sleep(600)
"""


def start(script: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip


def read_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def write_line(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdin is not None
    child.stdin.write(f"{line}\n")
    child.stdin.flush()


def race(children: list[subprocess.Popen[str]]) -> list[str]:
    """Let all go at once when all are ready, and return their last words."""
    assert [read_line(child) for child in children] == ["ready"] * len(children)
    for child in children:
        write_line(child, "")
    return [child.communicate(timeout=300)[0].strip() for child in children]


def test_of_several_writers_to_one_session_one_commits_and_the_calls_of_all_are_stored(place: str) -> None:
    with Store.open(place) as store:
        tip = begin(store, "main", "a")

        outcomes = race([start(RACE, place, f"writer {number}") for number in range(3)])

        assert sorted(outcomes) == ["conflict", "conflict", "won"]
        assert store.refs.back(store.refs.tip("main"), 1) == tip
        runs = [store.runs.run(number) for number in (1, 2, 3)]
        assert sorted(run.status for run in runs) == ["conflict", "conflict", "done"]
        assert [run.calls for run in runs] == [1, 1, 1]
        assert store.costs("session")[0].requests == 3
        assert store.fsck() == ()


def test_four_processes_that_add_to_one_store_at_once_lose_nothing(place: str) -> None:
    each = 8
    with Store.open(place) as store:
        begin(store, "main")

        outcomes = race([start(APPEND, place, f"writer{number}", str(each)) for number in range(4)])

        said = sorted(f"writer{writer} {number} in main" for writer in range(4) for number in range(each))
        assert sorted(node.user for _, node in store.nodes.path(store.refs.tip("main")) if node.user) == said
        for writer in range(4):
            own = [node.user for _, node in store.nodes.path(store.refs.tip(f"writer{writer}"))]
            assert own == [*(f"writer{writer} {number} in writer{writer}" for number in reversed(range(each))), None]
        assert [ref.turns for ref in store.refs.list() if ref.name == "main"] == [4 * each]
        assert [int(outcome) for outcome in outcomes] == [2 * each] * 4
        assert len(store.refs.reflog("main")) == 4 * each + 1
        assert store.runs.open_runs() == ()
        assert store.fsck() == ()


def test_a_process_killed_in_the_middle_of_a_commit_leaves_nothing_of_it(place: str) -> None:
    with Store.open(place) as store:
        tip = begin(store, "main")
        with start(HALF, place) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "in the middle\n"
            child.send_signal(signal.SIGKILL)

        assert store.refs.tip("main") == tip
        tip = store.commit("main", [turn(tip, "whole")], expected=tip)
        assert [node.user for _, node in store.nodes.path(tip)] == ["whole", None]
        assert store.fsck() == ()


def test_several_processes_may_make_one_store_at_once(tmp_path: Path, postgres_server: Database) -> None:
    children = [start(OPEN) for _ in range(6)]
    assert [read_line(child) for child in children] == ["ready"] * 6

    for number in range(3):
        postgres_server.drop()
        for place in (str(tmp_path / f"new-{number}.db"), postgres_server.url):
            for child in children:
                write_line(child, place)
            assert [read_line(child) for child in children] == ["opened"] * 6
            with Store.open(place) as store:
                assert store.fsck() == ()

    assert [child.communicate(timeout=300)[0] for child in children] == [""] * 6


@pytest.mark.parametrize("turns", [1, 60, 130])
def test_a_process_killed_while_it_writes_leaves_an_undamaged_store(place: str, turns: int) -> None:
    with Store.open(place) as store:
        begin(store, "main")
    with start(WRITE, place) as child:
        assert child.stdout is not None
        told = [child.stdout.readline().strip() for _ in range(turns)]
        child.send_signal(signal.SIGKILL)
        told += child.stdout.read().split("\n")

    with Store.open(place) as store:
        kept = [name for name, _ in store.nodes.path(store.refs.tip("main"))]
        assert set(told[:turns]) <= set(kept)
        assert len(kept) - 1 <= len(told) + 1
        assert store.fsck() == ()
        assert store.search("answer", limit=1)[0].hash == kept[0]


def share(path: Path, account: tuple[int, int], name: str, ready: int, go: int) -> None:
    """Begin a turn as another account, wait, and commit it; exits with the number of interrupted runs that it saw."""
    code = 99
    try:
        os.setgroups([])
        os.setresgid(account[1], account[1], account[1])
        os.setresuid(account[0], account[0], account[0])
        os.umask(0o022)
        with Store.open(path) as store:
            run = store.runs.begin("main", store.refs.tip("main"), APP.hash, name)
            os.write(ready, b".")
            os.read(go, 1)
            code = len(store.runs.open_runs())
            os.write(ready, b".")
            os.read(go, 1)
            store.commit("main", [turn(store.refs.tip("main"), name)], expected=store.refs.tip("main"), run=run)
            assert store.search(name)
    finally:
        os._exit(code)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act for two accounts")
def test_two_accounts_share_a_store_in_one_folder() -> None:
    ann, bob, group = 61_001, 61_002, 61_000
    with tempfile.TemporaryDirectory() as made:
        folder, path = Path(made), Path(made) / "store.db"
        with Store.open(path) as store:
            begin(store)
            store.search("a")  # what is imported late cannot be read by another account
        for shared, mode in ((path, 0o660), (folder, 0o770)):
            os.chown(shared, ann, group)
            shared.chmod(mode)
        children: dict[int, tuple[int, int]] = {}
        for user, name in ((ann, "ann"), (bob, "bob")):
            (ready, tell), (wait, go) = os.pipe(), os.pipe()
            child = os.fork()
            if not child:
                share(path, (user, group), name, tell, wait)
            os.close(tell)
            children[child] = ready, go
        for ready, _ in children.values():
            assert os.read(ready, 1) == b"."
        for ready, go in children.values():  # both have begun
            os.write(go, b".")
            assert os.read(ready, 1) == b"."
        for child, (_, go) in children.items():
            os.write(go, b".")
            assert os.waitpid(child, 0)[1] == 0, "a run of a living process of another account is not interrupted"
        with Store.open(path) as store:
            assert {node.user for _, node in store.nodes.path(store.refs.tip("main"))} == {"bob", "ann", None}
            assert store.runs.open_runs() == ()
            assert store.fsck() == ()
