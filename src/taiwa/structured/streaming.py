"""Partial values of an answer while it is streamed."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from taiwa.kernel.serialization import Json
from taiwa.structured.ir import AnyNode, ArrayNode, LiteralNode, StringNode, TypeIR, members
from taiwa.structured.lenient_parser import CLOSE, TAGS
from taiwa.structured.lenient_parser import CONSTANTS as LENIENT_CONSTANTS
from taiwa.structured.lenient_scanner import ESCAPES, MAX_DEPTH
from taiwa.structured.output_type import DEFAULT_OPTIONS, OutputType, ParseOptions, ParseResult
from taiwa.structured.validators import Path, diagnostics, node_at, pointer

PLAIN = re.compile(r'[^"\\]+')
HEX = re.compile(r"[0-9a-fA-F]{4}\Z")


class StringPieces:
    """The content of a JSON string that arrives in pieces, until `ended`; half a surrogate pair is held back."""

    def __init__(self) -> None:
        self.ended = False
        self._whole = ""
        self._parts: list[str] = []
        self._returned = 0
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
        """Return the content added since the last call."""
        if self._returned == self._length:
            return ""
        added = "".join(self._parts) if self._returned == len(self._whole) else self.text[self._returned :]
        self._returned = self._length
        return added

    def take(self, text: str, at: int) -> int:
        """Read from a piece of text; return the position after the string, or the end of the piece."""
        while at < len(text) and not self.ended:
            if self._escape:
                self._escape += text[at]
                at += 1
                self._unescape()
                continue
            plain = PLAIN.match(text, at)
            if plain:
                self._add(plain[0])
                at = plain.end()
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
            piece, self._half = "\ufffd" + piece, ""  # the other half is missing
        if piece:
            self._parts.append(piece)
            self._length += len(piece)


OPENING = (*(f"<{tag}>" for tag in TAGS.split("|")), "[think]")
MAX_TAG_CHARS = 24
BRACKET = re.compile(r"[{\[]")
NO_SPACE = re.compile(r"[^\s\ufeff]")
FIRST = {"{": '"}', "[": '"{[]-0123456789tfnTFN'}
"""The characters that may follow a bracket of JSON; others follow a bracket in prose."""


class AnswerStart:
    """Finds the opening bracket of an answer in pieces of text, skipping prose such as `{name}` or `[see above]`."""

    def __init__(self) -> None:
        self._lead: str | None = ""
        self._thinking = False
        self._bracket = ""

    def find(self, text: str) -> tuple[str, str] | None:
        """Take a piece of text; return the opening bracket and the text after it, None if there is none yet."""
        while text:
            if self._thinking:
                text = self._think(text)
            elif self._lead is not None:
                text = self._decide(self._lead, text)
            else:
                return self._find_in_prose(text)
        return None

    def _decide(self, lead: str, text: str) -> str:
        """Decide whether a thinking block opens; return the remaining text."""
        for at, char in enumerate(text):
            if not lead and not NO_SPACE.match(char):
                continue
            lead += char
            if lead.lower() in OPENING:
                self._thinking, self._lead = True, ""
                return text[at + 1 :]
            if not any(tag.startswith(lead.lower()) for tag in OPENING):
                self._lead = None
                return lead + text[at + 1 :]
        self._lead = lead
        return ""

    def _think(self, text: str) -> str:
        whole = (self._lead or "") + text
        close = CLOSE.search(whole)
        if close is None:
            self._lead = whole[-MAX_TAG_CHARS:]
            return ""
        self._thinking, self._lead = False, ""
        return whole[close.end() :]

    def _find_in_prose(self, text: str) -> tuple[str, str] | None:
        at = 0
        while at < len(text):
            char = (NO_SPACE if self._bracket else BRACKET).search(text, at)
            if char is None:
                return None
            bracket, at = self._bracket, char.end()
            self._bracket = char[0] if char[0] in FIRST else ""
            if bracket and char[0] in FIRST[bracket]:
                self._bracket = ""
                return bracket, text[char.start() :]
        return None


T = TypeVar("T")
SPACE = re.compile(r"[\s\ufeff]*")
TOKEN = re.compile(r"[A-Za-z0-9+.-]*")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
CONSTANTS = {word: constant for word, (constant, level) in LENIENT_CONSTANTS.items() if level == "safe"}

MAX_TOKEN_CHARS = 400
MAX_RESTARTS = 16


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """A change at a path: text to append to a string, or, if `closed`, the complete value.

    `diagnostics` are those of a complete item of a list.
    """

    path: Path
    value: Json
    closed: bool
    diagnostics: tuple[str, ...] = ()


@dataclass(slots=True)
class _Frame:
    """An open container, and the key or index that is being written; None between members."""

    data: dict[str, Json] | list[Json]
    place: str | int | None = None


class _NotJsonError(Exception):
    """The text is not plain JSON."""


class PartialParser(Generic[T]):
    """Parses an answer piece by piece: a partial value after each piece, and the result at the end.

    >>> stream = PartialParser(OutputType(dict[str, list[int]]))
    >>> _ = stream.feed('{"a": [1, 2')
    >>> stream.view, stream.open
    ({'a': [1]}, ('a', 1))
    >>> _ = stream.feed("3]}")
    >>> stream.finish().value
    {'a': [1, 23]}
    """

    def __init__(self, output_type: OutputType[T], options: ParseOptions = DEFAULT_OPTIONS) -> None:
        self.output_type = output_type
        self.options = options
        self.closed = False
        """Whether the view is final: its value is complete, or the text is not plain JSON and only `finish` parses it."""
        self._texts: list[str] = []
        self._changes: list[PartialUpdate] = []
        self._restarts = 0
        self._begin()

    def _begin(self) -> None:
        self._start: AnswerStart | None = AnswerStart()
        self._checked: tuple[Path, ArrayNode | None] | None = None
        self._root: Json = None
        self._frames: list[_Frame] = []
        self._state: Callable[[str, int], int] = self._value
        self._string = StringPieces()
        self._token = ""
        self._shown = False

    @property
    def view(self) -> Json:
        """The value so far, None before it begins. It is updated in place; do not modify it."""
        if self._state == self._text:
            self._put(self._string.text)
        if self._wrapping and isinstance(self._root, dict):
            return self._root.get("value")
        return self._root

    @property
    def open(self) -> Path:
        """The path that is being written; everything else is complete."""
        path = tuple(frame.place for frame in self._frames if frame.place is not None)
        return path[1:] if self._wrapping else path

    @property
    def _wrapping(self) -> bool:
        return self.output_type.wrapped and isinstance(self._root, dict)

    def feed(self, text: str) -> tuple[PartialUpdate, ...]:
        """Take the next piece of the text; return what changed."""
        self._texts.append(text)
        self._changes = []
        while text and not self.closed:
            text = self._read(text)
        if self._state == self._text and (added := self._string.fresh()):
            self._changes.append(PartialUpdate(self.open, added, closed=False))
        return tuple(self._changes)

    def finish(self) -> ParseResult[T]:
        """Parse the whole text.

        Raises:
            OutputValidationError: as `OutputType.parse`.
        """
        return self.output_type.parse("".join(self._texts), self.options)

    def _read(self, text: str) -> str:
        """Read a piece; return the rest if a bracket was not JSON and the search for the answer starts again."""
        at = 0
        try:
            if self._start is not None:
                start = self._start.find(text)
                if start is None:
                    return ""
                bracket, text = start
                self._start = None
                self._push(bracket)
            while at < len(text) and not self.closed:
                at = self._state(text, at)
        except _NotJsonError:
            self._restarts += 1
            if not self._shown and self._restarts <= MAX_RESTARTS:
                self._begin()  # nothing was shown yet, so the bracket belonged to prose
                return text[at:]
            self.closed = True
        return ""

    def _push(self, bracket: str) -> None:
        if len(self._frames) >= MAX_DEPTH:
            raise _NotJsonError
        data: dict[str, Json] | list[Json] = {} if bracket == "{" else []
        self._put(cast("Json", data))
        self._frames.append(_Frame(data, None if bracket == "{" else 0))
        self._state = self._key if bracket == "{" else self._value

    def _put(self, value: Json) -> None:
        """Set the value at the path that is being written."""
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
        """Report a complete value and continue after it."""
        self._shown = True
        path = self.open
        if self._frames:
            in_list = isinstance(self._frames[-1].data, list)
            lines = self._check_item(path, value) if in_list else ()
            self._changes.append(PartialUpdate(path, value, closed=True, diagnostics=lines))
            self._frames[-1].place = None
            self._state = self._after
        else:
            if not self._wrapping:  # the wrapped value was reported when it closed
                self._changes.append(PartialUpdate((), value, closed=True))
            self.closed = True

    def _check_item(self, path: Path, item: Json) -> tuple[str, ...]:
        """Return the diagnostics of a complete item; nothing for an item inside another item.

        The node of a list is looked up once.
        """
        outer, index, type_ir = path[:-1], cast("int", path[-1]), self.output_type.bare_ir
        if any(isinstance(part, int) for part in outer):
            return ()
        if self._checked is None or self._checked[0] != outer:
            node = node_at(type_ir, self.view, outer)
            options = () if node is None else members(node, type_ir)
            self._checked = outer, next((each for each in options if isinstance(each, ArrayNode)), None)
        array = self._checked[1]
        if array is None:
            return ()
        inner = array.prefix[index] if index < len(array.prefix) else array.items
        lines = diagnostics(TypeIR(inner, type_ir.name, type_ir.named), item)
        return tuple(line.replace("$", pointer(path), 1) for line in lines)

    def _pop(self, char: str) -> None:
        frame = self._frames[-1]
        if (char == "}") != isinstance(frame.data, dict):
            raise _NotJsonError
        self._frames.pop()
        self._close(cast("Json", frame.data))

    def _skip_space(self, text: str, at: int) -> int:
        space = SPACE.match(text, at)
        return space.end() if space else at

    def _key(self, text: str, at: int) -> int:
        at = self._skip_space(text, at)
        if at == len(text):
            return at
        if text[at] == "}":  # also after a trailing comma
            self._pop("}")
        elif text[at] == '"':
            self._string = StringPieces()
            self._state = self._name
        else:
            raise _NotJsonError
        return at + 1

    def _name(self, text: str, at: int) -> int:
        at = self._string.take(text, at)
        if self._string.ended:
            self._frames[-1].place = self._string.text
            self._state = self._colon
        return at

    def _colon(self, text: str, at: int) -> int:
        at = self._skip_space(text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            raise _NotJsonError
        self._state = self._value
        return at + 1

    def _value(self, text: str, at: int) -> int:
        at = self._skip_space(text, at)
        if at == len(text):
            return at
        char = text[at]
        if char in "{[":
            self._push(char)
        elif char == '"':
            self._string = StringPieces()
            if self._is_label():
                self._state = self._label
            else:
                self._put("")
                self._shown = True
                self._state = self._text
        elif char == "]":  # also after a trailing comma
            self._pop("]")
        else:
            self._token = ""
            self._state = self._word
            return at
        return at + 1

    def _text(self, text: str, at: int) -> int:
        """Collect a string, which grows in the view."""
        return self._label(text, at)

    def _is_label(self) -> bool:
        """Whether the string that begins can only be one of some values, of which a part is none."""
        type_ir = self.output_type.bare_ir
        node = node_at(type_ir, self.view, self.open)
        options = () if node is None else members(node, type_ir)
        is_text = any(isinstance(each, (AnyNode, StringNode)) for each in options)
        return not is_text and any(isinstance(each, LiteralNode) for each in options)

    def _label(self, text: str, at: int) -> int:
        """Collect a string, and show it when it is complete."""
        at = self._string.take(text, at)
        if self._string.ended:
            self._put(self._string.text)
            self._close(self._string.text)
        return at

    def _word(self, text: str, at: int) -> int:
        """Collect a number or a constant; the character after it closes it."""
        token = TOKEN.match(text, at)
        end = token.end() if token else at
        self._token += text[at:end]
        if len(self._token) > MAX_TOKEN_CHARS or not self._token:
            raise _NotJsonError
        if end < len(text):
            value = _constant(self._token)
            self._put(value)
            self._close(value)
        return end

    def _after(self, text: str, at: int) -> int:
        at = self._skip_space(text, at)
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
            raise _NotJsonError
        return at + 1


def _constant(token: str) -> Json:
    if token in CONSTANTS:
        return CONSTANTS[token]
    if not NUMBER.match(token):
        raise _NotJsonError
    return int(token) if token.lstrip("-").isdecimal() else float(token)
