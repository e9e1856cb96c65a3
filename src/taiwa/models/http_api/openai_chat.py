"""Chat Completions with server dialects, log probabilities, the decision wire."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from json import dumps
from math import isfinite
from typing import Literal

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
    ToolCall,
    ToolResult,
    Usage,
    YesNoQuestion,
)
from taiwa.kernel.records import Json, count_at, item_at, items_at, text_at
from taiwa.kernel.text import join_surrogates
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.errors import Server, failure, inside, not_in_protocol
from taiwa.models.http_api.provider_interface import ConstraintWire, Decoder, Enforce, Target, WireRequest, written
from taiwa.models.http_api.stream_decoder import CallIds, ResponseBuilder, StreamDecoder, ToolCallBuilder

__all__ = ["DIALECTS", "ChatCompletions", "held_so"]


NEVER = -9999.0
"""What stands for a probability of zero, as JSON has no infinity."""


def likelihoods_in(choice: Json) -> Iterator[TokenLogprob]:
    """Read the tokens of a choice; one without a number is left out."""
    for row in items_at(choice, "logprobs", "content"):
        logprob = _logprob(row)
        if logprob is not None:
            told = ((join_surrogates(text_at(each, "token")), _logprob(each)) for each in items_at(row, "top_logprobs"))
            top = tuple((token, number) for token, number in told if number is not None)
            yield TokenLogprob(join_surrogates(text_at(row, "token")), logprob, top)


def _logprob(row: Json) -> float | None:
    found = item_at(row, "logprob")
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return min(float(found), 0.0) if isfinite(found) else NEVER


PATH = "systemone"

MOST_QUESTIONS = 128

MOST_OPTIONS = 255

FEWEST_LEVELS, MOST_LEVELS = 2, 10


def encode_questions(model: str, request: Request, asked: Questions) -> WireRequest:
    """Write a request; what was said is the state.

    Raises:
        InputError: the wire has no room for the questions, or the text is not valid Unicode.
    """
    if not 1 <= len(asked.questions) <= MOST_QUESTIONS:
        raise InputError(f"a request asks 1 to {MOST_QUESTIONS} questions, not {len(asked.questions)}")
    questions: dict[str, Json] = {name: _question(name, each) for name, each in asked.questions}
    body: dict[str, Json] = {"model": model, "state": _state(request.messages), "questions": questions}
    return WireRequest(PATH, written(body), (("content-type", "application/json"),))


def _question(name: str, question: Question) -> dict[str, Json]:
    if isinstance(question, YesNoQuestion):
        meanings: dict[str, Json] = {"true": question.yes, "false": question.no}
        criteria: dict[str, Json] = {side: words for side, words in meanings.items() if words}
        asked: dict[str, Json] = {"type": "noul", "instructions": question.instructions}
        if criteria:
            asked["criteria"] = criteria
        return asked
    if isinstance(question, ChoiceQuestion):
        if not 1 <= len(question.options) <= MOST_OPTIONS:
            raise InputError(f"the question {name!r} offers {len(question.options)} options, not 1 to {MOST_OPTIONS}")
        options: dict[str, Json] = {option: words or None for option, words in question.options}
        return {"type": "choice", "instructions": question.instructions, "criteria": options}
    if not FEWEST_LEVELS <= len(question.levels) <= MOST_LEVELS:
        raise InputError(f"the scale {name!r} has {len(question.levels)} levels, not {FEWEST_LEVELS} to {MOST_LEVELS}")
    return {"type": "score", "instructions": question.instructions, "criteria": list(question.levels)}


def _state(messages: tuple[Message, ...]) -> Json:
    if len(messages) == 1:
        return messages[0].text
    return [{"role": message.role, "content": message.text} for message in messages]


def answers_in(data: Json) -> str | None:
    """Give the answers of a reply as JSON text; None where it is no reply of this wire."""
    answers = item_at(data, "answers")
    return dumps(answers, ensure_ascii=False, separators=(",", ":")) if isinstance(answers, dict) else None


def bill_in(data: Json) -> Usage | None:
    """Read the bill of a reply; None where it does not say."""
    read = count_at(data, "usage", "input_tokens")
    if read is None:
        return None
    return Usage(
        read, count_at(data, "usage", "output_tokens") or 0, count_at(data, "usage", "cached_input_tokens") or 0
    )


@dataclass(frozen=True, slots=True)
class ServerDialect:
    """How one kind of server says what the protocol leaves open.

    - `prefix`: how it is asked to continue a message: not at all, by a last message of the assistant (`last`), by that and
      `continue_final_message` (`continue`), by that and `"prefix": true` on it (`flag`).
    - `echo`: whether its answer repeats the prefix: never, in answers of one piece only (`whole`), or `always`.
    - `constraints`: how a constraint is written: see `taiwa.models.http_api.constraint_encoding`.
    - `strict`: whether a schema is rewritten in the form in which the model is held to it.
    - `stops`: the most stop strings it takes. `seed`: the name of that field. `usage`: whether a stream must be asked to
      report its usage. `call_id`: the pattern an id must match, and `call_form` one that does.
    - `prefix_path`: the path for requests with a prefix, where it differs.
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


