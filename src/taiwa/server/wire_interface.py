"""What a protocol of the server is: its routes, and the form of its errors."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from taiwa.kernel.serialization import Json
from taiwa.server.errors import ApiError

TEXT: Mapping[str, Json] = {"type": "string"}
COUNT: Mapping[str, Json] = {"type": "integer", "minimum": 1, "maximum": 100}
OFFSET: Mapping[str, Json] = {"type": "integer", "minimum": 0, "maximum": 1 << 40}
LIMIT: Mapping[str, Json] = {"type": "integer", "minimum": 1, "maximum": 1000}
Endpoint: TypeAlias = "Callable[[Request], Awaitable[Response | Json]]"
"""Returns a response, or the JSON of one."""


@dataclass(frozen=True, slots=True)
class Described:
    """What the OpenAPI document says of a route, beside its path and its docstring.

    `answer` and `body` are types of `api_types`. `query` maps a parameter to its JSON Schema; the name of a required one ends with `!`.
    """

    answer: Any
    body: type[Any] | None = None
    query: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    status: int = 200
    media: tuple[str, ...] = ("application/json",)


@dataclass(frozen=True, slots=True)
class Route:
    """A route of a wire: `endpoint` reads a request and returns a response or JSON, or raises `ApiError` or an error of taiwa.

    What `takes_files` gets bodies of any type, and larger ones than JSON; an `untyped` one gets JSON whatever type it is sent as.
    """

    path: str
    endpoint: Endpoint
    methods: tuple[str, ...] = ("POST",)
    takes_files: bool = False
    untyped: bool = False
    api: Described | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """A protocol. `error` writes an error in its form; errors before routing have the form of the wire of the path.

    `status` is the status of an error where the protocol has one of its own.
    """

    name: str
    routes: tuple[Route, ...]
    error: Callable[[ApiError], dict[str, Json]]
    take_over: "Callable[[Any], Awaitable[None]] | None" = None
    """Called with the `ServerState` to go on with what a server left that is gone: at the start, and while others share the store."""
    status: Callable[[ApiError], int] | None = None

    def has(self, path: str) -> bool:
        """Report whether a path is one of this wire's or below one."""
        return any(path == known or path.startswith(f"{known}/") for known in self.prefixes)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The constant beginnings of its paths."""
        return tuple(dict.fromkeys(route.path.partition("/{")[0] for route in self.routes))
