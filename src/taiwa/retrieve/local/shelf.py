"""One index on this machine.

SQLite is the truth: each batch is one transaction. tantivy is brought up to date by whoever asks first and finds it older.
What it finds is looked up in SQLite in the same breath, so what was deleted or closed a moment ago is not shown even where
another process holds tantivy's only writer.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from taiwa.kernel.errors import ConflictError
from taiwa.kernel.values import Passage
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.local.lock import held
from taiwa.retrieve.local.tabled import TableShelf
from taiwa.retrieve.local.tables import State
from taiwa.retrieve.local.vectors import LocalVectors
from taiwa.retrieve.local.words import Added, Mark, Scored, Words
from taiwa.retrieve.seam import Vector
from taiwa.retrieve.values import Batch, Counts, Who, may_see
from taiwa.sqlite import Connection

__all__ = ["LocalShelf"]

PATIENCE = 5.0
"""Seconds that a question waits for another process that brings the words up to date; then it takes them as they are."""
MOST = 10_000
"""Passages that are looked at for one question at most."""


class LocalShelf(TableShelf):
    """One index: rows in SQLite, words in a folder of tantivy's."""

    def __init__(self, db: Connection, folder: Path, seq: int, named: tuple[str, str], analyzer: Analyzer) -> None:
        self._vectors = LocalVectors(db, seq)
        super().__init__(db, seq, named, analyzer, self._vectors)
        self._folder = folder
        self._words = Words(folder)
        self._seen: State | None = None
        self._audiences: dict[frozenset[str], frozenset[int] | None] = {}

    def close(self) -> None:
        """Let go of the words."""
        self._words.close()
        self._seen = None

    def writing(self, wait: float) -> AbstractContextManager[None]:
        """Be the only one who indexes.

        Raises:
            ConflictError: another process did for longer than `wait` seconds.
        """
        return held(self._folder.with_name(f"{self.seq}.lock"), wait, f"{self.name!r}")

    def commit(self, batch: Batch) -> None:
        """Do what a batch says, all or nothing."""
        self._tables.commit(batch)

    def settle(self) -> None:
        """Bring the words up to date.

        Raises:
            ConflictError: another process is doing so.
        """
        state = self._tables.state()
        if state == self._seen:
            return
        mark = self._words.mark()
        if mark is None or mark[:2] != state or mark.analyzer != self.analyzer.name:
            # The other may just have done it.
            with self._db.transaction(write=False):
                state = self._tables.state()
                since = self._since(mark)
                seen = Mark(*state, self.analyzer.name)
                gone = self._tables.gone_since(since) if since is not None else ()
                self._words.change(seen, gone, self._added(since or 0), anew=since is None)
        self._see(state)

    def search(self, weights: Mapping[str, float], k: int, who: Who) -> tuple[Passage, ...]:
        """Return at most k passages that hold any of the terms, best first."""
        self._up_to_date()
        wanted = asked = max(min(k, MOST), 0)
        visible = self._seen_by(who)
        while asked:
            found = self._words.search(weights, asked, visible)
            shown = self._shown(found, who)
            # Fewer than found only while the words are older than the rows.
            if len(shown) >= wanted or len(found) < asked or asked >= MOST:
                return shown[:wanted]
            asked = min(asked * 4, MOST)
        return ()

    def counts(self, terms: Sequence[str], who: Who) -> Counts:
        """Count passages and the holders of terms."""
        self._up_to_date()
        visible = self._seen_by(who)
        counted = self._tables.counted()
        passages = sum(count for audience, count in counted.items() if visible is None or audience in visible)
        holders = self._words.holders(dict.fromkeys(terms), visible) if passages else dict.fromkeys(terms, 0)
        return Counts(passages, holders)

    def nearest(self, model: str, vector: Vector, k: int, who: Who) -> tuple[Passage, ...]:
        """Return at most k passages whose vectors are nearest, best first."""
        found = self._vectors.nearest(model, vector, min(k, MOST), self._seen_by(who), self._tables.state())
        return self._shown(found, who)

    def _up_to_date(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.settle()
                return
            except ConflictError:
                if time.monotonic() > deadline and self._words.mark() is not None:
                    return
                time.sleep(0.05)

    def _since(self, mark: Mark | None) -> int | None:
        """After which transaction the words must be told; None: they are made anew."""
        if mark is None or mark.analyzer != self.analyzer.name or not self._tables.had(mark.generation, mark.stamp):
            return None
        return mark.generation

    def _added(self, generation: int) -> Iterator[Added]:
        headings: tuple[str, list[str]] = ("", [])
        for seq, document, audience, title, heading, text in self._tables.texts_since(generation):
            above = f"{title}\n{heading}"
            if headings[0] != above:
                headings = (above, self.analyzer.terms(above))
            yield Added(seq, document, audience, headings[1] + self.analyzer.terms(text))

    def _see(self, state: State) -> None:
        if state != self._seen:
            self._audiences.clear()
            self._seen = state

    def _seen_by(self, who: Who) -> frozenset[int] | None:
        """The audiences that somebody belongs to; None when these are all."""
        if self._tables.state() != self._seen:
            self._audiences.clear()
        if who not in self._audiences:
            every = self._tables.audiences()
            visible = frozenset(seq for seq, audience in every.items() if may_see(audience, who))
            if len(self._audiences) >= 1_000:
                self._audiences.clear()
            self._audiences[who] = None if len(visible) == len(every) else visible
        return self._audiences[who]

    def _shown(self, found: Sequence[Scored], who: Who) -> tuple[Passage, ...]:
        """Look up what was found; what was deleted or closed since the words were written is left out."""
        rows = self._tables.passages({each.passage: each.score for each in found if each.score > 0}) if found else {}
        visible: Collection[int] | None = self._seen_by(who)
        held = (rows[each.passage] for each in found if each.passage in rows)
        return tuple(each.passage for each in held if visible is None or each.audience in visible)
