"""Whether an index is asked by meaning too, and by which embedder: rows that are the same in a file and on a server."""

import json
from typing import TYPE_CHECKING

from taiwa.retrieve.values import Gain, Meaning

if TYPE_CHECKING:
    from taiwa.sqlite import Database

__all__ = ["Meanings"]

JUDGED = (
    "INSERT INTO gain(shelf, model, body) VALUES(?, ?, ?) ON CONFLICT(shelf, model) DO UPDATE SET body = excluded.body"
)
CHOSEN = "INSERT INTO meaning(shelf, body) VALUES(?, ?) ON CONFLICT(shelf) DO UPDATE SET body = excluded.body"


class Meanings:
    """What one index was told, and what its checks found."""

    def __init__(self, db: "Database", shelf: int) -> None:
        self._db = db
        self._shelf = shelf

    def judge(self, model: str, gain: Gain) -> None:
        """Keep what a check found."""
        body = json.dumps([gain.questions, gain.words, gain.fused, gain.low, gain.high, gain.of])
        self._db.run(JUDGED, self._shelf, model, body)

    def gain(self, model: str) -> Gain | None:
        """Return what the last check found."""
        body = self._db.one("SELECT body FROM gain WHERE shelf = ? AND model = ?", self._shelf, model)
        return None if body is None else Gain(*json.loads(body))

    def meaning(self) -> Meaning | None:
        """Return what was chosen."""
        body = self._db.one("SELECT body FROM meaning WHERE shelf = ?", self._shelf)
        if body is None:
            return None
        place, model, probe, always = json.loads(body)
        return Meaning(place, model, tuple(probe), always)

    def choose(self, meaning: Meaning | None) -> None:
        """Keep a choice, or forget the one that was made."""
        if meaning is None:
            self._db.run("DELETE FROM meaning WHERE shelf = ?", self._shelf)
            return
        body = json.dumps([meaning.place, meaning.model, meaning.probe, meaning.always], ensure_ascii=False)
        self._db.run(CHOSEN, self._shelf, body)
