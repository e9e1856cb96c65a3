"""Ollama (`/api/chat`, `/api/generate`, `/api/tags`, `/api/show`, `/api/version`): JSON lines, streamed unless `stream` is false.

The client keeps no ids: its history is matched to the nodes of the store, see `taiwa.sessions.resent_history`.
"""

import asyncio
import time
from base64 import b64decode
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from taiwa.conversation.app import AnswerOptions
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import (
    Constraint,
    JsonSchema,
    Message,
    Part,
    Sampling,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from taiwa.kernel.records import Json, to_json
from taiwa.operations.complete import split_system
from taiwa.server.errors import ApiError, invalid
from taiwa.server.extension import Extend, Extension, extender, read_extension
from taiwa.server.fields import Fields
from taiwa.server.responses import EventStream, json_response
from taiwa.server.runs import LiveRun
from taiwa.server.state import caller_of, read_body, start_run, state_of
from taiwa.server.wire import Route, Wire
from taiwa.server.wires.chat_completions import (
    MOST_LOGPROBS,
    MOST_STOPS,
    answers_of,
    arguments_of,
    begin_answers,
    read_tools,
)
from taiwa.sessions.durable_turn import TurnResult

VERSION = "0.12.0"
"""The version of the protocol that is spoken; clients ask for it before they use what is newer."""
ROLES = ("system", "user", "assistant", "tool")
SHARED = frozenset("model stream format options keep_alive think logprobs top_logprobs taiwa".split())
CHAT = SHARED | {"messages", "tools", "truncate", "shift"}
GENERATE = SHARED | {"prompt", "system", "images", "raw", "truncate", "shift"}
UNSUPPORTED = frozenset({"suffix", "template", "context"})
OPTIONS = frozenset(
    """temperature top_p seed num_predict stop top_k min_p typical_p tfs_z repeat_last_n repeat_penalty mirostat mirostat_tau
    mirostat_eta penalize_newline num_keep num_ctx num_batch num_gpu main_gpu low_vram f16_kv logits_all vocab_only use_mmap
    use_mlock embedding_only numa num_thread""".split()
)
"""Those behind `stop` say how to sample or load, and are not passed on; docs/server.md names them."""
PENALTIES = frozenset({"presence_penalty", "frequency_penalty"})
EFFORTS = ("low", "medium", "high", "max")
NDJSON = b"application/x-ndjson"
DONE_REASONS: Mapping[str, str] = {"length": "length", "interrupted": "length"}


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    """A request as it was read; without messages it only asks whether the model can be used."""

    model: str
    messages: tuple[Message, ...]
    options: AnswerOptions
    streams: bool
    hides_thinking: bool
    top_logprobs: int | None
    extension: Extension | None


def read_chat(body: Fields, most_messages: int) -> OllamaRequest:
    """Read a request of `/api/chat`.

    Raises:
        ApiError: a field is missing, unknown, or has a wrong type or value.
    """
    body.check_names(CHAT, UNSUPPORTED)
    if len(body.items("messages")) > most_messages:
        raise invalid("messages", f"there are more than {most_messages:,} messages", "too_many_messages")
    asked = _read_shared(body)
    messages = tuple(map(_read_message, body.objects("messages")))
    if not messages:
        return asked
    try:
        system, messages = split_system(messages)
    except InputError as error:
        raise invalid("messages", error.message) from None
    options = replace(asked.options, system=system or None, client_tools=read_tools(body))
    return replace(asked, messages=messages, options=options)


def read_generate(body: Fields) -> OllamaRequest:
    """Read a request of `/api/generate`, which is one message without a history.

    Raises:
        ApiError: as `read_chat`.
    """
    body.check_names(GENERATE, UNSUPPORTED)
    if body.flag("raw"):
        raise invalid(
            "raw",
            "raw is not supported by this server: prompts are written by the chat template",
            "unsupported_parameter",
        )
    asked = _read_shared(body)
    prompt, files = body.text("prompt", ""), _read_images(body)
    if not prompt and not files:
        return asked
    options = replace(asked.options, system=body.text("system", "") or None)
    return replace(asked, messages=(Message("user", (*files, Text(prompt))),), options=options)


def _read_shared(body: Fields) -> OllamaRequest:
    options = body.object("options") or Fields({}, "options")
    options.check_names(OPTIONS | PENALTIES)
    for name in PENALTIES:
        if options.number(name, -2, 2):
            raise invalid(
                options.at(name), f"{options.at(name)} is not supported by this server", "unsupported_parameter"
            )
    predict = options.count("num_predict", -2)
    stops = tuple(dict.fromkeys(stop for stop in options.texts("stop") if stop))
    if len(stops) > MOST_STOPS:
        raise invalid("options.stop", f"there are more than {MOST_STOPS} stop strings")
    hides, effort = _read_think(body)
    top_logprobs = (body.count("top_logprobs", 0, MOST_LOGPROBS) or 0) if body.flag("logprobs") else None
    sampling = Sampling(
        options.number("temperature", 0, 2),
        options.number("top_p", 0, 1),
        predict if predict and predict > 0 else None,
        options.count("seed", -(2**63), 2**63),
        effort,
    )
    answer = AnswerOptions(
        constraint=_read_format(body),
        stop=stops,
        top_logprobs=0 if top_logprobs is None else max(top_logprobs, 1),
        sampling=sampling,
    )
    streams = body.flag("stream", default=True)
    return OllamaRequest(body.text("model"), (), answer, streams, hides, top_logprobs, read_extension(body))


def _read_think(body: Fields) -> tuple[bool, str]:
    """Return whether the reasoning is left out of the answer, and its effort."""
    given = body.data.get("think")
    if isinstance(given, str):
        return False, body.choice("think", EFFORTS, "")
    hides = given is not None and not body.flag("think")
    return hides, "none" if hides else ""


def _read_format(body: Fields) -> Constraint | None:
    given = body.data.get("format")
    if isinstance(given, str):
        return JsonSchema({"type": "object"}, "object") if body.choice("format", ("json", ""), "") else None
    schema = body.object("format")
    return None if schema is None else JsonSchema(schema.data)


def _read_message(item: Fields) -> Message:
    role, content = item.choice("role", ROLES, ""), item.text("content", "")
    if role == "user":
        return Message("user", (*_read_images(item), Text(content)))
    if role == "system":
        return Message("system", (Text(content),))
    if role == "tool":
        name = item.text("tool_name", item.text("name", ""))
        return Message("tool", (ToolResult(content, name, item.text("tool_call_id", "")),))
    parts: list[Part] = [Text(content)] if content else []
    for call in item.objects("tool_calls"):
        function = call.object("function")
        if function is None:
            raise invalid(call.at("function"), f"missing required parameter: {call.at('function')!r}")
        arguments = function.object("arguments")
        written = to_json({} if arguments is None else arguments.data).decode()
        parts.append(ToolCall(function.text("name"), written, call.text("id", "")))
    return Message("assistant", tuple(parts) or (Text(""),))


def _read_images(item: Fields) -> tuple[Attachment, ...]:
    files: list[Attachment] = []
    for index, image in enumerate(item.texts("images")):
        path = f"{item.at('images')}[{index}]"
        try:
            files.append(Attachment.from_bytes(b64decode(image, validate=True)))
        except ValueError:
            raise invalid(path, f"{path} is not Base64", "invalid_base64") from None
        except InputError as error:
            raise invalid(path, error.message) from None
    return tuple(files)


async def chat(request: Request) -> Response:
    """Answer a conversation."""
    most = state_of(request).options.limits.messages
    return await _answer(request, read_chat(await read_body(request), most), generates=False)


async def generate(request: Request) -> Response:
    """Answer one prompt."""
    return await _answer(request, read_generate(await read_body(request)), generates=True)


async def _answer(request: Request, asked: OllamaRequest, *, generates: bool) -> Response:
    state, caller = state_of(request), caller_of(request)
    state.runs.check_room()
    extend = extender(asked.extension, state.repository(caller), state.catalogue)
    reply = _Reply(asked, extend, generates=generates)
    if not asked.messages:
        state.catalogue.choose(asked.model)
        return json_response(reply.loaded())
    completions = await asyncio.to_thread(
        begin_answers, state, caller, asked.model, asked.messages, asked.options, asked.extension
    )
    run = start_run(request, "Ollama", completions)
    if asked.streams:
        return EventStream(reply.stream(run), lambda: run.cancel(abandon=True), NDJSON)
    results = await answers_of(request, run)
    return json_response(reply.whole(results[0]) | await extend(results))


class _Reply:
    """Writes the answer of one request: of `/api/chat` as a message, of `/api/generate` as a text."""

    def __init__(self, asked: OllamaRequest, extend: Extend, *, generates: bool) -> None:
        self._asked = asked
        self._extend = extend
        self._generates = generates
        self._started = time.perf_counter_ns()

    def loaded(self) -> dict[str, Json]:
        """Return the answer to a request without a message."""
        return self._part("") | {"done": True, "done_reason": "load"}

    def whole(self, result: TurnResult) -> dict[str, Json]:
        """Return the whole answer."""
        response = result.response
        thinking = () if response is None else response.message.thinking
        return self._part(result.text, _thought(thinking), _calls(result)) | self._end(result)

    async def stream(self, run: LiveRun) -> AsyncGenerator[bytes]:
        """Yield the lines of the answer."""
        has_text = False
        async for each in run.follow():
            match each.event:
                case ApiError():
                    yield _line(error(each.event))
                case TextDelta(text):
                    has_text = True
                    yield _line(self._part(text))
                case ThinkingDelta(text):
                    if text and not self._asked.hides_thinking:
                        yield _line(self._part("", text))
                case TurnResult():
                    if each.event.text and not has_text:
                        yield _line(self._part(each.event.text))
                    if calls := _calls(each.event):
                        yield _line(self._part("", "", calls))
                    yield _line(self._part("") | self._end(each.event) | await self._extend([each.event]))
                case _:
                    pass

    def _part(self, text: str, thinking: str = "", calls: list[Json] | None = None) -> dict[str, Json]:
        at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        head: dict[str, Json] = {"model": self._asked.model, "created_at": at}
        thought: dict[str, Json] = {"thinking": thinking} if thinking and not self._asked.hides_thinking else {}
        if self._generates:
            return head | {"response": text, **thought, "done": False}
        message: dict[str, Json] = {"role": "assistant", "content": text, **thought}
        if calls:
            message["tool_calls"] = calls
        return {**head, "message": message, "done": False}

    def _end(self, result: TurnResult) -> dict[str, Json]:
        """Write what the end of an answer has; counts of tokens are left out where they are not known."""
        response = result.response
        finish = "stop" if response is None else response.finish
        end: dict[str, Json] = {
            "done": True,
            "done_reason": DONE_REASONS.get(finish, "stop"),
            "total_duration": time.perf_counter_ns() - self._started,
        }
        if not result.spent.calls_without_usage:
            end |= {"prompt_eval_count": result.usage.input_tokens, "eval_count": result.usage.output_tokens}
        if self._asked.top_logprobs is not None:
            most = self._asked.top_logprobs
            end["logprobs"] = [_token(token, most) for token in (() if response is None else response.logprobs)]
        return end


def _thought(parts: tuple[Thinking, ...]) -> str:
    return "".join(part.text for part in parts)


def _token(token: TokenLogprob, most: int) -> Json:
    likeliest: Json = [_logprob(text, number) for text, number in token.top_logprobs[:most]]
    written = _logprob(token.token, token.logprob)
    written["top_logprobs"] = likeliest
    return written


def _logprob(token: str, number: float) -> dict[str, Json]:
    return {"token": token, "logprob": number, "bytes": [*token.encode("utf-8", "replace")]}


def _calls(result: TurnResult) -> list[Json]:
    calls = () if result.response is None else result.response.message.tool_calls
    return [
        {"id": call.id, "function": {"index": index, "name": call.name, "arguments": arguments_of(call)}}
        for index, call in enumerate(calls)
    ]


def _line(data: Json) -> bytes:
    return to_json(data) + b"\n"


async def tags(request: Request) -> Response:
    """List the models."""
    return json_response({"models": [_model(name) for name in state_of(request).catalogue.ids()]})


async def show(request: Request) -> Response:
    """Describe a model."""
    body = await read_body(request)
    body.check_names({"model", "name", "verbose"})
    state = state_of(request)
    choice = state.catalogue.choose(body.text("model", body.optional_text("name")))
    priced_model = await asyncio.to_thread(partial(state.catalogue.open, choice))
    able = priced_model.model.capabilities
    found: list[Json] = ["completion", *(["tools"] if "tools" in able else [])]
    return json_response(
        {
            "modelfile": "",
            "parameters": "",
            "template": "",
            "details": _details(),
            "model_info": {},
            "capabilities": found,
            "modified_at": EPOCH,
        }
    )


EPOCH = "1970-01-01T00:00:00Z"


def _details() -> dict[str, Json]:
    return {
        "parent_model": "", "format": "", "family": "taiwa", "families": ["taiwa"], "parameter_size": "",
        "quantization_level": "",
    }  # fmt: skip


def _model(name: str) -> Json:
    return {
        "name": name, "model": name, "modified_at": EPOCH, "size": 0, "digest": sha256(name.encode()).hexdigest(),
        "details": _details(),
    }  # fmt: skip


async def version(_: Request) -> Response:
    """Return the version of the protocol."""
    return json_response({"version": VERSION})


async def running(_: Request) -> Response:
    """List the models in memory, of which this server says nothing."""
    return json_response({"models": []})


def error(problem: ApiError) -> dict[str, Json]:
    """Write an error as Ollama does."""
    return {"error": problem.message}


wire = Wire(
    "ollama",
    (
        Route("/api/chat", chat),
        Route("/api/generate", generate),
        Route("/api/tags", tags, ("GET",)),
        Route("/api/show", show),
        Route("/api/version", version, ("GET",)),
        Route("/api/ps", running, ("GET",)),
    ),
    error,
)
