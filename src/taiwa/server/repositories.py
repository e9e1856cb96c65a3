"""The conversations of each caller in one store."""

from dataclasses import replace
from threading import Lock

from taiwa.retrieval.scope import IndexScope
from taiwa.server.access import LOCAL_CALLER
from taiwa.sessions.repository import Repository


class Repositories:
    """The conversations of each caller in one store; the local caller has those of the command line, and the given indexes."""

    def __init__(self, local: Repository, scope: IndexScope) -> None:
        self._local = local
        local.scope = self._scope = scope
        self._lock = Lock()
        self._others: dict[str, Repository] = {}

    def of(self, caller: str) -> Repository:
        """Return the conversations of a caller."""
        if caller == LOCAL_CALLER:
            return self._local
        with self._lock:
            if caller not in self._others:
                made = Repository(self._local.store.owned_by(caller))
                made.place, made.settings = self._local.place, self._local.settings
                made.scope = replace(self._scope, owner=caller, served=self._scope.served or ())
                self._others[caller] = made
            return self._others[caller]
