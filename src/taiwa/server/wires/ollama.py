"""Ollama (`/api/chat`, `/api/generate`, `/api/embed`, `/api/tags`, `/api/show`, `/api/version`): JSON lines, streamed unless `stream` is false."""

import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from taiwa.conversation.app import AnswerOptions, RequestParts
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.messages import (
    Constraint,
    JsonSchema,
    Message,
    Part,
    Sampling,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolResult,
)
from taiwa.kernel.serialization import Json, to_json
from taiwa.server.http_responses import ApiError, SendNow
from taiwa.server.request import Fields, ServerState, caller_of, interpret, read_body, state_of
from taiwa.server.runs import LiveRun, PublishedEvent
from taiwa.server.wire_interface import DELETE, GET, Route, Wire
from taiwa.server.wires.answer_request import (
    MOST_LOGPROBS,
    AnswerRequest,
    Extend,
    answer,
    pass_on,
    read_base64,
    read_extension,
    read_history,
    read_penalties,
    read_stops,
    response_of,
    write_logprobs,
)
from taiwa.server.wires.chat_completions import ANY_OBJECT, read_tools
from taiwa.server.wires.embeddings import tokens_of, vectors_of
from taiwa.sessions.commit_turn import TurnResult

VERSION = "0.12.0"
"""The implemented version of the protocol; clients ask for it before they use newer features."""
ROLES = ("system", "user", "assistant", "tool")
SHARED = frozenset("model stream format options keep_alive think logprobs top_logprobs include taiwa".split())
CHAT = SHARED | {"messages", "tools", "truncate", "shift"}
GENERATE = SHARED | {"prompt", "system", "images", "raw", "truncate", "shift"}
SHOW = frozenset("model name verbose system template options".split())
EMBED = frozenset({"model", "input", "truncate", "dimensions", "options", "keep_alive"})
UNSUPPORTED = frozenset({"suffix", "template", "context"})
OPTIONS = frozenset(
    """temperature top_p seed num_predict stop top_k min_p typical_p tfs_z repeat_last_n repeat_penalty mirostat mirostat_tau
    mirostat_eta presence_penalty frequency_penalty penalize_newline num_keep num_ctx num_batch num_gpu main_gpu low_vram f16_kv
    logits_all vocab_only use_mmap
    use_mlock embedding_only numa num_thread""".split()
)
"""Fields that control loading are not passed on; docs/server.md lists them."""
HINTS = frozenset("top_k min_p typical_p repeat_penalty num_ctx".split())
"""Options that are passed on to servers that take them."""
EFFORTS = ("low", "medium", "high", "max")
UNLOADING = (0, "0", "0s", "0m", "0h")
"""Values of `keep_alive` that ask to unload a model; the response says so, but the model stays as it is."""
NDJSON = b"application/x-ndjson"
DONE_REASONS: Mapping[str, str] = {"length": "length", "interrupted": "length", "repetition": "length"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaRequest(AnswerRequest):
    """A parsed request; without messages it only asks whether the model is available."""

    hides_thinking: bool
    top_logprobs: int | None
    unloads: bool


def read_chat(body: Fields, most_messages: int) -> OllamaRequest:
    """Read a request of `/api/chat`.

    Raises:
        ApiError: a field is missing, unknown, or has a wrong type or value.
    """
    body.check_names(CHAT, UNSUPPORTED)
    asked = _read_shared(body)
    if not body.items("messages"):
        return asked
    system, messages = read_history(
        body, lambda body: tuple(map(_read_message, body.objects("messages"))), most_messages
    )
    parts = replace(asked.options.parts, client_tools=read_tools(body))
    options = replace(asked.options, system=system or None, parts=parts)
    return replace(asked, messages=messages, options=options)


def read_generate(body: Fields) -> OllamaRequest:
    """Read a request of `/api/generate`: one message without a history.

    Raises:
        ApiError: as `read_chat`.
    """
    body.check_names(GENERATE, UNSUPPORTED)
    if body.flag("raw"):
        problem = "is not supported by this server: prompts are written by the chat template"
        raise body.error("raw", problem, "unsupported_parameter")
    asked = _read_shared(body)
    prompt, files = body.text("prompt", ""), _read_images(body)
    if not prompt and not files:
        return asked
    options = replace(asked.options, system=body.text("system", "") or None)
    return replace(asked, messages=(Message("user", (*files, Text(prompt))),), options=options)


def _read_shared(body: Fields) -> OllamaRequest:
    options = body.object("options") or Fields({}, "options")
    options.check_names(OPTIONS)
    predict = options.count("num_predict", -2)
    hides, effort = _read_think(body)
    top_logprobs = (body.count("top_logprobs", 0, MOST_LOGPROBS) or 0) if body.flag("logprobs") else None
    sampling = Sampling(
        options.number("temperature", 0, 2),
        options.number("top_p", 0, 1),
        predict if predict and predict > 0 else None,
        options.count("seed", -(2**63), 2**63),
        effort,
    )
    given = AnswerOptions(
        parts=RequestParts(
            constraint=_read_format(body),
            stop=read_stops(options, "stop"),
            top_logprobs=0 if top_logprobs is None else max(top_logprobs, 1),
        ),
        sampling=sampling,
    )
    return OllamaRequest(
        model=body.text("model"),
        messages=(),
        options=given,
        streams=body.flag("stream", default=True),
        hides_thinking=hides,
        top_logprobs=top_logprobs,
        unloads=body.data.get("keep_alive") in UNLOADING,
        passed=pass_on(read_penalties(options), options, HINTS),
        extension=read_extension(body),
    )


def _read_think(body: Fields) -> tuple[bool, str]:
    """Return whether the reasoning is omitted from the answer, and its effort."""
    given = body.data.get("think")
    if isinstance(given, str):
        return False, body.choice("think", EFFORTS, "")
    hides = given is not None and not body.flag("think")
    return hides, "none" if hides else ""


def _read_format(body: Fields) -> Constraint | None:
    given = body.data.get("format")
    if isinstance(given, str):
        return ANY_OBJECT if body.choice("format", ("json", ""), "") else None
    return None if given is None else JsonSchema(body.schema("format"))


def _read_message(item: Fields) -> Message:
    role, content = item.choice("role", ROLES, ""), item.text("content", "")
    if role == "user":
        return Message("user", (*_read_images(item), Text(content)))
    if role == "system":
        return Message("system", (Text(content),))
    if role == "tool":
        name = item.text("tool_name", item.text("name", ""))
        result = ToolResult(content, name, item.text("tool_call_id", ""), attachments=_read_images(item))
        return Message("tool", (result,))
    parts: list[Part] = [Text(content)] if content else []
    for call in item.objects("tool_calls"):
        function = call.required("function")
        arguments = function.object("arguments")
        written = to_json({} if arguments is None else arguments.data).decode()
        parts.append(ToolCall(function.text("name"), written, call.text("id", "")))
    return Message("assistant", tuple(parts) or (Text(""),))


def _read_images(item: Fields) -> tuple[Attachment, ...]:
    return tuple(
        read_base64(image, f"{item.at('images')}[{index}]") for index, image in enumerate(item.texts("images"))
    )


async def chat(request: Request) -> "Response | Json":
    """Answer a conversation."""
    most = state_of(request).options.limits.messages
    read = partial(read_chat, await read_body(request), most)
    return await _answer(request, await interpret(request, read), generates=False)


async def generate(request: Request) -> "Response | Json":
    """Answer one prompt."""
    read = partial(read_generate, await read_body(request))
    return await _answer(request, await interpret(request, read), generates=True)


async def _answer(request: Request, asked: OllamaRequest, *, generates: bool) -> "Response | Json":
    state = state_of(request)
    state.runs.check_room(caller_of(request))
    reply = _Reply(asked, generates=generates)
    asked = replace(asked, model=_untagged(state, asked.model))
    if not asked.messages:
        state.served.choose(asked.model)
        return reply.loaded()
    return await answer(request, asked, reply, NDJSON)


def _untagged(state: ServerState, name: str) -> str:
    """Return the served name of a model; in this protocol, `latest` is the tag of a name without one."""
    bare = name.removesuffix(":latest")
    names = (*state.served.ids(), *(state.embeddings.names if state.embeddings is not None else ()))
    return bare if bare in names and name not in names else name


class _Reply:
    """Writes the answer of one request: for `/api/chat` as a message, for `/api/generate` as a text."""

    protocol = "Ollama"

    def __init__(self, asked: OllamaRequest, *, generates: bool) -> None:
        self._asked = asked
        self._generates = generates
        self._started = time.perf_counter_ns()

    def loaded(self) -> dict[str, Json]:
        """Return the response to a request without a message."""
        return self._part("") | {"done": True, "done_reason": "unload" if self._asked.unloads else "load"}

    def whole(self, results: list[TurnResult]) -> dict[str, Json]:
        """Return the complete answer."""
        (result,) = results
        thinking = "".join(part.text for part in response_of(result).message.thinking)
        return self._part(result.continuation, thinking, _calls(result)) | self._end(result)

    async def stream(self, run: LiveRun, extend: Extend, send_now: SendNow) -> AsyncGenerator[bytes]:
        """Yield the lines of the answer."""
        has_text = False

        def take(_: int, event: PublishedEvent) -> bool:
            return has_text and isinstance(event, TextDelta) and send_now(_line(self._part(event.text)))

        async for each in run.follow(take=take):
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
                    yield _line(self._part("") | self._end(each.event) | await extend([each.event]))
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
        """Write the final members of an answer; unknown token counts are omitted."""
        response = response_of(result)
        end: dict[str, Json] = {
            "done": True,
            "done_reason": DONE_REASONS.get(response.finish, "stop"),
            "total_duration": time.perf_counter_ns() - self._started,
        }
        if not result.spent.calls_without_usage:
            end |= {"prompt_eval_count": result.usage.input_tokens, "eval_count": result.usage.output_tokens}
        if self._asked.top_logprobs is not None and response.decoding.logprobs:
            end["logprobs"] = write_logprobs(response, self._asked.top_logprobs)
        return end


def _calls(result: TurnResult) -> list[Json]:
    return [
        {"id": call.id, "function": {"index": index, "name": call.name, "arguments": call.arguments_object()}}
        for index, call in enumerate(response_of(result).message.tool_calls)
    ]


def _line(data: Json) -> bytes:
    return to_json(data) + b"\n"


async def tags(request: Request) -> Json:
    """List the models."""
    return {"models": [_model(name) for name in state_of(request).served.ids()]}


def show(request: Request, body: Fields) -> Json:
    """Describe a model."""
    state = state_of(request)
    name = body.text("model", "") or body.text("name")
    able = state.served.open(state.served.choose(_untagged(state, name))).model.capabilities
    found: list[Json] = ["completion", *(["tools"] if "tools" in able else [])]
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _details(),
        "model_info": {},
        "capabilities": found,
        "modified_at": EPOCH,
    }


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


