"""Items with expected answers, and readers for them: JSON arrays, objects around one array, and JSON lines.

Questions are read in the forms of NumGLUE and GSM8K, and as rows with `question` and `answer` or `gold`. A row that cannot be
used is an error that names file, line and field. If a reader is given a list `skipped`, the message is appended to it and
the other rows are used; a report counts skipped rows.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, Self, TypeAlias, TypeVar, cast

from taiwa.apps.catalog import read_bounded
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, value


@value(tag="eval-item")
class Item:
    """One question with its expected answer; `kind` is its class, `line` its line in the file.

    `more` holds further fields for the measurement.
    """

    id: str
    text: str
    gold: str
    kind: str = ""
    line: int = 0
    more: Mapping[str, Json] = field(default_factory=dict[str, Json])


@value(tag="data-set")
class DataSet:
    """The items of a file, its name and the SHA-256 of its bytes; `numbered` data has the types of NumGLUE.

    `skipped` has the location and reason of each row that was left out.
    """

    name: str
    digest: str
    items: tuple[Item, ...]
    numbered: bool = False
    skipped: tuple[str, ...] = ()


Skipped: TypeAlias = list[str] | None
"""Collects the messages about rows that cannot be used; None stops at the first one."""
R = TypeVar("R")
T = TypeVar("T")


def usable(rows: Iterable[R], read: Callable[[R], T], skipped: Skipped) -> Iterator[T]:
    """Read rows, and leave out those that cannot be used.

    Raises:
        InputError: a row cannot be used, and `skipped` is None.
    """
    for row in rows:
        try:
            item = read(row)
        except InputError as error:
            if skipped is None:
                raise
            skipped.append(error.message)
        else:
            yield item


MAX_FILE_BYTES = 256 * 2**20
SPACE = re.compile(r"[ \t\r\n]*")
AROUND_ARRAY = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[')
"""The beginning of an object whose first field is an array."""
STEPS = re.compile(r"<<[^<>]*=[^<>]*>>")
GSM_GOLD = "####"
CLASSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("mass percentage", r"mass\s+percent|percent\w*\s+(?:by\s+mass|of)|composition"),
        ("moles required", r"moles?\b.*\b(?:required|needed)\b"),
        ("moles formed", r"moles?\b.*\b(?:formed|produced)\b|\b(?:form|produce)s?\b.*\bmoles?\b"),
        ("amount", r"\b(?:amount|mass)\s+of\b.*\b(?:formed|produced|required|needed)\b"),
        ("molecular weight", r"(?:molecular|molar|formula)\s+(?:weight|mass)|\bweigh"),
        ("speed", r"\btrain\b|\bspeed\b|\bkm\b|\bkmph\b|\bm/s\b"),
        ("amount", r"\bhow\s+much\b|\bamount\b"),
    )
)
"""Classes of NumGLUE's Task 2 by wording; the first match counts."""


@dataclass(frozen=True, slots=True)
class Fields:
    """A row and its position. Each method reads one field and raises an `InputError` that names its position and type."""

    where: str
    row: Mapping[str, Json]

    def __contains__(self, name: str) -> bool:
        return self.row.get(name) is not None

    def invalid(self, name: str, why: str) -> NoReturn:
        """Raise an error about a field.

        Raises:
            InputError: always.
        """
        missing = name not in self.row
        raise InputError(f"{self.where}: the field {name!r} {'is missing' if missing else why}")

    def text(self, name: str, default: str | None = None) -> str:
        """Read a non-empty text; a number counts as text."""
        part = self.row.get(name)
        if part in (None, "") and default is not None:
            return default
        if isinstance(part, bool) or not isinstance(part, (str, int, float)) or not str(part).strip():
            self.invalid(name, "must be a text")
        return str(part).strip()

    def array(self, name: str) -> Sequence[Json]:
        """Read a list."""
        part = self.row.get(name)
        if not isinstance(part, list):
            self.invalid(name, "must be a list")
        return part

    def texts(self, name: str) -> tuple[str, ...]:
        """Read a list of texts; a single text is a list of one."""
        if isinstance(part := self.row.get(name), str):
            return (part,)
        return tuple(str(each) for each in self.array(name) if isinstance(each, (str, int, float)))

    def parts(self, name: str) -> tuple[Self, ...]:
        """Read a list of objects."""
        parts: list[Self] = []
        for number, each in enumerate(self.array(name)):
            if not isinstance(each, dict):
                self.invalid(name, "must be a list of objects")
            parts.append(type(self)(f"{self.where}: {name}[{number}]", each))
        return tuple(parts)


