"""Items of Responses and Conversations: reading a client's items as messages, writing messages as items, and the body of a
response with its stream of events, live from its run or later from the store.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast

from taiwa.kernel.approval import ApprovalRequest
from taiwa.kernel.messages import Message, Part, Text, TextDelta, ThinkingDelta, ToolCall, ToolResult
from taiwa.kernel.serialization import Json, item_at, items_at, text_at, to_json
from taiwa.server.http_responses import ApiError, invalid
from taiwa.server.request import Fields
from taiwa.server.runs import RunEvent
from taiwa.server.wires.answer_request import MOST_LOGPROBS, append_message, response_of, write_logprobs
from taiwa.server.wires.chat_completions import read_content, read_files
from taiwa.sessions.commit_turn import TurnResult

ROLES = ("user", "assistant", "system", "developer")
NAMESPACE = "namespace"
APPROVAL_REQUEST, APPROVAL_RESPONSE = "mcp_approval_request", "mcp_approval_response"
UNREAD = frozenset({"reasoning", APPROVAL_REQUEST, APPROVAL_RESPONSE})
"""Items that are accepted and not sent to the model: reasoning belongs to the server that wrote it, approvals to a turn that waits."""

ERROR_CODES: Mapping[int, str] = {400: "invalid_prompt", 429: "rate_limit_exceeded"}
"""The codes of a failed response, of which the protocol has a closed list; all others are `server_error`."""

Body = dict[str, Json]
Referred = Callable[[str], "Json"]
"""Returns the item of an id, or None."""


def read_input(body: Fields, refer: Referred, most: int) -> tuple[list[Json], tuple[Message, ...]]:
    """Read `input`: the original items, with references replaced, and their messages.

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
            append_message(messages, message)
    return items, tuple(messages)


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
        names[call] = name_in(item.optional_text(NAMESPACE) or "", item.text("name"))
        return Message("assistant", (ToolCall(names[call], item.text("arguments", "{}"), call),))
    if kind == "function_call_output":
        call = item.text("call_id")
        output = item.data.get("output")
        content = Fields({"content": output, "role": "tool"}, item.at("output"))
        text, files = read_content(content), read_files(content)
        return Message("tool", (ToolResult(text, names.get(call, ""), call, attachments=files),))
    if kind in UNREAD:
        return None
    raise item.error("type", f"{kind[:40]!r} is not supported", "unsupported_parameter")


def name_in(namespace: str, name: str) -> str:
    """Return the name by which a model calls a function of a namespace."""
    return f"{namespace}__{name}" if namespace else name


def is_answer(item: Json) -> bool:
    """Report whether an item was written by the assistant."""
    return isinstance(item, dict) and (item.get("role") == "assistant" or item.get("type") == "function_call")


def listed_item(item: Body, name: str) -> Body:
    """Write an item of a client as it is listed: of a type and a status, with an id, and with its text as a part of the content."""
    given: Body = {key: each for key, each in item.items() if each is not None}
    if isinstance(text := item.get("content"), str):
        given["content"] = message_item(str(item["role"]), text)["content"]
    return {"type": "message", "id": name, "status": "completed", **given}


def message_item(role: str, text: str, name: str = "") -> dict[str, Json]:
    """Write a message as an item."""
    kind = "output_text" if role == "assistant" else "input_text"
    content: dict[str, Json] = {"type": kind, "text": text}
    if role == "assistant":
        content |= {"annotations": [], "logprobs": []}
    item: dict[str, Json] = {"type": "message", "role": role, "status": "completed", "content": [content]}
    return item | ({"id": name} if name else {})


