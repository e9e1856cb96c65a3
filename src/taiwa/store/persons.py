"""Who asks: what is kept of a person, what they said of acts, and which conversations are theirs.

Bodies are JSON that this package does not read. What feedback teaches is worked out by whoever reads it, so that nothing
here has to be undone.
"""

from dataclasses import dataclass

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.store.bodies import pack, plain, unpack
from taiwa.store.connection import Connection
from taiwa.store.names import composed
from taiwa.store.refs import Refs

__all__ = ["Kept", "Persons"]

LONGEST_NAME = 100
PUT = """
INSERT INTO person(name, body, at_us) VALUES(?, ?, ?)
ON CONFLICT(name) DO UPDATE SET body = excluded.body, at_us = excluded.at_us"""
CLAIM = "INSERT INTO person_ref(ref, person) VALUES(?, ?) ON CONFLICT(ref) DO UPDATE SET person = excluded.person"
OWN = """
SELECT ref.name FROM person_ref JOIN ref ON ref.seq = person_ref.ref
WHERE person_ref.person = ? AND ref.node IS NOT NULL ORDER BY ref.moved DESC"""
LISTED = """
SELECT name, at_us, (SELECT count(*) FROM verdict WHERE verdict.person = person.seq),
    (SELECT count(*) FROM person_ref WHERE person_ref.person = person.seq)
FROM person ORDER BY name"""


@dataclass(frozen=True, slots=True)
class Kept:
    """A person in a listing: when their profile changed last, and how many verdicts and conversations there are."""

    name: str
    at_us: int
    verdicts: int
    sessions: int


class Persons:
    """The persons of a store."""

    def __init__(self, db: Connection, refs: Refs) -> None:
        self._db = db
        self._refs = refs

    def list(self) -> tuple[Kept, ...]:
        """Return all persons by name."""
        return tuple(Kept(*row) for row in self._db.rows(LISTED))

    def get(self, name: str) -> Json:
        """Return what is kept of a person; None where nobody has that name."""
        row = self._db.row("SELECT body FROM person WHERE name = ?", _one_form(name))
        return None if row is None else unpack(row[0])

    def put(self, name: str, body: Json) -> None:
        """Keep a person, instead of what was kept of them; their verdicts and conversations stay.

        Raises:
            InputError: that cannot be a name.
        """
        self._db.run(PUT, _checked(name), pack(plain(body)), self._db.clock())

    def tell(self, name: str, verdict: Json) -> int:
        """Keep what a person said of an act, and return how many verdicts that makes.

        Raises:
            InputError: nobody has that name.
        """
        with self._db.transaction():
            person = self._seq(name)
            self._db.run(
                "INSERT INTO verdict(person, body, at_us) VALUES(?, ?, ?)",
                person,
                pack(plain(verdict)),
                self._db.clock(),
            )
            return int(self._db.one("SELECT count(*) FROM verdict WHERE person = ?", person))

    def told(self, name: str) -> tuple[Json, ...]:
        """Return what a person said of acts, oldest first; nothing where nobody has that name."""
        select = "SELECT verdict.body FROM verdict JOIN person ON person.seq = verdict.person WHERE name = ? ORDER BY verdict.seq"
        return tuple(unpack(body) for (body,) in self._db.rows(select, _one_form(name)))

    def reset(self, name: str) -> int:
        """Forget what a person said of acts, and return how many verdicts that were.

        Raises:
            InputError: nobody has that name.
        """
        with self._db.transaction():
            return self._db.run("DELETE FROM verdict WHERE person = ?", self._seq(name))

    def remove(self, name: str) -> None:
        """Delete a person with all that was kept of them; their conversations stay, and are nobody's.

        Raises:
            InputError: nobody has that name.
        """
        with self._db.transaction():
            self._db.run("DELETE FROM person WHERE seq = ?", self._seq(name))

    def claim(self, session: str, name: str) -> None:
        """Say whose a conversation is.

        Raises:
            InputError: there is no such session, or nobody has that name.
        """
        with self._db.transaction():
            self._db.run(CLAIM, self._refs.at(session)[0], self._seq(name))

    def sessions(self, name: str) -> tuple[str, ...]:
        """Return the conversations of a person, the one that moved last first."""
        found = self._db.row("SELECT seq FROM person WHERE name = ?", _one_form(name))
        return () if found is None else tuple(name for (name,) in self._db.rows(OWN, found[0]))

    def _seq(self, name: str) -> int:
        found = self._db.row("SELECT seq FROM person WHERE name = ?", _one_form(name))
        if found is None:
            known = ", ".join(each.name for each in self.list()[:5])
            raise InputError(f"there is no person {name!r}{f': there are {known}' if known else ''}")
        return int(found[0])


def _one_form(name: str) -> str:
    return composed(name).strip()


def _checked(name: str) -> str:
    """Return the name of a person in its one form.

    Raises:
        InputError: it cannot be one.
    """
    kept = _one_form(name)
    if not kept or len(kept) > LONGEST_NAME or not kept.isprintable():
        raise InputError(f"a person cannot be called {name!r}: one line of at most {LONGEST_NAME} characters")
    return kept
