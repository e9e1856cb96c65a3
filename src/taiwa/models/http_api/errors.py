"""Map HTTP error responses of all protocols, and faults of the network, to error classes."""

import builtins
import errno
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from time import time
from typing import Literal, NamedTuple, TypeAlias, cast

from taiwa.kernel.errors import (
    AuthenticationError,
    ModelError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    RefusalError,
    TimeoutError,
    UnsupportedError,
)
from taiwa.kernel.records import Json, count_at, item_at, text_at
from taiwa.kernel.text import join_surrogates
from taiwa.models.http_api.provider_interface import parse

__all__ = [
    "Endpoint",
    "FaultMapping",
    "Server",
    "Stage",
    "failure",
    "inside",
    "map_fault",
    "not_in_protocol",
    "quoted",
    "wait_asked",
]

QUOTED = 300
BODY = 500

KINDS: Mapping[str, str] = {
    kind: verdict
    for verdict, kinds in {
        "credit": "insufficient_quota insufficient_balance billing_error billing_hard_limit_reached payment_required",
        "auth": "authentication_error invalid_api_key incorrect_api_key unauthenticated "
        "unauthorized invalid_authentication account_deactivated",
        "forbidden": "permission_error permission_denied forbidden",
        "rate": "rate_limit_error rate_limit_exceeded resource_exhausted too_many_requests rate_limited requests tokens",
        "busy": "overloaded_error overloaded api_error server_error internal_server_error internal_error internal "
        "internalservererror unavailable unavailable_error service_unavailable engine_overloaded slow_down bad_gateway",
        "time": "timeout_error timeout request_timeout deadline_exceeded gateway_timeout",
        "refused": "content_filter content_policy_violation responsibleaipolicyviolation content_filtered "
        "data_inspection_failed moderation moderation_blocked",
        "long": "context_length_exceeded exceed_context_size_error request_too_large string_above_max_length "
        "model_context_window_exceeded",
        "missing": "model_not_found not_found_error model_not_available model_not_exist",
        "unsupported": "unsupported_parameter unsupported_value",
    }.items()
    for kind in kinds.split()
}
"""What the words that servers put into `type`, `code` and `status` mean."""

STATUSES: Mapping[int, str] = {
    401: "auth", 402: "credit", 403: "forbidden", 404: "missing", 408: "time", 413: "long", 425: "busy", 429: "rate",
}  # fmt: skip

SENTENCES: Mapping[str, tuple[type[ModelError], str]] = {
    # The server's words are left out: some servers repeat the key.
    "auth": (AuthenticationError, "{who} does not accept the key for {model}{code}; set it with `taiwa keys set`"),
    "forbidden": (
        AuthenticationError,
        "{who} does not let this key use {model}{code}{said}; give it the right, or set another with `taiwa keys set`",
    ),
    "credit": (
        AuthenticationError,
        "{who} says that no credit is left behind this key{code}; see the provider's billing page",
    ),
    "rate": (RateLimitError, "{who} gets too many requests{code}{wait}{said}"),
    "busy": (OverloadedError, "{who} cannot answer now{code}{said}"),
    "time": (TimeoutError, "{who} took too long{code}{said}"),
    "refused": (RefusalError, "{who} refuses this request{code}{said}; change what is asked"),
    "long": (
        ModelError,
        "the request is longer than {model} can read{code}{said}; keep fewer turns or choose a larger model",
    ),
    "missing": (ModelError, "{who} has no model {model}{code}{said}; see its list of models"),
    "nowhere": (ModelError, "nothing answers at this address of {who}{code}{said}; a base URL mostly ends in /v1"),
    "schema": (UnsupportedError, "{who} does not take this schema for {model}{code}{said}"),
    "unsupported": (UnsupportedError, "{model} does not take {parameter}{code}{said}"),
    "invalid": (ModelError, "{who} does not accept the request for {model}{code}{said}"),
}
"""What each verdict is called, and what it says: one line with what to do next."""