MANY = 1_000

MOST_LIKELIEST = 20
"""The most tokens that all servers tell the probabilities of."""

DIALECTS: Mapping[str, ServerDialect] = {
    "openai": ServerDialect("OpenAI", strict=True, max_tokens="max_completion_tokens", call_id=r"[A-Za-z0-9_-]{1,40}"),
    "llamacpp": ServerDialect("the llama.cpp server", prefix="last", echo="whole", constraints="gbnf", stops=MANY),
    "gguf": ServerDialect("llama.cpp", prefix="last", echo="whole", constraints="gbnf", stops=MANY),
    "vllm": ServerDialect("the vLLM server", prefix="continue", constraints="structured_outputs", stops=MANY),
    "sglang": ServerDialect("the SGLang server", prefix="continue", constraints="fields", stops=MANY),
    "ollama": ServerDialect("the Ollama server", stops=MANY),
    "lmstudio": ServerDialect("LM Studio", stops=MANY),
    "openrouter": ServerDialect("OpenRouter", strict=True, call_id=r"[A-Za-z0-9_-]{1,64}"),
    # Mistral refuses fields that it does not know, stream_options among them, and ids of any other form.
    "mistral": ServerDialect(
        "Mistral", prefix="flag", echo="always", seed="random_seed", usage=False, stops=MANY,
        call_id=r"[A-Za-z0-9]{9}", call_form="call{:05d}",
    ),
    "deepseek": ServerDialect("DeepSeek", prefix="flag", stops=16, prefix_path="beta/chat/completions"),
    "groq": ServerDialect("Groq"),
    "plain": ServerDialect("the server"),
}  # fmt: skip

