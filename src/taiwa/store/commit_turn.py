"""One turn, one transaction: apps, nodes, name, reflog, and the end of its run."""

from collections.abc import Sequence

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node
from taiwa.kernel.errors import ConflictError, InputError
from taiwa.sql import Database
from taiwa.store.nodes import Nodes, hash_to_bytes
from taiwa.store.refs import Refs, check_name, composed, conflict_message
from taiwa.store.runs import Runs


def commit_turn(
    db: Database,
    nodes: Nodes,
    refs: Refs,
    runs: Runs,
    ref: str,
    added: Sequence[Node],
    *,
    expected: str | None,
    reason: str = "turn",
    run: int | None = None,
    apps: Sequence[AppSource] = (),
) -> str:
    """Add nodes to a session and return its new tip, as `Store.commit`."""
    hashes = _check_linked(added)
    name = check_name(ref) if expected is None else composed(ref)
    try:
        with db.transaction():
            db.lock(name)
            session = refs.find(name)
            at = None if session is None else session[2]
            if at != expected:
                raise ConflictError(conflict_message(name, at, expected))
            for app in apps:
                nodes.put_app(app)
            parent = added[0].parent
            base = session[1] if session is not None and parent == at else None if parent is None else nodes.seq(parent)
            tip = 0
            for node, key in zip(added, map(hash_to_bytes, hashes), strict=True):
                tip = nodes.insert(node, key, base)
                # A session can be undone back to its root, so what is committed together with a root goes back to that.
                base = tip if base is None else base
            if session is None:
                refs.begin(name, tip, reason)
            else:
                refs.log(session[0], "commit", session[1], tip, reason)
            if run is not None:
                runs.finish(run, tip)
    except ConflictError:
        if run is not None:
            runs.end(run, "conflict")
        raise
    return hashes[-1]


def _check_linked(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the hashes of the nodes, each of which must be the parent of the next."""
    if not nodes:
        raise InputError("a commit must have at least one node")
    hashes: list[str] = []
    for index, node in enumerate(nodes):
        if hashes and node.parent != hashes[-1]:
            raise InputError(f"node {index + 1} of the commit does not follow the one before it")
        hashes.append(node.hash)
    return tuple(hashes)
