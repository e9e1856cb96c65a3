"""The server process: its ASGI application with the routes of all wires, its socket, start line, log and shutdown."""

import asyncio
import gc
import json
import logging
import re
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from taiwa.isolation import used_memory
from taiwa.kernel.errors import ConfigError, TaiwaError
from taiwa.kernel.runtime import AnyModel
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import inert, plain
from taiwa.operations.otel import LiveSpans
from taiwa.retrieval.index import IndexScope
from taiwa.server.access import COOKIE_SECONDS, Access, Guard, Repositories, ServerOptions, SharedThreads, is_browser
from taiwa.server.conversation_turns import FollowedRuns
from taiwa.server.http_responses import INTERNAL, INVALID, ApiError, api_error, json_response
from taiwa.server.indexing import Indexing, uploads_folder
from taiwa.server.request import (
    DEPLOYMENT_KEY,
    PAGE_HEADER,
    Fields,
    ServerState,
    language_of,
    read_body,
    state_of,
    whole_body,
)
from taiwa.server.runs import Runs
from taiwa.server.served import EmbeddingModel, ServedModels, check_served
from taiwa.server.shared_store import Sharing
from taiwa.server.wire_interface import GET, Route, Wire, document
from taiwa.server.wires import (
    ag_ui,
    api,
    chat_completions,
    completions,
    conversations,
    documents,
    embeddings,
    files,
    mcp,
    messages,
    ollama,
    page,
    page_settings,
    persons,
    responses,
    vector_stores,
)
from taiwa.sessions.repository import Repository
from taiwa.settings import Settings

WIRES: tuple[Wire, ...] = tuple(
    each.wire
    for each in (
        chat_completions, completions, responses, conversations, messages, ollama, embeddings, ag_ui, mcp, api, documents, files,
        vector_stores, persons, page_settings, page,
    )
)  # fmt: skip
"""The first wire formats the errors of paths that belong to none."""
ESCAPED_SLASH = re.compile(rb"%(?=2[Ff5])")
"""Escapes in a path: a slash within a name, and a percent sign."""
AZURE = re.compile("/(?:openai(?:/v1)?|v1)(?:/deployments/([^/]+))?(?=/)")
"""The beginning of the paths of Azure's clients, for `/v1`; it may name the model, whatever the body says."""


