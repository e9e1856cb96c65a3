"""Calls to model servers over HTTP, blocking and asynchronous: deadlines, retries, size limits, masked API keys, kept connections.

httpcore2, the transport of httpx2, carries the bytes: HTTP/1.1, TLS, proxies, kept connections. It is imported at the first
call. Calls run as coroutines, so that a deadline or a cancellation ends any wait; a blocking call runs its coroutine on an event loop in a
thread of this module.
"""

import asyncio
import builtins
import logging
import os
import random
import threading
import time
import weakref
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, get_args
from urllib.request import getproxies, proxy_bypass

from taiwa.flows.calls_in_text import CallsInText
from taiwa.kernel.async_runtime import finish_in_thread
from taiwa.kernel.errors import (
    ConfigError,
    ModelError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    TimeoutError,
    UnsupportedError,
)
from taiwa.kernel.messages import (
    Capability,
    Choice,
    Chunk,
    FailedAttempt,
    JsonSchema,
    Notice,
    Regex,
    Request,
    Sampling,
    StreamEnd,
    ToolSpec,
    Usage,
    collect_response,
    user,
)
from taiwa.kernel.serialization import parse_json
from taiwa.kernel.text import estimate_tokens
from taiwa.kernel.wording import Wording
from taiwa.models.http_api.api_keys import MASK, Secret, mask_error, with_place
from taiwa.models.http_api.capabilities import Capabilities, Verdict
from taiwa.models.http_api.errors import Stage, connection_faults, error_from_status, map_fault, quoted, wait_asked
from taiwa.models.http_api.pace import LOOK_SECONDS, Pace, PacedCall
from taiwa.models.http_api.provider_interface import (
    DEFAULT_PORTS,
    BaseUrl,
    Enforce,
    RequestLimits,
    Server,
    Target,
    WireRequest,
    parse_base_url,
)

if TYPE_CHECKING:
    import httpcore2
    import httpx2

    from taiwa.models.http_api.constraint_encoding import ConstraintCheck, TextReader

logger = logging.getLogger("taiwa.models.http")

HEADERS = (
    ("user-agent", "taiwa"),
    ("accept", "text/event-stream, application/json"),
    ("accept-encoding", "identity"),  # compressing a stream of small events makes servers delay them
)
READABLE = ("json", "event-stream", "text/plain", "octet-stream")
DRAIN_SECONDS = 0.5
"""Seconds to wait for the end of a response after its answer, so that the connection can be reused."""
FAILURE_SECONDS = 10.0
REST_BYTES = 2**20
"""Bytes of a response to read after its answer, or if it is not 2xx."""

TRANSIENT = (RateLimitError, OverloadedError, TimeoutError)
PERMANENT_STATUSES = frozenset({501, 505, 507, 508, 510, 511})
"""Statuses of the 5xx class that another attempt does not change."""
UNCHARGED_STATUSES = frozenset({501, 503, 505, 529})
"""Statuses of the 5xx class of a server that did not begin to answer."""
NOTICE_SECONDS = 1.0
"""Longer waits are announced."""
SILENT_SECONDS = 8.0
"""Seconds of silence of a server before it is announced."""
JITTER = 0.1
"""The maximum jitter added to a wait that the server asked for, so that clients do not all return at once."""
CLOCK_TOLERANCE = 0.01
"""Seconds by which a timer may fire before its moment."""

T = TypeVar("T")


