"""The Responses protocol (`/v1/responses`), as a codec (no I/O).

The complete conversation is sent with every request, and the server stores nothing: its reasoning is returned encrypted, and
sent again with its turns and calls. With the option `store`, the server keeps the conversation instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import cast

from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import FinishReason, Message, Request
from taiwa.kernel.serialization import Json, count_at, item_at, items_at, text_at, to_json
from taiwa.models.http_api.capabilities import fit_attachments
from taiwa.models.http_api.errors import error_in_response, protocol_error
from taiwa.models.http_api.openai_chat import JSON_HEADERS, MOST_LOGPROBS, OpenAICodec, read_logprobs, results_and_text
from taiwa.models.http_api.provider_interface import Decoder, Server, WireRequest, extra_fields
from taiwa.models.http_api.stream_decoder import (
    CallIds,
    ResponseBuilder,
    StreamDecoder,
    ToolCallBuilder,
    check_parts,
    read_usage,
)

ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
PARAGRAPH = "\n\n"
USAGE = (
    "input_tokens", "output_tokens", "input_tokens_details.cached_tokens", "input_tokens_details.cache_write_tokens",
    "output_tokens_details.reasoning_tokens",
)  # fmt: skip
"""The paths of the counts of a usage report."""
ENDS = tuple(f"response.{end}" for end in ("completed", "incomplete", "failed", "cancelled", "done"))
INCOMPLETE: Mapping[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "refusal"}


@dataclass(frozen=True, slots=True)
class Responses(OpenAICodec):
    """The codec for one model on one kind of server."""

    def takes(self, field: str) -> bool:
        """Whether a field of `Sampling.extra` can be sent."""
        return field in ("parallel_tool_calls", "service_tier")

    def encode(self, request: Request) -> WireRequest:
        """Encode a request; sampling is omitted if the model does not accept it, and a seed always.

        Raises:
            UnsupportedError: the protocol or the model cannot express it, or cannot read an attachment.
            InputError: the text is not valid Unicode, or `tool_choice` names an unknown tool.
        """
        request = fit_attachments(request, self.model, self.capabilities.inputs)
        for capability, wanted in (("prefix", request.prefix), ("stop", request.stop)):
            if wanted:
                raise UnsupportedError(
                    f"the responses protocol has no {capability}; ask {self.model!r} with wire=chat if its server has that",
                    capability=capability,
                )
        instructions, rest = _split(request.messages)
        previous, rest = self._previous(rest) if self.options.store else ("", rest)
        ids = CallIds(self.dialect.call_ids.pattern, self.dialect.call_ids.form)
        body: dict[str, Json] = {
            **extra_fields(request.sampling),
            "model": self.model,
            "input": [item for message in rest for item in self._items(message, ids)],
            "stream": not request.hints.whole,
            "store": self.options.store,
            **self.sampling(request.sampling),
        }
        if instructions:
            body["instructions"] = instructions
        if previous:
            body["previous_response_id"] = previous
        if most := request.sampling.max_tokens or self.dialect.most_tokens:
            body["max_output_tokens"] = most
        # Models without reasoning refuse it.
        reasoning = self.options.with_effort(request.sampling.effort)
        include: list[Json] = [] if self.capabilities.sampling and not reasoning.reasons else [ENCRYPTED]
        if request.top_logprobs:
            self.capabilities.require("logprobs", self.model)
            body["top_logprobs"] = min(request.top_logprobs, MOST_LOGPROBS)
            include.append(LOGPROBS)
        if include:
            body["include"] = include
        options = {"effort": reasoning.effort, "summary": reasoning.summary}
        if any(options.values()):
            body["reasoning"] = {name: option for name, option in options.items() if option}
        if request.tools:
            body |= self.tools(request, lambda function: {"type": "function", **function}, strict=False)
        else:
            body.pop("parallel_tool_calls", None)
        fields, enforcement = self.constrained(
            request.constraint, "response_format", strict=self.dialect.constraints.strict
        )
        if fields:
            named = cast("dict[str, Json]", item_at(dict(fields), "response_format", "json_schema"))
            body["text"] = {"format": {"type": "json_schema", **named}}
        if enforcement is not None and enforcement.method:
            enforcement = replace(enforcement, method="text.format")
        return WireRequest("responses", to_json(body), JSON_HEADERS, enforcement)

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:  # noqa: ARG002  (no prefix is ever sent)
        """Create a decoder."""
        response = ResponseBuilder()
        reader = _Reader(response, self.server, self.origin, keeps_id=self.options.store)
        return StreamDecoder(reader, response, self.server, content_type)

    @property
    def origin(self) -> str:
        """What can read the reasoning of this model."""
        return f"responses:{self.dialect.label}:{self.model}"

    def _previous(self, messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
        """Return the last response that the server keeps, and the messages after it."""
        for at in range(len(messages) - 1, -1, -1):
            for part in messages[at].signed_thinking:
                if part.origin == self.origin and text_at(part.data, "type") == "response":
                    return text_at(part.data, "id"), messages[at + 1 :]
        return "", messages

    def _items(self, message: Message, ids: CallIds) -> Iterator[Json]:
        """Yield the items of a message: its reasoning, its results, its attachments and texts, transient ones last, its calls."""
        for part in message.signed_thinking:
            if part.origin == self.origin and text_at(part.data, "type") == "reasoning":
                yield part.data
        results, text = results_and_text(message)
        for result in results:
            texts: list[Json] = [{"type": "input_text", "text": result.text}] if result.text else []
            output = [*texts, *map(encode_attachment, result.attachments)] if result.attachments else result.text
            yield {"type": "function_call_output", "call_id": ids.of_result(result), "output": output}
        content: Json = text
        if message.attachments:
            said: list[Json] = [{"type": "input_text", "text": text}] if text else []
            content = [*map(encode_attachment, message.attachments), *said]
        if content:
            yield {"role": "user" if message.role == "tool" else message.role, "content": content}
        for call in message.tool_calls:
            arguments = call.arguments or "{}"
            yield {"type": "function_call", "call_id": ids.of_call(call), "name": call.name, "arguments": arguments}


def encode_attachment(attachment: Attachment) -> Json:
    """Encode an image or a PDF as a content part."""
    uri = attachment.data_uri
    if attachment.kind == "images":
        return {"type": "input_image", "image_url": uri, "detail": "auto"}
    return {"type": "input_file", "filename": attachment.label, "file_data": uri}


def _split(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """Split off the instructions at the start, which the protocol has outside of the input."""
    count = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    if count == len(messages):  # a server answers a message
        return "", messages
    return PARAGRAPH.join(filter(None, (message.ordered_text for message in messages[:count]))), messages[count:]


# --- responses --------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads events of the Responses protocol into a `ResponseBuilder`.

    Servers send a text or the arguments of a call piece by piece, when they are complete, with their item, or only with the complete
    response. What is complete counts; of it, only what was not streamed is added.
    """

    def __init__(self, response: ResponseBuilder, server: Server, origin: str, *, keeps_id: bool) -> None:
        self._response = response
        self._server = server
        self._origin = origin
        self._keeps_id = keeps_id
        self._indexes: dict[str, int] = {}
        """The index of each item by its id, for events without an index."""
        self._kinds: dict[int, str] = {}
        """The type of each item, in the order of arrival."""
        self._calls: dict[int, ToolCallBuilder] = {}
        self._written: dict[tuple[int, str, int], StringIO] = {}
        """The text of each part: the index of its item, its kind, and its place."""
        self._read: set[int] = set()
        """The items that were read completely."""
        self._annotated: set[tuple[int, str, int]] = set()
        """The parts whose annotations were read."""

    def read_event(self, data: Json) -> None:
        """Read one event of a stream."""
        kind = text_at(data, "type")
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._add_text(data, text_at(data, "delta"), is_refusal="refusal" in kind)
                self._response.logprobs += read_logprobs({"logprobs": {"content": items_at(data, "logprobs")}})
            case "response.output_text.done" | "response.refusal.done":
                text = text_at(data, "text") or text_at(data, "refusal")
                self._complete_text(self._index(data), count_at(data, "content_index") or 0, text, data, kind)
            case "response.content_part.done":
                part = item_at(data, "part")
                self._read_part(part, self._index(data), count_at(data, "content_index") or 0)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._add_thinking(data, text_at(data, "delta"))
            case "response.reasoning_summary_text.done" | "response.reasoning_text.done":
                self._add_thinking(data, text_at(data, "text"), is_complete=True)
            case "response.reasoning_summary_part.added" if count_at(data, "summary_index"):
                self._response.add_thinking(PARAGRAPH)
            case "response.output_item.added":
                self._read_start(item_at(data, "item"), self._index(data))
            case "response.function_call_arguments.delta":
                self._add_arguments(self._index(data), item_at(data, "delta"))
            case "response.function_call_arguments.done":
                self._set_arguments(self._index(data), item_at(data, "arguments"))
            case "response.output_item.done":
                self._read_item(item_at(data, "item"), self._index(data))
            case "response.created":
                self._response.model = text_at(data, "response", "model")
            case _ if kind in ENDS:
                self._read_output(item_at(data, "response"))
                self._read_end(item_at(data, "response"))
                self._response.end()
            case "error":
                raise error_in_response(data, self._server)
            case _:
                pass  # parts of the items read above, and events of tools that run on the server

    def read_whole(self, data: Json) -> None:
        """Read a response of one piece."""
        if not isinstance(item_at(data, "output"), list):
            raise protocol_error("sent a response without output", str(data), self._server)
        self._read_output(data)
        self._read_end(data)

    def _index(self, data: Json) -> int:
        """Return the index of the item of an event, which is known by its id if the event has no index."""
        name = text_at(data, "item_id") or text_at(data, "item", "id")
        index = count_at(data, "output_index")
        if index is None:
            index = self._indexes.get(name) if name else max(self._kinds, default=0)
        if index is None:
            index = self._next_index
        if name:
            self._indexes.setdefault(name, index)
        check_parts(self._indexes)
        check_parts(self._kinds)
        return index

    @property
    def _next_index(self) -> int:
        return max((*self._kinds, *self._indexes.values()), default=-1) + 1

    def _read_start(self, item: Json, index: int) -> None:
        self._kinds.setdefault(index, text_at(item, "type"))
        if text_at(item, "type") == "function_call" and index not in self._calls:
            self._calls[index] = call = self._response.begin_call(text_at(item, "call_id"), text_at(item, "name"))
            call.set_preview(item_at(item, "arguments"))

    def _add_arguments(self, index: int, piece: Json) -> None:
        if (call := self._calls.get(index)) is not None:
            call.add_arguments(piece)

    def _set_arguments(self, index: int, arguments: Json) -> None:
        if (call := self._calls.get(index)) is not None:
            call.set_preview(arguments)

    def _add_text(self, data: Json, text: str, *, is_refusal: bool) -> None:
        key = self._index(data), "text", count_at(data, "content_index") or 0
        self._kinds.setdefault(key[0], "message")
        self._write(key, text)
        (self._response.add_refusal if is_refusal else self._response.add_text)(text)

    def _complete_text(self, index: int, place: int, text: str, part: Json, kind: str) -> None:
        """Read the complete text of a part: add what was not streamed."""
        key = index, "text", place
        self._kinds.setdefault(index, "message")
        if not (known := self._written.get(key)) or not known.tell():
            self._response.logprobs += read_logprobs({"logprobs": {"content": items_at(part, "logprobs")}})
        (self._response.add_refusal if text and "refusal" in kind else self._response.add_text)(self._rest(key, text))
        if (annotations := items_at(part, "annotations")) and key not in self._annotated:
            self._annotated.add(key)
            self._response.annotations += annotations

    def _rest(self, key: tuple[int, str, int], text: str) -> str:
        """Return what follows the known text of a part in its complete text; "" if they differ, because a text cannot be withdrawn."""
        size = known.tell() if (known := self._written.get(key)) else 0
        if len(text) < size or (known and not text.startswith(known.getvalue())):
            return ""
        self._write(key, text[size:])
        return text[size:]

    def _write(self, key: tuple[int, str, int], text: str) -> None:
        self._written.setdefault(key, StringIO()).write(text)
        check_parts(self._written)

    def _add_thinking(self, data: Json, text: str, *, is_complete: bool = False) -> None:
        place = count_at(data, "summary_index")
        kind = "reasoning" if place is None else "summary"
        key = self._index(data), kind, (count_at(data, "content_index") or 0) if place is None else place
        self._kinds.setdefault(key[0], "reasoning")
        added = self._rest(key, text) if is_complete else text
        if not is_complete:
            self._write(key, text)
        if added:
            self._response.add_thinking(added)

    def _read_part(self, part: Json, index: int, place: int) -> None:
        kind = text_at(part, "type")
        if kind in ("output_text", "refusal", "text"):
            self._complete_text(index, place, text_at(part, "text") or text_at(part, "refusal"), part, kind)

    def _read_item(self, item: Json, index: int) -> None:
        """Read a complete item, and reasoning in the form to send back."""
        self._kinds.setdefault(index, text_at(item, "type"))
        match text_at(item, "type"):
            case "message" if isinstance(text := item_at(item, "content"), str):
                self._complete_text(index, 0, text, None, "")
            case "message":
                for place, part in enumerate(items_at(item, "content")):
                    self._read_part(part, index, place)
            case "function_call":
                self._read_start(item, index)
                self._set_arguments(index, item_at(item, "arguments"))
            case "reasoning" if isinstance(item, dict):
                texts = [text_at(part, "text") for part in [*items_at(item, "summary"), *items_at(item, "content")]]
                text = PARAGRAPH.join(filter(None, texts))
                if not any(key[0] == index for key in self._written):
                    self._response.add_thinking(text)
                # Without its content the server would look for the item by its id, and it stores none.
                if item.get("encrypted_content"):
                    kept: dict[str, Json] = {}
                    kept |= {name: part for name, part in item.items() if name != "status" and part is not None}
                    self._response.keep_thinking(text, kept, self._origin)
            case _:
                pass
        self._read.add(index)

    def _read_output(self, data: Json) -> None:
        """Read the items of a complete response that were not read; an item without a known id is the next one of its type."""
        waiting = dict(self._kinds)
        for item in items_at(data, "output"):
            kind, call = text_at(item, "type"), text_at(item, "call_id")
            index = self._indexes.get(text_at(item, "id"))
            if index is None and call:
                index = next((at for at, each in self._calls.items() if each.id == call), None)
            elif index is None:
                index = next((at for at, known in waiting.items() if known == kind), None)
            if index is None:
                index = self._next_index
            waiting.pop(index, None)
            if index not in self._read:
                self._read_item(item, index)
        if not self._written and not self._calls:
            self._response.add_text(text_at(data, "output_text"))

    def _read_end(self, data: Json) -> None:
        response = self._response
        response.model = text_at(data, "model") or response.model
        response.usage = read_usage(item_at(data, "usage"), *USAGE)
        status = text_at(data, "status")
        if status == "failed":
            failure: Json = {"type": "server_error", "message": "it stopped in the middle"}
            raise error_in_response({"error": item_at(data, "error") or failure}, self._server)
        if status == "incomplete":
            response.finish = INCOMPLETE.get(text_at(data, "incomplete_details", "reason"), "interrupted")
        else:
            response.finish = "interrupted" if status == "cancelled" else "stop"
            if response.refuses and status != "cancelled":
                response.finish = response.stop = "refusal"
        if self._keeps_id and (name := text_at(data, "id")) and status == "completed":
            response.keep_thinking("", {"type": "response", "id": name}, self._origin)
