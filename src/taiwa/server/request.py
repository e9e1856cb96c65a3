"""A request as endpoints see it: server state, caller, and the fields of its JSON body; errors name a field by its path."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeVar

from starlette.requests import Request

from taiwa.i18n import LANGUAGES
from taiwa.json_schema import check_bounds
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, parse_json, to_json
from taiwa.kernel.wording import Wording
from taiwa.operations.resent_history import Completion
from taiwa.server.access import Access, BodyLimits, Repositories, ServerOptions, body_too_large
from taiwa.server.conversation_turns import FollowedRuns
from taiwa.server.http_responses import ApiError, invalid, page_of
from taiwa.server.indexing import Indexing
from taiwa.server.page.transcript import CountBreaks, count_breaks
from taiwa.server.repeats import KEY_SECONDS, LARGE_BODY, Repeats, attempt_of, request_key
from taiwa.server.runs import LiveRun, OnEnd, Runs
from taiwa.server.served import EmbeddingModel, ServedModels
from taiwa.server.shared_store import Sharing
from taiwa.sessions.commit_turn import TurnOptions
from taiwa.sessions.repository import Repository

T = TypeVar("T")
KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "an integer", float: "a number"}

NUMBER = re.compile("-?[0-9]{1,20}")
CONTROL = re.compile("[\x00-\x1f\x7f]")
IS_NAME = re.compile(r"(?:^|_)(?:name|id)$|Id$")
"""Names of fields whose texts are names or ids."""
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escape in JSON of half a character, which may or may not have its other half."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an object. `null` counts as missing, except under an unknown name. Every method raises `ApiError` (400) for a value of another type."""

    data: dict[str, Json]
    path: str = ""

    @classmethod
    def of(cls, data: Json, path: str = "") -> "Fields":
        """Read an object."""
        if not isinstance(data, dict):
            raise invalid(path or None, f"{path or 'the body'} must be an object, got {kind_of(data)}", "invalid_type")
        return cls(data, path)

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def error(self, name: str, problem: str, code: str | None = None) -> ApiError:
        """Return the error of a field, whose path begins the message."""
        return invalid(self.at(name), f"{self.at(name)} {problem}", code)

    def missing(self, name: str) -> ApiError:
        """Return the error of a missing field."""
        return invalid(self.at(name), f"missing required parameter: {self.at(name)!r}", "missing_required_parameter")

    def check_names(self, known: Collection[str], unsupported: Collection[str] = ()) -> None:
        """Refuse fields that the protocol does not define, and non-empty ones that this server does not support."""
        for name in self.others(known, unsupported):
            raise self.unknown(name)

    def unknown(self, name: str) -> ApiError:
        """Return the error of a field that the protocol does not define."""
        return invalid(self.at(name), f"unknown parameter: {self.at(name)[:80]!r}", "unknown_parameter")

    def others(self, known: Collection[str], unsupported: Collection[str] = ()) -> dict[str, Json]:
        """Return the fields besides the known ones; non-empty ones that this server does not support are refused."""
        found: dict[str, Json] = {}
        for name, value in self.data.items():
            if name in known:
                continue
            if name not in unsupported:
                found[name] = value
            elif value not in (None, "", []):
                raise self.error(name, "is not supported by this server", "unsupported_parameter")
        return found

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string; without a default it is required."""
        return str(self._read(name, str, default))

    def optional_text(self, name: str) -> str | None:
        """Return a string, or None."""
        value = self.data.get(name)
        return None if value is None else self.text(name)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean."""
        return bool(self._read(name, bool, default))

    def count(self, name: str, least: int = 0, most: int = 2**40) -> int | None:
        """Return an integer within bounds, or None."""
        value = self.data.get(name)
        if value is None:
            return None
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, (bool, str, list, dict)) or not whole:
            raise self._wrong(name, int)
        return int(self._within(name, value, least, most))

    def number(self, name: str, least: float, most: float) -> float | None:
        """Return a number within bounds, or None."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(name, float)
        return float(self._within(name, value, least, most))

    def _within(self, name: str, value: float, least: float, most: float) -> float:
        if not least <= value <= most:
            at, got = self.at(name), str(value)[:40]
            raise invalid(at, Wording("{name} must be from {least} to {most}, got {value}", name=at, least=least, most=most, value=got), "invalid_value")  # fmt: skip
        return value

    def object(self, name: str) -> "Fields | None":
        """Return an object, or None."""
        value = self.data.get(name)
        return None if value is None else Fields.of(value, self.at(name))

    def required(self, name: str) -> "Fields":
        """Return a required object."""
        found = self.object(name)
        if found is None:
            raise self.missing(name)
        return found

    def schema(self, name: str) -> dict[str, Json]:
        """Return a required object that is a JSON Schema: it refers to nothing outside, and its size and depth are bounded."""
        found = self.required(name)
        if problem := _excess(found.data):
            raise invalid(found.path, f"{found.path}: {problem.removeprefix('schema: ')}", "invalid_value")
        return found.data

    def items(self, name: str) -> list[Json]:
        """Return an array; an empty one if the field is missing."""
        value = self.data.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, list)
        return value

    def objects(self, name: str) -> Iterator["Fields"]:
        """Yield the objects of an array."""
        for index, item in enumerate(self.items(name)):
            yield Fields.of(item, f"{self.at(name)}[{index}]")

    def texts(self, name: str, *, or_one: bool = False) -> tuple[str, ...]:
        """Return the strings of an array, `or_one` string that stands for it."""
        value = self.data.get(name)
        if or_one and isinstance(value, str):
            return (value,)
        items = self.items(name)
        for index, item in enumerate(items):
            if not isinstance(item, str):
                path = f"{self.at(name)}[{index}]"
                raise invalid(path, f"{path} must be a string, got {kind_of(item)}", "invalid_type")
        return tuple(map(str, items))

    def choice(self, name: str, options: Collection[str], default: str) -> str:
        """Return one of some words; with the default "" it is required."""
        found = self.text(name, default or None)
        if found not in options:
            listed = ", ".join(options)
            raise invalid(
                self.at(name), f"unknown {self.at(name)} {found[:40]!r}; choose one of {listed}", "invalid_value"
            )
        return found

    def _read(self, name: str, kind: type[Any], default: Any) -> Any:  # noqa: ANN401  (checked right here)
        value = self.data.get(name)
        if value is None:
            if default is None:
                raise self.missing(name)
            return default
        if not isinstance(value, kind):
            raise self._wrong(name, kind)
        if kind is str and IS_NAME.search(name) and CONTROL.search(value):
            raise self.error(name, "must not contain control characters", "invalid_value")
        return value

    def _wrong(self, name: str, kind: type[Any]) -> Exception:
        got = kind_of(self.data.get(name))
        return self.error(name, f"must be {KINDS[kind]}, got {got}", "invalid_type")


LONGEST_CACHED = 20_000
"""The longest schema, in bytes, whose check is remembered: clients send their tools with every request."""


def _excess(schema: dict[str, Json]) -> str:
    """Return what exceeds the bounds of schemas, "" if nothing does."""
    try:
        written = to_json(schema)
    except InputError:  # text or a number that JSON does not have
        return _find_excess(schema)
    return _excess_of(written) if len(written) <= LONGEST_CACHED else _find_excess(schema)


@lru_cache(maxsize=1024)
def _excess_of(written: bytes) -> str:
    data = parse_json(written)
    return _find_excess(data) if isinstance(data, dict) else ""


def _find_excess(schema: dict[str, Json]) -> str:
    try:
        check_bounds(schema)
    except InputError as error:
        return error.message
    return ""


def kind_of(value: Json) -> str:
    """Name the JSON type of a value."""
    return "null" if value is None else KINDS[type(value)]


DEPLOYMENT_KEY = "taiwa.deployment"
"""The key in the scope of a request whose path names its model."""
LANGUAGE_COOKIE = "taiwa-language"
PAGE_HEADER = "taiwa-page"
"""Sent by the scripts of the page, which show messages to people; messages to other clients are in English."""
MOST_COUNTED = 4096
"""Conversations whose prompt cache breaks are remembered."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state available to endpoints: `request.app.state.server`."""

    options: ServerOptions
    repositories: Repositories
    served: ServedModels
    access: Access
    runs: Runs
    indexing: Indexing
    sharing: Sharing
    followed: FollowedRuns
    embeddings: EmbeddingModel | None = None
    live: dict[str, Any] = field(default_factory=dict[str, Any], init=False)
    """Objects that wires keep while they are written, by id."""
    repeats: Repeats = field(default_factory=Repeats, init=False)
    count_breaks: CountBreaks = field(default_factory=lambda: lru_cache(MOST_COUNTED)(count_breaks), init=False)

    @property
    def turns(self) -> TurnOptions:
        """The options of the turns of all conversations."""
        approve = self.options.approve
        return TurnOptions(approve=None if approve == "ask" else approve)

    def repository(self, caller: str) -> Repository:
        """Return the conversations of a caller, isolated from those of others."""
        return self.repositories.of(caller)