# --- limits and retries ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clock:
    """The time in seconds, a way to sleep, and random numbers from [0, 1); tests pass their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` attempts; waits double from `base` to `cap` seconds.

    A call that the server may have charged is repeated only with `retry_paid`. A wait that the server asks for is respected
    whatever its length, as long as the deadline of the call allows it. Rate limits for which it asks for one do not count
    as attempts, unless there is only one.
    """

    attempts: int = 3
    retry_paid: bool = False
    base: float = 0.5
    cap: float = 30.0

    def decide(
        self, error: ModelError, attempt: int, left: float, random: float, asked: float | None = None
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up.

        `attempt` counts the attempts so far, `left` is the rest of the time of the call in seconds, `random` is drawn from
        [0, 1), `asked` is the wait that the server asked for (a `RateLimitError` carries its own).
        """
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            asked = error.retry_after
        counts = asked is None or not isinstance(error, RateLimitError) or self.attempts == 1
        if not isinstance(error, TRANSIENT) or error.status in PERMANENT_STATUSES:
            return None
        if counts and attempt >= self.attempts:
            return None
        # half of the wait is fixed: full jitter may call again at once, which does not relieve a busy server
        wait = min(self.cap, self.base * 2.0 ** min(attempt - 1, 60)) * (0.5 + random / 2)
        if asked is not None:
            # A server that always asks for no wait is not called without end.
            wait = max(asked * (1 + JITTER * random), 0.0 if attempt < self.attempts else wait)
        return wait if wait < left else None


class Deadline:
    """The moments at which a call and its current attempt must end."""

    __slots__ = ("_end", "_first", "_first_byte", "_limits", "_now")

    def __init__(self, limits: RequestLimits, now: Callable[[], float], *, whole: bool = False) -> None:
        self._limits = limits
        self._first = limits.total if whole else limits.first_byte  # an answer in one piece begins at its end
        self._now = now
        self._end = now() + limits.total
        self._first_byte = self._end

    def begin_attempt(self) -> dict[str, float]:
        """Start the time to the first byte; return the timeouts of the transport for this attempt, in seconds: who reads has its own."""
        self._first_byte = min(self._now() + self._first, self._end)
        left = max(self.left, 0.0)
        return {"connect": min(self._limits.connect, left), "write": min(self._first, left)}

    @property
    def left(self) -> float:
        """Seconds until the call must end; negative when that has passed."""
        return self._end - self._now()

    @property
    def is_over(self) -> bool:
        """Whether the time of the whole call is used up."""
        return self.left <= CLOCK_TOLERANCE

    def until_first_byte(self) -> float:
        """Seconds that remain for the first byte of a response."""
        return self._first_byte - self._now()

    def until_next_byte(self) -> float:
        """Seconds that remain for a further byte."""
        return min(self._limits.between, self.left)


# --- connections ------------------------------------------------------------------------------------------------------

KEPT_SECONDS = 20.0
"""How long an idle connection is kept open."""


def _proxy(base: BaseUrl) -> "httpcore2.Proxy | None":
    """Return the proxy that the environment sets for a server; none for a loopback address."""
    import httpcore2
    import httpx2

    if base.is_local or proxy_bypass(base.host):
        return None
    proxies = getproxies()
    url = proxies.get(base.scheme) or proxies.get("all")
    if not url:
        return None
    if "://" not in url:
        url = f"http://{url}"
    scheme = url.partition("://")[0]
    with suppress(httpx2.InvalidURL, ValueError):
        proxy = httpx2.Proxy(url)
        if scheme in DEFAULT_PORTS and proxy.url.host:
            return httpcore2.Proxy(_wire_url(proxy.url), proxy.raw_auth)
    raise ConfigError(
        f"unsupported {scheme[:20]!r} proxy for {base.host}; set HTTPS_PROXY to an http:// or https:// URL, "
        "or name the host in NO_PROXY"
    )


def _wire_url(url: "httpx2.URL") -> "httpcore2.URL":
    import httpcore2

    return httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)


class Connections:
    """The connections of one event loop to one server, each for one call at a time.

    Neither the pool of httpcore2 is used, which looks at all its connections twice for each call, nor the client of httpx2, which
    adds cookies, redirects, default headers and a second request and response.
    """

    def __init__(self, base: BaseUrl) -> None:
        import ssl

        import httpcore2
        import httpx2

        from taiwa.models.http_api.network import Network

        # Loading the certificates takes as long as fifty calls; without TLS there is nothing to verify.
        tls = httpx2.create_ssl_context() if base.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        proxy = _proxy(base)
        network = Network() if base.scheme == "http" and proxy is None else None
        pool = httpcore2.AsyncConnectionPool(tls, proxy, keepalive_expiry=KEPT_SECONDS, network_backend=network)
        self._open = partial(pool.create_connection, _wire_url(httpx2.URL(f"{base}")).origin)
        self._opened: set[httpcore2.AsyncConnectionInterface] = set()
        self._idle: list[httpcore2.AsyncConnectionInterface] = []
        """The one that was used last is taken first, so that few concurrent calls use few."""
        self._keeper: AsyncGenerator[None] | None = None

    async def _keep(self) -> AsyncGenerator[None]:
        """Hold the connections: an event loop closes its generators when it ends, including this one."""
        try:
            yield
        finally:
            self._keeper = None
            self._idle.clear()
            for each in list(self._opened):
                await self._close(each)

    async def _close(self, connection: "httpcore2.AsyncConnectionInterface") -> None:
        self._opened.discard(connection)
        with suppress(*connection_faults()):
            await connection.aclose()

    async def take(self) -> "httpcore2.AsyncConnectionInterface":
        """Return a connection that no call uses, and close those that were idle for long."""
        if self._keeper is None:
            self._keeper = self._keep()
            await anext(self._keeper)
        while len(self._idle) > 1 and self._idle[0].has_expired():
            await self._close(self._idle.pop(0))
        while self._idle:
            if not (last := self._idle.pop()).has_expired():
                return last
            await self._close(last)
        opened = self._open()
        self._opened.add(opened)
        return opened

    async def give_back(self, connection: "httpcore2.AsyncConnectionInterface") -> None:
        """Keep a connection for the next call if its call was completed."""
        if connection.is_available():
            self._idle.append(connection)
        else:
            await self._close(connection)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._keeper is not None:
            await self._keeper.aclose()


# --- blocking calls ---------------------------------------------------------------------------------------------------

_background: asyncio.AbstractEventLoop | None = None
_background_lock = threading.Lock()


def _background_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all blocking calls of this process; its thread starts with the first one."""
    global _background  # noqa: PLW0603  (one loop per process)
    with _background_lock:
        if _background is None:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="taiwa-http", daemon=True).start()
            _background = loop  # only now: an interrupted start leaves no loop without a thread
        return _background


