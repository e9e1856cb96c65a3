"""Read and write conversations as the message lists of OpenAI and Anthropic, and as ShareGPT; read what ChatGPT, Claude and llm export."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias, cast

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import AnswerOptions
from taiwa.conversation.history import Conversation, TurnParts, add_turn
from taiwa.flows.turn import input_text
from taiwa.kernel.errors import ConflictError, InputError
from taiwa.kernel.messages import Message, Part, Role, Text, ToolCall, ToolResult
from taiwa.kernel.serialization import Json, item_at, items_at, parse_json, text_at
from taiwa.kernel.wording import Wording
from taiwa.sessions.repository import Repository

IMPORTED = "import"
"""The reason of the first move of an imported session, which is not the latest one because of it."""
Fields: TypeAlias = dict[str, Json]

FROM: Mapping[str, Role] = {
    "tool": "tool", "developer": "system", "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "model": "assistant", "bing": "assistant",
    "system": "system",
}  # fmt: skip
"""The role of a message by the name of its speaker, in ShareGPT too."""
LONGEST_TITLE = 200
NO_ANSWER = Wording("there is no answer of an assistant to import")


class MessageList(NamedTuple):
    """The messages of a conversation, with its system text and its title ("" if it has none)."""

    system: str
    messages: tuple[Message, ...]
    title: str = ""


def read_message_lists(text: str) -> tuple[MessageList, ...] | None:
    """Return the conversations in a file; None if it is an export of taiwa, or of nothing that is known.

    The file is one list of messages, one object with `messages` or `conversations`, or several of them: a list, or one a line; or
    the `conversations.json` of ChatGPT or Claude, of whose conversations those without an answer are left out; or `llm logs --json`.

    Raises:
        InputError: a message cannot be read, or nothing was answered.
    """
    try:
        data = _parsed(text)
    except ValueError:
        return None
    items = [each for each in (data if isinstance(data, list) else [data]) if isinstance(each, dict)]
    if not items or (isinstance(data, list) and len(items) < len(data)):
        return None
    if {"mapping", "chat_messages"} & items[0].keys():
        items = [each for each in map(_exported, items) if each["messages"]]
        if not items:
            raise InputError(NO_ANSWER)
    elif {"prompt", "response"} <= items[0].keys():
        items = _logged(items)
    elif {"role", "from"} & items[0].keys():
        whole: Fields = {"messages": data}
        items = [whole]
    elif not {"messages", "conversations"} & items[0].keys():
        return None
    return tuple(_read(each, number if len(items) > 1 else 0) for number, each in enumerate(items, 1))


def _parsed(text: str) -> Json:
    try:
        return parse_json(text)
    except ValueError:
        return [parse_json(line) for line in text.split("\n") if line.strip()]


def _exported(item: Fields) -> Fields:
    """Return a conversation that ChatGPT or Claude exported as `messages`: the texts up to the last answer.

    ChatGPT exports a tree, of which the branch is read that was shown last.
    """
    listed, mapping, at = items_at(item, "chat_messages"), item.get("mapping"), item.get("current_node")
    if isinstance(mapping, dict):
        nodes = dict(mapping)  # each is visited once
        while isinstance(at, str) and (node := nodes.pop(at, None)) is not None:
            listed.append(item_at(node, "message"))
            at = item_at(node, "parent")
        listed.reverse()
    said = [(role, text) for role, text in map(_said_in, listed) if text and role in ("user", "assistant")]
    messages: list[Json] = [
        {"role": role, "content": "\n\n".join(text for _, text in texts)}
        for role, texts in groupby(said, itemgetter(0))
    ]
    if said and said[-1][0] == "user":
        messages.pop()
    return {"messages": messages, "title": text_at(item, "title") or text_at(item, "name")}


def _logged(items: Iterable[Fields]) -> list[Fields]:
    """Return the conversations in a log of llm, which lists prompts with their responses."""
    found: dict[str, Fields] = {}
    for number, item in enumerate(items):
        begun: Fields = {"messages": [], "system": item.get("system"), "title": item.get("conversation_name")}
        texts = (text_at(each, "content") for each in items_at(item, "prompt_fragments"))
        answer: Fields = {"role": "assistant", "content": item.get("response")}
        messages = items_at(found.setdefault(text_at(item, "conversation_id") or str(number), begun), "messages")
        if messages and not item.get("prompt"):  # what follows the results of tools
            said = (text_at(messages[-1], "content"), text_at(item, "response"))
            messages[-1] = {**answer, "content": "\n\n".join(filter(None, said))}
            continue
        text = "\n".join((*texts, text_at(item, "prompt")))
        asked: Fields = {"role": "user", "content": [text, *items_at(item, "attachments")]}
        messages.extend((asked, answer))
    return list(found.values())


def _said_in(message: Json) -> tuple[Role | None, str]:
    """Return the role and the visible text of a message of ChatGPT or Claude."""
    kind = text_at(message, "content", "content_type") or "text"
    if kind not in ("text", "multimodal_text") or text_at(message, "recipient") not in ("", "all"):
        return None, ""
    parts = items_at(message, "content", "parts") or items_at(message, "content") or [item_at(message, "text")]
    texts = (part if isinstance(part, str) else text_at(part, "text") for part in parts)
    role = FROM.get(text_at(message, "author", "role") or text_at(message, "sender"))
    return role, "\n\n".join(filter(str.strip, texts))


def _read(item: Fields, number: int) -> MessageList:
    """Read the messages of an item, the `number`th of several or 0."""
    listed = item.get("messages", item.get("conversations"))
    if not isinstance(listed, list) or not listed:
        raise InputError(
            Wording("conversation {n}: messages must be a list that is not empty", n=number)
            if number
            else Wording("messages must be a list that is not empty")
        )
    systems = [_text(item["system"], "system")] if item.get("system") else []
    messages: list[Message] = []
    names: dict[str, str] = {}
    for at, each in enumerate(listed, 1):
        here = Wording("conversation {n}: message {at}", n=number, at=at) if number else Wording("message {at}", at=at)
        if not isinstance(each, dict):
            raise InputError(Wording("{where} is not an object", where=here))
        given = each.get("role", each.get("from"))
        role = FROM.get(given) if isinstance(given, str) else None
        if role == "system":
            systems.append(_text(_content(each), here))
        elif role is not None:
            messages += _messages(role, each, names, here)
        else:
            raise InputError(
                Wording("{where}: unknown role {role!r}; use system, user, assistant or tool", where=here, role=given)
            )
    title = " ".join(text_at(item, "title").split())[:LONGEST_TITLE]
    return MessageList("\n\n".join(systems), tuple(messages), title)


def read_message(fields: Mapping[str, object], names: dict[str, str], here: str) -> tuple[Message, ...]:
    """Read a message with parts, calls of tools or the result of one, as OpenAI and Anthropic have it; `names` collects the tools of the
    calls by their ids.

    Raises:
        InputError: it is neither, as `here` says.
    """
    role = FROM[str(fields["role"])]
    plain = cast("Fields", dict(fields))
    if role == "system":
        return (Message(role, (Text(_text(_content(plain), here)),)),)
    return tuple(_messages(role, plain, names, here))


def _content(fields: Fields) -> Json:
    return fields.get("content", fields.get("value"))


def _messages(role: Role, fields: Fields, names: dict[str, str], here: str) -> Iterator[Message]:
    """Yield the message of an entry; results of tools within one of the user, as Anthropic has them, are messages of their own."""
    content = _content(fields)
    if role == "tool":
        yield _result(text_at(fields, "tool_call_id"), _text(content, here), names)
        return
    parts: list[Part] = []
    for block in content if isinstance(content, list) else [content]:
        kind = text_at(block, "type")
        if kind == "tool_result" and isinstance(block, dict):
            yield _result(text_at(block, "tool_use_id"), _text(block.get("content"), here), names)
        elif kind == "tool_use" and isinstance(block, dict):
            parts.append(ToolCall(text_at(block, "name"), json.dumps(block.get("input") or {}), text_at(block, "id")))
        elif kind not in ("thinking", "redacted_thinking") and (text := _text(block, here)):
            parts.append(Text(text))
    parts += [
        ToolCall(text_at(call, "function", "name"), text_at(call, "function", "arguments") or "{}", text_at(call, "id"))
        for call in items_at(fields, "tool_calls")
    ]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if not all(call.name for call in calls):
        raise InputError(Wording("{where}: a call of a tool has no name", where=here))
    names.update((call.id, call.name) for call in calls)
    if parts or role == "assistant":
        yield Message(role, tuple(parts) or (Text(""),))


def _result(call: str, text: str, names: Mapping[str, str]) -> Message:
    return Message("tool", (ToolResult(text, names.get(call, ""), call),))


def _text(content: Json, here: str) -> str:
    """Return the text of a content: a string, a block of text, or a list of such blocks."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(_text(each, here) for each in content)
    if isinstance(content, dict) and isinstance(text := content.get("text"), str):
        return text
    kind = text_at(content, "type") or type(content).__name__
    raise InputError(
        Wording(
            "{where}: content of type {kind!r} cannot be read; only text and calls of tools can", where=here, kind=kind
        )
    )


