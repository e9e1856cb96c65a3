"""The interface between a provider protocol and the HTTP client: codecs, decoders, wire requests, targets and their base URLs.

A codec turns a `Request` into the bytes of one POST, and the bytes of its response into chunks, without I/O. There are four,
one per wire: `openai_chat.ChatCompletions`, `openai_responses.Responses`, `openai_chat.TextCompletions`, with a dialect per
server, and `anthropic.AnthropicMessages`. A new provider that speaks one of them is a row in
`taiwa.models.providers.PROVIDERS`; one with its own protocol is a new module here with a `Codec`, built on
`stream_decoder` and `errors`, which `taiwa.models.providers` puts into the `Target`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args
from urllib.parse import quote, urlsplit

from taiwa.kernel.attachments import InputKind
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Capability, Chunk, Enforcement, Request, Sampling
from taiwa.kernel.serialization import Json
from taiwa.kernel.wording import Wording

DEFAULT_PORTS = {"http": 80, "https": 443}
API_VERSION = re.compile(r"api-version=([0-9A-Za-z-]+)")
FORM = "http://HOST:PORT/v1"
SAFE_IN_URL = "/%:@!$&'()*+,;=-._~?[]"


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A base URL in its parts; an error may show its text."""

    scheme: str
    host: str
    port: int | None
    path: str
    api_version: str = ""
    """The version that Azure expects in the query of every request."""

    @property
    def authority(self) -> str:
        """The host and port as the `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The scheme, host and port, to which a key is bound; a default port is left out."""
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return f"{self.origin}{self.path}{self._query}"

    @property
    def _query(self) -> str:
        return f"?api-version={self.api_version}" if self.api_version else ""

    @property
    def is_local(self) -> bool:
        """Whether it is a loopback address, which is never reached through a proxy."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check_transport(self) -> None:
        """Check that a key may be sent.

        Raises:
            ConfigError: it would be sent unencrypted over the network.
        """
        if self.scheme == "http" and not self.is_local:
            raise ConfigError(
                f"a key is not sent over plain HTTP to {self.origin}; use https://, or a tunnel to 127.0.0.1"
            )

    def join(self, path: str) -> str:
        """Return the URL of a path below it, quoted for the wire."""
        return quote(f"{replace(self, api_version='')}/{path.lstrip('/')}", safe=SAFE_IN_URL) + self._query


@lru_cache(maxsize=64)
def parse_base_url(text: str, what: str = "the base URL") -> BaseUrl:
    """Parse and check a base URL; `what` names it in errors, which never repeat one that may contain a password or a key.

    Raises:
        ConfigError: it is not an HTTP address, or contains more than one, such as a password.
    """
    try:
        url = urlsplit(text)
        port, name = url.port, url.hostname or ""
        host = name if ":" in name else name.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError, for a name that DNS cannot hold, is one of them
        raise ConfigError(f"{what} contains an invalid URL; use {FORM}") from None
    if "@" in url.netloc:
        raise ConfigError(f"{what} contains a user name or password in its URL; remove it and use `taiwa keys set`")
    version = API_VERSION.fullmatch(url.query)
    if (url.query and version is None) or url.fragment:
        raise ConfigError(f"{what} contains a query or a fragment in its URL; remove the '?' or '#' and what follows")
    if url.scheme not in DEFAULT_PORTS or not host or port == 0 or not text.isprintable():
        raise ConfigError(Wording("{name} is not a web address; use {form}", name=what, form=FORM))
    port = None if port == DEFAULT_PORTS[url.scheme] else port
    return BaseUrl(url.scheme, host, port, url.path.rstrip("/"), version[1] if version else "")


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of one call: seconds to connect, to the first byte, between two bytes, and in total with retries; and bytes."""

    connect: float = 10.0
    first_byte: float = 300.0
    between: float = 120.0
    total: float = 600.0
    response_bytes: int = 64 * 2**20


class Server(NamedTuple):
    """The server, the model and the place of the key that errors name."""

    label: str
    model: str
    key_place: str = ""
    """What follows the words "the key", such as " in OPENAI_API_KEY"; empty if it is not known."""
    key_remedy: str = "set another with `taiwa keys set`"


ConstraintWire: TypeAlias = Literal["response_format", "structured_outputs", "fields", "gbnf", "llguidance"]
"""JSON Schema only · vLLM's field · SGLang's own fields · llama.cpp's grammars · the same, with llguidance as the engine."""

Enforce: TypeAlias = Literal["auto", "strict", "lenient"]
"""The treatment of constraints that the server does not enforce.

`auto`: check keywords of a schema afterwards, refuse the rest · `strict`: refuse all · `lenient`: refuse nothing, check all.
"""


