"""Conversations (`/v1/conversations`): sessions of the store by name, and their items.

Items without an answer are stored beside the session until the next response, or later items, make a turn of them.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import cast

from starlette.requests import Request

from taiwa.apps.catalog import load_app
from taiwa.conversation.history import Conversation, TurnParts, add_turn, split_turns
from taiwa.flows.turn import input_text
from taiwa.kernel.messages import Message
from taiwa.kernel.serialization import Json
from taiwa.operations.resent_history import detach, is_relayed
from taiwa.server.http_responses import ApiError, error_to_json, invalid, page_of
from taiwa.server.request import Fields, name_of, page_for, repository_of, state_of
from taiwa.server.wire_interface import DELETE, GET, Route, Wire
from taiwa.server.wires.response_items import Body, is_answer, items_of, listed_item, read_items, response_of_item
from taiwa.sessions.repository import HistoryEntry, Repository
from taiwa.store.server_records import ServedObject

MOST_METADATA = 16
LONGEST_KEY, LONGEST_VALUE = 64, 512
MOST_ITEMS = 20
"""Items that one request may add, according to the protocol."""


def conversation_of(repository: Repository, name: str) -> ServedObject:
    """Return a conversation: one that was created here, or a session of the store by its name.

    Raises:
        ApiError: the caller has none of that name.
    """
    found = repository.store.served.find(name)
    if found is not None and found.kind == "conversation" and repository.store.refs.has(found.session):
        return found
    if found is None and repository.store.refs.has(name):
        return ServedObject(name, "conversation", name, None, {"created_at": 0, "metadata": {}})
    raise ApiError(404, f"conversation {name[:80]!r} not found", code="not_found", param="conversation_id")


def pending_messages(repository: Repository, name: str) -> tuple[Message, ...]:
    """Return the items of a conversation that wait for an answer."""
    return _messages(repository, _pending(conversation_of(repository, name)))


def take_pending(repository: Repository, name: str) -> None:
    """Remove the waiting items, which are now in a turn of the conversation, unless it was deleted meanwhile."""
    found = repository.store.served.find(name)
    if found is not None and _pending(found):
        _put(repository, found, ())


def _pending(found: ServedObject) -> list[Json]:
    return cast("list[Json]", found.body.get("pending", []))


def _put(repository: Repository, found: ServedObject, pending: Sequence[Json]) -> ServedObject:
    body = {name: each for name, each in found.body.items() if name != "pending"}
    changed = replace(found, body=body | ({"pending": [*pending]} if pending else {}))
    repository.store.served.put(changed)
    return changed


def _messages(repository: Repository, items: list[Json]) -> tuple[Message, ...]:
    return read_items(Fields({"items": items}), "items", partial(find_item, repository), len(items))[1]


def find_item(repository: Repository, name: str) -> Json:
    """Return the item of a response by its id, or None."""
    found = repository.store.served.find(response_of_item(name))
    output = [] if found is None else cast("list[Body]", cast("Body", found.body["response"])["output"])
    return next((item for item in output if item.get("id") == name), None)


def read_metadata(body: Fields) -> dict[str, Json]:
    """Read `metadata`: up to 16 short texts by name.

    Raises:
        ApiError: there are more, or a name or text is too long.
    """
    metadata = body.object("metadata")
    if metadata is None:
        return {}
    if len(metadata.data) > MOST_METADATA:
        raise invalid("metadata", f"metadata has more than {MOST_METADATA} entries", "invalid_value")
    for name in metadata.data:
        if len(name) > LONGEST_KEY or len(metadata.text(name)) > LONGEST_VALUE:
            problem = f"must have a name of at most {LONGEST_KEY} characters and a text of at most {LONGEST_VALUE}"
            raise metadata.error(name[:80], problem, "invalid_value")
    return dict(metadata.data)


def _object(found: ServedObject) -> Json:
    return {"id": found.id, "object": "conversation", **{name: found.body[name] for name in ("created_at", "metadata")}}


def _divide(items: list[Json]) -> tuple[list[Json], list[Json]]:
    """Divide items into those up to the last answer, and those that wait for one, in display form."""
    last = max((at for at, item in enumerate(items) if is_answer(item)), default=-1)
    return items[: last + 1], [listed_item(cast("Body", each), f"msg_{token_hex(16)}") for each in items[last + 1 :]]


def _with_turns(base: Conversation, messages: Sequence[Message]) -> Conversation:
    for turn in split_turns(messages)[0]:
        files, said = detach(turn)
        base = add_turn(base, input_text(turn[:-1]), turn[-1].text, None, TurnParts(files, messages=said))
    return base


def create(request: Request, body: Fields) -> Json:
    """Create a conversation, with items if there are any."""
    state, repository = state_of(request), repository_of(request)
    metadata, most = read_metadata(body), state.options.limits.messages
    whole, waiting = _divide(read_items(body, "items", partial(find_item, repository), most)[0])
    app = load_app(state.served.apps[state.served.default_app]).with_params({})
    name = f"conv_{token_hex(16)}"
    begun = _with_turns(repository.start(app), _messages(repository, whole))
    repository.commit(name, begun, expected=None, reason="begin")
    made: Body = {"created_at": int(time.time()), "metadata": metadata}
    return _object(_put(repository, ServedObject(name, "conversation", name, None, made), waiting))


def add_items(request: Request, body: Fields) -> Json:
    """Add items at the end of a conversation."""
    repository, name = repository_of(request), name_of(request, "id")
    found = conversation_of(repository, name)
    items = read_items(body, "items", partial(find_item, repository), MOST_ITEMS)[0]
    if not items:
        raise invalid("items", "items must have at least one item", "empty_array")
    before = len(conversation_items(repository, name))
    whole, waiting = _divide([*_pending(found), *items])
    if whole:
        base = _open(repository, found)
        changed = _with_turns(base, _messages(repository, whole))
        repository.commit(found.session, changed, expected=base.tip, reason="items")
    _put(repository, found, waiting)
    return page_of(conversation_items(repository, name)[before:], "", MOST_ITEMS, newest_first=False)


def _open(repository: Repository, found: ServedObject) -> Conversation:
    """Return a conversation whose turns may be changed.

    Raises:
        ApiError: its app has state, tools or documents, so its turns are more than their messages.
    """
    base = repository.at(found.session)
    if not is_relayed(base.app):
        text = f"items of a conversation with the app {base.app.name!r} cannot be added or deleted; undo its turns"
        raise invalid("items", text, "unsupported_parameter")
    return base


def delete_item(request: Request) -> Json:
    """Delete an item of a conversation; an input whose answer is deleted waits for another one."""
    repository, item = repository_of(request), name_of(request, "item")
    found = conversation_of(repository, name_of(request, "id"))
    waiting = _pending(found)
    kept = [each for each in waiting if cast("Body", each)["id"] != item]
    if len(kept) < len(waiting):
        return _object(_put(repository, found, kept))
    entries = _entries(repository, found.session)
    stored = (at for at, (_, items) in enumerate(entries) for each in items if cast("Body", each)["id"] == item)
    at = next(stored, None)
    if at is None:
        raise _no_item(item)
    tip = _open(repository, found).tip
    changed: list[Json] = [each for each in entries[at][1] if cast("Body", each)["id"] != item]
    messages = [*_messages(repository, changed), *(each for entry, _ in entries[at + 1 :] for each in _said(entry))]
    kept_turns = _with_turns(repository.checkout(entries[at][0].node.parent or ""), messages)
    if kept_turns.new_nodes:
        repository.commit(found.session, kept_turns, expected=tip, reason="items")
    else:
        repository.store.undo(found.session, len(entries) - at)
    unanswered = items_of(split_turns(messages)[1], token_hex(16))
    return _object(_put(repository, found, [*unanswered, *waiting]))


def _no_item(name: str) -> ApiError:
    return ApiError(404, f"item {name[:80]!r} not found", code="not_found", param="item_id")


def show(request: Request) -> Json:
    """Return a conversation."""
    return _object(conversation_of(repository_of(request), name_of(request, "id")))


def update_metadata(request: Request, body: Fields) -> Json:
    """Replace the metadata of a conversation."""
    repository = repository_of(request)
    if "metadata" not in body.data:
        raise body.missing("metadata")
    found = conversation_of(repository, name_of(request, "id"))
    changed = replace(found, body={**found.body, "metadata": read_metadata(body)})
    repository.store.served.put(changed)
    return _object(changed)


def delete(request: Request) -> Json:
    """Delete a conversation; its turns stay until garbage collection."""
    repository, name = repository_of(request), name_of(request, "id")
    found = conversation_of(repository, name)
    repository.store.served.delete(found.id)
    repository.store.refs.delete(found.session)
    return {"id": name, "object": "conversation.deleted", "deleted": True}


def conversation_items(repository: Repository, name: str) -> list[Json]:
    """Return the items of a conversation, oldest first; those of a response have the ids of its output."""
    found = conversation_of(repository, name)
    return [*(item for _, items in _entries(repository, found.session) for item in items), *_pending(found)]


def _said(entry: HistoryEntry) -> tuple[Message, ...]:
    return tuple(entry.after.turns[-1].all_messages)


def _entries(repository: Repository, session: str) -> list[tuple[HistoryEntry, list[Json]]]:
    """Return the turns of a session with their items."""
    outputs = {
        each.node: cast("list[Json]", cast("Body", each.body["response"])["output"])
        for each in repository.store.served.of_session(session)
        if each.node is not None
    }
    found: list[tuple[HistoryEntry, list[Json]]] = []
    for entry in repository.walk(repository.store.refs.tip(session)):
        if entry.node.kind == "turn":
            *inputs, answer = _said(entry)
            written = outputs.get(entry.hash) or items_of([answer], f"{entry.hash}a")
            found.append((entry, [*items_of(inputs, entry.hash), *written]))
    return found


def list_items(request: Request) -> Json:
    """List the items of a conversation."""
    return page_for(request, conversation_items(repository_of(request), name_of(request, "id")))


def get_item(request: Request) -> Json:
    """Return one item of a conversation."""
    name = name_of(request, "item")
    items = conversation_items(repository_of(request), name_of(request, "id"))
    found = next((item for item in items if isinstance(item, dict) and item.get("id") == name), None)
    if found is None:
        raise _no_item(name)
    return found


HERE = "/v1/conversations/{id}"
wire = Wire(
    "conversations",
    (
        Route("/v1/conversations", create, body=("items", "metadata")),
        Route(HERE, show, GET),
        Route(HERE, update_metadata, body=("metadata",)),
        Route(HERE, delete, DELETE),
        Route(f"{HERE}/items", list_items, GET),
        Route(f"{HERE}/items", add_items, body=("items",)),
        Route(f"{HERE}/items/{{item}}", get_item, GET),
        Route(f"{HERE}/items/{{item}}", delete_item, DELETE),
    ),
    error_to_json,
)
