"""What guests call the dishes, sizes and wishes of the menu, and which of them a text names."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, TypeAlias

from taiwa.models.builtin.copy_constraint import find_numbers
from taiwa.models.builtin.tokenizer import builtin_tokens

Meaning: TypeAlias = tuple[str, str]
"""A kind (`dishes`, `sizes`, `options`) and a name."""

LATIN = re.compile(r"[a-z0-9\u00df-\u00ff%'&]+")
FOREIGN = re.compile(r"[^\x00-\u024f]")
LONG_ENOUGH = 4
"""A slip in a shorter word may make another word of it."""
MOST_WORDS = 6
SPOKEN: Final = {
    word: number
    for number, word in enumerate("ひとつ|ふたつ|みっつ|よっつ|いつつ|むっつ|ななつ|やっつ|ここのつ".split("|"), 1)
}
NO_COUNT = re.compile(
    r"\bhalf\b(?! (?:a )?dozen)|[a-z0-9]+ ?(?:%|per ?cent)|\b(?:number|line|item) [0-9]+|[0-9]番|[0-9一二三四五六七八]つ目|第[一-九]"
    r"|\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|quarter|single|double|triple)\b|半分|分の"
)
"""Numbers that count nothing."""


def shown(kind: str) -> Mapping[str, str]:
    """Return what the desk calls each name of a kind in Japanese."""
    return MappingProxyType({name: entry[0] for name, entry in _wordings()[kind].items()})


@lru_cache(1)
def sentences() -> tuple[str, ...]:
    """Return the sentences of the desk that name nothing, the longest first."""
    return tuple(sorted((each for entry in _wordings()["answers"].values() for each in entry), key=len, reverse=True))


@lru_cache(1)
def drinks() -> frozenset[str]:
    """Return the dishes that come in cups and glasses."""
    return frozenset(_wordings()["drinks"]["all"])


@lru_cache(1)
def fillers() -> tuple[frozenset[str], frozenset[str]]:
    """Return what guests say around wishes and changes: words of English, runs of Japanese."""
    return frozenset(_wordings()["fillers"]["en"]), frozenset(_wordings()["fillers"]["ja"])


@lru_cache(1)
def foreign_numbers() -> Mapping[str, int]:
    """Return the numbers that some languages write in words."""
    return {form: int(number) for number, (_, *said) in _wordings()["numbers"].items() for form in said}


@lru_cache(1)
def dones() -> tuple[str, ...]:
    """Return the ways to say that this is all."""
    return tuple(each for code in ("en", "ja") for each in _wordings()["done"][code])


@lru_cache(64)
def find_meanings(text: str) -> tuple[frozenset[Meaning], ...]:
    """Return for each wording in a text what it may mean; of two that overlap, the longer one.

    >>> [sorted(each) for each in find_meanings("two lattes with almnod milk")]
    [[('dishes', 'latte')], [('options', 'almond milk')]]
    """
    return tuple(_latin_meanings(text.lower())) + tuple(_foreign_meanings(text.lower()))


@lru_cache(64)
def find_counts(text: str) -> frozenset[int]:
    """Return the whole numbers of a text that may be quantities.

    >>> sorted(find_counts("a dozen lattes and ふたつ"))
    [1, 2, 12]
    """
    text = NO_COUNT.sub(" ", text.lower())
    numbers = {int(each) for each in find_numbers(text) if each.isdigit() and len(each) < 3}
    numbers |= {number for word, number in SPOKEN.items() if word in text}
    words = set(LATIN.findall(text))
    return frozenset(
        numbers | {int(each) for each, (_, *said) in _wordings()["numbers"].items() if words & set(said)}
    ) - {0}


@lru_cache(1)
def _wordings() -> Mapping[str, Mapping[str, list[str]]]:
    content = (files("taiwa.models.builtin") / "data" / "wordings.json").read_text("utf-8")
    found: Mapping[str, Mapping[str, list[str]]] = json.loads(content)
    return found


@lru_cache(1)
def forms() -> tuple[Mapping[tuple[str, ...], frozenset[Meaning]], Mapping[str, frozenset[Meaning]]]:
    """Return the wordings in Latin letters by their words, and the others."""
    latin: dict[tuple[str, ...], frozenset[Meaning]] = {}
    foreign: dict[str, frozenset[Meaning]] = {}
    for kind in ("dishes", "sizes", "options"):
        for name, (_, *said) in _wordings()[kind].items():
            for form in map(str.lower, said):
                meaning = frozenset(((kind, name),))
                if FOREIGN.search(form):
                    foreign[form] = foreign.get(form, frozenset()) | meaning
                else:
                    words = tuple(LATIN.findall(form))
                    latin[words] = latin.get(words, frozenset()) | meaning
    return latin, foreign


@lru_cache(1)
def _known_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of wordings, and those that are no slip of one: pieces of the vocabulary."""
    words = frozenset(word for form in forms()[0] for word in form) | fillers()[0]
    pieces = (piece.decode("utf-8", "replace").strip().lower() for piece in builtin_tokens().vocabulary.tokens)
    return words, words.union(pieces, _wordings()["words"]["en"])


def _latin_meanings(text: str) -> Iterator[frozenset[Meaning]]:
    latin = forms()[0]
    words = [corrected(word) for word in LATIN.findall(text)]
    at = 0
    while at < len(words):
        for end in range(min(at + MOST_WORDS, len(words)), at, -1):
            if found := latin.get(tuple(words[at:end])):
                yield found
                at = end
                break
        else:
            at += 1


def _foreign_meanings(text: str) -> Iterator[frozenset[Meaning]]:
    foreign = forms()[1]
    longest = max(map(len, foreign))
    at = 0
    while at < len(text):
        for end in range(min(at + longest, len(text)), at, -1):
            if found := foreign.get(text[at:end]):
                yield found
                at = end
                break
        else:
            at += 1


@lru_cache(4_096)
def corrected(word: str) -> str:
    """Return the word of a wording that a word is a slip of, if it is one."""
    words, known = _known_words()
    if word in known or len(word) < LONG_ENOUGH:
        return word
    near = [each for each in words if len(each) >= LONG_ENOUGH and _differ_by_a_slip(word, each)]
    return min(near, default=word)


def _differ_by_a_slip(one: str, other: str) -> bool:
    """Whether a letter too many, too few, another one, or two that are swapped make one word of the other."""
    if len(one) > len(other):
        one, other = other, one
    start = 0
    while start < len(one) and one[start] == other[start]:
        start += 1
    if len(other) - len(one) == 1:
        return one[start:] == other[start + 1 :]
    if len(one) != len(other):
        return False
    rest, wanted = one[start:], other[start:]
    return rest[1:] == wanted[1:] or (rest[1::-1] + rest[2:] == wanted and len(rest) > 1)