Wire: TypeAlias = Literal["chat", "responses", "completions", "messages"]
"""`/v1/chat/completions` · `/v1/responses` · `/v1/completions` · `/v1/messages` of Anthropic."""
WIRES: tuple[Wire, ...] = get_args(Wire)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
SUMMARIES = ("auto", "concise", "detailed")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options after the name of a model on a server: `openai:gpt-…?effort=low`.

    - `wire`: the protocol; empty for that of the provider.
    - `effort`: how much the model reasons, one of `EFFORTS`; empty for its default. `budget`: the maximum of reasoning
      tokens.
    - `summary`: the summary of its reasoning that a Responses server returns, one of `SUMMARIES`; empty for none.
    - `store`: whether a Responses server keeps the conversation, which then continues from `previous_response_id`.
    """

    wire: Wire | Literal[""] = ""
    effort: str = ""
    budget: int | None = None
    summary: str = ""
    store: bool = False

    def with_effort(self, effort: str) -> "ModelOptions":
        """Return the options for a request with its own effort, "" for none; it replaces a budget too."""
        return replace(self, effort=effort, budget=None) if effort else self

    @property
    def reasons(self) -> bool:
        """Whether they ask for reasoning."""
        return self.budget is not None or self.effort not in ("", "none")


NO_OPTIONS = ModelOptions()


def split_options(name: str) -> tuple[str, str]:
    """Split the options off the name of a model; the query of an address precedes its `#` and is part of the name.

    >>> split_options("openai:gpt-x?effort=low"), split_options("https://host/v1?api-version=1#gpt?wire=chat")
    (('openai:gpt-x', 'effort=low'), ('https://host/v1?api-version=1#gpt', 'wire=chat'))
    """
    start = name.rfind("#") + 1 if "://" in name else 0
    bare, _, options = name[start:].partition("?") if start or "://" not in name else (name, "", "")
    return name[:start] + bare, options


def add_options(name: str, options: str) -> str:
    """Add options to the name of a model; they replace those of the same name.

    >>> add_options("openai:gpt-x?effort=low&wire=chat", "effort=high")
    'openai:gpt-x?effort=high&wire=chat'
    """
    bare, own = split_options(name)
    written = {option.partition("=")[0]: option for option in f"{own}&{options}".split("&") if option}
    return f"{bare}?{'&'.join(written.values())}" if written else bare


def parse_model_options(text: str) -> ModelOptions:
    """Parse the options after the name of a model on a server.

    Raises:
        ConfigError: an option is unknown, or its value is.
    """
    given = parse_options(
        text,
        {"wire": WIRES, "effort": EFFORTS, "budget": int, "summary": SUMMARIES, "store": ("true", "false")},
        "remote",
    )
    return ModelOptions(**given | {"store": given.get("store") == "true"})


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One POST, without its key: `path` is relative to the base URL; `enforcement` says how its constraint is enforced."""

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    enforcement: Enforcement | None = None


class Decoder(Protocol):
    """Turns the bytes of one response into chunks, however they are split."""

    def feed(self, data: bytes) -> list[Chunk]:
        """Return the chunks that the next bytes complete; `data` may be empty.

        Raises:
            ModelError: the server reports a failure inside its response, or violates its protocol. Chunks before the failure
                are returned first, and the next call raises.
        """

    def close(self) -> list[Chunk]:
        """Return the remaining chunks at the end of the bytes; the last chunk of all is `StreamEnd`.

        Raises:
            ProtocolError: the response is incomplete.
        """


def extra_fields(sampling: Sampling) -> dict[str, Json]:
    """Return the further fields of a request."""
    return dict(sampling.extra) if isinstance(sampling.extra, dict) else {}


class Codec(Protocol):
    """One provider protocol as pure functions on bytes."""

    @property
    def server(self) -> Server:
        """The server and the model that errors name."""

    def encode(self, request: Request) -> WireRequest:
        """Encode a request.

        Raises:
            UnsupportedError: the protocol or the model cannot express it.
        """

    def decoder(self, content_type: str, prefix: str = "") -> Decoder:
        """Create a decoder for a response of this content type (a stream of events or one JSON object).

        `prefix` is that of the request. Some servers repeat it at the start of the response, where the decoder removes it.
        """

    def takes(self, field: str) -> bool:
        """Whether a field of `Sampling.extra` can be sent: the server knows it, or ignores it."""

    def auth(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that carry a key."""


@dataclass(frozen=True, slots=True)
class Target:
    """The resolved name of a model: its codec (None in this process), address, capabilities and key."""

    name: str
    base_url: str
    model: str
    codec: Codec | None = field(repr=False)
    capabilities: frozenset[Capability]
    key_variable: str = ""
    """The environment variable with its key; a stored key is bound to the origin of the base URL."""
    provider: str = ""
    """The provider, where it requires a key."""
    inputs: frozenset[InputKind] = frozenset()
    """The attachments besides text files that may be sent to it."""
    wire: Wire | Literal[""] = ""
    """The protocol by which a server is asked."""

    @property
    def inside(self) -> bool:
        """Whether the model runs in this process, without a server."""
        return self.codec is None

    @property
    def origin(self) -> str:
        """The origin of its server, to which a stored key is bound.

        Raises:
            ConfigError: it has no server.
        """
        return parse_base_url(self.base_url).origin


def parse_options(text: str, known: Mapping[str, Sequence[str] | type], kind: str) -> dict[str, Any]:
    """Parse the options `name=value&…` after the name of a model; `kind` names the kind of model in errors.

    `known` has the values of each option: a list, whole numbers of at most 9 digits (`int`), or any text (`str`).

    Raises:
        ConfigError: an option is unknown, or its value is.
    """
    options: dict[str, Any] = {}
    for option in filter(None, text.split("&")):
        name, _, value = option.partition("=")
        if name not in known:
            near = get_close_matches(name, known, 1, 0.0)[0]
            raise ConfigError(
                f"unknown option {name!r} of a {kind} model: did you mean {near!r}? (known: {', '.join(known)})"
            )
        values = known[name]
        if values is int and not (value.isdecimal() and len(value) <= 9):
            raise ConfigError(f"{name} must be a whole number, got {value!r}")
        if not isinstance(values, type) and value not in values:
            raise ConfigError(f"unknown {name} {value!r}; choose one of {', '.join(values)}")
        options[name] = int(value) if values is int else value
    return options
