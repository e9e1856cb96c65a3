"""The ASGI application: its parts, its routes, and how errors become responses."""

import re
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.serialization import Json
from taiwa.server.credentials import COOKIE_SECONDS
from taiwa.server.errors import INTERNAL, INVALID, ApiError, api_error
from taiwa.server.openapi import document
from taiwa.server.request_checks import Guard
from taiwa.server.request_context import ServerState, state_of
from taiwa.server.responses import json_response
from taiwa.server.wire_interface import Endpoint, Route, Wire
from taiwa.server.wires import (
    ag_ui,
    api,
    chat_completions,
    conversations,
    documents,
    embeddings,
    files,
    mcp,
    messages,
    ollama,
    page,
    persons,
    responses,
    vector_stores,
)

WIRES: tuple[Wire, ...] = (
    chat_completions.wire,
    responses.wire,
    conversations.wire,
    messages.wire,
    ollama.wire,
    embeddings.wire,
    ag_ui.wire,
    mcp.wire,
    api.wire,
    documents.wire,
    files.wire,
    vector_stores.wire,
    persons.wire,
    page.wire,
)
"""The first one writes the errors of paths that no wire has."""
ESCAPED_SLASH = re.compile(rb"%(?=2[Ff5])")
"""In a path: of a slash that belongs to a name, and of a percent sign."""
STATUS_CODES = {404: "not_found", 405: "method_not_allowed"}


def build(state: ServerState) -> ASGIApp:
    """Return the application of a server."""

    def error_response(error: ApiError, path: str) -> Response:
        wire = next((wire for wire in WIRES if wire.has(path)), WIRES[0])
        status = error.status if wire.status is None else wire.status(error)
        return json_response(wire.error(error), status, error.headers)

    def endpoint(function: Endpoint, status: int = 200) -> Callable[[Request], Awaitable[Response]]:
        async def run(request: Request) -> Response:
            request.scope["path_params"] = {key: unquote(str(each)) for key, each in request.path_params.items()}
            try:
                found = await function(request)
                return found if isinstance(found, Response) else json_response(found, status)
            except ApiError as error:
                return error_response(error, request.url.path)
            except TaiwaError as error:
                return error_response(api_error(error), request.url.path)
            except ClientDisconnect:
                return Response(status_code=499)

        return run

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        path = request.url.path
        text = f"{request.method} {path[:200]} does not exist here"
        response = error_response(ApiError(error.status_code, text, INVALID, STATUS_CODES.get(error.status_code)), path)
        if error.status_code == 405:
            methods = (each.methods or () for each in routes if each.path_regex.match(path))
            response.headers["allow"] = ", ".join(sorted({method for each in methods for method in each}))
        return response

    async def on_failure(request: Request, _: Exception) -> Response:
        return error_response(INTERNAL, request.url.path)  # uvicorn logs the traceback

    routes = [
        StarletteRoute("/health", endpoint(_health)),
        StarletteRoute("/login", endpoint(_log_in)),
        StarletteRoute("/v1/models", endpoint(_models)),
        StarletteRoute("/v1/models/{name:path}", endpoint(_model)),
        StarletteRoute("/api/openapi.json", endpoint(_openapi)),
    ]
    for wire in WIRES:
        routes += [
            StarletteRoute(
                each.path,
                endpoint(each.endpoint, 200 if each.api is None else each.api.status),
                methods=list(each.methods),
            )
            for each in wire.routes
        ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: on_http_error, Exception: on_failure})
    app.router.redirect_slashes = False
    app.state.server = state

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        """Match the path with its slashes of names still escaped; an endpoint gets its names as they are."""
        if scope["type"] == "http":
            scope["path"] = unquote(ESCAPED_SLASH.sub(b"%25", scope["raw_path"]).decode("ascii", "replace"))
        await app(scope, receive, send)

    def matching(routes: Iterable[Route]) -> Callable[[str], bool]:
        patterns = [compile_path(each.path)[0] for each in routes]
        return lambda path: any(pattern.match(path) for pattern in patterns)

    every = [each for wire in WIRES for each in wire.routes]
    takes_files = matching(each for each in every if each.takes_files)
    is_untyped = matching(each for each in every if each.untyped)
    return Guard(route, state.options, state.access, error_response, takes_files, is_untyped)


async def take_over(state: ServerState) -> None:
    """Let the wires go on with what a server that is gone left unfinished."""
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
            used = "the link was used before; restart `taiwa serve` for a new one"
            raise ApiError(401, used, code="invalid_code") from None
        return response  # the browser has its cookie
    response.set_cookie(access.cookie, value, httponly=True, samesite="strict", path="/", max_age=COOKIE_SECONDS)
    return response


async def _models(request: Request) -> Json:
    ids = state_of(request).catalogue.ids()
    if "anthropic-version" not in request.headers:
        return {"object": "list", "data": [_model_object(name) for name in ids]}
    data: list[Json] = [messages.model_object(name) for name in ids]
    return {"data": data, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}


async def _model(request: Request) -> Json:
    chosen = state_of(request).catalogue.choose(request.path_params["name"])
    write = messages.model_object if "anthropic-version" in request.headers else _model_object
    return write(chosen.id)


async def _openapi(_: Request) -> Json:
    """Return the OpenAPI document of the server's own API."""
    return document(WIRES)


def _model_object(name: str) -> Json:
    return {"id": name, "object": "model", "created": 0, "owned_by": "taiwa"}
