"""The Anthropic Messages protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import TypeAlias

from taiwa.kernel.errors import InputError, ModelError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Constraint,
    FinishReason,
    JsonSchema,
    Message,
    Questions,
    Regex,
    Request,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from taiwa.kernel.records import Json, count_at, item_at, items_at, text_at
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.errors import Server, failure, inside, not_in_protocol
from taiwa.models.http_api.provider_interface import Decoder, WireRequest, parse, written
from taiwa.models.http_api.stream_decoder import CallIds, ResponseBuilder, StreamDecoder, ToolCallBuilder

__all__ = ["AnthropicMessages"]


VERSION = "2023-06-01"

DEFAULT_MAX_TOKENS = 4096
"""The wire demands a bound on the answer."""

CALL_ID = r"[A-Za-z0-9_-]{1,64}"

MARK: Json = {"type": "ephemeral"}
"""Asks to keep everything up to and including its block; at most four are allowed, three are used."""

FINISHES: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "interrupted",
}

UNSAID = frozenset(
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems",
     "uniqueItems")
)  # fmt: skip
"""Keywords of a schema that the server refuses; the answer is checked against them afterwards."""

BILL: Mapping[str, tuple[str, ...]] = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "read": ("cache_read_input_tokens",),
    "stored": ("cache_creation_input_tokens",),
    "thought": ("output_tokens_details", "thinking_tokens"),
}
"""Where each count stands in a bill."""

Block: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """The codec for one model behind the Messages protocol."""

    model: str
    facts: Capabilities
    label: str = "Anthropic"

    def encode(self, request: Request) -> WireRequest:
        """Write a request; sampling and seed are left out where the model does not take them.

        Raises:
            UnsupportedError: the protocol or model has no way to say it.
            InputError: there is nothing to answer, the text is not valid Unicode, or `tool_choice` names no tool.
        """
        instructions, rest = _split(request.messages)
        body: dict[str, Json] = {
            "model": self.model,
            "max_tokens": request.sampling.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": self._messages(request, rest),
            "stream": True,
        }
        if instructions.lasting or instructions.transient:
            body["system"] = self._blocks(instructions, marked=True)
        if request.tools:
            body |= self._tools(request)
        body |= self._sampling(request.sampling)
        if request.stop:
            body["stop_sequences"] = self._stops(request.stop)
        if request.top_logprobs:
            raise UnsupportedError(f"{self.label} does not tell how likely tokens are", capability="logprobs")
        if request.constraint is not None:
            body["output_config"] = {"format": self._format(request.constraint)}
        headers = (("content-type", "application/json"), ("anthropic-version", VERSION))
        return WireRequest("messages", written(body), headers)

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Make a decoder; white space at the end of the prefix was not sent, so it is taken off the answer."""
        speech = ResponseBuilder(prefix[len(prefix.rstrip()) :])
        return StreamDecoder(_Reader(speech, self._server), speech, self._server, content_type)

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """Read an answer that is not 2xx; header names are lower-case."""
        return failure(status, headers, body, self._server)

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:
        """The headers that carry a key."""
        return (("x-api-key", key),) if key else ()

    @property
    def _server(self) -> Server:
        return Server(self.label, self.model)

    def _messages(self, request: Request, rest: Sequence[Message]) -> list[Json]:
        turns = _turns(rest)
        if not turns:
            raise InputError("the request has no message beside the instructions: add one of the user")
        asked = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=-1)
        said: list[Json] = [
            {"role": turn.role, "content": self._blocks(turn, marked=place == asked)}
            for place, turn in enumerate(turns)
        ]
        if request.prefix:
            self.facts.require("prefix", self.model)
            if request.constraint is not None:
                raise UnsupportedError(
                    f"{self.label} takes no schema with the start of an answer: drop one", capability="prefix"
                )
            # The wire refuses white space at the end of the last message.
            if begun := request.prefix.rstrip():
                said.append({"role": "assistant", "content": [_text(begun)]})
        return said

    def _blocks(self, turn: "_Turn", *, marked: bool) -> list[Json]:
        """Write the blocks of a turn. The mark sits on the last block that the next request repeats."""
        lasting = list(turn.lasting)
        if marked and lasting and "cache" in self.facts.capabilities:
            lasting[-1] = lasting[-1] | {"cache_control": MARK}
        return [*lasting, *turn.transient]

    def _tools(self, request: Request) -> dict[str, Json]:
        self.facts.require("tools", self.model)
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
            raise InputError(f"tool_choice names {choice!r}, which is none of the request's tools")
        return {"tools": tools, "tool_choice": {"type": "tool", "name": choice}}

    def _sampling(self, sampling: Sampling) -> dict[str, Json]:
        """Write one of temperature and top_p: models since Claude 4.1 refuse both together."""
        if not self.facts.sampling:
            return {}
        if sampling.temperature is not None:
            return {"temperature": sampling.temperature}
        return {} if sampling.top_p is None else {"top_p": sampling.top_p}

    def _stops(self, stops: Sequence[str]) -> list[Json]:
        self.facts.require("stop", self.model)
        for stop in stops:
            if not stop.strip():
                raise UnsupportedError(
                    f"{self.label} takes no stop string of white space alone: {stop!r}", capability="stop"
                )
        return list(stops)

    def _format(self, constraint: Constraint) -> Json:
        if isinstance(constraint, JsonSchema):
            self.facts.require("json_schema", self.model)
            return {"type": "json_schema", "schema": _portable(dict(constraint.schema), "the schema")}
        capabilities: dict[type, Capability] = {Regex: "regex", Questions: "decisions"}
        capability: Capability = capabilities.get(type(constraint), "grammar")
        raise UnsupportedError(f"there is no way to give {self.label} a {capability}", capability=capability)


