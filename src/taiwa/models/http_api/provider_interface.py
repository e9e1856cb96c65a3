"""The interface between a provider protocol and the HTTP client: codecs, decoders, wire requests, targets.

A codec turns a `Request` into the bytes of one POST, and the bytes of its response into chunks. It does no I/O. There are two:
`openai_chat.ChatCompletions`, with a dialect per server, and `anthropic.AnthropicMessages`. A new provider that speaks Chat
Completions is a row in `taiwa.models.registry.PROVIDERS`; one with a protocol of its own is a new module here with a `Codec`, built
on `stream_decoder` and `errors`, which `taiwa.models.registry` puts into the `Target`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal, Protocol, TypeAlias, cast

from taiwa.kernel.errors import ConfigError, InputError, ModelError
from taiwa.kernel.messages import Capability, Chunk, Enforcement, Request
from taiwa.kernel.records import Json, record

ConstraintWire: TypeAlias = Literal["response_format", "structured_outputs", "fields", "gbnf", "llguidance"]
"""JSON Schema only · vLLM's field · SGLang's own fields · llama.cpp's grammars · the same, with llguidance as the engine."""

Enforce: TypeAlias = Literal["auto", "strict", "lenient"]
"""What to do about a constraint that the server does not enforce.

`auto`: check keywords of a schema afterwards, refuse the rest · `strict`: refuse all · `lenient`: refuse nothing, check all.
"""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One POST, without its key: `path` is relative to the base URL; `enforcement` tells how its constraint is enforced."""

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    enforcement: Enforcement | None = None


class Decoder(Protocol):
    """Turns the bytes of one response into chunks, in whatever pieces they arrive."""

    def feed(self, data: bytes) -> list[Chunk]:
        """Return the chunks that the next bytes complete; `data` may be empty.

        Raises:
            ModelError: the server reports a failure inside its response, or violates its protocol. Chunks before the failure
                are returned first, and the next call raises.
        """
        ...

    def close(self) -> list[Chunk]:
        """Return the remaining chunks at the end of the bytes; the last chunk of all is `StreamEnd`.

        Raises:
            ProtocolError: the response is incomplete.
        """
        ...


class Codec(Protocol):
    """One provider protocol as pure functions on bytes."""

    def encode(self, request: Request) -> WireRequest:
        """Encode a request.

        Raises:
            UnsupportedError: the protocol or the model cannot express it.
        """
        ...

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Create a decoder for a response of this content type (a stream of events or one JSON object).

        `prefix` is that of the request. Some servers repeat it at the start of the response, where the decoder removes it.
        """
        ...

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """Map a response that is not 2xx to an error; header names are lower-case."""
        ...

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that carry a key."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """What the name of a model resolves to: its codec, its address, its capabilities and the name of its key."""

    name: str
    base_url: str
    model: str
    codec: Codec = field(repr=False)
    capabilities: frozenset[Capability]
    key_name: str = ""
    inside: bool = False
    """Whether the model runs in this process, without a server."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class NoCodec:
    """The `Codec` of a model in this process, which never gets a response to decode."""

    def encode(self, request: Request) -> WireRequest:
        """Encode the record of a request, for previews."""
        return WireRequest("", json.dumps(record(request), ensure_ascii=False).encode())

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:  # noqa: ARG002  (the protocol's)
        """Raise: a model without a server sends no bytes."""
        raise self.failure(0, {}, b"")

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:  # noqa: ARG002  (the protocol's)
        """Return an error: a model without a server has no status."""
        return ModelError("a model in this process has no server to call")

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:  # noqa: ARG002  (the protocol's)
        """Return no headers: a model without a server needs no key."""
        return ()


def to_json(data: Json) -> bytes:
    """Write JSON as compact UTF-8, keys in their given order.

    Keys are not sorted as in a digest: servers generate a constrained answer field by field in the order of its schema, and
    a type that asks for the reason before the verdict relies on it.

    Raises:
        InputError: the text contains a lone surrogate, or a number that JSON cannot represent.
    """
    try:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise InputError(f"the request contains half a character ({half}); give valid Unicode") from None
    except ValueError as error:
        raise InputError(f"the request contains a value that JSON cannot represent: {error}") from None


def parse_json(text: str | bytes) -> Json:
    """Parse JSON; bytes that are not UTF-8 are decoded with replacement characters.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        return cast(Json, json.loads(text))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_options(text: str, known: Sequence[str], kind: str) -> dict[str, str]:
    """Parse the options `name=value&…` after the name of a model; `kind` names the kind of model in errors.

    Raises:
        ConfigError: an option is unknown.
    """
    options: dict[str, str] = {}
    for option in filter(None, text.split("&")):
        name, _, value = option.partition("=")
        if name not in known:
            near = get_close_matches(name, known, 1, 0.0)[0]
            raise ConfigError(
                f"unknown option {name!r} of a {kind} model: did you mean {near!r}? (known: {', '.join(known)})"
            )
        options[name] = value
    return options


def parse_integer(name: str, text: str) -> int:
    """Parse the value of an option that is a whole number of at most 9 digits.

    Raises:
        ConfigError: it is not.
    """
    if not text.isdecimal() or len(text) > 9:
        raise ConfigError(f"{name} must be a whole number, got {text!r}")
    return int(text)