class _Endpoint:
    """The application of a route. Starlette wraps a function once more for exceptions, which its middleware handles anyway."""

    def __init__(self, run: Callable[[Request], Awaitable[Response]]) -> None:
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response to a request."""
        response = await self._run(Request(scope, receive, send))
        await response(scope, receive, send)


def build(state: ServerState) -> ASGIApp:
    """Return the application of a server."""

    def error_response(error: ApiError, request: Request) -> Response:
        path = request.url.path
        if PAGE_HEADER in request.headers:
            error = page.in_language(error, language_of(request))
        wire = next((wire for wire in WIRES if wire.has(path)), WIRES[0])
        status = error.status if wire.status is None else wire.status(error)
        return json_response(wire.error(error), status, error.headers)

    def failed(error: ApiError, request: Request) -> Response:
        """Return an error as its wire formats it, to a browser that opens a page as a page."""
        path = request.url.path
        wire = next((wire for wire in WIRES if wire.has(path)), page.wire)
        if wire in (page.wire, page_settings.wire) and is_browser(request.method, request.headers):
            return page.problem(request, error)
        return error_response(error, request)

    def endpoint(route: Route) -> _Endpoint:
        once = "POST" in route.methods and not (route.repeats or route.takes_files)
        status = 200 if route.api is None else route.api.status

        async def perform(request: Request) -> Any:  # noqa: ANN401  (a response, or its JSON)
            fields = () if route.fields is None else (await read_body(request, route.fields),)
            if iscoroutinefunction(route.endpoint):
                return await route.endpoint(request, *fields)
            return await asyncio.to_thread(route.endpoint, request, *fields)

        async def run(request: Request) -> Response:
            # `route` leaves slashes within names escaped, so that a path is not divided there.
            request.scope["path_params"] = {key: unquote(str(each)) for key, each in request.path_params.items()}
            try:
                if once and request.headers.get("idempotency-key"):
                    request.state.body = await whole_body(request)  # read once more by `read_body`
                    found = await state.repeats.once(request, partial(perform, request))
                else:
                    found = await perform(request)
                return found if isinstance(found, Response) else json_response(found, status)
            except ApiError as error:
                return failed(error, request)
            except TaiwaError as error:
                return failed(api_error(error), request)
            # The status of nginx for a client that has gone: only the log shows it.
            except ClientDisconnect:
                return Response(status_code=499)

        return _Endpoint(run)

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        path = request.url.path
        if error.status_code == 405 and request.headers.get("upgrade", "").lower() == "websocket":
            # After this status Codex sends its requests by POST.
            text = f"{path[:200]} has no WebSocket; use POST, and `stream` for events"
            return failed(ApiError(426, text, INVALID, "websocket_unsupported"), request)
        if error.status_code == 405:
            found = (each.methods or () for each in routes if each.path_regex.match(path))
            allowed = ", ".join(sorted({method for each in found for method in each}))
            text = f"{request.method} {path[:200]} is not allowed; use {allowed}"
            response = failed(ApiError(405, text, INVALID, "method_not_allowed"), request)
            response.headers["allow"] = allowed
            return response
        text = f"{request.method} {path[:200]} does not exist here"
        parts = path.strip("/").split("/")
        ends = ["/".join(parts[at:]) for at in range(min(len(parts), 4))]  # behind a wrong base URL
        meant = (f"{start}{end}" for end in ends if end for start in ("/v1/", "/"))
        near = next((each for each in meant if any(route.path_regex.match(each) for route in routes)), "")
        text += f"; did you mean {near[:200]}? Check the base URL" if near else ""
        return failed(ApiError(404, text, INVALID, "not_found"), request)

    async def on_failure(request: Request, _: Exception) -> Response:
        return error_response(INTERNAL, request)  # uvicorn logs the traceback

    every = [*OWN_ROUTES, *(each for wire in WIRES for each in wire.routes)]
    routes = [StarletteRoute(each.path, endpoint(each), methods=list(each.methods)) for each in every]
    app = Starlette(routes=routes, exception_handlers={HTTPException: on_http_error, Exception: on_failure})
    app.router.redirect_slashes = False  # `on_http_error` names the path that was meant
    app.state.server = state

    # The requests of most clients, for which three applications of Starlette would only look up the route.
    posts = [each for each in routes if "POST" in (each.methods or ()) and "{" not in each.path]
    direct: dict[tuple[str, str], ASGIApp] = {
        ("POST", each.path): ServerErrorMiddleware(each.app, on_failure) for each in posts
    }

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        """Match the path before unescaping slashes within names; endpoints get the unescaped names."""
        if scope["type"] == "http":
            path = unquote(ESCAPED_SLASH.sub(b"%25", scope["raw_path"]).decode("ascii", "replace"))
            if begun := AZURE.match(path):
                scope[DEPLOYMENT_KEY] = begun[1] and unquote(begun[1])
            scope["path"] = own_path(path)
            scope["app"], scope["path_params"] = app, {}
            await direct.get((scope["method"], scope["path"]), app)(scope, receive, send)
        else:
            await app(scope, receive, send)

    def matching(routes: Iterable[Route]) -> Callable[[str], bool]:
        patterns = [compile_path(each.path)[0] for each in routes]
        return lru_cache(256)(lambda path: any(pattern.match(own_path(path)) for pattern in patterns))

    takes_files = matching(each for each in every if each.takes_files)
    is_untyped = matching(each for each in every if each.untyped)
    return Guard(
        route,
        state.options,
        state.access,
        error_response,
        takes_files,
        is_untyped,
        lambda scope: page.entry(Request(scope)),
        lambda caller: state.repository(caller).quota,
    )


def own_path(path: str) -> str:
    """Return the path of a route by the path of a client of Azure; any other path as it is."""
    begun = AZURE.match(path)
    return f"/v1{path[begun.end() :]}" if begun else path


async def take_over(state: ServerState) -> None:
    """Let the wires resume what a terminated server left unfinished."""
    for wire in WIRES:
        if wire.take_over is not None:
            await wire.take_over(state)


async def _health(_: Request) -> Json:
    return {"status": "ok"}


async def _log_in(request: Request) -> Response:
    """Exchange the one-time code of the start line for a cookie."""
    access = state_of(request).access
    value = access.exchange(request.query_params.get("code", ""))
    response = RedirectResponse("/", 303)
    if value is None:
        try:
            await access.authenticate(request.headers)
        except ApiError:
            if is_browser("GET", request.headers):
                return page.entry(request, used=True)
            used = "the link was used before; restart `taiwa serve` for a new one"
            raise ApiError(401, used, code="invalid_code") from None
        return response  # the browser already has its cookie
    _set_cookie(response, access, value)
    return response


async def _enter(request: Request, body: Fields) -> Response:
    """Exchange the token of the server for a cookie."""
    access = state_of(request).access
    value = await access.enter(body.text("key"))
    if value is None:
        raise ApiError(401, "the key is wrong; send that of the server", "authentication_error", "invalid_api_key")
    response = json_response({})
    _set_cookie(response, access, value)
    return response


def _set_cookie(response: Response, access: Access, value: str) -> None:
    response.set_cookie(access.cookie, value, httponly=True, samesite="strict", path="/", max_age=COOKIE_SECONDS)


async def _models(request: Request) -> Json:
    served = state_of(request).served
    ids, created = served.ids(), served.created
    if "anthropic-version" not in request.headers:
        return {"object": "list", "data": [_model_object(name, created) for name in ids]}
    data: list[Json] = [messages.model_object(name, created) for name in ids]
    return {"data": data, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}


async def _model(request: Request) -> Json:
    served = state_of(request).served
    chosen = served.choose(request.path_params["name"])
    write = messages.model_object if "anthropic-version" in request.headers else _model_object
    return write(chosen.id, served.created)


async def _openapi(_: Request) -> Json:
    """Return the OpenAPI document of the server's own API."""
    return document(WIRES)


