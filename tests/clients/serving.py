"""A server whose model is one of a scripted server over HTTP, as the clients of others find it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from taiwa.models.http_api.client import Clock, HttpModel
from taiwa.models.providers import resolve
from tests.clients.upstream import play
from tests.peers.faults import FaultServer
from tests.server.serving import KEY, Serving, serving


async def at_once(_: float) -> None:
    """A sleep that takes no time."""


@contextmanager
def front(upstream: FaultServer) -> Iterator[Serving]:
    """Serve the model of another server, by the name `scripted`."""
    upstream.plays(play)
    target = replace(resolve(f"{upstream.base_url}#scripted"), name="scripted")
    with serving(model=HttpModel(target, clock=Clock(sleep=at_once))) as running:
        yield running


def environment(served: Serving) -> dict[str, str]:
    """The variables by which SDKs find a server."""
    return {
        "OPENAI_BASE_URL": served.url,
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": served.server.url,
        "ANTHROPIC_API_KEY": KEY,
        "SERVER": served.server.url,
        "MODEL": "scripted",
    }
