"""The interface of a protocol of the server: its routes and the format of its errors; and the OpenAPI document of the server's
own API, made from its routes and the types of their JSON.

Each module of `wires` lists its routes, and `serve.WIRES` lists the modules. To add a route to the server's own API, give it
`api=Described(ANSWER)` with shapes of `result_json` or `api_types` besides its endpoint: the path, its parameters, the summary (the
first line of the docstring) and all schemas follow from that. A test fails for a route without one, and for an answer that does not
match its shape.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeAlias

from taiwa.kernel.serialization import Json
from taiwa.operations.json_shape import schema_of
from taiwa.server.api_types import ErrorAnswer
from taiwa.server.http_responses import ApiError

TEXT: Mapping[str, Json] = {"type": "string"}
NAME: Mapping[str, Json] = {"type": "string", "minLength": 1}
COUNT: dict[str, Json] = {"type": "integer", "minimum": 1, "maximum": 100}
OFFSET: Mapping[str, Json] = {"type": "integer", "minimum": 0, "maximum": 1 << 40}
LIMIT: Mapping[str, Json] = {"type": "integer", "minimum": 1, "maximum": 1000}
FILES: Mapping[str, Json] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "string", "format": "binary"},
}
EVENTS = "text/event-stream"
GET, POST, DELETE = ("GET",), ("POST",), ("DELETE",)
PREFIX = "/api/"
OWN = frozenset({"api", "documents", "persons"})
"""The wires of the server's own API; Ollama also has paths below `/api/`."""
PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
Endpoint: TypeAlias = Callable[..., Any]
"""Takes a request, and its fields if the route names them; returns a response, or its JSON. One that is not a coroutine function may
block: it runs in a thread.
"""


@dataclass(frozen=True, slots=True)
class Described:
    """The OpenAPI description of a route, besides its path and docstring.

    `answer` and `body` are shapes. `query` maps a parameter to its JSON Schema; a name that ends with `!` is
    required.
    """

    answer: Any
    body: Any = None
    query: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    status: int = 200
    media: tuple[str, ...] = ("application/json",)


@dataclass(frozen=True, slots=True)
class Route:
    """A route of a wire: `endpoint` reads a request and returns a response or JSON, or raises `ApiError` or an error of taiwa.

    A route with `takes_files` accepts bodies of any type, and larger ones than JSON; an `untyped` one accepts JSON under any
    content type. What a POST with an `Idempotency-Key` makes is made once, unless the route `repeats`: it attaches such requests to runs
    itself, or they name what they make. `body` names the fields of its JSON body; those that `api` describes need no names.
    """

    path: str
    endpoint: Endpoint
    methods: tuple[str, ...] = POST
    takes_files: bool = False
    untyped: bool = False
    repeats: bool = False
    api: Described | None = None
    body: Collection[str] | None = None

    @property
    def fields(self) -> Collection[str] | None:
        """The names of the fields of its body, which its endpoint gets; None for an endpoint that reads the body itself, if any."""
        described = self.api is not None and self.api.body
        return getattr(described, "__origin__", described).__annotations__ if described else self.body


@dataclass(frozen=True, slots=True)
class Wire:
    """A protocol. `error` formats an error; errors before routing use the format of the wire of the path.

    `status` maps the status of an error, if the protocol has its own.
    """

    name: str
    routes: tuple[Route, ...]
    error: Callable[[ApiError], dict[str, Json]]
    take_over: "Callable[[Any], Awaitable[None]] | None" = None
    """Called with the `ServerState` to resume what a terminated server left unfinished: at startup, and while others share the
    store.
    """
    status: Callable[[ApiError], int] | None = None

    def has(self, path: str) -> bool:
        """Report whether a path belongs to this wire."""
        return any(path == known or path.startswith(f"{known}/") for known in self.prefixes)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The constant prefixes of its paths."""
        return tuple(dict.fromkeys(route.path.partition("/{")[0] for route in self.routes))


def document(wires: Iterable[Wire]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the routes of these wires."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for route in api_routes(wires):
        operations = paths.setdefault(PARAMETER.sub(r"{\1}", route.path), {})
        for method in route.methods:
            operations[method.lower()] = _operation(route, schemas)
    about = "Conversations with their branches, states and bills, documents and persons of one taiwa server."
    return {
        "openapi": "3.1.0",
        "info": {"title": "taiwa", "version": version("taiwa"), "description": about},
        "security": [{"key": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def api_routes(wires: Iterable[Wire]) -> list[Route]:
    """Return the routes that the document describes."""
    return [route for wire in wires if wire.name in OWN for route in wire.routes]


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    described = route.api
    assert described is not None, f"{route.path} is not described: give its Route an `api`"
    summary, _, description = inspect.cleandoc(route.endpoint.__doc__ or "").partition("\n\n")
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in PARAMETER.findall(route.path)
    ]
    parameters += [
        {"name": name.rstrip("!"), "in": "query", "required": name.endswith("!"), "schema": dict(schema)}
        for name, schema in described.query.items()
    ]
    operation: dict[str, Any] = {
        "operationId": f"{'_'.join(route.methods).lower()}_{re.sub('[^a-z]+', '_', route.path.removeprefix(PREFIX)).strip('_')}",
        "summary": summary,
        "responses": {
            str(described.status): _content(described, schemas),
            "default": {
                "description": "The request cannot be done.",
                "content": {"application/json": {"schema": schema_of(ErrorAnswer, schemas)}},
            },
        },
    }
    if description:
        operation["description"] = description
    if parameters:
        operation["parameters"] = parameters
    if described.body is not None:
        schema = schema_of(described.body, schemas, given=True)
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    elif route.takes_files:
        operation["requestBody"] = {
            "required": True,
            "content": {"multipart/form-data": {"schema": FILES}},
        }
    return operation


def _content(described: Described, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = schema_of(described.answer, schemas)
    # Tools read the schema of a stream as that of its events, each of which has one of its own.
    content = {kind: {} if kind == EVENTS else {"schema": schema} for kind in described.media}
    return {"description": "Done.", "content": content}