TOO_LONG = re.compile(
    r"context[ _](?:length|size|window)|maximum context|prompt is too long|input is too long|too many (?:input )?tokens"
    r"|exceeds? the (?:available|model'?s?|maximum) (?:context|maximum|number of tokens)|reduce the length|input length and `?max_tokens`? exceed|too large to process",
    re.IGNORECASE,
)
NO_SUCH_MODEL = re.compile(
    r"model\b.{0,120}\b(?:not found|does not exist|not exist|no such|unknown|pull)|no such model", re.IGNORECASE
)
BAD_KEY = re.compile(
    r"api[ _-]?key\b.{0,80}\b(?:not valid|invalid|incorrect|expired|missing)|(?:incorrect|invalid) api[ _-]?key",
    re.IGNORECASE,
)
NO_SUCH_SCHEMA = re.compile(
    r"json[ _-]?schema (?:error|conversion|contains|is not|too)|(?:invalid|unsupported) (?:json )?schema"
    r"|response_format|structured_outputs|output_config|grammar (?:error|is too)|(?:parse|compile) (?:the )?grammar"
    r"|not supported by (?:xgrammar|outlines|llguidance|guidance)",
    re.IGNORECASE,
)
SECRET = re.compile(
    r"(?i:bearer|basic)\s+\S{6,}"
    r"|\bsk-[A-Za-z0-9_.*-]{6,}"
    r"|\b(?:pk|rk|gsk|xai|hf|csk|key|api|tgp|fw|nvapi)[-_](?=[A-Za-z_.-]*[\d*])[A-Za-z0-9_.*-]{6,}"
    r"|\bAIza[\w*-]{6,}"
    r"|(?=[A-Za-z0-9_.*-]*\*{3})[A-Za-z0-9_.*-]{8,}"
    r"|\b(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[A-Za-z0-9_]{32,}\b"
)
TITLE = re.compile(r"<title[^>]*>(.{0,200}?)</title", re.IGNORECASE | re.DOTALL)


class Server(NamedTuple):
    """Who failed, as errors name it: the server and the model that was asked."""

    label: str
    model: str


class Complaint(NamedTuple):
    """What could be read of an error: the server's words, the kinds it named, the parameter it blames."""

    words: str
    kinds: frozenset[str]
    parameter: str = ""
    status: int | None = None


def quoted(text: str, limit: int = QUOTED) -> str:
    """Make a server's words fit to stand in an error: one line, printable, short, and without anything like a key."""
    head = SECRET.sub("[key]", join_surrogates(text[: 4 * limit]))
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in head).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def failure(status: int, headers: Mapping[str, str], body: bytes, server: Server) -> ModelError:
    """Read an answer that is not 2xx; header names are lower-case."""
    kind = headers.get("content-type", "")
    complaint = _complaint(body)
    if complaint is None:
        page = "html" in kind or body.lstrip()[:1] == b"<"
        said = _title(body) if page else quoted(body[: 8 * QUOTED].decode("utf-8", "replace"))
        complaint = Complaint(f"a web page ({said})" if page and said else "a web page" if page else said, frozenset())
    if 300 <= status < 400:
        return ModelError(
            f"{server.label} sends elsewhere ({status}, to {quoted(headers.get('location', 'nowhere'))}): mend the base URL",
            status=status,
        )
    return _error(complaint, status, server, wait_asked(headers))


def inside(error: Json, server: Server) -> ModelError:
    """Read an error object that stands in an answer that began well (HTTP 200)."""
    complaint = _read(error)
    return _error(complaint, complaint.status, server, None)


def not_in_protocol(what: str, body: str, server: Server) -> ProtocolError:
    """Make the error for an answer that breaks its protocol."""
    return ProtocolError(
        f"{server.label} {what}; check that its base URL leads to a model server", body=quoted(body, BODY)
    )


