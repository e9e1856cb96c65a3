"""The items of Responses and Conversations: what a client sends as messages, and messages as items."""

from collections.abc import Callable, Iterable

from taiwa.kernel.messages import Message, Part, Text, ToolCall, ToolResult
from taiwa.kernel.serialization import Json
from taiwa.server.errors import invalid
from taiwa.server.fields import Fields
from taiwa.server.wires.chat_completions import read_content, read_files

ROLES = ("user", "assistant", "system", "developer")
UNREAD = frozenset({"reasoning"})
"""Items that are accepted and not sent to the model: reasoning belongs to the server that wrote it."""

Referred = Callable[[str], "Json"]
"""Returns the item of an id; None if the caller has none."""


def read_input(body: Fields, refer: Referred, most: int) -> tuple[list[Json], tuple[Message, ...]]:
    """Read `input`: the items as they came, references replaced, and their messages.

    Raises:
        ApiError: an item is invalid, or refers to one that does not exist.
    """
    given = body.data.get("input")
    if isinstance(given, str):
        return [message_item("user", given)], (Message("user", (Text(given),)),)
    return read_items(body, "input", refer, most)


def read_items(body: Fields, name: str, refer: Referred, most: int) -> tuple[list[Json], tuple[Message, ...]]:
    """Read an array of items, as `read_input`."""
    items: list[Json] = []
    messages: list[Message] = []
    names: dict[str, str] = {}
    if len(body.items(name)) > most:
        raise invalid(body.at(name), f"there are more than {most:,} items", "too_many_messages")
    for given in body.objects(name):
        item = given
        if given.text("type", "message") == "item_reference":
            found = refer(given.text("id"))
            if found is None:
                raise invalid(given.at("id"), f"item {given.text('id')[:80]!r} not found", "item_not_found")
            item = Fields.of(found, given.path)
        items.append(item.data)
        if (message := _read_item(item, names)) is not None:
            _append(messages, message)
    return items, tuple(messages)


def _append(messages: list[Message], message: Message) -> None:
    """Add a message; texts and calls of the assistant that follow each other are one answer."""
    if messages and messages[-1].role == message.role == "assistant":
        messages[-1] = Message("assistant", (*messages[-1].parts, *message.parts))
    else:
        messages.append(message)


def _read_item(item: Fields, names: dict[str, str]) -> Message | None:
    kind = item.text("type", "message")
    if kind == "message":
        role = item.choice("role", ROLES, "")
        if role == "assistant":
            return Message("assistant", (Text(read_content(item)),))
        if role == "user":
            return Message("user", (*read_files(item), Text(read_content(item))))
        return Message("system", (Text(read_content(item)),))
    if kind == "function_call":
        call = item.text("call_id")
        names[call] = item.text("name")
        return Message("assistant", (ToolCall(names[call], item.text("arguments", "{}"), call),))
    if kind == "function_call_output":
        call = item.text("call_id")
        output = item.data.get("output")
        text = read_content(Fields({"content": output}, item.at("output")))
        return Message("tool", (ToolResult(text, names.get(call, ""), call),))
    if kind in UNREAD:
        return None
    raise invalid(item.at("type"), f"items of the type {kind[:40]!r} are not supported", "unsupported_parameter")


def is_answer(item: Json) -> bool:
    """Report whether an item was written by the assistant."""
    return isinstance(item, dict) and (item.get("role") == "assistant" or item.get("type") == "function_call")


def message_item(role: str, text: str, name: str = "") -> dict[str, Json]:
    """Write a message as an item."""
    kind = "output_text" if role == "assistant" else "input_text"
    content: dict[str, Json] = {"type": kind, "text": text}
    if role == "assistant":
        content |= {"annotations": [], "logprobs": []}
    item: dict[str, Json] = {"type": "message", "role": role, "status": "completed", "content": [content]}
    return item | ({"id": name} if name else {})


def items_of(messages: Iterable[Message], node: str) -> list[Json]:
    """Write the messages of a node as items; their ids are made of its hash."""
    items: list[Json] = []
    for message in messages:
        for part in _joined(message):
            number = f"{node}{len(items):02d}"
            if isinstance(part, ToolCall):
                items.append(call_item(part, f"fc_{number}"))
            elif isinstance(part, ToolResult):
                output: Json = {
                    "type": "function_call_output", "id": f"fco_{number}", "call_id": part.call, "output": part.text,
                    "status": "completed",
                }  # fmt: skip
                items.append(output)
            elif isinstance(part, Text):
                items.append(message_item(message.role, part.text, f"msg_{number}"))
    return items


def _joined(message: Message) -> list[Part]:
    text = message.text
    others: list[Part] = [part for part in message.parts if isinstance(part, (ToolCall, ToolResult))]
    return [*([Text(text)] if text or not others else []), *others]


def call_item(call: ToolCall, name: str) -> dict[str, Json]:
    """Write a tool call as an item."""
    return {
        "type": "function_call", "id": name, "call_id": call.id or f"call_{name[3:]}", "name": call.name,
        "arguments": call.arguments or "{}", "status": "completed",
    }  # fmt: skip
