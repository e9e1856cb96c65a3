"""The context of endpoints: the parts of the server, the caller, and the body of a request."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from starlette.requests import Request

from taiwa.i18n import LANGUAGES
from taiwa.kernel.serialization import Json, parse_json
from taiwa.operations.resent_history import Completion
from taiwa.server.catalogue import Catalogue, EmbeddingModel
from taiwa.server.conversation_turns import FollowedRuns
from taiwa.server.credentials import Access, Repositories
from taiwa.server.errors import ApiError, invalid
from taiwa.server.fields import Fields
from taiwa.server.indexing import Indexing
from taiwa.server.options import ServerOptions
from taiwa.server.page.views import CountBreaks, count_breaks
from taiwa.server.request_checks import body_too_large
from taiwa.server.runs import LiveRun, OnEnd, Runs
from taiwa.server.shared_store import Sharing
from taiwa.sessions.commit_turn import TurnOptions
from taiwa.sessions.repository import Repository

LANGUAGE_COOKIE = "taiwa-language"
MOST_COUNTED = 4096
"""Ends of conversations whose breaks of the prompt cache are remembered."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """What endpoints work with: `request.app.state.server`."""

    options: ServerOptions
    repositories: Repositories
    catalogue: Catalogue
    access: Access
    turns: TurnOptions
    runs: Runs
    indexing: Indexing
    live: dict[str, Any]
    """What wires keep while it is written, by id."""
    sharing: Sharing
    followed: FollowedRuns
    embeddings: EmbeddingModel | None = None
    count_breaks: CountBreaks = field(default_factory=lambda: lru_cache(MOST_COUNTED)(count_breaks))

    def repository(self, caller: str) -> Repository:
        """Return the conversations of a caller, isolated from those of others."""
        return self.repositories.of(caller)


PRODUCT = re.compile(r"[!-~]+(?: [0-9][!-~]*)?")
LONGEST_CLIENT = 60


def start_run(
    request: Request, protocol: str, completions: Sequence[Completion], on_end: OnEnd | None = None
) -> LiveRun:
    """Begin the answers of a client of a protocol; the page shows them while they are written.

    Raises:
        ApiError: as `Runs.start`.
    """
    product = PRODUCT.match(request.headers.get("user-agent", ""))
    name = product[0][:LONGEST_CLIENT] if product else ""
    return watched_run(
        state_of(request), caller_of(request), f"{name} · {protocol}" if name else protocol, completions, on_end
    )


def watched_run(
    state: ServerState, caller: str, client: str, completions: Sequence[Completion], on_end: OnEnd | None = None
) -> LiveRun:
    """As `start_run`, of a client by its name."""
    run = state.runs.start([each.by_client(client) for each in completions], on_end)
    state.followed.watch(caller, run, state.runs, client)
    return run


def state_of(request: Request) -> ServerState:
    """Return the parts of the server that got a request."""
    state: ServerState = request.app.state.server
    return state


def caller_of(request: Request) -> str:
    """Return the caller of a request; "" is the holder of the server's token."""
    return str(request.scope["caller"])


def language_of(request: Request) -> str:
    """Return the language of a browser: the chosen one, else its first supported one.

    >>> language_of(Request({"type": "http", "headers": [(b"accept-language", b"fr, ja-JP;q=0.8")]}))
    'ja'
    """
    wanted = [request.cookies.get(LANGUAGE_COOKIE, ""), *request.headers.get("accept-language", "").split(",")]
    short = (each.strip()[:2].lower() for each in wanted)
    return next((each for each in short if each in LANGUAGES), "en")


def repository_of(request: Request) -> Repository:
    """Return the conversations of the caller of a request."""
    return state_of(request).repository(caller_of(request))


async def read_body(request: Request) -> Fields:
    """Read the body of a request, a JSON object.

    Raises:
        ApiError: it is too large, too slow, or not a JSON object.
    """
    limits = state_of(request).options.limits
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > limits.body:
                    raise body_too_large(limits.body)
                parts.append(part)
    except TimeoutError:
        raise ApiError(408, "the body did not arrive in time", code="request_timeout") from None
    body = b"".join(parts)
    data = await asyncio.to_thread(_parse, body) if size > 1 << 20 else _parse(body)
    return Fields.of(data)


def _parse(body: bytes) -> Json:
    try:
        return parse_json(body.decode())
    except UnicodeDecodeError:
        raise invalid(None, "the body is not UTF-8", "invalid_json") from None
    except ValueError as error:
        raise invalid(None, f"the body is not JSON: {str(error)[:200]}", "invalid_json") from None
