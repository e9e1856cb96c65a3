"""Requests of stateless protocols: the common part of Chat Completions, Messages and Ollama.

The history that such a client resends is matched to the nodes of the store, see `taiwa.operations.resent_history`. Every protocol
has an opt-in extension: an object `taiwa` in a request, answered by one in the response.
"""

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from taiwa.apps.catalog import load_unchanged
from taiwa.conversation.app import AnswerOptions, UnknownTurns
from taiwa.flows.program_turn import question_of
from taiwa.kernel.async_runtime import Now, make_step
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, ToolSpec
from taiwa.kernel.messages import Response as ModelResponse
from taiwa.kernel.runtime import AnyModel
from taiwa.kernel.serialization import Json, parse_json
from taiwa.kernel.serialization import to_json as to_json_bytes
from taiwa.kernel.usage_limits import currency_units
from taiwa.operations.documents import find_ask_turn
from taiwa.operations.resent_history import (
    Completion,
    CompletionOptions,
    Place,
    begin_completion,
    is_relayed,
    split_prefix,
    split_system,
)
from taiwa.operations.result_json import to_json
from taiwa.operations.traces import tokens, trace
from taiwa.server.access import LOCAL_CALLER
from taiwa.server.http_responses import ApiError, EventStream, SendNow, invalid, json_response, wait_connected
from taiwa.server.repeats import LARGE_BODY
from taiwa.server.request import Fields, ServerState, caller_of, start_run, state_of
from taiwa.server.runs import LiveRun, OnEnd
from taiwa.server.served import ServedModels
from taiwa.sessions.commit_turn import TurnResult
from taiwa.sessions.repository import Repository

T = TypeVar("T")

PASSED = frozenset({"frequency_penalty", "presence_penalty", "logit_bias"})
"""Fields that the protocols define, and that are passed on."""
UNPRICED = frozenset({"service_tier", "prediction"})
"""Hints by which a call may cost more than its tokens."""
MOST_TOOLS = 512
MOST_STOPS = 64
MOST_LOGPROBS = 20
NO_RESPONSE = ModelResponse(Message("assistant", ()))


PARTS = ("state", "trace", "masks")
"""What a request may include: the state after the turn, its calls, tools and scores, and its tokens with their masks."""
PREFIX = "taiwa:"


@dataclass(frozen=True, slots=True)
class Extension:
    """The extension of a request: `params` of the app, the parts of the answer to include, and what to do with turns of a history
    that are `unknown` here; None leaves that to the app.
    """

    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    include: tuple[str, ...] = ()
    unknown: UnknownTurns | None = None

    def write(self, results: list[TurnResult], repository: Repository, served: ServedModels) -> Json:
        """Write the positions of the turns: an object for one answer, an array for several. Reads from the store."""
        written: list[Json] = [self._write(result, repository, served) for result in results]
        return written[0] if len(written) == 1 else written

    def _write(self, result: TurnResult, repository: Repository, served: ServedModels) -> Json:
        cost = currency_units(result.spent.cost)
        written: dict[str, Json] = {
            "session": result.session,
            "node": result.node,
            "parent": result.parent,
            "delta": result.delta,
            "state_read": result.reply.state_read,
            "cost": None if cost is None else str(cost),
            "warnings": list(result.warnings),
        }
        if (turn := find_ask_turn(repository, result.node)) is not None:
            found = cast("dict[str, Json]", to_json(turn))
            written |= {name: found[name] for name in ("question", "options", "citations", "passages")}
        if (asked := question_of(result.findings)) is not None:
            options: list[Json] = [{"number": at, "label": each} for at, each in enumerate(asked.options, 1)]
            written |= {"question": asked.question, "options": options}
        if "state" in self.include:
            written["state"] = dict(repository.checkout(result.node).state)
        if "trace" in self.include:
            found = cast("dict[str, Json]", to_json(trace(repository, result.node)))
            written["trace"] = {name: part for name, part in found.items() if name != "node"}
        if "masks" in self.include:
            listed = cast("dict[str, Json]", to_json(tokens(repository, result.node, served.model_named)))
            written["masks"] = listed["answers"]
        return written


