"""The Anthropic Messages protocol, as a codec (no I/O)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from taiwa.json_schema import name_keys
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Constraint,
    FinishReason,
    JsonSchema,
    Message,
    Regex,
    Request,
    Sampling,
    Text,
    ToolResult,
    Usage,
)
from taiwa.kernel.serialization import Json, count_at, item_at, items_at, text_at, to_json
from taiwa.models.http_api.capabilities import Capabilities, fit_attachments, reasons_adaptively, takes_effort
from taiwa.models.http_api.errors import error_in_response, protocol_error
from taiwa.models.http_api.provider_interface import (
    NO_OPTIONS,
    Decoder,
    Enforce,
    ModelOptions,
    Server,
    WireRequest,
    extra_fields,
)
from taiwa.models.http_api.stream_decoder import CallIds, ResponseBuilder, StreamDecoder, ToolCallBuilder

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 4096
"""The protocol requires a limit of the answer."""
REASONING_MAX_TOKENS = 32_000
"""The limit of reasoning and answer together, if the model chooses how long it reasons."""
BUDGETS: Mapping[str, int] = {
    "minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 32_000, "max": 32_000
}  # fmt: skip
"""Reasoning tokens for models without an effort setting."""
CALL_ID = r"[A-Za-z0-9_-]{1,64}"
CACHE_CONTROL: Json = {"type": "ephemeral"}
"""Requests caching of everything up to and including its block; four are allowed, three are used."""
FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "interrupted",
}

UNSUPPORTED_KEYWORDS = frozenset(
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems",
     "uniqueItems", "propertyNames")
)  # fmt: skip
"""Keywords of a schema that the server refuses; the answer is checked against them afterwards."""
USAGE_PATHS: Mapping[str, tuple[str, ...]] = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "read": ("cache_read_input_tokens",),
    "stored": ("cache_creation_input_tokens",),
    "thought": ("output_tokens_details", "thinking_tokens"),
}
"""The path of each count in a usage report."""

SIGNED = ("thinking", "redacted_thinking")
"""The types of blocks of reasoning, with a signature or encrypted."""

Block: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """The codec for one model behind the Messages protocol."""

    model: str
    capabilities: Capabilities
    label: str = "Anthropic"
    options: ModelOptions = NO_OPTIONS
    enforce: Enforce = "auto"

    def takes(self, field: str) -> bool:
        """Whether a field of `Sampling.extra` can be sent."""
        return field in ("top_k", "service_tier")

    def encode(self, request: Request) -> WireRequest:
        """Encode a request; sampling and seed are omitted if the model does not accept them.

        Raises:
            UnsupportedError: the protocol or the model cannot express it, or cannot read an attachment.
            InputError: it has no message to answer, its text is not valid Unicode, or `tool_choice` names an unknown tool.
        """
        request = fit_attachments(request, self.model, self.capabilities.inputs)
        options = self.options.with_effort(request.sampling.effort)
        instructions, rest = _split(request.messages)
        body: dict[str, Json] = {
            **extra_fields(request.sampling),
            "model": self.model,
            "max_tokens": request.sampling.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": self._messages(request, rest),
            "stream": not request.hints.whole,
            **self._reasoning(request, options),
        }
        if instructions.lasting or instructions.transient:
            body["system"] = self._blocks(instructions, marked=True)
        if request.tools:
            body |= self._tools(request)
        if text_at(body, "thinking", "type") in ("", "disabled"):
            body |= self._sampling(request.sampling)
        if request.stop:
            body["stop_sequences"] = self._stops(request.stop)
        if request.top_logprobs:
            raise UnsupportedError(f"{self.label} does not return log probabilities", capability="logprobs")
        # How much the model reasons and writes; older models have a budget instead.
        effort = {"none": "", "minimal": "low"}.get(options.effort, options.effort)
        output: dict[str, Json] = {"effort": effort} if effort and takes_effort(self.model) else {}
        if request.constraint is not None:
            try:
                output["format"] = self._format(request.constraint)
            except UnsupportedError:
                if self.enforce != "lenient":
                    raise
        if output:
            body["output_config"] = output
        headers = (("content-type", "application/json"), ("anthropic-version", VERSION))
        return WireRequest("messages", to_json(body), headers)

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Create a decoder; white space at the end of the prefix was not sent, so it is removed from the answer."""
        response = ResponseBuilder(prefix[len(prefix.rstrip()) :])
        return StreamDecoder(_Reader(response, self.server, self.origin), response, self.server, content_type)

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that carry a key."""
        return (("x-api-key", key),) if key else ()

    @property
    def server(self) -> Server:
        """The server and the model that errors name."""
        return Server(self.label, self.model)

    @property
    def origin(self) -> str:
        """The wire and model that can read the reasoning of this model."""
        return f"messages:{self.label}:{self.model}"

    def _reasoning(self, request: Request, options: ModelOptions) -> dict[str, Json]:
        """Return the field that turns reasoning on or off, and a limit that leaves room for it.

        Raises:
            UnsupportedError: the limit of the request is smaller than the budget of the reasoning.
        """
        most = request.sampling.max_tokens
        if options.budget is None and reasons_adaptively(self.model):
            if not options.effort:
                return {}
            if not options.reasons:
                return {"thinking": {"type": "disabled"}}
            # Newer models omit the text of their reasoning unless it is requested.
            thinking: Json = {"type": "adaptive", "display": "summarized"}
            return {"max_tokens": most or REASONING_MAX_TOKENS, "thinking": thinking}
        # A budget cannot be combined with a required call.
        if not options.reasons or (request.tools and request.tool_choice not in ("auto", "none")):
            return {}
        budget = BUDGETS[options.effort] if options.budget is None else options.budget
        if most is not None and most <= budget:
            raise UnsupportedError(
                f"max_tokens must be more than the {budget} tokens of reasoning, got {most}", capability="budget"
            )
        return {
            "max_tokens": most or budget + DEFAULT_MAX_TOKENS,
            "thinking": {"type": "enabled", "budget_tokens": budget},
        }

    def _messages(self, request: Request, rest: Sequence[Message]) -> list[Json]:
        turns = _turns(rest, self.origin)
        if not turns:
            raise InputError("the request has only instructions; add a user message")
        last = max((index for index, turn in enumerate(turns) if turn.role == "user"), default=-1)
        messages: list[Json] = [
            {"role": turn.role, "content": self._blocks(turn, marked=index == last)} for index, turn in enumerate(turns)
        ]
        if request.prefix:
            self.capabilities.require("prefix", self.model)
            if request.constraint is not None:
                raise UnsupportedError(
                    f"{self.label} does not accept a schema together with a prefix; remove one of them",
                    capability="prefix",
                )
            if prefix := request.prefix.rstrip():
                messages.append({"role": "assistant", "content": [_text(prefix)]})
        return messages

    def _blocks(self, turn: "_Turn", *, marked: bool) -> list[Json]:
        """Return the blocks of a turn. The cache control is on the last block that the next request repeats."""
        lasting = list(turn.lasting)
        if marked and lasting and "cache" in self.capabilities.capabilities:
            lasting[-1] = lasting[-1] | {"cache_control": CACHE_CONTROL}
        return [*lasting, *turn.transient]

    def _tools(self, request: Request) -> dict[str, Json]:
        self.capabilities.require("tools", self.model)
        blocks: list[Block] = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
            for tool in request.tools
        ]
        choice = request.tool_choice
        tools = self._blocks(_Turn("tools", blocks), marked=True)
        if choice == "auto":
            return {"tools": tools}
        if choice in ("none", "required"):
            return {"tools": tools, "tool_choice": {"type": "any" if choice == "required" else "none"}}
        if choice not in {tool.name for tool in request.tools}:
            raise InputError(f"tool_choice names {choice!r}, which is not a tool of the request")
        return {"tools": tools, "tool_choice": {"type": "tool", "name": choice}}

    def _sampling(self, sampling: Sampling) -> dict[str, Json]:
        """Return one of temperature and top_p: models since Claude 4.1 refuse both together."""
        if not self.capabilities.sampling:
            return {}
        if sampling.temperature is not None:
            return {"temperature": sampling.temperature}
        return {} if sampling.top_p is None else {"top_p": sampling.top_p}

    def _stops(self, stops: Sequence[str]) -> list[Json]:
        self.capabilities.require("stop", self.model)
        for stop in stops:
            if not stop.strip():
                raise UnsupportedError(
                    f"{self.label} does not accept a stop string of white space only: {stop!r}", capability="stop"
                )
        return list(stops)

    def _format(self, constraint: Constraint) -> Json:
        if isinstance(constraint, JsonSchema):
            self.capabilities.require("json_schema", self.model)
            return {"type": "json_schema", "schema": _portable(name_keys(constraint.schema), "the schema")}
        capability: Capability = "regex" if isinstance(constraint, Regex) else "grammar"
        raise UnsupportedError(f"{self.label} does not support constraint {capability!r}", capability=capability)


@dataclass(slots=True)
class _Turn:
    """The blocks of one turn: those that later requests repeat, and those of this request only."""

    role: str
    lasting: list[Block] = field(default_factory=list[Block])
    transient: list[Block] = field(default_factory=list[Block])


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _add_texts(turn: _Turn, message: Message) -> None:
    """Add a block for each text and attachment of a message; the server refuses blocks of white space only."""
    for part in message.parts:
        if isinstance(part, Attachment):
            turn.lasting.append(encode_attachment(part))
        if isinstance(part, Text) and part.text.strip():
            (turn.transient if part.transient else turn.lasting).append(_text(part.text))


def encode_attachment(attachment: Attachment) -> Block:
    """Encode an image or a PDF as a block."""
    source: Block = {"type": "base64", "media_type": attachment.media_type, "data": attachment.base64}
    if attachment.kind == "images":
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, "title": attachment.label}


def _split(messages: Sequence[Message]) -> tuple[_Turn, Sequence[Message]]:
    """Split off the instructions at the start, which the protocol has outside the messages."""
    instructions = _Turn("system")
    for index, message in enumerate(messages):
        if message.role != "system":
            return instructions, messages[index:]
        _add_texts(instructions, message)
    return instructions, ()


def _turns(messages: Sequence[Message], origin: str) -> list[_Turn]:
    """Join messages into alternating turns. Instructions within a conversation become part of the user's turn.

    Reasoning of `origin` is sent back as signed, before its text and calls.
    """
    ids = CallIds(CALL_ID, "call_{}")
    turns: list[_Turn] = []
    for message in messages:
        if message.role == "assistant":
            turn = _open_turn(turns, "assistant")
            turn.lasting += [
                dict(part.data)
                for part in message.signed_thinking
                if part.origin == origin and isinstance(part.data, dict) and part.data.get("type") in SIGNED
            ]
            # One block: the server joins the texts anyway, and they are split differently after a continued answer.
            if message.text.strip():
                # The server refuses white space at the end of the last message.
                turn.lasting.append(_text(message.text if message is not messages[-1] else message.text.rstrip()))
            for call in message.tool_calls:
                given = call.arguments_object()
                turn.lasting.append({"type": "tool_use", "id": ids.of_call(call), "name": call.name, "input": given})
        results = [_result(part, ids) for part in message.parts if isinstance(part, ToolResult)]
        if message.role != "assistant" or results:
            turn = _open_turn(turns, "user")
            # The protocol requires the results before all texts of their turn.
            turn.lasting[:] = [block for block in turn.lasting if block["type"] == "tool_result"] + results + [
                block for block in turn.lasting if block["type"] != "tool_result"
            ]  # fmt: skip
            if message.role != "assistant":
                _add_texts(turn, message)
    return [turn for turn in turns if turn.lasting or turn.transient]


def _open_turn(turns: list[_Turn], role: str) -> _Turn:
    """Return the turn to add to: the last one if it has this role, else a new one."""
    while turns and not (turns[-1].lasting or turns[-1].transient):
        turns.pop()
    if not turns or turns[-1].role != role:
        turns.append(_Turn(role))
    return turns[-1]


def _result(result: ToolResult, ids: CallIds) -> Block:
    texts: list[Json] = [_text(result.text)] if result.text.strip() else []
    content: Json = [*texts, *map(encode_attachment, result.attachments)] if result.attachments else result.text
    block: Block = {"type": "tool_result", "tool_use_id": ids.of_result(result), "content": content}
    return block | {"is_error": True} if result.error else block


def _portable(schema: Json, path: str) -> Json:
    """Rewrite a schema for the server: closed objects, no bounds of numbers or lengths.

    Omitted keywords are checked when the answer is parsed.
    """
    if not isinstance(schema, dict):
        return schema
    portable: dict[str, Json] = {}
    for key, part in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(part, dict):
            portable[key] = {name: _portable(inner, f"{path}.{name}") for name, inner in part.items()}
        elif key in ("anyOf", "allOf", "oneOf") and isinstance(part, list):
            # The server has no `oneOf`; an answer that fits two of its parts is found when it is parsed.
            portable["anyOf" if key == "oneOf" else key] = [_portable(inner, path) for inner in part]
        elif key == "items":
            portable[key] = _portable(part, f"{path}[]")
        # Of `minItems` the server takes 0 and 1.
        elif key not in UNSUPPORTED_KEYWORDS and not (key == "minItems" and part not in (0, 1)):
            portable[key] = part
    kind = schema.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema:
        if schema.get("additionalProperties", False) is not False or not isinstance(schema.get("properties"), dict):
            raise UnsupportedError(
                f"the server does not accept an object with free keys at {path}; name its keys, or ask without a schema",
                capability="json_schema",
            )
        portable["additionalProperties"] = False
    return portable


def _is_signed(block: Block) -> bool:
    return bool(text_at(block, "signature") or text_at(block, "data"))


class _Reader:
    """Reads events of the Messages protocol into a `ResponseBuilder`."""

    def __init__(self, response: ResponseBuilder, server: Server, origin: str) -> None:
        self._response = response
        self._server = server
        self._origin = origin
        self._calls: dict[int, ToolCallBuilder] = {}
        self._thinking: dict[int, tuple[Block, dict[str, list[str]]]] = {}
        """The open blocks of thinking, and the pieces of their texts."""
        self._signed: list[Block] = []
        self._usage: dict[str, int] = {}
        self._early: Sequence[Json] = ()
        """The blocks of the head: relays that do not stream send the whole message there."""

    def read_event(self, data: Json) -> None:
        match text_at(data, "type"):
            case "message_start":
                self._read_head(item_at(data, "message"))
                self._early = items_at(data, "message", "content")
            case "content_block_start":
                self._early = []
                self._read_block(item_at(data, "content_block"), count_at(data, "index"))
            case "content_block_delta":
                self._read_delta(item_at(data, "delta"), count_at(data, "index"))
            case "content_block_stop":
                self._end_block(count_at(data, "index"))
            case "message_delta":
                self._read_blocks(self._early)
                self._read_usage(item_at(data, "usage"))
                self._read_finish(item_at(data, "delta"))
            case "message_stop":
                self._response.end()
            case "error":
                raise error_in_response(data, self._server)
            case _:
                pass  # pings, and kinds of events that the protocol adds later

    def read_whole(self, data: Json) -> None:
        if not isinstance(item_at(data, "content"), list):
            raise protocol_error("sent a response without content", str(data), self._server)
        self._read_head(data)
        self._read_blocks(items_at(data, "content"))
        self._read_finish(data)

    def _read_blocks(self, blocks: Sequence[Json]) -> None:
        """Read complete blocks."""
        for index, block in enumerate(blocks):
            self._read_block(block, index)
            self._end_block(index)

    def _read_head(self, message: Json) -> None:
        self._response.model = text_at(message, "model") or self._response.model
        self._read_usage(item_at(message, "usage"))

    def _read_block(self, block: Json, index: int | None) -> None:
        """Read a block, complete or only its start; calls of tools that run on the server are skipped."""
        match text_at(block, "type"):
            case "text":
                self._response.add_text(text_at(block, "text"))
            case "thinking" | "redacted_thinking" if isinstance(block, dict):
                self._response.add_thinking(text_at(block, "thinking"))
                pieces = {name: [text_at(block, name)] for name in ("thinking", "signature")}
                self._thinking[-1 if index is None else index] = dict(block), pieces
            case "tool_use":
                call = self._response.begin_call(text_at(block, "id"), text_at(block, "name"))
                call.set_preview(item_at(block, "input"))
                self._calls[-1 if index is None else index] = call
            case _:
                pass

    def _read_delta(self, delta: Json, index: int | None) -> None:
        match text_at(delta, "type"):
            case "text_delta" | "":
                self._response.add_text(text_at(delta, "text"))
            case "thinking_delta":
                self._response.add_thinking(text_at(delta, "thinking"))
                self._add_to_thinking("thinking", text_at(delta, "thinking"), index)
            case "signature_delta":
                self._add_to_thinking("signature", text_at(delta, "signature"), index)
            case "input_json_delta":
                call = self._calls.get(-1 if index is None else index)
                if call is not None:
                    call.add_arguments(item_at(delta, "partial_json"))
            case _:
                pass

    def _add_to_thinking(self, name: str, text: str, index: int | None) -> None:
        if (known := self._thinking.get(-1 if index is None else index)) is not None:
            known[1][name].append(text)

    def _end_block(self, index: int | None) -> None:
        block, texts = self._thinking.pop(-1 if index is None else index, ({}, {}))
        block |= {name: "".join(pieces) for name, pieces in texts.items() if any(pieces)}
        if _is_signed(block):  # a block without a signature would be refused
            self._response.end_thinking(text_at(block, "thinking"), block, self._origin)
            self._signed.append(block)

    def _read_finish(self, data: Json) -> None:
        reason = text_at(data, "stop_reason")
        if reason and self._response.finish is None:
            for index in [*self._thinking]:
                self._end_block(index)
            for block in self._signed:
                self._response.keep_thinking(text_at(block, "thinking"), block, self._origin)
            self._response.finish = FINISH_REASONS.get(reason, "stop")
            self._response.stop = text_at(data, "stop_sequence") or None

    def _read_usage(self, usage: Json) -> None:
        """Merge a usage report into the earlier ones: its counts are totals, and a missing count keeps its value.

        There is no usage before the number of input tokens is known: a partial usage would be taken for a complete one.
        """
        for name, path in USAGE_PATHS.items():
            if (count := count_at(usage, *path)) is not None:
                self._usage[name] = count
        if "input" in self._usage:
            read, stored = self._usage.get("read", 0), self._usage.get("stored", 0)
            # The protocol does not count tokens read from and written to the cache as input tokens; `Usage` does.
            total = self._usage["input"] + read + stored
            self._response.usage = Usage(
                total, self._usage.get("output", 0), read, stored, self._usage.get("thought", 0)
            )
