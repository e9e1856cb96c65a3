"""Small conversations for tests."""

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node
from taiwa.kernel.effects import Complete
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import Request, Response, Usage, assistant, user
from taiwa.store import Store

APP = AppSource("chat", "---\ntaiwa: 1\nname: chat\n---\nYou talk.\n", {"lang": "日本語"})
USAGE = Usage(100, 20, 40, 0, 5)


def root(app: AppSource = APP) -> Node:
    return Node(None, "root", app.hash, state_hash="0" * 32)


def turn(parent: str, said: str, answer: str = "はい") -> Node:
    return Node(parent, "turn", APP.hash, said, answer, {"topics": [said]}, "1" * 32)


def begin(store: Store, name: str = "main", *said: str) -> str:
    """Make a session with a root and one commit per text, and return its tip."""
    tip = store.commit(name, [root()], expected=None, apps=[APP])
    for text in said:
        tip = store.commit(name, [turn(tip, text)], expected=tip)
    return tip


def answered(said: str, answer: str, usage: Usage | None = USAGE, place: int = 0) -> Entry:
    """What a journal is told of a model call."""
    response = Response(assistant(answer), usage=usage, model="served-model")
    return Entry((), place, Complete(Request((user(said),))), response)
