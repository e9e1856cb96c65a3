"""Access control: the options of a server and its limits, the checks of every request before routing (host, origin, key, body
type and size), credentials of every kind in one function, and the conversations of each caller.
"""

import asyncio
import hmac
import logging
import re
import time
from asyncio import to_thread
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, ip_address
from secrets import token_hex, token_urlsafe
from threading import Lock
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taiwa.kernel.errors import ConfigError, StoreError
from taiwa.kernel.shares import WORK_OF, current_share
from taiwa.retrieval.index import IndexScope
from taiwa.server.http_responses import REQUEST_ID, WRITE, ApiError, invalid, part_writer, too_many
from taiwa.server.page.assets import ENTRY
from taiwa.sessions.budgets import Quota
from taiwa.sessions.repository import Repository
from taiwa.store.server_records import Caller

T = TypeVar("T")
LOCAL_CALLER = ""
"""The caller that holds the token of the server, and every caller if there is no token."""
COOKIE_SECONDS = 30 * 86400
"""Seconds that a browser stays logged in."""
FEW = 4
KEY_HEADERS = ("x-api-key", "api-key")
"""Headers that carry a key alone: of Anthropic, of Azure."""
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The most bytes of a body, and the time in which it must arrive."""

    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of one request and of all together; counts and seconds.

    `header_seconds` limits the arrival of a request without its body. `runs` limits concurrent answers, `streams` the connections
    that follow them. `grace` is the time that open runs get when the server stops.
    """

    body: BodyLimits = BodyLimits(32 << 20, 30.0)
    upload: BodyLimits = BodyLimits(128 << 20, 600.0)
    header_seconds: float = 30.0
    messages: int = 5_000
    choices: int = 16
    runs: int = 256
    streams: int = 2_000
    grace: float = 5.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens; `names` are those besides the loopback ones by which browsers and clients may address it, and `origins`
    those of pages that may call it from a browser (CORS).
    """

    host: str = "127.0.0.1"
    port: int = 7474
    names: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether only programs on this machine reach the server."""
        return is_loopback(self.host)


