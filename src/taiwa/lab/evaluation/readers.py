"""Reading questions with answers: NumGLUE's own files, GSM8K's, and JSON lines with `question` and `answer` or `gold`.

A file is a JSON array, an object around one array, or JSON lines. What cannot be used is an error that names the file, the
line and the field: an evaluation on half of its data would be worth nothing.
"""

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, cast

from taiwa.apps.files import bounded
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.lab.evaluation.items import DataSet, Item

__all__ = ["question_items", "read_questions", "read_rows"]

MOST_BYTES = 256 * 2**20
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
"""Classes of NumGLUE's Task 2 by wording; the first that fits."""


def read_questions(path: Path, kinds: frozenset[str] = frozenset()) -> DataSet:
    """Read the questions of a file; with `kinds` only those of these types or classes.

    Raises:
        InputError: the file or a row of it cannot be used, or nothing is left of it.
    """
    raw, rows = read_rows(path)
    items = question_items(path, rows, kinds)
    if not items:
        more = f" of {', '.join(sorted(kinds))}" if kinds else ""
        raise InputError(f"{path} holds no question{more}")
    numbered = any(str(row.get("type")).startswith("Type_") for _, row in rows)
    return DataSet(path.name, sha256(raw).hexdigest(), items, numbered)


def read_rows(path: Path) -> tuple[bytes, list[tuple[int, Mapping[str, Json]]]]:
    """Read a file of JSON objects: its bytes, and every object with the number of its line.

    Raises:
        InputError: it cannot be read; the message names the line.
    """
    raw, text = bounded(path, MOST_BYTES, f"is larger than {MOST_BYTES >> 20} MB; divide it")
    return raw, list(_objects(path, text))


def question_items(
    path: Path, rows: list[tuple[int, Mapping[str, Json]]], kinds: frozenset[str] = frozenset()
) -> tuple[Item, ...]:
    """Make items of rows; a row without an id has its number in the file.

    Raises:
        InputError: a row has no question or no answer, or two rows have one id.
    """
    items: list[Item] = []
    lines: dict[str, int] = {}
    for number, (line, row) in enumerate(rows):
        item = _item(path, line, row, str(number))
        if item.id in lines:
            raise InputError(f"{path}:{line}: the id {item.id!r} is that of line {lines[item.id]}, too")
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
    """A file that is one object, perhaps over many lines; None for JSON lines, and for what is broken."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Json]", found) if isinstance(found, dict) else None


def _array(path: Path, text: str, start: int) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """The elements of an array, each with its line."""
    decoder, at, line, counted = json.JSONDecoder(), start + 1, 1, 0
    while True:
        at = _past_space(text, at)
        line, counted = line + text.count("\n", counted, at), at
        if text[at : at + 1] == "]":
            return
        try:
            found, at = cast("tuple[Json, int]", decoder.raw_decode(text, at))
        except json.JSONDecodeError as error:
            _broken(path, error.lineno, error.msg)
        except RecursionError:
            _broken(path, line, "nested too deeply")
        yield line, _object(path, line, found)
        at = _past_space(text, at)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "]":
            _broken(path, line + text.count("\n", counted, at), "neither ',' nor ']' after an element")


def _past_space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return at if found is None else found.end()


def _parsed(path: Path, line: int, text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except json.JSONDecodeError as error:
        _broken(path, line, f"{error.msg} at character {error.pos + 1}")
    except (ValueError, RecursionError):
        _broken(path, line, "a number too long, or nested too deeply")


def _broken(path: Path, line: int, why: str) -> NoReturn:
    raise InputError(f"{path}:{line}: not JSON: {why}") from None


def _object(path: Path, line: int, found: Json) -> Mapping[str, Json]:
    if not isinstance(found, dict):
        raise InputError(f'{path}:{line}: a row is an object such as {{"question": …, "answer": …}}')
    return found


def _item(path: Path, line: int, row: Mapping[str, Json], number: str) -> Item:
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{path}:{line}: the field 'question' {'is no text' if 'question' in row else 'is missing'}")
    field = next((name for name in ("answer", "gold") if name in row), None)
    if field is None:
        raise InputError(f"{path}:{line}: the field 'answer' is missing")
    gold = _gold(row[field])
    if not gold:
        raise InputError(f"{path}:{line}: the field {field!r} is no answer: a number or a text is")
    name = row.get("id")
    if name is not None and (isinstance(name, bool) or not isinstance(name, (int, str)) or name == ""):
        raise InputError(f"{path}:{line}: the field 'id' is neither a text nor a whole number")
    return Item(number if name is None else str(name), _asked(row, question), gold, _kind(row, question), line)


def _gold(given: Json) -> str:
    """The right answer as a text; '' where there is none. GSM8K's stands behind its solution, NumGLUE's may be DROP's."""
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


def _asked(row: Mapping[str, Json], question: str) -> str:
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