def items_of(messages: Iterable[Message], node: str) -> list[Json]:
    """Write the messages of a node as items, whose ids derive from its hash."""
    items: list[Json] = []
    for message in messages:
        for part in _joined(message):
            number = f"{node}{len(items):02d}"
            if isinstance(part, ToolCall):
                items.append(call_item(part, f"fc_{number}"))
            elif isinstance(part, ToolResult):
                output: Json = {
                    "type": "function_call_output", "id": f"fco_{number}", "call_id": part.call, "output": part.as_text,
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


def _called(call: ToolCall, name: str, tools: Sequence[Json]) -> Json:
    """Write a tool call, with the namespace that its function has in the tools of the request."""
    spaces = [tool for tool in tools if item_at(tool, "type") == NAMESPACE]
    for space, function in (
        (text_at(tool, "name"), text_at(each, "name")) for tool in spaces for each in items_at(tool, "tools")
    ):
        if call.name == name_in(space, function):
            return {**call_item(call, name), "name": function, NAMESPACE: space}
    return call_item(call, name)


TEXT, CALL, REASONING, SEARCH, APPROVAL = "msg_", "fc_", "rs_", "fs_", "mcpr_"
SERVER_LABEL = "taiwa"
"""The name of this server, whose own tools need approval."""


def item_id(kind: str, response: str, index: int) -> str:
    """Return the id of an item of a response, which contains the id of the response."""
    return f"{kind}{response.removeprefix('resp_')}{index:02d}"


def response_of_item(name: str) -> str:
    """Return the id of the response that an item belongs to."""
    return f"resp_{name.partition('_')[2][:-2]}"


def searches(body: Body) -> bool:
    """Report whether a response has the tool `file_search`, whose call is then the first item of the output."""
    return any(
        isinstance(tool, dict) and tool.get("type") == "file_search" for tool in cast("list[Json]", body["tools"])
    )


def _search_item(body: Body, status: str) -> Body:
    name = item_id(SEARCH, str(body["id"]), 0)
    return {"type": "file_search_call", "id": name, "status": status, "queries": [], "results": None}


def finished(begun: Body, events: Sequence[RunEvent], completed_at: int, *, cancelled: bool = False) -> Body:
    """Return the body of a response whose run has ended."""
    body = _finished(begun, events, completed_at, cancelled=cancelled)
    if searches(begun):
        item = _search_item(begun, "completed" if body["status"] == "completed" else "incomplete")
        body["output"] = [item, *cast("list[Json]", body["output"])]
    return body


def _finished(begun: Body, events: Sequence[RunEvent], completed_at: int, *, cancelled: bool) -> Body:
    last = events[-1].event if events else None
    body = dict(begun)
    body["completed_at"] = completed_at
    name, thought = str(begun["id"]), _streamed_thought(events)
    if isinstance(last, TurnResult):
        return body | _outcome(begun, last, thought)
    text = "".join(each.event.text for each in events if isinstance(each.event, TextDelta))
    body["completed_at"] = None
    reasoning = [_reasoning(name, thought)] if thought else []
    body["output"] = [*reasoning, _message(name, text, [], "incomplete")] if text else reasoning
    if cancelled:
        return body | {"status": "cancelled"}
    if isinstance(last, ApiError) and last.calls:
        output = [*reasoning, _message(name, text, [], "completed")] if text else reasoning
        requests = [_approval_request(name, len(output) + at, call) for at, call in enumerate(last.calls)]
        body["output"] = [*output, *requests]
        return body | {"completed_at": completed_at, "status": "completed"}
    problem = last if isinstance(last, ApiError) else ApiError(500, "the run has ended without a result")
    error: Json = {"code": ERROR_CODES.get(problem.status, "server_error"), "message": problem.message}
    return body | {"status": "failed", "error": error}


def _approval_request(name: str, index: int, call: ApprovalRequest) -> Json:
    """Write a tool call of this server that needs approval, as the protocol has it for MCP servers."""
    return {
        "type": APPROVAL_REQUEST, "id": item_id(APPROVAL, name, index), "server_label": SERVER_LABEL, "name": call.name,
        "arguments": to_json(dict(call.arguments)).decode(),
    }  # fmt: skip


def _streamed_thought(events: Sequence[RunEvent]) -> str:
    """Return the reasoning that was streamed before the text; later reasoning is not part of the response."""
    thought = list[str]()
    for each in events:
        if isinstance(each.event, TextDelta):
            break
        if isinstance(each.event, ThinkingDelta):
            thought.append(each.event.text)
    return "".join(thought)


def _reasoning(name: str, text: str) -> Json:
    content: Json = [{"type": "reasoning_text", "text": text}]
    return {"type": "reasoning", "id": item_id(REASONING, name, 0), "summary": [], "content": content}


def _outcome(begun: Body, result: TurnResult, thought: str) -> Body:
    name, response, output = str(begun["id"]), response_of(result), list[Json]()
    if thought:
        output.append(_reasoning(name, thought))
    calls = response.message.tool_calls
    refuses = response.stop == "refusal"
    if refuses:
        output.append(_refusal(name, result.text))
    elif result.text or not calls:
        annotations = items_at(response.extra, "annotations")
        output.append(_message(name, result.text, write_logprobs(response, MOST_LOGPROBS), "completed", annotations))
    for call in calls:
        output.append(_called(call, item_id(CALL, name, len(output)), items_at(begun, "tools")))
    reasons = dict.fromkeys(("length", "interrupted", "repetition"), "max_output_tokens") | {
        "refusal": "content_filter"
    }
    reason = None if refuses else reasons.get(response.finish)
    return {
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output,
        "usage": write_response_usage(result),
    }


def write_response_usage(result: TurnResult) -> Json:
    """Write the usage of all calls of a turn; None if one of them is unknown."""
    if result.spent.calls_without_usage:
        return None
    used = result.spent.usage
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {
            "cached_tokens": used.cache_read_tokens,
            "cache_write_tokens": used.cache_write_tokens,
        },
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        "total_tokens": used.input_tokens + used.output_tokens,
    }


