"""The conversations of each caller in one store."""

from threading import Lock

from taiwa.server.access import LOCAL_CALLER
from taiwa.sessions.repository import Repository


class Repositories:
    """The conversations of each caller in one store; the local caller has those of the command line."""

    def __init__(self, local: Repository) -> None:
        self._local = local
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
                self._others[caller] = made
            return self._others[caller]
