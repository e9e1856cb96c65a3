"""Who calls: one function checks every kind of credential."""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from secrets import token_urlsafe
from threading import Lock

from taiwa.server.errors import ApiError

LOCAL_CALLER = ""
"""The caller who has the token of the server, and everybody where it has none."""
MOST_BROWSERS = 64


class Access:
    """The credentials of a server: its token, the keys of named callers, and the cookies of browsers.

    `callers` maps the SHA-256 of a key to the name of its caller. A browser exchanges a one-time code, which the start line of
    the server holds, for a cookie.
    """

    def __init__(self, token: str, port: int, callers: Mapping[str, str] | None = None) -> None:
        self.cookie = f"taiwa-{port}"  # browsers send the cookies of a host to all its ports
        self._open = not token
        self._keys = dict(callers or {})
        if token:
            self._keys[_hashed(token)] = LOCAL_CALLER
        self._codes: set[str] = set()
        self._browsers: dict[str, None] = {}
        self._lock = Lock()

    def new_code(self) -> str:
        """Make a code that one browser can exchange for a cookie, once."""
        code = token_urlsafe(24)
        with self._lock:
            self._codes.add(_hashed(code))
        return code

    def exchange(self, code: str) -> str | None:
        """Return the value of the cookie for a code; None for one that is unknown or used."""
        with self._lock:
            if _hashed(code) not in self._codes:
                return None
            self._codes.remove(_hashed(code))
            value = token_urlsafe(32)
            self._browsers[_hashed(value)] = None
            while len(self._browsers) > MOST_BROWSERS:
                del self._browsers[next(iter(self._browsers))]
            return value

    def authenticate(self, headers: Mapping[str, str]) -> str:
        """Return the caller of a request by its `Authorization`, `x-api-key` or cookie; header names are lower-case.

        Raises:
            ApiError: there is no credential, or one of them is wrong.
        """
        if self._open:
            return LOCAL_CALLER
        given = [key for key in (_bearer(headers.get("authorization", "")), headers.get("x-api-key")) if key]
        found = {self._caller(key) for key in given}
        if not given and (cookie := self._read_cookie(headers.get("cookie", ""))) is not None:
            found = {LOCAL_CALLER if _hashed(cookie) in self._browsers else None}
        if len(found) != 1 or None in found:
            what = "the key is wrong" if found else "a key is missing"
            raise ApiError(
                401,
                f"{what}; send the key that `taiwa serve` printed as `Authorization: Bearer …` or `x-api-key`",
                "authentication_error",
                "invalid_api_key",
            )
        return next(caller for caller in found if caller is not None)

    def _caller(self, key: str) -> str | None:
        hashed = _hashed(key)
        names = [name for known, name in self._keys.items() if hmac.compare_digest(known, hashed)]
        return names[0] if names else None

    def _read_cookie(self, header: str) -> str | None:
        try:
            morsel = SimpleCookie(header).get(self.cookie)
        except CookieError:
            return None
        return None if morsel is None else morsel.value


def _bearer(header: str) -> str:
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _hashed(key: str) -> str:
    return sha256(key.encode("utf-8", "replace")).hexdigest()
