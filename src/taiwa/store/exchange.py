"""Conversations as lines of JSON, for keeping, sending and reading elsewhere.

The first line is a header; then come apps and nodes, each under its hash, the oldest first, and, if wanted, the calls that
were paid for. Without calls a file holds no clock and no row number, so equal conversations give equal bytes.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, cast, get_args

from taiwa.conversation.node import AppSource, Kind, Node
from taiwa.kernel.errors import ConfigError, ConflictError, CorruptError, InputError
from taiwa.kernel.records import Json, canonical, record
from taiwa.store.bodies import plain, short
from taiwa.store.connection import Connection
from taiwa.store.names import check_name
from taiwa.store.nodes import Nodes
from taiwa.store.refs import Refs
from taiwa.store.runs import Call, Runs

__all__ = ["FORMAT", "export", "import_lines"]

KIND = "conversation"
FORMAT = 1
OPTIONAL = (str, type(None))
MOST_TOGETHER = 64
"""How far back the tip is looked for on which a node was committed together with others."""


def export(nodes: Nodes, runs: Runs, tip: str, name: str = "", *, calls: bool = False) -> Iterator[str]:
    """Write the history of a node as lines without their ends.

    Calls tell what was paid and answered; they are for reading and are not imported, since a copy was not paid for.
    """
    yield _line({"taiwa": KIND, "format": FORMAT, "name": name, "tip": tip})
    known: set[str] = set()
    for hashed, node in reversed(tuple(nodes.path(tip))):
        if node.app not in known:
            known.add(node.app)
            app = nodes.app(node.app)
            yield _line({"app": node.app, "name": app.name, "source": app.source, "params": app.params})
        base = nodes.base(hashed)
        yield _line({"node": hashed, **_said(node), **({} if base in (None, node.parent) else {"base": base})})
        for call in runs.made(hashed) if calls else ():
            yield _line({"call": hashed, **_paid(call)})


def _said(node: Node) -> dict[str, Json]:
    written: dict[str, Json] = {"parent": node.parent, "kind": node.kind, "of": node.app, "state": node.state_hash}
    said: dict[str, Json] = {"user": node.user, "answer": node.answer, "delta": node.delta}
    return written | {name: part for name, part in said.items() if part is not None}


def _paid(call: Call) -> dict[str, Json]:
    return {
        "kind": call.kind,
        "model": call.model,
        "usage": None if call.usage is None else record(call.usage),
        "cost_nano": call.cost_nano,
        "price": call.price,
        "ms": call.ms,
        "at_us": call.at_us,
        "answer": call.answer,
        "error": call.error,
    }


def _line(data: dict[str, Json]) -> str:
    return canonical(data).decode("utf-8")


def import_lines(
    db: Connection,
    nodes: Nodes,
    refs: Refs,
    lines: Iterable[str],
    name: str | None = None,
    check: Callable[[str], object] | None = None,
) -> str:
    """Read what `export` wrote, all or nothing, make a session of it, and return its tip; doing it again changes nothing.

    `check` is given the tip before anything is kept: a store knows that a hash is right, not that its state follows.

    Raises:
        InputError: a line cannot be read, or its content does not fit its hash; the line's number is said.
        ConflictError: a session of that name stands elsewhere.
    """
    with db.transaction():
        header = _take_all(nodes, lines)
        tip = str(header["tip"])
        if not nodes.has(tip):
            raise InputError(f"the file ends before the node {short(tip)} that it is about; nothing was imported")
        _name(refs, header["name"] if name is None else name, tip)
        try:
            if check is not None:
                check(tip)
        except (CorruptError, ConfigError) as error:
            raise InputError(f"{error.message}; nothing was imported") from None
    return tip


def _take_all(nodes: Nodes, lines: Iterable[str]) -> dict[str, Any]:
    """Keep what the lines hold and return their header."""
    number = 0
    header: dict[str, Any] = {}
    try:
        for line in lines:
            number += 1
            if not line.strip():
                continue
            if header:
                _take(nodes, _read(line))
            else:
                header = _header(_read(line))
    except UnicodeDecodeError:
        raise InputError(f"line {number + 1}: not UTF-8; nothing was imported") from None
    except InputError as error:
        raise InputError(f"line {number}: {error.message}; nothing was imported") from None
    if not header:
        raise InputError("there is nothing to import: the file is empty")
    return header


def _name(refs: Refs, name: str, tip: str) -> None:
    kept = check_name(name)
    if not refs.has(kept):
        refs.create(kept, tip, "import")
    elif refs.tip(kept) != tip:
        raise ConflictError(f"there is another session {kept!r}: import under another name; nothing was imported")


def _read(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("not JSON") from None
    if not isinstance(said, dict):
        raise InputError("not a JSON object")
    return cast("dict[str, Any]", said)


def _header(said: dict[str, Any]) -> dict[str, Any]:
    if said.get("taiwa") != KIND or not isinstance(said.get("tip"), str) or not isinstance(said.get("name"), str):
        raise InputError("not the header of an exported conversation")
    found = said.get("format")
    if found is None:
        raise InputError("the file was written by an unreleased version of taiwa and cannot be imported")
    if found != FORMAT:
        raise InputError(f"the file has format {found!r} and this version of taiwa reads {FORMAT}; update taiwa")
    return said


def _take(nodes: Nodes, said: dict[str, Any]) -> None:
    if "node" in said:
        node = _node(said)
        _compare(said["node"], node.hash)
        nodes.put(node, _base(nodes, node, said.get("base")))
    elif "app" in said:
        name, source = said.get("name"), said.get("source")
        if not isinstance(name, str) or not isinstance(source, str):
            raise InputError("an app has a name and a source")
        app = AppSource(name, source, plain(said.get("params")))
        _compare(said["app"], app.hash)
        nodes.put_app(app)
    elif "call" not in said:
        raise InputError("neither an app nor a node nor a call")


def _node(said: dict[str, Any]) -> Node:
    user, answer = said.get("user"), said.get("answer")
    match said:
        case {"parent": str() | None as parent, "kind": kind, "of": str(app), "state": str(state)} if (
            kind in get_args(Kind) and isinstance(user, OPTIONAL) and isinstance(answer, OPTIONAL)
        ):
            return Node(parent, kind, app, user, answer, plain(said.get("delta")), state)
        case _:
            raise InputError("a node with a missing field, or one of the wrong type")


def _base(nodes: Nodes, node: Node, claimed: object) -> str | None:
    """Undo goes back to an ancestor and nowhere else, whatever the file says."""
    if node.parent is None or not isinstance(claimed, str):
        return None
    near = islice(nodes.path(node.parent), MOST_TOGETHER)
    return claimed if any(hashed == claimed for hashed, _ in near) else None


def _compare(claimed: object, found: str) -> None:
    if claimed != found:
        raise InputError("the content does not fit its hash: the line was changed or damaged")
