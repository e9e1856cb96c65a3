"""Who calls: one function checks every kind of credential."""

import hmac
from asyncio import to_thread
from collections.abc import Callable, Mapping
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

    `find` returns the name of the caller who has a key now, None for one that nobody has (any more); it may block. A browser
    exchanges a one-time code, which the start line of the server holds, for a cookie.
    """

    def __init__(self, token: str, port: int, find: Callable[[str], str | None]) -> None:
        self.cookie = f"taiwa-{port}"  # browsers send the cookies of a host to all its ports
        self._token = _hashed(token) if token else ""
        self._find = find
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

    async def authenticate(self, headers: Mapping[str, str]) -> str:
        """Return the caller of a request by its `Authorization`, `x-api-key` or cookie; header names are lower-case.

        Raises:
            ApiError: there is no credential, or one of them is wrong.
        """
        given = [key for key in (_bearer(headers.get("authorization", "")), headers.get("x-api-key")) if key]
        found = {await self._caller(key) for key in given}
        if not self._token:
            found = {caller for caller in found if caller is not None} or {LOCAL_CALLER}
        elif not given and (cookie := self._read_cookie(headers.get("cookie", ""))) is not None:
            found = {LOCAL_CALLER if _hashed(cookie) in self._browsers else None}
        if len(found) != 1 or None in found:
            what = "the key is wrong" if found else "a key is missing"
            raise ApiError(
                401,
                f"{what}; send the key that `taiwa serve` or `taiwa serve keys add` printed as `Authorization: Bearer …` or `x-api-key`",
                "authentication_error",
                "invalid_api_key",
            )
        return next(caller for caller in found if caller is not None)

    async def _caller(self, key: str) -> str | None:
        if self._token and hmac.compare_digest(self._token, _hashed(key)):
            return LOCAL_CALLER
        return await to_thread(self._find, key)

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
