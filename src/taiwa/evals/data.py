"""Items with expected answers, and readers for them: JSON arrays, objects around one array, and JSON lines.

Questions are read in the forms of NumGLUE and GSM8K, and as rows with `question` and `answer` or `gold`. A row that cannot be
used is an error that names file, line and field: an evaluation on a part of its data would be misleading.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, cast

from taiwa.apps.catalog import read_bounded
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json, value


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
    """The items of a file, its name and the SHA-256 of its bytes; `numbered` data has the types of NumGLUE."""

    name: str
    digest: str
    items: tuple[Item, ...]
    numbered: bool = False


MAX_FILE_BYTES = 256 * 2**20
SPACE = re.compile(r"[ \t\r\n]*")
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
        found = self.row.get(name)
        if found is None and default is not None:
            return default
        if isinstance(found, bool) or not isinstance(found, (str, int, float)) or not str(found).strip():
            if default is not None and found == "":
                return default
            self.invalid(name, "must be a text")
        return str(found).strip()

    def flag(self, name: str) -> bool:
        """Read true or false, also as 1 or 0."""
        found = self.row.get(name)
        if not isinstance(found, bool) and found not in (0, 1):
            self.invalid(name, "must be true or false")
        return bool(found)

    def number(self, name: str) -> float:
        """Read a number, also written as text."""
        try:
            return float(self.text(name))
        except ValueError:
            self.invalid(name, "must be a number")

    def array(self, name: str) -> Sequence[Json]:
        """Read a list."""
        found = self.row.get(name)
        if not isinstance(found, list):
            self.invalid(name, "must be a list")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """Read a list of texts; a single text is a list of one."""
        found = self.row.get(name)
        if isinstance(found, str):
            return (found,)
        return tuple(str(each) for each in self.array(name) if isinstance(each, (str, int, float)))

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """Read a list of pairs of texts."""
        found: list[tuple[str, str]] = []
        for each in self.array(name):
            if not isinstance(each, list) or len(each) < 2 or not all(isinstance(part, str) for part in each[:2]):
                self.invalid(name, "must be a list of pairs of texts")
            found.append((str(each[0]), str(each[1])))
        return tuple(found)

    def parts(self, name: str) -> "tuple[Fields, ...]":
        """Read a list of objects."""
        found: list[Fields] = []
        for number, each in enumerate(self.array(name)):
            if not isinstance(each, dict):
                self.invalid(name, "must be a list of objects")
            found.append(Fields(f"{self.where}: {name}[{number}]", each))
        return tuple(found)

    def part(self, name: str) -> "Fields":
        """Read an object."""
        found = self.row.get(name)
        if not isinstance(found, dict):
            self.invalid(name, "must be an object")
        return Fields(f"{self.where}: {name}", found)


def read_questions(path: Path, kinds: frozenset[str] = frozenset()) -> DataSet:
    """Read the questions of a file; with `kinds`, only those types or classes.

    Raises:
        InputError: the file or a row cannot be used, or no question remains.
    """
    raw, rows = read_rows(path)
    items = question_items(path, rows, kinds)
    if not items:
        more = f" of {', '.join(sorted(kinds))}" if kinds else ""
        raise InputError(f"{path} holds no question{more}")
    numbered = any(str(row.get("type")).startswith("Type_") for _, row in rows)
    return DataSet(path.name, sha256(raw).hexdigest(), items, numbered)


def read_rows(path: Path) -> tuple[bytes, list[tuple[int, Mapping[str, Json]]]]:
    """Read a file of JSON objects: its bytes, and every object with its line number.

    Raises:
        InputError: the file cannot be read; the message names the line.
    """
    raw, text = read_bounded(path, MAX_FILE_BYTES, f"is larger than {MAX_FILE_BYTES >> 20} MB; split it")
    return raw, list(_objects(path, text))


def read_fields(path: Path) -> tuple[str, tuple[Fields, ...]]:
    """Read a file of JSON objects as rows with positions: the SHA-256 of its bytes, and the rows.

    Raises:
        InputError: the file cannot be read or has no rows.
    """
    raw, rows = read_rows(path)
    if not rows:
        raise InputError(f"{path} holds no row")
    return sha256(raw).hexdigest(), tuple(Fields(f"{path}:{line}", row) for line, row in rows)


def question_items(
    path: Path, rows: list[tuple[int, Mapping[str, Json]]], kinds: frozenset[str] = frozenset()
) -> tuple[Item, ...]:
    """Make items of rows; a row without an id gets its number in the file.

    Raises:
        InputError: a row has no question or no answer, or two rows have one id.
    """
    items: list[Item] = []
    lines: dict[str, int] = {}
    for number, (line, row) in enumerate(rows):
        item = _item(path, line, row, str(number))
        if item.id in lines:
            raise InputError(f"{path}:{line}: duplicate id {item.id!r}, first on line {lines[item.id]}")
        lines[item.id] = line
        if not kinds or kinds & {item.kind, str(row.get("type")), str(row.get("kind"))}:
            items.append(item)
    return tuple(items)


def _objects(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Json]]]:
    if text.lstrip()[:1] == "[":
        yield from _array(path, text, text.index("["))
        return
    whole = _one_object(text)
    if whole is not None:
        key = next((key for key, part in whole.items() if isinstance(part, list)), None)
        if key is not None and len(whole) == 1:
            yield from _array(path, text, text.index("[", text.index(json.dumps(key)[1:-1])))
            return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _object(path, number, _parsed(path, number, line))


def _one_object(text: str) -> Mapping[str, Json] | None:
    """Return the object if the file is a single one, else None (JSON lines, invalid JSON)."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Json]", found) if isinstance(found, dict) else None