def _message(name: str, text: str, logprobs: list[Json], status: str, annotations: Sequence[Json] = ()) -> Json:
    part: Json = {"type": "output_text", "text": text, "annotations": [*annotations], "logprobs": logprobs}
    item = {"type": "message", "id": item_id(TEXT, name, 0), "status": status, "role": "assistant", "content": [part]}
    return cast("Json", item)


def _refusal(name: str, text: str) -> Json:
    part: Json = {"type": "refusal", "refusal": text}
    return cast("Body", _message(name, "", [], "completed")) | {"content": [part]}


def _text_of(part: Body) -> str:
    """Return the text of a part of a message or of reasoning."""
    return str(part["refusal" if part["type"] == "refusal" else "text"])


class EventWriter:
    """Writes the events of one response in order; their numbers depend only on its pieces of text and its final body."""

    def __init__(self, begun: Body) -> None:
        self._begun = begun
        self._number = 0
        self._has_text = self._refuses = False
        self._thought: list[str] = []
        self._thinks = False
        self._searches = searches(begun)
        self._at = 1 if self._searches else 0
        """The position in the output of the current item."""

    def begin(self) -> Iterator[Body]:
        """Write the first events."""
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self._begun)
        if self._searches:
            item = _search_item(self._begun, "in_progress")
            where: Body = {"item_id": item["id"], "output_index": 0}
            yield self._event("response.output_item.added", output_index=0, item=item)
            yield self._event("response.file_search_call.in_progress", **where)
            yield self._event("response.file_search_call.searching", **where)

    def thinking(self, piece: str) -> Iterator[Body]:
        """Write the next piece of the reasoning, which comes before the text."""
        if self._has_text or not piece:
            return
        if not self._thinks:
            self._thinks = True
            item = cast("Body", _reasoning(str(self._begun["id"]), ""))
            yield self._event("response.output_item.added", output_index=self._at, item=item | {"content": []})
            yield self._part_event(
                REASONING, "response.content_part.added", part={"type": "reasoning_text", "text": ""}
            )
        self._thought.append(piece)
        yield self._part_event(REASONING, "response.reasoning_text.delta", delta=piece)

    def _end_thinking(self) -> Iterator[Body]:
        """End the reasoning that is open."""
        if not self._thinks:
            return
        self._thinks = False
        text = "".join(self._thought)
        yield self._part_event(REASONING, "response.reasoning_text.done", text=text)
        yield self._part_event(REASONING, "response.content_part.done", part={"type": "reasoning_text", "text": text})
        item = _reasoning(str(self._begun["id"]), text)
        yield self._event("response.output_item.done", output_index=self._at, item=item)
        self._at += 1

    def text(self, piece: str, *, refuses: bool = False) -> Iterator[Body]:
        """Write the next piece of the text; the first one says whether it `refuses`."""
        if not self._has_text:
            yield from self._end_thinking()
            yield from self._open_message(refuses=refuses)
        if self._refuses:
            yield self._part_event(TEXT, "response.refusal.delta", delta=piece)
        else:
            yield self._part_event(TEXT, "response.output_text.delta", delta=piece, logprobs=[])

    def end(self, final: Body) -> Iterator[Body]:
        """Write the rest: the completion of open items, the other items, and the final body."""
        yield from self._end_thinking()
        output = cast("list[Body]", final["output"])
        for index, item in enumerate(output):
            if item["type"] == "reasoning":
                continue
            if item["type"] == "message":
                yield from self._end_message(index, item)
            elif item["type"] == APPROVAL_REQUEST:
                yield self._event("response.output_item.added", output_index=index, item=item)
                yield self._event("response.output_item.done", output_index=index, item=item)
            elif item["type"] == "file_search_call":
                yield self._event("response.file_search_call.completed", item_id=item["id"], output_index=index)
                yield self._event("response.output_item.done", output_index=index, item=item)
            else:
                yield from self._whole_item(index, item)
        kind = {"completed": "completed", "incomplete": "incomplete"}.get(str(final["status"]), "failed")
        yield self._event(f"response.{kind}", response=final)

    def _open_message(self, *, refuses: bool) -> Iterator[Body]:
        self._has_text, self._refuses = True, refuses
        item: Json = {
            "type": "message", "id": item_id(TEXT, str(self._begun["id"]), 0), "status": "in_progress",
            "role": "assistant", "content": [],
        }  # fmt: skip
        yield self._event("response.output_item.added", output_index=self._at, item=item)
        part: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        part = {"type": "refusal", "refusal": ""} if refuses else part
        yield self._part_event(TEXT, "response.content_part.added", part=part)

    def _end_message(self, index: int, item: Body) -> Iterator[Body]:
        (part,) = cast("list[Body]", item["content"])
        text, refuses = _text_of(part), part["type"] == "refusal"
        if not self._has_text:  # no piece was shown before the whole answer was checked
            yield from self.text(text, refuses=refuses) if text else self._open_message(refuses=refuses)
        for number, annotation in enumerate(cast("list[Json]", part.get("annotations", []))):
            kind = "response.output_text.annotation.added"
            yield self._part_event(TEXT, kind, annotation=annotation, annotation_index=number)
        if self._refuses:
            yield self._part_event(TEXT, "response.refusal.done", refusal=text)
        else:
            yield self._part_event(TEXT, "response.output_text.done", text=text, logprobs=part.get("logprobs", []))
        yield self._part_event(TEXT, "response.content_part.done", part=part)
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _whole_item(self, index: int, item: Body) -> Iterator[Body]:
        begun = item | {"arguments": "", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=index, item=begun)
        where: Body = {"item_id": item["id"], "output_index": index}
        kind = "response.function_call_arguments"
        yield self._event(f"{kind}.delta", **where, delta=item["arguments"])
        yield self._event(f"{kind}.done", **where, name=item["name"], arguments=item["arguments"])
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _part_event(self, of: str, kind: str, **fields: Json) -> Body:
        name = item_id(of, str(self._begun["id"]), 0)
        return self._event(kind, item_id=name, output_index=self._at, content_index=0, **fields)

    def _event(self, kind: str, **fields: Json) -> Body:
        number = self._number
        self._number += 1
        return {"type": kind, "sequence_number": number, **fields}


