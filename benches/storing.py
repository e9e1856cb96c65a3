"""What the store costs: appending turns, checking out, bytes on disk."""

import random
import tempfile
import time
from pathlib import Path

from benches.measure import Subject, median
from taiwa.apps.catalogue import find
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, cut, take
from taiwa.conversation.window import kept_turns
from taiwa.kernel.journal import Entry
from taiwa.kernel.records import Json
from taiwa.kernel.values import Response, Usage, assistant
from taiwa.store import Store
from taiwa.talk.desk import Desk

TURNS = 5_000
WORDS = [
    "maple",
    "garden",
    "train",
    "early",
    "morning",
    "temple",
    "ticket",
    "river",
    "quiet",
    "autumn",
    "bridge",
    "market",
]
KANJI = "京都庭園電車朝寺切符川静秋橋市場紅葉予約旅館地図雨晴東西南北大小新古長短高低春夏冬花鳥風月"


def text(chance: random.Random, characters: int, *, japanese: bool) -> str:
    if japanese:
        return "".join(chance.choice(KANJI) for _ in range(characters))
    words: list[str] = []
    while sum(map(len, words)) + len(words) < characters:
        words.append(chance.choice(WORDS) + str(chance.randrange(100)))
    return " ".join(words)[:characters]


def begun(folder: Path, name: str) -> tuple[Desk, App]:
    return Desk(Store.open(folder / name)), find("chat").opened({})


def appended(desk: Desk, here: Conversation, user: str, answer: str, delta: Json) -> tuple[Conversation, float, float]:
    """One turn as `Talk` commits it: run, journal of one call, nodes. Returns the wall and CPU seconds of the commit."""
    store = desk.store
    staying = kept_turns(here)
    here = here if staying is None else cut(here, [past.hash for past in staying], "what was said before, in short")
    base = None if here.fresh and here.fresh[0].parent is None else (here.fresh[0].parent if here.fresh else here.tip)
    run = store.runs.begin("s", base, here.app.hash, user)
    sink = store.runs.sink(run, model="bench")
    after = take(here, user, answer, delta)
    entry = Entry((), 0, "0" * 32, Response(assistant(answer), usage=Usage(100, 50)))
    wall, busy = time.perf_counter(), time.process_time()
    sink(entry)
    settled = desk.commit("s", after, expected=base, run=run)
    return settled, time.perf_counter() - wall, time.process_time() - busy


def speed(subject: Subject, folder: Path) -> None:
    chance = random.Random(1)
    desk, app = begun(folder, "speed.db")
    desk.store.nodes.put_app(app.source)
    here, walls, busy = desk.start(app), [], []
    for number in range(TURNS):
        delta: Json = {"topics": [f"topic {number % 97}"]}
        words = text(chance, 80, japanese=False), text(chance, 400, japanese=False)
        here, wall, cpu = appended(desk, here, *words, delta)
        walls.append(wall * 1e3)
        busy.append(cpu * 1e3)
    fifth = TURNS // 5
    subject.row(
        "append a turn: journal of a call, nodes, name, log", median(walls), "ms", f"wall, over {TURNS:,} turns"
    )
    subject.row("append a turn, CPU", median(busy), "ms")
    first, last = median(walls[:fifth]), median(walls[-fifth:])
    subject.row("append, first fifth", first, "ms", "wall")
    subject.row("append, last fifth", last, "ms", "wall")
    tips = [name for name, _ in desk.store.nodes.path(here.tip)]
    takes: list[float] = []
    for name in chance.sample(tips, 400):
        started = time.perf_counter()
        Desk(desk.store).checkout(name) if not takes else desk.checkout(name)
        takes.append((time.perf_counter() - started) * 1e3)
    subject.row(f"check out any of {TURNS:,} turns", median(takes), "ms", "wall, median of 400")
    subject.row("check out, slowest of 400", max(takes), "ms", "wall")
    started = time.perf_counter()
    for _ in range(200):
        desk.store.refs.undo("s")
    subject.row("undo", (time.perf_counter() - started) * 1e3 / 200, "ms", "wall")
    subject.target("append a turn", median(walls), 0.3, "ms")
    subject.target("append stays flat: last fifth against first", last / first, 1.25, "x")
    subject.target(f"check out any of {TURNS:,} turns", median(takes), 2, "ms")


def size(subject: Subject, folder: Path, *, japanese: bool) -> None:
    chance = random.Random(2)
    name = "Japanese" if japanese else "English"
    desk, app = begun(folder, f"{name}.db")
    desk.store.nodes.put_app(app.source)
    here, said = desk.start(app), 0
    per_turn = 213_000 // 200 // (3 if japanese else 1)
    for number in range(200):
        user, answer = (
            text(chance, per_turn // 4, japanese=japanese),
            text(chance, per_turn * 3 // 4, japanese=japanese),
        )
        said += len((user + answer).encode())
        here, _, _ = appended(desk, here, user, answer, {"topics": [f"topic {number}"]})
    desk.store.search("rain 雨" if japanese else "maple")
    path = desk.store.path
    desk.store.close()
    assert path is not None
    total = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*")) / 1e6
    subject.row(
        f"200 turns, {said / 1e3:.0f} KB of random {name} text", total, "MB", "on disk, calls and search words included"
    )
    subject.target(f"200 turns of 213 KB on disk ({name})", total, 1, "MB")


def main() -> None:
    subject = Subject("storing", "one SQLite file on this machine's disk; app chat, window 20 to 10")
    with tempfile.TemporaryDirectory() as folder:
        speed(subject, Path(folder))
        size(subject, Path(folder), japanese=False)
        size(subject, Path(folder), japanese=True)
    subject.write()