def import_message_lists(
    repository: Repository, lists: Sequence[MessageList], name: str = ""
) -> dict[str, Conversation]:
    """Store lists of messages as conversations of the app plain, whose instructions are the system texts; return them by name.

    Several lists are numbered: `name-1`, `name-2`.

    Raises:
        InputError: one has no answer, or its last message has none; nothing was imported.
        ConflictError: a session exists.
    """
    read = [_conversation(repository, *given[:2]) for given in lists]
    names = [f"{name}-{number}" for number in range(1, len(read) + 1)] if name and len(read) > 1 else [name] * len(read)
    if taken := next(filter(repository.store.refs.has, filter(None, names)), ""):
        raise ConflictError(Wording("session {name!r} already exists; choose another name", name=taken))
    done: dict[str, Conversation] = {}
    with repository.store.transaction():
        for each, here, given in zip(names, read, lists, strict=True):
            session = each or repository.new_name(here.app)
            done[session] = repository.commit(session, here, expected=None, reason=IMPORTED)
            if given.title:
                repository.store.refs.label(session, title=given.title)
    return done


def _conversation(repository: Repository, system: str, messages: Sequence[Message]) -> Conversation:
    app = load_app("plain")
    here, begun = repository.start(app.with_options(AnswerOptions(system=system)) if system else app), list[Message]()
    for message in messages:
        begun.append(message)
        if message.role == "assistant" and not message.tool_calls:
            here = add_turn(here, input_text(begun[:-1]), message.text, None, TurnParts(messages=tuple(begun)))
            begun = []
    if begun:
        raise InputError(
            Wording("message {n} has no answer; remove the messages behind the last answer", n=len(messages))
        )
    if not here.count:
        raise InputError(NO_ANSWER)
    return here


