"""Files of data sets as rows: JSON lines, JSON arrays, objects around them, columns, tables with tabs, and folders of these.

A row knows where it stands, so that whatever is wrong with it is one line that names file, place and field.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NoReturn, cast

from taiwa.apps.files import bounded
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.lab.evaluation.readers import MOST_BYTES, read_rows

__all__ = ["Fields", "load"]

AROUND = ("data", "questions")
"""What an object calls the array that it holds."""
LONGEST_FIELD = 2**24


@dataclass(frozen=True, slots=True)
class Fields:
    """One row, and where it stands. Every reading of a field raises `InputError` where it is not what it must be."""

    where: str
    row: Mapping[str, Json]

    def __contains__(self, name: str) -> bool:
        return self.row.get(name) is not None

    def fault(self, name: str, why: str) -> NoReturn:
        """Say what is wrong with a field.

        Raises:
            InputError: always.
        """
        missing = name not in self.row
        raise InputError(f"{self.where}: the field {name!r} {'is missing' if missing else why}")

    def text(self, name: str, default: str | None = None) -> str:
        """A text that is not empty; a number counts as one."""
        found = self.row.get(name)
        if found is None and default is not None:
            return default
        if isinstance(found, bool) or not isinstance(found, (str, int, float)) or not str(found).strip():
            if default is not None and found == "":
                return default
            self.fault(name, "is no text")
        return str(found).strip()

    def flag(self, name: str) -> bool:
        """True or false, also as 1 and 0."""
        found = self.row.get(name)
        if not isinstance(found, bool) and found not in (0, 1):
            self.fault(name, "is neither true nor false")
        return bool(found)

    def number(self, name: str) -> float:
        """A number, also where it is written as a text."""
        try:
            return float(self.text(name))
        except ValueError:
            self.fault(name, "is no number")

    def array(self, name: str) -> Sequence[Json]:
        """A list."""
        found = self.row.get(name)
        if not isinstance(found, list):
            self.fault(name, "is no list")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; a text alone is a list of one."""
        found = self.row.get(name)
        if isinstance(found, str):
            return (found,)
        return tuple(str(each) for each in self.array(name) if isinstance(each, (str, int, float)))

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """A list of pairs of texts."""
        found: list[tuple[str, str]] = []
        for each in self.array(name):
            if not isinstance(each, list) or len(each) < 2 or not all(isinstance(part, str) for part in each[:2]):
                self.fault(name, "is no list of pairs of texts")
            found.append((str(each[0]), str(each[1])))
        return tuple(found)

    def parts(self, name: str) -> "tuple[Fields, ...]":
        """A list of objects, each of which knows where it stands."""
        found: list[Fields] = []
        for number, each in enumerate(self.array(name)):
            if not isinstance(each, dict):
                self.fault(name, "is no list of objects")
            found.append(Fields(f"{self.where}: {name}[{number}]", each))
        return tuple(found)

    def part(self, name: str) -> "Fields":
        """An object."""
        found = self.row.get(name)
        if not isinstance(found, dict):
            self.fault(name, "is no object")
        return Fields(f"{self.where}: {name}", found)


def load(path: Path) -> tuple[str, tuple[Fields, ...]]:
    """Read a file or a folder of files: the SHA-256 of all bytes, and the rows.

    Raises:
        InputError: something cannot be read, or holds no row.
    """
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix in (".json", ".jsonl") and each.is_file())
        read = [_load(each) for each in files]
        digest = sha256(b"".join(sha256(raw).digest() for raw, _ in read)).hexdigest()
        rows = tuple(row for _, rows in read for row in rows)
    else:
        raw, rows = _load(path)
        digest = sha256(raw).hexdigest()
    if not rows:
        raise InputError(f"{path} holds no row")
    return digest, rows


def _load(path: Path) -> tuple[bytes, tuple[Fields, ...]]:
    if path.suffix.lower() in (".tsv", ".qrel", ".qrels"):
        return _table(path)
    whole = _whole(path)
    if whole is None:
        raw, rows = read_rows(path)
        return raw, tuple(Fields(f"{path}:{line}", row) for line, row in rows)
    raw, found = whole
    return raw, tuple(_of_object(path, found))


def _whole(path: Path) -> tuple[bytes, Mapping[str, Json]] | None:
    """A file that is one object; None for anything else, which is read by rows."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        raw = path.read_bytes()
        if raw.lstrip()[:1] != b"{":
            return None
        found: object = json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return None  # said by who reads rows, with the line
    return (raw, cast("Mapping[str, Json]", found)) if isinstance(found, dict) else None


def _of_object(path: Path, found: Mapping[str, Json]) -> Iterator[Fields]:
    name = next((name for name in AROUND if isinstance(found.get(name), list)), None)
    if name == "data":
        yield from Fields(str(path), found).parts(name)
    elif found and all(isinstance(column, dict) for column in found.values()):
        columns = cast("Mapping[str, Mapping[str, Json]]", found)
        for key in next(iter(columns.values())):
            yield Fields(f"{path}: row {key!r}", {head: column.get(key) for head, column in columns.items()})
    else:
        yield Fields(f"{path}:1", found)


def _table(path: Path) -> tuple[bytes, tuple[Fields, ...]]:
    """A table with tabs; the first line names its columns."""
    raw, text = bounded(path, MOST_BYTES, f"is larger than {MOST_BYTES >> 20} MB; divide it")
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t")
    try:
        rows = tuple(
            Fields(f"{path}:{reader.line_num}", {str(head): cell for head, cell in row.items()}) for row in reader
        )
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: no table with tabs: {error}") from None
    return raw, rows
