"""Anthropic Messages (`POST /v1/messages`), complete and streamed, and `count_tokens`.

The store has the reasoning of a turn, so reasoning blocks that a client sends back are ignored.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from secrets import token_hex

from starlette.requests import Request
from starlette.responses import Response

from taiwa.conversation.app import AnswerOptions, RequestParts
from taiwa.kernel.attachments import Attachment, read_attachments
from taiwa.kernel.messages import (
    Constraint,
    FinishReason,
    JsonSchema,
    Message,
    Part,
    Sampling,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    system,
)
from taiwa.kernel.messages import Request as ModelRequest
from taiwa.kernel.messages import Response as ModelResponse
from taiwa.kernel.serialization import Json, record, to_json
from taiwa.kernel.text import estimate_tokens
from taiwa.models.http_api.anthropic import BUDGETS
from taiwa.models.http_api.provider_interface import EFFORTS
from taiwa.operations.request_preview import request_tokens
from taiwa.operations.resent_history import CompletionOptions, Place, estimate_input
from taiwa.server.http_responses import REQUEST_ID, ApiError, SendNow, event, invalid
from taiwa.server.request import Fields, caller_of, interpret, read_body, repository_of, state_of
from taiwa.server.runs import LiveRun, PublishedEvent
from taiwa.server.wire_interface import Route, Wire
from taiwa.server.wires.answer_request import (
    AnswerRequest,
    Extend,
    answer,
    append_message,
    checked_choice,
    checked_tools,
    pass_on,
    read_base64,
    read_extension,
    read_history,
    read_stops,
    remembered,
    response_of,
    unsupported_tool,
)
from taiwa.sessions.commit_turn import TurnResult
from taiwa.store.server_records import ServedObject

ROLES = ("user", "assistant", "system")
READ = frozenset(
    """model messages system max_tokens stream stop_sequences temperature top_p tools tool_choice thinking output_config
    output_format thread include taiwa""".split()
)
IGNORED = frozenset(
    """metadata cache_control context_management diagnostics inference_geo speed betas user_profile_id
    workspace_id billing_policy""".split()
)
"""Fields about serving and users, which are not passed on; docs/server.md lists them."""
HINTS = frozenset({"service_tier", "top_k"})
"""Fields that are passed on to servers that take them."""
KNOWN = READ | IGNORED | HINTS
UNSUPPORTED = frozenset({"container", "mcp_servers", "fallbacks", "fallback_credit_token", "compaction"})

STOP_REASONS: Mapping[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
    "cut": "end_turn",
    "interrupted": "max_tokens",
    "repetition": "max_tokens",
}
ERROR_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
STATUSES: Mapping[int, int] = {502: 500, 503: 529}
"""Replacements for statuses that the protocol does not define."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesRequest(AnswerRequest):
    """A parsed request; `thinks` is true if the client wants the reasoning, "omitted" if only its signatures."""

    thinks: str
    thread: str | None
    """The message of a thread that this one follows; "" for the start of a thread."""

    def estimate(self) -> int:
        """Estimate the tokens of the input, for a model whose server cannot count them."""
        opening = (system(self.options.system),) if self.options.system else ()
        tools = sum(estimate_tokens(str(record(tool))) for tool in self.options.parts.client_tools)
        return request_tokens(ModelRequest((*opening, *self.messages))) + tools


def read_request(body: Fields, most_messages: int, *, counts: bool = False) -> MessagesRequest:
    """Read a request; one that only counts tokens needs no limit.

    Raises:
        ApiError: a field is missing, unknown, or has a wrong type or value.
    """
    fields = body.others(KNOWN, UNSUPPORTED)
    most = body.count("max_tokens", 1)
    if most is None and not counts:
        raise body.missing("max_tokens")
    thinks, effort = _read_thinking(body, most)
    tools = _read_tools(body)
    leading = [block.text("text") for block in _blocks(body, "system", ("text",))]
    system_text, messages = read_history(body, read_messages, most_messages)
    options = AnswerOptions(
        system="\n\n".join(text for text in (*leading, system_text) if text) or None,
        parts=RequestParts(
            tools, _read_tool_choice(body, tools), _read_format(body), read_stops(body, "stop_sequences")
        ),
        sampling=Sampling(body.number("temperature", 0, 1), body.number("top_p", 0, 1), most, effort=effort),
    )
    return MessagesRequest(
        model=body.text("model"),
        messages=messages,
        options=options,
        streams=body.flag("stream"),
        thinks=thinks,
        thread=_read_thread(body),
        extension=read_extension(body),
        prefills=True,
        passed=pass_on(fields, body, HINTS),
    )