async def version(_: Request) -> Json:
    """Return the version of the protocol."""
    return {"version": VERSION}


async def running(_: Request) -> Json:
    """List the models in memory: none, as this server does not report them."""
    return {"models": []}


def embed(request: Request, body: Fields) -> Json:
    """Return the vectors of some texts."""
    started = time.perf_counter_ns()
    texts = body.texts("input", or_one=True)
    name, dimensions = body.text("model"), body.count("dimensions", 1)
    vectors = [*vectors_of(request, _untagged(state_of(request), name), texts, dimensions)] if texts else []
    end: dict[str, Json] = {"total_duration": time.perf_counter_ns() - started, "prompt_eval_count": tokens_of(texts)}
    return {"model": name, "embeddings": [[*map(float, row)] for row in vectors], **end}


def embed_prompt(request: Request, body: Fields) -> Json:
    """Return the vector of one text, for older clients."""
    (row,) = vectors_of(request, _untagged(state_of(request), body.text("model")), (body.text("prompt"),))
    return {"embedding": [*map(float, row)]}


async def manage(request: Request) -> Json:
    """Refuse requests that would change the models of the server."""
    raise ApiError(
        403,
        f"{request.method} {request.url.path} is refused: name the models of this server with `taiwa serve -m`",
    )


def error(problem: ApiError) -> dict[str, Json]:
    """Write an error as Ollama does."""
    return {"error": problem.message}


wire = Wire(
    "ollama",
    (
        Route("/api/chat", chat, untyped=True, repeats=True),
        Route("/api/generate", generate, untyped=True, repeats=True),
        Route("/api/embed", embed, untyped=True, body=EMBED),
        Route("/api/embeddings", embed_prompt, untyped=True, body=("model", "prompt", "options", "keep_alive")),
        Route("/api/tags", tags, GET),
        Route("/api/show", show, untyped=True, body=SHOW),
        Route("/api/version", version, GET),
        Route("/api/ps", running, GET),
        *(Route(f"/api/{name}", manage, untyped=True) for name in ("pull", "push", "create", "copy")),
        Route("/api/delete", manage, DELETE, untyped=True),
    ),
    error,
)
