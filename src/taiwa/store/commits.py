"""One turn, one transaction: apps, nodes, name, log, words for searching, and the end of its run."""

from collections.abc import Sequence
from dataclasses import dataclass

from taiwa.conversation.node import AppSource, Node
from taiwa.kernel.errors import ConflictError, InputError
from taiwa.store.bodies import key
from taiwa.store.connection import Connection
from taiwa.store.names import check_name, composed
from taiwa.store.nodes import Nodes
from taiwa.store.refs import Refs, moved_on
from taiwa.store.runs import Runs

__all__ = ["Commit", "commit"]


@dataclass(frozen=True, slots=True)
class Commit:
    """What is to be added to a session. `expected` is the tip it has, None for a new session.

    The nodes follow that tip, or another node of the store: a retried turn follows an earlier one.
    """

    ref: str
    nodes: Sequence[Node]
    expected: str | None
    why: str = "turn"
    apps: Sequence[AppSource] = ()


def commit(db: Connection, nodes: Nodes, refs: Refs, runs: Runs, wanted: Commit, run: int | None) -> str:
    """Add nodes to a session and return its new tip.

    Raises:
        ConflictError: the session is not at `expected`; nothing is changed, and the run's calls stay on the bill.
        InputError: each node does not follow the one before it, or the name is not allowed.
    """
    names = _linked(wanted.nodes)
    name = check_name(wanted.ref) if wanted.expected is None else composed(wanted.ref)
    try:
        with db.transaction():
            db.hold(name)
            tip = _write(nodes, refs, name, wanted, names)
            if run is not None:
                runs.finish(run, tip)
    except ConflictError:
        if run is not None:
            runs.lose(run)
        raise
    return names[-1]


def _write(nodes: Nodes, refs: Refs, name: str, wanted: Commit, names: Sequence[str]) -> int:
    found = refs.find(name)
    at = None if found is None else found[2]
    if at != wanted.expected:
        raise ConflictError(moved_on(name, at, wanted.expected))
    for app in wanted.apps:
        nodes.put_app(app)
    parent = wanted.nodes[0].parent
    base = found[1] if found is not None and parent == at else None if parent is None else nodes.seq(parent)
    tip = 0
    for node, hashed in zip(wanted.nodes, names, strict=True):
        tip = nodes.insert(node, key(hashed), base)
        # A session can be undone back to its root, so what is committed together with a root goes back to that.
        base = tip if base is None else base
    if found is None:
        refs.begin(name, tip, wanted.why)
    else:
        refs.put(found[0], "commit", found[1], tip, wanted.why)
    return tip


def _linked(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the hashes of the nodes."""
    if not nodes:
        raise InputError("a commit has at least one node")
    names: list[str] = []
    for place, node in enumerate(nodes):
        if names and node.parent != names[-1]:
            raise InputError(f"node {place + 1} of the commit does not follow the one before it")
        names.append(node.hash)
    return tuple(names)