def _model_object(name: str, created: int) -> Json:
    return {"id": name, "object": "model", "created": created, "owned_by": "taiwa"}


OWN_ROUTES = (
    Route("/health", _health, GET),
    Route("/login", _log_in, GET),
    Route("/login", _enter, repeats=True, body=("key",)),
    Route("/v1/models", _models, GET),
    Route("/v1/models/{name:path}", _model, GET),
    Route("/api/openapi.json", _openapi, GET),
)
"""The routes of no protocol in particular."""


logger = logging.getLogger("taiwa.server")
BACKLOG = 1024
KEEP_ALIVE = 75
MOST_UNCHECKED = 50_000
"""The threshold of new objects for garbage collection."""
MOST_GROWTH = 64 << 20
"""The growth of the memory, in bytes, for the same: a few objects may hold long texts."""
MOST_HEADER_BYTES = 64 << 10
LOOPBACKS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (replaced, not listened on)
FIELDS = ("method", "path", "status", "caller", "ms", "request")


class TaiwaServer:
    """A server that is bound to its address and ready to run.

    `models` are opened models by their served names, in addition to those of the options.
    """

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        options: ServerOptions,
        *,
        models: Mapping[str, AnyModel] | None = None,
    ) -> None:
        options.check()
        address, served = options.address, options.served
        check_served(served.apps)
        repository.place, repository.settings = settings.store, settings
        scope = IndexScope(served=served.indexes or None, uploads=str(uploads_folder(settings)))
        repositories = Repositories(repository, scope)
        spans = LiveSpans(options.otel) if options.otel else None
        sharing = Sharing(repositories)
        sharing.begin()
        self.options = options
        self.socket = bind(address.host, address.port)
        bound = self.socket.getsockname()
        self.port = int(bound[1])
        self._host = LOOPBACKS.get(bound[0], address.host)
        self.access = Access(options.token, self.port, repositories.find, repositories.revoked)
        repository.limit_all_runs(settings.limits)
        self.state = ServerState(
            options,
            repositories,
            ServedModels(settings, served.apps, served.models, models),
            self.access,
            Runs(options.limits.runs, None if spans is None else spans.put),
            Indexing(settings),
            sharing,
            FollowedRuns(sharing),
            embeddings=EmbeddingModel(served.embeddings, settings) if served.embeddings else None,
        )
        self._open_models(served.models)
        config = uvicorn.Config(
            build(self.state),
            http=_bounded_protocol(options.limits.header_seconds), loop="asyncio", ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            backlog=BACKLOG, timeout_keep_alive=KEEP_ALIVE, h11_max_incomplete_event_size=MOST_HEADER_BYTES,
            proxy_headers=False, timeout_graceful_shutdown=round(options.limits.grace) + 5,
        )  # fmt: skip
        self._server = _Uvicorn(config, self.state, spans)

    def _open_models(self, names: Sequence[str]) -> None:
        """Open the models; one that cannot be opened is reported, and does not keep the others from being served.

        Raises:
            ConfigError: none can be opened: its name is unknown, or its key is missing.
        """
        failed: list[ConfigError] = []
        for name in names:
            try:
                self.state.served.open(self.state.served.choose(name))
            except ConfigError as error:
                failed.append(error)
        if failed and len(failed) == len(names):
            raise failed[0]
        for each in failed:
            logger.warning("a model cannot be used: %s", each.message)

    @property
    def url(self) -> str:
        """The address of the server; the loopback address if it listens on all, since some browsers do not open 0.0.0.0."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    @property
    def login_url(self) -> str:
        """The address for a browser, with a one-time code; the plain one without a token."""
        return f"{self.url}/login?code={self.access.new_code()}" if self.options.token else self.url

    def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Serve until SIGINT or SIGTERM. Open runs get some seconds to end, and can be resumed after that.

        `on_ready` is called when the server listens.
        """
        self._server.on_ready = on_ready
        gc.freeze()  # objects created at startup live until the end; scanning them again would slow down streams
        gc.set_threshold(MOST_UNCHECKED)  # each scan delays all streams
        self._server.run(sockets=[self.socket])

    async def serve(self, on_ready: Callable[[], None] | None = None) -> None:
        """Serve on the running event loop until `stop`."""
        self._server.on_ready = on_ready
        await self._server.serve(sockets=[self.socket])

    def stop(self) -> None:
        """Stop `run` or `serve`; may be called from any thread."""
        self._server.should_exit = True

    def close(self) -> None:
        """Release the address and the store of a server that is not running."""
        self.socket.close()
        self.state.sharing.leave()


