"""Partial values while an answer is written."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from taiwa.kernel.records import Json
from taiwa.structured.diagnostics import Path, diagnostics, node_at, pointer
from taiwa.structured.find_json import AnswerStart
from taiwa.structured.ir import ArrayNode, Node, TypeIR, members
from taiwa.structured.output_type import OutputType
from taiwa.structured.parse import STANDARD, ParseOptions, ParseResult

__all__ = ["PartialParser", "PartialUpdate"]


PLAIN = re.compile(r'[^"\\]+')

ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

HEX = re.compile(r"[0-9a-fA-F]{4}\Z")


class StringPieces:
    """Grows by `take` until `ended`; half of a character waits for its other half."""

    def __init__(self) -> None:
        self.ended = False
        self._whole = ""
        self._parts: list[str] = []
        self._told = 0
        self._length = 0
        self._escape = ""
        self._half = ""

    @property
    def text(self) -> str:
        """The content so far."""
        if self._parts:
            self._whole = "".join([self._whole, *self._parts])
            self._parts = []
        return self._whole

    def fresh(self) -> str:
        """Give what came since the last call."""
        if self._told == self._length:
            return ""
        words = "".join(self._parts) if self._told == len(self._whole) else self.text[self._told :]
        self._told = self._length
        return words

    def take(self, text: str, at: int) -> int:
        """Read on in a piece of text; give the place after the end of the string, or the end of the piece."""
        while at < len(text) and not self.ended:
            if self._escape:
                self._escape += text[at]
                at += 1
                self._unescape()
                continue
            found = PLAIN.match(text, at)
            if found:
                self._add(found[0])
                at = found.end()
            elif text[at] == "\\":
                self._escape = "\\"
                at += 1
            else:
                self._add("")
                self.ended = True
                at += 1
        return at

    def _unescape(self) -> None:
        escape = self._escape
        if escape[1] != "u":
            self._escape = ""
            self._add(ESCAPES.get(escape[1], escape))
        elif len(escape) == 6:
            self._escape = ""
            self._add_code(escape[2:])

    def _add_code(self, digits: str) -> None:
        char = chr(int(digits, 16)) if HEX.match(digits) else f"\\u{digits}"
        if self._half and "\udc00" <= char <= "\udfff":
            both, self._half = self._half + char, ""
            self._add(both.encode("utf-16", "surrogatepass").decode("utf-16"))
        elif "\ud800" <= char <= "\udbff":
            self._add("")
            self._half = char
        else:
            self._add(char)

    def _add(self, piece: str) -> None:
        if self._half:
            piece, self._half = "\ufffd" + piece, ""  # the other half did not come
        if piece:
            self._parts.append(piece)
            self._length += len(piece)


class ItemWatch:
    """Looks at each item with the node of its list, which is found once per list."""

    def __init__(self, form: TypeIR) -> None:
        self.form = form
        self._list: Path | None = None
        self._node: ArrayNode | None = None

    def look(self, view: Json, path: Path, item: Json) -> tuple[str, ...]:
        """Give the diagnostics of an item that is complete; nothing for an item inside of another one."""
        outer = path[:-1]
        if any(isinstance(part, int) for part in outer):
            return ()
        if outer != self._list:
            self._list, self._node = outer, self._find(view, outer)
        if self._node is None or not path or not isinstance(path[-1], int):
            return ()
        place = path[-1]
        prefix = self._node.prefix
        inner: Node = prefix[place] if place < len(prefix) else self._node.items
        lines = diagnostics(TypeIR(inner, self.form.name, self.form.named), item)
        return tuple(line.replace("$", pointer(path), 1) for line in lines)

    def _find(self, view: Json, path: Path) -> ArrayNode | None:
        node = node_at(self.form, view, path)
        if node is None:
            return None
        return next((each for each in members(node, self.form) if isinstance(each, ArrayNode)), None)


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
class PartialUpdate:
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


class PartialParser(Generic[T]):
    """Reads an answer piece by piece.

    >>> stream = PartialParser(OutputType(dict[str, list[int]]))
    >>> _ = stream.feed('{"a": [1, 2')
    >>> stream.view, stream.open
    ({'a': [1]}, ('a', 1))
    >>> _ = stream.feed("3]}")
    >>> stream.finish().value
    {'a': [1, 23]}
    """

    def __init__(self, shape: OutputType[T], rules: ParseOptions = STANDARD) -> None:
        self.shape = shape
        self.rules = rules
        self.closed = False
        """Whether the preview has ended: its value is complete, or the text is no plain JSON and only `finish` can tell."""
        self._texts: list[str] = []
        self._changes: list[PartialUpdate] = []
        self._strays = 0
        self._begin()

    def _begin(self) -> None:
        self._head: AnswerStart | None = AnswerStart()
        self._items = ItemWatch(self.shape.bare)
        self._root: Json = None
        self._frames: list[_Frame] = []
        self._state: Callable[[str, int], int] = self._value
        self._string = StringPieces()
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

    def feed(self, text: str) -> tuple[PartialUpdate, ...]:
        """Take the next piece of the text; give what changed."""
        self._texts.append(text)
        self._changes = []
        while text and not self.closed:
            text = self._piece(text)
        if self._state == self._text and (words := self._string.fresh()):
            self._changes.append(PartialUpdate(self.open, words, closed=False))
        return tuple(self._changes)

    def finish(self) -> ParseResult[T]:
        """Read the whole text from scratch.

        Raises:
            ShapeError: as `OutputType.read`.
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
            self._changes.append(PartialUpdate(path, value, closed=True, faults=faults))
            self._frames[-1].place = None
            self._state = self._after
        else:
            if not self._wrapping:  # the wrapped value was shown when it closed
                self._changes.append(PartialUpdate((), value, closed=True))
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
            self._string = StringPieces()
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
            self._string = StringPieces()
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