PRODUCT = re.compile(r"[!-~]+(?: [0-9][!-~]*)?")
LONGEST_CLIENT = 60


def start_run(
    request: Request,
    protocol: str,
    completions: Sequence[Completion],
    on_end: OnEnd | None = None,
    name: str = "",
    *,
    repeats: bool = False,
) -> LiveRun:
    """Start the answers of a client of a protocol; the page shows them while they are written.

    The store finds their runs again by the attempt of the request, or without one by a name, which the request `repeats`.

    Raises:
        ApiError: as `Runs.start`.
    """
    found = PRODUCT.match(request.headers.get("user-agent", ""))
    product = found[0][:LONGEST_CLIENT] if found else ""
    client = f"{product} · {protocol}" if product else protocol
    key = request_key(request)
    seconds = KEY_SECONDS if repeats else key.repeats_seconds
    named = [
        each.by_client(client, attempt_of(key.attempt or name, number), seconds)
        for number, each in enumerate(completions)
    ]
    return watched_run(state_of(request), caller_of(request), client, named, on_end)


def watched_run(
    state: ServerState, caller: str, client: str, completions: Sequence[Completion], on_end: OnEnd | None = None
) -> LiveRun:
    """Like `start_run`, with the client given by name."""
    run = state.runs.start(caller, completions, on_end)
    state.followed.watch(caller, run, state.runs, client)
    return run