def _forget_background_loop() -> None:
    """Give a forked process its own loop, and thus connections: two writers on one socket would garble both."""
    global _background, _background_lock
    _background, _background_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_background_loop)


def _iterate(items: AsyncGenerator[T], silence: T | None = None) -> Generator[T]:
    """Yield the items of an asynchronous generator that runs on the background loop; closing or an interrupt cancels it.

    The generator may run ahead of its reader, except after a `FailedAttempt`; the size limit of a response bounds the queue.
    `silence` is yielded if there is no item for `SILENT_SECONDS`.
    """
    loop = _background_loop()
    queue: SimpleQueue[T | None] = SimpleQueue()
    tasks: list[asyncio.Task[None]] = []

    read = asyncio.Event()

    async def pump() -> None:
        async with aclosing(items):
            async for item in items:
                queue.put(item)
                if isinstance(item, FailedAttempt):  # the reader decides whether another attempt may be paid for
                    await read.wait()
                    read.clear()

    def start() -> None:
        tasks.append(loop.create_task(pump()))
        tasks[0].add_done_callback(end)

    def end(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # read, so that asyncio does not log it after the waiter has gone
        queue.put(None)

    def stop() -> None:
        for task in tasks:
            task.cancel()

    try:
        # The loop creates the task: from here on, an interrupt finds either a task to cancel or none started.
        loop.call_soon_threadsafe(start)
        patience = None if silence is None else SILENT_SECONDS
        while True:
            try:
                item = queue.get(timeout=patience)
            except Empty:
                item = silence
            patience = None
            if item is None:
                break
            yield item
            if isinstance(item, FailedAttempt):
                loop.call_soon_threadsafe(read.set)
        tasks[0].result()
    finally:
        if not (tasks and tasks[0].done()):
            loop.call_soon_threadsafe(stop)


def _abandon(connections: dict[asyncio.AbstractEventLoop, Connections]) -> None:
    """Close the connections of a deleted model."""
    for loop, kept in connections.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(loop.create_task, kept.aclose())


TOOL_CHECK = Request(
    (user("What is the weather in Nara now? Call the function for it."),),
    tools=(
        ToolSpec(
            "get_weather",
            "Get the present weather of a city.",
            {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        ),
    ),
    sampling=Sampling(None, max_tokens=256),
)
"""The request that shows whether a server calls tools."""
LOOK_AGAIN = "`taiwa probe` looks again"
MAX_TOKENS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""The names of the limit of an answer in the protocols."""


def is_assumed(codec: object, capability: Capability) -> bool:
    """Report whether it is unknown whether a server has a capability, so that a request tries it."""
    known = getattr(codec, "capabilities", None)
    return isinstance(known, Capabilities) and capability in known.assumed


# --- calls ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class HttpModel:
    """The model of a target, over HTTP; one object serves all threads and event loops of a process.

    Connections are kept for later calls; those of an event loop are closed with it, the others with `close` or the object.

    Raises:
        ConfigError: the base URL or the key cannot be used.
    """

    target: Target
    key: InitVar[str | Secret | None] = None
    _: KW_ONLY
    limits: RequestLimits = field(default_factory=RequestLimits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    pace: Pace | None = None
    clock: Clock = field(default_factory=Clock, repr=False)
    remember: Callable[[Capability, Verdict], None] | None = field(default=None, repr=False)
    """Stores what requests have shown about the server."""

    def __post_init__(self, key: str | Secret | None) -> None:
        if self.target.codec is None:
            raise ConfigError(f"{self.target.name} runs in this process and has no server")
        self.codec = self.target.codec
        self.base = parse_base_url(self.target.base_url)
        self._key = Secret(key, self.target.key_variable or "the key") if isinstance(key, str) else key
        if self._key is not None:
            self.base.check_transport()
        self._lock = threading.Lock()
        self._urls: dict[str, tuple[httpcore2.URL, str]] = {}
        """By path, with the header `Host`."""
        self._connections: dict[asyncio.AbstractEventLoop, Connections] = {}
        self._only_streams = False
        """Whether its server has refused an answer in one piece, as some do for models that reason."""
        self.has_kept_connection = False
        """Whether the next call may find a connection that its server has just closed."""
        # At exit the loop of the background thread no longer runs, and the system closes the sockets.
        weakref.finalize(self, _abandon, self._connections).atexit = False

    @property
    def host(self) -> str:
        """The host and port of its server."""
        return self.base.authority

    @property
    def name(self) -> str:
        """The name that the user gave it."""
        return self.target.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What its server can do."""
        return self.target.capabilities

    @property
    def tools_hint(self) -> Wording | None:
        """What finds out whether its server calls the tools of an app; None if that is known."""
        if not is_assumed(self.codec, "tools"):
            return None
        return Wording("it is unknown whether {model} calls functions, so calls of tools are read from its text; `taiwa probe {model}` finds out", model=self.name)  # fmt: skip

    @property
    def server(self) -> Server:
        """The server as errors name it."""
        return with_place(self.codec.server, self._key, self.target)

    def used(self, sampling: Sampling) -> Sampling:
        """Return a sampling as it is sent to the server: some models take no temperature, and some servers get a limit."""
        with suppress(UnsupportedError):
            call = self.codec.encode(Request((user("."),), sampling=replace(sampling, extra=None)))
            sent = cast("dict[str, Any]", parse_json(call.body))
            most = next((sent[name] for name in MAX_TOKENS if name in sent), None)
            return replace(sampling, temperature=sent.get("temperature"), top_p=sent.get("top_p"), max_tokens=most)
        return sampling

    def holding(self, hold: Enforce) -> "HttpModel":
        """Return the same model with another treatment of unenforced constraints; it has its own connections."""
        from taiwa.models.http_api.openai_chat import held_so

        return HttpModel(
            held_so(self.target, hold), self._key,
            limits=self.limits, retry=self.retry, pace=self.pace, clock=self.clock, remember=self.remember,
        )  # fmt: skip

    def stream(self, request: Request) -> Generator[Chunk]:
        """Yield the answer in chunks, the last one `StreamEnd`; closing the iterator closes the connection at once.

        Raises:
            ModelError: the call failed.
            ConfigError: a header cannot be sent.
        """
        silence = Wording("{server} has not begun to answer for {n} s; still waiting", server=self.base.authority, n=f"{SILENT_SECONDS:g}")  # fmt: skip
        return _iterate(self.astream(request), Notice(silence, code="waiting"))

    async def astream(self, request: Request) -> AsyncGenerator[Chunk]:
        """As `stream`; cancelling the task closes the connection at once."""
        if request.hints.whole and self._only_streams:
            request = replace(request, hints=replace(request.hints, whole=False))
        sent, check, reader = request, None, None
        if isinstance(request.constraint, Choice | Regex):
            from taiwa.models.http_api.constraint_encoding import TextReader, text_as_schema

            is_tried = is_assumed(self.codec, "json_schema") and getattr(self.codec, "enforce", "") != "lenient"
            tried = frozenset[Capability](("json_schema",) if is_tried else ())
            sent = await finish_in_thread(partial(text_as_schema, request, self.capabilities | tried))
            reader = None if sent is request else TextReader()
        checked: Usage | None = None
        if request.tools and is_assumed(self.codec, "tools"):
            checked = await self._check_tools()
        if sent.constraint is None:
            call = self.codec.encode(sent)
        else:  # a schema or a pattern of a caller may take seconds; tools are only copied
            call = await finish_in_thread(partial(self.codec.encode, sent))
        if call.enforcement is not None:
            from taiwa.models.http_api.constraint_encoding import ConstraintCheck

            check = ConstraintCheck(call.enforcement, request)
        try:
            async for chunk in self._read(call, request, reader, check):
                if checked is not None and isinstance(chunk, StreamEnd) and chunk.usage is not None:
                    chunk = replace(chunk, usage=chunk.usage + checked)  # noqa: PLW2901  (the caller pays for both)
                yield chunk
        except ModelError as error:
            # Some servers answer with reasoning only in a stream, and say so in words alone.
            if request.hints.whole and error.status in (400, 422) and "stream" in error.message.lower():
                self._only_streams = True
                async with aclosing(self.astream(request)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                return
            if not isinstance(error, UnsupportedError):
                raise
            if error.capability != "json_schema":
                self._learn(error.capability, "refused")
            elif request.constraint is not None:  # of a tool otherwise
                self._learn("json_schema", "refused", stores=False)  # one schema says little about others
            raise
        if isinstance(request.constraint, JsonSchema) and check is not None and check.is_prose:
            self._learn("json_schema", "ignored")

    def _learn(self, name: str, verdict: Verdict, *, stores: bool = True) -> None:
        """Assume a capability no longer, because a request has shown what the server does."""
        known = getattr(self.codec, "capabilities", None)
        if not isinstance(known, Capabilities) or name not in get_args(Capability):
            return
        capability = cast("Capability", name)
        if capability in known.assumed and stores and self.remember is not None:
            self.remember(capability, verdict)
        able = known.capabilities
        if verdict == "enforced":
            able |= {capability}
        elif capability == "tools":  # of a known server, too: it may have been started without a parser of calls
            able -= {capability}
        self.codec = replace(
            cast("Any", self.codec),
            capabilities=replace(known, capabilities=able, assumed=known.assumed - {capability}),
        )
        self.target = replace(self.target, codec=self.codec, capabilities=able)

    async def _check_tools(self) -> Usage:
        """Ask a server of which nothing is known for one call, and return what that used; a server that only accepts tools answers in
        words.

        Raises:
            UnsupportedError: it refuses or ignores tools. ModelError: the request failed for another reason.
        """
        try:
            chunks = [chunk async for chunk in self._read(self.codec.encode(TOOL_CHECK), TOOL_CHECK, None, None)]
        except ModelError as error:
            if type(error) is not ModelError or error.status not in (400, 422, 501):
                if isinstance(error, UnsupportedError):
                    self._learn("tools", "refused")
                raise
            self._learn("tools", "refused")
            raise UnsupportedError(error.message, capability="tools", status=error.status) from error
        answer = collect_response(chunks)
        # A model that reasons may have used up its tokens before the call: believed for now, and not stored.
        if answer.message.tool_calls or answer.finish == "length":
            self._learn("tools", "enforced", stores=bool(answer.message.tool_calls))
            return answer.usage or Usage()
        self._learn("tools", "ignored")
        ignored = UnsupportedError(f"{self.server.label} ignores tools; {LOOK_AGAIN}", capability="tools")
        ignored.may_be_charged = True
        raise ignored

    async def _read(
        self, call: WireRequest, request: Request, reader: "TextReader | None", check: "ConstraintCheck | None"
    ) -> AsyncGenerator[Chunk]:
        calls = (
            CallsInText(request.tools, request.messages) if request.tools and request.tool_choice != "none" else None
        )
        async with aclosing(self._attempts("POST", call, _Attempt.answer, request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, FailedAttempt) and calls is not None:  # its text belongs to no answer
                    calls = CallsInText(request.tools, request.messages)
                for each in (chunk,) if calls is None else calls.feed(chunk):
                    for read in (each,) if reader is None else reader.read(each):
                        if check is not None:
                            # The whole answer is compared with the constraint, which may take seconds.
                            seen = partial(check.seen, read)
                            read = await finish_in_thread(seen) if isinstance(read, StreamEnd) else seen()  # noqa: PLW2901
                        yield read

    def fetch(self, path: str) -> bytes:
        """Return a document of the server, such as its list of models (`models`).

        Raises:
            ModelError: the call failed.
        """
        # every call of a protocol has the same headers, such as its version
        call = self.codec.encode(Request((user("x"),)))
        own = tuple(header for header in call.headers if header[0] != "content-type")
        return self.send(WireRequest(path, b"", own), "GET")

    def send(self, call: WireRequest, method: str = "POST") -> bytes:
        """Return the raw response to a call, for calls that a `Request` cannot express.

        Raises:
            ModelError: the call failed.
        """
        items = _iterate(self._attempts(method, call, _Attempt.whole))
        return b"".join(item for item in items if isinstance(item, bytes))

    async def _attempts(
        self,
        method: str,
        call: WireRequest,
        read: "Callable[[_Attempt, httpcore2.AsyncConnectionInterface], AsyncGenerator[T]]",
        request: Request | None = None,
    ) -> AsyncGenerator[T | Notice | FailedAttempt]:
        """Try until an attempt succeeds, a chunk was yielded, or the retry policy gives up."""
        http, deadline, is_announced = self._http_request(method, call), None, False
        pace, paced = None if request is None else self.pace, None
        async with nullcontext() if pace is None else pace.place():
            for made in count(1):
                while pace is not None and request is not None:
                    tokens = sum(estimate_tokens(message.text) for message in request.messages)
                    begun = pace.start(tokens, self.clock.now())
                    if isinstance(begun, PacedCall):
                        paced = begun
                        break
                    if begun >= NOTICE_SECONDS and not is_announced:
                        is_announced = True
                        yield Notice(Wording("the limit of calls per minute"), code="waiting", seconds=begun)
                    await self.clock.sleep(min(begun, LOOK_SECONDS))
                whole = request is not None and request.hints.whole
                deadline = deadline or Deadline(
                    self.limits, self.clock.now, whole=whole
                )  # without the wait for the own limits
                attempt = _Attempt(self, http, request, deadline)
                began = self.clock.now()
                logger.debug("%s %s%s, attempt %d", method, self.host, http.url.target.decode(), made)
                connections = self._connections_here()  # another one if the model was closed while it waited
                connection = await connections.take()
                try:
                    async with aclosing(read(attempt, connection)) as items:
                        async for item in items:
                            if pace is not None and paced is not None and isinstance(item, StreamEnd) and item.usage:
                                pace.settle(paced, item.usage.input_tokens, item.usage.output_tokens)
                            yield item
                    logger.debug("answered after %.2f s", self.clock.now() - began)
                    return
                except ModelError as error:
                    # Before anything reads the error: a server may repeat the key that it refuses.
                    mask_error(error, self.secrets)
                    level = logging.INFO if method == "POST" else logging.DEBUG  # who looks for something tells
                    logger.log(level, "failed after %.2f s: %s", self.clock.now() - began, error.message)
                    # A GET generates nothing; a server that has begun to answer has worked.
                    error.may_be_charged = method == "POST" and (error.may_be_charged or attempt.is_answered)
                    wait = None
                    if attempt.may_repeat:
                        asked = wait_asked(attempt.headers)
                        wait = self.retry.decide(error, made, deadline.left, self.clock.random(), asked)
                        is_late = isinstance(error, RateLimitError) and (error.retry_after or asked or 0) > 1
                        if wait is None and is_late and self.retry.attempts > 1:
                            error.message += f"; at most {self.limits.total:g} s are waited in all (timeout)"
                    if wait is not None and error.may_be_charged and not self.retry.retry_paid:
                        error.message += "; not repeated, because it may have been charged (--retry-paid, in Python retry_paid=True, repeats it)"
                        wait = None
                    if wait is None:
                        if made > 1:
                            error.message += f" (tried {made} times)"
                        error.args = (error.message,)
                        error.request = request.digest if request else ""
                        raise
                    if wait >= NOTICE_SECONDS:
                        most = f" (at most {deadline.left:.0f} s in all)" if isinstance(error, RateLimitError) else ""
                        yield Notice(f"{error.message}{most}", code="waiting", seconds=wait)
                    if error.may_be_charged:
                        yield FailedAttempt()
                finally:
                    await connections.give_back(connection)
                await self.clock.sleep(wait)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that errors must not contain."""
        return (self._key.reveal(),) if self._key else ()

    def _http_request(self, method: str, call: WireRequest) -> "httpcore2.Request":
        """Write a call.

        Raises:
            ConfigError: a header cannot be sent.
        """
        import httpcore2
        import httpx2

        auth = [header for secret in self.secrets for header in self.codec.auth(secret)]
        own = (*auth, *call.headers)
        for name, text in own:
            if not (name.isascii() and name.isprintable() and text.isascii() and text.isprintable()):
                raise ConfigError(f"the header {name[:40]!r} contains a character that is not allowed; set it again")
        known = self._urls.get(call.path)
        if known is None:
            parsed = httpx2.URL(self.base.join(call.path))
            known = self._urls[call.path] = _wire_url(parsed), parsed.netloc.decode()
        url, host = known
        length = [("Content-Length", str(len(call.body)))] if call.body or method == "POST" else []
        headers = [("Host", host), *HEADERS, *own, *length]
        return httpcore2.Request(method, url, headers=headers, content=call.body)

    def _connections_here(self) -> Connections:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            with self._lock:
                for old in [old for old in self._connections if old.is_closed()]:
                    del self._connections[old]
                self._connections[loop] = Connections(self.base)
        return self._connections[loop]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Close the kept connections of blocking calls; a later call opens new ones."""
        if _background is not None and (kept := self._connections.pop(_background, None)):
            asyncio.run_coroutine_threadsafe(kept.aclose(), _background).result()

    async def aclose(self) -> None:
        """Close all kept connections of this event loop and of blocking calls."""
        self.close()
        if kept := self._connections.pop(asyncio.get_running_loop(), None):
            await kept.aclose()


class _Body:
    """The body of a response, read by a separate task unless it comes in one piece (`whole`).

    Servers send every few characters as a separate chunk. The task collects chunks that arrive together, so that there is
    one timer and one call of the decoder per wait, not per chunk.
    """

    def __init__(self, response: "httpcore2.Response", limit: int, *, whole: bool) -> None:
        self._pieces: list[bytes] = []
        self._arrived = asyncio.Event()
        # `response.aiter_raw` counts and splits each piece, which costs as much as reading it
        self._stream = aiter(cast("AsyncIterable[bytes]", response.stream))
        self._task = None if whole else asyncio.create_task(self._collect(self._stream, limit))

    async def _collect(self, stream: AsyncIterator[bytes], limit: int) -> None:
        try:
            async for piece in stream:
                self._pieces.append(piece)
                self._arrived.set()
                limit -= len(piece)
                if limit < 0:  # `_Attempt` reports it
                    return
        finally:
            self._arrived.set()

    async def read(self, seconds: float) -> bytes:
        """Return the bytes that have arrived, none at the end; wait at most these seconds."""
        if self._task is None:
            async with asyncio.timeout(seconds):
                return await anext(self._stream, b"")
        if not self._pieces:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        if not self._pieces:
            await self._task
            return b""
        data = b"".join(self._pieces)
        self._pieces.clear()
        if not self._task.done():
            self._arrived.clear()
        return data

    async def read_rest(self, seconds: float) -> bytes:
        """Return the bytes that arrive within these seconds in total, up to `REST_BYTES` or the end of the connection."""
        rest = b""
        with suppress(*connection_faults()):
            async with asyncio.timeout(seconds):
                while len(rest) < REST_BYTES and (data := await self.read(seconds)):
                    rest += data
        return rest

    async def aclose(self) -> None:
        """Stop reading."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()  # taken, so that asyncio does not log it


class _Attempt:
    """One attempt of a call: its progress, and its remaining time."""

    def __init__(
        self, model: HttpModel, http: "httpcore2.Request", request: Request | None, deadline: Deadline
    ) -> None:
        self._model = model
        self._http = http
        self._request = request
        self._deadline = deadline
        self._stage: Stage = "open"
        self._is_absent = False
        self._size = 0
        self._inflate: Callable[[bytes, int], bytes] | None = None
        self._response: httpcore2.Response | None = None
        self._body: _Body | None = None
        self.headers: Mapping[str, str] = {}
        """The headers of the response; their names are lower-case, and the first of several with the same name counts."""

    @property
    def may_repeat(self) -> bool:
        """Whether the call can be retried: no chunk was yielded, and the server is reachable and does not forbid it.

        A server on this machine that does not listen will not do so a second later.
        """
        return self._stage != "given" and not self._is_absent and self.headers.get("x-should-retry") != "false"

    @property
    def is_answered(self) -> bool:
        """Whether the server began to send an answer."""
        return self._body is not None and self._response is not None and 200 <= self._response.status < 300

    async def answer(self, connection: "httpcore2.AsyncConnectionInterface") -> AsyncGenerator[Chunk]:
        """Yield the chunks of an answer; `StreamEnd` is yielded when the connection is free again, because no reader
        continues after it.

        Raises:
            ModelError: the call failed.
        """
        finished: StreamEnd | None = None
        ended = False
        try:
            body = await self._open(connection)
            prefix = self._request.prefix if self._request else ""
            decoder = self._model.codec.decoder(self.headers.get("content-type", ""), prefix)
            while not ended and finished is None:
                fault: Exception | None = None
                try:
                    data = await self._read(body)
                except connection_faults() as error:
                    data, fault = b"", error
                ended = not data
                try:
                    chunks = decoder.close() if ended else decoder.feed(data)
                except ModelError:
                    if fault is not None:  # an answer that is complete counts, even if its connection then breaks
                        raise self._error(fault) from None
                    raise
                for chunk in chunks:
                    self._stage = "given"
                    if isinstance(chunk, StreamEnd):
                        finished = chunk
                    else:
                        yield chunk
                if chunks and not ended:
                    decoder.feed(b"")  # a failure after these chunks is raised now, not after the next wait
            if not ended:  # so that the connection can be used again
                await body.read_rest(min(DRAIN_SECONDS, self._deadline.left))
        finally:
            await self._close()
        if finished is not None:
            self._model.has_kept_connection = True
            yield finished

    async def whole(self, connection: "httpcore2.AsyncConnectionInterface") -> AsyncGenerator[bytes]:
        """Yield the body of a response.

        Raises:
            ModelError: the call failed.
        """
        pieces: list[bytes] = []
        try:
            body = await self._open(connection)
            while data := await self._read(body):
                pieces.append(data)
        except connection_faults() as fault:
            raise self._error(fault) from None
        finally:
            await self._close()
        self._model.has_kept_connection = True
        yield b"".join(pieces)

    async def _open(self, connection: "httpcore2.AsyncConnectionInterface") -> _Body:
        """Send the request and check the head of the response."""
        http, deadline = self._http, self._deadline
        http.extensions["timeout"] = deadline.begin_attempt()
        try:
            async with asyncio.timeout(deadline.until_first_byte()):
                self._response = await connection.handle_async_request(http)
        except connection_faults() as fault:
            raise self._error(fault) from None
        whole = self._request is not None and self._request.hints.whole
        self._body = body = _Body(self._response, self._model.limits.response_bytes, whole=whole)
        headers: dict[str, str] = {}
        for name, text in self._response.headers:
            headers.setdefault(name.decode("latin-1").lower(), text.decode("latin-1"))
        self.headers = headers
        status, coding = self._response.status, headers.get("content-encoding", "identity").lower()
        if not 200 <= status < 300:  # the status is sufficient if the body is missing or cannot be read
            seconds = min(FAILURE_SECONDS, deadline.left)
            content = await body.read_rest(seconds) if coding == "identity" else b""
            for secret in self._model.secrets:
                content = content.replace(secret.encode(), MASK.encode())
            error = error_from_status(status, headers, content, self._model.server)
            error.may_be_charged = not (status < 500 or status in UNCHARGED_STATUSES)
            raise error
        kind = headers.get("content-type", "").lower()
        if kind and not any(word in kind for word in READABLE):
            raise self._not_an_answer(f"sends {quoted(kind, 60)} instead of an answer")
        if coding in ("gzip", "x-gzip", "deflate"):
            self._inflate = zlib.decompressobj(wbits=47).decompress  # 32 + 15: detect gzip or zlib automatically
        elif coding != "identity":
            raise self._not_an_answer(f"sends its answer packed ({quoted(coding, 60)}), which was not asked for")
        return body

    async def _read(self, body: _Body) -> bytes:
        """Return the next bytes of the body, unpacked; none at its end."""
        deadline, most = self._deadline, self._model.limits.response_bytes
        while True:
            data = await body.read(deadline.until_first_byte() if self._stage == "open" else deadline.until_next_byte())
            if not data:
                return b""
            if deadline.is_over:
                raise builtins.TimeoutError
            if self._stage == "open":
                self._stage = "answer"
            if self._inflate is not None:
                try:
                    # at most the remaining limit: a small body may unpack to gigabytes
                    data = self._inflate(data, most + 1 - self._size)
                except zlib.error:
                    raise self._not_an_answer("sends its answer packed, and broken") from None
            self._size += len(data)
            if self._size > most:
                raise self._not_an_answer(f"sends more than {most / 2**20:g} MiB")
            if data:
                return data

    async def _close(self) -> None:
        """Release the connection; it is closed if the response was not read to its end."""
        with suppress(*connection_faults()):
            if self._body is not None:
                await self._body.aclose()
            if self._response is not None:
                await self._response.aclose()

    def _error(self, fault: Exception) -> ModelError:
        model = self._model
        error, row = map_fault(
            fault, self._stage, model.base, model.limits, model.codec.server,
            late=self._deadline.is_over, proxied=_proxy(model.base) is not None,
        )  # fmt: skip
        if row == "hung up" and model.base.is_local and model.has_kept_connection:
            # Servers such as llama.cpp close a kept connection silently. A server on this machine charges nothing.
            error.may_be_charged = model.has_kept_connection = False
        self._is_absent = row == "refused" and model.base.is_local
        return error

    def _not_an_answer(self, what: str) -> ProtocolError:
        base = self._model.base
        return ProtocolError(
            f"{base.authority} {what}; check that {base} leads to a model server (mostly it ends in /v1)"
        )
