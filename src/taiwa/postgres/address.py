"""Where a PostgreSQL server is. The address may hold a password, which no text of this program shows."""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

__all__ = ["Server", "hidden", "is_server"]

SCHEMES = ("postgresql://", "postgres://")
SHOWN = ("host", "port", "dbname", "user", "sslmode")
"""The parameters of an address that an error may repeat; the others may be secret."""
BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
FORM = "write it as postgresql://USER@HOST:PORT/DATABASE"


def is_server(text: object) -> bool:
    """Say whether a text is the address of a server and not the path of a file."""
    return isinstance(text, str) and text.lstrip().lower().startswith(SCHEMES)


@dataclass(frozen=True, slots=True)
class Server:
    """An address. `str()` and `repr()` leave its password out; only the driver is given `url`.

    >>> str(Server.read("postgresql://ann:secret@db.example:5433/talks?sslmode=require&sslpassword=x"))
    'postgresql://ann@db.example:5433/talks?sslmode=require'
    """

    url: str = field(repr=False)

    @classmethod
    def read(cls, text: str) -> "Server":
        """Read an address.

        Raises:
            ValueError: it is none; the message repeats nothing of it.
        """
        url = text.strip()
        try:
            parts = urlsplit(url)
            ports = [
                re.sub(r"^\[[^\]]*\]|^[^:]*", "", host) for host in parts.netloc.rpartition("@")[2].split(",") if host
            ]
        except ValueError:
            raise ValueError(f"is no address of a server: {FORM}") from None
        if not is_server(url) or not url.isprintable() or " " in url:
            raise ValueError(f"is no address of a server: {FORM}")
        # A raw / ? # or @ within a password would end the part of the address that is hidden.
        rest = parts.path + parts.query + parts.fragment
        if parts.fragment or "@" in rest or BROKEN_ESCAPE.search(url) or not all(map(_is_port, ports)):
            raise ValueError(f"is no address of a server: {FORM}; in a password / ? # @ % are %2F %3F %23 %40 %25")
        return cls(url)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        login, at, hosts = parts.netloc.rpartition("@")
        shown = "&".join(f"{name}={value}" for name, value in parse_qsl(parts.query) if name in SHOWN)
        return f"{parts.scheme}://{login.partition(':')[0]}{at}{hosts}{parts.path}{'?' if shown else ''}{shown}"

    def __repr__(self) -> str:
        return f"Server({str(self)!r})"


def _is_port(text: str) -> bool:
    return text == "" or (text.startswith(":") and (text[1:].isdecimal() or text == ":"))


def hidden(text: str) -> str:
    """Return a text as it may be shown: the address of a server without its password."""
    return str(Server.read(text)) if is_server(text) else text
