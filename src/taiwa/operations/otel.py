"""Write the turns of a conversation as spans and metrics of OpenTelemetry, in OTLP JSON, for a file or a collector.

They come from the journal alone, so the spans that a server sends after a turn are identical, byte for byte, to those
exported later. The names follow the semantic conventions for generative AI.
"""

import json
import logging
import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from taiwa.kernel.effects import CallTool, Complete, Effect, Retrieve
from taiwa.kernel.errors import ConfigError, TaiwaError, ToolError
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import Found, Message, Response, Text, Thinking, ToolCall, ToolResult, Usage
from taiwa.kernel.serialization import Json, parse_json, record, tag_of, value
from taiwa.sessions.replay import recorded_steps
from taiwa.sessions.repository import Repository
from taiwa.store import CallRecord
from taiwa.store.runs import Run

logger = logging.getLogger("taiwa.server")

Attribute: TypeAlias = str | int | tuple[str, ...]

INTERNAL, CLIENT = 1, 3
ERROR = 2
DELTA = 1
PATH, METRICS_PATH = "/v1/traces", "/v1/metrics"
MEASURED = frozenset(
    ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model", "error.type")
)
"""The attributes of a call that are copied to its metrics."""
SECONDS_BOUNDS = tuple(0.01 * 2**power for power in range(14))
TOKEN_BOUNDS = tuple(float(4**power) for power in range(14))
"""The bounds of the histograms recommended by the conventions."""
HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"
SECONDS = 10.0
"""Seconds for one request to a collector, and for the queue when a server stops."""
MOST_WAITING = 1_000
"""Maximum of queued turns; further ones are skipped, and can be exported later."""
PREFIX = re.compile(r"([a-z][a-z0-9_.-]*):(.+)", re.DOTALL)
PROVIDER_NAMES = {"gemini": "gcp.gemini", "azure": "azure.ai.openai", "mistral": "mistral_ai"}
"""Providers whose names in the conventions differ from ours."""
NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")


@value
class Span:
    """One span: `trace` has 32 hexadecimal digits, `id` and `parent` 16; times are in microseconds since 1970.

    `parent` is "" for a turn, and `error` the kind of error of a failed call, else "".
    """

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    start_us: int
    end_us: int
    attributes: Mapping[str, Attribute]
    error: str = ""


def turn_spans(repository: Repository, node: str, session: str = "", *, content: bool = False) -> tuple[Span, ...]:
    """Return the spans of a turn: one for each run that ended with the node, each followed by its calls, in their order.

    Sessions with equal histories share nodes: among several runs those of `session` are taken, if any. With `content`, texts
    are included, also of the requests if the turn can be replayed. Nodes made without a run have no spans.

    Raises:
        InputError: the node does not exist.
    """
    runs = repository.store.runs.that_made(node)
    runs = tuple(run for run in runs if run.ref == session) or runs
    if not runs:
        return ()
    steps = recorded_steps(repository, node) if content else ()
    effects = {(step.entry.strand, step.entry.index): step.effect for step in steps}
    return tuple(span for run in runs for span in _run_spans(repository, node, run, effects, content=content))


def _run_spans(
    repository: Repository,
    node: str,
    run: Run,
    effects: Mapping[tuple[tuple[int, ...], int], Effect[Any] | None],
    *,
    content: bool,
) -> Iterator[Span]:
    store = repository.store
    made, calls, name = store.nodes.get(node), store.runs.calls_of(run.id), store.runs.model(run.id)
    root = _span_id(node, run.id, 0)
    children: list[Span] = []
    requested: dict[str, CallTool] = {}
    for place, (entry, call) in enumerate(zip(store.runs.journal(run.id), calls, strict=True), 1):
        effect = effects.get((entry.strand, entry.index))
        known = effect if effect is not None and entry.answers(effect) else None
        if isinstance(entry.answer, Response):
            requested |= _requested(entry.answer.message)
        if known is None and entry.key in requested:
            known = requested[entry.key]
        described = _describe(entry, call, known, name, content=content)
        if described is not None:
            title, kind, attributes = described
            error = _error_of(entry)
            if error:
                attributes |= {"error.type": error}
            start = max(run.at_us, call.time.at_us - call.time.ms * 1000)
            end = max(start, call.time.at_us)
            children.append(Span(node, _span_id(node, run.id, place), root, title, kind, start, end, attributes, error))
    app = store.nodes.app(made.app)
    total = sum((call.usage for call in calls if call.usage is not None), Usage())
    turn: dict[str, Attribute] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": app.name,
        "gen_ai.agent.version": made.app,
        **({"gen_ai.conversation.id": run.ref} if run.ref else {}),
        **_model_names(name),
        **(_tokens(total) if total != Usage() else {}),
        "taiwa.node": node,
        **({"taiwa.parent": made.parent} if made.parent else {}),
        "taiwa.state.hash": made.state_hash,
    }
    if content:
        turn |= {
            "gen_ai.input.messages": _json([_said("user", made.user or "")]),
            "gen_ai.output.messages": _json([_said("assistant", made.answer or "")]),
        }
    end = max(store.nodes.time(node), *(span.end_us for span in children), run.at_us)
    yield Span(node, root, "", f"invoke_agent {app.name}", INTERNAL, run.at_us, end, turn)
    yield from children


