"""Calls to model servers over HTTP, blocking and asynchronous: deadlines, retries, size limits, masked API keys.

httpx2 carries the bytes: HTTP/1.1, TLS, proxies, kept connections. It is imported at the first call. Calls run as coroutines, where
a deadline or a cancellation ends any wait; a blocking call runs its coroutine on an event loop in a thread of this module.
"""

import asyncio
import os
import threading
import weakref
import zlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import cache, lru_cache
from hmac import compare_digest
from ipaddress import ip_address
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, NoReturn, Self, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from taiwa.kernel.errors import ConfigError, ModelError, ProtocolError, TaiwaError
from taiwa.kernel.messages import Capability, Chunk, Request, StreamEnd, user
from taiwa.models.http_api.errors import Endpoint, Stage, map_fault, quoted, wait_asked
from taiwa.models.http_api.provider_interface import Codec, Enforce, Target, WireRequest
from taiwa.models.http_api.retries import Clock, Deadline, RequestLimits, RetryPolicy

if TYPE_CHECKING:
    import httpx2

    from taiwa.models.http_api.constraint_encoding import ConstraintCheck

__all__ = ["BaseUrl", "HttpModel", "Secret", "mask_error", "mask_text", "parse_base_url"]

MASK = "•••"
SHORTEST_PIECE = 6
PORTS = {"http": 80, "https": 443}
FORM = "write it like http://127.0.0.1:8080/v1, and give keys with `taiwa keys set`"
SAFE_IN_PATH = "/%:@!$&'()*+,;=-._~?"
HEADERS = (
    ("user-agent", "taiwa"),
    ("accept", "text/event-stream, application/json"),
    ("accept-encoding", "identity"),  # compressing a stream of small events makes servers delay them
)
READABLE = ("json", "event-stream", "text/plain", "octet-stream")
KEPT_SECONDS = 20.0
"""How long an idle connection is kept open."""
DRAIN_SECONDS = 0.5
"""How long the end of a response is waited for after the end of its answer, so that the connection can be used again."""
FAILURE_SECONDS = 10.0
FAILURE_BYTES = 2**20

T = TypeVar("T")
_Transports: TypeAlias = "dict[asyncio.AbstractEventLoop, tuple[httpx2.AsyncHTTPTransport, AsyncGenerator[None]]]"


# --- secrets ----------------------------------------------------------------------------------------------------------


class Secret:
    """An API key. Only `reveal` returns its text: it has no other form as a string, and cannot be pickled or copied."""

    __slots__ = ("_text",)

    def __init__(self, text: str, name: str = "the key") -> None:
        if not text:
            raise ConfigError(f"{name} is empty; set it with `taiwa keys set`")
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise ConfigError(
                f"{name} contains white space or a character that no key has; set it again with `taiwa keys set`"
            )
        self._text = text

    def reveal(self) -> str:
        """Return the text, for the header that carries it and for the file that stores it."""
        return self._text

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and compare_digest(self._text, other._text)

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled")


def mask_text(text: str, secrets: Iterable[str]) -> str:
    """Mask every secret in a text, and the beginning of one that the end of the text cuts off (`…` may mark the cut)."""
    for secret in secrets:
        text = text.replace(secret, MASK)
        end = len(text.rstrip("…"))
        for length in range(len(secret) - 1, SHORTEST_PIECE - 1, -1):
            if text.endswith(secret[:length], 0, end):
                text = text[: end - length] + MASK + text[end:]
                break
    return text


def mask_error(error: TaiwaError, secrets: Iterable[str]) -> None:
    """Mask every secret in the message and the details of an error."""
    secrets = tuple(secrets)
    for name in ("message", *error.details):
        said = getattr(error, name)
        if isinstance(said, str):
            setattr(error, name, mask_text(said, secrets))
    error.args = (error.message,)


