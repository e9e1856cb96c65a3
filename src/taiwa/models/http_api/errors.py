"""Map HTTP error responses of all protocols, and faults of the network, to error classes."""

import builtins
import errno
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from math import isfinite
from time import time
from typing import Literal, NamedTuple, TypeAlias, cast

from taiwa.kernel.errors import (
    AuthenticationError,
    ContextLengthError,
    ModelError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    RefusalError,
    TimeoutError,
    UnsupportedError,
)
from taiwa.kernel.serialization import Json, count_at, item_at, parse_json, text_at
from taiwa.kernel.text import join_surrogates, truncate
from taiwa.models.http_api.provider_interface import BaseUrl, RequestLimits, Server

QUOTED = 300
"""The most characters of a server's text in an error message."""
BODY = 500

CAUSES: Mapping[str, str] = {
    name: cause
    for cause, names in {
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
    for name in names.split()
}
"""The cause of a failure, by the `type`, `code` or `status` in the body."""

STATUSES: Mapping[int, str] = {
    401: "auth", 402: "credit", 403: "forbidden", 404: "missing", 408: "time", 413: "long", 425: "busy", 429: "rate",
}  # fmt: skip

MESSAGES: Mapping[str, tuple[type[ModelError], str]] = {
    # Without the server's text, because some servers repeat the key.
    "auth": (AuthenticationError, "{who} does not accept the key{place} for {model}{code}; {remedy}"),
    "forbidden": (
        AuthenticationError,
        "{who} does not allow the key{place} to use {model}{code}{text}; permit it, or {remedy}",
    ),
    "credit": (
        AuthenticationError,
        "{who} reports that the credit of this key is used up{code}; see the billing page of the provider",
    ),
    "rate": (RateLimitError, "{who} receives too many requests{code}{wait}{text}"),
    "busy": (OverloadedError, "{who} cannot answer now{code}{text}"),
    "time": (TimeoutError, "{who} took too long{code}{text}"),
    "refused": (RefusalError, "{who} refuses this request{code}{text}; change its content"),
    "long": (
        ContextLengthError,
        "the request is longer than the model's context length: {model}{code}{text}; keep fewer turns, or choose a model with a larger context",
    ),
    "missing": (ModelError, "{who} does not have the model {model}{code}{text}; see its list of models"),
    "nowhere": (
        ModelError,
        "{who} does not have this path{code}{text}; check the base URL, which mostly ends in /v1; a server without chat needs --wire completions",
    ),
    "schema": (UnsupportedError, "{who} does not take this schema for {model}{code}{text}"),
    "prefix": (UnsupportedError, "{who} does not continue an answer for {model}{code}{text}"),
    "tools": (UnsupportedError, "{who} does not call tools for {model}{code}{text}"),
    "unsupported": (UnsupportedError, "{model} does not take {parameter}{code}{text}"),
    "cut": (ProtocolError, "{who} broke off in the middle of its answer; try again"),
    "invalid": (ModelError, "{who} does not accept the request for {model}{code}{text}"),
}
"""The class and the message of the error for each cause."""

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
NO_PREFIX = re.compile(
    r"prefill|continue_final_message|(?:conversation must end|last (?:message|role|turn))\b.{0,80}\b(?:user|assistant)",
    re.IGNORECASE | re.DOTALL,
)
"""The server does not support prefill: Claude since 4.6, Mistral and others that require a user message last."""
NO_TOOLS = re.compile(
    r"(?:not|n't) support (?:\w+[ _-]){0,2}?(?:tools?|functions?)\b|support tool use|\btools?\b.{0,40}\bnot supported"
    r"|tool[ _]choice requires|tools param requires|\btools: extra inputs",
    re.IGNORECASE,
)
TEXTS = (
    ("tools", NO_TOOLS),
    ("auth", BAD_KEY),
    ("missing", NO_SUCH_MODEL),
    ("prefix", NO_PREFIX),
    ("schema", NO_SUCH_SCHEMA),
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


class ErrorBody(NamedTuple):
    """What a server reports: its text, the kinds of error that it names, and the parameter at fault."""

    text: str
    kinds: frozenset[str] = frozenset()
    parameter: str = ""
    status: int | None = None


def quoted(text: str, limit: int = QUOTED) -> str:
    """Prepare the text of a server for an error: one line, printable, short, and without anything like a key."""
    head = SECRET.sub("[key]", join_surrogates(text[: 4 * limit]))
    line = " ".join("".join(each if each.isprintable() else " " for each in head).split())
    return truncate(line, limit)


def error_from_status(status: int, headers: Mapping[str, str], body: bytes, server: Server) -> ModelError:
    """Map a response that is not 2xx to an error; header names are lower-case."""
    if 300 <= status < 400:
        location = quoted(headers.get("location", "an unknown address"))
        return ModelError(f"{server.label} redirects to {location} ({status}); correct the base URL", status=status)
    reported = _parse_body(body)
    if reported is None:
        is_html = "html" in headers.get("content-type", "") or body.lstrip()[:1] == b"<"
        text = body.decode("utf-8", "replace")
        if is_html:
            found = TITLE.search(text[:20_000])
            text = f"a web page ({quoted(found[1], 100)})" if found and found[1].strip() else "a web page"
        reported = ErrorBody(text[: 8 * QUOTED])
    return _error(reported, status, server, wait_asked(headers))


def error_in_response(data: Json, server: Server) -> ModelError:
    """Map an error object inside a response of status 200 to an error."""
    reported = _read(data)
    return _error(reported, reported.status, server, None)


def protocol_error(
    what: str, body: str, server: Server, advice: str = "check that its base URL leads to a model server"
) -> ProtocolError:
    """Return the error for a response that violates its protocol; `what` follows the name of the server."""
    return ProtocolError(f"{server.label} {what}; {advice}", body=quoted(body, BODY))


def wait_asked(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait (RFC 9110, section 10.2.3: seconds, or a date), None if it does not ask.

    A date is compared with the `Date` header if there is one, so a wrong local clock does not matter.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            if isfinite(seconds := float(headers.get(name, ""))):
                return max(0.0, seconds * unit)
    until = _moment(headers.get("retry-after", ""))
    if until is None:
        return None
    now = _moment(headers.get("date", ""))
    return max(0.0, until - (time() if now is None else now))


def _moment(text: str) -> float | None:
    if not text:
        return None
    # imported here, because it takes as long as all codecs, and few responses contain a date
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _parse_body(body: bytes) -> ErrorBody | None:
    """Read the error of a body; None if it is not a JSON object or text, or an array of such."""
    try:
        data = parse_json(body)
    except ValueError:
        return None
    if isinstance(data, list) and data:
        data = data[0]
    return _read(data) if isinstance(data, (dict, str)) else None


def _read(data: Json) -> ErrorBody:
    """Read the forms in use: `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, or a text."""
    if isinstance(data, str):
        return ErrorBody(data)
    error = item_at(data, "error")
    outer = data
    if isinstance(error, dict):
        data = error
    elif isinstance(error, str):
        return ErrorBody(error, _kinds(outer))
    text = text_at(data, "message") or text_at(data, "detail") or text_at(data, "msg") or _details(data)
    raw = text_at(data, "metadata", "raw")
    if raw and raw not in text:
        text = f"{text}: {raw}"
    kinds = _kinds(data) | _kinds(outer) | _kinds(item_at(data, "innererror"))
    return ErrorBody(text, kinds, text_at(data, "param"), count_at(data, "code") or count_at(data, "status"))


def _kinds(data: Json) -> frozenset[str]:
    return frozenset(text_at(data, key).lower() for key in ("type", "code", "status")) - {"", "error"}


def _details(data: Json) -> str:
    """Return the first entry of a validation report (`detail` or `message` as a list or object), with its location."""
    detail = item_at(data, "detail") or item_at(data, "message")
    if isinstance(detail, dict):
        detail = detail.get("detail", detail)
    first = detail[0] if isinstance(detail, list) and detail else detail
    location = item_at(first, "loc")
    where = ".".join(map(str, location)) + ": " if isinstance(location, list) else ""
    return where + text_at(first, "msg")


def _cause(reported: ErrorBody, status: int | None) -> str:
    """Find the cause: by the kinds that the server names, else by its text, else by the status."""
    named = {CAUSES[kind] for kind in reported.kinds if kind in CAUSES}
    for cause in ("refused", "long", "credit"):
        if cause in named:
            return cause
    invalid = status is None or status in (400, 413, 422)
    if (invalid or status == 500) and TOO_LONG.search(reported.text):  # llama.cpp sends 500 for embeddings
        return "long"
    if status in (404, 500) and NO_TOOLS.search(reported.text):  # OpenRouter and llama.cpp
        return "tools"
    for cause, pattern in TEXTS if invalid else ():
        if pattern.search(f"{reported.parameter} {reported.text}" if cause == "schema" else reported.text):
            return cause
    if status is not None and status in STATUSES and not (status == 403 and "rate" in named):
        return STATUSES[status]
    for cause in ("auth", "forbidden", "rate", "busy", "time", "missing", "unsupported"):
        if cause in named and not (cause == "busy" and status is not None and status < 500):
            return cause
    return "busy" if status is not None and status >= 500 and status != 501 else "invalid"


def _error(reported: ErrorBody, status: int | None, server: Server, wait: float | None) -> ModelError:
    cause = _cause(reported, status)
    names_model = NO_SUCH_MODEL.search(reported.text) is not None or server.model in reported.text
    if cause == "missing" and not names_model and "missing" not in {CAUSES.get(kind) for kind in reported.kinds}:
        cause = "nowhere"  # the path of the URL, not a model
    kind, message = MESSAGES[cause]
    text = quoted(reported.text)
    message = message.format(
        who=server.label,
        model=repr(server.model),
        place=server.key_place,
        remedy=server.key_remedy,
        code="" if status is None else f" ({status})",
        text=f": {text}" if text else "",
        wait="" if wait is None else f", try again in {wait:{',.0f' if wait > 99 else 'g'}} s",
        parameter=reported.parameter or "one of the parameters",
    )
    if kind is RateLimitError:
        return RateLimitError(message, retry_after=wait, status=status)
    if kind is UnsupportedError:
        capability = {"schema": "json_schema", "prefix": "prefix", "tools": "tools"}.get(cause, reported.parameter)
        return UnsupportedError(message, capability=capability, status=status)
    return kind(message, status=status)


# --- faults of the network --------------------------------------------------------------------------------------------

Stage: TypeAlias = Literal["open", "answer", "given"]
"""The progress of a call: no byte of a response yet · a response began · chunks of it were yielded."""


class FaultMapping(NamedTuple):
    """The error for one fault: its class, the message, and whether the request was never sent, so that nothing is charged."""

    kind: type[ModelError]
    message: str
    unsent: bool = False


TABLE = {
    "late": FaultMapping(TimeoutError, "{host} did not finish within {limits.total:g} s; raise `timeout` in the settings"),
    "no route": FaultMapping(OverloadedError, "cannot reach {host}; check the network", unsent=True),
    "no host": FaultMapping(OverloadedError, "unknown host {host}; check the base URL {url} and the network", unsent=True),
    "refused": FaultMapping(OverloadedError, "nothing listens at {host}: is {who} running at {url}?", unsent=True),
    "untrusted": FaultMapping(ProtocolError, "the certificate of {host} is not trusted; name its authority in SSL_CERT_FILE", unsent=True),
    "no tls": FaultMapping(ProtocolError, "{host} does not speak TLS; is it http:// instead of https://?", unsent=True),
    "unconnected": FaultMapping(OverloadedError, "no connection to {host}: is the server running at {url}?", unsent=True),
    "no connection": FaultMapping(
        TimeoutError, "no connection to {host} within {limits.connect:g} s: is the server running at {url}?", unsent=True
    ),
    "not taken": FaultMapping(TimeoutError, "{host} did not accept the request within {limits.first_byte:g} s; try again later", unsent=True),
    "no answer": FaultMapping(TimeoutError, "no answer from {host} within {limits.first_byte:g} s; try again, or raise the time to the first byte"),
    "unsent": FaultMapping(OverloadedError, "{host} closed the connection before the request was sent; see the log of the server at {url}", unsent=True),
    "stalled": FaultMapping(TimeoutError, "{host} stalled for {limits.between:g} s in the middle of its answer; try again"),
    "hung up": FaultMapping(OverloadedError, "{host} hung up before it answered; see the log of the server at {url}"),
    "broken off": FaultMapping(OverloadedError, "{host} broke off in the middle of its answer; see the log of the server at {url}"),
    "cut": FaultMapping(ProtocolError, "{host} broke off in the middle of its answer; try again"),
    "not http": FaultMapping(ProtocolError, "{host} does not speak HTTP; check that {url} leads to a model server"),
    "proxy": FaultMapping(ProtocolError, "the proxy on the way to {host} fails; check HTTPS_PROXY, or name the host in NO_PROXY", unsent=True),
}  # fmt: skip
UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})


@cache
def connection_faults() -> tuple[type[Exception], ...]:
    """Return the exceptions of connections, which `map_fault` maps."""
    import httpcore2

    network = (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError, httpcore2.TimeoutException)
    return (*network, OSError)


def map_fault(
    cause: Exception,
    stage: Stage,
    base: BaseUrl,
    limits: RequestLimits,
    server: Server,
    *,
    late: bool,
    proxied: bool = False,
) -> tuple[ModelError, str]:
    """Map an exception of httpcore2, or an `OSError`, to an error and its row in the table.

    `late`: the time of the whole call is used up. `proxied`: the connection is one to a proxy.
    """
    fault = "late" if late else _fault(cause, stage)
    if proxied and fault in ("refused", "no host", "no route", "unconnected", "no connection"):
        fault = "proxy"
    row = TABLE[fault]
    who = server.label.partition(" at ")[0]
    error = row.kind(row.message.format(host=base.authority, url=base, limits=limits, who=who))
    error.may_be_charged = not row.unsent
    return error, fault


def _fault(cause: Exception, stage: Stage) -> str:
    import httpcore2

    match cause:
        case httpcore2.ProxyError():
            return "proxy"
        case httpcore2.ConnectTimeout():
            return "no connection"
        case httpcore2.ConnectError():
            return _connect_fault(cause)
        case httpcore2.WriteTimeout():
            return "not taken"
        case httpcore2.WriteError():
            return "unsent"
        case httpcore2.TimeoutException() | builtins.TimeoutError():
            return "no answer" if stage == "open" else "stalled"
        case httpcore2.ProtocolError() if not any(word in str(cause) for word in ("disconnected", "peer closed")):
            return "not http"
        case _:
            return {"open": "hung up", "answer": "broken off"}.get(stage, "cut")


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
    """Yield an error and its origins: causes, contexts, members of groups and arguments."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        origin = waiting.pop(0)
        if not isinstance(origin, BaseException) or id(origin) in seen:
            continue
        seen.add(id(origin))
        yield origin
        waiting += [*origin.args, origin.__cause__, origin.__context__]
        if isinstance(origin, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", origin).exceptions
