"""The conversations of each caller in one store."""

from collections.abc import Iterable
from dataclasses import replace
from threading import Lock

from taiwa.retrieval.index import IndexScope
from taiwa.server.access import LOCAL_CALLER
from taiwa.sessions.quota import Quota
from taiwa.sessions.repository import Repository
from taiwa.store.served import Caller


class Repositories:
    """The conversations of each caller in one store; the local caller has those of the command line, and the given indexes."""

    def __init__(self, local: Repository, scope: IndexScope) -> None:
        self._local = local
        local.scope = self._scope = scope
        self._lock = Lock()
        self._others: dict[str, Repository] = {}

    def find(self, key: str) -> str | None:
        """Return the name of the caller who has a key now, with its present limits; None for one that nobody has."""
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
                ) is not None:  # whose turn is resumed without its key
                    self._limit(made, known)
                self._others[caller] = made
            return self._others[caller]
