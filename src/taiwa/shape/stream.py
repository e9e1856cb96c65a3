"""A view of an answer that is still being written, in time that grows with its length and no faster.

Strings grow; numbers and constants appear when they are closed, for 12 may become 123; an item of a list is looked at as soon
as it is complete. The view is a preview and nothing more: `finish` reads the whole text from scratch.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from taiwa.kernel import Json
from taiwa.shape.faults import Path
from taiwa.shape.head import Head
from taiwa.shape.items import ItemWatch
from taiwa.shape.ladder import STANDARD, Rules
from taiwa.shape.pieces import Pieces
from taiwa.shape.reading import Reading
from taiwa.shape.shape import Shape

__all__ = ["Change", "Stream"]

T = TypeVar("T")
SPACE = re.compile(r"[\s\ufeff]*")
TOKEN = re.compile(r"[A-Za-z0-9+.-]*")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
CONSTANTS: dict[str, bool | None] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}
LONGEST_TOKEN = 400
MOST_STRAYS = 16


@dataclass(frozen=True, slots=True)
class Change:
    """What a piece of text did at a path: the next words of a string, or with `closed` the whole value there.

    `faults` says what is wrong with an item of a list, which is complete now.
    """

    path: Path
    value: Json
    closed: bool
    faults: tuple[str, ...] = ()


@dataclass(slots=True)
class _Frame:
    """A container that is open, and the key or index that is being written, or None between members."""

    data: dict[str, Json] | list[Json]
    place: str | int | None = None


class _StrayError(Exception):
    """This is no JSON as the preview knows it."""


class Stream(Generic[T]):
    """Reads an answer piece by piece.

    >>> stream = Stream(Shape(dict[str, list[int]]))
    >>> _ = stream.feed('{"a": [1, 2')
    >>> stream.view, stream.open
    ({'a': [1]}, ('a', 1))
    >>> _ = stream.feed("3]}")
    >>> stream.finish().value
    {'a': [1, 23]}
    """

    def __init__(self, shape: Shape[T], rules: Rules = STANDARD) -> None:
        self.shape = shape
        self.rules = rules
        self.closed = False
        """Whether the preview has ended: its value is complete, or the text is no plain JSON and only `finish` can tell."""
        self._texts: list[str] = []
        self._changes: list[Change] = []
        self._strays = 0
        self._begin()

    def _begin(self) -> None:
        self._head: Head | None = Head()
        self._items = ItemWatch(self.shape.bare)
        self._root: Json = None
        self._frames: list[_Frame] = []
        self._state: Callable[[str, int], int] = self._value
        self._string = Pieces()
        self._token = ""
        self._shown = False

    @property
    def view(self) -> Json:
        """The value so far, None before there is any. It grows in place and is not to be changed."""
        if self._state == self._text:
            self._put(self._string.text)
        if self._wrapping and isinstance(self._root, dict):
            return self._root.get("value")
        return self._root

    @property
    def open(self) -> Path:
        """The path that is being written: everything that does not lie on it is complete."""
        places = tuple(frame.place for frame in self._frames if frame.place is not None)
        return places[1:] if self._wrapping else places

    @property
    def _wrapping(self) -> bool:
        return self.shape.wrapped and isinstance(self._root, dict)

    def feed(self, text: str) -> tuple[Change, ...]:
        """Take the next piece of the text; give what changed."""
        self._texts.append(text)
        self._changes = []
        while text and not self.closed:
            text = self._piece(text)
        if self._state == self._text and (words := self._string.fresh()):
            self._changes.append(Change(self.open, words, closed=False))
        return tuple(self._changes)

    def finish(self) -> Reading[T]:
        """Read the whole text from scratch.

        Raises:
            ShapeError: as `Shape.read`.
        """
        return self.shape.read("".join(self._texts), self.rules)

    def _piece(self, text: str) -> str:
        """Read a piece as far as it goes; give what is left when a stray bracket made it start over."""
        at = 0
        try:
            if self._head is not None:
                found = self._head.find(text)
                if found is None:
                    return ""
                bracket, text = found
                self._head = None
                self._push(bracket)
            while at < len(text) and not self.closed:
                at = self._state(text, at)
        except _StrayError:
            self._strays += 1
            if not self._shown and self._strays <= MOST_STRAYS:
                self._begin()  # nothing of it was shown: it was an aside in prose
                return text[at:]
            self.closed = True
        return ""

    def _push(self, bracket: str) -> None:
        if len(self._frames) >= self.rules.most_depth:
            raise _StrayError
        data: dict[str, Json] | list[Json] = {} if bracket == "{" else []
        self._put(cast("Json", data))
        self._frames.append(_Frame(data, None if bracket == "{" else 0))
        self._state = self._first_key if bracket == "{" else self._first_item

    def _put(self, value: Json) -> None:
        """Lay a value at the place that is being written."""
        if not self._frames:
            self._root = value
            return
        frame = self._frames[-1]
        if isinstance(frame.data, dict):
            frame.data[cast("str", frame.place)] = value
        elif frame.place == len(frame.data):
            frame.data.append(value)
        else:
            frame.data[-1] = value

    def _close(self, value: Json) -> None:
        """A value is complete: show it, and go on behind it."""
        self._shown = True
        path = self.open
        if self._frames:
            faults = self._items.look(self.view, path, value) if isinstance(self._frames[-1].data, list) else ()
            self._changes.append(Change(path, value, closed=True, faults=faults))
            self._frames[-1].place = None
            self._state = self._after
        else:
            if not self._wrapping:  # the wrapped value was shown when it closed
                self._changes.append(Change((), value, closed=True))
            self.closed = True

    def _pop(self, char: str) -> None:
        frame = self._frames[-1]
        if (char == "}") != isinstance(frame.data, dict):
            raise _StrayError
        self._frames.pop()
        self._close(cast("Json", frame.data))

    def _solid(self, text: str, at: int) -> int:
        found = SPACE.match(text, at)
        return found.end() if found else at

    def _first_key(self, text: str, at: int) -> int:
        at = self._solid(text, at)
        if at < len(text) and text[at] == "}":
            self._pop("}")
            return at + 1
        return self._key(text, at)

    def _key(self, text: str, at: int) -> int:
        at = self._solid(text, at)
        if at == len(text):
            return at
        if text[at] == "}":  # after a trailing comma
            self._pop("}")
        elif text[at] == '"':
            self._string = Pieces()
            self._state = self._name
        else:
            raise _StrayError
        return at + 1

    def _name(self, text: str, at: int) -> int:
        at = self._string.take(text, at)
        if self._string.ended:
            self._frames[-1].place = self._string.text
            self._state = self._colon
        return at

    def _colon(self, text: str, at: int) -> int:
        at = self._solid(text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            raise _StrayError
        self._state = self._value
        return at + 1

    def _first_item(self, text: str, at: int) -> int:
        at = self._solid(text, at)
        if at < len(text) and text[at] == "]":
            self._frames[-1].place = None
            self._pop("]")
            return at + 1
        return self._value(text, at)

    def _value(self, text: str, at: int) -> int:
        at = self._solid(text, at)
        if at == len(text):
            return at
        char = text[at]
        if char in "{[":
            self._push(char)
        elif char == '"':
            self._string = Pieces()
            self._put("")
            self._shown = True
            self._state = self._text
        elif char == "]":  # after a trailing comma
            self._pop("]")
        else:
            self._token = ""
            self._state = self._word
            return at
        return at + 1

    def _text(self, text: str, at: int) -> int:
        at = self._string.take(text, at)
        if self._string.ended:
            self._put(self._string.text)
            self._close(self._string.text)
        return at

    def _word(self, text: str, at: int) -> int:
        """Gather a number or a constant; only what follows it closes it."""
        found = TOKEN.match(text, at)
        end = found.end() if found else at
        self._token += text[at:end]
        if len(self._token) > LONGEST_TOKEN or not self._token:
            raise _StrayError
        if end < len(text):
            value = self._meaning(self._token)
            self._put(value)
            self._close(value)
        return end

    def _meaning(self, token: str) -> Json:
        if token in CONSTANTS:
            return CONSTANTS[token]
        if not NUMBER.match(token):
            raise _StrayError
        return int(token) if token.lstrip("-").isdecimal() else float(token)

    def _after(self, text: str, at: int) -> int:
        at = self._solid(text, at)
        if at == len(text):
            return at
        char, frame = text[at], self._frames[-1]
        if char == "," and isinstance(frame.data, dict):
            self._state = self._key
        elif char == "," and isinstance(frame.data, list):
            frame.place = len(frame.data)
            self._state = self._value
        elif char in "}]":
            self._pop(char)
        else:
            raise _StrayError
        return at + 1