def pieces_of(events: Sequence[RunEvent]) -> list[Json]:
    """Return the lengths of the pieces, negative for reasoning, with which a finished response is streamed again."""
    return [
        len(each.event.text) if isinstance(each.event, TextDelta) else -len(each.event.text)
        for each in events
        if isinstance(each.event, (TextDelta, ThinkingDelta)) and each.event.text
    ]


def recorded_events(begun: Body, final: Body, pieces: Sequence[Json]) -> Iterator[Body]:
    """Write the events of a finished response again."""
    writer = EventWriter(begun)
    yield from writer.begin()
    output = cast("list[Body]", final["output"])
    texts = {item["type"]: _text_of(cast("list[Body]", item["content"])[0]) for item in output if item.get("content")}
    left = {"message": texts.get("message", ""), "reasoning": texts.get("reasoning", "")}
    kinds = [part["type"] for item in output for part in cast("list[Body]", item.get("content", []))]
    text = partial(writer.text, refuses="refusal" in kinds)
    for length in pieces:
        size = length if isinstance(length, int) else 0
        kind, write = ("reasoning", writer.thinking) if size < 0 else ("message", text)
        piece, left[kind] = left[kind][: abs(size)], left[kind][abs(size) :]
        yield from write(piece)
    yield from writer.end(final)