def wait_asked(headers: Mapping[str, str]) -> float | None:
    """Read how many seconds the server asks to wait (RFC 9110, section 10.2.3): seconds, or a date.

    A date counts from the server's own clock where it tells it, so a wrong clock here does no harm.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, ""))
        if seconds is not None:
            return max(0.0, seconds * unit)
    until = _moment(headers.get("retry-after", ""))
    if until is None:
        return None
    now = _moment(headers.get("date", ""))
    return max(0.0, until - (time() if now is None else now))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _moment(text: str) -> float | None:
    if not text:
        return None
    # Imported here: it takes as long to import as all the codecs, and few answers hold a date.
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _title(body: bytes) -> str:
    found = TITLE.search(body[:20_000].decode("utf-8", "replace"))
    return quoted(found.group(1), 100) if found else ""


def _complaint(body: bytes) -> Complaint | None:
    """Read the error of a body; None when it is not a JSON object or array of one."""
    try:
        data = parse(body)
    except ValueError:
        return None
    if isinstance(data, list) and data:
        data = data[0]
    return _read(data) if isinstance(data, (dict, str)) else None


def _read(data: Json) -> Complaint:
    """Read the shapes in use: `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, or words alone."""
    if isinstance(data, str):
        return Complaint(data, frozenset())
    error = item_at(data, "error")
    outer = data
    if isinstance(error, dict):
        data = error
    elif isinstance(error, str):
        return Complaint(error, _kinds(outer))
    words = text_at(data, "message") or text_at(data, "detail") or text_at(data, "msg") or _details(data)
    raw = text_at(data, "metadata", "raw")
    if raw and raw not in words:
        words = f"{words}: {raw}"
    parameter = text_at(data, "param")
    kinds = _kinds(data) | _kinds(outer) | (_kinds(item_at(data, "innererror")))
    return Complaint(words, kinds, parameter, count_at(data, "code") or count_at(data, "status"))


def _kinds(data: Json) -> frozenset[str]:
    return frozenset(text_at(data, key).lower() for key in ("type", "code", "status")) - {"", "error"}


def _details(data: Json) -> str:
    """The first entry of a validation report (`detail` or `message` as a list or object), with its place."""
    detail = item_at(data, "detail") or item_at(data, "message")
    if isinstance(detail, dict):
        detail = detail.get("detail", detail)
    first = detail[0] if isinstance(detail, list) and detail else detail
    place = item_at(first, "loc")
    where = ".".join(str(step) for step in place) + ": " if isinstance(place, list) else ""
    return where + text_at(first, "msg")


def _verdict(complaint: Complaint, status: int | None) -> str:
    """Decide what went wrong: the kinds that the server named, else its words, else the status."""
    named = {KINDS[kind] for kind in complaint.kinds if kind in KINDS}
    for verdict in ("refused", "long", "credit"):
        if verdict in named:
            return verdict
    invalid = status is None or status in (400, 413, 422)
    if (invalid or status == 500) and TOO_LONG.search(complaint.words):  # llama.cpp's embeddings say 500
        return "long"
    if invalid and BAD_KEY.search(complaint.words):
        return "auth"
    if invalid and NO_SUCH_MODEL.search(complaint.words):
        return "missing"
    if invalid and NO_SUCH_SCHEMA.search(f"{complaint.parameter} {complaint.words}"):
        return "schema"
    if status is not None and status in STATUSES and not (status == 403 and "rate" in named):
        return STATUSES[status]
    for verdict in ("auth", "forbidden", "rate", "busy", "time", "missing", "unsupported"):
        if verdict in named and not (verdict == "busy" and status is not None and status < 500):
            return verdict
    return "busy" if status is not None and status >= 500 and status != 501 else "invalid"


def _error(complaint: Complaint, status: int | None, server: Server, wait: float | None) -> ModelError:
    verdict = _verdict(complaint, status)
    if verdict == "missing":
        verdict = "missing" if _names_model(complaint, server) else "nowhere"
    kind, sentence = SENTENCES[verdict]
    words = quoted(complaint.words)
    message = sentence.format(
        who=server.label,
        model=repr(server.model),
        code="" if status is None else f" ({status})",
        said=f": {words}" if words else "",
        wait="" if wait is None else f", try again in {wait:g} s",
        parameter=complaint.parameter or "one of the parameters",
    )
    if kind is RateLimitError:
        return RateLimitError(message, retry_after=wait, status=status)
    if kind is UnsupportedError:
        capability = "json_schema" if verdict == "schema" else complaint.parameter
        return UnsupportedError(message, capability=capability, status=status)
    return kind(message, status=status)


def _names_model(complaint: Complaint, server: Server) -> bool:
    """Tell a model that the server does not have from an address that it does not have."""
    kinds = {KINDS.get(kind) for kind in complaint.kinds}
    return "missing" in kinds or NO_SUCH_MODEL.search(complaint.words) is not None or server.model in complaint.words


# --- faults of the network --------------------------------------------------------------------------------------------

Stage: TypeAlias = Literal["open", "answer", "given"]
"""How far a call came: no byte of a response yet · a response began · chunks of it were given out."""


@dataclass(frozen=True, slots=True)
class FaultMapping:
    """The error for one fault: its class, the message, and whether the call may be made again.

    A call that a server may still be working on is not made again: it would be paid twice.
    """

    kind: type[ModelError]
    words: str
    again: bool = False


TABLE = {
    "late": FaultMapping(TimeoutError, "{host} took longer than the {total:g} s that an answer may take; raise `timeout` in the settings"),
    "no route": FaultMapping(OverloadedError, "cannot reach {host}; check the network", again=True),
    "no host": FaultMapping(OverloadedError, "unknown host {host}; check the base URL {url} and the network", again=True),
    "refused": FaultMapping(OverloadedError, "nothing listens at {host}: is the server running at {url}?", again=True),
    "untrusted": FaultMapping(ProtocolError, "the certificate of {host} is not trusted; name its authority in SSL_CERT_FILE"),
    "no tls": FaultMapping(ProtocolError, "{host} does not speak TLS; is it http:// instead of https://?"),
    "unconnected": FaultMapping(OverloadedError, "no connection to {host}: is the server running at {url}?", again=True),
    "no connection": FaultMapping(
        TimeoutError, "no connection to {host} within {connect:g} s: is the server running at {url}?", again=True
    ),
    "not taken": FaultMapping(TimeoutError, "{host} did not take the request within {first_byte:g} s; try again later"),
    "no answer": FaultMapping(TimeoutError, "no answer from {host} within {first_byte:g} s; try again, or raise the time to the first byte"),
    "stalled": FaultMapping(TimeoutError, "{host} stalled for {between:g} s in the middle of its answer; try again"),
    "hung up": FaultMapping(OverloadedError, "{host} hung up before it answered; look at the log of the server at {url}", again=True),
    "cut": FaultMapping(ProtocolError, "{host} broke off in the middle of its answer; try again"),
    "not http": FaultMapping(ProtocolError, "{host} does not speak HTTP; check that {url} leads to a model server"),
    "proxy": FaultMapping(ProtocolError, "the proxy on the way to {host} fails; check HTTPS_PROXY, or name the host in NO_PROXY"),
}  # fmt: skip
UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the messages name: the host, its base URL, and the limits of a call in seconds."""

    host: str
    url: str
    connect: float
    first_byte: float
    between: float
    total: float


def map_fault(cause: Exception, stage: Stage, endpoint: Endpoint, *, late: bool) -> tuple[ModelError, bool]:
    """Map an exception of httpx2, or an `OSError`, to an error and whether the call may be made again.

    `late` tells that the time of the whole call is used up.
    """
    row = TABLE["late" if late else _fault(cause, stage)]
    return row.kind(row.words.format(**asdict(endpoint))), row.again


def _fault(cause: Exception, stage: Stage) -> str:
    import httpx2

    match cause:
        case httpx2.ProxyError():
            return "proxy"
        case httpx2.ConnectTimeout():
            return "no connection"
        case httpx2.ConnectError():
            return _connect_fault(cause)
        case httpx2.WriteTimeout():
            return "not taken"
        case httpx2.TimeoutException() | builtins.TimeoutError():
            return "no answer" if stage == "open" else "stalled"
        case httpx2.ProtocolError() if not any(word in str(cause) for word in ("disconnected", "peer closed")):
            return "not http"
        case _:
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
    """Yield an error and all that it came from, through causes, contexts, groups and arguments."""
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