def _describe(
    entry: Entry, call: CallRecord, effect: Effect[Any] | None, model: str, *, content: bool
) -> tuple[str, int, dict[str, Attribute]] | None:
    """Return the name, kind and attributes of the span of a call; None for effects without a span, such as a price query."""
    answer = entry.answer
    if call.kind == tag_of(Complete):
        return _chat(answer, call, effect, call.model or model, content=content)
    if call.kind == tag_of(CallTool):
        return _tool(answer, effect, content=content)
    if call.kind == tag_of(Retrieve):
        found: dict[str, Attribute] = {"gen_ai.operation.name": "retrieval"}
        if content:
            passages = answer.passages if isinstance(answer, Found) else ()
            listed: list[Json] = [
                {"id": each.id or each.source, "score": each.score, "content": each.text} for each in passages
            ]
            found["gen_ai.retrieval.documents"] = _json(listed)
            if isinstance(effect, Retrieve):
                found["gen_ai.retrieval.query.text"] = effect.query
        return "retrieval", CLIENT, found
    return None


def _requested(message: Message) -> dict[str, CallTool]:
    """Return the tool calls of a message by their keys in a journal."""
    found: dict[str, CallTool] = {}
    for call in message.tool_calls:
        with suppress(ValueError, TaiwaError):  # arguments that are not JSON, or that cannot be recorded
            arguments = parse_json(call.arguments)
            if isinstance(arguments, dict):
                effect = CallTool(call.name, arguments)
                found[Entry((), 0, effect).key] = effect
    return found


def _chat(
    answer: object, call: CallRecord, effect: Effect[Any] | None, name: str, *, content: bool
) -> tuple[str, int, dict[str, Attribute]]:
    names = _model_names(name)
    found: dict[str, Attribute] = {"gen_ai.operation.name": "chat", **names}
    if isinstance(answer, Response):
        found["gen_ai.response.finish_reasons"] = (answer.finish,)
        if answer.model:
            found["gen_ai.response.model"] = answer.model
    if call.usage is not None:
        found |= _tokens(call.usage)
    if content:
        if isinstance(effect, Complete):
            found["gen_ai.input.messages"] = _json([_message(each) for each in effect.request.messages])
        if isinstance(answer, Response):
            found["gen_ai.output.messages"] = _json([{**_message(answer.message), "finish_reason": answer.finish}])
    return f"chat {names.get('gen_ai.request.model', '')}".rstrip(), CLIENT, found


def _tool(answer: object, effect: Effect[Any] | None, *, content: bool) -> tuple[str, int, dict[str, Attribute]]:
    result = answer if isinstance(answer, ToolResult) else None
    called = effect if isinstance(effect, CallTool) else None
    name = called.name if called is not None else "" if result is None else result.name
    found: dict[str, Attribute] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.type": "function"}
    if name:
        found["gen_ai.tool.name"] = name
    if result is not None and result.call:
        found["gen_ai.tool.call.id"] = result.call
    if content:
        if called is not None:
            found["gen_ai.tool.call.arguments"] = _json(record(dict(called.arguments)))
        if result is not None:
            found["gen_ai.tool.call.result"] = result.text
    return f"execute_tool {name}".rstrip(), INTERNAL, found


def _error_of(entry: Entry) -> str:
    """Return the kind of an error, without its message, which may repeat contents."""
    code = type(entry.error).tag if isinstance(entry.error, TaiwaError) else ""
    if isinstance(entry.error, ToolError):
        code = entry.error.code
    elif not code and isinstance(entry.answer, ToolResult):
        code = entry.answer.error
    return code if not code or NAME.fullmatch(code) else "_OTHER"


