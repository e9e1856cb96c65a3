"""The cost of the store: appending turns, moving through the history, and bytes on disk, beside LangGraph's checkpoints."""

import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics  # type: ignore[import-untyped]  # prose that every Python has

from benches.measure import ROOT, Subject, median
from taiwa.apps.catalog import load_app
from taiwa.conversation.history import Conversation, add_turn, summarize_window, turns_to_keep
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.effects import Complete
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import Response, Usage, assistant
from taiwa.kernel.serialization import Json
from taiwa.sessions.repository import Repository
from taiwa.store import Store

TURNS = 5_000
SAMPLE = 500
SIZED_TURNS = 200
SIZED_BYTES = 213_000
KANJI = "京都庭園電車朝寺切符川静秋橋市場紅葉予約旅館地図雨晴東西南北大小新古長短高低春夏冬花鳥風月"
PROSE = "\n".join(topics.values())
SUMMARY = "What was said before, in short. " * 10
PEERS = {"default": "as its documentation shows", "exit": 'durability="exit"', "delta": "with its DeltaChannel (beta)"}


def english(turn: int, size: int) -> str:
    """Return the next piece of prose."""
    start = turn * size % (len(PROSE) - size)
    return PROSE[start : start + size]


def japanese(turn: int, size: int) -> str:
    """Return random characters that cannot be compressed."""
    return "".join(random.Random(turn).choices(KANJI, k=size // 3))


def begun(folder: Path, name: str) -> tuple[Repository, Conversation]:
    """Open a new store with a session of the built-in chat."""
    repository, app = Repository(Store.open(folder / name)), load_app("chat").with_params({})
    return repository, repository.commit("s", repository.start(app), expected=None)


def appended(
    repository: Repository, conversation: Conversation, user: str, answer: str, delta: Json
) -> tuple[Conversation, float]:
    """Run one turn as `Session` does: start the run, journal its call, and commit nodes, name and log.

    Return the milliseconds in the store; the turn itself is made outside the measurement.
    """
    store, tip = repository.store, conversation.tip
    staying = turns_to_keep(conversation)
    conversation = (
        conversation if staying is None else summarize_window(conversation, [past.hash for past in staying], SUMMARY)
    )
    entry = Entry((), 0, Complete(turn_request(conversation, user)), Response(assistant(answer), usage=Usage(100, 50)))
    assert entry.key
    after = add_turn(conversation, user, answer, delta)
    started = time.perf_counter()
    run = store.runs.begin("s", tip, conversation.app.hash, user, {"strict": False, "repairs": 1})
    store.runs.sink(run, model="bench")(entry)
    settled = repository.commit("s", after, expected=tip, run=run)
    return settled, (time.perf_counter() - started) * 1e3


def each(act: Callable[[int], object], times: int) -> list[float]:
    """Return the milliseconds of each repetition."""
    found: list[float] = []
    for number in range(times):
        started = time.perf_counter()
        act(number)
        found.append((time.perf_counter() - started) * 1e3)
    return found


def speed(subject: Subject, folder: Path) -> None:
    """Append turns, and read back from the end of a long session."""
    repository, conversation = begun(folder, "speed.db")
    walls: list[float] = []
    for number in range(TURNS):
        delta: Json = {"topics": [f"topic {number % 97}"], "confidence": 0.9}
        conversation, wall = appended(repository, conversation, english(number, 80), english(number, 400), delta)
        walls.append(wall)
    for start in (0, 500, 1_000, 2_500, TURNS - 500):
        subject.median(f"append, turns {start:,} to {start + 500:,}", walls[start : start + 500], "ms")
    whole = subject.median("append: run, journal of a call, nodes, name, log", walls, "ms", "three transactions")
    started = time.process_time()
    repository.store.search("xyzzy")
    per_turn = (time.process_time() - started) * 1e3 / TURNS
    subject.row("search a word that occurs nowhere, per turn", per_turn, "ms", "processor time")
    subject.target("append a turn", whole, 0.3, "ms")
    subject.target(
        "append: the last 500 turns against the first", median(walls[-500:]) / median(walls[:500]), 1.25, "x"
    )
    back_and_forth(subject, repository, conversation.tip)


def back_and_forth(subject: Subject, repository: Repository, tip: str) -> None:
    """Check out, undo, redo, fork."""
    tips = random.Random(1).sample([name for name, _ in repository.store.nodes.path(tip)], SAMPLE)
    found = subject.median(
        f"check out any of {TURNS:,} turns", takes := each(lambda n: repository.checkout(tips[n]), SAMPLE), "ms"
    )
    subject.row("check out, 99th percentile", sorted(takes)[SAMPLE - SAMPLE // 100], "ms")
    repository.store.snapshots.clear()
    first = each(lambda _: repository.checkout(tip), 1)[0]
    subject.row(f"check out after {TURNS:,} turns without snapshots", first, "ms", "once; it creates a new snapshot")
    subject.median("undo", each(lambda _: repository.store.undo("s"), 200), "ms")
    subject.median("redo", each(lambda _: repository.store.redo("s"), 200), "ms")
    subject.median("fork", each(lambda n: repository.fork(tips[n], f"fork-{n}"), 200), "ms")
    subject.target(f"check out any of {TURNS:,} turns", found, 2, "ms")


def sized(folder: Path, name: str, words: Callable[[int, int], str]) -> tuple[float, Path, list[tuple[str, str]]]:
    """Return the MB on disk after 200 turns, with an empty write-ahead log, and the turns."""
    repository, conversation = begun(folder, f"{name}.db")
    size = SIZED_BYTES // SIZED_TURNS
    said = [(words(2 * n, size // 5), words(2 * n + 1, size * 4 // 5)) for n in range(SIZED_TURNS)]
    for number, (user, answer) in enumerate(said):
        conversation, _ = appended(
            repository, conversation, user, answer, {"topics": [f"topic {number}"], "confidence": 0.9}
        )
    path = repository.store.path
    repository.store.close()
    assert path is not None
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*")) / 1e6, path, said


def parts(path: Path) -> str:
    """Return the size of the file by table, in KB."""
    with sqlite3.connect(path) as sql:
        rows = sql.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 5").fetchall()
    return ", ".join(f"{name} {size / 1e3:.0f}" for name, size in rows)


def sizes(subject: Subject, folder: Path) -> None:
    """Measure bytes on disk for prose and for incompressible text, and LangGraph's for the same prose."""
    own, path, said = sized(folder, "English", english)
    spoken = sum(len(text.encode()) for pair in said for text in pair) / 1e3
    subject.row(f"{SIZED_TURNS} turns, {spoken:.0f} KB of English prose", own, "MB", f"in KB: {parts(path)}")
    random_signs, path, _ = sized(folder, "Japanese", japanese)
    subject.row(f"{SIZED_TURNS} turns, the same amount of random Japanese", random_signs, "MB", f"in KB: {parts(path)}")
    for kind, how in PEERS.items():
        command = [sys.executable, "-m", "benches.peers.langgraph_checkpoints", kind]
        done = subprocess.run(command, cwd=ROOT, input=json.dumps(said), capture_output=True, text=True, check=True)
        size, early, late = json.loads(done.stdout)
        note = f"{how}; a turn takes {early:.1f} ms at first and {late:.1f} ms at last"
        subject.row(f"LangGraph's SqliteSaver, the same {SIZED_TURNS} turns of prose", size, "MB", note, ours=own)
    subject.target(f"{SIZED_TURNS} turns of 213 KB on disk, English prose", own, 1, "MB")
    subject.target(f"{SIZED_TURNS} turns of 213 KB on disk, random Japanese", random_signs, 1, "MB")


def main() -> None:
    subject = Subject(
        "storing",
        "milliseconds and megabytes of one SQLite file on this machine's disk; the built-in chat, window 20 to 10",
        peers=("langgraph", "langgraph-checkpoint-sqlite"),
    )
    with tempfile.TemporaryDirectory() as folder:
        speed(subject, Path(folder))
        sizes(subject, Path(folder))
    subject.write()
