"""The Chat Completions protocol, and the older Completions (`/v1/completions`: one text in, its continuation out), as codecs (no I/O);
the dialects of the servers that speak them (`DIALECTS`), and what the codecs of all protocols of OpenAI share.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby
from math import isfinite
from typing import Literal

from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import (
    Constraint,
    Enforcement,
    FinishReason,
    Message,
    Request,
    Sampling,
    Text,
    TokenLogprob,
    ToolResult,
)
from taiwa.kernel.serialization import Json, count_at, item_at, items_at, text_at, to_json
from taiwa.kernel.text import join_surrogates
from taiwa.models.http_api.anthropic import AnthropicMessages
from taiwa.models.http_api.capabilities import Capabilities, fit_attachments
from taiwa.models.http_api.errors import error_in_response, protocol_error
from taiwa.models.http_api.provider_interface import (
    NO_OPTIONS,
    ConstraintWire,
    Decoder,
    Enforce,
    ModelOptions,
    Server,
    Target,
    WireRequest,
    extra_fields,
)
from taiwa.models.http_api.stream_decoder import CallIds, ResponseBuilder, StreamDecoder, ToolCallBuilder, read_usage

MOST_LOGPROBS = 20
"""The most alternatives of a token that all servers return."""
ZERO_LOGPROB = -9999.0
"""The logarithm of a probability of zero, as JSON has no infinity."""


FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "model_length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
    "refusal": "refusal",
    "abort": "interrupted",
}

USAGE = (
    "prompt_tokens|input_tokens",
    "completion_tokens|output_tokens",
    "prompt_tokens_details.cached_tokens|input_tokens_details.cached_tokens|prompt_cache_hit_tokens|num_cached_tokens|cached_tokens",
    "prompt_tokens_details.cache_write_tokens|prompt_tokens_details.cache_creation_tokens|cache_creation_input_tokens",
    "completion_tokens_details.reasoning_tokens|reasoning_tokens",
)
"""The paths of the counts of a usage report, whatever the server calls them."""
FAILURES = ("error", "insufficient_system_resource", "malformed_function_call")
"""Words of the finish reasons that report a failure of the server in the middle of its response."""


MANY = 1_000
JSON_HEADERS = (("content-type", "application/json"),)


@dataclass(frozen=True, slots=True)
class PrefixForm:
    """How a server is asked to continue a message.

    - `how`: by a last message of the assistant (`last`), by that and `continue_final_message` (`continue`), by that and
      `"prefix": true` on it (`flag`). Whether a server continues it is one of its capabilities.
    - `echo`: whether its response repeats the prefix: never, in responses of one piece only (`whole`), or `always`.
    - `path`: the path for such requests.
    """

    how: Literal["last", "continue", "flag"] = "last"
    echo: Literal["never", "whole", "always"] = "never"
    path: str = "chat/completions"


@dataclass(frozen=True, slots=True)
class FieldNames:
    """The names of fields that differ between servers, and of the header that carries the key.

    `effort` says how much the model reasons: `reasoning_effort`, or the object `reasoning` of OpenRouter. `usage` has the options of
    a stream that must be asked to report its usage, "" if it reports it unasked.
    """

    max_tokens: str = "max_tokens"
    seed: str = "seed"
    effort: Literal["reasoning_effort", "reasoning"] = "reasoning_effort"
    usage: str = "stream_options"
    key_header: str = "authorization"


@dataclass(frozen=True, slots=True)
class CallIdForm:
    """The pattern that the id of a call must match; `form` makes one of a position."""

    pattern: str = r"[!-~]{1,64}"
    form: str = "call_{}"


@dataclass(frozen=True, slots=True)
class ConstraintForm:
    """The fields for a constraint (see `taiwa.models.http_api.constraint_encoding`), and whether a schema is rewritten into the strict
    form, which the server enforces.
    """

    wire: ConstraintWire = "response_format"
    strict: bool = False


STRICT = ConstraintForm(strict=True)
NEW_NAMES = FieldNames(max_tokens="max_completion_tokens")
OPENAI_IDS = CallIdForm(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class ServerDialect:
    """The behaviour of one kind of server where the protocol leaves a choice.

    - `stops`: the most stop strings.
    - `takes_reasoning`: whether calls go back with the reasoning that led to them, which other servers refuse or ignore.
    - `ignores_fields`: whether it ignores the fields of a request that it does not know, instead of refusing the request.
    - `most_tokens`: the length limit of a request without one, for servers that have none of their own: a small model that
      repeats itself writes until its context is full.
    """

    label: str
    prefix: PrefixForm = PrefixForm()
    constraints: ConstraintForm = ConstraintForm()
    stops: int = 4
    names: FieldNames = FieldNames()
    call_ids: CallIdForm = CallIdForm()
    takes_reasoning: bool = False
    ignores_fields: bool = True
    most_tokens: int | None = None


SELF_HOSTED_MAX_TOKENS = 4_096
"""The default limit of an answer, also of a model in this process."""

DIALECTS: Mapping[str, ServerDialect] = {
    "openai": ServerDialect("OpenAI", constraints=STRICT, ignores_fields=False, names=NEW_NAMES, call_ids=OPENAI_IDS),
    "azure": ServerDialect(
        "Azure OpenAI", constraints=STRICT, ignores_fields=False, names=replace(NEW_NAMES, key_header="api-key"), call_ids=OPENAI_IDS
    ),
    "llamacpp": ServerDialect(
        "the llama.cpp server", PrefixForm("last", "whole"), constraints=ConstraintForm("gbnf"), stops=MANY, takes_reasoning=True,
        most_tokens=SELF_HOSTED_MAX_TOKENS,
    ),
    "vllm": ServerDialect(
        "the vLLM server", PrefixForm("continue"), constraints=ConstraintForm("structured_outputs"), stops=MANY, takes_reasoning=True,
        most_tokens=SELF_HOSTED_MAX_TOKENS,
    ),
    "sglang": ServerDialect(
        "the SGLang server", PrefixForm("continue"), constraints=ConstraintForm("fields"), stops=MANY, takes_reasoning=True,
        most_tokens=SELF_HOSTED_MAX_TOKENS,
    ),
    "ollama": ServerDialect("the Ollama server", stops=MANY, most_tokens=SELF_HOSTED_MAX_TOKENS),
    "lmstudio": ServerDialect("LM Studio", stops=MANY, most_tokens=SELF_HOSTED_MAX_TOKENS),
    "openrouter": ServerDialect(
        "OpenRouter", constraints=STRICT, names=FieldNames(effort="reasoning"), call_ids=CallIdForm(r"[A-Za-z0-9_-]{1,64}"), takes_reasoning=True
    ),
    # Mistral refuses unknown fields, stream_options among them, and ids of another form.
    "mistral": ServerDialect(
        "Mistral", PrefixForm("flag", "always"), ignores_fields=False, names=FieldNames(seed="random_seed", usage=""), stops=MANY,
        call_ids=CallIdForm(r"[A-Za-z0-9]{9}", "call{:05d}"),
    ),
    "deepseek": ServerDialect(
        "DeepSeek", PrefixForm("flag", path="beta/chat/completions"), stops=16, takes_reasoning=True
    ),
    "groq": ServerDialect("Groq", ignores_fields=False),
    # Gemini signs its function calls and refuses a conversation without the signatures.
    "gemini": ServerDialect("Gemini", takes_reasoning=True, ignores_fields=False),
    "plain": ServerDialect("the server"),
}  # fmt: skip


STANDARD_FIELDS = frozenset(
    "presence_penalty frequency_penalty logit_bias parallel_tool_calls prediction service_tier verbosity".split()
)
"""Fields of Chat Completions that change the answer and have no counterpart in a `Request`."""


@dataclass(frozen=True, slots=True)
class OpenAICodec(ABC):
    """The common part of the codecs of OpenAI's protocols: one model on one kind of server."""

    model: str
    dialect: ServerDialect
    capabilities: Capabilities
    enforce: Enforce = "auto"
    options: ModelOptions = NO_OPTIONS

    @abstractmethod
    def encode(self, request: Request) -> WireRequest:
        """Encode a request; see `Codec`."""

    @abstractmethod
    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Create a decoder; see `Codec`."""

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that carry a key."""
        header = self.dialect.names.key_header
        return ((header, f"Bearer {key}" if header == "authorization" else key),) if key else ()

    @property
    def server(self) -> Server:
        """The server and the model that errors name."""
        return Server(self.dialect.label, self.model)

    def takes(self, field: str) -> bool:
        """Whether a field of `Sampling.extra` can be sent: the server knows it, or ignores it."""
        return field in STANDARD_FIELDS or self.dialect.ignores_fields

    def sampling(self, sampling: Sampling) -> dict[str, Json]:
        """Return the fields of temperature and top_p, none where the model does not accept them."""
        if not self.capabilities.sampling:
            return {}
        fields: dict[str, Json] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        return {name: number for name, number in fields.items() if number is not None}

    def tools(self, request: Request, form: Callable[[dict[str, Json]], Json], **more: Json) -> dict[str, Json]:
        """Return the fields of the tools; `form` writes a function, of which the choice of one has only the name.

        Raises:
            InputError: `tool_choice` names an unknown tool.
        """
        self.capabilities.require("tools", self.model)
        tools: list[Json] = [
            form({"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters), **more})
            for tool in request.tools
        ]
        choice = request.tool_choice
        if choice == "auto":
            return {"tools": tools}
        if choice in ("none", "required"):
            return {"tools": tools, "tool_choice": choice}
        if choice not in {tool.name for tool in request.tools}:
            raise InputError(f"tool_choice names {choice!r}, which is not a tool of the request")
        return {"tools": tools, "tool_choice": form({"name": choice})}

    def constrained(
        self, constraint: Constraint | None, wire: ConstraintWire, prefix: str = "", *, strict: bool
    ) -> tuple[Mapping[str, Json], Enforcement | None]:
        """Return the fields of a constraint, and how they enforce it; see `ConstraintEncoder`.

        Raises:
            UnsupportedError: the server does not enforce it.
        """
        if constraint is None:
            return {}, None
        from taiwa.models.http_api.constraint_encoding import ConstraintEncoder

        known = self.capabilities
        encoder = ConstraintEncoder(self.dialect.label, self.model, wire, known, strict, self.enforce)
        encoded = encoder.encode(constraint, prefix)
        return encoded.fields, encoded.enforcement

    def check_stops(self, stops: Sequence[str]) -> None:
        """Check the number of stop strings.

        Raises:
            UnsupportedError: the server accepts fewer.
        """
        if len(stops) > self.dialect.stops:
            what = f"accepts at most {self.dialect.stops} stop strings, got {len(stops)}"
            raise UnsupportedError(f"{self.dialect.label} {what}", capability="stop")


def held_so(target: Target, enforce: Enforce) -> Target:
    """Return the target with another treatment of unenforced constraints; see `Enforce`."""
    codec = target.codec
    if isinstance(codec, OpenAICodec | AnthropicMessages):
        return replace(target, codec=replace(codec, enforce=enforce))
    return target


@dataclass(frozen=True, slots=True)
class ChatCompletions(OpenAICodec):
    """The codec for one model on one kind of server."""

    def encode(self, request: Request) -> WireRequest:
        """Encode a request; sampling and seed are omitted if the model does not accept them.

        Raises:
            UnsupportedError: the server or the model cannot express it, or cannot read an attachment.
            InputError: the text is not valid Unicode, or `tool_choice` names an unknown tool.
        """
        dialect = self.dialect
        request = fit_attachments(request, self.model, self.capabilities.inputs)
        body = extra_fields(request.sampling)
        body |= {"model": self.model, "messages": self._messages(request), "stream": not request.hints.whole}
        if dialect.names.usage and not request.hints.whole:
            body[dialect.names.usage] = {"include_usage": True}
        body |= self._sampling(request.sampling) | self._effort(request.sampling)
        if request.stop:
            self.capabilities.require("stop", self.model)
            self.check_stops(request.stop)
            body["stop"] = list(request.stop)
        if request.tools:
            body |= self.tools(request, lambda function: {"type": "function", "function": function})
        else:
            body.pop(
                "parallel_tool_calls", None
            )  # refused without tools, and an app may have left out those of the client
        fields, enforcement = self.constrained(
            request.constraint, dialect.constraints.wire, request.prefix, strict=dialect.constraints.strict
        )
        body |= fields
        if request.top_logprobs:
            self.capabilities.require("logprobs", self.model)
            body |= {"logprobs": True, "top_logprobs": min(request.top_logprobs, MOST_LOGPROBS)}
        if request.prefix and dialect.prefix.how == "continue":
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        path = dialect.prefix.path if request.prefix else "chat/completions"
        return WireRequest(path, to_json(body), JSON_HEADERS, enforcement)

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Create a decoder; `prefix` is removed from the start of a response if this kind of server repeats it."""
        echo = self.dialect.prefix.echo
        response = ResponseBuilder(prefix if echo == "always" else "")
        reader = ChatReader(response, self.server, prefix if echo == "whole" else "", self.origin)
        return StreamDecoder(reader, response, self.server, content_type)

    @property
    def origin(self) -> str:
        """The wire and model that can read the reasoning; empty if the server does not take it back."""
        return f"chat:{self.dialect.label}:{self.model}" if self.dialect.takes_reasoning else ""

    def _messages(self, request: Request) -> list[Json]:
        ids = CallIds(self.dialect.call_ids.pattern, self.dialect.call_ids.form)
        joined = join_results(request.messages)
        messages = [encoded for message in joined for encoded in _encode_message(message, ids, self.origin)]
        if request.prefix:
            self.capabilities.require("prefix", self.model)
            last: dict[str, Json] = {"role": "assistant", "content": request.prefix}
            messages.append(last | {"prefix": True} if self.dialect.prefix.how == "flag" else last)
        return messages

    def _sampling(self, sampling: Sampling) -> dict[str, Json]:
        body: dict[str, Json] = {}
        if most := sampling.max_tokens or self.dialect.most_tokens:
            body[self.dialect.names.max_tokens] = most
        body |= self.sampling(sampling)
        if sampling.seed is not None and "seed" in self.capabilities.capabilities | self.capabilities.assumed:
            body[self.dialect.names.seed] = sampling.seed
        return body

    def _effort(self, sampling: Sampling) -> dict[str, Json]:
        """Return the field for the reasoning effort."""
        options = self.options.with_effort(sampling.effort)
        effort, budget = options.effort, options.budget
        if self.dialect.names.effort == "reasoning":
            wanted: dict[str, Json] = {"effort": effort} if budget is None else {"max_tokens": budget}
            return {"reasoning": wanted} if effort or budget is not None else {}
        if budget is not None:
            raise UnsupportedError(f"{self.dialect.label} has no budget of reasoning; use effort", capability="budget")
        return {"reasoning_effort": effort} if effort else {}


REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""The fields of a message that carry its reasoning: DeepSeek, llama.cpp · vLLM, OpenRouter · OpenRouter, signed."""


BELOW = "[see the next message]"
FILES_OF = "From the result of {name}:"


def _encode_message(message: Message, ids: CallIds, origin: str) -> list[Json]:
    """Encode a message: its attachments, its texts, transient ones last, its calls, and each result as a message of its own.

    Messages of tools have only text: the files of results are in a message of the user behind all of them.
    Reasoning of `origin` is sent back with its calls; servers ignore or refuse it in other messages.
    """
    only = message.parts[0] if len(message.parts) == 1 and message.role != "tool" else None
    if isinstance(only, Text):  # most messages of a long history
        return [{"role": message.role, "content": only.text}]
    returned = _returned(message, origin)
    signed = items_at(returned, "calls")
    calls: list[Json] = [
        {
            "id": ids.of_call(call),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments or "{}"},
            **({"extra_content": signed[index]} if index < len(signed) and signed[index] else {}),
        }
        for index, call in enumerate(message.tool_calls)
    ]
    results, text = results_and_text(message)
    answers: list[Json] = [
        {
            "role": "tool",
            "tool_call_id": ids.of_result(result),
            "content": result.text or BELOW * bool(result.attachments),
        }
        for result in results
    ]
    if message.role == "assistant":
        if not calls:
            return [{"role": "assistant", "content": text}, *answers]
        reasoning = {name: part for name, part in returned.items() if name in REASONING_FIELDS}
        return [{"role": "assistant", "content": text or None, **reasoning, "tool_calls": calls}, *answers]
    role = "user" if message.role == "tool" else message.role
    content: Json = text
    said: list[Json] = [{"type": "text", "text": text}] if text else []
    if message.attachments:
        content = [*map(encode_attachment, message.attachments), *said]
    if any(result.attachments for result in results):
        content = said
        for result in results:
            shown: list[Json] = list(map(encode_attachment, result.attachments))
            content += [{"type": "text", "text": FILES_OF.format(name=result.name)}, *shown] if shown else []
    return answers if answers and not content else [*answers, {"role": role, "content": content}]


def join_results(messages: Iterable[Message]) -> Iterator[Message]:
    """Join consecutive messages of tools, since nothing may stand between the results of parallel calls."""
    messages = tuple(messages)
    if not any(message.role == "tool" for message in messages):
        yield from messages
        return
    for role, group in groupby(messages, lambda message: message.role):
        if role == "tool":
            yield Message("tool", tuple(part for message in group for part in message.parts))
        else:
            yield from group


def results_and_text(message: Message) -> tuple[list[ToolResult], str]:
    """Return the results of a message and its texts; a message of a tool without a result is one."""
    results, text = [part for part in message.parts if isinstance(part, ToolResult)], message.ordered_text
    return ([ToolResult(text)], "") if message.role == "tool" and not results else (results, text)


def encode_attachment(attachment: Attachment) -> Json:
    """Encode an image or a PDF as a content part."""
    uri = attachment.data_uri
    if attachment.kind == "images":
        return {"type": "image_url", "image_url": {"url": uri}}
    return {"type": "file", "file": {"filename": attachment.label, "file_data": uri}}


def _returned(message: Message, origin: str) -> dict[str, Json]:
    """Return the reasoning of a message as its server sent it; empty if another server sent it."""
    data = next((part.data for part in message.signed_thinking if origin and part.origin == origin), None)
    return data if isinstance(data, dict) else {}


# --- responses --------------------------------------------------------------------------------------------------------


class ChatReader:
    """Reads events of both protocols into a `ResponseBuilder`.

    `repeated` is the prefix of a complete response; `origin` is the wire and model that can read the reasoning, if any.
    """

    def __init__(self, response: ResponseBuilder, server: Server, repeated: str = "", origin: str = "") -> None:
        self.response = response
        self.server = server
        self._repeated = repeated
        self._origin = origin
        self._reasoning: dict[str, list[str]] = {}
        self._details: dict[int, dict[str, Json]] = {}
        self._detail_texts: dict[tuple[int, str], list[str]] = {}
        self._signed: dict[int, Json] = {}
        self._calls: dict[int, ToolCallBuilder] = {}

    def read_event(self, data: Json) -> None:
        """Read one event of a stream."""
        self._read_head(data)
        for choice in items_at(data, "choices"):
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._read_text(choice)
                if choice.get("logprobs"):
                    self.response.logprobs += read_logprobs(choice)
                if choice.get("finish_reason"):
                    self._read_finish(choice)

    def read_whole(self, data: Json) -> None:
        """Read a response of one piece."""
        self._read_head(data)
        first = next(iter(items_at(data, "choices")), None)
        if not isinstance(item_at(first, "text"), str) and not isinstance(item_at(first, "message"), dict):
            raise protocol_error("sent a response without a message or text", str(data), self.server)
        self._read_text(first, self._repeated)
        self.response.logprobs += read_logprobs(first)
        self._read_finish(first)

    def _read_text(self, choice: Json, repeated: str = "") -> None:
        """Read the message of a choice, or its text: some relays answer in the form of the other one of OpenAI's protocols."""
        delta = item_at(choice, "delta")
        message = item_at(choice, "message") if delta is None else delta
        if message is None:
            self.response.add_text(text_at(choice, "text"))
        else:
            self._read_message(message, repeated)

    def _read_head(self, data: Json) -> None:
        """Read the name of the model and the usage."""
        response = self.response
        if not response.model:
            response.model = text_at(data, "model")
            response.fingerprint = text_at(data, "system_fingerprint")
        # Most events have no usage; some servers send a cumulative one with each event, of which the last counts.
        if isinstance(data, dict) and (
            usage := data.get("usage")
            or ("x_groq" in data and item_at(data, "x_groq", "usage"))
            or next((item_at(choice, "usage") for choice in items_at(data, "choices")[:1]), None)
        ):
            response.usage = read_usage(usage, *USAGE) or response.usage

    def _read_message(self, message: Json, repeated: str = "") -> None:
        if not isinstance(message, dict):
            return
        response = self.response
        for name in ("reasoning_content", "reasoning"):
            thinking = message.get(name)
            if thinking and isinstance(thinking, str):
                response.add_thinking(thinking)
                self._reasoning.setdefault(name, []).append(thinking)
                break
        if "reasoning_details" in message:
            for detail in items_at(message, "reasoning_details"):
                self._read_detail(detail)
        content = message.get("content")
        if isinstance(content, str):
            response.add_text(content.removeprefix(repeated))
        elif isinstance(content, list | dict):
            for part in content if isinstance(content, list) else [content]:
                self._read_part(part)
        self._read_refusal(message)
        if message.get("annotations"):
            response.annotations += map(flat_annotation, items_at(message, "annotations"))
        calls = message.get("tool_calls")
        if isinstance(calls, list | dict):
            self._read_calls(calls if isinstance(calls, list) else [calls])
        legacy = message.get("function_call")
        if isinstance(legacy, dict):
            self._read_calls([{"index": 0, "function": legacy}])

    def _read_refusal(self, data: Json) -> None:
        if refusal := text_at(data, "refusal"):
            self.response.add_refusal(refusal)

    def _read_part(self, part: Json) -> None:
        """Read one part of content that is a list, as the reasoning models of Mistral send it."""
        self._read_refusal(part)
        if (kind := text_at(part, "type")) in ("thinking", "reasoning"):
            thinking = item_at(part, kind) or item_at(part, "text")
            pieces = thinking if isinstance(thinking, list) else [thinking]
            self.response.add_thinking(
                "".join(piece if isinstance(piece, str) else text_at(piece, "text") for piece in pieces)
            )
        else:
            self.response.add_text(text_at(part, "text"))

    def _read_detail(self, detail: Json) -> None:
        """Read a fragment of signed reasoning: texts of one index are joined, and everything else is kept as it is."""
        if not isinstance(detail, dict):
            return
        index = count_at(detail, "index")
        index = len(self._details) if index is None else index
        known = self._details.setdefault(index, {})
        for name, part in detail.items():
            if name in ("text", "summary", "data") and isinstance(part, str):
                self._detail_texts.setdefault((index, name), []).append(part)
                known.setdefault(name, "")
            elif part is not None or name not in known:
                known[name] = part

    def _keep_reasoning(self) -> None:
        """Keep the reasoning in the form that its server expects back: as text, signed, or as signatures of the calls."""
        kept: dict[str, Json] = {name: "".join(pieces) for name, pieces in self._reasoning.items()}
        for (index, name), pieces in self._detail_texts.items():
            self._details[index][name] = "".join(pieces)
        if self._details:
            kept = {"reasoning_details": list(self._details.values())}
        if self._signed:
            kept["calls"] = [self._signed.get(index) for index in range(len(self.response.calls))]
        if kept and self._origin and self.response.calls:
            text = "".join(piece for pieces in self._reasoning.values() for piece in pieces)
            self.response.keep_thinking(text, kept, self._origin)

    def _read_calls(self, calls: list[Json]) -> None:
        """Read the fragments of an event. Those that nothing but their place names continue the last calls, in their order."""
        known = self.response.calls
        are_unnamed = all(
            count_at(each, "index") is None and not text_at(each, "id") and not text_at(each, "function", "name")
            for each in calls
        )
        by_place = known[-len(calls) :] if are_unnamed and 1 < len(calls) <= len(known) else []
        new: set[int] = set()
        for place, call in enumerate(calls):
            before = len(known)
            self._read_call(call, by_place[place] if by_place else self._find_call(call, new))
            if len(known) > before:
                new.add(before)

    def _read_call(self, call: Json, builder: ToolCallBuilder) -> None:
        if extra := item_at(call, "extra_content"):
            self._signed[next(at for at, each in enumerate(self.response.calls) if each is builder)] = extra
        builder.id = builder.id or text_at(call, "id")
        if name := text_at(call, "function", "name"):
            builder.add_name(name)
        builder.add_arguments(item_at(call, "function", "arguments"))

    def _find_call(self, call: Json, new: Set[int]) -> ToolCallBuilder:
        """Find the call that a fragment continues, or begin a new one; `new` are the places of those that began in this event.

        Fragments of a call have its index. Some servers send no index, or the same one for every call: then the id decides;
        without an id, a name starts a new call once the last one is complete. Another name under the same index or id continues
        the name, unless the arguments have begun or the call is of the same event. Some servers give each fragment another id:
        arguments without a name, or behind incomplete ones of the same name, continue the call.
        """
        index, id_, name = count_at(call, "index"), text_at(call, "id"), text_at(call, "function", "name")
        calls = self.response.calls
        if index is not None:
            known = self._calls.get(index)
        elif id_:
            known = next((each for each in calls if each.id == id_), None if name or not calls else calls[-1])
        else:
            known = calls[-1] if calls else None
        is_other = known is not None and bool(id_ and known.id and id_ != known.id)
        if is_other and known is not None and item_at(call, "function", "arguments") and not known.is_complete:
            is_other = bool(name) and (name != known.name or not known.pieces)
        if known is not None and not is_other and name and known.name:
            has_begun = bool(known.pieces) or any(calls[place] is known for place in new)
            may_continue = (index is not None or bool(id_)) and not has_begun
            is_other = name != known.name if id_ else name != known.name or known.is_complete
            is_other = is_other and not may_continue
        if known is None or is_other:
            known = self.response.begin_call()
        if index is not None:
            self._calls[index] = known
        return known

    def _read_finish(self, choice: Json) -> None:
        """Read why a choice ended."""
        reason = text_at(choice, "finish_reason")
        response = self.response
        if not reason or response.finish is not None:
            return
        if any(failure in reason.lower() for failure in FAILURES):
            failure: Json = {"type": "server_error", "message": f"it stopped in the middle ({reason})"}
            raise error_in_response({"error": item_at(choice, "error") or failure}, self.server)
        self._keep_reasoning()
        response.finish = FINISH_REASONS.get(reason, "stop")
        if response.refuses:
            response.finish = response.stop = "refusal"
        if response.finish == "stop":
            response.stop = text_at(choice, "stop_reason") or text_at(choice, "matched_stop") or None


def flat_annotation(annotation: Json) -> Json:
    """Return an annotation as Responses has it: Chat Completions puts its fields into a member that its type names."""
    fields = item_at(annotation, text_at(annotation, "type"))
    return {"type": text_at(annotation, "type"), **fields} if isinstance(fields, dict) else annotation


def read_logprobs(choice: Json) -> Iterator[TokenLogprob]:
    """Read the log probabilities of a choice, in the form of either protocol; a token without one is omitted."""
    for row in items_at(choice, "logprobs", "content"):
        logprob = clean_logprob(item_at(row, "logprob"))
        if logprob is not None:
            pairs = (
                (join_surrogates(text_at(each, "token")), clean_logprob(item_at(each, "logprob")))
                for each in items_at(row, "top_logprobs")
            )
            top = tuple((token, number) for token, number in pairs if number is not None)
            yield TokenLogprob(join_surrogates(text_at(row, "token")), logprob, top)
    tokens, numbers = items_at(choice, "logprobs", "tokens"), items_at(choice, "logprobs", "token_logprobs")
    tops = items_at(choice, "logprobs", "top_logprobs")
    for place, (token, number) in enumerate(zip(tokens, numbers, strict=False)):
        logprob = clean_logprob(number)
        if isinstance(token, str) and logprob is not None:
            row = tops[place] if place < len(tops) else None
            rest = row.items() if isinstance(row, dict) else ()
            pairs = ((join_surrogates(name), clean_logprob(each)) for name, each in rest)
            top = tuple((name, each) for name, each in pairs if each is not None)
            yield TokenLogprob(join_surrogates(token), logprob, top)


def clean_logprob(number: Json) -> float | None:
    """Return a log probability as a finite number of at most 0; None if it is not a number."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    try:
        return min(float(number), 0.0) if isfinite(number) else ZERO_LOGPROB
    except OverflowError:  # a whole number of hundreds of digits
        return ZERO_LOGPROB


DEFAULT_MAX_TOKENS = 1024
"""The default of servers is 16 tokens."""
LABELS: Mapping[str, str] = {"system": "", "user": "User: ", "assistant": "Assistant: ", "tool": "Result: "}
TURN_STOP = "\nUser:"
"""Ends an answer before the model writes the next turn of the user."""


@dataclass(frozen=True, slots=True)
class TextCompletions(OpenAICodec):
    """The codec for one model on one kind of server; see `prompt` for the text that is sent."""

    def encode(self, request: Request) -> WireRequest:
        """Encode a request; sampling and seed are omitted if the model does not accept them.

        Raises:
            UnsupportedError: the server or the model cannot express it, or it has an image or a PDF.
            InputError: the text is not valid Unicode.
        """
        request = fit_attachments(request, f"{self.model}?wire=completions", fixed=True)
        dialect, sampling = self.dialect, request.sampling
        if request.tools:
            raise UnsupportedError("the completions protocol has no function calls", capability="tools")
        if sampling.effort not in ("", "none"):
            raise UnsupportedError("the completions protocol has no effort of reasoning", capability="effort")
        stops = [*request.stop]
        if _is_dialogue(request.messages) and len(stops) < dialect.stops:
            stops.append(TURN_STOP)
        self.check_stops(stops)
        body = extra_fields(request.sampling)
        body |= {"model": self.model, "prompt": prompt(request), "stream": not request.hints.whole}
        if dialect.names.usage and not request.hints.whole:
            body[dialect.names.usage] = {"include_usage": True}
        body["max_tokens"] = sampling.max_tokens or DEFAULT_MAX_TOKENS
        body |= self.sampling(sampling)
        if sampling.seed is not None:
            body[dialect.names.seed] = sampling.seed
        if stops:
            body["stop"] = list[Json](stops)
        if request.top_logprobs:
            self.capabilities.require("logprobs", self.model)
            body["logprobs"] = min(request.top_logprobs, MOST_LOGPROBS)
        fields, enforcement = self.constrained(
            request.constraint, dialect.constraints.wire, request.prefix, strict=False
        )
        body |= fields
        return WireRequest("completions", to_json(body), JSON_HEADERS, enforcement)

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:  # noqa: ARG002  (no server repeats the prompt unasked)
        """Create a decoder."""
        response = ResponseBuilder()
        return StreamDecoder(ChatReader(response, self.server), response, self.server, content_type)


def prompt(request: Request) -> str:
    """Return the text that a request sends: without turns of the model, the texts unchanged, separated by blank lines.

    In a dialogue each turn begins with the name of its role. The prefix of the answer ends the prompt.

    >>> from taiwa.kernel.messages import assistant, system, user
    >>> prompt(Request((user("Q: 2 + 2 = ?"),), prefix="A: 4"))
    'Q: 2 + 2 = ?A: 4'
    >>> prompt(Request((system("Be brief."), user("Hi"), assistant("Hello."), user("Bye"))))
    'Be brief.\\n\\nUser: Hi\\n\\nAssistant: Hello.\\n\\nUser: Bye\\n\\nAssistant:'
    """
    if not request.messages:
        raise InputError("the request has no message; add one of the user")
    if not _is_dialogue(request.messages):
        return "\n\n".join(map(_text, request.messages)) + request.prefix
    turns = [LABELS[message.role] + _text(message) for message in request.messages]
    answer = f" {request.prefix}" if request.prefix else ""
    return "\n\n".join((*turns, f"Assistant:{answer}"))


def _is_dialogue(messages: tuple[Message, ...]) -> bool:
    return any(message.role in ("assistant", "tool") for message in messages)


def _text(message: Message) -> str:
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text]
    return "\n\n".join(texts) or "\n".join(getattr(part, "text", "") for part in message.parts)
