"""Authentication: one function checks every kind of credential; and the conversations of each caller."""

import hmac
import time
from asyncio import to_thread
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from secrets import token_urlsafe
from threading import Lock

from taiwa.retrieval.index import IndexScope
from taiwa.server.errors import ApiError
from taiwa.sessions.repository import Quota, Repository
from taiwa.store.server_records import Caller

LOCAL_CALLER = ""
"""The caller with the token of the server, and every caller if it has none."""
COOKIE_SECONDS = 30 * 86400
"""Seconds that a browser stays logged in."""


class Access:
    """The credentials of a server: its token, the keys of named callers, and the cookies of browsers.

    `find` returns the name of the caller of a key, None for an unknown or revoked key; it may block. A browser exchanges a
    one-time code, printed in the start line of the server, for a cookie. The token signs the cookie, so it is valid for all
    servers with that token, and after a restart.
    """

    def __init__(
        self, token: str, port: int, find: Callable[[str], str | None], clock: Callable[[], float] = time.time
    ) -> None:
        self._token = _hashed(token) if token else ""
        self._find = find
        self._clock = clock
        # Browsers send the cookies of a host to all its ports.
        self.cookie = f"taiwa-{_hashed(self._token)[:12]}" if token else f"taiwa-{port}"
        self._codes: set[str] = set()
        self._lock = Lock()

    def new_code(self) -> str:
        """Create a code that one browser can exchange for a cookie, once."""
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
        value = f"{int(self._clock()) + COOKIE_SECONDS}.{token_urlsafe(12)}"
        return f"{value}.{self._sign(value)}"

    async def authenticate(self, headers: Mapping[str, str]) -> str:
        """Return the caller of a request by its `Authorization`, `x-api-key` or cookie; header names are lower-case.

        Raises:
            ApiError: a credential is missing or wrong.
        """
        given = [key for key in (_bearer(headers.get("authorization", "")), headers.get("x-api-key")) if key]
        found = {await self._caller(key) for key in given}
        if not self._token:
            found = {caller for caller in found if caller is not None} or {LOCAL_CALLER}
        elif not given and (cookie := self._read_cookie(headers.get("cookie", ""))) is not None:
            found = {LOCAL_CALLER if self._is_valid(cookie) else None}
        if len(found) != 1 or None in found:
            what = "the key is wrong" if found else "a key is missing"
            raise ApiError(
                401,
                f"{what}; send the key that `taiwa serve` or `taiwa serve keys add` printed as `Authorization: Bearer …` or `x-api-key`",
                "authentication_error",
                "invalid_api_key",
            )
        return next(caller for caller in found if caller is not None)

    def _sign(self, value: str) -> str:
        return hmac.new(self._token.encode(), value.encode("utf-8", "replace"), sha256).hexdigest()

    def _is_valid(self, cookie: str) -> bool:
        """Return whether a cookie is ours and has not expired."""
        value, _, signature = cookie.rpartition(".")
        until = value.partition(".")[0]
        signed = hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign(value).encode())
        return signed and until.isascii() and until.isdigit() and self._clock() < int(until)

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


class Repositories:
    """The conversations of each caller in one store; the local caller has those of the command line, and the given indexes."""

    def __init__(self, local: Repository, scope: IndexScope) -> None:
        self._local = local
        local.scope = self._scope = scope
        self._lock = Lock()
        self._others: dict[str, Repository] = {}

    def find(self, key: str) -> str | None:
        """Return the name of the caller of a key, with its current limits; None for an unknown key."""
        found = self._local.store.callers.find(key)
        if found is None:
            return None
        self._limit(self.of(found.name), found)
        return found.name

    def _limit(self, here: Repository, caller: Caller) -> None:
        here.quota = Quota(here.store, caller.max_cost, caller.rate)
        here.scope = self._scope_of(caller.name, caller.principals)

    def _scope_of(self, name: str, principals: Iterable[str]) -> IndexScope:
        return replace(self._scope, owner=name, served=self._scope.served or (), principals=frozenset(principals))

    def of(self, caller: str) -> Repository:
        """Return the conversations of a caller."""
        if caller == LOCAL_CALLER:
            return self._local
        with self._lock:
            if caller not in self._others:
                made = Repository(self._local.store.owned_by(caller))
                made.place, made.settings = self._local.place, self._local.settings
                made.scope = self._scope_of(caller, ())
                if (
                    known := self._local.store.callers.get(caller)
                ) is not None:  # a caller whose turn is resumed without its key
                    self._limit(made, known)
                self._others[caller] = made
            return self._others[caller]