FINISHES: Mapping[str, FinishReason] = {
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

FAILED = ("error", "insufficient_system_resource")
"""Finish reasons that report a failure of the server in the middle of its answer."""


@dataclass(frozen=True, slots=True)
class ChatCompletions:
    """The codec for one model behind one kind of server."""

    model: str
    dialect: ServerDialect
    facts: Capabilities
    hold: Enforce = "auto"

    def encode(self, request: Request) -> WireRequest:
        """Write a request; what the server may ignore without harm (sampling, seed) is left out where it is not taken.

        Raises:
            UnsupportedError: the server or model has no way to say it.
            InputError: the text is not valid Unicode, or `tool_choice` names no tool.
        """
        dialect = self.dialect
        if isinstance(request.constraint, Questions):
            self.facts.require("decisions", self.model)
            return encode_questions(self.model, request, request.constraint)
        body: dict[str, Json] = {"model": self.model, "messages": self._messages(request), "stream": True}
        if dialect.usage:
            body["stream_options"] = {"include_usage": True}
        body |= self._sampling(request.sampling)
        if request.stop:
            self.facts.require("stop", self.model)
            if len(request.stop) > dialect.stops:
                raise UnsupportedError(
                    f"{dialect.label} takes at most {dialect.stops} stop strings, not {len(request.stop)}",
                    capability="stop",
                )
            body["stop"] = list(request.stop)
        if request.tools:
            body |= self._tools(request)
        worded = None
        if request.constraint is not None:
            from taiwa.models.http_api.constraint_encoding import ConstraintEncoder

            wording = ConstraintEncoder(
                dialect.label, self.model, dialect.constraints, self.facts, dialect.strict, self.hold
            )
            worded = wording.of(request.constraint, request.prefix)
            body |= worded.fields
        if request.top_logprobs:
            self.facts.require("logprobs", self.model)
            body |= {"logprobs": True, "top_logprobs": min(request.top_logprobs, MOST_LIKELIEST)}
        if request.prefix and dialect.prefix == "continue":
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        path = dialect.prefix_path if request.prefix and dialect.prefix_path else "chat/completions"
        told = None if worded is None else worded.enforcement
        return WireRequest(path, written(body), (("content-type", "application/json"),), told)

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Make a decoder; `prefix` is taken off the start of an answer where the dialect says that it is repeated."""
        echo = self.dialect.echo
        speech = ResponseBuilder(prefix if echo == "always" else "")
        reader = _Reader(speech, self._server, prefix if echo == "whole" else "")
        return StreamDecoder(reader, speech, self._server, content_type)

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """Read an answer that is not 2xx; header names are lower-case."""
        return failure(status, headers, body, self._server)

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:
        """The headers that carry a key."""
        return (("authorization", f"Bearer {key}"),) if key else ()

    @property
    def _server(self) -> Server:
        return Server(self.dialect.label, self.model)

    def _messages(self, request: Request) -> list[Json]:
        ids = CallIds(self.dialect.call_id, self.dialect.call_form)
        said: list[Json] = []
        for message in request.messages:
            said += _message(message, ids)
        if request.prefix:
            self.facts.require("prefix", self.model)
            if self.dialect.prefix == "no":
                raise UnsupportedError(
                    f"there is no way to ask {self.dialect.label} to continue an answer", capability="prefix"
                )
            last: dict[str, Json] = {"role": "assistant", "content": request.prefix}
            said.append(last | {"prefix": True} if self.dialect.prefix == "flag" else last)
        return said

    def _sampling(self, sampling: Sampling) -> dict[str, Json]:
        body: dict[str, Json] = {}
        if sampling.max_tokens is not None:
            body[self.dialect.max_tokens] = sampling.max_tokens
        if self.facts.sampling:
            if sampling.temperature is not None:
                body["temperature"] = sampling.temperature
            if sampling.top_p is not None:
                body["top_p"] = sampling.top_p
        if sampling.seed is not None and "seed" in self.facts.capabilities:
            body[self.dialect.seed] = sampling.seed
        return body

    def _tools(self, request: Request) -> dict[str, Json]:
        self.facts.require("tools", self.model)
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
            raise InputError(f"tool_choice names {choice!r}, which is none of the request's tools")
        return {"tools": tools, "tool_choice": {"type": "function", "function": {"name": choice}}}


def held_so(target: Target, hold: Enforce) -> Target:
    """The target whose codec treats in another way what a server's decoder does not hold; see `Enforce`."""
    codec = target.codec
    return replace(target, codec=replace(codec, hold=hold)) if isinstance(codec, ChatCompletions) else target


def _message(message: Message, ids: CallIds) -> list[Json]:
    """Write one message: its words with what is transient last, its calls, and each result as a message of its own."""
    calls: list[Json] = [_call(call, ids) for call in message.tool_calls]
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    lasting = [part.text for part in message.parts if isinstance(part, Text) and part.text and not part.transient]
    transient = [part.text for part in message.parts if isinstance(part, Text) and part.text and part.transient]
    # A model's own words are joined as it wrote them; the blank line is for blocks that we lay side by side.
    words = ("" if message.role == "assistant" else "\n\n").join(lasting + transient)
    if message.role == "tool" and not results:
        results, words = [ToolResult(words)], ""
    answers: list[Json] = [
        {"role": "tool", "tool_call_id": ids.of_result(result), "content": result.text} for result in results
    ]
    if message.role == "assistant":
        spoken: dict[str, Json] = {"role": "assistant", "content": words}
        if calls:
            spoken |= {"content": words or None, "tool_calls": calls}
        return [spoken, *answers]
    role = "user" if message.role == "tool" else message.role
    return answers if answers and not words else [*answers, {"role": role, "content": words}]


def _call(call: ToolCall, ids: CallIds) -> dict[str, Json]:
    return {
        "id": ids.of_call(call),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments or "{}"},
    }