def _array(path: Path, text: str, start: int) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """Yield the elements of an array, each with its line number."""
    decoder, at, line, counted = json.JSONDecoder(), start + 1, 1, 0
    while True:
        at = _past_space(text, at)
        line, counted = line + text.count("\n", counted, at), at
        if text[at : at + 1] == "]":
            return
        try:
            found, at = cast("tuple[Json, int]", decoder.raw_decode(text, at))
        except json.JSONDecodeError as error:
            _raise_invalid_json(path, error.lineno, error.msg)
        except RecursionError:
            _raise_invalid_json(path, line, "nested too deeply")
        yield line, _object(path, line, found)
        at = _past_space(text, at)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "]":
            _raise_invalid_json(path, line + text.count("\n", counted, at), "expected ',' or ']' after an element")


def _past_space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return at if found is None else found.end()


def _parsed(path: Path, line: int, text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except json.JSONDecodeError as error:
        _raise_invalid_json(path, line, f"{error.msg} at character {error.pos + 1}")
    except (ValueError, RecursionError):
        _raise_invalid_json(path, line, "number too long, or nested too deeply")


def _raise_invalid_json(path: Path, line: int, why: str) -> NoReturn:
    raise InputError(f"{path}:{line}: not JSON: {why}") from None


def _object(path: Path, line: int, found: Json) -> Mapping[str, Json]:
    if not isinstance(found, dict):
        raise InputError(f'{path}:{line}: a row must be an object such as {{"question": …, "answer": …}}')
    return found


def _item(path: Path, line: int, row: Mapping[str, Json], number: str) -> Item:
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise InputError(
            f"{path}:{line}: the field 'question' {'must be a text' if 'question' in row else 'is missing'}"
        )
    field = next((name for name in ("answer", "gold") if name in row), None)
    if field is None:
        raise InputError(f"{path}:{line}: the field 'answer' is missing")
    gold = _gold(row[field])
    if not gold:
        raise InputError(f"{path}:{line}: the field {field!r} must be a number or a text")
    name = row.get("id")
    if name is not None and (isinstance(name, bool) or not isinstance(name, (int, str)) or name == ""):
        raise InputError(f"{path}:{line}: the field 'id' must be a text or an integer")
    return Item(number if name is None else str(name), _question_text(row, question), gold, _kind(row, question), line)


def _gold(given: Json) -> str:
    """Return the expected answer as text, or ''. GSM8K's follows its solution; NumGLUE's may have the form of DROP."""
    if isinstance(given, dict):
        spans = given.get("spans")
        given = given.get("number") or (spans[0] if isinstance(spans, list) and spans else None)
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if given is None or isinstance(given, (bool, list, dict)):
        return ""
    text = str(given)
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
