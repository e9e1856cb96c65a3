"""User profiles, in the store and as YAML, with values learned from feedback."""

from collections.abc import Mapping
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from taiwa.flows.ask.types import (
    ANONYMOUS_USER,
    AskTolerance,
    Feedback,
    Thresholds,
    UserProfile,
    learn_from_feedback,
)
from taiwa.kernel.attachments import read_regular_text
from taiwa.kernel.errors import ConfigError, CorruptError, InputError, file_errors
from taiwa.kernel.serialization import Json, record, restore
from taiwa.kernel.wording import Wording
from taiwa.store import Store
from taiwa.store.nodes import decoding
from taiwa.yamlfile import Keys, read_settings, set_setting

LANGUAGES = ("ja", "zh", "en")

BOUNDS: Mapping[str, tuple[float, float]] = {
    "unclear": (1, 5), "question": (0, 5), "consultation": (0, 5), "documented": (0, 5), "ask_person": (0, 5),
    "eagerness": (0, 1), "max_questions": (0, 10), "weak_evidence": (0, 1), "strong_evidence": (0, 1),
}  # fmt: skip

MAX_FACTS = 50

MAX_FACT_CHARS = 500


def load_profile(path: Path) -> UserProfile:
    """Read the profile in a file.

    Raises:
        ConfigError: the file cannot be read, or a value is invalid.
    """
    with file_errors(f"read {path}"):
        text = read_regular_text(path)
    return read_profile(text, str(path))


def read_profile(text: str, where: str) -> UserProfile:
    """Read a profile; `where` names it in errors.

    Raises:
        ConfigError: the text is not YAML, or a value is invalid.
    """
    profile = ANONYMOUS_USER
    for keys, leaf in read_settings(text, where).items():
        try:
            profile = set_profile_value(profile, ".".join(keys), leaf.text)
        except InputError as error:
            raise ConfigError(f"{where}:{leaf.at.line}: {error.message}") from None
    return profile


def set_profile_value(profile: UserProfile, key: str, text: str) -> UserProfile:
    """Set one value: `office` (a fact), `language`, `eagerness` or `thresholds.eagerness`; an empty text removes a fact.

    >>> set_profile_value(ANONYMOUS_USER, "office", "Osaka").facts
    (('office', 'Osaka'),)

    Raises:
        InputError: the key or the value is invalid.
    """
    key, text = key.strip(), text.strip()
    name = key.removeprefix("thresholds.")
    if name in BOUNDS:
        return replace(profile, thresholds=_threshold(profile.thresholds, name, text))
    if "." in key or not key or not key.isprintable():
        raise InputError(f"invalid key {key!r}; use name, language, a fact, or one of {', '.join(BOUNDS)}")
    if key == "name":
        return replace(profile, name=text)
    if key == "language":
        if text and text not in LANGUAGES:
            raise InputError(f"language is one of {', '.join(LANGUAGES)}, not {text[:20]!r}")
        return replace(profile, language=text)
    if len(text) > MAX_FACT_CHARS:
        raise InputError(Wording("{name} has {n} characters; a fact has at most {most}", name=key, n=f"{len(text):,}", most=MAX_FACT_CHARS))  # fmt: skip
    facts = {**dict(profile.facts), key: text}
    if not text:
        del facts[key]
    if len(facts) > MAX_FACTS:
        raise InputError(Wording("a profile has at most {most} facts", most=MAX_FACTS))
    return replace(profile, facts=tuple(facts.items()))


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


def write_profile(profile: UserProfile) -> str:
    """Format a profile as YAML, without default values."""
    leaves: dict[Keys, str] = {("name",): profile.name, ("language",): profile.language}
    leaves |= {(key,): text for key, text in profile.facts}
    standard = Thresholds()
    leaves |= {
        ("thresholds", name): f"{getattr(profile.thresholds, name):g}"
        for name in BOUNDS
        if getattr(profile.thresholds, name) != getattr(standard, name)
    }
    text = ""
    for keys, leaf in leaves.items():
        if leaf:
            text = set_setting(text, keys, leaf, "the profile")
    return text


T = TypeVar("T")


class UserProfiles:
    """The user profiles of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, name: str) -> UserProfile:
        """Return a profile with the values learned from feedback.

        Raises:
            InputError: the user does not exist.
        """
        stored = self._store.users.get(name)
        if stored is None:
            raise self._store.users.unknown(name)
        with decoding("user profile"):
            profile = learn_from_feedback(_restore(stored, UserProfile), self.feedback(name))
            texts = (profile.name, profile.language, *(part for key, text in profile.facts for part in (key, text)))
            if not all(isinstance(cast("object", text), str) for text in texts):
                raise TypeError(name)
            tuple(map(float, astuple(profile.thresholds)))
        return profile

    def has(self, name: str) -> bool:
        """Return whether a user exists."""
        return self._store.users.get(name) is not None

    def put(self, profile: UserProfile) -> None:
        """Store a profile, without learned values, which follow from the feedback.

        Raises:
            InputError: the name is invalid.
        """
        self._store.users.put(profile.name, record(replace(profile, tolerance=AskTolerance())))

    def add_feedback(self, name: str, feedback: Feedback) -> UserProfile:
        """Store feedback on an act, and return the updated profile.

        Raises:
            InputError: the user does not exist.
        """
        self._store.users.add_feedback(name, record(feedback))
        return self.get(name)

    def feedback(self, name: str) -> tuple[Feedback, ...]:
        """Return the feedback of a user, oldest first."""
        return tuple(_restore(each, Feedback) for each in self._store.users.feedback(name))


def _restore(data: Json, kind: type[T]) -> T:
    restored = cast("object", restore(data))
    if not isinstance(restored, kind):
        raise CorruptError(f"the store holds a {type(restored).__name__} where a {kind.__name__} was stored")
    return restored
