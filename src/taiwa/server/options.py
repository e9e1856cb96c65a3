"""The options of a server: its address, its users, and the limits of a request."""

from dataclasses import dataclass
from ipaddress import ip_address

from taiwa.kernel.errors import ConfigError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request and of all together; bytes, counts and seconds.

    `header_seconds` limits the arrival of a request without its body, `body_seconds` that of the body; `upload` and
    `upload_seconds` apply to files. `runs` limits concurrent answers, `streams` the connections that follow them. `grace` is the
    time that open runs get when the server stops.
    """

    body: int = 32 << 20
    body_seconds: float = 30.0
    header_seconds: float = 30.0
    upload: int = 128 << 20
    upload_seconds: float = 600.0
    messages: int = 5_000
    choices: int = 16
    runs: int = 256
    streams: int = 2_000
    grace: float = 5.0


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server.

    - `apps`: names or files of the served apps, the first one for requests that name a model only; () serves all.
    - `models`: names of the served models, the first one for requests that name an app only; () serves the configured one.
    - `embeddings`: the model of `/v1/embeddings`: the folder of a sentence model, or a model on a server; "" for none.
    - `indexes`: names of document indexes that every caller may search; () serves all to the holder of the token.
    - `token`: the key that API clients send; "" allows all callers.
    - `hosts`: names besides the loopback ones by which browsers and clients may address the server.
    - `origins`: origins of pages that may call it from a browser (CORS).
    - `otel`: the address of an OpenTelemetry collector that receives the spans of each turn; "" for none.
    """

    host: str = "127.0.0.1"
    port: int = 7474
    apps: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    embeddings: str = ""
    token: str = ""
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    json_log: bool = False
    otel: str = ""
    limits: Limits = Limits()

    @property
    def is_local(self) -> bool:
        """Whether only programs on this machine reach the server."""
        return is_loopback(self.host)

    def check(self) -> None:
        """Check that the options are compatible.

        Raises:
            ConfigError: the server would be open to other machines without a token.
        """
        if not self.is_local and not self.token:
            raise ConfigError(
                f"without a token the server would be open to everybody who reaches {self.host}; "
                "leave out --no-token, or bind to 127.0.0.1"
            )


def is_loopback(host: str) -> bool:
    """Report whether an address is a loopback address."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
