"""User profiles in the store and as YAML; what feedback teaches."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast
from unicodedata import normalize

from taiwa.ask.types import (
    ANONYMOUS_USER,
    AskTolerance,
    EarlierTurn,
    Feedback,
    SearchEarlierSessions,
    Thresholds,
    UserProfile,
    learn_from_feedback,
)
from taiwa.kernel.effects import Effect
from taiwa.kernel.errors import ConfigError, CorruptError, InputError
from taiwa.kernel.records import Json, record, restore
from taiwa.kernel.runtime import Handler
from taiwa.store import Hit, Store
from taiwa.yamlfile import Keys, read_settings, set_setting

__all__ = ["People", "changed", "load_profile", "read_profile", "write_profile"]


LANGUAGES = ("ja", "zh", "en")

BOUNDS: Mapping[str, tuple[float, float]] = {
    "unclear": (1, 5), "question": (0, 5), "consultation": (0, 5), "documented": (0, 5), "ask_person": (0, 5),
    "eagerness": (0, 1), "max_questions": (0, 10), "weak_evidence": (0, 1), "strong_evidence": (0, 1),
}  # fmt: skip

MOST_FACTS = 50

LONGEST_FACT = 500


def load_profile(path: Path) -> UserProfile:
    """Read the profile in a file.

    Raises:
        ConfigError: it cannot be read, or says something that cannot be.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 at byte {error.start:,}") from None
    return read_profile(text, str(path))


def read_profile(text: str, where: str) -> UserProfile:
    """Read a profile; `where` names it in errors.

    Raises:
        ConfigError: it is no YAML, or says something that cannot be.
    """
    person = ANONYMOUS_USER
    for keys, leaf in read_settings(text, where).items():
        try:
            person = changed(person, ".".join(keys), leaf.text)
        except InputError as error:
            raise ConfigError(f"{where}:{leaf.at.line}: {error.message}") from None
    return person


def changed(person: UserProfile, key: str, text: str) -> UserProfile:
    """Change one thing: `office` (a fact), `language`, `eagerness` or `thresholds.eagerness`; an empty text takes a fact out.

    >>> changed(ANONYMOUS_USER, "office", "Osaka").facts
    (('office', 'Osaka'),)

    Raises:
        InputError: it cannot be that.
    """
    key, text = key.strip(), text.strip()
    name = key.removeprefix("thresholds.")
    if name in BOUNDS:
        return replace(person, thresholds=_threshold(person.thresholds, name, text))
    if "." in key or not key or not key.isprintable():
        raise InputError(f"{key!r} is nothing of a person; thresholds are {', '.join(BOUNDS)}")
    if key == "name":
        return replace(person, name=text)
    if key == "language":
        if text and text not in LANGUAGES:
            raise InputError(f"language is one of {', '.join(LANGUAGES)}, not {text[:20]!r}")
        return replace(person, language=text)
    if len(text) > LONGEST_FACT:
        raise InputError(f"{key} has {len(text):,} characters; a fact has at most {LONGEST_FACT}")
    facts = {**dict(person.facts), key: text}
    if not text:
        del facts[key]
    if len(facts) > MOST_FACTS:
        raise InputError(f"a person has at most {MOST_FACTS} facts")
    return replace(person, facts=tuple(facts.items()))


def _threshold(thresholds: Thresholds, name: str, text: str) -> Thresholds:
    low, high = BOUNDS[name]
    if not text:
        text = f"{getattr(Thresholds(), name):g}"
    try:
        number = float(text)
    except ValueError:
        number = low - 1
    whole = name == "max_questions"
    if not low <= number <= high or (whole and not number.is_integer()):
        raise InputError(f"{name} is a {'whole ' if whole else ''}number from {low:g} to {high:g}, not {text[:20]!r}")
    moved: dict[str, Any] = {name: int(number) if whole else number}
    return replace(thresholds, **moved)


def write_profile(person: UserProfile) -> str:
    """Write a profile as YAML; what is as it is for everybody is left out."""
    leaves: dict[Keys, str] = {("name",): person.name, ("language",): person.language}
    leaves |= {(key,): text for key, text in person.facts}
    standard = Thresholds()
    leaves |= {
        ("thresholds", name): f"{getattr(person.thresholds, name):g}"
        for name in BOUNDS
        if getattr(person.thresholds, name) != getattr(standard, name)
    }
    text = ""
    for keys, leaf in leaves.items():
        if leaf:
            text = set_setting(text, keys, leaf, "the profile")
    return text


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

    def get(self, name: str) -> UserProfile:
        """Return a person as their feedback has made them.

        Raises:
            InputError: nobody has that name.
        """
        kept = self._store.users.get(name)
        if kept is None:
            known = ", ".join(each.name for each in self._store.users.list()[:5])
            raise InputError(f"user {name!r} not found{f'; users: {known}' if known else ''}")
        return learn_from_feedback(_read(kept, UserProfile), self.feedback(name))

    def has(self, name: str) -> bool:
        """Say whether somebody has that name."""
        return self._store.users.get(name) is not None

    def put(self, person: UserProfile) -> None:
        """Keep a person; what was learnt is not kept, for it follows from the feedback.

        Raises:
            InputError: the name cannot be one.
        """
        self._store.users.put(person.name, record(replace(person, tolerance=AskTolerance())))

    def tell(self, name: str, feedback: Feedback) -> UserProfile:
        """Keep what a person said of an act, and return them as that has made them.

        Raises:
            InputError: nobody has that name.
        """
        self._store.users.add_feedback(name, record(feedback))
        return self.get(name)

    def feedback(self, name: str) -> tuple[Feedback, ...]:
        """Return what a person said of acts, oldest first."""
        return tuple(_read(each, Feedback) for each in self._store.users.feedback(name))

    def recall(self, effect: SearchEarlierSessions) -> tuple[EarlierTurn, ...]:
        """Find what a person said in their conversations that shares words with a text: most words first, then the newest."""
        sessions = frozenset(self._store.users.sessions(effect.user))
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
        found: list[EarlierTurn] = []
        for hit in best:
            words = " ".join((self._store.nodes.get(hit.hash).user or "").split())
            if words and words != " ".join(effect.text.split()):
                session = next(name for name in hit.refs if name in sessions)
                found.append(EarlierTurn(session, hit.hash, words[:SHOWN]))
        return tuple(found[: max(effect.limit, 0)])

    @property
    def handlers(self) -> Mapping[type[Effect[Any]], Handler]:
        """What a runtime is given, so that programs can recall."""
        return {SearchEarlierSessions: self.recall}


def _terms(text: str) -> list[str]:
    """The words of a text that say most: the longest, without those that every text has."""
    found = dict.fromkeys(WORD.findall(normalize("NFKC", text).casefold()))
    return sorted((word for word in found if word not in EMPTY), key=lambda word: -len(word.encode()))[:MOST_WORDS]


def _read(data: Json, kind: type[T]) -> T:
    found = cast("object", restore(data))
    if not isinstance(found, kind):
        raise CorruptError(f"the store holds a {type(found).__name__} where a {kind.__name__} was kept")
    return found
