"""The check of the first line of a solution, which names the substances of the question: `Iron pyrite is FeS2, sulfur is S.`

The network was trained on as many names as the table has, and sometimes writes a wrong formula; the table is right or has no
entry.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import combinations

from taiwa.tools.compound_names import WORD, find_names, named, nearest_name

__all__ = ["NAMED", "check_names", "checked_names", "is_meant", "likeness"]

NAMED = re.compile(r"(\S(?:(?! is ).){0,80}) is ([A-Z(\[][^\s,]{0,60}?)(?:, |\.\Z)")
LINE = re.compile(rf"(?:{NAMED.pattern})+\Z")
UNKNOWN = re.compile(r"I do not know the formula of (.{1,100}?)\.\Z")
MOST_WORDS = 5
STATE = re.compile(
    r"^(?:aqueous|liquid|solid|pure|gaseous|molten|dry|powdered|metallic)\s+|\s+(?:gas|vapou?r|powder|metal|crystals|dust|wire|filings)$",
    re.IGNORECASE,
)
"""Words around a name that do not change the formula."""
ALIKE, FOREIGN = 0.8, 0.6
"""Minimum similarity of a written name to a name in the question, and the similarity below which they are different names."""
SHARE = re.compile(
    r"%|\bp(?!r)\w{0,4}c\w{0,3}t|per cent|share|part|fraction|portion|content|composition|made of|consist|atom|solution|dissolve|molarity|concentration",
    re.IGNORECASE,
)
"""Words of questions that name an element that is not one of their substances."""
SWAPPED = re.compile(r"[A-Za-z]{6,}")
LEADING = re.compile(r"\blead to\b", re.IGNORECASE)
PLAIN = re.compile(
    r"[\d./%]+|a|an|and|are|by|do|does|for|from|g|grams?|how|in|is|many|mass|mols?|moles?|much|of|one|percent|some|take|the|to|weight|what|with",
    re.IGNORECASE,
)
"""Words with which an unknown name never begins or ends."""


def check_names(question: str, line: str) -> str:
    """Return the first line of a solution with names and formulas corrected by the table; any other line unchanged.

    >>> check_names("What is the molar mass of glutamine?", "Gzutamine is C5H8NO.")
    'Glutamine is C5H10N2O3.'
    >>> check_names("What is the molar mass of blorbine?", "Bornine is C10H16.")
    'I do not know the formula of blorbine.'
    """
    if not question.isascii():  # the table has English names
        return line
    asked = _Question.read(question)
    line = line.strip()
    if unknown := UNKNOWN.fullmatch(line):
        if any(f" {unknown[1].lower()}" in name.lower() for name in asked.names):
            return asked.line(asked.names)
        name = asked.name_of(unknown[1])
        return asked.refusal(unknown[1]) if name is None or {*asked.names} - {name} else asked.line([name])
    return asked.line([found[1] for found in NAMED.finditer(line)]) if LINE.fullmatch(line) else line


def checked_names(question: str, solution: str) -> str:
    """Return the first line of a solution if it names substances as the table does, else an empty text."""
    line = solution.partition("\n")[0]
    return line if LINE.fullmatch(line) and question.isascii() and check_names(question, line) == line else ""


@dataclass(frozen=True, slots=True)
class _Question:
    """The names of the table in a question, as the table spells them, and its runs of a few words."""

    text: str
    names: tuple[str, ...]
    spans: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> "_Question":
        return cls(text, find_names(text), tuple(_spans(text)))

    def line(self, written: Sequence[str]) -> str:
        """Return the line for the names that the network wrote; a repeated or invented name is replaced by an omitted one."""
        found = {each: self.name_of(each) for each in written}
        formulas = {_formula(name) for name in found.values() if name is not None}
        left = [name for name in self.names if _formula(name) not in formulas]
        names: list[str] = []
        for each in written:
            name = found[each]
            if (name in names or (name is None and likeness(self._nearest(each), each) < FOREIGN)) and left:
                name = left.pop(0)
            if name is None:
                return self.refusal(each)
            names += [name] if _formula(name) not in map(_formula, names) else []
            if (
                salt := re.search(rf"\b{re.escape(name)} \w+(?:ide|ate|ite)\b", self.text, re.IGNORECASE)
            ) and self.name_of(salt[0]) is None:
                return self.refusal(salt[0])
        if not SHARE.search(self.text):
            names = self._completed(names)
        text = ", ".join(f"{name} is {_formula(name)}" for name in names)
        return f"{text[0].upper()}{text[1:]}."

    def _completed(self, names: list[str]) -> list[str]:
        """Return the names together with the other names of the question, in the order of the question."""
        before = ""
        text = SWAPPED.sub(_in_order, LEADING.sub(" ", self.text))
        for name in find_names(text):
            is_part = any(f" {name.lower()} " in f" {other.lower()} " for other in names)
            is_word = any(spelt in text for spelt in (name, name.capitalize(), name.title(), name.upper()))
            if _formula(name) not in map(_formula, names) and is_word and not is_part:
                names.insert(names.index(before) + 1 if before in names else 0, name)
            before = name
        return names

    def refusal(self, written: str) -> str:
        """Return the line that says that a name is unknown, spelled as in the question."""
        return f"I do not know the formula of {self._nearest(written)}."

    def name_of(self, written: str) -> str | None:
        """Return the table's name for a written one; None if the table has no such name."""
        if any(written.lower() == name.lower() for name in self.names):
            return named()[written.lower()][0]
        nearest = self._nearest(written)
        if whole := self._whole(written) or self._whole(nearest):
            return whole
        if written.lower() in named() and nearest.lower() not in named() and is_meant(nearest, written):
            return named()[written.lower()][0]
        return nearest_name(STATE.sub("", nearest))

    def _whole(self, part: str) -> str:
        """Return the name that contains a written part, unless the part also occurs alone in the question; "" if there is
        none.
        """
        if any(is_meant(span, part) for span in self.spans if span.lower() != part.lower()):
            return ""
        plain = {name: STATE.sub("", name).lower() for name in self.names}
        return next(
            (name for name in plain if f" {part.lower()} " in f" {plain[name]} " and plain[name] != part.lower()), ""
        )

    def _nearest(self, written: str) -> str:
        return max(self.spans, key=lambda span: likeness(span, written), default=written)


def _in_order(word: re.Match[str]) -> str:
    """Return the name that is an anagram of a word with the same first letter; else the word."""
    letters = word[0][0].lower(), "".join(sorted(word[0].lower()))
    return word[0] if word[0].lower() in named() else _by_letters().get(letters, word[0])


@cache
def _by_letters() -> Mapping[tuple[str, str], str]:
    return {(name[0], "".join(sorted(name))): name for name in named()}


def _formula(name: str) -> str:
    return named()[name.lower()][1]


def is_meant(one: str, other: str) -> bool:
    """Return true if a text is a misspelt name: similar, or with the letters after the first in another order."""
    return likeness(one, other) >= ALIKE or (one[0].lower(), sorted(one.lower())) == (
        other[0].lower(),
        sorted(other.lower()),
    )


def likeness(one: str, other: str) -> float:
    """Return the similarity of two texts, 0 to 1."""
    return SequenceMatcher(None, one.lower(), other.lower()).ratio()


def _spans(text: str) -> Iterator[str]:
    """Yield every run of a few words in a text that may be a name."""
    words = list(WORD.finditer(text))
    for first, last in combinations(range(len(words) + 1), 2):
        if last - first <= MOST_WORDS and not any(PLAIN.fullmatch(words[at][0]) for at in (first, last - 1)):
            yield text[words[first].start() : words[last - 1].end()]