def read_extension(body: Fields, others: Collection[str] = ()) -> Extension | None:
    """Read the object `taiwa` of a request and the parts that `include` names, such as `taiwa:state`; None without either.

    `others` are the protocol's own names for `include`.

    Raises:
        ApiError: a field of it is unknown or has a wrong type.
    """
    own = tuple(PREFIX + name for name in PARTS)
    parts = tuple(name.removeprefix(PREFIX) for name in _included(body, (*others, *own)) if name in own)
    given = body.object("taiwa")
    if given is None:
        return Extension(include=parts) if parts else None
    given.check_names({"params", "person", "include", "unknown_turns"})
    unknown = None
    if given.optional_text("unknown_turns") is not None:
        unknown = cast("UnknownTurns", given.choice("unknown_turns", get_args(UnknownTurns), ""))
    return Extension(read_params(given), (*parts, *_included(given, PARTS)), unknown)


def _included(body: Fields, names: Collection[str]) -> tuple[str, ...]:
    found, path = body.texts("include"), body.at("include")
    unknown = next((name for name in found if name not in names), None)
    if unknown is not None:
        raise invalid(path, f"unknown {path} {unknown[:80]!r}; choose from {', '.join(names)}", "invalid_value")
    return found


def read_params(given: Fields) -> dict[str, Json]:
    """Read the parameters of an app, and the user, whose profile is the parameter `user`."""
    params, person = given.object("params"), given.optional_text("person")
    return ({} if params is None else params.data) | ({} if person is None else {"user": person})


Extend: TypeAlias = Callable[[list[TurnResult]], Awaitable[dict[str, Json]]]
"""Returns the extension fields that a request asked for."""


def unasked(completions: Sequence[Completion], results: Sequence[TurnResult]) -> dict[str, Json]:
    """Return the object `taiwa` of a response that was not asked for it: the warnings, if its history had unknown turns."""
    inputs = (each.turn_input for each in completions if each.turn_input is not None)
    if not any(each.resent.warnings or each.resent.unknown for each in inputs):
        return {}
    return {"taiwa": {"warnings": [*dict.fromkeys(warning for each in results for warning in each.warnings)]}}


def extender(
    extension: Extension | None, repository: Repository, served: ServedModels, completions: Sequence[Completion]
) -> Extend:
    """Return a function that writes the object `taiwa` of a response, as requested."""

    async def extend(results: list[TurnResult]) -> dict[str, Json]:
        if extension is None:
            return unasked(completions, results)
        return {"taiwa": await asyncio.to_thread(extension.write, results, repository, served)}

    return extend


class PassedFields(NamedTuple):
    """Fields for the model's server: those that it must take, and hints, which are omitted if it does not take them."""

    fields: Mapping[str, Json]
    hints: Mapping[str, Json]