def _read_thread(body: Fields) -> str | None:
    given = body.object("thread")
    if given is None:
        return None
    return "" if given.choice("type", ("create", "continue"), "") == "create" else given.text("previous_message_id")


def _read_thinking(body: Fields, most: int | None) -> tuple[str, str]:
    """Return whether reasoning is shown, and its effort; a token budget becomes the largest effort within it."""
    output = body.object("output_config")
    effort = ""
    if output is not None:
        output.check_names({"effort", "format"})
        effort = "" if output.data.get("effort") is None else output.choice("effort", EFFORTS, "")
    thinking = body.object("thinking")
    if thinking is None:
        return "", effort
    kind = thinking.choice("type", ("enabled", "disabled", "adaptive"), "")
    if kind == "disabled":
        return "", "none"
    if kind == "enabled":
        budget = thinking.count("budget_tokens", 1024)
        if budget is None:
            raise thinking.missing("budget_tokens")
        if most is not None and budget >= most:
            raise thinking.error("budget_tokens", "must be less than max_tokens")
        effort = effort or [name for name, tokens in BUDGETS.items() if tokens <= budget][-1]
    return thinking.choice("display", ("summarized", "omitted"), "summarized"), effort


def _blocks(holder: Fields, name: str, kinds: tuple[str, ...]) -> Iterator[Fields]:
    """Yield the blocks of a content, which may be one text.

    Raises:
        ApiError: a block is of another type.
    """
    given = holder.data.get(name)
    if isinstance(given, str):
        yield Fields({"type": "text", "text": holder.text(name)}, holder.at(name))
        return
    for block in holder.objects(name):
        kind = block.text("type")
        if kind not in kinds:
            raise block.error("type", f"{kind[:40]!r} is not supported here", "unsupported_content")
        yield block


def read_messages(body: Fields) -> tuple[Message, ...]:
    """Read the messages of a request.

    Raises:
        ApiError: one has an unknown role or block.
    """
    names: dict[str, str] = {}
    messages: list[Message] = []
    for item in body.objects("messages"):
        role = item.choice("role", ROLES, "")
        if item.data.get("content") is None:
            raise item.missing("content")
        if role == "system":
            texts = [block.text("text") for block in _blocks(item, "content", ("text",))]
            messages.append(Message("system", (Text("\n\n".join(texts)),)))
        elif role == "user":
            messages += _read_user(item, names)
        else:
            append_message(messages, Message("assistant", _read_assistant(item, names)))
    return tuple(messages)


def _read_user(item: Fields, names: Mapping[str, str]) -> list[Message]:
    """Read a user message: each result of a call as a separate message, then the files and the text."""
    results: list[Message] = []
    files: list[Attachment] = []
    texts: list[str] = []
    for block in _blocks(item, "content", ("text", "image", "document", "tool_result")):
        kind = block.data["type"]
        if kind == "text":
            texts.append(block.text("text"))
        elif kind == "tool_result":
            call, said, shown = block.text("tool_use_id"), list[str](), list[Attachment]()
            for inner in _blocks(block, "content", ("text", "image", "document")):
                if inner.data["type"] == "text":
                    said.append(inner.text("text"))
                else:
                    shown.append(_read_file(inner))
            error = "error" if block.flag("is_error") else ""
            name, files_of = names.get(call, ""), read_attachments(shown)
            result = ToolResult("\n".join(said), name, call, error=error, attachments=files_of)
            results.append(Message("tool", (result,)))
        else:
            files.append(_read_file(block))
    if results and not texts and not files:
        return results
    return [*results, Message("user", (*files, Text("\n\n".join(texts))))]


