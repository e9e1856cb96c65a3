"""Base URLs of model servers, limits of calls, and kept connections: pools of httpx2 per event loop, TLS and proxies."""

import re
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from taiwa.kernel.errors import ConfigError

if TYPE_CHECKING:
    import httpx2

DEFAULT_PORTS = {"http": 80, "https": 443}
API_VERSION = re.compile(r"api-version=([0-9A-Za-z-]+)")
FORM = "http://HOST:PORT/v1"
SAFE_IN_URL = "/%:@!$&'()*+,;=-._~?[]"
KEPT_SECONDS = 20.0
"""How long an idle connection is kept open."""
POOL_CALLS = 16
"""Calls at a time in one connection pool."""


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

    def join(self, path: str) -> str:
        """Return the URL of a path below it, quoted for the wire."""
        return quote(f"{replace(self, api_version='')}/{path.lstrip('/')}", safe=SAFE_IN_URL) + self._query


@lru_cache(maxsize=64)
def parse_base_url(text: str, what: str = "the base URL") -> BaseUrl:
    """Parse and check a base URL, which `what` names in errors; they never repeat one that may contain a password or a key.

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
        raise ConfigError(f"{what} is not a web address; use {FORM}")
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


@cache
def connection_faults() -> tuple[type[Exception], ...]:
    """Return the exceptions of connections, which `map_fault` maps."""
    import httpx2

    return (httpx2.TransportError, OSError)


def _proxy(base: BaseUrl) -> "httpx2.Proxy | None":
    """Return the proxy that the environment names for a server, none for a loopback address."""
    import httpx2

    if base.is_local or proxy_bypass(base.host):
        return None
    proxies = getproxies()
    url = proxies.get(base.scheme) or proxies.get("all")
    if not url:
        return None
    if "://" not in url:
        url = f"http://{url}"
    scheme = url.partition("://")[0]
    with suppress(httpx2.InvalidURL, ValueError):
        proxy = httpx2.Proxy(url)
        if scheme in DEFAULT_PORTS and proxy.url.host:
            return proxy
    raise ConfigError(
        f"unsupported {scheme[:20]!r} proxy for {base.host}; set HTTPS_PROXY to an http:// or https:// URL, "
        "or name the host in NO_PROXY"
    )


class Pool:
    """A connection pool, the number of calls that use it, and when the last one ended."""

    def __init__(self, transport: "httpx2.AsyncHTTPTransport") -> None:
        self.transport = transport
        self.calls = 0
        self.used = time.monotonic()

    def __enter__(self) -> "httpx2.AsyncHTTPTransport":
        self.calls += 1
        return self.transport

    def __exit__(self, *_: object) -> None:
        self.calls -= 1
        self.used = time.monotonic()

    async def aclose(self) -> None:
        """Close its connections."""
        with suppress(*connection_faults()):
            await self.transport.aclose()


class Connections:
    """The connections of one event loop to one server.

    httpcore2 looks at all connections of a pool twice a call, so there are several pools. A call takes the first one with room:
    few calls at a time share few connections. The client of httpx2 above its transport would add cookies, redirects, default
    headers and a proxy of its own, all of which would be switched off here.
    """

    def __init__(self, base: BaseUrl) -> None:
        import ssl

        import httpx2

        # Loading the certificates takes as long as fifty calls; without TLS there is nothing to verify.
        tls = httpx2.create_ssl_context() if base.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # The caller decides how many calls run at once; one that waited for a connection here would look slow.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEPT_SECONDS)
        self._open = partial(httpx2.AsyncHTTPTransport, verify=tls, limits=limits, proxy=_proxy(base))
        self._pools: list[Pool] = []
        self._keeper = self._keep()

    async def _keep(self) -> AsyncGenerator[None]:
        """Hold the connections: an event loop that ends closes its generators, this one too."""
        try:
            yield
        finally:
            for pool in self._pools:
                await pool.aclose()

    async def pool(self) -> Pool:
        """Return a pool with room for a call."""
        if not self._pools:
            await anext(self._keeper, None)
        latest = time.monotonic() - KEPT_SECONDS
        old = [pool for pool in self._pools[1:] if not pool.calls and pool.used < latest]
        self._pools[:] = [pool for pool in self._pools if pool not in old]
        for pool in old:
            await pool.aclose()
        for pool in self._pools:
            if pool.calls < POOL_CALLS:
                return pool
        self._pools.append(Pool(self._open()))
        return self._pools[-1]

    async def aclose(self) -> None:
        """Close all connections."""
        await self._keeper.aclose()