def read_questions(path: Path, kinds: frozenset[str] = frozenset(), skipped: Skipped = None) -> DataSet:
    """Read the questions of a file; with `kinds`, only those types or classes.

    Raises:
        InputError: the file or a row cannot be used, or no question remains.
    """
    raw, rows = read_rows(path, skipped)
    items = question_items(path, rows, kinds, skipped)
    if not items:
        more = f" of {', '.join(sorted(kinds))}" if kinds else ""
        raise InputError(skipped[0] if skipped else f"{path} holds no question{more}")
    numbered = any(str(row.get("type")).startswith("Type_") for _, row in rows)
    return DataSet(path.name, sha256(raw).hexdigest(), items, numbered, tuple(skipped or ()))


def read_rows(path: Path, skipped: Skipped = None) -> tuple[bytes, list[tuple[int, Mapping[str, Json]]]]:
    """Read a file of JSON objects: its bytes, and every object with its line number.

    Raises:
        InputError: the file cannot be read; the message names the line.
    """
    raw, text = read_bounded(path, MAX_FILE_BYTES, f"is larger than {MAX_FILE_BYTES >> 20} MB; split it")
    return raw, list(_objects(path, text, skipped))


def read_fields(path: Path, skipped: Skipped = None) -> tuple[str, tuple[Fields, ...]]:
    """Read a file of JSON objects as rows with positions: the SHA-256 of its bytes, and the rows.

    Raises:
        InputError: the file cannot be read or has no rows.
    """
    raw, rows = read_rows(path, skipped)
    if not rows:
        raise InputError(skipped[0] if skipped else f"{path} holds no row")
    return sha256(raw).hexdigest(), tuple(Fields(f"{path}:{line}", row) for line, row in rows)


def question_items(
    path: Path, rows: list[tuple[int, Mapping[str, Json]]], kinds: frozenset[str] = frozenset(), skipped: Skipped = None
) -> tuple[Item, ...]:
    """Make items of rows, only of the given `kinds` if there are any; a row without an id gets its number in the file.

    Raises:
        InputError: a row has no question or no answer, or two rows have one id.
    """
    wanted = (
        (number, line, row) for number, (line, row) in enumerate(rows)
        if not kinds or kinds & {_kind(row, str(row.get("question"))), str(row.get("type")), str(row.get("kind"))}
    )  # fmt: skip
    items: dict[str, Item] = {}
    for item in usable(wanted, lambda each: _item(path, each[1], each[2], str(each[0])), skipped):
        if item.id in items:
            raise InputError(f"{path}:{item.line}: duplicate id {item.id!r}, first on line {items[item.id].line}")
        items[item.id] = item
    return tuple(items.values())


def _objects(path: Path, text: str, skipped: Skipped) -> Iterator[tuple[int, Mapping[str, Json]]]:
    start = _array_start(text)
    if start is not None:
        yield from usable(_array(path, text, start), lambda each: (each[0], _object(path, *each)), skipped)
        return
    lines = ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    yield from usable(lines, lambda each: (each[0], _object(path, each[0], _parsed(path, *each))), skipped)