def state_of(request: Request) -> ServerState:
    """Return the server state of a request."""
    state: ServerState = request.app.state.server
    return state


def caller_of(request: Request) -> str:
    """Return the caller of a request; "" is the holder of the server's token."""
    return str(request.scope["caller"])


def language_of(request: Request) -> str:
    """Return the language of a browser: the chosen one, else its first supported one.

    >>> language_of(Request({"type": "http", "headers": [(b"accept-language", b"fr, ja-JP;q=0.8")]}))
    'ja'
    """
    wanted = [request.cookies.get(LANGUAGE_COOKIE, ""), *request.headers.get("accept-language", "").split(",")]
    short = (each.strip()[:2].lower() for each in wanted)
    return next((each for each in short if each in LANGUAGES), "en")


def repository_of(request: Request) -> Repository:
    """Return the conversations of the caller of a request."""
    return state_of(request).repository(caller_of(request))


def name_of(request: Request, part: str = "name") -> str:
    """Return a name from the path of a request."""
    return str(request.path_params[part])


def query_number(request: Request, name: str, default: int, least: int, most: int) -> int:
    """Return an integer from the query.

    Raises:
        ApiError: it is not an integer, or out of bounds.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    number = int(text) if NUMBER.fullmatch(text) else None
    if number is None or not least <= number <= most:
        raise invalid(name, f"{name} must be from {least} to {most}", "invalid_value")
    return number


def page_for(request: Request, items: list[Json], most: int = 100) -> Json:
    """Return the requested page of a list.

    Raises:
        ApiError: its limit or order is invalid, or it begins after an item that does not exist.
    """
    query = request.query_params
    limit, order = query_number(request, "limit", 20, 1, most), query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid("order", "order must be asc or desc", "invalid_value")
    return page_of(items, query.get("after", ""), limit, newest_first=order == "desc")


async def body_parts(request: Request, most: BodyLimits) -> AsyncGenerator[bytes]:
    """Yield the body of a request.

    Raises:
        ApiError: it is too large, or arrives too slowly.
    """
    size = 0
    try:
        async with asyncio.timeout(most.seconds):
            async for part in request.stream():
                size += len(part)
                if size > most.size:
                    raise body_too_large(most.size)
                yield part
    except TimeoutError:
        raise ApiError(408, "the body did not arrive in time", code="request_timeout") from None


async def read_body(request: Request, known: Collection[str] | None = None) -> Fields:
    """Read the body of a request, a JSON object with only the `known` fields.

    Raises:
        ApiError: it is too large, too slow, not a JSON object, or has an unknown field.
    """
    body = getattr(request.state, "body", None)
    body = await whole_body(request) if body is None else body
    data = await asyncio.to_thread(_parse, body) if len(body) > 1 << 20 else _parse(body)
    fields = Fields.of(data)
    if (deployment := request.scope.get(DEPLOYMENT_KEY)) is not None:
        fields.data["model"] = deployment
    if known is not None:
        fields.check_names(known)
    return fields


async def whole_body(request: Request) -> bytes:
    """Receive the bytes of a body; `request.state.digest` is their digest, with the path, and `request.state.size` their number.

    Raises:
        ApiError: it is too large, or too slow.
    """
    scope = request.scope
    body = b"".join([part async for part in body_parts(request, state_of(request).options.limits.body)])
    request.state.digest = blake2b(b"%b?%b\0%b" % (scope["raw_path"], scope["query_string"], body)).digest()
    request.state.size = len(body)
    return body


async def interpret(request: Request, read: Callable[[], T]) -> T:
    """Call what interprets the fields of a body that was read: in a thread if it is large, since its schemas are checked."""
    return await asyncio.to_thread(read) if request.state.size > LARGE_BODY else read()


def _parse(body: bytes) -> Json:
    try:
        data = parse_json(body.decode())
        if SURROGATE.search(body):
            to_json(data)  # which fails for half a character, in any text or name
        return data
    except InputError as error:
        raise invalid(None, f"the body is not JSON: {error.message}", "invalid_json") from None
    except UnicodeDecodeError:
        raise invalid(None, "the body is not UTF-8", "invalid_json") from None
    except ValueError as error:
        raise invalid(None, f"the body is not JSON: {str(error)[:200]}", "invalid_json") from None