def _model_names(name: str) -> dict[str, Attribute]:
    """Return the provider and the model of a name such as `ollama:qwen3` or `URL#MODEL`, without the address.

    A model without a provider runs in this process.
    """
    if not name:
        return {}
    if "://" in name:
        return {"gen_ai.provider.name": "_OTHER", "gen_ai.request.model": name.partition("#")[2] or "_OTHER"}
    prefixed = PREFIX.fullmatch(name)
    prefix, model = ("taiwa", name) if prefixed is None else (prefixed[1], prefixed[2])
    return {"gen_ai.provider.name": PROVIDER_NAMES.get(prefix, prefix), "gen_ai.request.model": model}


def _tokens(usage: Usage) -> dict[str, Attribute]:
    """Write tokens; cache and reasoning tokens only if there are any."""
    more = {
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        **{name: count for name, count in more.items() if count},
    }


def _said(role: str, text: str) -> dict[str, Json]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _message(message: Message) -> dict[str, Json]:
    """Write a message in the form of the conventions; attachments are left out."""
    parts: list[Json] = []
    for part in message.parts:
        match part:
            case Text():
                parts.append({"type": "text", "content": part.text})
            case Thinking():
                parts.append({"type": "reasoning", "content": part.text})
            case ToolCall():
                parts.append({"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments})
            case ToolResult():
                parts.append({"type": "tool_call_response", "id": part.call, "response": part.text})
            case _:
                pass
    return {"role": message.role, "parts": parts}


def _json(data: Json) -> str:
    return json.dumps(data, ensure_ascii=False)


def _span_id(node: str, run: int, place: int) -> str:
    return blake2b(f"{node} {run} {place}".encode(), digest_size=8).hexdigest()


def as_otlp(spans: Iterable[Span]) -> str:
    """Write spans as one line of OTLP JSON: the body of a request, and a line of a file that collectors read."""
    return _resource("Spans", "spans", [_span(span) for span in spans])


def _span(span: Span) -> Json:
    return {
        "traceId": span.trace,
        "spanId": span.id,
        **({"parentSpanId": span.parent} if span.parent else {}),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_us * 1000),
        "endTimeUnixNano": str(span.end_us * 1000),
        "attributes": _attributes(span.attributes),
        **({"status": {"code": ERROR}} if span.error else {}),
    }


def metrics(spans: Iterable[Span]) -> str:
    """Write the metrics of the calls of models among some spans as one line of OTLP JSON, "" if there are none.

    They are the histograms of the conventions, with one data point per call.
    """
    durations, tokens = list[Json](), list[Json]()
    for span in spans:
        if span.kind != CLIENT or span.attributes.get("gen_ai.operation.name") != "chat":
            continue
        about = {name: each for name, each in span.attributes.items() if name in MEASURED}
        durations.append(_data_point(span, about, (span.end_us - span.start_us) / 1e6, SECONDS_BOUNDS))
        for kind in ("input", "output"):
            count = span.attributes.get(f"gen_ai.usage.{kind}_tokens")
            if isinstance(count, int) and not span.error:
                tokens.append(_data_point(span, about | {"gen_ai.token.type": kind}, count, TOKEN_BOUNDS))
    measured = (("gen_ai.client.operation.duration", "s", durations), ("gen_ai.client.token.usage", "{token}", tokens))
    written: list[Json] = [
        {"name": name, "unit": unit, "histogram": {"dataPoints": points, "aggregationTemporality": DELTA}}
        for name, unit, points in measured
        if points
    ]
    return _resource("Metrics", "metrics", written) if written else ""


def _data_point(span: Span, about: Mapping[str, Attribute], measured: float, bounds: tuple[float, ...]) -> Json:
    counts = ["0"] * (len(bounds) + 1)
    counts[bisect_left(bounds, measured)] = "1"
    return {
        "attributes": _attributes(about),
        "startTimeUnixNano": str(span.start_us * 1000),
        "timeUnixNano": str(span.end_us * 1000),
        "count": "1",
        "sum": float(measured),
        "bucketCounts": list[Json](counts),
        "explicitBounds": list[Json](bounds),
    }


def _resource(kind: str, name: str, written: list[Json]) -> str:
    scope: Json = {"scope": {"name": "taiwa"}, name: written}
    resource: Json = {"attributes": _attributes({"service.name": "taiwa"})}
    return json.dumps({f"resource{kind}": [{"resource": resource, f"scope{kind}": [scope]}]})


def _attributes(attributes: Mapping[str, Attribute]) -> list[Json]:
    return [{"key": name, "value": _value(each)} for name, each in attributes.items()]


def _value(attribute: Attribute) -> Json:
    match attribute:
        case str():
            return {"stringValue": attribute}
        case int():
            return {"intValue": str(attribute)}
        case _:
            return {"arrayValue": {"values": [{"stringValue": each} for each in attribute]}}


def otlp_lines(repository: Repository, revision: str, *, content: bool = False) -> Iterator[str]:
    """Yield the turns of a history, oldest first, each as a line of OTLP JSON with its spans, and one with the metrics of its calls.

    Those made without a run are left out.

    Raises:
        InputError: the revision does not exist.
    """
    session = repository.store.refs.session_of(revision)
    path = [node for node, _ in repository.store.nodes.path(repository.store.resolve(revision))]
    for node in reversed(path):
        spans = turn_spans(repository, node, session, content=content)
        yield from filter(None, (as_otlp(spans) if spans else "", metrics(spans)))


class Collector:
    """The address of a collector, which takes OTLP as JSON over HTTP.

    `endpoint` is its base, such as `http://localhost:4318`, or ends in `/v1/traces`. Headers, such as a key, are taken from the
    variable OTEL_EXPORTER_OTLP_HEADERS.

    Raises:
        ConfigError: the address or the headers cannot be used.
    """

    def __init__(self, endpoint: str) -> None:
        try:
            parts = urlsplit(endpoint)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise ConfigError("the address of a collector must be one such as http://localhost:4318")
        if parts.username is not None or parts.password is not None:
            raise ConfigError(f"the address of a collector may not contain a password; set {HEADERS_VARIABLE}")
        base = endpoint.rstrip("/")
        self.url = base if parts.path.rstrip("/").endswith(PATH) else base + PATH
        self.metrics_url = self.url.removesuffix(PATH) + METRICS_PATH
        self._who = host if port is None else f"{host}:{port}"
        self._headers = _headers(os.environ.get(HEADERS_VARIABLE, ""))

    def send(self, bodies: Iterable[str]) -> int:
        """Send bodies, each in a separate request; return the number of those with spans.

        Raises:
            ConfigError: the collector cannot be reached, or refuses one.
        """
        import httpx2

        from taiwa.models.http_api.provider_interface import parse_base_url

        sent = 0
        try:
            # A loopback address is never reached through a proxy.
            trust_env = not parse_base_url(self.url).is_local
            with httpx2.Client(timeout=SECONDS, headers=self._headers, trust_env=trust_env) as client:
                for body in bodies:
                    url = self.metrics_url if body.startswith('{"resourceMetrics"') else self.url
                    response = client.post(url, content=body, headers={"content-type": "application/json"})
                    if not response.is_success:
                        raise ConfigError(
                            f"the collector at {self._who} refused spans with HTTP {response.status_code}"
                        )
                    sent += url == self.url
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ConfigError(f"the collector at {self._who} cannot be reached ({type(error).__name__})") from None
        return sent


def _headers(text: str) -> dict[str, str]:
    """Read headers such as `name=value,name=value`, percent-encoded."""
    found: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, content = part.partition("=")
        header = unquote(content.strip())
        if not equals or not NAME.fullmatch(name.strip()) or not header.isascii() or not header.isprintable():
            raise ConfigError(f"{HEADERS_VARIABLE} must be a list such as name=value,name=value")
        found[name.strip()] = header
    return found


class LiveSpans:
    """Sends turns to a collector in a separate thread, in order; a turn neither waits for it nor fails because of it.

    The first failure is logged as a warning. Turns that are not sent can be exported later.

    Raises:
        ConfigError: the address cannot be used.
    """

    def __init__(self, endpoint: str) -> None:
        self._collector = Collector(endpoint)
        self._waiting: SimpleQueue[tuple[Repository, str, str] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = Lock()
        self._closed = self._warned = False

    def put(self, repository: Repository, node: str, session: str) -> None:
        """Queue a stored turn for sending."""
        with self._lock:
            if self._closed:
                return
            if self._waiting.qsize() >= MOST_WAITING:
                self._warn("the collector is too slow, and turns are left out")
                return
            if self._thread is None:
                self._thread = Thread(target=self._send_all, name="taiwa-otel", daemon=True)
                self._thread.start()
            self._waiting.put((repository, node, session))

    def close(self) -> None:
        """Send the queue, within some seconds, and accept nothing more."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            self._waiting.put(None)
            thread.join(SECONDS)

    def _send_all(self) -> None:
        while (item := self._waiting.get()) is not None:
            repository, node, session = item
            try:
                if spans := turn_spans(repository, node, session):
                    self._collector.send(filter(None, (as_otlp(spans), metrics(spans))))
            except TaiwaError as error:
                self._warn(error.message)
            except (OSError, RuntimeError, ValueError) as error:
                self._warn(type(error).__name__)

    def _warn(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("spans are not sent: %s; export them later with taiwa export --otel-endpoint", reason)