# --- addresses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A base URL in its parts; `text` is as it was written, fit to stand in an error."""

    text: str
    scheme: str
    host: str
    port: int | None
    path: str

    @property
    def authority(self) -> str:
        """The host and port as the `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether it is a loopback address, which is never reached through a proxy."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def join(self, path: str) -> str:
        """Return the URL of a path below it, quoted for the wire."""
        below = quote("/".join((self.path, path.lstrip("/"))), safe=SAFE_IN_PATH)
        return f"{self.scheme}://{self.authority}{below}"


@lru_cache(maxsize=64)
def parse_base_url(base_url: str) -> BaseUrl:
    """Parse and check a base URL.

    Raises:
        ConfigError: it is not an HTTP address, or holds more than one, such as a password.
    """
    try:
        parts = urlsplit(base_url)
        port, name = parts.port, parts.hostname or ""
        host = name if ":" in name else name.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError, for a name that DNS cannot hold, is one of them
        raise ConfigError(f"invalid base URL; {FORM}") from None
    if "@" in parts.netloc or parts.query or parts.fragment or not base_url.isprintable():
        # perhaps a key: not repeated
        raise ConfigError(f"the base URL for {host!r} holds more than an address; {FORM}")
    if parts.scheme not in PORTS or not host:
        raise ConfigError(f"invalid base URL {base_url[:80]!r}; {FORM}")
    return BaseUrl(base_url, parts.scheme, host, None if port == PORTS[parts.scheme] else port, parts.path.rstrip("/"))


def _proxy(base: BaseUrl) -> "httpx2.Proxy | None":
    """Return the proxy that the environment names for a server, none for a loopback address."""
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
        if scheme in PORTS and proxy.url.host:
            return proxy
    raise ConfigError(
        f"unsupported {scheme[:20]!r} proxy for {base.host}; set HTTPS_PROXY to an http:// or https:// URL, "
        "or name the host in NO_PROXY"
    )


def _open_transport(base: BaseUrl) -> "httpx2.AsyncHTTPTransport":
    """Open the connection pool for one server and event loop.

    The client above the transport adds cookies, redirects, default headers and a proxy of its own, all of which would be
    switched off here.
    """
    import ssl

    import httpx2

    # Loading the certificates takes as long as fifty calls; without TLS there is nothing to verify.
    context = httpx2.create_ssl_context() if base.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The caller decides how many calls run at once; one that waited for a connection here would look slow.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEPT_SECONDS)
    return httpx2.AsyncHTTPTransport(verify=context, limits=limits, proxy=_proxy(base))


async def _keep(transport: "httpx2.AsyncHTTPTransport") -> AsyncGenerator[None]:
    """Hold the connections of one event loop: a loop that ends closes its generators, this one too."""
    try:
        yield
    finally:
        with suppress(*_faults()):
            await transport.aclose()


def _abandon(transports: "_Transports") -> None:
    """Close the connections of a model that is gone."""
    for loop, (_, keeper) in transports.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(loop.create_task, keeper.aclose())


@cache
def _faults() -> tuple[type[Exception], ...]:
    """Return the exceptions of connections, which `map_fault` maps."""
    import httpx2

    return (httpx2.TransportError, OSError)


# --- blocking calls ---------------------------------------------------------------------------------------------------

_background: asyncio.AbstractEventLoop | None = None
_background_lock = threading.Lock()


def _background_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all blocking calls of this process; its thread starts with the first one."""
    global _background  # noqa: PLW0603  (one loop per process)
    with _background_lock:
        if _background is None:
            _background = asyncio.new_event_loop()
            threading.Thread(target=_background.run_forever, name="taiwa-http", daemon=True).start()
        return _background


def _forget_background_loop() -> None:
    """Give a forked process a loop of its own, and so connections: two writers on one socket garble both."""
    global _background, _background_lock
    _background, _background_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_background_loop)


