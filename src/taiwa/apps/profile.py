"""A person as a small YAML file, and as `KEY=VALUE` words: read with line numbers, written back as it reads.

    name: ann
    language: ja
    department: Sales
    office: Osaka
    thresholds:
      asking: 0.7

Keys that are not known are facts about the person.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from taiwa.flows.person import NOBODY, Person, Thresholds
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.yamlfile import Keys, read_settings, set_setting

__all__ = ["changed", "load_profile", "read_profile", "write_profile"]

LANGUAGES = ("ja", "zh", "en")
BOUNDS: Mapping[str, tuple[float, float]] = {
    "unclear": (1, 5), "question": (0, 5), "consultation": (0, 5), "documented": (0, 5), "person": (0, 5),
    "asking": (0, 1), "rounds": (0, 10), "weak": (0, 1), "strong": (0, 1),
}  # fmt: skip
MOST_FACTS = 50
LONGEST_FACT = 500


def load_profile(path: Path) -> Person:
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


def read_profile(text: str, where: str) -> Person:
    """Read a profile; `where` names it in errors.

    Raises:
        ConfigError: it is no YAML, or says something that cannot be.
    """
    person = NOBODY
    for keys, leaf in read_settings(text, where).items():
        try:
            person = changed(person, ".".join(keys), leaf.text)
        except InputError as error:
            raise ConfigError(f"{where}:{leaf.at.line}: {error.message}") from None
    return person


def changed(person: Person, key: str, text: str) -> Person:
    """Change one thing: `office` (a fact), `language`, `asking` or `thresholds.asking`; an empty text takes a fact out.

    >>> changed(NOBODY, "office", "Osaka").facts
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
    whole = name == "rounds"
    if not low <= number <= high or (whole and not number.is_integer()):
        raise InputError(f"{name} is a {'whole ' if whole else ''}number from {low:g} to {high:g}, not {text[:20]!r}")
    moved: dict[str, Any] = {name: int(number) if whole else number}
    return replace(thresholds, **moved)


def write_profile(person: Person) -> str:
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