@dataclass(slots=True)
class _Turn:
    """The blocks of one turn on the wire: those that later requests repeat, and those of this request only."""

    role: str
    lasting: list[Block] = field(default_factory=list[Block])
    transient: list[Block] = field(default_factory=list[Block])


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _say(turn: _Turn, message: Message) -> None:
    """Add the words of a message, a block for each; the wire refuses blocks of white space alone."""
    for part in message.parts:
        if isinstance(part, Text) and part.text.strip():
            (turn.transient if part.transient else turn.lasting).append(_text(part.text))


def _split(messages: Sequence[Message]) -> tuple[_Turn, Sequence[Message]]:
    """Part the instructions at the start from the rest; the wire has one place for them, outside the messages."""
    instructions = _Turn("system")
    for place, message in enumerate(messages):
        if message.role != "system":
            return instructions, messages[place:]
        _say(instructions, message)
    return instructions, ()


def _turns(messages: Sequence[Message]) -> list[_Turn]:
    """Join messages into turns that alternate. Instructions in mid-conversation are said in the user's turn, in their place."""
    ids = CallIds(CALL_ID, "call_{}")
    turns: list[_Turn] = []
    for message in messages:
        if message.role == "assistant":
            turn = _at(turns, "assistant")
            # One block: the wire keeps the words as one text anyway, and a cut splits them differently each time.
            if message.text.strip():
                turn.lasting.append(_text(message.text))
            turn.lasting += [_use(call, ids) for call in message.tool_calls]
        results = [_result(part, ids) for part in message.parts if isinstance(part, ToolResult)]
        if message.role != "assistant" or results:
            turn = _at(turns, "user")
            # The wire wants the results before all words of their turn.
            turn.lasting[:] = [block for block in turn.lasting if block["type"] == "tool_result"] + results + [
                block for block in turn.lasting if block["type"] != "tool_result"
            ]  # fmt: skip
            if message.role != "assistant":
                _say(turn, message)
    return [turn for turn in turns if turn.lasting or turn.transient]


def _at(turns: list[_Turn], role: str) -> _Turn:
    """The turn to add to: the last one if it is of this role, else a new one."""
    while turns and not (turns[-1].lasting or turns[-1].transient):
        turns.pop()
    if not turns or turns[-1].role != role:
        turns.append(_Turn(role))
    return turns[-1]


def _use(call: ToolCall, ids: CallIds) -> Block:
    return {"type": "tool_use", "id": ids.of_call(call), "name": call.name, "input": _arguments(call.arguments)}


def _arguments(text: str) -> dict[str, Json]:
    """Read arguments as the object that the wire demands; what is none is handed back in one, for the model to see."""
    try:
        read = parse(text or "{}")
        written(read)
    except (ValueError, InputError):
        read = None
    return read if isinstance(read, dict) else {"invalid_json": text}


def _result(result: ToolResult, ids: CallIds) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": ids.of_result(result), "content": result.text}
    return block | {"is_error": True} if result.error else block


