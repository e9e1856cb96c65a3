"""The seam between what is said (codecs: pure bytes) and how it travels (edges: HTTP)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from taiwa.kernel.errors import ModelError
from taiwa.kernel.values import Ability, Chunk, Enforcement, Request

__all__ = ["Call", "Codec", "Decoder", "Hold", "Target", "Way"]

Way: TypeAlias = Literal["response_format", "structured_outputs", "fields", "gbnf", "llguidance"]
"""JSON Schema only · vLLM's field · SGLang's own fields · llama.cpp's grammars · the same, with the engine llguidance in it."""
Hold: TypeAlias = Literal["auto", "strict", "lenient"]
"""Leave keywords that are not held to a check, and refuse the rest · refuse all that is not held · refuse nothing."""


@dataclass(frozen=True, slots=True)
class Call:
    """One POST, without its key: `path` is relative to the base URL; `enforcement` says how its constraint will be kept."""

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    enforcement: Enforcement | None = None


class Decoder(Protocol):
    """Turns the bytes of one answer into chunks, whatever the sizes they arrive in."""

    def feed(self, data: bytes) -> list[Chunk]:
        """Take the next bytes; no bytes at all are allowed.

        Raises:
            ModelError: the server reports a failure inside its answer, or breaks its protocol. What was said before it
                is given out first, and the next call raises.
        """
        ...

    def close(self) -> list[Chunk]:
        """End of bytes; the last chunk of all is `Finished`.

        Raises:
            ProtocolError: the answer ends in the middle.
        """
        ...


class Codec(Protocol):
    """One provider protocol as pure functions on bytes."""

    def encode(self, request: Request) -> Call:
        """Write a request.

        Raises:
            UnsupportedError: the protocol or model has no way to say it.
        """
        ...

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Make a decoder for an answer with this content type (a stream of events or one JSON object).

        `prefix` is that of the request: some servers repeat it at the start of their answer, and it is taken off there.
        """
        ...

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """Read an answer that is not 2xx; header names are lower-case."""
        ...

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:
        """The headers that carry a key."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """Where a model name leads: the codec that speaks to it, its address, its abilities and the name of its key."""

    name: str
    base_url: str
    model: str
    codec: Codec = field(repr=False)
    abilities: frozenset[Ability]
    key_name: str = ""
    inside: bool = False
    """Whether it runs in this process: no server is asked."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