def pass_on(fields: Mapping[str, Json], body: Fields, hints: Collection[str]) -> PassedFields:
    """Return the fields to pass on, with the hints of these names that a body has."""
    return PassedFields(fields, {name: hint for name in hints if (hint := body.data.get(name)) is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRequest:
    """A parsed request. `messages` follow the leading system text, which is in `options`.

    With `prefills` a last message of the assistant is the beginning of the answer. Otherwise it is that only for a model that
    can continue it, unless the answer has a format of its own: the model then writes after it.
    """

    model: str
    messages: tuple[Message, ...]
    options: AnswerOptions
    streams: bool
    extension: Extension | None
    choices: int = 1
    others: tuple[tuple[Message, ...], ...] = ()
    """The messages of further conversations, each with as many answers."""
    prefills: bool = False
    passed: PassedFields


class Reply(Protocol):
    """Writes the answers of one request in the format of its protocol."""

    protocol: str
    """The display name of the protocol."""

    def whole(self, results: list[TurnResult]) -> dict[str, Json]:
        """Return the whole response."""
        ...

    def stream(self, run: LiveRun, extend: Extend, send_now: SendNow) -> AsyncGenerator[bytes]:
        """Yield the parts of the response, with the requested extensions; pieces of text are sent immediately."""
        ...


def read_history(
    body: Fields, read: Callable[[Fields], tuple[Message, ...]], most: int
) -> tuple[str, tuple[Message, ...]]:
    """Split the messages of a request into the leading system text and the rest; system texts alone are what is answered.

    Raises:
        ApiError: there are too many, or none.
    """
    if len(body.items("messages")) > most:
        raise invalid("messages", f"there are more than {most:,} messages", "too_many_messages")
    messages = read(body)
    if not messages:
        raise invalid("messages", "messages must have at least one message", "empty_array")
    system, said = split_system(messages)
    return (system, said) if said else ("", messages)


def append_message(messages: list[Message], message: Message) -> None:
    """Add a message; consecutive texts and calls of the assistant are one answer."""
    if messages and messages[-1].role == message.role == "assistant":
        message = Message("assistant", (*messages.pop().parts, *message.parts))
    messages.append(message)


def read_stops(body: Fields, name: str) -> tuple[str, ...]:
    """Read the stop strings; empty and repeated ones are dropped."""
    stops = tuple(dict.fromkeys(stop for stop in body.texts(name, or_one=True) if stop))
    if len(stops) > MOST_STOPS:
        raise invalid(body.at(name), f"there are more than {MOST_STOPS} stop strings")
    return stops


def read_base64(data: str, path: str, name: str = "") -> Attachment:
    """Read a file in Base64.

    Raises:
        ApiError: it is not Base64, or a file type that no model reads.
    """
    try:
        return Attachment.from_bytes(b64decode(data, validate=True), name)
    except ValueError:
        raise invalid(path, f"{path} is not Base64", "invalid_base64") from None
    except InputError as error:
        raise invalid(path, error.message) from None


def read_penalties(body: Fields) -> dict[str, Json]:
    """Read the repetition penalties that are not zero, as fields for the model's server."""
    names = "frequency_penalty", "presence_penalty"
    return {name: penalty for name in names if (penalty := body.number(name, -2, 2))}


def passed_on(asked: AnswerRequest, model: AnyModel, repository: Repository, *, strict: bool) -> AnswerOptions:
    """Return the options of a request, with the fields that the model's server takes.

    A field that is not known here may name another model, address or price (`models`, `api_base`, `best_of`), so named callers cannot
    send it, nor anybody under a limit on cost, which covers no other price either.

    Raises:
        ApiError: it does not take a field that changes the answer.
    """
    fields, hints = asked.passed
    if not (fields or hints):
        return asked.options
    takes: Callable[[str], bool] = getattr(getattr(model, "codec", None), "takes", lambda _: False)
    trusted = repository.store.owner == LOCAL_CALLER and not repository.limits_cost
    for name in fields:
        if name not in PASSED and (strict or not takes(name)):
            raise Fields({}).unknown(name)
        if name not in PASSED and not trusted:
            only = "only the holder of the server's token may send it, and not under a limit on cost"
            raise Fields({}).error(name, f"is not defined by the protocol; {only}", "unknown_parameter")
        if not takes(name):
            raise Fields({}).error(name, "is not supported by this model", "unsupported_parameter")
    unpriced = UNPRICED if repository.limits_cost else frozenset[str]()
    extra = {**{name: hint for name, hint in hints.items() if takes(name) and name not in unpriced}, **fields}
    if not extra:
        return asked.options
    return replace(asked.options, sampling=replace(asked.options.sampling, extra=extra))


LONGEST_REMEMBERED = 1 << 17
"""The most bytes of tools that are remembered."""
ReadTools: TypeAlias = Callable[[Fields], tuple[ToolSpec, ...]]


def remembered(read: ReadTools) -> ReadTools:
    """Return a function that reads the tools of a body, and remembers those of some bodies: clients send them with every request."""

    @lru_cache(maxsize=32)
    def read_written(tools: bytes) -> tuple[ToolSpec, ...]:
        return read(Fields({"tools": parse_json(tools)}))

    def read_tools(body: Fields) -> tuple[ToolSpec, ...]:
        try:
            written = to_json_bytes(body.data.get("tools"))
        except InputError:  # text or a number that JSON does not have
            return read(body)
        return read_written(written) if len(written) <= LONGEST_REMEMBERED else read(body)

    return read_tools


def unsupported_tool(tool: Fields, usable: str) -> ApiError:
    """Return the error of an unsupported tool type."""
    return tool.error("type", f"{tool.text('type')[:40]!r} is not supported; use {usable}", "unsupported_parameter")


def checked_tools(tools: list[ToolSpec], path: str) -> tuple[ToolSpec, ...]:
    """Check the number and the names of tools.

    Raises:
        ApiError: there are too many, or two with the same name.
    """
    names = [tool.name for tool in tools]
    if len(tools) > MOST_TOOLS:
        raise invalid(path, f"there are more than {MOST_TOOLS} tools")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or "" in names:
        raise invalid(path, f"two tools are named {twice!r}" if twice else "a tool has no name")
    return tuple(tools)


def checked_choice(name: str, tools: Collection[ToolSpec]) -> str:
    """Check that `tool_choice` names one of the tools."""
    if name not in {tool.name for tool in tools}:
        raise invalid("tool_choice", f"tool_choice names {name[:64]!r}, which is not one of tools", "invalid_value")
    return name


async def answer(
    request: Request,
    asked: AnswerRequest,
    reply: Reply,
    media_type: bytes = b"",
    after: Place | None = None,
    on_end: OnEnd | None = None,
) -> Response:
    """Answer a request, complete or as a stream; the answer is cancelled if the client disconnects.

    `after` is the preceding node, if the client keeps that instead of its history.
    """
    state, caller = state_of(request), caller_of(request)

    async def start() -> _Answering:
        completions = await make_step(partial(_begin, state, caller, asked, after), _now(request, asked))
        return _Answering(start_run(request, reply.protocol, completions, on_end), reply)

    attempt = await state.repeats.attempt(request, start)
    # A repeated request gets the answer of the first one, whatever is in its head.
    run, reply = attempt.started.result()
    extend = extender(asked.extension, state.repository(caller), state.served, run.completions)
    if asked.streams:
        # A call that fails has a status, as without a stream.
        await wait_connected(request.receive, run.begun(), attempt.leave)
        # A copy, because a repeat is streamed by the same reply from its beginning.
        return EventStream(partial(copy(reply).stream, run, extend), partial(attempt.leave, at_once=True), media_type)
    results = await wait_connected(request.receive, run.results(), attempt.leave)
    return json_response(reply.whole(results) | await extend(results))


def _now(request: Request, asked: AnswerRequest) -> Now | None:
    """Return how the beginning of an answer can be made at once: not that of a large request, or of an app that opens documents."""
    state = state_of(request)
    if (
        request.state.size > LARGE_BODY
        or asked.others
        or not is_relayed(load_unchanged(state.served.choose(asked.model).app))
    ):
        return None
    return state.repository(caller_of(request)).store.transaction_now


class _Answering(NamedTuple):
    """The run of a request, and what writes its answer."""

    run: LiveRun
    reply: Reply


def _begin(state: ServerState, caller: str, asked: AnswerRequest, after: Place | None) -> list[Completion]:
    """Find the position of each answer to a resent history; those after the first are branches."""
    choice = state.served.choose(asked.model)
    extension = asked.extension or Extension()
    repository, priced_model = state.repository(caller), state.served.open(choice)
    constraint, model = asked.options.parts.constraint, priced_model.model
    prefills = asked.prefills or (constraint is None and "prefix" in model.capabilities)
    given = passed_on(asked, model, repository, strict=state.options.strict_fields)
    choices = [given] * asked.choices
    if asked.choices > 1 and (seed := given.sampling.seed) is not None:  # one seed would give one answer
        each = (replace(given.sampling, seed=seed + number) for number in range(asked.choices))
        choices = [replace(given, sampling=own) for own in each]
    turns = replace(state.turns, whole=not asked.streams)
    begun: list[Completion] = []
    for said in (asked.messages, *asked.others):
        messages, prefix = split_prefix(said) if prefills else (said, "")
        for own in choices:
            options = CompletionOptions(choice.app, messages, extension.params, own, prefix, extension.unknown)
            begun.append(begin_completion(repository, priced_model, options, turns, after))
    return begun


def response_of(result: TurnResult) -> ModelResponse:
    """Return the last answer of the model in a turn; an empty one for a turn without a call."""
    return result.reply.response or NO_RESPONSE


def write_logprobs(response: ModelResponse, most: int) -> list[Json]:
    """Write the log probabilities of the tokens of a response, with those of the most likely alternatives."""
    return [
        {
            **_write_logprob(token.token, token.logprob),
            "top_logprobs": [_write_logprob(*each) for each in token.top_logprobs[:most]],
        }
        for token in response.decoding.logprobs
    ]


def _write_logprob(token: str, logprob: float) -> dict[str, Json]:
    return {"token": token, "logprob": logprob, "bytes": [*token.encode("utf-8", "replace")]}
