"""The check of the first line of a solution, which names the substances of the question: `Iron pyrite is FeS2, sulfur is S.`

The network learned about as many names as the table has, and now and then writes a wrong one; the table is right or silent.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations

from taiwa.tools.compound_names import WORD, find_names, named, nearest_name

__all__ = ["check_names", "checked_names"]

NAMED = re.compile(r"(\S(?:(?! is ).){0,80}) is ([A-Z(\[][^\s,]{0,60}?)(?:, |\.\Z)")
LINE = re.compile(rf"(?:{NAMED.pattern})+\Z")
UNKNOWN = re.compile(r"I do not know the formula of (.{1,100}?)\.\Z")
MOST_WORDS = 5
STATE = re.compile(
    r"^(?:liquid|solid|pure|gaseous|molten|dry|powdered|metallic)\s+|\s+(?:gas|vapou?r|powder|metal|crystals|dust|wire|filings)$",
    re.IGNORECASE,
)
"""Words around a name that change no formula."""
ALIKE, FOREIGN = 0.8, 0.6
"""How like a name that the network wrote is to what it read, at least; and below what it read something else."""
PLAIN = re.compile(
    r"[\d./%]+|a|an|and|are|by|do|does|for|from|g|grams?|how|in|is|many|mass|mols?|moles?|of|one|percent|some|take|the|to|weight|what|with",
    re.IGNORECASE,
)
"""Words that no unknown name begins or ends with."""


def check_names(question: str, line: str) -> str:
    """Return the first line of a solution with the names and formulas of the table; any other line as it is.

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

    names: tuple[str, ...]
    spans: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> "_Question":
        return cls(find_names(text), tuple(_spans(text)))

    def line(self, written: Sequence[str]) -> str:
        """Return the line for the names that the network wrote; one that it wrote twice or made up stands for one that it left out."""
        found = {each: self.name_of(each) for each in written}
        left = [name for name in self.names if name not in found.values()]
        names: list[str] = []
        for each in written:
            name = found[each]
            if (name in names or (name is None and _likeness(self._nearest(each), each) < FOREIGN)) and left:
                name = left.pop(0)
            if name is None:
                return self.refusal(each)
            names += [name] if name not in names else []
        text = ", ".join(f"{name} is {named()[name.lower()][1]}" for name in names)
        return f"{text[0].upper()}{text[1:]}."

    def refusal(self, written: str) -> str:
        """Return the line that says that a name is unknown, as the question has it."""
        return f"I do not know the formula of {self._nearest(written)}."

    def name_of(self, written: str) -> str | None:
        """Return the name that a written one stands for; None if the table lacks it."""
        if any(written.lower() == name.lower() for name in self.names):
            return named()[written.lower()][0]
        nearest = self._nearest(written)
        if written.lower() in named() and nearest.lower() not in named() and _likeness(nearest, written) >= ALIKE:
            return named()[written.lower()][0]
        return nearest_name(STATE.sub("", nearest))

    def _nearest(self, written: str) -> str:
        return max(self.spans, key=lambda span: _likeness(span, written), default=written)


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.lower(), other.lower()).ratio()


def _spans(text: str) -> Iterator[str]:
    """Yield every run of a few words of a text that may be a name."""
    words = list(WORD.finditer(text))
    for first, last in combinations(range(len(words) + 1), 2):
        if last - first <= MOST_WORDS and not any(PLAIN.fullmatch(words[at][0]) for at in (first, last - 1)):
            yield text[words[first].start() : words[last - 1].end()]
