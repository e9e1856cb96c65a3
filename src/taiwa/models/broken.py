"""What the network did to a call, as one of our errors: one table.

The rows are found by the names of the transport's exceptions, so this file does not import the transport.
"""

import errno
import socket
import ssl
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal, cast

from taiwa.kernel.errors import (
    ModelError,
    OverloadedError,
    ProtocolError,
    TimeoutError,
)

__all__ = ["Broken", "Stage", "error_of"]

Stage = Literal["open", "answer", "given"]
"""How far a call came: no byte of an answer yet · an answer began · words of it were given out."""


class Broken(Exception):  # noqa: N818  (a message between the faces and the rules, never seen outside)
    """Carries what the transport raised into the rules."""

    def __init__(self, cause: Exception) -> None:
        super().__init__()
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Row:
    """The error for one fault: its type, what happened and what to do next, and whether the call may be made again.

    A call that a server may still be working on is not: it would be paid twice.
    """

    kind: type[ModelError]
    words: str
    again: bool = False


TABLE = {
    "late": Row(TimeoutError, "{host} took longer than the {total:g} s that an answer may take; raise `timeout` in the settings"),
    "no route": Row(OverloadedError, "no way leads to {host}; check the network", again=True),
    "no host": Row(OverloadedError, "no host is called {host}; check the base URL {url} and the network", again=True),
    "refused": Row(OverloadedError, "nothing listens at {host}: is the server running at {url}?", again=True),
    "untrusted": Row(ProtocolError, "the certificate of {host} is not trusted; name its authority in SSL_CERT_FILE"),
    "no tls": Row(ProtocolError, "{host} does not speak TLS; is it http:// instead of https://?"),
    "unconnected": Row(OverloadedError, "no connection to {host}: is the server running at {url}?", again=True),
    "no connection": Row(
        TimeoutError, "no connection to {host} within {connect:g} s: is the server running at {url}?", again=True
    ),
    "not taken": Row(TimeoutError, "{host} did not take the request within {first_byte:g} s; try again later"),
    "no answer": Row(TimeoutError, "no answer from {host} within {first_byte:g} s; try again, or raise the time to the first byte"),
    "stalled": Row(TimeoutError, "{host} stalled for {between:g} s in the middle of its answer; try again"),
    "hung up": Row(OverloadedError, "{host} hung up before it answered; look at the log of the server at {url}", again=True),
    "cut": Row(ProtocolError, "{host} broke off in the middle of its answer; try again"),
    "not http": Row(ProtocolError, "{host} does not speak HTTP; check that {url} leads to a model server"),
    "proxy": Row(ProtocolError, "the proxy on the way to {host} fails; check HTTPS_PROXY, or name the host in NO_PROXY"),
}  # fmt: skip
UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})


@dataclass(frozen=True, slots=True)
class Place:
    """What the sentences name: the host, its base URL, and the time limits in seconds."""

    host: str
    url: str
    connect: float
    first_byte: float
    between: float
    total: float


def error_of(cause: Exception, stage: Stage, place: Place, *, late: bool) -> tuple[ModelError, bool]:
    """Make our error from the transport's, and tell whether the call may be made again.

    `late` tells that the time for the whole call has run out.
    """
    row = TABLE["late" if late else _fault(cause, stage)]
    return row.kind(row.words.format(**asdict(place))), row.again


def _fault(cause: Exception, stage: Stage) -> str:
    names = {cls.__name__ for cls in type(cause).__mro__}
    if "ProxyError" in names:
        return "proxy"
    if "ConnectTimeout" in names:
        return "no connection"
    if "ConnectError" in names:
        return _connect_fault(cause)
    if "WriteTimeout" in names:
        return "not taken"
    if "TimeoutException" in names:
        return "no answer" if stage == "open" else "stalled"
    if "ProtocolError" in names and not any(word in str(cause) for word in ("disconnected", "peer closed")):
        return "not http"
    return "cut" if stage == "given" else "hung up"


def _connect_fault(cause: Exception) -> str:
    for error in _causes(cause):
        if isinstance(error, ssl.SSLCertVerificationError):
            return "untrusted"
        if isinstance(error, ssl.SSLError):
            return "no tls"
        if isinstance(error, socket.gaierror):
            return "no host"
        if isinstance(error, ConnectionRefusedError):
            return "refused"
        if isinstance(error, OSError) and error.errno in UNREACHABLE:
            return "no route"
    return "unconnected"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that it came from. The transport cuts the chain of causes, but hands them on as arguments."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop(0)
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [*one.args, one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", one).exceptions
