"""The assets of the page: the scripts, one style sheet and an icon, compressed, at addresses that change with their content."""

import gzip
import re
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Self
from urllib.parse import quote

MODULES = ("server", "files", "places", "settings", "talk", "state", "documents", "page")
"""The modules of the script, in the order in which they are evaluated. They share one scope: no name is defined twice."""
IMPORT = re.compile(r'^import [^;]* from "\./\w+\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)
COMMENT = re.compile(r"^\s*//.*\n|^ +| // [^\n\"'`]*$", re.MULTILINE)
"""A comment of a script, at the end of a line one without quotation marks, or an indentation."""
STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STYLE_SPACE = re.compile(r"\s*([{};,>])\s*|(?<=:)\s+")
"""White space without a meaning; that before a colon is a descendant."""
LEAST_PACKED = 500
"""Bytes below which compression is not worth its header."""


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a response, also compressed ("" if that is not smaller), and the tag of its content."""

    data: bytes
    packed: bytes
    tag: str

    @classmethod
    def of(cls, data: bytes, level: int = 6) -> Self:
        """Compress and tag some data."""
        packed = gzip.compress(data, level, mtime=0) if len(data) >= LEAST_PACKED else b""
        return cls(data, packed, blake2b(data, digest_size=9).hexdigest())


@cache
def asset(name: str) -> Body | None:
    """Return an asset of the page; None if it does not exist."""
    match name:
        case "page.js":
            return Body.of(script().encode(), 9)
        case "page.css":
            return Body.of(STYLE_SPACE.sub(r"\1", STYLE_COMMENT.sub("", _read(name))).encode(), 9)
        case "enter.js":
            return Body.of(_read(name).encode(), 9)
        case _:
            return None


def script() -> str:
    """Return all modules as one, so that a page needs one request for them."""
    text = "".join(_read(f"{name}.js") for name in MODULES)
    for part in (IMPORT, EXPORT, COMMENT):
        text = part.sub("", text)
    return text


@cache
def address(name: str) -> str:
    """Return the address of an asset, which browsers keep for ever."""
    found = asset(name)
    assert found is not None, f"{name} is not an asset"
    return f"/page/{name}?{found.tag}"


@cache
def icon() -> str:
    """Return the icon as a `data:` address."""
    return f"data:image/svg+xml,{quote(_read('icon.svg').strip())}"


ENTRY = frozenset({"/page/page.css", "/page/enter.js"})
"""The assets of the page that asks for the key."""


def _read(name: str) -> str:
    return (files("taiwa.server.page") / "static" / name).read_text()
