"""Export and import of sessions as JSON lines.

The first line is a header; then come apps and nodes, each under its hash, the oldest first, and, on request, the paid calls.
Without calls a file contains no clock and no row number, so equal conversations give equal bytes.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any, cast

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node, restore_messages, restore_thinking
from taiwa.kernel.attachments import Attachment, read_reference
from taiwa.kernel.errors import ConfigError, ConflictError, CorruptError, InputError
from taiwa.kernel.records import Json, canonical, record
from taiwa.sql import Database
from taiwa.store.nodes import KINDS, OPTIONAL, Nodes, check_content, check_json, node_texts, short_hash
from taiwa.store.refs import Refs, check_name
from taiwa.store.runs import Runs

KIND = "conversation"
FORMAT = 1
MOST_TOGETHER = 64
"""How far back to search the tip on which a node was committed together with others."""


def export_lines(
    nodes: Nodes,
    runs: Runs,
    tip: str,
    name: str = "",
    *,
    calls: bool = False,
    apps: bool = True,
    attachments: bool = True,
) -> Iterator[str]:
    """Yield the history of a node as lines without line ends.

    The bytes of an attachment are a line before the first node that refers to them; without them the nodes stay the same.

    Calls are for reading and are not imported, since a copy was not paid for.
    """
    yield _line({"taiwa": KIND, "format": FORMAT, "name": name, "tip": tip})
    known: set[str] = set()
    for hashed, node in reversed(tuple(nodes.path(tip))):
        if apps and node.app not in known:
            known.add(node.app)
            app = nodes.app(node.app)
            options: dict[str, Json] = {} if app.options is None else {"options": app.options}
            yield _line({"app": node.app, "name": app.name, "source": app.source, "params": app.params, **options})
        for attachment in node.attachments if attachments else ():
            if attachment.sha256 not in known and (data := nodes.blobs.data(attachment.sha256)):
                known.add(attachment.sha256)
                yield _line({"blob": attachment.sha256, "base64": b64encode(data).decode("ascii")})
        base = nodes.base(hashed)
        of: dict[str, Json] = {"parent": node.parent, "kind": node.kind, "of": node.app, "state": node.state_hash}
        more: dict[str, Json] = {} if base in (None, node.parent) else {"base": base}
        yield _line({"node": hashed, **of, **node_texts(node), **more})
        for call in runs.calls(hashed, together=False) if calls else ():
            yield _line({"call": hashed, **asdict(call), "usage": None if call.usage is None else record(call.usage)})


def _line(data: dict[str, Json]) -> str:
    return canonical(data).decode("utf-8")


def import_lines(
    db: Database,
    nodes: Nodes,
    refs: Refs,
    lines: Iterable[str],
    name: str | None = None,
    check: Callable[[str], object] | None = None,
    *,
    trusted: bool = False,
) -> str:
    """Read what `export_lines` wrote into a session, all or nothing, and return its tip; a second import changes nothing.

    The apps of the file that the store does not have yet are marked as untrusted; with `trusted`, all of them are trusted.
    `check` is called with the tip before the commit: a store can verify hashes, not that a state follows from its parent.

    Raises:
        InputError: a line cannot be read, or its content does not match its hash; the message names the line.
        ConflictError: a session of that name points elsewhere.
    """
    with db.transaction():
        header = _take_all(nodes, lines, trusted=trusted)
        tip = str(header["tip"])
        if not nodes.has(tip):
            raise InputError(f"the file ends before its tip, node {short_hash(tip)}; nothing was imported")
        _create_session(refs, header["name"] if name is None else name, tip)
        try:
            if check is not None:
                check(tip)
        except (CorruptError, ConfigError) as error:
            raise InputError(f"{error.message}; nothing was imported") from None
    return tip


def _take_all(nodes: Nodes, lines: Iterable[str], *, trusted: bool) -> dict[str, Any]:
    """Store the content of the lines and return their header."""
    number = 0
    header: dict[str, Any] = {}
    try:
        for line in lines:
            number += 1
            if not line.strip():
                continue
            if header:
                _take(nodes, _read(line), trusted=trusted)
            else:
                header = _header(_read(line))
    except UnicodeDecodeError:
        raise InputError(f"line {number + 1}: not UTF-8; nothing was imported") from None
    except (InputError, CorruptError) as error:
        raise InputError(f"line {number}: {error.message}; nothing was imported") from None
    if not header:
        raise InputError("the file is empty; nothing was imported")
    return header


def _create_session(refs: Refs, name: str, tip: str) -> None:
    name = check_name(name)
    if not refs.has(name):
        refs.create(name, tip, "import")
    elif refs.tip(name) != tip:
        raise ConflictError(f"another session {name!r} already exists; import under another name, nothing was imported")


def _read(line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("not JSON") from None
    if not isinstance(data, dict):
        raise InputError("not a JSON object")
    return cast("dict[str, Any]", data)


def _header(data: dict[str, Any]) -> dict[str, Any]:
    if data.get("taiwa") != KIND or not isinstance(data.get("tip"), str) or not isinstance(data.get("name"), str):
        raise InputError("not the header of an exported session")
    version = data.get("format")
    if version is None:
        raise InputError("the file was written by an unreleased version of taiwa and cannot be imported")
    if version != FORMAT:
        raise InputError(f"the file has format {version!r} and this version of taiwa reads {FORMAT}; update taiwa")
    return data


def _take(nodes: Nodes, data: dict[str, Any], *, trusted: bool) -> None:
    if "node" in data:
        node = _node(data)
        _compare(data["node"], node.hash)
        for attachment in node.attachments:
            if content := nodes.blobs.data(attachment.sha256):
                check_content(attachment, content)
        nodes.put(node, _base(nodes, node, data.get("base")))
    elif "app" in data:
        name, source = data.get("name"), data.get("source")
        if not isinstance(name, str) or not isinstance(source, str):
            raise InputError("an app must have a name and a source")
        app = AppSource(name, source, check_json(data.get("params")), check_json(data.get("options")))
        _compare(data["app"], app.hash)
        nodes.put_app(app, untrusted=not trusted)
        if trusted:
            nodes.trust(app.hash)
    elif "blob" in data:
        attachment = _attachment(data.get("base64"))
        _compare(data["blob"], attachment.sha256)
        nodes.blobs.put(attachment)
    elif "call" not in data:
        raise InputError("expected an app, a node, an attachment or a call")


def _attachment(text: object) -> Attachment:
    try:
        data = b64decode(text if isinstance(text, str) else "?", validate=True)
    except ValueError:
        raise InputError("the bytes of an attachment must be base64") from None
    return Attachment.from_bytes(data)


def _node(data: dict[str, Any]) -> Node:
    user, answer, prefix = data.get("user"), data.get("answer"), data.get("prefix", "")
    match data:
        case {"parent": str() | None as parent, "kind": kind, "of": str(app), "state": str(state)} if (
            kind in KINDS and isinstance(user, OPTIONAL) and isinstance(answer, OPTIONAL) and isinstance(prefix, str)
        ):
            listed = data.get("attachments", [])
            if not isinstance(listed, list):
                raise InputError("attachments must be a list")
            attachments = tuple(map(read_reference, cast("list[object]", listed)))
            thinking, messages = restore_thinking(data.get("thinking")), restore_messages(data.get("messages"))
            delta = check_json(data.get("delta"))
            return Node(parent, kind, app, user, answer, delta, state, attachments, thinking, messages, prefix)
        case _:
            raise InputError("a field of the node is missing or has the wrong type")


def _base(nodes: Nodes, node: Node, claimed: object) -> str | None:
    """Return the claimed base of a node, if it is an ancestor: undo must not lead anywhere else."""
    if node.parent is None or not isinstance(claimed, str):
        return None
    near = islice(nodes.path(node.parent), MOST_TOGETHER)
    return claimed if any(hashed == claimed for hashed, _ in near) else None


def _compare(claimed: object, computed: str) -> None:
    if claimed != computed:
        raise InputError("the content does not match its hash: the line was changed or damaged")