class _Reader:
    """Reads answers of the Chat Completions protocol into a speech."""

    def __init__(self, speech: ResponseBuilder, server: Server, repeated: str) -> None:
        self._speech = speech
        self._server = server
        self._repeated = repeated
        self._places: dict[int, ToolCallBuilder] = {}
        self._refused = False

    def event(self, data: Json) -> None:
        self._about(data)
        for choice in items_at(data, "choices"):
            if item_at(choice, "index") in (0, None):
                delta = item_at(choice, "delta")
                self._message(item_at(choice, "message") if delta is None else delta)
                self._speech.logprobs += likelihoods_in(choice)
                self._end(choice)

    def whole(self, data: Json) -> None:
        self._about(data)
        decided = answers_in(data)
        if decided is not None:
            self._speech.say(decided)
            self._speech.finish, self._speech.usage = "stop", bill_in(data)
            return
        choices = items_at(data, "choices")
        if not choices or not isinstance(item_at(choices[0], "message"), dict):
            raise not_in_protocol("sends an answer without a message", str(data), self._server)
        self._message(item_at(choices[0], "message"), self._repeated)
        self._speech.logprobs += likelihoods_in(choices[0])
        self._end(choices[0])

    def _about(self, data: Json) -> None:
        speech = self._speech
        if not speech.model:
            speech.model = text_at(data, "model")
        # Most events carry no bill; some servers send a growing one with each, and the last holds.
        if bill := item_at(data, "usage") or item_at(data, "x_groq", "usage"):
            speech.usage = _usage(bill) or speech.usage

    def _message(self, message: Json, repeated: str = "") -> None:
        if not isinstance(message, dict):
            return
        speech = self._speech
        thought = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(thought, str):
            speech.think(thought)
        content = message.get("content")
        if isinstance(content, str):
            speech.say(content.removeprefix(repeated))
        elif isinstance(content, list):
            for part in content:
                self._part(part)
        refusal = message.get("refusal")
        if refusal and isinstance(refusal, str):
            speech.say(refusal)
            self._refused = True
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._call(call)
        legacy = message.get("function_call")
        if isinstance(legacy, dict):
            self._call({"index": 0, "function": legacy})

    def _part(self, part: Json) -> None:
        """Read one part of content that is a list: Mistral's reasoning models send thoughts so."""
        if text_at(part, "type") == "thinking":
            thinking = item_at(part, "thinking")
            pieces = thinking if isinstance(thinking, list) else [thinking]
            self._speech.think("".join(piece if isinstance(piece, str) else text_at(piece, "text") for piece in pieces))
        else:
            self._speech.say(text_at(part, "text"))

    def _call(self, call: Json) -> None:
        slot = self._slot(call)
        slot.id = slot.id or text_at(call, "id")
        slot.name = slot.name or text_at(call, "function", "name")
        arguments = item_at(call, "function", "arguments")
        if isinstance(arguments, str):
            slot.pieces.append(arguments)
        elif isinstance(arguments, dict):
            slot.pieces.append(dumps(arguments, ensure_ascii=False, separators=(",", ":")))

    def _slot(self, call: Json) -> ToolCallBuilder:
        """Find the call that a fragment continues, or begin a new one.

        Fragments are bound by their index; where servers give none, or the same one to every call, by their id; and
        where there is no id either, a name begins a new call once the last one is whole.
        """
        place, identity, name = count_at(call, "index"), text_at(call, "id"), text_at(call, "function", "name")
        slots = self._speech.slots
        if place is not None:
            known = self._places.get(place)
        elif identity:
            known = next((slot for slot in slots if slot.id == identity), None)
        else:
            known = slots[-1] if slots else None
        other = known is not None and bool(
            (identity and known.id and identity != known.id)
            or (name and known.name and not identity and (name != known.name or known.whole))
        )
        if known is None or other:
            known = ToolCallBuilder()
            slots.append(known)
        if place is not None:
            self._places[place] = known
        return known

    def _end(self, choice: Json) -> None:
        reason = text_at(choice, "finish_reason")
        speech = self._speech
        if not reason or speech.finish is not None:
            return
        if reason in FAILED:
            raise _broke_off(choice, reason, self._server)
        speech.finish = "refusal" if self._refused else FINISHES.get(reason, "stop")
        if speech.finish == "stop":
            speech.stop = text_at(choice, "stop_reason") or text_at(choice, "matched_stop") or None


def _broke_off(choice: Json, reason: str, server: Server) -> ModelError:
    error = item_at(choice, "error") or {"type": "server_error", "message": f"it stopped in the middle ({reason})"}
    return inside({"error": error}, server)


def _usage(data: Json) -> Usage | None:
    """Read a bill; None where the server does not say what was read: half a bill would pass for a whole one."""
    read = count_at(data, "prompt_tokens")
    written = count_at(data, "completion_tokens")
    if read is None:
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
    thought = count_at(data, "completion_tokens_details", "reasoning_tokens") or count_at(data, "reasoning_tokens")
    return Usage(read, written or 0, cached or 0, stored or 0, thought or 0)
