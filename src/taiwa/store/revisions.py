"""How a person names a node: `name`, `name~2`, `name@{3}`, the beginning of a hash, or nothing for the latest session."""

import re

from taiwa.kernel.errors import InputError
from taiwa.store.connection import Connection
from taiwa.store.nodes import Nodes
from taiwa.store.refs import Refs

__all__ = ["resolve"]

FORM = re.compile(r"(?P<base>[^~@{}]*)@?(?:(?<=@)\{(?P<moved>[0-9]{1,9})\})?(?P<back>(?:~[0-9]{0,9})*)")
PREFIX = re.compile(r"[0-9a-f]{4,32}")
MOST_LISTED = 5
HASH_LENGTH = 32


def resolve(db: Connection, nodes: Nodes, refs: Refs, revision: str) -> str:
    """Return the node that a revision names.

    `name~n` is n steps back, `name@{n}` where the name was n moves ago, `""` and `"@"` the session that moved last.

    Raises:
        InputError: it names nothing, or several nodes.
    """
    form = FORM.fullmatch(revision.strip())
    if form is None:
        raise InputError(f"{revision!r} is no revision: write name, name~2, name@{{3}} or the beginning of a hash")
    name = form["base"] or refs.latest()
    if name is None:
        raise InputError("there is no session yet: begin one with `taiwa chat`")
    if form["moved"] is not None:
        tip = _moved(refs, name, int(form["moved"]))
    elif refs.has(name):
        tip = refs.tip(name)
    else:
        tip = _prefixed(db, refs, name)
    steps = sum(int(count or 1) for count in form["back"].split("~")[1:])
    return refs.back(tip, steps) if steps else nodes.name(nodes.seq(tip))


def _moved(refs: Refs, name: str, moves: int) -> str:
    log = refs.reflog(name, moves + 1)
    if moves >= len(log):
        raise InputError(f"{name!r} has moved only {len(log) - 1} times, not {moves}")
    found = log[moves].new
    if found is None:
        raise InputError(f"{name}@{{{moves}}} names no node: the session was deleted there, or its node was collected")
    return found


def _prefixed(db: Connection, refs: Refs, text: str) -> str:
    prefix = text.lower()
    if not PREFIX.fullmatch(prefix):
        raise InputError(f"there is no session {text!r}{refs.hint(text)}")
    first, last = (bytes.fromhex(prefix.ljust(HASH_LENGTH, end)) for end in "0f")
    select = "SELECT hash, kind FROM node WHERE hash BETWEEN ? AND ? ORDER BY hash LIMIT ?"
    found = db.rows(select, first, last, MOST_LISTED + 1)
    if not found:
        raise InputError(f"there is no session {text!r} and no node that begins so{refs.hint(text)}")
    if len(found) > 1:
        listed = ", ".join(f"{name.hex()[: len(prefix) + 4]} ({kind})" for name, kind in found[:MOST_LISTED])
        raise InputError(f"{text!r} begins several hashes: {listed}{' …' if len(found) > MOST_LISTED else ''}")
    return str(found[0][0].hex())