def _array_start(text: str) -> int | None:
    """Return the start of the array in a file that is an array or an object around one; None for JSON lines or invalid JSON."""
    if text.lstrip()[:1] == "[":
        return text.index("[")
    around = AROUND_ARRAY.match(text)
    try:
        whole = cast("Json", json.loads(text)) if around else None
    except (ValueError, RecursionError):
        return None
    return around.end() - 1 if around and isinstance(whole, dict) and len(whole) == 1 else None


def _array(path: Path, text: str, start: int) -> Iterator[tuple[int, Json]]:
    """Yield the elements of an array, each with its line number."""
    decoder, at, line, counted = json.JSONDecoder(), start + 1, 1, 0
    while True:
        at = _past_space(text, at)
        line, counted = line + text.count("\n", counted, at), at
        if text[at : at + 1] == "]":
            return
        try:
            element, at = cast("tuple[Json, int]", decoder.raw_decode(text, at))
        except json.JSONDecodeError as error:
            raise _invalid_json(path, error.lineno, error.msg) from None
        except RecursionError:
            raise _invalid_json(path, line, "nested too deeply") from None
        yield line, element
        at = _past_space(text, at)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "]":
            raise _invalid_json(path, line + text.count("\n", counted, at), "expected ',' or ']' after an element")


def _past_space(text: str, at: int) -> int:
    space = SPACE.match(text, at)
    return at if space is None else space.end()


def _parsed(path: Path, line: int, text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except json.JSONDecodeError as error:
        raise _invalid_json(path, line, f"{error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError):
        raise _invalid_json(path, line, "number too long, or nested too deeply") from None


def _invalid_json(path: Path, line: int, why: str) -> InputError:
    return InputError(f"{path}:{line}: not JSON: {why}")


def _object(path: Path, line: int, element: Json) -> Mapping[str, Json]:
    if not isinstance(element, dict):
        raise InputError(f'{path}:{line}: a row must be an object such as {{"question": …, "answer": …}}')
    return element


def _item(path: Path, line: int, row: Mapping[str, Json], number: str) -> Item:
    fields = Fields(f"{path}:{line}", row)
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        fields.invalid("question", "must be a text")
    field = "gold" if "gold" in row and "answer" not in row else "answer"
    gold = _gold(row.get(field))
    if not gold:
        fields.invalid(field, "must be a number or a text")
    name = row.get("id")
    if name is not None and (isinstance(name, bool) or not isinstance(name, (int, str)) or name == ""):
        fields.invalid("id", "must be a text or an integer")
    return Item(number if name is None else str(name), _question_text(row, question), gold, _kind(row, question), line)


def _gold(answer: Json) -> str:
    """Return the expected answer as text, or ''. GSM8K's follows its solution; NumGLUE's may have the form of DROP."""
    if isinstance(answer, dict):
        spans = answer.get("spans")
        answer = answer.get("number") or (spans[0] if isinstance(spans, list) and spans else None)
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    if answer is None or isinstance(answer, (bool, list, dict)):
        return ""
    text = str(answer)
    if GSM_GOLD in text:
        return text.rpartition(GSM_GOLD)[2].strip().replace(",", "")
    return text.strip()


def _question_text(row: Mapping[str, Json], question: str) -> str:
    passage = row.get("passage")
    options = [f"{name}: {row[name]}" for name in ("option1", "option2") if isinstance(row.get(name), str)]
    parts = [passage] if isinstance(passage, str) else []
    return "\n".join([*parts, question.strip(), *options])


def _kind(row: Mapping[str, Json], question: str) -> str:
    kind, numbered, answer = row.get("kind"), row.get("type"), row.get("answer")
    if isinstance(kind, str) and kind:
        return kind
    if isinstance(numbered, str) and numbered and numbered != "Type_2":
        return numbered
    if isinstance(answer, str) and GSM_GOLD in answer:
        steps = len(STEPS.findall(answer))
        return f"{steps} step{'s' if steps != 1 else ''}"
    if numbered is None:
        return ""
    return next((name for name, pattern in CLASSES if pattern.search(question)), "other")