def _wait(work: Coroutine[None, None, T]) -> T:
    """Run a coroutine on the background loop; an interruption cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, _background_loop())
    try:
        return future.result()
    finally:
        future.cancel()


def _iterate(items: AsyncGenerator[T]) -> Generator[T]:
    """Yield the items of an asynchronous generator that runs on the background loop; closing cancels it.

    The generator may run ahead of its reader: the size limit of a response bounds what waits here.
    """
    queue: SimpleQueue[T | None] = SimpleQueue()

    async def pump() -> None:
        async with aclosing(items):
            async for item in items:
                queue.put(item)

    future = asyncio.run_coroutine_threadsafe(pump(), _background_loop())
    future.add_done_callback(lambda _: queue.put(None))
    try:
        while (item := queue.get()) is not None:
            yield item
        future.result()
    finally:
        future.cancel()


# --- calls ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """One call, ready to be sent; nothing in `secrets` may stand in an error."""

    http: "httpx2.Request"
    base: BaseUrl
    codec: Codec
    secrets: tuple[str, ...]
    request: Request | None = None


@dataclass(eq=False)
class HttpModel:
    """The model that a target names, over HTTP; one object serves all threads and event loops of a process.

    Connections are kept for later calls; those of an event loop end with it, the others with `close` or the object.

    Raises:
        ConfigError: the base URL or the key cannot be used.
    """

    target: Target
    key: InitVar[str | Secret | None] = None
    _: KW_ONLY
    limits: RequestLimits = field(default_factory=RequestLimits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    clock: Clock = field(default_factory=Clock, repr=False)

    def __post_init__(self, key: str | Secret | None) -> None:
        if self.target.inside:
            raise ConfigError(f"{self.target.name} runs in this process and has no server")
        self._base = parse_base_url(self.target.base_url)
        self._key = Secret(key, self.target.key_name or "the key") if isinstance(key, str) else key
        self._lock = threading.Lock()
        self._urls: dict[str, httpx2.URL] = {}
        self._transports: _Transports = {}
        weakref.finalize(self, _abandon, self._transports).atexit = False

    @property
    def name(self) -> str:
        """The name that the user gave it."""
        return self.target.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What its server can do."""
        return self.target.capabilities

    def holding(self, hold: Enforce) -> "HttpModel":
        """Return the same model with another way to treat what its server does not enforce; it has its own connections."""
        from taiwa.models.http_api.openai_chat import held_so

        return HttpModel(held_so(self.target, hold), self._key, limits=self.limits, retry=self.retry, clock=self.clock)

    def stream(self, request: Request) -> Generator[Chunk]:
        """Yield the answer in chunks, the last one `StreamEnd`; closing the iterator closes the connection at once.

        Raises:
            ModelError: the call failed.
            ConfigError: a header cannot be sent.
        """
        yield from _iterate(self.astream(request))  # a frame of its own, in which an interrupt finds it

    async def astream(self, request: Request) -> AsyncGenerator[Chunk]:
        """As `stream`; cancelling the task closes the connection at once."""
        call = self.target.codec.encode(request)
        checked = _checked(call, request)
        async with aclosing(self._attempts(self._post(call, request), _Attempt.answer)) as chunks:
            async for chunk in chunks:
                yield chunk if checked is None else checked.seen(chunk)

    def fetch(self, path: str) -> bytes:
        """Return a document of the server, such as its list of models (`models`).

        Raises:
            ModelError: the call failed.
        """
        # a protocol's own headers, its version for one, are those of any of its calls
        call = self.target.codec.encode(Request((user("x"),)))
        own = tuple(header for header in call.headers if header[0] != "content-type")
        return _wait(self._whole(self._outgoing("GET", path, own)))

    def send(self, call: WireRequest) -> bytes:
        """Return the response to a call as it comes, for calls that no `Request` expresses.

        Raises:
            ModelError: the call failed.
        """
        return _wait(self._whole(self._post(call)))

    async def _whole(self, call: _Outgoing) -> bytes:
        async with aclosing(self._attempts(call, _Attempt.whole)) as bodies:
            return await anext(bodies)

    async def _attempts(
        self, call: _Outgoing, read: "Callable[[_Attempt, httpx2.AsyncHTTPTransport], AsyncGenerator[T]]"
    ) -> AsyncGenerator[T]:
        """Try until an attempt succeeds, something was given out, or the retry policy gives up."""
        transport = await self._transport()
        deadline = Deadline(self.limits, self.clock.now)
        for made in count(1):
            attempt = _Attempt(call, self.limits, deadline)
            try:
                async with aclosing(read(attempt, transport)) as items:
                    async for item in items:
                        yield item
                return
            except ModelError as error:
                wait = None
                if attempt.may_repeat:
                    asked = wait_asked(attempt.headers)
                    wait = self.retry.decide(error, made, deadline.left, self.clock.random(), asked)
                if wait is None:
                    if made > 1:
                        error.message += f" (tried {made} times)"
                    mask_error(error, call.secrets)
                    error.request = call.request.digest if call.request else ""
                    raise
            await self.clock.sleep(wait)

    def _post(self, call: WireRequest, request: Request | None = None) -> _Outgoing:
        return self._outgoing("POST", call.path, call.headers, call.body, request)

    def _outgoing(
        self,
        method: str,
        path: str,
        headers: tuple[tuple[str, str], ...],
        body: bytes | None = None,
        request: Request | None = None,
    ) -> _Outgoing:
        """Write a call; httpx2 adds the headers `host` and `content-length`, and nothing else.

        Raises:
            ConfigError: a header cannot be sent.
        """
        import httpx2

        codec, secret = self.target.codec, self._key.reveal() if self._key else ""
        own = (*self.target.headers, *(codec.auth(secret) if secret else ()), *headers)
        for name, text in own:
            if not (name.isascii() and name.isprintable() and text.isascii() and text.isprintable()):
                raise ConfigError(f"the header {name[:40]!r} contains a character that is not allowed; set it again")
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = httpx2.URL(self._base.join(path))
        http = httpx2.Request(method, url, headers=[*HEADERS, *own], content=body)
        return _Outgoing(http, self._base, codec, (secret,) if secret else (), request)

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
        if _background in self._transports:
            _wait(self._close())

    async def aclose(self) -> None:
        """Close all kept connections of this event loop and of blocking calls."""
        self.close()
        await self._close()

    async def _close(self) -> None:
        _, keeper = self._transports.pop(asyncio.get_running_loop(), (None, None))
        if keeper is not None:
            await keeper.aclose()

    async def _transport(self) -> "httpx2.AsyncHTTPTransport":
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._transports:
            transport = _open_transport(self._base)
            keeper = _keep(transport)
            await anext(keeper)
            with self._lock:
                for old in [old for old in self._transports if old.is_closed()]:
                    del self._transports[old]
                self._transports[loop] = transport, keeper
        return self._transports[loop][0]