def _portable(schema: Json, place: str) -> Json:
    """Write a schema in the words that the server takes: closed objects, no bounds on numbers or lengths.

    What is left out is checked when the answer is read.
    """
    if not isinstance(schema, dict):
        return schema
    portable: dict[str, Json] = {}
    for key, part in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(part, dict):
            portable[key] = {name: _portable(inner, f"{place}.{name}") for name, inner in part.items()}
        elif key in ("anyOf", "allOf", "oneOf") and isinstance(part, list):
            portable["anyOf" if key == "oneOf" else key] = [_portable(inner, place) for inner in part]
        elif key == "items":
            portable[key] = _portable(part, f"{place}[]")
        elif key not in UNSAID and not (key == "minItems" and part not in (0, 1)):
            portable[key] = part
    kind = schema.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema:
        if schema.get("additionalProperties", False) is not False or not isinstance(schema.get("properties"), dict):
            raise UnsupportedError(
                f"the server takes no object with free keys, as at {place}: name its keys, or ask without a schema",
                capability="json_schema",
            )
        portable["additionalProperties"] = False
    return portable


class _Reader:
    """Reads answers of the Messages protocol into a speech."""

    def __init__(self, speech: ResponseBuilder, server: Server) -> None:
        self._speech = speech
        self._server = server
        self._slots: dict[int, ToolCallBuilder] = {}
        self._bill: dict[str, int] = {}

    def event(self, data: Json) -> None:
        match text_at(data, "type"):
            case "message_start":
                self._about(item_at(data, "message"))
            case "content_block_start":
                self._block(item_at(data, "content_block"), count_at(data, "index"))
            case "content_block_delta":
                self._delta(item_at(data, "delta"), count_at(data, "index"))
            case "message_delta":
                self._charge(item_at(data, "usage"))
                self._end(item_at(data, "delta"))
            case "message_stop":
                self._speech.conclude()
            case "error":
                raise inside(data, self._server)
            case _:
                # The protocol says that new kinds of events may come: they are passed over, and so are pings.
                pass

    def whole(self, data: Json) -> None:
        if not isinstance(item_at(data, "content"), list):
            raise not_in_protocol("sends an answer without content", str(data), self._server)
        self._about(data)
        for index, block in enumerate(items_at(data, "content")):
            self._block(block, index)
        self._end(data)

    def _about(self, message: Json) -> None:
        self._speech.model = text_at(message, "model") or self._speech.model
        self._charge(item_at(message, "usage"))

    def _block(self, block: Json, index: int | None) -> None:
        """Read a block, whole or only begun. Tools that run on the server are no calls of ours."""
        match text_at(block, "type"):
            case "text":
                self._speech.say(text_at(block, "text"))
            case "thinking":
                self._speech.think(text_at(block, "thinking"))
            case "tool_use":
                slot = ToolCallBuilder(text_at(block, "id"), text_at(block, "name"))
                given = item_at(block, "input")
                if given:
                    slot.pieces.append(dumps(given, ensure_ascii=False))
                self._speech.slots.append(slot)
                self._slots[-1 if index is None else index] = slot
            case _:
                pass

    def _delta(self, delta: Json, index: int | None) -> None:
        match text_at(delta, "type"):
            case "text_delta":
                self._speech.say(text_at(delta, "text"))
            case "thinking_delta":
                self._speech.think(text_at(delta, "thinking"))
            case "input_json_delta":
                slot = self._slots.get(-1 if index is None else index)
                if slot is not None:
                    slot.pieces.append(text_at(delta, "partial_json"))
            case _:
                pass

    def _end(self, data: Json) -> None:
        reason = text_at(data, "stop_reason")
        if reason and self._speech.finish is None:
            self._speech.finish = FINISHES.get(reason, "stop")
            self._speech.stop = text_at(data, "stop_sequence") or None

    def _charge(self, usage: Json) -> None:
        """Merge a bill into the one so far: its counts are totals, and one that is left out still holds.

        Until it is said what was read there is no bill: half of one would pass for a whole one.
        """
        for name, path in BILL.items():
            if (count := count_at(usage, *path)) is not None:
                self._bill[name] = count
        if "input" in self._bill:
            read, stored = self._bill.get("read", 0), self._bill.get("stored", 0)
            # Here the tokens read from and portable to the cache are not among the input tokens; in ours they are.
            whole = self._bill["input"] + read + stored
            self._speech.usage = Usage(whole, self._bill.get("output", 0), read, stored, self._bill.get("thought", 0))
