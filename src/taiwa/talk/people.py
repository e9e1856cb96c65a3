"""Persons as programs and people use them: kept in a store, taught by feedback, with what they said before."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast
from unicodedata import normalize

from taiwa.flows.person import Feedback, Patience, Person, learn
from taiwa.flows.recall import Recall, Recalled
from taiwa.kernel.effects import Effect
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.records import Json, record, revive
from taiwa.kernel.runtime import Handler
from taiwa.store import Hit, Store

__all__ = ["People"]

T = TypeVar("T")

WORD = re.compile(
    r"[^\W\d_\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]{3,}|\d{2,}|[\u30a1-\u30fa\u30fc]{2,}|[\u3400-\u9fff\uf900-\ufaff]{2,}|[\uac00-\ud7a3]{2,}"
)
EMPTY = frozenset(
    """the and for not but are was were that this with from have has had you your they them our about there here what which who whom
    how when where why would could should can will want need tell know please does did into any some""".split()
)
MOST_WORDS = 8
LOOKED_AT = 200
SHOWN = 240


class People:
    """The persons of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, name: str) -> Person:
        """Return a person as their feedback has made them.

        Raises:
            InputError: nobody has that name.
        """
        kept = self._store.users.get(name)
        if kept is None:
            known = ", ".join(each.name for each in self._store.users.list()[:5])
            raise InputError(f"user {name!r} not found{f'; users: {known}' if known else ''}")
        return learn(_read(kept, Person), self.feedback(name))

    def has(self, name: str) -> bool:
        """Say whether somebody has that name."""
        return self._store.users.get(name) is not None

    def put(self, person: Person) -> None:
        """Keep a person; what was learnt is not kept, for it follows from the feedback.

        Raises:
            InputError: the name cannot be one.
        """
        self._store.users.put(person.name, record(replace(person, patience=Patience())))

    def tell(self, name: str, feedback: Feedback) -> Person:
        """Keep what a person said of an act, and return them as that has made them.

        Raises:
            InputError: nobody has that name.
        """
        self._store.users.add_feedback(name, record(feedback))
        return self.get(name)

    def feedback(self, name: str) -> tuple[Feedback, ...]:
        """Return what a person said of acts, oldest first."""
        return tuple(_read(each, Feedback) for each in self._store.users.feedback(name))

    def recall(self, effect: Recall) -> tuple[Recalled, ...]:
        """Find what a person said in their conversations that shares words with a text: most words first, then the newest."""
        sessions = frozenset(self._store.users.sessions(effect.person))
        terms = _terms(effect.text)
        if not sessions or not terms:
            return ()
        shared: Counter[str] = Counter()
        hits: dict[str, Hit] = {}
        for term in terms:
            for hit in self._store.search(term, LOOKED_AT):
                if sessions.intersection(hit.refs):
                    shared[hit.hash] += 1
                    hits.setdefault(hit.hash, hit)
        best = sorted(hits.values(), key=lambda hit: (-shared[hit.hash], -hit.at_us))
        found: list[Recalled] = []
        for hit in best:
            words = " ".join((self._store.nodes.get(hit.hash).user or "").split())
            if words and words != " ".join(effect.text.split()):
                session = next(name for name in hit.refs if name in sessions)
                found.append(Recalled(session, hit.hash, words[:SHOWN]))
        return tuple(found[: max(effect.limit, 0)])

    @property
    def handlers(self) -> Mapping[type[Effect[Any]], Handler]:
        """What a runtime is given, so that programs can recall."""
        return {Recall: self.recall}


def _terms(text: str) -> list[str]:
    """The words of a text that say most: the longest, without those that every text has."""
    found = dict.fromkeys(WORD.findall(normalize("NFKC", text).casefold()))
    return sorted((word for word in found if word not in EMPTY), key=lambda word: -len(word.encode()))[:MOST_WORDS]


def _read(data: Json, kind: type[T]) -> T:
    found = cast("object", revive(data))
    if not isinstance(found, kind):
        raise CorruptError(f"the store holds a {type(found).__name__} where a {kind.__name__} was kept")
    return found