@dataclass(frozen=True, slots=True)
class Served:
    """What a server serves.

    - `apps`: names or files of apps, the first one for requests that name a model only; () serves all.
    - `models`: names of models, the first one for requests that name an app only; () serves the configured one.
    - `indexes`: names of document indexes that every caller may search; () serves all to the holder of the token.
    - `embeddings`: the model of `/v1/embeddings`: the folder of a sentence model, or a model on a server; "" for none.
    """

    apps: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    embeddings: str = ""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server.

    - `token`: the key that API clients send; "" allows all callers.
    - `approve`: what happens to calls of tools that need approval: `ask` interrupts the turn, which the page or a client resumes with
      a decision; `always` makes them, `never` refuses them.
    - `strict_fields`: refuse fields that a protocol does not define, which otherwise are passed on to a model's server that may know
      them.
    - `otel`: the address of an OpenTelemetry collector that receives the spans of each turn; "" for none.
    """

    address: Address = Address()
    served: Served = Served()
    token: str = ""
    approve: Literal["ask", "always", "never"] = "ask"
    otel: str = ""
    strict_fields: bool = False
    limits: ServerLimits = ServerLimits()

    def check(self) -> None:
        """Check that the options are compatible.

        Raises:
            ConfigError: the server would be open to other machines without a token.
        """
        if not self.address.is_local and not self.token:
            raise ConfigError(
                f"without a token the server would be open to everybody who reaches {self.address.host}; "
                "leave out --no-token, or bind to 127.0.0.1"
            )


def has_room(own: int, total: int, most: int, count: int = 1) -> bool:
    """Return whether a caller that has `own` of `total` places in use may get `count` more of `most`.

    A caller has at most as many as are left free: one alone gets half of them, two get a third each, and so on, so that some are
    always left for others; the first few do not count.

    >>> has_room(999, 999, 2000), has_room(1000, 1000, 2000), has_room(0, 1000, 2000)
    (True, False, True)
    """
    free = most - total
    return count <= free and own + count <= max(free, FEW)


def is_loopback(host: str) -> bool:
    """Report whether an address is a loopback address."""
    return host in LOOPBACK_NAMES or ((found := _address(host)) is not None and found.is_loopback)


def _address(name: str) -> IPv4Address | IPv6Address | None:
    with suppress(ValueError):
        return ip_address(name)
    return None


class Access:
    """The credentials of a server: its token, the keys of named callers, and the cookies of browsers.

    `find` returns the name of the caller of a key, None for an unknown or revoked key, and `revoked` those of some callers
    whose key was revoked; both may block. A browser exchanges a
    one-time code, printed in the start line of the server, for a cookie. The token signs the cookie, so it is valid for all
    servers with that token, and after a restart.
    """

    def __init__(
        self,
        token: str,
        port: int,
        find: Callable[[str], str | None],
        revoked: Callable[[Collection[str]], Collection[str]] = lambda _: (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._token = _hashed(token) if token else ""
        self._find = find
        self.revoked = revoked
        self._clock = clock
        # Browsers send the cookies of a host to all its ports.
        self.cookie = f"taiwa-{_hashed(self._token)[:12]}" if token else f"taiwa-{port}"
        self._codes: set[str] = set()
        self._lock = Lock()

    def new_code(self) -> str:
        """Create a code that one browser can exchange for a cookie, once."""
        code = token_urlsafe(24)
        with self._lock:
            self._codes.add(_hashed(code))
        return code

    def exchange(self, code: str) -> str | None:
        """Return the value of the cookie for a code; None for one that is unknown or used."""
        with self._lock:
            if _hashed(code) not in self._codes:
                return None
            self._codes.remove(_hashed(code))
        value = f"{int(self._clock()) + COOKIE_SECONDS}.{token_urlsafe(12)}"
        return f"{value}.{self._sign(value)}"

    async def enter(self, key: str) -> str | None:
        """Return the value of the cookie for the token of the server; None for any other key."""
        return self.exchange(self.new_code()) if self._token and await self._caller(key) == LOCAL_CALLER else None

    async def authenticate(self, headers: Mapping[str, str]) -> str:
        """Return the caller of a request by its `Authorization`, `x-api-key`, `api-key` or cookie; header names are lower-case.

        Raises:
            ApiError: a credential is missing or invalid.
        """
        given = {key for key in (_bearer(headers.get("authorization", "")), *map(headers.get, KEY_HEADERS)) if key}
        # Two credentials must be those of one caller; a valid one does not excuse a wrong one.
        found = {await self._caller(key) for key in given}
        if not self._token:
            found = {caller for caller in found if caller is not None} or {LOCAL_CALLER}
        elif not given and (cookie := cookie_parser(headers.get("cookie", "")).get(self.cookie)) is not None:
            found = {LOCAL_CALLER if self._is_valid(cookie) else None}
        if len(found) != 1 or None in found:
            raise _unauthorized("the key is wrong" if found else "a key is missing")
        return next(caller for caller in found if caller is not None)

    def _sign(self, value: str) -> str:
        return hmac.new(self._token.encode(), value.encode("utf-8", "replace"), sha256).hexdigest()

    def _is_valid(self, cookie: str) -> bool:
        """Return whether a cookie was issued here and has not expired."""
        value, _, signature = cookie.rpartition(".")
        until = value.partition(".")[0]
        signed = hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign(value).encode())
        return signed and until.isascii() and until.isdigit() and self._clock() < int(until)

    async def _caller(self, key: str) -> str | None:
        if self._token and hmac.compare_digest(self._token, _hashed(key)):
            return LOCAL_CALLER
        return await to_thread(self._find, key)


def _unauthorized(what: str) -> ApiError:
    printed = (
        "send the key that `taiwa serve` or `taiwa serve keys add` printed as `Authorization: Bearer …` or `x-api-key`"
    )
    return ApiError(401, f"{what}; {printed}", "authentication_error", "invalid_api_key")


def _bearer(header: str) -> str:
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _hashed(key: str) -> str:
    return sha256(key.encode("utf-8", "replace")).hexdigest()


class Repositories:
    """The conversations of each caller in one store. The local caller has those of the command line, and the given indexes."""

    def __init__(self, local: Repository, scope: IndexScope) -> None:
        self._local = local
        local.scope = self._scope = scope
        self._lock = Lock()
        self._others: dict[str, Repository] = {}
        self._since: dict[str, int] = {}
        """When the key of each caller was made that was used last."""

    def find(self, key: str) -> str | None:
        """Return the name of the caller of a key, with its current limits; None for an unknown key."""
        found = self._local.store.callers.find(key)
        if found is None:
            return None
        self._limit(self.of(found.name), found)
        self._since[found.name] = found.at_us
        return found.name

    def revoked(self, names: Collection[str]) -> list[str]:
        """Return those of some callers whose key was revoked after they used it."""
        known = {caller.name: caller.at_us for caller in self._local.store.callers.list()}
        return [name for name in names if known.get(name) != self._since.get(name)]

    def _limit(self, here: Repository, caller: Caller) -> None:
        here.quota = Quota(here.store, caller.max_cost, caller.rate)
        here.scope = self._scope_of(caller.name, caller.principals)

    def _scope_of(self, name: str, principals: Iterable[str]) -> IndexScope:
        return replace(self._scope, owner=name, served=self._scope.served or (), principals=frozenset(principals))

    def of(self, caller: str) -> Repository:
        """Return the conversations of a caller."""
        if caller == LOCAL_CALLER:
            return self._local
        with self._lock:
            if caller not in self._others:
                made = Repository(self._local.store.owned_by(caller))
                made.place, made.settings = self._local.place, self._local.settings
                made.scope = self._scope_of(caller, ())
                made.limits, made.budget = self._local.limits, self._local.budget
                if (
                    known := self._local.store.callers.get(caller)
                ) is not None:  # a caller whose turn is resumed without its key
                    self._limit(made, known)
                self._others[caller] = made
            return self._others[caller]


class SharedThreads(ThreadPoolExecutor):
    """The threads of an event loop for blocking work, with a few of its own for each share."""

    def __init__(self) -> None:
        super().__init__()
        self._others: dict[int, ThreadPoolExecutor] = {}

    def submit(self, call: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":  # noqa: ANN401
        """Start a call in a thread of the current share."""
        share = current_share()
        if not share:
            return super().submit(call, *args, **kwargs)
        if share not in self._others:
            self._others[share] = ThreadPoolExecutor()
        return self._others[share].submit(call, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads of all shares."""
        for each in self._others.values():
            each.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)


