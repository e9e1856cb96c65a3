"""Base URLs of model servers: parsing, checking, and joining with a path."""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from taiwa.kernel.errors import ConfigError

DEFAULT_PORTS = {"http": 80, "https": 443}
FORM = "write it like http://127.0.0.1:8080/v1, and give keys with `taiwa keys set`"
SAFE_IN_PATH = "/%:@!$&'()*+,;=-._~?"


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A base URL in its parts; `text` is as it was written, fit to stand in an error."""

    text: str
    scheme: str
    host: str
    port: int | None
    path: str

    @property
    def authority(self) -> str:
        """The host and port as the `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether it is a loopback address, which is never reached through a proxy."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def join(self, path: str) -> str:
        """Return the URL of a path below it, quoted for the wire."""
        below = quote("/".join((self.path, path.lstrip("/"))), safe=SAFE_IN_PATH)
        return f"{self.scheme}://{self.authority}{below}"


@lru_cache(maxsize=64)
def parse_base_url(base_url: str) -> BaseUrl:
    """Parse and check a base URL.

    Raises:
        ConfigError: it is not an HTTP address, or holds more than one, such as a password.
    """
    try:
        parts = urlsplit(base_url)
        port, name = parts.port, parts.hostname or ""
        host = name if ":" in name else name.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError, for a name that DNS cannot hold, is one of them
        raise ConfigError(f"invalid base URL; {FORM}") from None
    if "@" in parts.netloc or parts.query or parts.fragment or not base_url.isprintable():
        # perhaps a key: not repeated
        raise ConfigError(f"the base URL for {host!r} holds more than an address; {FORM}")
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise ConfigError(f"invalid base URL {base_url[:80]!r}; {FORM}")
    return BaseUrl(
        base_url, parts.scheme, host, None if port == DEFAULT_PORTS[parts.scheme] else port, parts.path.rstrip("/")
    )