def _bounded_protocol(seconds: float) -> type[H11Protocol]:
    """Return the HTTP protocol that closes a connection whose next request does not arrive in time."""

    class Protocol(H11Protocol):
        _closing: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._bound()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._bound()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._release()

        def _bound(self) -> None:
            """Start the timer of an incomplete request; stop it while a request is answered."""
            cycle: RequestResponseCycle | None = getattr(self, "cycle", None)  # None before the first request
            answering = cycle is not None and not cycle.response_complete
            if answering or self.transport.is_closing():
                self._release()
            elif self._closing is None:
                self._closing = self.loop.call_later(seconds, self.transport.close)

        def _release(self) -> None:
            if self._closing is not None:
                self._closing.cancel()
                self._closing = None

    return Protocol


class _Uvicorn(uvicorn.Server):
    """Uvicorn that ends the runs before it waits for the connections that follow them."""

    def __init__(self, config: uvicorn.Config, state: ServerState, spans: LiveSpans | None) -> None:
        super().__init__(config)
        self._spans = spans
        self.on_ready: Callable[[], None] | None = None
        self._state = state
        self._most_memory = used_memory() + MOST_GROWTH

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and report it."""
        asyncio.get_running_loop().set_default_executor(SharedThreads())
        await take_over(self._state)  # first, so that a client that comes back finds its response again
        await super().startup(sockets)
        self._state.sharing.watch(partial(take_over, self._state))
        if self.on_ready is not None:
            self.on_ready()

    async def on_tick(self, counter: int) -> bool:
        """Collect garbage if the memory has grown since; uvicorn calls this ten times a second."""
        if counter % 10 == 0 and used_memory() > self._most_memory:
            gc.collect()
            self._most_memory = used_memory() + MOST_GROWTH
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new requests, let runs end, then close the connections."""
        for server in self.servers:
            server.close()
        self._state.followed.stop()
        await self._state.indexing.stop()
        await self._state.runs.stop(0 if self.force_exit else self._state.options.limits.grace)
        if self._spans is not None:
            await asyncio.to_thread(self._spans.close)
        await self._state.sharing.close()
        await super().shutdown(sockets)
        self._captured_signals.clear()  # uvicorn would raise them again, but a requested stop is a success
        await self._state.served.aclose()


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket.

    Raises:
        ConfigError: the address is not one of this machine, or is in use.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio sends without delay (TCP_NODELAY) only on sockets with a protocol; each response would wait 40 ms for an ACK.
        bound = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:  # the latter for a name that DNS cannot hold
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"the host {host!r} cannot be used: {reason}") from None
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen(BACKLOG)  # from now on clients wait instead of being refused
    except OSError as error:
        bound.close()
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another one with --port"
        ) from None
    return bound


class LogFormatter(logging.Formatter):
    """A formatter with one line per record, plain or JSON; requests by path and outcome, without contents and keys."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._as_json:
            data = {"time": at, "level": record.levelname.lower(), "event": record.getMessage(), **fields}
            return inert(json.dumps(data | ({"trace": trace} if trace else {}), ensure_ascii=False))
        words = " ".join(repr(str(each))[1:-1] for each in fields.values() if each != "")
        line = [at, record.levelname.lower(), words or record.getMessage(), *([f"\n{trace}"] if trace else [])]
        return plain(" ".join(line))


def start_log(*, as_json: bool, requests: bool = True) -> None:
    """Write the log of the server to standard error, on request without a line for each request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter(as_json=as_json))
    for name, level in (("taiwa.server", logging.INFO), ("uvicorn", logging.WARNING)):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(level)
    if not requests:
        logging.getLogger("taiwa.server.requests").setLevel(logging.WARNING)