# --- the checks before routing ----------------------------------------------------------------------------------------

logger = logging.getLogger("taiwa.server.requests")
REVOKED_SECONDS = 0.5
"""Seconds between two looks for revoked keys, while callers have open requests."""
READING = frozenset({"GET", "HEAD", "OPTIONS"})
PUBLIC = frozenset({"/health", "/login", *ENTRY})
"""Paths without a key."""
VISITED = frozenset({"/", "/login"})
"""Paths that a link on another site may open."""
SINGLE = (
    *(name.encode() for name in ("authorization", *KEY_HEADERS, "origin", "content-type", "content-encoding", "sec-fetch-site")),
)  # fmt: skip
"""Headers that a request may have only once."""
SECURITY_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))


GIVEN_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
"""An id of a request that a proxy has given it, and that is kept."""


class Guard:
    """The outermost application. It passes on only requests with a known host, an allowed origin and a caller, which it adds to
    the scope as `caller`.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: ServerOptions,
        access: Access,
        error: Callable[[ApiError, Request], Response],
        takes_files: Callable[[str], bool],
        is_untyped: Callable[[str], bool],
        enter: Callable[[Scope], Response],
        quota: Callable[[str], Quota | None],
    ) -> None:
        self._app = app
        self._access = access
        self._error = error
        self._takes_files = takes_files
        self._is_untyped = is_untyped
        self._enter = enter
        self._quota = quota
        address = options.address
        self._hosts = LOOPBACK_NAMES | {address.host, *address.names}
        self._addresses = not address.is_local
        self._origins = frozenset(address.origins)
        self._limits = options.limits
        self._open: dict[str, set[asyncio.Task[Any]]] = {}
        """The tasks of the open requests of each caller."""
        self._count = 0
        self._watcher: asyncio.Task[None] | None = None
        self._revoked: Collection[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on, and log it: its path and outcome, never its query, headers or body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        started, status, origin = time.perf_counter(), 0, headers.get("origin", "")
        allowed = origin in self._origins
        given = headers.get("x-request-id", "")
        number = given if GIVEN_ID.fullmatch(given) else f"req_{token_hex(12)}"
        ids = ((b"x-request-id", number.encode()), (b"request-id", number.encode()))  # of OpenAI, of Anthropic
        REQUEST_ID.set(number)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = [*message["headers"], *SECURITY_HEADERS, *ids, *(_cors_headers(headers) if allowed else ())]
                if scope["method"] == "POST" and (caller := scope.get("caller")) and (quota := self._quota(caller)):
                    with suppress(StoreError):
                        sent += await to_thread(_rate_headers, quota)
                message = {**message, "headers": sent}
            await send(message)

        scope[WRITE] = part_writer(scope, send)
        task = None
        try:
            response = await self._check(scope, headers)
            WORK_OF.set(scope.get("caller", ""))
            if response is None and scope["path"] not in PUBLIC:
                task = self._begin(scope["caller"])
                response = self._check_room(scope["caller"], Request(scope))
            if response is not None:
                await response(scope, receive, sending)
            else:
                await self._app(scope, receive, sending)
        except asyncio.CancelledError:
            if scope.get("caller", "") not in self._revoked:
                raise
            if not status:
                await self._error(_unauthorized("the key was revoked"), Request(scope))(scope, receive, sending)
        finally:
            if task is not None:
                self._end(scope["caller"], task)
            logger.info(
                "request",
                extra={
                    "method": scope["method"], "path": scope["path"][:200], "status": status,
                    "caller": scope.get("caller", ""), "ms": round((time.perf_counter() - started) * 1000),
                    "request": number,
                },
            )  # fmt: skip

    async def _check(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a refused request."""
        path = scope["path"]
        try:
            self._check_headers(headers)
        except ApiError as error:
            response = self._error(error, Request(scope))
            response.headers["connection"] = "close"  # the following bytes may or may not be a request
            return response
        try:
            self._check_host(headers)
            if scope["method"] == "OPTIONS" and headers.get("origin") in self._origins:
                return Response(status_code=204)
            self._check_origin(scope["method"], path, headers)
            scope["caller"] = "" if path in PUBLIC else await self._access.authenticate(headers)
            self._check_body(scope["method"], path, headers)
        except ApiError as error:
            return (
                self._enter(scope)
                if error.status == 401 and is_browser(scope["method"], headers)
                else self._error(error, Request(scope))
            )
        return None

    def _begin(self, caller: str) -> "asyncio.Task[Any] | None":
        task = asyncio.current_task()
        assert task is not None
        self._open.setdefault(caller, set()).add(task)
        self._count += 1
        if caller != LOCAL_CALLER and self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())
        return task

    def _end(self, caller: str, task: "asyncio.Task[Any]") -> None:
        self._count -= 1
        self._open[caller].discard(task)
        if not self._open[caller]:
            del self._open[caller]

    def _check_room(self, caller: str, request: Request) -> Response | None:
        """Return the response to a caller that has no room for one more open request, which is already counted."""
        own, most = len(self._open[caller]), self._limits.streams
        if has_room(own - 1, self._count - 1, most):
            return None
        return self._error(too_many("too many open connections; close some, or try again in a moment"), request)

    async def _watch(self) -> None:
        """End the requests of callers whose key is revoked, until only the local caller has open ones."""
        try:
            while names := [name for name in self._open if name != LOCAL_CALLER]:
                with suppress(StoreError):  # it is asked again
                    self._revoked = await to_thread(self._access.revoked, names)
                for name in self._revoked:
                    for task in self._open.get(name, ()):
                        task.cancel()
                await asyncio.sleep(REVOKED_SECONDS)
        finally:
            self._watcher = None

    def _check_headers(self, headers: Headers) -> None:
        """Check that no other server could interpret the request differently: its framing, sender and type."""
        if "transfer-encoding" in headers and "content-length" in headers:
            raise invalid(None, "a request must not have both Content-Length and Transfer-Encoding")
        names = [name for name, _ in headers.raw]
        twice = next((name for name in SINGLE if names.count(name) > 1), None)
        if twice is not None:
            raise invalid(None, f"the header {twice.decode()} was sent twice")

    def _check_host(self, headers: Headers) -> None:
        """Check that the request was addressed to a name of this server, as a page of another site may use DNS rebinding."""
        hosts = headers.getlist("host")
        name = _host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None:
            raise ApiError(400, "the Host header is missing or invalid", code="invalid_host")
        if name not in self._hosts and not (self._addresses and _address(name) is not None):
            raise ApiError(
                403, f"the host {name[:80]!r} is not a name of this server; start it with --allow-host {name[:80]}",
                "permission_error", "host_not_allowed",
            )  # fmt: skip

    def _check_origin(self, method: str, path: str, headers: Headers) -> None:
        origin, host = headers.get("origin"), headers["host"]
        own = {f"http://{host}", f"https://{host}", *self._origins}  # behind a proxy the page has https
        if origin is not None and origin not in own:
            raise ApiError(
                403, "requests of pages of other origins are refused; start the server with --allow-origin to allow one",
                "permission_error", "origin_not_allowed",
            )  # fmt: skip
        # A GET of another site sends no Origin, but its browser says where it comes from.
        crossing = headers.get("sec-fetch-site") in {"cross-site", "same-site"} and origin not in self._origins
        if crossing and not (method in READING and path in VISITED):
            raise ApiError(403, "requests of other sites are refused", "permission_error", "origin_not_allowed")

    def _check_body(self, method: str, path: str, headers: Headers) -> None:
        takes_files = self._takes_files(path)
        most = (self._limits.upload if takes_files else self._limits.body).size
        length = headers.get("content-length", "")
        if length and (not length.isascii() or not length.isdigit()):
            raise invalid(None, "the Content-Length header is invalid")
        if length and int(length[:20]) > most:
            raise body_too_large(most)
        if method in READING:
            return
        has_body = "transfer-encoding" in headers or (length and int(length) > 0)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Clients of Ollama do not name the type; requests of pages, which may choose a type that needs no preflight, have an
        # origin.
        untyped = self._is_untyped(path) and "origin" not in headers
        if kind != "application/json" and (has_body or kind) and not (takes_files or untyped):
            raise ApiError(415, "the Content-Type must be application/json", code="unsupported_media_type")
        # The limit counts bytes as they arrive, and a compressed body may unpack to any size.
        if headers.get("content-encoding", "identity") != "identity":
            raise ApiError(
                415, "compressed bodies are not read; send it without Content-Encoding", code="unsupported_media_type"
            )


