"""The stored turns: a node is one turn, addressed by the hash of its content like a git commit; apps, attachments, and
snapshots of states.

Also the encoding of values in rows.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import (
    NO_PARTS,
    AnsweredBy,
    Node,
    NodeKind,
    PastTurn,
    TurnParts,
    restore_messages,
    restore_thinking,
)
from taiwa.kernel.attachments import Attachment, read_reference
from taiwa.kernel.errors import CorruptError, InputError, StoreError
from taiwa.kernel.messages import Message, ToolResult, result_files
from taiwa.kernel.serialization import (
    CANONICAL,
    Json,
    canonical,
    canonical_record,
    record,
    recorded_fields,
    refuse_constant,
    to_json,
    to_utf8,
)
from taiwa.kernel.wording import Wording
from taiwa.sql import Database
from taiwa.sql.base import SqlRow

T = TypeVar("T")
INSERT_BLOB = "INSERT INTO blob(owner, hash, data) VALUES(?, ?, ?) ON CONFLICT(owner, hash) DO NOTHING"


class Blobs:
    """The attachments of one owner of a store. An import may omit their bytes; their rows then have no data.

    Owners do not share bytes: knowing a hash does not give access to another owner's data.
    """

    def __init__(self, db: Database, owner: str = "") -> None:
        self._db = db
        self._owner = owner

    def put(self, attachment: Attachment) -> int:
        """Store an attachment if it is new, and return its row, within the caller's transaction."""
        key, data = bytes.fromhex(attachment.sha256), attachment.data or None
        row = self._db.row("SELECT seq, data IS NULL FROM blob WHERE owner = ? AND hash = ?", self._owner, key)
        if row is None:
            seq = self._db.insert(INSERT_BLOB, self._owner, key, data)
            return self.put(attachment) if seq is None else seq  # another process was faster
        if row[1] and data is not None:
            self._db.run("UPDATE blob SET data = ? WHERE seq = ?", data, row[0])
        return int(row[0])

    def link(self, table: Literal["node", "run"], seq: int, attachments: Iterable[Attachment]) -> None:
        """Store attachments and the references of a node or a run to them, within the caller's transaction."""
        insert = f"INSERT INTO {table}_blob({table}, blob) VALUES(?, ?) ON CONFLICT DO NOTHING"
        for attachment in attachments:
            self._db.run(insert, seq, self.put(attachment))

    def data(self, sha256: str) -> bytes:
        """Return the bytes of a hash, empty if the store does not have them."""
        select = "SELECT data FROM blob WHERE owner = ? AND hash = ?"
        data: bytes | None = self._db.one(select, self._owner, bytes.fromhex(sha256))
        return data or b""

    def fill(self, attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
        """Return attachments with their bytes, if the store has them.

        Raises:
            CorruptError: the bytes are not those of the attachment.
        """
        return tuple(each if each.data else self._filled(each) for each in attachments)

    def filled_messages(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return messages with the bytes of the files of their tool results; see `fill`."""
        if not result_files(messages):
            return messages
        return tuple(replace(each, parts=tuple(map(self.filled_result, each.parts))) for each in messages)

    def filled_turn(self, past: PastTurn) -> PastTurn:
        """Return a turn with the bytes of its files; see `fill`."""
        files, messages = self.fill(past.parts.attachments), self.filled_messages(past.parts.messages)
        return replace(past, parts=replace(past.parts, attachments=files, messages=messages))

    def filled_result(self, part: T) -> T:
        """Return a tool result with the bytes of its files; anything else as it is."""
        if not isinstance(part, ToolResult) or not part.attachments:
            return part
        return cast("T", replace(part, attachments=self.fill(part.attachments)))

    def _filled(self, attachment: Attachment) -> Attachment:
        data = self.data(attachment.sha256)
        if not data:
            return attachment
        check_content(attachment, data)
        return replace(attachment, data=data)


def check_content(attachment: Attachment, data: bytes) -> None:
    """Check that bytes match the hash and type of an attachment.

    Raises:
        CorruptError: they are not.
    """
    try:
        found = Attachment.from_bytes(data, attachment.name)
    except InputError:
        found = None
    if found != attachment:
        raise CorruptError(f"the attachment {attachment.label} does not match its hash, size or type; run `taiwa fsck`")


HASH_LENGTH = 32
"""Hexadecimal characters of a hash."""
COMPRESS_FROM = 600
"""Bytes above which a body is compressed; below that, zlib saves less than it costs."""
ZLIB = 0x78
"""The first byte of a zlib stream; no JSON text begins with it."""


def hash_to_bytes(text: str) -> bytes:
    """Return the 16 bytes of a hash.

    Raises:
        InputError: the text is not 32 lower-case hexadecimal characters.
    """
    try:
        raw = bytes.fromhex(text)
    except (TypeError, ValueError):
        raw = b""
    if len(raw) != HASH_LENGTH // 2 or text != raw.hex():
        raise InputError(f"not a hash; expected {HASH_LENGTH} hexadecimal characters")
    return raw


def as_hash(raw: object) -> str:
    """Return the hash of a row.

    Raises:
        CorruptError: the row is damaged.
    """
    if not isinstance(raw, bytes):
        raise CorruptError("a hash of the store cannot be read; run `taiwa fsck`")
    return raw.hex()


def short_hash(text: str | None) -> str:
    """Shorten a hash for a message."""
    return "nothing" if text is None else text[:8]


def check_json(data: Json) -> Json:
    """Return the value if it is pure JSON, so that reading it back gives an equal value with an equal hash.

    Raises:
        InputError: it contains a tuple, an instance of a class, or a key that is not a string.
    """
    if isinstance(data, list):
        for part in data:
            check_json(part)
    elif isinstance(data, dict):
        for name, part in data.items():
            if not isinstance(name, str):  # a caller may not check types
                raise InputError("a JSON object to be stored must have string keys")
            check_json(part)
    elif data is not None and not isinstance(data, (str, int, float)):
        raise InputError(f"a {type(data).__name__} cannot be stored; give JSON, with lists and not tuples")
    return data


def pack(data: Json, *, in_order: bool = False) -> bytes:
    """Encode JSON for a row: canonically, or with keys in their present order; compressed if that saves space.

    Raises:
        InputError: JSON cannot represent the value.
    """
    return _compressed(to_json(data) if in_order else canonical(data))


def pack_value(item: object) -> bytes:
    """Return what `pack` makes of the record of a value.

    Raises:
        InputError: it cannot be recorded.
    """
    return _compressed(to_utf8(canonical_record, item))


def _compressed(written: bytes) -> bytes:
    """Compress what is stored, if that saves space."""
    if len(written) <= COMPRESS_FROM:
        return written
    # The usual memory takes 50 µs to clear, and a turn 5 to compress.
    packing = zlib.compressobj(memLevel=6 if len(written) < SMALL else 8)
    compressed = packing.compress(written) + packing.flush()
    return compressed if len(compressed) < len(written) else written


def unpack(body: bytes) -> Json:
    """Decode what `pack` encoded.

    Raises:
        CorruptError: the body is damaged.
    """
    with decoding("row"):
        return _decode(body)


def _decode(body: bytes) -> Json:
    """Decode a body as `unpack`, within the caller's `decoding`."""
    text = (zlib.decompress(body) if body[0] == ZLIB else body).decode()
    decoded: tuple[Json, int] = DECODER.raw_decode(text)
    data, end = decoded
    if end != len(text):
        raise ValueError(end)
    if "\\u" in text:  # `pack` escapes only control characters; a lone surrogate could not be written again
        canonical(data)
    return data


DECODER = json.JSONDecoder(parse_constant=refuse_constant)
DAMAGES = (
    ArithmeticError, AttributeError, InputError, LookupError, RecursionError, TypeError, ValueError, zlib.error,
)  # fmt: skip


class decoding:  # noqa: N801  (used as a function; a class costs a third of a generator, twice for each row)
    """Report failures in its block as a damaged row, because a damaged file may contain any value in any column.

    Raises:
        CorruptError: the block failed.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, DAMAGES):
            raise CorruptError(f"a {self._what} of the store cannot be read; run `taiwa fsck`") from None


def searchable_texts(body: bytes) -> tuple[str, ...]:
    """Return the searchable texts of a node's body: the user's text, the answer, the names of attachments."""
    with decoding("node"):
        texts = cast("dict[str, Any]", unpack(body))
        names = (each.get("name") for each in texts.get("attachments", ()))
        return tuple(
            text for text in (texts.get("user"), texts.get("answer"), *names) if isinstance(text, str) and text
        )


BODY = ("answer", "attachments", "delta", "findings", "host", "messages", "model", "prefix", "thinking", "user")
_PATHS = {name: path for name, path, _ in recorded_fields(Node)}
BODY_OF: Callable[[Node], tuple[Any, ...]] = attrgetter(*map(_PATHS.__getitem__, BODY))
MAY_BE_EMPTY = frozenset({"answer", "delta", "findings", "user"})
BATCH = 256
KINDS = get_args(NodeKind)
OPTIONAL = (str, NoneType)
PLAIN = {"user", "answer", "delta", "model", "host"}
"""The texts of most turns."""
COLUMNS = "node.kind, app.hash, node.state, node.body"
"""The columns that `node_from_row` reads, after the hash of the parent."""
INSERT = """
INSERT INTO node(hash, parent, base, kind, app, turns, state, body, at_us) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(hash) DO NOTHING"""
# S608 reports a statement built from parts; the parts are the constants above.
# One step of the walk reads one row by its number, so the cost of a batch is proportional to its result.
UP = f"""
WITH RECURSIVE up(seq, parent, steps) AS (
    SELECT seq, parent, 1 FROM node WHERE seq = ?
    UNION ALL SELECT node.seq, node.parent, steps + 1 FROM up JOIN node ON node.seq = up.parent
    WHERE steps < {BATCH} AND up.parent < up.seq)
SELECT node.hash, up.parent, {COLUMNS} FROM up JOIN node ON node.seq = up.seq JOIN app ON app.seq = node.app
ORDER BY up.seq DESC"""  # noqa: S608
DOWN = f"""
WITH RECURSIVE down(seq) AS (
    SELECT CAST(? AS BIGINT)
    UNION ALL SELECT node.seq FROM down JOIN node ON node.parent = down.seq AND node.seq > down.seq)
SELECT node.hash, parent.hash, {COLUMNS} FROM down JOIN node ON node.seq = down.seq JOIN app ON app.seq = node.app
LEFT JOIN node parent ON parent.seq = node.parent ORDER BY node.seq"""  # noqa: S608
FIRST_TURN = """
WITH RECURSIVE up(seq, parent, kind, turns) AS (
    SELECT seq, parent, kind, turns FROM node WHERE seq = ?
    UNION ALL SELECT node.seq, node.parent, node.kind, node.turns FROM up JOIN node ON node.seq = up.parent
    WHERE up.turns > 0 AND up.parent < up.seq)
SELECT seq FROM up WHERE kind = 'turn' AND turns = 1"""
OWNED = "FROM node LEFT JOIN owned_node ON owned_node.node = node.seq WHERE coalesce(owner, '') = ?"
ONE = f"""
SELECT parent.hash, {COLUMNS} FROM node JOIN app ON app.seq = node.app LEFT JOIN node parent ON parent.seq = node.parent
WHERE node.seq = ?"""  # noqa: S608
MANY = f"""
SELECT node.hash, parent.hash, {COLUMNS} FROM node JOIN app ON app.seq = node.app
LEFT JOIN node parent ON parent.seq = node.parent LEFT JOIN owned_node ON owned_node.node = node.seq
WHERE coalesce(owner, '') = ?"""  # noqa: S608


def app_from_row(name: str, body: bytes) -> AppSource:
    """Return the app of a row."""
    match unpack(body):
        case {"source": str(source), "params": params, **more} if isinstance(cast("object", name), str):
            return AppSource(name, source, params, cast("Json", more.get("options")))
        case _:
            raise CorruptError("an app of the store cannot be read; run `taiwa fsck`")


def _node_parts(node: Node) -> list[tuple[str, Any]]:
    """Return what the body of a node holds, by name: JSON, and values to record."""
    return [
        (name, [each.reference() for each in part] if name == "attachments" else part)
        for name, part in zip(BODY, BODY_OF(node), strict=True)
        if part or (part is not None and name in MAY_BE_EMPTY)
    ]


def node_texts(node: Node) -> dict[str, Json]:
    """Return the texts of a node as JSON, without those that it does not have."""
    return {name: record(part) if isinstance(part, tuple) else part for name, part in _node_parts(node)}


def node_body(node: Node) -> bytes:
    """Return what `pack` makes of `node_texts`; the texts and messages were mostly written for the hash already.

    Raises:
        InputError: the delta or the findings are not JSON.
    """
    written = [
        f'"{name}":{canonical_record(part) if type(part) in (str, tuple) else CANONICAL.encode(check_json(part))}'
        for name, part in _node_parts(node)
    ]
    return _compressed(to_utf8("{{{}}}".format, ",".join(written)))


def node_from_row(parent: bytes | None, columns: SqlRow) -> Node:
    """Return the node of a row: kind, hash of the app, hash of the state, body.

    Raises:
        CorruptError: the row is damaged.
    """
    with decoding("node"):
        return (_known_node if len(columns[-1]) <= SMALL else _node)(parent, *columns)


def _node(parent: bytes | None, kind: NodeKind, app: bytes, state: bytes, body: bytes) -> Node:
    """Decode a node as `node_from_row`, within the caller's `decoding`."""
    fields = cast("dict[str, Any]", _decode(body))
    user, answer = fields.get("user"), fields.get("answer")
    if kind not in KINDS or not isinstance(user, OPTIONAL) or not isinstance(answer, OPTIONAL):
        raise ValueError(kind)
    above, delta = None if parent is None else parent.hex(), fields.get("delta")
    by, parts = AnsweredBy(str(fields.get("model", "")), str(fields.get("host", ""))), NO_PARTS
    if not fields.keys() <= PLAIN:
        parts = TurnParts(
            tuple(map(read_reference, fields.get("attachments", ()))),
            restore_thinking(fields["thinking"]) if "thinking" in fields else (),
            restore_messages(fields["messages"]) if "messages" in fields else (),
            str(fields.get("prefix", "")),
            fields.get("findings"),
        )
    return Node(above, kind, app.hex(), user, answer, delta, state.hex(), parts, by)


_known_node = lru_cache(4096)(_node)
"""Long histories are read again and again; what a row says does not change."""
SMALL = 4096
"""Bytes of a body up to which its node is kept."""


class Nodes:
    """The apps and nodes of one owner of a store. They are only added; only `maintenance` deletes.

    A hash is not a secret: only `find` maps it to a row, and only for data of the owner.
    """

    def __init__(self, db: Database, owner: str = "") -> None:
        self._db = db
        self.owner = owner
        self.blobs = Blobs(db, owner)

    def put_app(self, app: AppSource, *, untrusted: bool = False) -> str:
        """Store an app and return its hash; one that the owner does not have yet may be marked as untrusted."""
        name = app.hash
        self.app_row(app, name, untrusted=untrusted)
        return name

    def app_row(self, app: AppSource, name: str, *, untrusted: bool = False) -> int:
        """Store an app under its hash as `put_app`, and return its row."""
        seq = self.find(name, "app")
        if seq is None:
            parts = {"source": app.source, "params": check_json(app.params)}
            body = pack(parts if app.options is None else parts | {"options": check_json(app.options)})
            insert = "INSERT INTO app(hash, name, body) VALUES(?, ?, ?) ON CONFLICT(hash) DO NOTHING"
            with self._db.transaction():
                seq = self._own("app", name, self._db.insert(insert, hash_to_bytes(name), app.name, body))
                if untrusted:
                    insert = "INSERT INTO untrusted_app(app, owner) VALUES(?, ?) ON CONFLICT DO NOTHING"
                    self._db.run(insert, seq, self.owner)
        return seq

    def is_trusted(self, app: str) -> bool:
        """Return whether the app of a hash was not imported, or is trusted; an unknown app is trusted."""
        select = "SELECT 1 FROM untrusted_app JOIN app ON app.seq = untrusted_app.app WHERE app.hash = ? AND owner = ?"
        return self._db.one(select, hash_to_bytes(app), self.owner) is None

    def trust(self, app: str) -> None:
        """Trust an app from now on.

        Raises:
            StoreError: the store does not have it.
        """
        self._db.run("DELETE FROM untrusted_app WHERE app = ? AND owner = ?", self.seq(app, "app"), self.owner)

    def untrusted_apps(self) -> tuple[AppSource, ...]:
        """Return the untrusted apps, the first imported first."""
        select = "SELECT name, body FROM app JOIN untrusted_app ON app = app.seq WHERE owner = ? ORDER BY app.seq"
        return tuple(app_from_row(name, body) for name, body in self._db.rows(select, self.owner))

    def app(self, name: str) -> AppSource:
        """Return the app of a hash.

        Raises:
            StoreError: the store does not have it.
        """
        return app_from_row(*self._db.rows("SELECT name, body FROM app WHERE seq = ?", self.seq(name, "app"))[0])

    def put(self, node: Node, base: str | None = None) -> str:
        """Store a node, whose parent and app must be stored, and return its hash; a known node stays as it is.

        `base` is the tip that undo goes back to from here: the parent, unless a commit has several nodes.

        Raises:
            InputError: its parent or app is not stored, it cannot be encoded, or it is a root with a parent.
        """
        with self._db.transaction():
            self.insert((node,), None if base is None else self.seq(base), {})
        return node.hash

    def insert(self, nodes: Sequence[Node], base: int | None, apps: dict[str, int]) -> int:
        """Store consecutive nodes, as `put`, within the caller's transaction; return the row of the last one.

        `apps` are rows of apps by their hashes; looked-up rows are added to it.
        """
        parent, turns = self._parent(nodes[0])
        base = parent if base is None else base
        last_turn = max((at for at, node in enumerate(nodes) if node.kind == "turn"), default=0)
        for at, node in enumerate(nodes):
            if node.app not in apps:
                app = self.find(node.app, "app")
                if app is None:
                    raise InputError(
                        Wording(
                            "app {app} of the node not found in the store; the file was exported with --no-app",
                            app=short_hash(node.app),
                        )
                    )
                apps[node.app] = app
            turns += node.kind == "turn"
            known = self.find(node.hash) if node.kind == "root" else None  # each conversation of an app has the same
            parent = known or self._insert(node, parent, base, apps[node.app], turns)
            # A session can be undone back to its root, and turn by turn.
            base = parent if base is None or (node.kind == "turn" and at < last_turn) else base
        assert parent is not None
        return parent

    def _insert(self, node: Node, parent: int | None, base: int | None, app: int, turns: int) -> int:
        name, body = node.hash, node_body(node)  # a value that is nested too deeply has no hash
        state = hash_to_bytes(node.state_hash) if node.state_hash else b""
        values = (bytes.fromhex(name), parent, base, node.kind, app, turns, state, body, self._db.clock())
        seq = self._db.insert(INSERT, *values)
        if seq is None or self.owner:
            seq = self._own("node", name, seq)
        if files := node.files:
            self.blobs.link("node", seq, files)
        return seq

    def _parent(self, node: Node) -> tuple[int | None, int]:
        """Return the row of the parent, and the number of turns up to it."""
        if (node.parent is None) != (node.kind == "root"):
            raise InputError("a root must not have a parent, and every other node must have one")
        if node.parent is None:
            return None, 0
        found = self._db.row(
            f"SELECT node.seq, node.turns {OWNED} AND hash = ?", self.owner, hash_to_bytes(node.parent)
        )
        if found is None:
            raise InputError(f"parent {short_hash(node.parent)} of the node not found in the store")
        return found[0], found[1]

    def _own(self, table: Literal["app", "node"], name: str, seq: int | None) -> int:
        """Add the owner to the row of a hash, and return it; `seq` is None if another owner may have stored it."""
        owners = {self.owner}
        if seq is not None:
            # A row without owners is the default one's, so a store of one owner has no rows of owners.
            owners -= {""}
        elif (seq := self.find(name, table)) is not None:
            return seq
        else:
            seq = int(self._db.one(f"SELECT seq FROM {table} WHERE hash = ?", hash_to_bytes(name)))  # noqa: S608
            if not self._db.one(f"SELECT EXISTS(SELECT 1 FROM owned_{table} WHERE {table} = ?)", seq):  # noqa: S608
                # It was the default owner's alone, whose claim must be written before another owner is added.
                owners.add("")
        for owner in owners:
            insert = f"INSERT INTO owned_{table}({table}, owner) VALUES(?, ?) ON CONFLICT DO NOTHING"
            self._db.run(insert, seq, owner)
        return seq

    def find(self, name: str, table: Literal["app", "node"] = "node") -> int | None:
        """Return the row of a node, or of an app, or None if the owner did not store it."""
        owned = f"LEFT JOIN owned_{table} ON owned_{table}.{table} = {table}.seq"
        select = f"SELECT seq FROM {table} {owned} WHERE hash = ? AND coalesce(owner, '') = ?"  # noqa: S608
        seq: int | None = self._db.one(select, hash_to_bytes(name), self.owner)
        return seq

    def seq(self, name: str, table: Literal["app", "node"] = "node") -> int:
        """Return the row of a node, or of an app.

        Raises:
            StoreError: the store does not have it.
        """
        seq = self.find(name, table)
        if seq is None:
            raise StoreError(f"{table} {short_hash(name)} not found in the store")
        return seq

    def hash_of(self, seq: int) -> str:
        """Return the hash of a row.

        Raises:
            CorruptError: the row is missing.
        """
        key: bytes | None = self._db.one("SELECT hash FROM node WHERE seq = ?", seq)
        if key is None:
            raise CorruptError("the store refers to a node that it does not have; run `taiwa fsck`")
        return as_hash(key)

    def base(self, name: str) -> str | None:
        """Return the node that undo goes back to from here, None at a root."""
        base: int | None = self._db.one("SELECT base FROM node WHERE seq = ?", self.find(name))
        return None if base is None else self.hash_of(base)

    def has(self, name: str) -> bool:
        """Report whether a node is stored."""
        return self.find(name) is not None

    def get(self, name: str) -> Node:
        """Return the node of a hash.

        Raises:
            StoreError: the store does not have it.
        """
        row = self._db.row(ONE, self.seq(name))
        if row is None:
            raise CorruptError("a node of the store refers to an app that it does not have; run `taiwa fsck`")
        return node_from_row(row[0], row[1:])

    def get_all(self, names: Sequence[str]) -> tuple[Node, ...]:
        """Return the nodes of some hashes, in their order; as `get`, with one query for many."""
        found: dict[str, Node] = {}
        for start in range(0, len(names), BATCH):
            keys = [hash_to_bytes(name) for name in names[start : start + BATCH]]
            marks = ", ".join("?" * len(keys))
            for key, parent, *columns in self._db.rows(f"{MANY} AND node.hash IN ({marks})", self.owner, *keys):
                found[as_hash(key)] = node_from_row(parent, tuple(columns))
        missing = next((name for name in names if name not in found), None)
        if missing is not None:
            self.get(missing)  # raises the specific error
        return tuple(found[name] for name in names)

    def path(self, tip: str, stop: str | None = None) -> Iterator[tuple[str, Node]]:
        """Walk from a node to its root, yielding each node with its hash; end before `stop`.

        Rows are read in batches, so the store may be written to meanwhile.

        Raises:
            StoreError: the store does not have the node.
        """
        seq: int | None = self.seq(tip)
        while seq is not None:
            rows = self._db.rows(UP, seq)
            if not rows or (rows[-1][1] or 0) >= seq:  # a parent is older than its children
                raise CorruptError("the history of a node cannot be followed; run `taiwa fsck`")
            keys = [row[0] for row in rows]
            seq = rows[-1][1]
            keys.append(None if seq is None else hash_to_bytes(self.hash_of(seq)))
            for index, (key, _, *columns) in enumerate(rows):
                if stop is not None and as_hash(key) == stop:
                    return
                yield as_hash(key), node_from_row(keys[index + 1], tuple(columns))

    def time(self, name: str) -> int:
        """Return when a node was stored here, in microseconds since 1970; for display only."""
        return int(self._db.one("SELECT at_us FROM node WHERE seq = ?", self.seq(name)))

    def descendants(self, name: str) -> Iterator[tuple[str, Node]]:
        """Yield a node and all its descendants on any branch, each after its parent, with their hashes.

        Raises:
            StoreError: the store does not have the node.
        """
        rows = self._db.rows(DOWN, self.seq(name))
        for key, parent, *columns in rows:
            yield key.hex(), node_from_row(parent, tuple(columns))

    def first_turn(self, tip: str) -> Node | None:
        """Return the first turn on the way to a node, None if there is none."""
        seq: int | None = self._db.one(FIRST_TURN, self.seq(tip))
        return None if seq is None else self.get(self.hash_of(seq))

    def count(self) -> int:
        """Return the number of nodes."""
        return int(self._db.one(f"SELECT count(*) {OWNED}", self.owner))

    def count_all(self) -> int:
        """Return the number of nodes of all owners."""
        return int(self._db.one("SELECT count(*) FROM node"))


# The walk ends at the first node that has a snapshot.
STEPS = f"""
WITH RECURSIVE up(seq, parent, snapshot) AS (
    SELECT node.seq, node.parent, snapshot.node FROM node LEFT JOIN snapshot ON snapshot.node = node.seq
    WHERE node.seq = ?
    UNION ALL SELECT node.seq, node.parent, snapshot.node
    FROM up JOIN node ON node.seq = up.parent LEFT JOIN snapshot ON snapshot.node = node.seq
    WHERE (up.snapshot IS NULL OR ? <> 0) AND up.parent < up.seq)
SELECT node.hash, up.snapshot, {COLUMNS} FROM up JOIN node ON node.seq = up.seq JOIN app ON app.seq = node.app
ORDER BY up.seq"""  # noqa: S608  (parts that are constants)
PUT = "INSERT INTO snapshot(node, state) VALUES(?, ?) ON CONFLICT(node) DO UPDATE SET state = excluded.state"


class Checkout(NamedTuple):
    """The data to compute a state: a snapshot (hash of its node, state), and the nodes after it, oldest first.

    Without a snapshot the nodes start at the root.
    """

    near: tuple[str, Json] | None
    steps: tuple[tuple[str, Node], ...]


class Snapshots:
    """States after some nodes: a cache that may be deleted at any time."""

    def __init__(self, db: Database, nodes: Nodes) -> None:
        self._db = db
        self._nodes = nodes

    def put(self, name: str, state: Json) -> None:
        """Store a snapshot after a node, replacing an older one; tables keep the order of their entries."""
        body = pack(check_json(state), in_order=True)
        with self._db.transaction():
            self._db.run(PUT, self._nodes.seq(name), body)

    def checkout(self, name: str, *, from_root: bool = False) -> Checkout:
        """Return the data to compute the state after a node: the nearest snapshot and nodes, or all nodes from the root.

        Raises:
            StoreError: the store does not have the node.
        """
        rows = self._db.rows(STEPS, self._nodes.seq(name), from_root)
        if not rows:
            raise CorruptError("a node of the store refers to an app that it does not have; run `taiwa fsck`")
        near: tuple[str, Json] | None = None
        if rows[0][1] is not None and not from_root:
            near = as_hash(rows[0][0]), unpack(self._db.one("SELECT state FROM snapshot WHERE node = ?", rows[0][1]))
        after = None if near is None else rows.pop(0)[0]
        steps: list[tuple[str, Node]] = []
        with decoding("node"):
            for key, _, kind, app, state, body in rows:
                steps.append((key.hex(), _node(after, kind, app, state, body)))
                after = key
        return Checkout(near, tuple(steps))
