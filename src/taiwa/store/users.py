"""User profiles, the feedback of users on answers and questions, and the sessions of each user.

Bodies are JSON that this package does not interpret. Values learned from feedback are derived by its reader, so deleting
the feedback resets them.
"""

from taiwa.kernel.errors import InputError, NotFoundError
from taiwa.kernel.serialization import Json, value
from taiwa.sql import Database
from taiwa.store.nodes import check_json, pack, unpack
from taiwa.store.refs import LONGEST_NAME, Refs, composed

PUT = """
INSERT INTO user_profile(owner, name, body, at_us) VALUES(?, ?, ?, ?)
ON CONFLICT(owner, name) DO UPDATE SET body = excluded.body, at_us = excluded.at_us"""
ASSIGN = """
INSERT INTO user_session(ref, user_profile) VALUES(?, ?) ON CONFLICT(ref) DO UPDATE SET user_profile = excluded.user_profile"""
SESSIONS = """
SELECT ref.name FROM user_session JOIN ref ON ref.seq = user_session.ref
JOIN user_profile ON user_profile.seq = user_session.user_profile
WHERE user_profile.owner = ? AND user_profile.name = ? AND ref.node IS NOT NULL ORDER BY ref.moved DESC"""
FEEDBACK = """
SELECT feedback.body FROM feedback JOIN user_profile ON user_profile.seq = feedback.user_profile
WHERE owner = ? AND name = ? ORDER BY feedback.seq"""
LISTED = """
SELECT name, at_us, (SELECT count(*) FROM feedback WHERE feedback.user_profile = user_profile.seq),
    (SELECT count(*) FROM user_session WHERE user_session.user_profile = user_profile.seq)
FROM user_profile WHERE owner = ? ORDER BY name"""


@value
class UserListing:
    """A user in a listing: the time of the last change of the profile, and the numbers of feedback entries and sessions."""

    name: str
    at_us: int
    feedback: int
    sessions: int


class Users:
    """The users of one owner of a store."""

    def __init__(self, db: Database, refs: Refs, owner: str = "") -> None:
        self._db = db
        self._refs = refs
        self._owner = owner

    def list(self) -> tuple[UserListing, ...]:
        """Return all users, sorted by name."""
        return tuple(UserListing(*row) for row in self._db.rows(LISTED, self._owner))

    def get(self, name: str) -> Json:
        """Return the profile of a user, or None for an unknown user."""
        row = self._db.row("SELECT body FROM user_profile WHERE owner = ? AND name = ?", self._owner, _normalized(name))
        return None if row is None else unpack(row[0])

    def put(self, name: str, body: Json) -> None:
        """Store or replace the profile of a user; feedback and sessions stay.

        Raises:
            InputError: the name is empty, too long, or has several lines.
        """
        normalized = _normalized(name)
        if not normalized or len(normalized) > LONGEST_NAME or not normalized.isprintable():
            raise InputError(f"invalid user name {name!r}; give one line of at most {LONGEST_NAME} characters")
        self._db.run(PUT, self._owner, normalized, pack(check_json(body)), self._db.clock())

    def add_feedback(self, name: str, body: Json) -> int:
        """Store feedback of a user, and return the number of that user's entries.

        Raises:
            InputError: the user is unknown.
        """
        with self._db.transaction():
            seq = self._seq(name)
            insert = "INSERT INTO feedback(user_profile, body, at_us) VALUES(?, ?, ?)"
            self._db.run(insert, seq, pack(check_json(body)), self._db.clock())
            return int(self._db.one("SELECT count(*) FROM feedback WHERE user_profile = ?", seq))

    def feedback(self, name: str) -> tuple[Json, ...]:
        """Return the feedback of a user, oldest first; empty for an unknown user."""
        return tuple(unpack(body) for (body,) in self._db.rows(FEEDBACK, self._owner, _normalized(name)))

    def clear_feedback(self, name: str) -> int:
        """Delete the feedback of a user, and return the number of entries.

        Raises:
            InputError: the user is unknown.
        """
        with self._db.transaction():
            return self._db.run("DELETE FROM feedback WHERE user_profile = ?", self._seq(name))

    def delete(self, name: str) -> None:
        """Delete a user with profile and feedback; the sessions stay, without a user.

        Raises:
            InputError: the user is unknown.
        """
        with self._db.transaction():
            self._db.run("DELETE FROM user_profile WHERE seq = ?", self._seq(name))

    def assign_session(self, session: str, name: str) -> None:
        """Assign a session to a user.

        Raises:
            InputError: the session or the user is unknown.
        """
        with self._db.transaction():
            self._db.run(ASSIGN, self._refs.require(session)[0], self._seq(name))

    def sessions(self, name: str) -> tuple[str, ...]:
        """Return the sessions of a user, the latest moved first."""
        return tuple(session for (session,) in self._db.rows(SESSIONS, self._owner, _normalized(name)))

    def _seq(self, name: str) -> int:
        select = "SELECT seq FROM user_profile WHERE owner = ? AND name = ?"
        seq: int | None = self._db.one(select, self._owner, _normalized(name))
        if seq is None:
            raise self.unknown(name)
        return seq

    def unknown(self, name: str) -> InputError:
        """Return the error for a user that does not exist."""
        known = ", ".join(each.name for each in self.list()[:5])
        return NotFoundError(f"user {name!r} not found{f'; users: {known}' if known else ''}")


def _normalized(name: str) -> str:
    return composed(name).strip()
