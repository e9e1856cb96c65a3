"""Names of sessions, the log of where each name has pointed, and revisions: `name`, `name~2`, `name@{3}`, part of a hash."""

import re
import unicodedata
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import count
from string import ascii_letters, digits

from taiwa.kernel.errors import ConflictError, InputError, NotFoundError
from taiwa.kernel.serialization import value
from taiwa.kernel.text import plural
from taiwa.kernel.wording import Wording
from taiwa.sql import Database
from taiwa.sql.base import SqlRow
from taiwa.store.nodes import HASH_LENGTH, OWNED, Nodes, as_hash, decoding, short_hash

LONGEST_NAME = 100
FORBIDDEN = frozenset("~@{}")
PLAIN = frozenset(f"{ascii_letters}{digits}-_.")
PLACE = re.compile(r"(?P<name>.*):(?P<turn>[0-9]{1,6})", re.DOTALL)
"""A turn of a session by its number, such as chat-1:2."""
LIKE_A_HASH = re.compile(r"[0-9a-fA-F]{4,32}")


def composed(name: str) -> str:
    """Return a name in composed Unicode (NFC), the form in which names are stored."""
    return unicodedata.normalize("NFC", name)


def check_name(name: str) -> str:
    """Return the name of a session as it is stored.

    Raises:
        InputError: the name looks like a revision, a hash or an option, or is empty or too long.
    """
    composed_name = composed(name)
    if not composed_name or len(composed_name) > LONGEST_NAME:
        raise InputError(f"a session name must have 1 to {LONGEST_NAME} characters")
    if composed_name in {".", ".."}:
        raise InputError(f"a session name must not be {composed_name!r}, which paths and addresses read as a folder")
    if composed_name.startswith("-"):
        raise InputError("a session name must not begin with '-', which begins an option")
    for char in set(composed_name) - PLAIN:
        if char in FORBIDDEN or unicodedata.category(char)[0] in "CZ":
            raise InputError(Wording("a session name must not contain spaces, control characters or ~ @ { }, found {found!r}", found=char))  # fmt: skip
    if PLACE.fullmatch(composed_name):
        raise InputError(
            f"the session name {composed_name!r} reads as a turn of a session; do not end it with : and a number"
        )
    if LIKE_A_HASH.fullmatch(composed_name):
        raise InputError(f"the session name {composed_name!r} looks like the beginning of a hash; add another letter")
    return composed_name


