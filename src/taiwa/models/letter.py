"""What one call sends: an address, headers that are fit to travel, and a body."""

from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.values import Request, user
from taiwa.models.secret import Secret
from taiwa.models.wire import Call, Codec, Target

__all__ = ["Address", "Letter", "address_of", "get", "post"]

PORTS = {"http": 80, "https": 443}
FORM = "write it like http://127.0.0.1:8080/v1, and give keys with `taiwa keys set`"
SAFE_IN_PATH = "/%:@!$&'()*+,;=-._~?"
ALWAYS = (
    (b"user-agent", b"taiwa"),
    (b"accept", b"text/event-stream, application/json"),
    (b"accept-encoding", b"identity"),  # packing a stream of small events makes servers hold them back
)


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL in its parts; `text` is as it was written, fit to stand in an error."""

    text: str
    scheme: str
    host: str
    port: int | None
    path: str

    @property
    def authority(self) -> str:
        """The host as the `Host` header says it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether it is this machine itself, which no proxy leads to."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Letter:
    """One call, ready to be sent. `address.text` may stand in errors; nothing in `secrets` may."""

    method: str
    address: Address
    path: str
    codec: Codec = field(repr=False)
    headers: tuple[tuple[bytes, bytes], ...] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    request: Request | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


@lru_cache(maxsize=64)
def address_of(base_url: str) -> Address:
    """Take a base URL apart.

    Raises:
        ConfigError: it is no address of a server.
    """
    try:
        parts = urlsplit(base_url)
        port, name = parts.port, parts.hostname or ""
        host = name if ":" in name else name.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError, for a name that DNS cannot hold, is one of them
        raise ConfigError(f"the base URL is broken; {FORM}") from None
    if "@" in parts.netloc or parts.query or parts.fragment or not base_url.isprintable():
        raise ConfigError(
            f"the base URL for {host!r} holds more than an address; {FORM}"
        )  # perhaps a key: not repeated
    if parts.scheme not in PORTS or not host:
        raise ConfigError(f"{base_url[:80]!r} is no base URL; {FORM}")
    return Address(base_url, parts.scheme, host, None if port == PORTS[parts.scheme] else port, parts.path.rstrip("/"))


def post(target: Target, call: Call, key: Secret | None, request: Request | None = None) -> Letter:
    """Write a call to a model as a letter.

    Raises:
        ConfigError: the base URL or a header cannot be sent.
    """
    address = address_of(target.base_url)
    length = (b"content-length", str(len(call.body)).encode())
    headers = (*_headers(target, key, address), *_encoded(call.headers), length)
    return Letter(
        "POST", address, _path(address, call.path), target.codec, headers, call.body, request, _secrets(key)
    )  # fmt: skip


def get(target: Target, path: str, key: Secret | None) -> Letter:
    """Write a question for a document, such as the list of models, as a letter.

    Raises:
        ConfigError: the base URL or a header cannot be sent.
    """
    address = address_of(target.base_url)
    # a protocol's own headers, its version for one, are told by any of its calls
    call = target.codec.encode(Request((user("x"),)))
    own = tuple(header for header in call.headers if header[0] != "content-type")
    headers = (*_headers(target, key, address), *_encoded(own))
    return Letter("GET", address, _path(address, path), target.codec, headers, secrets=_secrets(key))


def _path(address: Address, path: str) -> str:
    return quote(f"{address.path}/{path.lstrip('/')}", safe=SAFE_IN_PATH)


def _secrets(key: Secret | None) -> tuple[str, ...]:
    return (key.reveal(),) if key else ()


def _headers(target: Target, key: Secret | None, address: Address) -> tuple[tuple[bytes, bytes], ...]:
    own = (*target.headers, *(target.codec.auth(key.reveal()) if key else ()))
    return ((b"host", address.authority.encode()), *ALWAYS, *_encoded(own))


def _encoded(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[bytes, bytes], ...]:
    for name, text in headers:
        if not (name.isascii() and name.isprintable() and text.isascii() and text.isprintable()):
            raise ConfigError(f"the header {name[:40]!r} holds a sign that no header may hold; set it again")
    return tuple((name.lower().encode(), text.encode()) for name, text in headers)
