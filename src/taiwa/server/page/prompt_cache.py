"""The breaks of prompt caches: where a client's request departs from what it sent before, so that a provider reads the rest anew.

A provider keeps what it has computed for the beginning of a request, and bills it at a fraction of its price when a later request
begins in the same way. A client that resends its history loses that where it changes what it sent: an earlier message, the
instructions, a tool, or by cutting its oldest messages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from taiwa.conversation.history import Conversation, Node
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.messages import Request, user
from taiwa.operations.say import request_tokens
from taiwa.server.page.branches import Forest
from taiwa.sessions.repository import HistoryEntry, Repository
from taiwa.sessions.resent_history import is_relayed


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """Where the request of a turn departs from an earlier one of its conversation, whose beginning was cached.

    `message` is the number of the first message that differs, from 1, and `role` its role; 0 and "tools" where the tools differ, which
    precede all messages. `reread` estimates the tokens from there on. `cached` of `billed` input tokens were billed as read from
    a cache; None where the usage is not known.
    """

    node: str
    message: int
    role: str
    reread: int
    cached: int | None = None
    billed: int | None = None


def cache_breaks(repository: Repository, forest: Forest, entries: Sequence[HistoryEntry]) -> Iterator[CacheBreak]:
    """Yield the breaks of the prompt cache in a part of a history, in which the first node only precedes the others.

    Only turns count that relay one request of a client as it is. Such a request is compared with that of the turn before it, and with
    those that the branches beside it ended with: the one with which it shares the longest beginning tells where the cache ends.
    """
    before, last, sent = entries[0], entries[0].hash, _sent_by(repository, entries[0].hash)
    first = ""
    for entry in entries[1:]:
        first = first or entry.hash
        request = _request(before.after, entry.node)
        before = entry
        if request is None or not repository.store.runs.that_made(entry.hash):
            continue  # a turn that was said elsewhere was resent with the next one
        branches = takewhile(lambda name, here=first: name != here, forest.children.get(last, ()))  # type: ignore[misc]
        ends = (_sent_by(repository, _end(forest, name)) for name in branches)
        earlier = _nearest([each for each in (sent, *ends) if each is not None], request)
        if earlier is not None and (broken := _compare(earlier, request)) is not None:
            calls = repository.store.runs.calls(entry.hash)
            usage = next((each.usage for each in calls if each.kind == "complete"), None)
            cached, billed = (None, None) if usage is None else (usage.cache_read_tokens, usage.input_tokens)
            yield replace(broken, node=entry.hash, cached=cached, billed=billed)
        last, first, sent = entry.hash, "", request


def _nearest(earlier: Sequence[Request], request: Request) -> Request | None:
    """Return the request with which another one shares the longest beginning."""
    return max(earlier, key=lambda each: _shared(each, request), default=None)


def _compare(earlier: Request, request: Request) -> CacheBreak | None:
    """Return where a request departs from an earlier one; None where one of both begins with the other."""
    shared = _shared(earlier, request)
    if shared >= min(len(earlier.messages), len(request.messages)):
        return None
    rest = replace(request, messages=request.messages[max(shared, 0) :])
    role = "tools" if shared < 0 else request.messages[shared].role
    return CacheBreak("", shared + 1, role, request_tokens(rest))


def _shared(one: Request, other: Request) -> int:
    """Count the messages with which two requests begin alike; -1 where their tools differ."""
    if one.tools != other.tools:
        return -1
    pairs = zip(one.messages, other.messages, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))


def _request(before: Conversation, node: Node) -> Request | None:
    """Return the request of a turn that relays one; None for every other node."""
    if node.kind != "turn" or not is_relayed(before.app):
        return None
    inputs = node.messages[:-1] or (user(node.user or ""),)
    return turn_request(before, node.user or "", node.attachments, inputs=inputs)


def _sent_by(repository: Repository, name: str) -> Request | None:
    node = repository.store.nodes.get(name)
    return None if node.parent is None else _request(repository.checkout(node.parent), node)


def _end(forest: Forest, name: str) -> str:
    """Return the last turn of a branch: at each fork that which was made last."""
    end = name
    while True:
        if forest.nodes[name].kind == "turn":
            end = name
        if name not in forest.children:
            return end
        name = forest.children[name][-1]