def check_tags(given: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of a session as they are stored; those that differ in capitals only are one.

    Raises:
        InputError: a tag is empty, too long or has a comma, or there are too many.
    """
    found: dict[str, str] = {}
    for text in given:
        tag = " ".join(composed(text).split()).removeprefix("#")
        if not tag or len(tag) > LONGEST_TAG or not tag.isprintable() or TAG_ENDS & set(tag):
            raise InputError(Wording("invalid tag {tag!r}; give 1 to {most} characters without a comma", tag=text[:60], most=LONGEST_TAG))  # fmt: skip
        found.setdefault(tag.casefold(), tag)
    if len(found) > MOST_TAGS:
        raise InputError(Wording("a session can have at most {most} tags, got {n}", most=MOST_TAGS, n=len(found)))
    return tuple(found.values())


LONGEST_TAG = 50
MOST_TAGS = 20
TAG_ENDS = frozenset(",，、")
"""What separates tags where several are written."""
BY_CLIENT = "client: "
"""The prefix of the reason of a move by a client of the server; its name and protocol follow."""
FORK = "fork of "
"""The prefix of the reason of a fork; the session that was forked follows, or a revision."""
REVISION = re.compile(r"(?P<base>[^~@{}]*)@?(?:(?<=@)\{(?P<moved>[0-9]{1,9})\})?(?P<back>(?:~[0-9]{0,9})*)")
PREFIX = re.compile(r"[0-9a-f]{4,32}")
TURN = re.compile(r"[0-9]{1,3}")
MOST_LISTED = 5
ALL = 2**62
BACK = """
WITH RECURSIVE back(seq, steps) AS (
    SELECT CAST(? AS BIGINT), 0
    UNION ALL SELECT node.base, steps + 1 FROM back JOIN node ON node.seq = back.seq
    WHERE steps < ? AND back.seq <> ? AND node.base < node.seq)
SELECT seq, steps FROM back ORDER BY steps"""
"""The nodes that undo visits from a node, for a maximum number of steps and not beyond another node."""
LAST_OTHER = "SELECT new FROM reflog WHERE ref = ? AND op NOT IN ('undo', 'redo', 'rename') ORDER BY seq DESC LIMIT 1"
FIND = """
SELECT ref.seq, ref.node, node.hash FROM ref JOIN node ON node.seq = ref.node
WHERE ref.name = ? AND ref.owner = ? AND ref.node IS NOT NULL"""
# An imported session is never the latest before it has moved: `-c` must not continue a stranger's conversation.
LATEST = """
SELECT name FROM ref JOIN reflog ON reflog.seq = ref.moved
WHERE ref.owner = ? AND ref.node IS NOT NULL AND NOT (op = 'create' AND reason = 'import') ORDER BY moved DESC LIMIT 1"""
CONTINUED = """
SELECT ref.name, reason, node.hash, base.hash FROM reflog JOIN ref ON ref.seq = reflog.ref JOIN node ON node.seq = reflog.new
LEFT JOIN node base ON base.seq = node.base
WHERE ref.owner = ? AND ref.node IS NOT NULL AND op = 'create' AND (reason LIKE ? OR node.turns > 1) ORDER BY reflog.seq"""
"""The sessions that did not begin with their first turn."""
SHOWN = """
SELECT ref.name, node.hash, app.name, node.turns, reflog.at_us, reflog.reason, ref.title, ref.place, ref.tags
FROM ref JOIN node ON node.seq = ref.node JOIN app ON app.seq = node.app JOIN reflog ON reflog.seq = ref.moved
WHERE ref.owner = ? AND ref.moved > ? ORDER BY ref.moved DESC"""


@value
class Ref:
    """A session in a listing: `reason` says why it moved last, and `at_us` is the clock then, for display only. `title` is in free
    words, "" without one.
    """

    name: str
    tip: str
    app: str
    turns: int
    at_us: int
    reason: str = ""
    title: str = ""
    place: int = 0
    """Its place in a listing: 1 pinned, 0, or -1 archived."""
    tags: tuple[str, ...] = ()

    @property
    def pinned(self) -> bool:
        """Whether it comes first in a listing."""
        return self.place > 0

    @property
    def archived(self) -> bool:
        """Whether it comes last, or is left out."""
        return self.place < 0

    def has_tag(self, tag: str) -> bool:
        """Return whether the session has a tag, in any capitals."""
        return tag.casefold() in {each.casefold() for each in self.tags}

    @property
    def client(self) -> str:
        """The program and protocol of the last turn through a server; "" for moves of taiwa itself."""
        return self.reason.removeprefix(BY_CLIENT) if self.reason.startswith(BY_CLIENT) else ""


@value
class ReflogEntry:
    """One move of a name: `create commit undo redo move rename delete`, from where, to where, and why."""

    op: str
    old: str | None
    new: str | None
    reason: str
    at_us: int


class Refs:
    """The sessions of one owner of a store."""

    def __init__(self, db: Database, nodes: Nodes) -> None:
        self._db = db
        self._nodes = nodes
        self._owner = nodes.owner

    def list(self, since: int = 0) -> tuple[Ref, ...]:
        """Return all sessions, or those after the move of a number; the latest moved first."""
        with decoding("session"):
            return tuple(map(_ref, self._db.rows(SHOWN, self._owner, since)))

    def moves(self) -> tuple[int, int]:
        """Return the number of the last move, and the number of sessions; every change of a session changes one of them."""
        select = "SELECT coalesce(max(moved), 0), count(*) FROM ref WHERE owner = ? AND node IS NOT NULL"
        last, count = self._db.rows(select, self._owner)[0]
        return int(last), int(count)

    def latest(self) -> str | None:
        """Return the name that moved last, independent of clocks; imported sessions that have not moved do not count."""
        name: str | None = self._db.one(LATEST, self._owner)
        return None if name is None else str(name)

    def require_latest(self) -> str:
        """Return the same as `latest`.

        Raises:
            InputError: there is none; the message lists imported sessions.
        """
        name = self.latest()
        if name is None:
            imported = ", ".join(ref.name for ref in self.list()[:5])
            if imported:
                raise InputError(f"there are only imported conversations, which are continued by name: {imported}")
            raise InputError("there are no conversations yet; begin one with `taiwa chat` or `taiwa say`")
        return name

    def has(self, name: str) -> bool:
        """Report whether a session has that name."""
        return self.find(name) is not None

    def tip(self, name: str) -> str:
        """Return the node that a name points to.

        Raises:
            InputError: the session does not exist; the message lists similar names.
        """
        return self.require(name)[2]

    def find(self, name: str) -> tuple[int, int, str] | None:
        """Return the rows of a session and of its tip, and the hash of the tip."""
        row = None if "\0" in name else self._db.row(FIND, composed(name), self._owner)  # PostgreSQL has no such text
        return None if row is None else (row[0], row[1], as_hash(row[2]))

    def find_tip(self, name: str) -> str | None:
        """Return the node that a name points to; None if no session has it."""
        session = self.find(name)
        return None if session is None else session[2]

    def require(self, name: str) -> tuple[int, int, str]:
        """Return the same as `find`.

        Raises:
            InputError: as `tip`.
        """
        session = self.find(name)
        if session is None:
            raise NotFoundError(Wording("session {name!r} not found; {hint}", name=name, hint=self.hint(name)))
        return session

    def hint(self, name: str) -> str:
        """Return similar names of sessions, as the end of an error message."""
        select = "SELECT name FROM ref WHERE owner = ? AND node IS NOT NULL ORDER BY moved DESC"
        names = [str(row[0]) for row in self._db.rows(select, self._owner)]
        if near := get_close_matches(name, names, n=3, cutoff=0.5):
            return Wording("did you mean {near}?", near=" or ".join(near))
        more = " …" if len(names) > 5 else ""
        return (Wording("sessions: {names}", names=", ".join(names[:5]) + more) if names else Wording("there are no sessions yet"))  # fmt: skip

    def create(self, name: str, tip: str, reason: str = "create") -> None:
        """Point a new name to a node; this is all that a fork does.

        Raises:
            ConflictError: the name is taken.
        """
        checked = check_name(name)
        with self._db.transaction():
            self._db.lock(checked)
            node = self._nodes.seq(tip)
            if self.find(checked) is not None:
                raise ConflictError(Wording("session {name!r} already exists; choose another name", name=checked))
            self.begin(checked, node, reason)

    def begin(self, name: str, node: int, reason: str) -> None:
        """Write a new session; the caller has checked that the name is free."""
        insert = "INSERT INTO ref(owner, name, node, moved) VALUES(?, ?, ?, 0)"
        ref = self._db.insert(insert, self._owner, name, node)
        assert ref is not None
        self.log(ref, "create", None, node, reason)

    def move(self, name: str, tip: str, expected: str, reason: str) -> None:
        """Point a name to another node.

        Raises:
            ConflictError: it did not point to `expected`.
        """
        with self.moving(name) as (ref, old, at):
            if at != expected:
                raise ConflictError(conflict_message(name, at, expected))
            self.log(ref, "move", old, self._nodes.seq(tip), reason)

    def log(self, ref: int, op: str, old: int | None, new: int | None, reason: str) -> None:
        """Write a move to the reflog and the name; the caller holds the lock of the name."""
        insert = "INSERT INTO reflog(ref, op, old, new, reason, at_us) VALUES(?, ?, ?, ?, ?, ?)"
        moved = self._db.insert(insert, ref, op, old, new, reason, self._db.clock())
        self._db.run("UPDATE ref SET node = ?, moved = ? WHERE seq = ?", new, moved, ref)

    @contextmanager
    def moving(self, *names: str) -> Generator[tuple[int, int, str]]:
        """Lock the names in a transaction, and yield the first one as `require` does."""
        with self._db.transaction():
            # Before anything is read: what was read without the lock may have moved.
            self._db.lock(*map(composed, names))
            yield self.require(names[0])

    def undo(self, name: str, steps: int = 1) -> str:
        """Move a name some steps back and return its new tip; a turn goes with what was committed before it.

        A step back from a turn that replaced others, by an edit or a retry, leads to these.

        Raises:
            InputError: there are fewer steps.
        """
        _check_steps(steps, "undo")
        with self.moving(name) as (ref, old, _):
            new = old
            for made in range(steps):
                before = self._before(ref, new)
                if before is None:
                    raise _too_far(steps, made)
                new = before
            self.log(ref, "undo", old, new, f"undo {steps}")
            return self._nodes.hash_of(new)

    def redo(self, name: str, steps: int = 1) -> str:
        """Move a name forward over undone steps and return its new tip.

        Raises:
            NotFoundError: nothing was undone, or something was added since.
        """
        _check_steps(steps, "redo")
        with self.moving(name) as (ref, old, _):
            undone = self._undone(ref, old)
            if not undone:
                raise NotFoundError(Wording("nothing to redo in session {name!r}: {problem}", name=name, problem=self._why_nothing(ref, name)))  # fmt: skip
            if steps > len(undone):
                raise NotFoundError(
                    f"cannot redo {plural(steps, 'step')}; only {plural(len(undone), 'undone step')} {'is' if len(undone) == 1 else 'are'} left"
                )
            self.log(ref, "redo", old, undone[-steps], f"redo {steps}")
            return self._nodes.hash_of(undone[-steps])

    def _undone(self, ref: int, tip: int) -> Sequence[int]:
        """Return the undone tips, since the last move other than undo and redo, newest first."""
        found: dict[int, None] = {}
        at: int | None = self._db.one(LAST_OTHER, ref)
        # Going back may meet a node twice, after an edit back to what was there.
        while at is not None and at != tip and at not in found:
            found[at] = None
            at = self._before(ref, at)
        return tuple(found) if at == tip else ()

    def _before(self, ref: int, node: int) -> int | None:
        """Return where a session was before it first came to a node by a commit, or the node on which this one was added."""
        first = self._db.row("SELECT op, old FROM reflog WHERE ref = ? AND new = ? ORDER BY seq LIMIT 1", ref, node)
        # An edit adds its turn on an earlier node, but undo leads back to the turns that it replaced.
        if first is not None and first[0] == "commit" and first[1] not in (None, node):
            return int(first[1])
        base: int | None = self._db.one("SELECT base FROM node WHERE seq = ? AND base < seq", node)
        return base

    def left(self) -> tuple[tuple[str, str], ...]:
        """Return the nodes to which sessions pointed, newest first, each with its revision `name@{n}`."""
        select = """
        SELECT ref.name, node.hash FROM reflog JOIN ref ON ref.seq = reflog.ref LEFT JOIN node ON node.seq = reflog.new
        WHERE ref.owner = ? AND ref.node IS NOT NULL ORDER BY reflog.seq DESC"""
        moves: Counter[str] = Counter()
        found: dict[str, str] = {}
        for name, node in self._db.rows(select, self._owner):
            if node is not None:
                found[f"{name}@{{{moves[name]}}}"] = as_hash(node)
            moves[name] += 1
        return tuple(found.items())

    def _why_nothing(self, ref: int, name: str) -> str:
        ops = [row[0] for row in self._db.rows("SELECT op FROM reflog WHERE ref = ? ORDER BY seq DESC", ref)]
        if "undo" not in ops:
            return Wording("nothing was undone")
        if next(op for op in ops if op not in ("redo", "rename")) == "undo":
            return Wording("everything that was undone is restored")
        return f"it has moved on since the undo; what was undone is at {name}@{{{ops.index('undo') + 1}}}"

    def rename(self, name: str, new: str) -> None:
        """Rename a session together with its reflog, its runs and their costs.

        Raises:
            ConflictError: the new name is taken.
        """
        checked = check_name(new)
        with self.moving(name, checked) as (ref, node, _):
            if self.find(checked) is not None:
                raise ConflictError(Wording("session {name!r} already exists; choose another name", name=checked))
            self._db.run("UPDATE ref SET name = ? WHERE seq = ?", checked, ref)
            self._db.run("UPDATE run SET ref = ? WHERE ref = ? AND owner = ?", checked, composed(name), self._owner)
            self.log(ref, "rename", node, node, f"{composed(name)} to {checked}")

    def renamed(self, name: str) -> str:
        """Return the present name of the session that was renamed last from a name, "" if there is none."""
        select = """
        SELECT ref.name, reason FROM reflog JOIN ref ON ref.seq = reflog.ref
        WHERE op = 'rename' AND ref.owner = ? AND ref.node IS NOT NULL ORDER BY reflog.seq DESC"""
        start = f"{composed(name)} to "  # a name has no spaces
        return next((str(now) for now, reason in self._db.rows(select, self._owner) if reason.startswith(start)), "")

    def tags(self) -> tuple[str, ...]:
        """Return the tags of all sessions, sorted."""
        select = "SELECT DISTINCT tags FROM ref WHERE owner = ? AND node IS NOT NULL AND tags <> ''"
        found = {tag.casefold(): tag for (tags,) in self._db.rows(select, self._owner) for tag in tags.splitlines()}
        return tuple(found[key] for key in sorted(found))

    def label(
        self, name: str, *, title: str | None = None, place: int | None = None, tags: Iterable[str] | None = None
    ) -> tuple[str, ...]:
        """Set the title of a session ("" removes it), its place in a listing: 1 pinned, 0, or -1 archived, or its tags; return these.

        Raises:
            InputError: as `check_tags`.
        """
        checked = None if tags is None else check_tags(tags)
        with self.moving(name) as (ref, _, _):
            if title is not None:
                self._db.run("UPDATE ref SET title = ? WHERE seq = ?", title, ref)
            if place is not None:
                self._db.run("UPDATE ref SET place = ? WHERE seq = ?", place, ref)
            if checked is not None:
                self._db.run("UPDATE ref SET tags = ? WHERE seq = ?", "\n".join(checked), ref)
            return tuple(str(self._db.one("SELECT tags FROM ref WHERE seq = ?", ref)).splitlines())

    def delete(self, name: str) -> str:
        """Remove a name and return the node it pointed to; the nodes stay until `gc`."""
        with self.moving(name) as (ref, node, tip):
            self.log(ref, "delete", node, None, "delete")
            return tip

    def reflog(self, name: str, limit: int = -1) -> tuple[ReflogEntry, ...]:
        """Return the moves of a name, newest first; also of a deleted name, until it is used again."""
        # A deleted session keeps its row; one that uses its name again comes first.
        order = "SELECT seq FROM ref WHERE name = ? AND owner = ? ORDER BY node IS NULL, seq DESC LIMIT 1"
        ref = self._db.one(order, composed(name), self._owner)
        if ref is None:
            raise NotFoundError(Wording("session {name!r} not found; {hint}", name=name, hint=self.hint(name)))
        select = """
        SELECT op, was.hash, is_now.hash, reason, reflog.at_us FROM reflog
        LEFT JOIN node was ON was.seq = reflog.old LEFT JOIN node is_now ON is_now.seq = reflog.new
        WHERE ref = ? ORDER BY reflog.seq DESC LIMIT ?"""
        return tuple(
            ReflogEntry(op, old and as_hash(old), new and as_hash(new), reason, at)
            for op, old, new, reason, at in self._db.rows(select, ref, limit if limit >= 0 else ALL)
        )

    def continued(self) -> Iterator[tuple[str, str, str]]:
        """Yield each session that continues others: its name, the name of the one that was forked ("" if it is not known), and the
        node that it began behind.
        """
        for name, reason, node, base in self._db.rows(CONTINUED, self._owner, f"{FORK}%"):
            if reason.startswith(FORK):
                yield name, re.split("[:~@]", reason.removeprefix(FORK))[0], as_hash(node)
            elif base:
                yield name, "", as_hash(base)

    def back(self, tip: str, steps: int) -> str:
        """Return the node some steps back; a step is a turn with what was committed before it, such as a summary, or an edit.

        Raises:
            InputError: there are fewer steps.
        """
        return self._nodes.hash_of(self.row_back(self._nodes.seq(tip), steps))

    def row_back(self, node: int, steps: int) -> int:
        """Return the row of the node some steps back, as `back`."""
        seq, made = self._db.rows(BACK, node, steps, 0)[-1]
        if made < steps:
            raise _too_far(steps, made)
        return int(seq)

    def resolve(self, revision: str) -> str:
        """Return the node of a revision.

        `name:2` is the second turn of a session, `name~n` is n steps back, `name@{n}` is the node that the name pointed to n
        moves ago, `""` and `"@"` are the session that moved last. `:2`, or a number of one to three digits, is a turn of
        that session.

        Raises:
            InputError: the revision matches no node, or several.
        """
        form = REVISION.fullmatch(revision.strip())
        if form is None:
            raise InputError(
                f"invalid revision {revision!r}; write name, name:2, name~2, name@{{3}} or the beginning of a hash"
            )
        name = form["base"] or self.require_latest()
        if form["moved"] is not None:
            tip = self._moved(name, int(form["moved"]))
        else:
            known = self.find(name)
            tip = self._found(name) if known is None else known[2]
        steps = sum(int(count or 1) for count in form["back"].split("~")[1:])
        return self.back(tip, steps) if steps else tip

    def session_of(self, revision: str) -> str:
        """Return the session that a revision names: the one that moved last for a number alone; "" for a hash.

        Raises:
            InputError: there is no session yet.
        """
        base = re.split("[~@]", revision.strip(), maxsplit=1)[0]
        if self.has(base):
            return base
        place = PLACE.fullmatch(base)
        if place and place["name"]:
            return place["name"]
        return self.require_latest() if place or not base or TURN.fullmatch(base) else ""

    def _found(self, name: str) -> str:
        """Return the node of a revision that is not a session name: a turn by its number, or the beginning of a hash."""
        place = PLACE.fullmatch(name)
        if place is None and not TURN.fullmatch(name):
            return self._by_prefix(name)
        session, number = (place["name"], place["turn"]) if place else ("", name)
        session = session or self.require_latest()
        turns = [key for key, node in self._nodes.path(self.tip(session)) if node.kind == "turn"]
        if not 1 <= int(number) <= len(turns):
            raise NotFoundError(f"turn {number} not found; session {session!r} has {plural(len(turns), 'turn')}")
        return turns[-int(number)]

    def free_name(self, stem: str) -> str:
        """Return the first name of `stem-1`, `stem-2` … that neither a session nor an open run has."""
        stem = f"{composed(stem)}-"
        names = f"SELECT name FROM ref WHERE owner = ? AND node IS NOT NULL AND substr(name, 1, {len(stem)}) = ?"  # noqa: S608
        # A session that is still being answered for the first time has no name in the table of names.
        open_runs = f"SELECT ref FROM run WHERE owner = ? AND status = 'open' AND substr(ref, 1, {len(stem)}) = ?"  # noqa: S608
        rows = self._db.rows(f"{names} UNION {open_runs}", self._owner, stem, self._owner, stem)
        taken = {str(row[0]) for row in rows}
        return next(name for number in count(1) if (name := f"{stem}{number}") not in taken)

    def _moved(self, name: str, moves: int) -> str:
        log = self.reflog(name, moves + 1)
        if moves >= len(log):
            raise InputError(f"session {name!r} has moved only {len(log) - 1} times, not {moves}")
        tip = log[moves].new
        if tip is None:
            raise InputError(
                f"{name}@{{{moves}}} has no node: the session was deleted there, or its node was collected"
            )
        return tip

    def _by_prefix(self, text: str) -> str:
        prefix = text.lower()
        if not PREFIX.fullmatch(prefix):
            raise NotFoundError(Wording("session {name!r} not found; {hint}", name=text, hint=self.hint(text)))
        first, last = (bytes.fromhex(prefix.ljust(HASH_LENGTH, end)) for end in "0f")
        select = f"SELECT hash, kind {OWNED} AND hash BETWEEN ? AND ? ORDER BY hash LIMIT ?"
        nodes = self._db.rows(select, self._owner, first, last, MOST_LISTED + 1)
        if not nodes:
            raise NotFoundError(f"no session and no node {text!r} found; {self.hint(text)}")
        if len(nodes) > 1:
            listed = ", ".join(f"{as_hash(key)[: len(prefix) + 4]} ({kind})" for key, kind in nodes[:MOST_LISTED])
            more = " …" if len(nodes) > MOST_LISTED else ""
            raise InputError(f"{text!r} is the beginning of several hashes: {listed}{more}")
        return as_hash(nodes[0][0])


def _ref(row: SqlRow) -> Ref:
    name, tip, app, turns, at, reason, title, place, tags = row
    return Ref(name, tip.hex(), app, turns, at, reason, title, place, tuple(tags.splitlines()))


def _too_far(steps: int, made: int) -> NotFoundError:
    if not made:
        return NotFoundError(Wording("cannot go back: this is the beginning"))
    return NotFoundError(f"cannot go back {steps} steps; the beginning is {made} back")


def _check_steps(steps: int, what: str) -> None:
    if steps < 1:
        raise InputError(f"the number of steps to {what} must be at least 1, got {steps}")


def conflict_message(name: str, tip: str | None, expected: str | None) -> str:
    """Return the message for a session that another program moved first."""
    state = "already exists" if expected is None else f"is at {short_hash(tip)}, expected {short_hash(expected)}"
    return f"session {name!r} {state}: another program changed it first; nothing was changed, look at it and try again"