def write_messages(here: Conversation, turns: Iterable[Sequence[Message]], form: str) -> str:
    """Write the turns of a conversation as one object of JSON on a line, in a form of `WRITERS`; attachments are only named."""
    own = "" if here.app.is_template else here.app.instructions
    system = "\n\n".join(dict.fromkeys(filter(None, (own, here.app.answer_options.system))))
    messages = [message for turn in turns for message in turn]
    return json.dumps(WRITERS[form](system, messages), ensure_ascii=False) + "\n"


def _said(message: Message) -> str:
    return "".join((*(f"[{each.label}]\n" for each in message.attachments), message.text))


def _openai(system: str, messages: Sequence[Message]) -> Json:
    written: list[Json] = []
    if system:
        written.append({"role": "system", "content": system})
    for message in messages:
        if message.role == "tool":
            results = [part for part in message.parts if isinstance(part, ToolResult)]
            said: list[Json] = [{"role": "tool", "tool_call_id": each.call, "content": each.text} for each in results]
            written += said
            continue
        item: dict[str, Json] = {"role": message.role, "content": _said(message)}
        if calls := message.tool_calls:
            item["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in calls
            ]
        written.append(item)
    return {"messages": written}


def _anthropic(system: str, messages: Sequence[Message]) -> Json:
    written: list[Json] = []
    for message in messages:
        blocks: list[Json] = [{"type": "text", "text": text}] if (text := _said(message)) else []
        for part in message.parts:
            if isinstance(part, ToolCall):
                blocks.append(
                    {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments_object("arguments")}
                )
            elif isinstance(part, ToolResult):
                blocks.append({"type": "tool_result", "tool_use_id": part.call, "content": part.text})
        written.append({"role": "assistant" if message.role == "assistant" else "user", "content": blocks})
    return {**({"system": system} if system else {}), "messages": written}


def _sharegpt(system: str, messages: Sequence[Message]) -> Json:
    written: list[Json] = []
    if system:
        written.append({"from": "system", "value": system})
    said: list[Json] = [
        {"from": "human" if message.role == "user" else "gpt", "value": text}
        for message in messages
        if message.role in ("user", "assistant") and (text := _said(message))
    ]
    return {"conversations": [*written, *said]}


WRITERS: Mapping[str, Callable[[str, Sequence[Message]], Json]] = {
    "openai": _openai, "anthropic": _anthropic, "sharegpt": _sharegpt,
}  # fmt: skip
