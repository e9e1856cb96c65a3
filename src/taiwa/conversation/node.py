"""One step of a conversation: message, state, app and parent in one hashed value.

The hash covers these fields only (no clock, no row id), so equal histories have equal hashes on every machine.
"""

from typing import Literal

from taiwa.kernel.records import Json, digest, value

__all__ = ["AppSource", "Kind", "Node"]

Kind = Literal["root", "turn", "summary", "edit", "app"]


@value(tag="app-source")
class AppSource:
    """The text of an app file with the parameters it was opened with; its hash is the identity of an app."""

    name: str
    source: str
    params: Json = None

    @property
    def hash(self) -> str:
        """32 hex characters."""
        return digest(self)


@value(tag="node")
class Node:
    """A root, a turn, a fold of old turns, a person's edit of the state, or a change of app.

    `delta` is what the reducers folded into the state: the model's delta of a turn, the whole new object in `environment`
    mode, the replaced values of an edit, the kept turns of a fold. `state_hash` names the state after this node.
    """

    parent: str | None
    kind: Kind
    app: str
    user: str | None = None
    answer: str | None = None
    delta: Json = None
    state_hash: str = ""

    @property
    def hash(self) -> str:
        """32 hex characters."""
        return digest(self)
