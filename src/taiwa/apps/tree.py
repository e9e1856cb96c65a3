"""YAML as far as an app file needs it: tables, lists and scalars, each with its place.

Read from PyYAML's events rather than its nodes, because events say where everything stands, need no recursion before the depth
is known, and show anchors, aliases and tags before anything is made of them: there are none here, so no bomb and no object.
Plain words mean what YAML 1.2 says: `yes`, `on`, `12:30` and `2024-01-01` are text.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

import yaml

from taiwa.apps.faults import Faults, Spot, quoted
from taiwa.kernel.records import Json

__all__ = ["Entry", "Items", "Scalar", "Table", "Tree", "json_of", "read_tree"]

Plain: TypeAlias = bool | int | float | str | None

DEEPEST = 20
MOST_DIGITS = 100
INT = re.compile(r"[-+]?[0-9]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
SURROGATE = re.compile("[\ud800-\udfff]")
WORDS: dict[str, Plain] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
MENDS = (
    ("'\\t'", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", "a text that holds `: ` stands in quotes, or under a `|`"),
    ("stream end", "close what was opened: a quote, a bracket or a brace"),
    ("unexpected end of stream", "close what was opened: a quote, a bracket or a brace"),
    ("expected ',' or", "in braces or brackets, a text or type with special signs stands in quotes"),
    ("document start", "keep to one document: no `---` or `...` inside"),
    ("cannot start any token", "put the text in quotes"),
    ("could not find expected ':'", "write `key: value`, or put a text of several lines under a `|`"),
)
OTHERWISE = "write `key: value`, one per line, indented alike; a text with special signs stands in quotes"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value: `text` as written, `value` as meant, `span` its offsets in what was read."""

    text: str
    value: Plain
    at: Spot
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple["Tree", ...]
    at: Spot


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a table with what it holds."""

    key: str
    value: "Tree"
    at: Spot


@dataclass(frozen=True, slots=True)
class Table:
    """Keys and what they hold, in the order of the file; no key is there twice."""

    entries: tuple[Entry, ...]
    at: Spot

    def get(self, key: str) -> Entry | None:
        """The entry of a key."""
        return next((entry for entry in self.entries if entry.key == key), None)


Tree: TypeAlias = Scalar | Items | Table


class _BrokenError(Exception):
    """The text cannot be read any further; the fault was noted."""


def read_tree(text: str, line: int, faults: Faults) -> Tree | None:
    """Read YAML whose first line is the given line of its file; None when there is nothing, or nothing readable."""
    reader = _Reader(text, line, faults)
    try:
        return reader.document()
    except _BrokenError:
        return None
    except yaml.YAMLError as error:
        reader.complain(error)
        return None


def json_of(tree: Tree) -> Json:
    """The plain value of a tree."""
    if isinstance(tree, Scalar):
        return tree.value
    if isinstance(tree, Items):
        return [json_of(item) for item in tree.items]
    return {entry.key: json_of(entry.value) for entry in tree.entries}


@dataclass(slots=True)
class _Reader:
    """Builds a tree from events."""

    text: str
    line: int
    faults: Faults
    starts: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        # PyYAML also counts U+0085 and U+2028 as line ends, which no editor does: lines are counted here.
        self.starts = [0, *(found.end() for found in re.finditer("\n", self.text))]

    def start(self, event: yaml.Event) -> Spot:
        """The place where an event begins."""
        return self.spot(_offset(event.start_mark))

    def spot(self, index: int) -> Spot:
        """The place of an offset."""
        row = bisect_right(self.starts, index) - 1
        return Spot(self.line + row, index - self.starts[row] + 1)

    def document(self) -> Tree | None:
        """The one document."""
        events = yaml.parse(self.text, Loader=yaml.SafeLoader)
        made: Tree | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if made is not None:
                    self.fail(event, "a second document begins here", "keep to one: no `---` or `...` inside")
                made = self.tree(next(events), events, 1)
        return made

    def tree(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Tree:
        """What an event begins."""
        at = self.start(event)
        self.refuse(event)
        if depth > DEEPEST:
            self.fail(event, f"nested deeper than {DEEPEST}", "make it flatter")
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, at)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Tree] = []
            while not isinstance(inner := next(events), yaml.SequenceEndEvent):
                items.append(self.tree(inner, events, depth + 1))
            return Items(tuple(items), at)
        entries: dict[str, Entry] = {}
        while not isinstance(inner := next(events), yaml.MappingEndEvent):
            entry = self.entry(inner, events, depth)
            if entry.key in entries:
                first = entries[entry.key].at.line
                self.faults.error(entry.at, f"{quoted(entry.key)} is there twice (first in line {first})", "keep one")
            else:
                entries[entry.key] = entry
        return Table(tuple(entries.values()), at)

    def entry(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Entry:
        """A key and its value."""
        self.refuse(event)
        if not isinstance(event, yaml.ScalarEvent) or not event.value:
            self.fail(
                event, "a key must be a word", "write `key: value`; a text that begins with `{` or `[` stands in quotes"
            )
        at, key = self.start(event), self.whole_letters(event)
        return Entry(key, self.tree(next(events), events, depth + 1), at)

    def scalar(self, event: yaml.ScalarEvent, at: Spot) -> Scalar:
        """A value; only unquoted words can mean something else than text."""
        text = self.whole_letters(event)
        span = (_offset(event.start_mark), _offset(event.end_mark))
        if event.style is not None:
            return Scalar(text, text, at, span)
        if text in WORDS:
            return Scalar(text, WORDS[text], at, span)
        if INT.fullmatch(text) and len(text) <= MOST_DIGITS:
            return Scalar(text, int(text), at, span)
        if FLOAT.fullmatch(text):
            number = float(text)
            if INT.fullmatch(text) or not math.isfinite(number):
                self.fail(event, "a number too long to keep", "put it in quotes if it is a text")
            return Scalar(text, number, at, span)
        return Scalar(text, text, at, span)

    def whole_letters(self, event: yaml.ScalarEvent) -> str:
        """The words of a scalar; an escape such as \\ud800 can name half a letter, which no message can carry."""
        text = str(event.value)
        if SURROGATE.search(text):
            self.fail(event, "an escape names half a letter", "write the letter itself, or \\U and its eight digits")
        return text

    def refuse(self, event: yaml.Event) -> None:
        """See that a node says nothing but what it is."""
        marks = (("&", "anchor"), ("!", "tag")) if not isinstance(event, yaml.AliasEvent) else (("*", "anchor"),)
        for sign, name in marks:
            held: object = getattr(event, name, None)
            if held is not None:
                what = "alias" if sign == "*" else name
                word = str(held) if sign == "!" else f"{sign}{held}"
                mend = f"write the value itself; a text that begins with {sign} stands in quotes"
                self.fail(event, f"the {what} {quoted(word)}", mend)

    def fail(self, event: yaml.Event, message: str, mend: str) -> NoReturn:
        """Note a fault and read no further."""
        self.faults.error(self.start(event), message, mend)
        raise _BrokenError

    def complain(self, error: yaml.YAMLError) -> None:
        """Note what PyYAML stumbled over."""
        if isinstance(error, yaml.reader.ReaderError):
            index = int(error.position)
            sign = f"U+{ord(self.text[index]):04X}" if index < len(self.text) else "a sign"
            self.faults.error(
                self.spot(index),
                f"{sign} is not allowed in YAML",
                "take it out, or write it as an escape in double quotes",
            )
            return
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        at = self.spot(_offset(mark))
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        mend = next((mend for word, mend in MENDS if word in problem), OTHERWISE)
        self.faults.error(at, f"not YAML: {problem}", mend)


def _offset(mark: object) -> int:
    """Where a mark stands in the text; PyYAML has two kinds of marks, and its types allow for none."""
    index: object = getattr(mark, "index", 0)
    return index if isinstance(index, int) else 0
