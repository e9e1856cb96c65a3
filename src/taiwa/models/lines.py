"""How the wishes of a call travel: connections kept in shards, and one line per call, blocking or asynchronous.

This file, `sockets.py` and `loopsockets.py` alone know the transport (httpcore2, the core of httpx2); they are imported
at the first call. The core is used without its client because the client cannot end a wait when the time of a whole call
is over, and costs as much again per call.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.values import Chunk
from taiwa.models.broken import Broken
from taiwa.models.exchange import Flow, Give, Head, Open, Read, Wait
from taiwa.models.letter import Address
from taiwa.models.loopsockets import AsyncSockets
from taiwa.models.pool import Pool, Shards
from taiwa.models.sockets import Sockets

__all__ = ["AsyncLine", "AsyncShards", "Line", "SyncShards", "aperform", "async_shards", "kept", "perform", "shards"]

FAULTS: tuple[type[Exception], ...] = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    OSError,
)
"""All that a connection may raise; `broken.py` reads it."""

T = TypeVar("T")
SyncShards: TypeAlias = Shards[httpcore2.ConnectionPool]
AsyncShards: TypeAlias = Shards[httpcore2.AsyncConnectionPool]


def shards(address: Address, terms: Pool) -> SyncShards:
    """Make the pools of the blocking face."""
    settings: dict[str, Any] = _settings(address, terms) | {"network_backend": Sockets()}
    if proxy := _proxy(address):
        return Shards(lambda: httpcore2.HTTPProxy(**proxy, **settings), terms)
    return Shards(lambda: httpcore2.ConnectionPool(**settings), terms)


def async_shards(address: Address, terms: Pool) -> AsyncShards:
    """Make the pools of the asynchronous face, for one event loop."""
    settings: dict[str, Any] = _settings(address, terms) | {"network_backend": AsyncSockets()}
    if proxy := _proxy(address):
        return Shards(lambda: httpcore2.AsyncHTTPProxy(**proxy, **settings), terms)
    return Shards(lambda: httpcore2.AsyncConnectionPool(**settings), terms)


async def kept(shards: AsyncShards) -> AsyncGenerator[None]:
    """Hold the pools of one event loop: a loop that ends closes its generators, this one too, and so the connections."""
    try:
        yield
    finally:
        for pool in shards.clear():
            with suppress(*FAULTS):
                await pool.aclose()


def perform(flow: Flow[T], line: "Line") -> Generator[Chunk, None, T]:
    """Obey a call to its end, giving out its chunks; the value is the call's."""
    try:
        wish = next(flow)
        while True:
            if isinstance(wish, Give):
                yield from wish.chunks
                wish = next(flow)
                continue
            try:
                answer = line.obey(wish)
            except FAULTS as fault:
                wish = flow.throw(Broken(fault))
            else:
                wish = flow.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


async def aperform(flow: Flow[None], line: "AsyncLine") -> AsyncGenerator[Chunk]:
    """As `perform`, asynchronously."""
    try:
        wish = next(flow)
        while True:
            if isinstance(wish, Give):
                for chunk in wish.chunks:
                    yield chunk
                wish = next(flow)
                continue
            try:
                answer = await line.obey(wish)
            except FAULTS as fault:
                wish = flow.throw(Broken(fault))
            else:
                wish = flow.send(answer)
    except StopIteration:
        return


def _settings(address: Address, terms: Pool) -> dict[str, Any]:
    """One TLS context for all pools of a server: making it takes as long as fifty calls."""
    return {
        "ssl_context": httpcore2.default_ssl_context() if address.scheme == "https" else None,
        "max_connections": None,  # how many calls there are is for the caller to say; one that waits here would look slow
        "keepalive_expiry": terms.idle,
    }


def _proxy(address: Address) -> dict[str, Any]:
    """Find the proxy that the environment names for this address; this machine itself is never reached through one."""
    if address.is_local or proxy_bypass(address.host):
        return {}
    proxies = getproxies()
    url = proxies.get(address.scheme) or proxies.get("all")
    if not url:
        return {}
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"the proxy for {address.host} is of the kind {parts.scheme or 'none'!r}; "
            "only http:// and https:// proxies can be used: mend HTTPS_PROXY, or name the host in NO_PROXY"
        )
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found: dict[str, Any] = {
        "proxy_url": httpcore2.URL(scheme=parts.scheme, host=parts.hostname, port=port, target="/")
    }
    if parts.username:
        found["proxy_auth"] = (unquote(parts.username), unquote(parts.password or ""))
    return found


def _request(wish: Open) -> httpcore2.Request:
    letter = wish.letter
    address = letter.address
    url = httpcore2.URL(scheme=address.scheme, host=address.host, port=address.port, target=letter.path)
    times = {"connect": wish.connect, "read": wish.read, "write": wish.read}
    return httpcore2.Request(
        letter.method, url, headers=list(letter.headers), content=letter.body or None, extensions={"timeout": times}
    )


def _head(response: httpcore2.Response) -> Head:
    headers: dict[str, str] = {}
    for name, text in response.headers:
        headers.setdefault(name.decode("latin-1").lower(), text.decode("latin-1"))
    return Head(response.status, headers)


class Line:
    """The blocking line of one call."""

    def __init__(self, shards: SyncShards, sleep: Callable[[float], None]) -> None:
        self._shards = shards
        self._shard = shards.take()
        self._sleep = sleep
        self._response: httpcore2.Response | None = None
        self._body: Iterator[bytes] = iter(())

    def obey(self, wish: Open | Read | Wait) -> Head | bytes | None:
        """Perform a wish; raises one of FAULTS."""
        if isinstance(wish, Read):
            return next(self._body, b"")
        self._hang_up()
        if isinstance(wish, Wait):
            self._sleep(wish.seconds)
            return None
        self._response = self._shard.pool.handle_request(_request(wish))
        self._body = self._response.iter_stream()
        return _head(self._response)

    def close(self) -> None:
        """End the call: an answer that was not read to its end takes its connection with it."""
        try:
            self._hang_up()
        finally:
            self._shards.give_back(self._shard)

    def _hang_up(self) -> None:
        response, self._response, self._body = self._response, None, iter(())
        with suppress(*FAULTS):
            if response is not None:
                response.close()


class AsyncLine:
    """The asynchronous line of one call."""

    def __init__(self, shards: AsyncShards, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._shards = shards
        self._shard = shards.take()
        self._sleep = sleep
        self._response: httpcore2.Response | None = None
        self._body: AsyncGenerator[bytes] | None = None

    async def obey(self, wish: Open | Read | Wait) -> Head | bytes | None:
        """Perform a wish; raises one of FAULTS."""
        if isinstance(wish, Read):
            assert self._body is not None
            return await anext(self._body, b"")
        await self._hang_up()
        if isinstance(wish, Wait):
            await self._sleep(wish.seconds)
            return None
        self._response = await self._shard.pool.handle_async_request(_request(wish))
        self._body = self._response.aiter_stream()
        return _head(self._response)

    async def aclose(self) -> None:
        """End the call: an answer that was not read to its end takes its connection with it."""
        try:
            await self._hang_up()
        finally:
            self._shards.give_back(self._shard)

    async def _hang_up(self) -> None:
        body, response = self._body, self._response
        self._body = self._response = None
        with suppress(*FAULTS):
            if body is not None:
                await body.aclose()
            if response is not None:
                await response.aclose()
