"""Sockets for the transport whose every wait asks its call how long it may take."""

from collections.abc import Iterable
from ssl import SSLContext
from typing import Any, cast

import httpcore2

from taiwa.models.exchange import Patience

__all__ = ["AsyncSockets", "Sockets"]


def _left(timeout: float | None, over: type[Exception]) -> float | None:
    if not isinstance(timeout, Patience):
        return timeout
    left = timeout.left
    if left <= 0:
        raise over
    return left


class Socket(httpcore2.NetworkStream):
    """A blocking socket whose every wait asks the call how long it may take."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return Socket(self._inner.start_tls(ssl_context, server_hostname, _left(timeout, httpcore2.ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  (the transport's interface)
        return self._inner.get_extra_info(info)


class Sockets(httpcore2.SyncBackend):
    """Opens blocking sockets."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        left = _left(timeout, httpcore2.ConnectTimeout)
        return Socket(super().connect_tcp(host, port, left, local_address, socket_options))


class AsyncSocket(httpcore2.AsyncNetworkStream):
    """An asynchronous socket whose every wait asks the call how long it may take."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  (the transport's)
        return await self._inner.read(max_bytes, _left(timeout, httpcore2.ReadTimeout))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  (the transport's)
        await self._inner.write(buffer, _left(timeout, httpcore2.WriteTimeout))

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (the transport's interface)
    ) -> httpcore2.AsyncNetworkStream:
        left = _left(timeout, httpcore2.ConnectTimeout)
        return AsyncSocket(await self._inner.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  (the transport's interface)
        return self._inner.get_extra_info(info)


class AsyncSockets(httpcore2.AsyncNetworkBackend):
    """Opens asynchronous sockets."""

    def __init__(self) -> None:
        # its class is defined twice there, the second time for want of anyio, so type checkers lose sight of it
        self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (the transport's interface)
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        left = _left(timeout, httpcore2.ConnectTimeout)
        return AsyncSocket(await self._inner.connect_tcp(host, port, left, local_address, socket_options))