class _Body:
    """The body of a response, read by a task of its own.

    Servers send every few characters in a chunk of its own. The task collects what arrives together, so that one timer guards one
    wait, not one chunk, and the decoder is called once.
    """

    def __init__(self, response: "httpx2.Response", limit: int) -> None:
        self._pieces: list[bytes] = []
        self._arrived = asyncio.Event()
        self._task = asyncio.create_task(self._collect(response, limit))

    async def _collect(self, response: "httpx2.Response", limit: int) -> None:
        try:
            async with aclosing(response.aiter_raw()) as pieces:
                async for piece in pieces:
                    self._pieces.append(piece)
                    self._arrived.set()
                    limit -= len(piece)
                    if limit < 0:  # `_Attempt` reports it
                        return
        finally:
            self._arrived.set()

    async def read(self, seconds: float) -> bytes:
        """Return what has arrived, nothing at the end; wait no longer than these seconds."""
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

    async def aclose(self) -> None:
        """Stop reading."""
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()  # taken, so that asyncio does not log it


class _Attempt:
    """One attempt of a call: how far it came, and how long it may still take."""

    def __init__(self, call: _Outgoing, limits: RequestLimits, deadline: Deadline) -> None:
        self._call = call
        self._limits = limits
        self._deadline = deadline
        self._stage: Stage = "open"
        self._unpaid = True
        self._size = 0
        self._inflate: Callable[[bytes, int], bytes] | None = None
        self._response: httpx2.Response | None = None
        self._body: _Body | None = None
        self.headers: Mapping[str, str] = {}
        """The headers of the response; their names are lower-case, and the first of several counts."""

    @property
    def may_repeat(self) -> bool:
        """Whether the call may be made again: nothing was given out, and the server is not still working on it."""
        return self._unpaid and self._stage != "given" and self.headers.get("x-should-retry") != "false"

    async def answer(self, transport: "httpx2.AsyncHTTPTransport") -> AsyncGenerator[Chunk]:
        """Yield the chunks of an answer; `StreamEnd` comes when the connection is free again, as no reader reads on after it.

        Raises:
            ModelError: the call failed.
        """
        try:
            await self._open(transport)
            request = self._call.request
            decoder = self._call.codec.decoder(self.headers.get("content-type", ""), request.prefix if request else "")
            finished: StreamEnd | None = None
            ended = False
            while not ended and finished is None:
                try:
                    data = await self._read()
                    ended = not data
                    chunks = decoder.close() if ended else decoder.feed(data)
                except _faults() as fault:
                    ended = True
                    try:
                        chunks = (
                            decoder.close()
                        )  # an answer that is complete counts, even if its connection then breaks
                    except ModelError:
                        raise self._error(fault) from None
                for chunk in chunks:
                    self._stage = "given"
                    if isinstance(chunk, StreamEnd):
                        finished = chunk
                    else:
                        yield chunk
                if chunks and not ended:
                    decoder.feed(b"")  # a failure that stood behind these chunks is raised now, not after the next wait
            if not ended:
                await self._drain()
        finally:
            await self._close()
        if finished is not None:
            yield finished

    async def whole(self, transport: "httpx2.AsyncHTTPTransport") -> AsyncGenerator[bytes]:
        """Yield the body of a response.

        Raises:
            ModelError: the call failed.
        """
        pieces: list[bytes] = []
        try:
            await self._open(transport)
            while data := await self._read():
                pieces.append(data)
        except _faults() as fault:
            raise self._error(fault) from None
        finally:
            await self._close()
        yield b"".join(pieces)

    async def _open(self, transport: "httpx2.AsyncHTTPTransport") -> None:
        """Send the request and check the head of the response."""
        http, deadline = self._call.http, self._deadline
        http.extensions["timeout"] = deadline.begin_attempt()
        try:
            async with asyncio.timeout(deadline.until_first_byte()):
                self._response = await transport.handle_async_request(http)
        except _faults() as fault:
            raise self._error(fault) from None
        self._body = _Body(self._response, self._limits.response_bytes)
        headers: dict[str, str] = {}
        for name, text in self._response.headers.raw:
            headers.setdefault(name.decode("latin-1").lower(), text.decode("latin-1"))
        self.headers = headers
        status, coding = self._response.status_code, headers.get("content-encoding", "identity").lower()
        if not 200 <= status < 300:
            body = await self._failure_body() if coding == "identity" else b""
            for secret in self._call.secrets:
                body = body.replace(secret.encode(), MASK.encode())
            raise self._call.codec.failure(status, headers, body)
        kind = headers.get("content-type", "").lower()
        if kind and not any(word in kind for word in READABLE):
            raise self._not_an_answer(f"sends {quoted(kind, 60)} instead of an answer")
        if coding in ("gzip", "x-gzip", "deflate"):
            self._inflate = zlib.decompressobj(wbits=47).decompress  # 32 + 15: it finds out which of the two it is
        elif coding != "identity":
            raise self._not_an_answer(f"sends its answer packed ({quoted(coding, 60)}), which was not asked for")

    async def _read(self) -> bytes:
        """Return the next bytes of the body, unpacked; none at its end."""
        deadline = self._deadline
        while True:
            data = await self._next(
                deadline.until_first_byte() if self._stage == "open" else deadline.until_next_byte()
            )
            if not data:
                return b""
            if deadline.is_over:
                raise TimeoutError
            if self._stage == "open":
                self._stage = "answer"
            if self._inflate is not None:
                try:
                    # no more than may still come: a small body may unpack to gigabytes
                    data = self._inflate(data, self._limits.response_bytes + 1 - self._size)
                except zlib.error:
                    raise self._not_an_answer("sends its answer packed, and broken") from None
            self._size += len(data)
            if self._size > self._limits.response_bytes:
                raise self._not_an_answer(f"sends more than {self._limits.response_bytes / 2**20:g} MiB")
            if data:
                return data

    async def _next(self, seconds: float) -> bytes:
        assert self._body is not None
        return await self._body.read(seconds)

    async def _drain(self) -> None:
        """Read to the end of the response, so that its connection can be used again."""
        with suppress(*_faults()):
            seconds = min(DRAIN_SECONDS, self._deadline.left)
            async with asyncio.timeout(seconds):
                while await self._next(seconds):
                    pass

    async def _failure_body(self) -> bytes:
        """Read the body of a response that is not 2xx, as far as it comes."""
        body = b""
        with suppress(*_faults()):  # the status says enough
            seconds = min(FAILURE_SECONDS, self._deadline.left)
            async with asyncio.timeout(seconds):
                while len(body) < FAILURE_BYTES and (data := await self._next(seconds)):
                    body += data
        return body

    async def _close(self) -> None:
        """Release the connection; a response that was not read to its end takes it along."""
        with suppress(*_faults()):
            if self._body is not None:
                await self._body.aclose()
            if self._response is not None:
                await self._response.aclose()

    def _error(self, fault: Exception) -> ModelError:
        base, limits = self._call.base, self._limits
        endpoint = Endpoint(base.authority, base.text, limits.connect, limits.first_byte, limits.between, limits.total)
        error, self._unpaid = map_fault(fault, self._stage, endpoint, late=self._deadline.is_over)
        return error

    def _not_an_answer(self, what: str) -> ProtocolError:
        base = self._call.base
        return ProtocolError(
            f"{base.authority} {what}; check that {base.text} leads to a model server (mostly it ends in /v1)"
        )


def _checked(call: WireRequest, request: Request) -> "ConstraintCheck | None":
    if call.enforcement is None:
        return None
    from taiwa.models.http_api.constraint_encoding import ConstraintCheck

    return ConstraintCheck(call.enforcement, request)
