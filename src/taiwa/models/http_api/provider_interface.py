"""Codec and decoder protocols, wire request, target; tolerant JSON access."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal, Protocol, TypeAlias, cast

from taiwa.kernel.errors import ConfigError, InputError, ModelError
from taiwa.kernel.messages import Capability, Chunk, Enforcement, Request
from taiwa.kernel.records import Json, record

__all__ = [
    "Codec",
    "ConstraintWire",
    "Decoder",
    "Enforce",
    "NoCodec",
    "Target",
    "WireRequest",
    "chosen",
    "parse",
    "whole",
    "written",
]


ConstraintWire: TypeAlias = Literal["response_format", "structured_outputs", "fields", "gbnf", "llguidance"]
"""JSON Schema only · vLLM's field · SGLang's own fields · llama.cpp's grammars · the same, with the engine llguidance in it."""

Enforce: TypeAlias = Literal["auto", "strict", "lenient"]
"""Leave keywords that are not held to a check, and refuse the rest · refuse all that is not held · refuse nothing."""


@dataclass(frozen=True, slots=True)
class WireRequest:
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

    def encode(self, request: Request) -> WireRequest:
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
    capabilities: frozenset[Capability]
    key_name: str = ""
    inside: bool = False
    """Whether it runs in this process: no server is asked."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def written(data: Json) -> bytes:
    """Write JSON as compact UTF-8 with every key in its own place.

    Keys are not sorted as in a digest: servers make a constrained answer field by field in the order of its schema, and
    a shape that asks for the reason before the verdict means it.

    Raises:
        InputError: the text holds a lone surrogate, or a number that JSON cannot say.
    """
    try:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise InputError(f"the request holds half a character ({half}); give valid Unicode") from None
    except ValueError as error:
        raise InputError(f"the request holds what JSON cannot say: {error}") from None


def parse(text: str | bytes) -> Json:
    """Read JSON text; bytes that are not UTF-8 are read with replacement characters.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    try:
        return cast(Json, json.loads(words))
    except RecursionError:
        raise ValueError("nested too deeply") from None


class NoCodec:
    """Stands in the place of a codec; see `taiwa.models.http_api.provider_interface.Codec`."""

    def encode(self, request: Request) -> WireRequest:
        """Write a request as it is."""
        return WireRequest("", json.dumps(record(request), ensure_ascii=False).encode())

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:  # noqa: ARG002  (the seam's)
        """There are no bytes to decode."""
        raise _none()

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:  # noqa: ARG002  (the seam's)
        """There is no status."""
        return _none()

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:  # noqa: ARG002  (the seam's)
        """There is no key."""
        return ()


def _none() -> ModelError:
    return ModelError("a model in this process is asked without a server")


def chosen(given: str, known: Sequence[str], kind: str) -> dict[str, str]:
    """Read the options of a model of some kind.

    Raises:
        ConfigError: one is not known.
    """
    found: dict[str, str] = {}
    for option in filter(None, given.split("&")):
        name, _, text = option.partition("=")
        if name not in known:
            near = get_close_matches(name, known, 1, 0.0)[0]
            raise ConfigError(f"{name!r} is no option of a {kind} model: did you mean {near!r}? ({', '.join(known)})")
        found[name] = text
    return found


def whole(name: str, text: str) -> int:
    """Read an option that is a number.

    Raises:
        ConfigError: it is none.
    """
    if not text.isdecimal() or len(text) > 9:
        raise ConfigError(f"{name} is a whole number, not {text!r}")
    return int(text)