def _read_file(block: Fields) -> Attachment:
    """Read an image or a document; it must be in the request, since no address is fetched."""
    source = block.required("source")
    kind, title = source.text("type"), block.text("title", "")
    if kind == "text":
        return Attachment.from_bytes(source.text("data").encode(), title or "document.txt")
    if kind == "base64":
        return read_base64(source.text("data"), source.at("data"), title)
    problem = f"{kind[:40]!r} is not supported; send the data (addresses are not fetched)"
    raise source.error("type", problem, "unsupported_content")


def _read_assistant(item: Fields, names: dict[str, str]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for block in _blocks(item, "content", ("text", "thinking", "redacted_thinking", "tool_use")):
        kind = block.data["type"]
        if kind == "text":
            parts.append(Text(block.text("text")))
        elif kind == "tool_use":
            call, given = block.text("id"), block.object("input")
            names[call] = block.text("name")
            parts.append(ToolCall(names[call], to_json({} if given is None else given.data).decode(), call))
    return tuple(parts) or (Text(""),)


@remembered
def _read_tools(body: Fields) -> tuple[ToolSpec, ...]:
    tools: list[ToolSpec] = []
    for item in body.objects("tools"):
        if item.text("type", "custom") != "custom":
            raise unsupported_tool(item, "custom")
        schema = item.schema("input_schema")
        tools.append(ToolSpec(item.text("name"), item.text("description", ""), schema))
    return checked_tools(tools, "tools")


def _read_tool_choice(body: Fields, tools: tuple[ToolSpec, ...]) -> str:
    given = body.object("tool_choice")
    if given is None:
        return "auto"
    kind = given.choice("type", ("auto", "any", "tool", "none"), "")
    if kind in ("any", "tool") and not tools:
        raise invalid("tool_choice", "tool_choice is allowed only with tools", "invalid_value")
    if kind == "tool":
        return checked_choice(given.text("name"), tools)
    return "required" if kind == "any" else kind if tools else "auto"


def _read_format(body: Fields) -> Constraint | None:
    """Read `output_config.format`, or its older name `output_format`."""
    output = body.object("output_config")
    form = body.object("output_format") or (None if output is None else output.object("format"))
    if form is None:
        return None
    form.choice("type", ("json_schema",), "")
    return JsonSchema(form.schema("schema"))


THREAD_FIELDS = ("system", "tools")
"""Settings that a thread keeps from its first request."""


async def create(request: Request) -> Response:
    """Answer a request, complete or as a stream; the answer is cancelled if the client disconnects.

    A message of a thread follows an earlier one, possibly one of several, instead of the client's history.
    """
    state, repository = state_of(request), repository_of(request)
    state.runs.check_room(caller_of(request))
    body = await read_body(request)
    kept, after = body.data, None
    if name := _read_thread(body):
        found = await asyncio.to_thread(repository.store.served.find, name)
        if found is None or found.kind != "message" or found.node is None:
            raise ApiError(404, f"message {name[:80]!r} not found", code="thread_not_found")
        kept, after = found.body, Place(found.node, found.session)
        body = Fields({**found.body, **body.data})
    asked = await interpret(request, partial(read_request, body, state.options.limits.messages))
    reply = _Reply(asked)

    async def keep(run: LiveRun) -> None:
        result = run.last
        if asked.thread is not None and isinstance(result, TurnResult):
            opening = {each: kept[each] for each in THREAD_FIELDS if each in kept}
            made = ServedObject(reply.id, "message", result.session, result.node, opening)
            await asyncio.to_thread(repository.store.served.put, made)

    return await answer(request, asked, reply, after=after, on_end=keep)


async def count_tokens(request: Request) -> Json:
    """Estimate the tokens of a request without a model call."""
    state, repository = state_of(request), repository_of(request)
    read = partial(read_request, await read_body(request), state.options.limits.messages, counts=True)
    asked = await interpret(request, read)
    choice = state.served.choose(asked.model)
    options = CompletionOptions(choice.app, asked.messages, request=asked.options)
    return {"input_tokens": await asyncio.to_thread(estimate_input, repository, options)}


class _Reply:
    """Writes the answer of one request."""

    protocol = "Messages"

    def __init__(self, asked: MessagesRequest) -> None:
        self._asked = asked
        self._index = -1
        self._open = ""
        self.id = f"msg_{token_hex(12)}"

    def whole(self, results: list[TurnResult]) -> dict[str, Json]:
        """Return the complete message."""
        (result,) = results
        response = response_of(result)
        content: list[Json] = []
        if self._asked.thinks:
            content += [self._thinking(part) for part in response.message.thinking]
        calls = _calls(response)
        if result.continuation or not calls:
            # the specification requires an array or null here, and the Vercel AI SDK an array
            content.append({"type": "text", "text": result.continuation, "citations": []})
        content += calls
        return self._message(content, _ending(response), self._usage(result))

    async def stream(self, run: LiveRun, extend: Extend, send_now: SendNow) -> AsyncGenerator[bytes]:
        """Yield the events of the message."""
        usage = _write_usage(Usage(self._asked.estimate()))
        ending: dict[str, Json] = {"stop_reason": None, "stop_sequence": None, "stop_details": None}
        yield _event("message_start", message=self._message([], ending, usage))
        yield _event("ping")
        has_text = False

        def take(_: int, event: PublishedEvent) -> bool:
            if not isinstance(event, TextDelta) or self._open != "text":
                return False
            return send_now(self._delta("text", {"type": "text_delta", "text": event.text}))

        async for each in run.follow(take=take):
            match each.event:
                case ApiError():
                    yield event(error(each.event), "error")
                case TextDelta(text):
                    has_text = True
                    yield self._delta("text", {"type": "text_delta", "text": text})
                case ThinkingDelta():
                    if self._asked.thinks:
                        yield self._write_thinking(each.event)
                case TurnResult():
                    if not has_text and (each.event.text or not response_of(each.event).message.tool_calls):
                        yield self._delta("text", {"type": "text_delta", "text": each.event.text})
                    yield self._end(each.event, await extend([each.event]))
                case _:
                    pass

    def _write_thinking(self, delta: ThinkingDelta) -> bytes:
        """Write the next reasoning; a signed block ends with its signature, and an encrypted one is written immediately."""
        block = delta.block
        if block is not None and (written := self._thinking(block))["type"] != "thinking":
            return self._close() + self._start(written) + self._close()
        out = b""
        if delta.text and self._asked.thinks != "omitted":
            out = self._delta("thinking", {"type": "thinking_delta", "thinking": delta.text})
        if block is not None:
            signature = self._thinking(block)["signature"]
            out += self._delta("thinking", {"type": "signature_delta", "signature": signature}) + self._close()
        return out

    def _delta(self, kind: str, delta: dict[str, Json]) -> bytes:
        """Write a piece of a block, starting the block if another one is open."""
        out = b""
        if self._open != kind:
            empty: dict[str, Json] = {"citations": []} if kind == "text" else {"signature": ""}
            out = self._close() + self._start({"type": kind, kind: "", **empty})
            self._open = kind
        return out + _event("content_block_delta", index=self._index, delta=delta)

    def _start(self, block: Json) -> bytes:
        self._index += 1
        self._open = "block"
        return _event("content_block_start", index=self._index, content_block=block)

    def _close(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        return _event("content_block_stop", index=self._index)

    def _end(self, result: TurnResult, extension: dict[str, Json]) -> bytes:
        """Write the calls and the end of the message."""
        out = [self._close()]
        for call in _calls(response_of(result)):
            arguments = to_json(call["input"]).decode()
            out.append(self._start(call | {"input": {}}))
            delta: Json = {"type": "input_json_delta", "partial_json": arguments}
            out += [_event("content_block_delta", index=self._index, delta=delta), self._close()]
        usage = self._usage(result)
        names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        totals: dict[str, Json] = {name: usage[name] for name in (*names, "output_tokens_details", "server_tool_use")}
        delta = {**_ending(response_of(result)), "container": None}
        out.append(_event("message_delta", delta=delta, usage=totals, **extension))
        return b"".join((*out, _event("message_stop")))

    def _message(self, content: list[Json], ending: dict[str, Json], usage: dict[str, Json]) -> dict[str, Json]:
        return {
            "id": self.id, "type": "message", "role": "assistant", "model": self._asked.model, "content": content,
            **ending, "usage": usage, "container": None,
        }  # fmt: skip

    def _thinking(self, part: Thinking) -> dict[str, Json]:
        """Write a reasoning block: as Anthropic signed it, or without a signature if it is of another model."""
        data = part.data if isinstance(part.data, dict) else {}
        if data.get("type") == "redacted_thinking":
            return data
        text = "" if self._asked.thinks == "omitted" else part.text
        signature = data.get("signature") if data.get("type") == "thinking" else ""
        return {"type": "thinking", "thinking": text, "signature": signature or ""}

    def _usage(self, result: TurnResult) -> dict[str, Json]:
        """Write the usage of all calls; the protocol requires numbers, so unknown ones are estimated."""
        if not result.spent.calls_without_usage:
            return _write_usage(result.spent.usage)
        said = result.continuation + "".join(call.arguments for call in response_of(result).message.tool_calls)
        return _write_usage(Usage(self._asked.estimate(), estimate_tokens(said)))


def _event(kind: str, **fields: Json) -> bytes:
    return event({"type": kind, **fields}, kind)


def _calls(response: ModelResponse) -> list[dict[str, Json]]:
    return [
        {
            "type": "tool_use", "id": call.id, "name": call.name,
            "input": call.arguments_object(), "caller": {"type": "direct"},
        }
        for call in response.message.tool_calls
    ]  # fmt: skip


def _ending(response: ModelResponse) -> dict[str, Json]:
    reason = STOP_REASONS[response.finish]
    if response.finish == "stop":
        reason = "tool_use" if response.message.tool_calls else "stop_sequence" if response.stop else reason
    refused: Json = {"type": "refusal", "category": None, "explanation": None}
    return {
        "stop_reason": reason,
        "stop_sequence": response.stop if reason == "stop_sequence" else None,
        "stop_details": refused if reason == "refusal" else None,
    }


def _write_usage(usage: Usage) -> dict[str, Json]:
    """Write a usage; the protocol counts tokens read from and written to a cache separately."""
    cached: dict[str, Json] = {
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
    }
    return {
        "input_tokens": max(usage.input_tokens - usage.cache_write_tokens - usage.cache_read_tokens, 0),
        "output_tokens": usage.output_tokens,
        **cached,
        "cache_creation": None,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "server_tool_use": None,
        "service_tier": "standard",
        "inference_geo": None,
    }


def model_object(name: str, created: int) -> Json:
    """Write a model in the listing format of this protocol."""
    at = datetime.fromtimestamp(created, UTC).isoformat().replace("+00:00", "Z")
    return {
        "type": "model", "id": name, "display_name": name, "created_at": at, "capabilities": None,
        "max_input_tokens": None, "max_tokens": None,
    }  # fmt: skip


def status(problem: ApiError) -> int:
    """Return the status of an error in this protocol."""
    return 402 if problem.code == "insufficient_quota" else STATUSES.get(problem.status, problem.status)


def error(problem: ApiError) -> dict[str, Json]:
    """Write an error as Anthropic does."""
    number = status(problem)
    kind = ERROR_TYPES.get(number, "api_error" if number >= 500 else "invalid_request_error")
    # Clients that shorten a conversation know its overflow by these words alone: the protocol has no code for it.
    overflow = "prompt is too long: " if problem.code == "context_length_exceeded" else ""
    details: dict[str, Json] = {"details": {"error_code": problem.code}} if problem.code == "thread_not_found" else {}
    return {
        "type": "error",
        "error": {"type": kind, "message": overflow + problem.message, **details},
        "request_id": REQUEST_ID.get() or None,
    }


wire = Wire(
    "messages",
    (Route("/v1/messages", create, repeats=True), Route("/v1/messages/count_tokens", count_tokens)),
    error,
    status=status,
)