def is_browser(method: str, headers: Headers) -> bool:
    """Return whether a request opens a page in a browser."""
    return method == "GET" and "text/html" in headers.get("accept", "")


def body_too_large(most: int) -> ApiError:
    """Return the error of a body that is too large."""
    return ApiError(413, f"the body is larger than {most:,} bytes", code="request_too_large")


@lru_cache(maxsize=64)
def _host_name(host: str) -> str | None:
    try:
        parts = urlsplit(f"//{host}")
        valid = parts.port is None or parts.port > 0
    except ValueError:
        return None
    plain = not (parts.path or parts.query or parts.fragment or parts.username or parts.password)
    return parts.hostname if valid and plain and re.fullmatch(r"[!-~]+", host) else None


def _rate_headers(quota: Quota) -> list[tuple[bytes, bytes]]:
    """Return the headers of OpenAI and of Anthropic for the rate of a caller; none without a rate."""
    left = quota.left()
    if left is None:
        return []
    number, seconds = left
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    named = {
        "x-ratelimit-limit-requests": f"{quota.rate}",
        "x-ratelimit-remaining-requests": f"{number}",
        "x-ratelimit-reset-requests": f"{seconds:.3f}s",
        "anthropic-ratelimit-requests-limit": f"{quota.rate}",
        "anthropic-ratelimit-requests-remaining": f"{number}",
        "anthropic-ratelimit-requests-reset": at.isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
    return [(name.encode(), text.encode()) for name, text in named.items()]


def _cors_headers(headers: Headers) -> Iterable[tuple[bytes, bytes]]:
    """Let a page send every header, as SDKs send some of their own, and read all, such as those that advise against a retry."""
    return (
        (b"access-control-allow-origin", headers["origin"].encode("latin-1")),
        (b"access-control-allow-headers", headers.get("access-control-request-headers", "").encode("latin-1")),
        (b"access-control-expose-headers", b"*"),
        (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
        (b"vary", b"Origin"),
    )
