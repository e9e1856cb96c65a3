"""Sockets for the transport whose every wait asks its call how long it may take."""

from collections.abc import Iterable
from ssl import SSLContext
from typing import Any

import httpcore2

from taiwa.models.exchange import Patience
from taiwa.models.reframe import Reframe

__all__ = ["Sockets", "seconds_left"]


def seconds_left(timeout: float | None, over: type[Exception]) -> float | None:
    """The seconds that a wait may take from now; raises `over` when there are none."""
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
        self._frame = Reframe()
        self._asking = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._asking = False
        while data := self._inner.read(max_bytes, seconds_left(timeout, httpcore2.ReadTimeout)):
            if data := self._frame.feed(data):
                return data
        return b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not self._asking:
            self._asking = True
            self._frame.begin(buffer)
        self._inner.write(buffer, seconds_left(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return Socket(
            self._inner.start_tls(ssl_context, server_hostname, seconds_left(timeout, httpcore2.ConnectTimeout))
        )

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
        seconds = seconds_left(timeout, httpcore2.ConnectTimeout)
        return Socket(super().connect_tcp(host, port, seconds, local_address, socket_options))
