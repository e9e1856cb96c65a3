"""The Chat Completions protocol, as a codec (no I/O), with the dialects of its servers.

Typed questions (`Questions`) are sent to `/v1/systemone` of the same server, which answers them with probabilities.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from json import dumps
from math import isfinite
from typing import Literal

from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError, ModelError, UnsupportedError
from taiwa.kernel.messages import (
    ChoiceQuestion,
    FinishReason,
    Message,
    Question,
    Questions,
    Request,
    Sampling,
    Text,
    TokenLogprob,
    ToolResult,
    Usage,
    YesNoQuestion,
)
from taiwa.kernel.records import Json, count_at, item_at, items_at, text_at, to_json
from taiwa.kernel.text import join_surrogates
from taiwa.models.attachments import data_uri, fit_attachments
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.errors import Server, error_from_status, error_in_response, protocol_error
from taiwa.models.http_api.provider_interface import ConstraintWire, Decoder, Enforce, Target, WireRequest
from taiwa.models.http_api.stream_decoder import CallIds, ResponseBuilder, StreamDecoder, ToolCallBuilder

MANY = 1_000
MOST_LOGPROBS = 20
"""The most alternatives of a token that all servers return."""
ZERO_LOGPROB = -9999.0
"""The logarithm of a probability of zero, as JSON has no infinity."""
MOST_QUESTIONS = 128
MOST_OPTIONS = 255
FEWEST_LEVELS, MOST_LEVELS = 2, 10
JSON_HEADERS = (("content-type", "application/json"),)


@dataclass(frozen=True, slots=True)
class ServerDialect:
    """What one kind of server does where the protocol leaves a choice.

    - `prefix`: how to ask it to continue a message: not at all, by a last message of the assistant (`last`), by that and
      `continue_final_message` (`continue`), by that and `"prefix": true` on it (`flag`).
    - `echo`: whether its response repeats the prefix: never, in responses of one piece only (`whole`), or `always`.
    - `constraints`: the fields for a constraint; see `taiwa.models.http_api.constraint_encoding`.
    - `strict`: whether a schema is rewritten into the strict form, which the server enforces.
    - `max_tokens`, `seed`: the names of these fields. `stops`: the most stop strings. `usage`: whether a stream must be asked to
      report its usage. `call_id`: the pattern that an id must match; `call_form` formats a position into one.
    - `prefix_path`: the path for requests with a prefix, if it is another. `key_header`: the header that carries the key.
    """

    label: str
    prefix: Literal["no", "last", "continue", "flag"] = "no"
    echo: Literal["never", "whole", "always"] = "never"
    constraints: ConstraintWire = "response_format"
    strict: bool = False
    max_tokens: str = "max_tokens"
    stops: int = 4
    seed: str = "seed"
    usage: bool = True
    call_id: str = r"[!-~]{1,64}"
    call_form: str = "call_{}"
    prefix_path: str = ""
    key_header: str = "authorization"


DIALECTS: Mapping[str, ServerDialect] = {
    "openai": ServerDialect("OpenAI", strict=True, max_tokens="max_completion_tokens", call_id=r"[A-Za-z0-9_-]{1,40}"),
    "azure": ServerDialect(
        "Azure OpenAI", strict=True, max_tokens="max_completion_tokens", call_id=r"[A-Za-z0-9_-]{1,40}", key_header="api-key"
    ),
    "llamacpp": ServerDialect("the llama.cpp server", prefix="last", echo="whole", constraints="gbnf", stops=MANY),
    "gguf": ServerDialect("llama.cpp", prefix="last", echo="whole", constraints="gbnf", stops=MANY),
    "vllm": ServerDialect("the vLLM server", prefix="continue", constraints="structured_outputs", stops=MANY),
    "sglang": ServerDialect("the SGLang server", prefix="continue", constraints="fields", stops=MANY),
    "ollama": ServerDialect("the Ollama server", stops=MANY),
    "lmstudio": ServerDialect("LM Studio", stops=MANY),
    "openrouter": ServerDialect("OpenRouter", strict=True, call_id=r"[A-Za-z0-9_-]{1,64}"),
    # Mistral refuses unknown fields, stream_options among them, and ids of another form.
    "mistral": ServerDialect(
        "Mistral", prefix="flag", echo="always", seed="random_seed", usage=False, stops=MANY,
        call_id=r"[A-Za-z0-9]{9}", call_form="call{:05d}",
    ),
    "deepseek": ServerDialect("DeepSeek", prefix="flag", stops=16, prefix_path="beta/chat/completions"),
    "groq": ServerDialect("Groq"),
    "plain": ServerDialect("the server"),
}  # fmt: skip

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

FAILURES = ("error", "insufficient_system_resource")
"""Finish reasons that report a failure of the server in the middle of its response."""


@dataclass(frozen=True, slots=True)
class ChatCompletions:
    """The codec for one model on one kind of server."""

    model: str
    dialect: ServerDialect
    capabilities: Capabilities
    enforce: Enforce = "auto"

    def encode(self, request: Request) -> WireRequest:
        """Encode a request; sampling and seed are omitted if the model does not accept them.

        Raises:
            UnsupportedError: the server or the model cannot express it, or cannot read an attachment.
            InputError: the text is not valid Unicode, or `tool_choice` names an unknown tool.
        """
        dialect = self.dialect
        request = fit_attachments(request, self.model, self.capabilities.inputs)
        if isinstance(request.constraint, Questions):
            self.capabilities.require("decisions", self.model)
            return _encode_questions(self.model, request, request.constraint)
        body: dict[str, Json] = {"model": self.model, "messages": self._messages(request), "stream": True}
        if dialect.usage:
            body["stream_options"] = {"include_usage": True}
        body |= self._sampling(request.sampling)
        if request.stop:
            self.capabilities.require("stop", self.model)
            if len(request.stop) > dialect.stops:
                raise UnsupportedError(
                    f"{dialect.label} accepts at most {dialect.stops} stop strings, got {len(request.stop)}",
                    capability="stop",
                )
            body["stop"] = list(request.stop)
        if request.tools:
            body |= self._tools(request)
        enforcement = None
        if request.constraint is not None:
            from taiwa.models.http_api.constraint_encoding import ConstraintEncoder

            encoder = ConstraintEncoder(
                dialect.label, self.model, dialect.constraints, self.capabilities, dialect.strict, self.enforce
            )
            encoded = encoder.encode(request.constraint, request.prefix)
            body |= encoded.fields
            enforcement = encoded.enforcement
        if request.top_logprobs:
            self.capabilities.require("logprobs", self.model)
            body |= {"logprobs": True, "top_logprobs": min(request.top_logprobs, MOST_LOGPROBS)}
        if request.prefix and dialect.prefix == "continue":
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        path = dialect.prefix_path if request.prefix and dialect.prefix_path else "chat/completions"
        return WireRequest(path, to_json(body), JSON_HEADERS, enforcement)

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Create a decoder; `prefix` is removed from the start of a response if this kind of server repeats it."""
        echo = self.dialect.echo
        response = ResponseBuilder(prefix if echo == "always" else "")
        reader = ChatReader(response, self.server, prefix if echo == "whole" else "")
        return StreamDecoder(reader, response, self.server, content_type)

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """Map a response that is not 2xx to an error; header names are lower-case."""
        return error_from_status(status, headers, body, self.server)

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that carry a key."""
        header = self.dialect.key_header
        return ((header, f"Bearer {key}" if header == "authorization" else key),) if key else ()

    @property
    def server(self) -> Server:
        """The server and the model that errors name."""
        return Server(self.dialect.label, self.model)

    def _messages(self, request: Request) -> list[Json]:
        ids = CallIds(self.dialect.call_id, self.dialect.call_form)
        messages = [encoded for message in request.messages for encoded in _encode_message(message, ids)]
        if request.prefix:
            self.capabilities.require("prefix", self.model)
            if self.dialect.prefix == "no":
                raise UnsupportedError(
                    f"{self.dialect.label} cannot continue an answer from a prefix", capability="prefix"
                )
            last: dict[str, Json] = {"role": "assistant", "content": request.prefix}
            messages.append(last | {"prefix": True} if self.dialect.prefix == "flag" else last)
        return messages

    def _sampling(self, sampling: Sampling) -> dict[str, Json]:
        body: dict[str, Json] = {}
        if sampling.max_tokens is not None:
            body[self.dialect.max_tokens] = sampling.max_tokens
        if self.capabilities.sampling:
            if sampling.temperature is not None:
                body["temperature"] = sampling.temperature
            if sampling.top_p is not None:
                body["top_p"] = sampling.top_p
        if sampling.seed is not None and "seed" in self.capabilities.capabilities:
            body[self.dialect.seed] = sampling.seed
        return body

    def _tools(self, request: Request) -> dict[str, Json]:
        self.capabilities.require("tools", self.model)
        tools: list[Json] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
            }
            for tool in request.tools
        ]
        choice = request.tool_choice
        if choice == "auto":
            return {"tools": tools}
        if choice in ("none", "required"):
            return {"tools": tools, "tool_choice": choice}
        if choice not in {tool.name for tool in request.tools}:
            raise InputError(f"tool_choice names {choice!r}, which is not a tool of the request")
        return {"tools": tools, "tool_choice": {"type": "function", "function": {"name": choice}}}


def held_so(target: Target, enforce: Enforce) -> Target:
    """Return the target with another treatment of constraints that its server does not enforce; see `Enforce`."""
    codec = target.codec
    return replace(target, codec=replace(codec, enforce=enforce)) if isinstance(codec, ChatCompletions) else target


def _encode_message(message: Message, ids: CallIds) -> list[Json]:
    """Encode a message: its attachments, its texts, transient ones last, its calls, and each result as a message of its own."""
    calls: list[Json] = [
        {
            "id": ids.of_call(call),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments or "{}"},
        }
        for call in message.tool_calls
    ]
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    lasting = [part.text for part in message.parts if isinstance(part, Text) and part.text and not part.transient]
    transient = [part.text for part in message.parts if isinstance(part, Text) and part.text and part.transient]
    # Texts of the model are joined as it wrote them; a blank line separates texts of other roles.
    text = ("" if message.role == "assistant" else "\n\n").join(lasting + transient)
    if message.role == "tool" and not results:
        results, text = [ToolResult(text)], ""
    answers: list[Json] = [
        {"role": "tool", "tool_call_id": ids.of_result(result), "content": result.text} for result in results
    ]
    if message.role == "assistant":
        if not calls:
            return [{"role": "assistant", "content": text}, *answers]
        return [{"role": "assistant", "content": text or None, "tool_calls": calls}, *answers]
    role = "user" if message.role == "tool" else message.role
    content: Json = text
    if message.attachments:
        said: list[Json] = [{"type": "text", "text": text}] if text else []
        content = [*map(encode_attachment, message.attachments), *said]
    return answers if answers and not content else [*answers, {"role": role, "content": content}]


def encode_attachment(attachment: Attachment) -> Json:
    """Encode an image or a PDF as a content part."""
    uri = data_uri(attachment)
    if attachment.kind == "images":
        return {"type": "image_url", "image_url": {"url": uri}}
    return {"type": "file", "file": {"filename": attachment.label, "file_data": uri}}


# --- typed questions (/v1/systemone) ----------------------------------------------------------------------------------


def _encode_questions(model: str, request: Request, questions: Questions) -> WireRequest:
    """Encode typed questions; the messages are the state that they are about.

    Raises:
        InputError: there are too many questions, options or levels, or the text is not valid Unicode.
    """
    if not 1 <= len(questions.questions) <= MOST_QUESTIONS:
        raise InputError(f"a request must have 1 to {MOST_QUESTIONS} questions, got {len(questions.questions)}")
    if any(message.attachments for message in request.messages):
        raise UnsupportedError("typed questions cannot have images or PDFs", capability="images")
    state: list[Json] = [{"role": message.role, "content": message.text} for message in request.messages]
    body: dict[str, Json] = {
        "model": model,
        "state": request.messages[0].text if len(state) == 1 else state,
        "questions": {name: _encode_question(name, each) for name, each in questions.questions},
    }
    return WireRequest("systemone", to_json(body), JSON_HEADERS)


def _encode_question(name: str, question: Question) -> dict[str, Json]:
    if isinstance(question, YesNoQuestion):
        meanings: dict[str, Json] = {"true": question.yes, "false": question.no}
        criteria: dict[str, Json] = {answer: text for answer, text in meanings.items() if text}
        encoded: dict[str, Json] = {"type": "noul", "instructions": question.instructions}
        if criteria:
            encoded["criteria"] = criteria
        return encoded
    if isinstance(question, ChoiceQuestion):
        if not 1 <= len(question.options) <= MOST_OPTIONS:
            raise InputError(
                f"the question {name!r} must have 1 to {MOST_OPTIONS} options, got {len(question.options)}"
            )
        options: dict[str, Json] = {option: text or None for option, text in question.options}
        return {"type": "choice", "instructions": question.instructions, "criteria": options}
    if not FEWEST_LEVELS <= len(question.levels) <= MOST_LEVELS:
        raise InputError(
            f"the scale {name!r} must have {FEWEST_LEVELS} to {MOST_LEVELS} levels, got {len(question.levels)}"
        )
    return {"type": "score", "instructions": question.instructions, "criteria": list(question.levels)}


# --- responses --------------------------------------------------------------------------------------------------------


class ChatReader:
    """Reads events of the Chat Completions protocol into a `ResponseBuilder`; `repeated` is the prefix of a whole response."""

    def __init__(self, response: ResponseBuilder, server: Server, repeated: str = "") -> None:
        self.response = response
        self.server = server
        self._repeated = repeated
        self._calls: dict[int, ToolCallBuilder] = {}
        self._refused = False

    def read_event(self, data: Json) -> None:
        """Read one event of a stream."""
        self.read_head(data)
        for choice in items_at(data, "choices"):
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                delta = choice.get("delta")
                self._read_message(choice.get("message") if delta is None else delta)
                if choice.get("logprobs"):
                    self.response.logprobs += read_logprobs(choice)
                if choice.get("finish_reason"):
                    self.read_finish(choice)

    def read_whole(self, data: Json) -> None:
        """Read a response of one piece."""
        self.read_head(data)
        if isinstance(answers := item_at(data, "answers"), dict):  # typed questions
            self.response.add_text(dumps(answers, ensure_ascii=False, separators=(",", ":")))
            self.response.finish = "stop"
            input_tokens = count_at(data, "usage", "input_tokens")
            if input_tokens is None:
                self.response.usage = None
            else:
                output_tokens = count_at(data, "usage", "output_tokens") or 0
                cached_tokens = count_at(data, "usage", "cached_input_tokens") or 0
                self.response.usage = Usage(input_tokens, output_tokens, cached_tokens)
            return
        choices = items_at(data, "choices")
        if not choices or not isinstance(item_at(choices[0], "message"), dict):
            raise protocol_error("sent a response without a message", str(data), self.server)
        self._read_message(item_at(choices[0], "message"), self._repeated)
        self.response.logprobs += read_logprobs(choices[0])
        self.read_finish(choices[0])

    def read_head(self, data: Json) -> None:
        """Read the name of the model and the usage."""
        response = self.response
        if not response.model:
            response.model = text_at(data, "model")
        # Most events have no usage; some servers send a growing one with each, of which the last one counts.
        if isinstance(data, dict) and (usage := data.get("usage") or item_at(data.get("x_groq"), "usage")):
            response.usage = _read_usage(usage) or response.usage

    def _read_message(self, message: Json, repeated: str = "") -> None:
        if not isinstance(message, dict):
            return
        response = self.response
        thinking = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(thinking, str):
            response.add_thinking(thinking)
        content = message.get("content")
        if isinstance(content, str):
            response.add_text(content.removeprefix(repeated))
        elif isinstance(content, list):
            for part in content:
                self._read_part(part)
        refusal = message.get("refusal")
        if refusal and isinstance(refusal, str):
            response.add_text(refusal)
            self._refused = True
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._read_call(call)
        legacy = message.get("function_call")
        if isinstance(legacy, dict):
            self._read_call({"index": 0, "function": legacy})

    def _read_part(self, part: Json) -> None:
        """Read one part of content that is a list, as the reasoning models of Mistral send it."""
        if text_at(part, "type") == "thinking":
            thinking = item_at(part, "thinking")
            pieces = thinking if isinstance(thinking, list) else [thinking]
            self.response.add_thinking(
                "".join(piece if isinstance(piece, str) else text_at(piece, "text") for piece in pieces)
            )
        else:
            self.response.add_text(text_at(part, "text"))

    def _read_call(self, call: Json) -> None:
        builder = self._find_call(call)
        builder.id = builder.id or text_at(call, "id")
        builder.name = builder.name or text_at(call, "function", "name")
        arguments = item_at(call, "function", "arguments")
        if isinstance(arguments, str):
            builder.pieces.append(arguments)
        elif isinstance(arguments, dict):
            builder.pieces.append(dumps(arguments, ensure_ascii=False, separators=(",", ":")))

    def _find_call(self, call: Json) -> ToolCallBuilder:
        """Find the call that a fragment continues, or begin a new one.

        Fragments of a call have its index. Some servers send no index, or the same one for every call: then the id decides; and
        without an id, a name begins a new call once the last one is complete.
        """
        index, id_, name = count_at(call, "index"), text_at(call, "id"), text_at(call, "function", "name")
        calls = self.response.calls
        if index is not None:
            known = self._calls.get(index)
        elif id_:
            known = next((each for each in calls if each.id == id_), None)
        else:
            known = calls[-1] if calls else None
        is_other = known is not None and bool(
            (id_ and known.id and id_ != known.id)
            or (name and known.name and not id_ and (name != known.name or known.is_complete))
        )
        if known is None or is_other:
            known = ToolCallBuilder()
            calls.append(known)
        if index is not None:
            self._calls[index] = known
        return known

    def read_finish(self, choice: Json) -> None:
        """Read why a choice ended."""
        reason = text_at(choice, "finish_reason")
        response = self.response
        if not reason or response.finish is not None:
            return
        if reason in FAILURES:
            failure: Json = {"type": "server_error", "message": f"it stopped in the middle ({reason})"}
            raise error_in_response({"error": item_at(choice, "error") or failure}, self.server)
        response.finish = "refusal" if self._refused else FINISH_REASONS.get(reason, "stop")
        if response.finish == "stop":
            response.stop = text_at(choice, "stop_reason") or text_at(choice, "matched_stop") or None


def _read_usage(data: Json) -> Usage | None:
    """Read a usage report; None without a number of input tokens: a partial usage would be taken for a complete one."""
    input_tokens = count_at(data, "prompt_tokens")
    if input_tokens is None:
        return None
    details = item_at(data, "prompt_tokens_details")
    cached = (
        count_at(details, "cached_tokens")
        or count_at(data, "prompt_cache_hit_tokens")
        or count_at(data, "num_cached_tokens")
        or count_at(data, "cached_tokens")
    )
    stored = count_at(details, "cache_write_tokens") or count_at(details, "cache_creation_tokens")
    stored = stored or count_at(data, "cache_creation_input_tokens")
    reasoning = count_at(data, "completion_tokens_details", "reasoning_tokens") or count_at(data, "reasoning_tokens")
    return Usage(input_tokens, count_at(data, "completion_tokens") or 0, cached or 0, stored or 0, reasoning or 0)


def read_logprobs(choice: Json) -> Iterator[TokenLogprob]:
    """Read the log probabilities of a choice; a token without one is omitted."""
    for row in items_at(choice, "logprobs", "content"):
        logprob = clean_logprob(item_at(row, "logprob"))
        if logprob is not None:
            pairs = (
                (join_surrogates(text_at(each, "token")), clean_logprob(item_at(each, "logprob")))
                for each in items_at(row, "top_logprobs")
            )
            top = tuple((token, number) for token, number in pairs if number is not None)
            yield TokenLogprob(join_surrogates(text_at(row, "token")), logprob, top)


def clean_logprob(number: Json) -> float | None:
    """Return a log probability as a finite number of at most 0; None if it is not a number."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    try:
        return min(float(number), 0.0) if isfinite(number) else ZERO_LOGPROB
    except OverflowError:  # a whole number of hundreds of digits
        return ZERO_LOGPROB
