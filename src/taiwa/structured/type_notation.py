"""The type notation of app files, as text or YAML mapping, parsed into a Python annotation and rendered from one.

    str int float bool null any · list[T] · dict[str, T] · A | B · "literal" · {name: str, note?: str} · (A | B)
    int(1..5) float(0..1) int(1..) · str(max 80) str(min 1, max 80) · list[T](max 20)

The notation is parsed, never evaluated.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, Union, cast, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from typing_extensions import TypedDict, is_typeddict

from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import SURROGATE
from taiwa.kernel.wording import Wording
from taiwa.structured.ir import ANONYMOUS

Annotation: TypeAlias = Any
"""A Python type expression; there is no static type for one."""

MAX_CHARS = 1_000
MAX_MAPPING_CHARS = 10_000
MAX_DEPTH = 16
MAX_ITEMS = 1_000_000_000
MAX_EXACT = 2**53
"""The largest number up to which floats express all whole numbers."""
CONSTRUCTORS: dict[str, Any] = {"list": list, "dict": dict, "union": Union, "literal": Literal, "optional": NotRequired}
"""Type constructors as values: type checkers do not understand a subscript that is a variable."""

WORDS: dict[str, Annotation] = {"str": str, "int": int, "float": float, "bool": bool, "null": None, "any": Any}
NAMES: dict[object, str] = {**{annotation: word for word, annotation in WORDS.items()}, NoneType: "null"}

TYPES = 'str, int, float, bool, null, any, list[T], dict[str, T], {name: T} or "literal"'
MARKS = "\u0300-\u036f\u3099\u309a"
"""Combining marks of decomposed text (NFD): accents, and the voicing marks of kana."""

NAME = rf"[^\W\d][\w{MARKS}]*(?:-\w[\w{MARKS}]*)*"
TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"|\'[^\'\\\x00-\x1f]*\')'
    r"|(?P<number>-?[0-9]+(?:\.(?!\.)[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
    rf"|(?P<word>{NAME})|(?P<dots>\.\.)|(?P<mark>[][{{}}()|,:?]))"
)

PLAIN_KEY = re.compile(rf"{NAME}\Z")


FIELD = re.compile(rf"(?P<name>{NAME})(?P<optional>\?)?(?:\s+(?P<type>[^:\s][^:]*?))?\s*(?::\s*(?P<rest>.+))?")
ONE_OF = re.compile(rf"{NAME}(?:\s*\|\s*{NAME})+")
"""Words to choose from, as in `spam|ham`."""
SCHEMA_WORDS = {"string": str, "integer": int, "number": float, "boolean": bool}
FIELD_WORDS = {**WORDS, **SCHEMA_WORDS, "None": None, "list": list[Any], "dict": dict[str, Any]}
"""The names of types in a field: those of the notation, of Python and of JSON Schema."""
TYPE_START = re.compile(r"(?:list|dict|str|int|float)\s*[\[(]|(?:str|int|float|bool|null|any)\s*\||\{")
"""The beginning of a text that is a type, or a mistake in one, but not a description."""
COMMA = re.compile(r",(?![^\[{(]*[\]})])")


def is_field_list(text: str) -> bool:
    """Return whether a text lists fields, and is not one word or an address such as `module:Type`."""
    return bool(re.search(r"[\s,|]", text.strip())) or text.rpartition(":")[2] in FIELD_WORDS


def parse_fields(text: str) -> tuple[dict[str, Annotation], frozenset[str]]:
    """Parse the fields of an object on one line, or a field on each line; return their types and the required ones.

    A field has a name, `?` if it is optional, a type (default: `str`), and a description after a colon. The type follows the name
    or a colon; what is not a type after the first colon is the description.

    >>> parse_fields("name, age?: int")
    ({'name': <class 'str'>, 'age': <class 'int'>}, frozenset({'name'}))
    >>> parse_fields("label: spam|ham")[0] == parse_fields("label: 'spam' | 'ham'")[0]
    True
    >>> parse_fields("label: spam|ham")[0]
    {'label': typing.Union[typing.Literal['spam'], typing.Literal['ham']]}

    Raises:
        InputError: a field is invalid or duplicate, or there is none.
    """
    fields: dict[str, Annotation] = {}
    required: set[str] = set()
    for part in filter(str.strip, text.split("\n") if "\n" in text else COMMA.split(text)):
        field = FIELD.fullmatch(part.strip())
        if field is None or field["name"] in fields:
            raise InputError(
                f"invalid field {part.strip()!r} of a type; write NAME, NAME: TYPE or NAME: TYPE: DESCRIPTION"
            )
        if field["type"]:
            annotation, about = _field_type(field["type"]), field["rest"]
        else:
            annotation, about = _type_and_description(field["rest"] or "str")
        fields[field["name"]] = _described(annotation, about) if about else annotation
        required |= set() if field["optional"] else {field["name"]}
    if not fields:
        raise InputError("a type needs at least one field")
    return fields, frozenset(required)


def _field_type(text: str) -> Annotation:
    """Parse the type of a field.

    Raises:
        InputError: the text is not a type.
    """
    text = text.strip()
    if text in FIELD_WORDS:
        return FIELD_WORDS[text]
    options = [word.strip() for word in text.split("|")]
    words = [word for word in options if FIELD_WORDS.get(word, NoneType) in (None, NoneType)]
    if ONE_OF.fullmatch(text) and words == options:
        return CONSTRUCTORS["union"][
            tuple(None if word in FIELD_WORDS else CONSTRUCTORS["literal"][word] for word in options)
        ]
    return parse_notation(text)


def _type_and_description(text: str) -> tuple[Annotation, str]:
    """Split what follows the colon of a field: a type, a description, or both with a colon between them."""
    colons = [at for at, char in enumerate(text) if char == ":"]
    for end in (len(text), *reversed(colons)):
        with suppress(InputError):
            return _field_type(text[:end]), text[end + 1 :].strip()
    return (_field_type(text), "") if TYPE_START.match(text) else (str, text)


def _described(annotation: Annotation, about: str) -> Annotation:
    from pydantic import Field

    return Annotated[annotation, Field(description=about)]


def parse_notation(notation: str | Mapping[str, Any] | None) -> Annotation:
    """Parse a type; a mapping is an object, None (`null` in YAML) is the type of null.

    >>> render_notation(parse_notation({"name": "str(max 80)", "ages?": "list[int(0..150)] | null"}))
    '{name: str(max 80), ages?: list[int(0..150)] | null}'

    Raises:
        InputError: the notation is invalid; the message names the column and what was expected there.
    """
    return _parse(notation, "", _CharacterLimit(MAX_MAPPING_CHARS), 0)


def render_notation(annotation: Annotation) -> str:
    """Render an annotation: `parse_notation(render_notation(a))` is the same type.

    Raises:
        InputError: the notation cannot express the type.
    """
    return _render(annotation, 0)


def fits(annotation: Annotation, data: Json) -> bool:
    """Return whether JSON data certainly has a type of the notation; if not, a validator must say, and what is wrong.

    Loading pydantic and building a validator takes longer than most commands that only read a conversation.

    >>> fits(parse_notation("{name: str(max 80)}"), {"name": "Aiko"})
    True
    """
    if annotation is Any:
        return data is None or any(fits(kind, data) for kind in (str, bool, float))
    if annotation is None or annotation is NoneType:
        return data is None
    if annotation is str:
        return _is_text(data)
    if annotation is bool:
        return isinstance(data, bool)
    if annotation is int or annotation is float:
        return (type(data) is int or (type(data) is float and annotation is float)) and abs(data) <= MAX_EXACT
    origin: object = get_origin(annotation)
    inner: tuple[Any, ...] = get_args(annotation)
    if origin is Annotated:
        return fits(inner[0], data) and all(_is_within(mark, data) for mark in inner[1:])
    if origin is Union or origin is UnionType:
        return any(fits(part, data) for part in inner)
    if origin is Literal:
        return _is_text(data) and data in inner
    if type(data) is list:
        return origin is list and all(fits(inner[0], item) for item in data)
    if type(data) is not dict or not all(map(_is_text, data)):
        return False
    if origin is dict:
        return all(fits(inner[1], item) for item in data.values())
    return (
        is_typeddict(annotation)
        and annotation.__required_keys__ <= data.keys() <= annotation.__annotations__.keys()
        and all(fits(_without_optional(annotation.__annotations__[key]), item) for key, item in data.items())
    )


def has_words(annotation: Annotation) -> bool:
    """Return whether values of a type contain texts, numbers or names that its writer chooses, and not only yes, no and null.

    >>> has_words(parse_notation("dict[str, bool]")), has_words(parse_notation("{new: bool, old: list[bool] | null}"))
    (True, False)
    """
    if is_typeddict(annotation):
        return any(map(has_words, annotation.__annotations__.values()))
    origin: object = get_origin(annotation)
    inner: tuple[Any, ...] = get_args(annotation)
    if not inner:
        return annotation not in (bool, None, NoneType)
    return any(map(has_words, inner[:1] if origin in (Annotated, NotRequired) else inner))


def _is_text(data: object) -> bool:
    return type(data) is str and (data.isascii() or not SURROGATE.search(data))


def _is_within(mark: object, data: Any) -> bool:  # noqa: ANN401  (of the bounded type)
    match mark:
        case Ge(ge=low):
            return bool(low <= data)
        case Le(le=high):
            return bool(data <= high)
        case MinLen(min_length=low):
            return low <= len(data)
        case MaxLen(max_length=high):
            return len(data) <= high
        case _:
            return False


def _without_optional(annotation: Annotation) -> Annotation:
    origin: object = get_origin(annotation)
    return get_args(annotation)[0] if origin is NotRequired else annotation


@dataclass(slots=True)
class _CharacterLimit:
    """The remaining number of characters of a mapping."""

    left: int

    def take(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise InputError(f"type notation: more than {MAX_MAPPING_CHARS} characters; name fewer or shorter fields")


def _parse(notation: object, path: str, limit: _CharacterLimit, depth: int) -> Annotation:
    where = f"type notation of {path}" if path else Wording("type notation")
    if notation is None:
        return None
    if isinstance(notation, str):
        limit.take(len(notation))
        return _Parser(notation, where, depth).parse()
    if not isinstance(notation, Mapping):
        raise InputError(f"{where}: expected text or a mapping of fields, not {type(notation).__name__}")
    if depth >= MAX_DEPTH:
        raise InputError(f"{where}: nested deeper than {MAX_DEPTH}")
    fields: dict[str, Annotation] = {}
    for key, inner in cast("Mapping[object, object]", notation).items():
        if not isinstance(key, str) or not key.removesuffix("?"):
            raise InputError(f"{where}: expected a field name, not {key!r}")
        limit.take(len(key))
        name = key.removesuffix("?")
        if name in fields:
            raise InputError(f"{where}: duplicate field {name!r}")
        part = _parse(inner, f"{path}.{name}" if path else name, limit, depth + 1)
        fields[name] = CONSTRUCTORS["optional"][part] if key.endswith("?") else part
    return _object(fields)


def _object(fields: dict[str, Annotation]) -> Annotation:
    annotation = cast("Any", TypedDict)(ANONYMOUS, fields)  # type checkers accept only literal fields
    annotation.__pydantic_config__ = {"extra": "forbid"}
    return annotation


@dataclass(slots=True)
class _Parser:
    """Recursive descent over the tokens of one text."""

    text: str
    where: str
    depth: int
    at: int = 0
    kind: str = field(default="", init=False)
    word: str = field(default="", init=False)
    column: int = field(default=1, init=False)

    def parse(self) -> Annotation:
        if len(self.text) > MAX_CHARS:
            raise InputError(f"{self.where}: {len(self.text)} characters, at most {MAX_CHARS}")
        self.step()
        annotation = self.union()
        if self.kind:
            self.fail("the end, or `|` and another type")
        return annotation

    def step(self) -> None:
        token = TOKEN.match(self.text, self.at)
        if token is None:
            rest = self.text[self.at :].lstrip()
            self.kind, self.word, self.column = "bad" if rest else "", rest[:1], len(self.text) - len(rest) + 1
            return
        self.kind, self.word = token.lastgroup or "", token.group(token.lastgroup or 0)
        self.column, self.at = token.start(token.lastgroup or 0) + 1, token.end()

    def string(self) -> str:
        return self.word[1:-1] if self.word[0] == "'" else str(json.loads(self.word))

    def fail(self, expected: str) -> None:
        found = repr(self.word[:20]) if self.kind else "the end"
        problem = Wording("expected {expected}, not {found}", expected=expected, found=found)
        raise InputError(Wording("{where}, column {n}: {problem}", where=self.where, n=self.column, problem=problem))

    def take(self, word: str, expected: str = "") -> None:
        if self.kind in ("string", "") or self.word != word:
            self.fail(expected or f"`{word}`")
        self.step()

    def has(self, word: str) -> bool:
        if self.kind in ("mark", "dots", "word") and self.word == word:
            self.step()
            return True
        return False

    def union(self) -> Annotation:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise InputError(f"{self.where}, column {self.column}: nested deeper than {MAX_DEPTH}")
        members = [self.term()]
        while self.has("|"):
            members.append(self.term())
        self.depth -= 1
        return members[0] if len(members) == 1 else CONSTRUCTORS["union"][tuple(members)]

    def term(self) -> Annotation:
        if self.kind == "string":
            annotation = CONSTRUCTORS["literal"][self.string()]
            self.step()
            return annotation
        if self.has("("):
            annotation = self.union()
            self.take(")")
            return annotation
        if self.has("{"):
            return self.fields()
        if self.kind != "word" or self.word not in (*WORDS, "list", "dict"):
            self.fail(Wording("a type: {types}", types=TYPES))
        word = self.word
        self.step()
        if word == "list":
            self.take("[", "`[` and the type of the items")
            items = self.union()
            self.take("]")
            return self.bounded(CONSTRUCTORS["list"][items], "list")
        if word == "dict":
            self.take("[", "`[str, T]`")
            self.take("str", "`str`, the type of the keys")
            self.take(",")
            values = self.union()
            self.take("]")
            return CONSTRUCTORS["dict"][str, values]
        return self.bounded(WORDS[word], word)

    def fields(self) -> Annotation:
        fields: dict[str, Annotation] = {}
        while not self.has("}"):
            if self.kind not in ("word", "string"):
                self.fail("a field name or `}`")
            name = self.string() if self.kind == "string" else self.word
            if not name or name in fields:
                self.fail("another field name" if name else "a field name")
            self.step()
            optional = self.has("?")
            self.take(":", "`:` and a type" if optional else "`:` and a type, or `?`")
            part = self.union()
            fields[name] = CONSTRUCTORS["optional"][part] if optional else part
            if not self.has(","):
                self.take("}", "`,` or `}`")
                break
        return _object(fields)

    def bounded(self, annotation: Annotation, word: str) -> Annotation:
        if not self.has("("):
            return annotation
        if word not in ("int", "float", "str", "list"):
            raise InputError(f"{self.where}, column {self.column}: {word} does not take bounds")
        low, high = self.span(word) if word in ("int", "float") else self.size()
        self.take(")")
        if low is not None and high is not None and low > high:
            raise InputError(f"{self.where}, column {self.column}: no value lies between {low} and {high}")
        kinds = (Ge, Le) if word in ("int", "float") else (MinLen, MaxLen)
        bounds = [kind(cast("Any", bound)) for kind, bound in zip(kinds, (low, high), strict=True) if bound is not None]
        return Annotated[annotation, *bounds]

    def span(self, word: str) -> tuple[float | None, float | None]:
        expected = "bounds such as 1..5, 1.. or ..5"
        low = self.number(word) if self.kind == "number" else None
        self.take("..", expected)
        high = self.number(word) if self.kind == "number" else None
        if low is None and high is None:
            self.fail(expected)
        return low, high

    def size(self) -> tuple[float | None, float | None]:
        low = high = None
        if self.has("min"):
            low = self.number("size")
            if not self.has(","):
                return low, high
        self.take("max", "`max` or `min` and a number")
        high = self.number("size")
        return low, high

    def number(self, word: str) -> float:
        if self.kind != "number":
            self.fail("a number")
        text = self.word
        if word == "float":
            value = float(text)
            if value in (float("inf"), float("-inf")):
                self.fail("a smaller number")
        else:
            if not text.lstrip("-").isdecimal() or len(text) > MAX_DEPTH + 2:
                self.fail("a whole number")
            value = int(text)
            if word == "size" and not 0 <= value <= MAX_ITEMS:
                self.fail("a size of 0 or more")
        self.step()
        return value


def _render(annotation: Annotation, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise InputError(f"the type notation cannot express the type: nested deeper than {MAX_DEPTH}")
    for known, name in NAMES.items():
        if annotation is known:
            return name
    origin: object = get_origin(annotation)
    inner: tuple[Any, ...] = get_args(annotation)
    if origin is Annotated:
        return _bounds(annotation, inner, depth)
    if origin is Union or origin is UnionType:
        return " | ".join(_render(part, depth + 1) for part in inner)
    if origin is Literal and all(isinstance(part, str) for part in inner):
        return " | ".join(_quoted(part) for part in inner)
    if origin is list:
        return f"list[{_render(inner[0], depth + 1)}]"
    if origin is dict and inner[0] is str:
        return f"dict[str, {_render(inner[1], depth + 1)}]"
    if is_typeddict(annotation):
        return "{" + ", ".join(_field(annotation, key, depth) for key in annotation.__annotations__) + "}"
    raise InputError(f"the type notation cannot express {annotation!r}; use {TYPES}")


def _field(annotation: Annotation, key: str, depth: int) -> str:
    inner = _without_optional(annotation.__annotations__[key])
    name = key if PLAIN_KEY.match(key) else _quoted(key)
    return f"{name}{'?' if key in annotation.__optional_keys__ else ''}: {_render(inner, depth + 1)}"


def _quoted(text: str) -> str:
    if any(ord(char) < 32 and char not in "\b\f\n\r\t" for char in text):
        raise InputError(f"the type notation cannot express the text {text!r}")
    return json.dumps(text, ensure_ascii=False)


def _bounds(annotation: Annotation, inner: tuple[Annotation, ...], depth: int) -> str:
    limits: dict[str, object] = {}
    for mark in inner[1:]:
        for part in getattr(mark, "metadata", (mark,)):  # of pydantic's `Field`, which may hold several bounds
            known = [name for name in ("ge", "le", "min_length", "max_length") if hasattr(part, name)]
            if len(known) != 1:
                raise InputError(f"the type notation cannot express {annotation!r}")
            limits[known[0]] = getattr(part, known[0])
    rendered = _render(inner[0], depth)
    if "ge" in limits or "le" in limits:
        return f"{rendered}({limits.get('ge', '')}..{limits.get('le', '')})"
    names = {"min": "min_length", "max": "max_length"}
    sizes = [f"{word} {limits[name]}" for word, name in names.items() if name in limits]
    return f"{rendered}({', '.join(sizes)})" if sizes else rendered
