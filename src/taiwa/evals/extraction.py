"""The evaluation of typed extraction on a user's own texts: exact matches and F1 of fields.

A row has `text`, the `expected` value as JSON and, optionally, `id` and `kind`. A field is a path to a scalar in the value, such
as `items[0].name`; it counts as right if the same path holds the same scalar in the expected value.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taiwa.evals.data import DataSet, Fields, Item, Skipped, read_fields, usable
from taiwa.evals.report import (
    FAILED_COLUMN,
    HEAD_COLUMNS,
    Column,
    SetReport,
    bootstrap_mean,
    decimal,
    decimal_with_interval,
    interval_json,
    number_field,
    plain,
    rounded,
    share_marked,
    sum_field,
    with_interval,
)
from taiwa.evals.run import EvalRow, Job, Measurement, ModelTask
from taiwa.flows.extract import DEFAULT_REPAIR, ExtractError, ModeChoice, RepairPolicy, TypedAnswer, extract
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError
from taiwa.kernel.execution import first_request
from taiwa.kernel.messages import Request
from taiwa.kernel.serialization import Json, canonical, digest, record
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.structured import OutputType

SETTING = "extract"


def read_extractions(path: Path, kinds: frozenset[str] = frozenset(), skipped: Skipped = None) -> DataSet:
    """Read texts with the expected values; with `kinds`, only those of these kinds.

    Raises:
        InputError: the file or a row cannot be used, or no text remains.
    """
    digest, rows = read_fields(path, skipped)
    wanted = ((number, row) for number, row in enumerate(rows) if not kinds or row.row.get("kind", path.stem) in kinds)
    items: dict[str, Item] = {}
    for where, item in usable(wanted, lambda each: (each[1].where, _item(path, *each)), skipped):
        if item.id in items:
            raise InputError(f"{where}: duplicate id {item.id!r}")
        items[item.id] = item
    if not items:
        more = f" of {', '.join(sorted(kinds))}" if kinds else ""
        raise InputError(skipped[0] if skipped else f"--only: {path} holds no text{more}")
    return DataSet(path.name, digest, tuple(items.values()), skipped=tuple(skipped or ()))


def _item(path: Path, number: int, row: Fields) -> Item:
    if "expected" not in row.row:
        row.invalid("expected", "must be a JSON value")
    if not isinstance(row.row.get("text"), str):
        row.invalid("text", "must be a text")
    expected = row.row["expected"]
    name, kind, text = row.text("id", str(number)), row.text("kind", path.stem), row.text("text")
    return Item(name, text, canonical(expected).decode(), kind, more={"expected": expected})


@dataclass
class ExtractionTask(ModelTask):
    """The task of `extract`: one typed extraction for each text."""

    output_type: OutputType[Any]
    repair: RepairPolicy = DEFAULT_REPAIR
    mode: ModeChoice = "auto"
    name: str = "extract"
    settings: tuple[str, ...] = (SETTING,)

    @property
    def options(self) -> Mapping[str, Json]:
        """Everything that a value depends on besides text and model."""
        schema = digest(self.output_type.schema())
        return {"type": schema, "repair": record(self.repair), "mode": self.mode}

    def program(self, text: str) -> Program[TypedAnswer[Any]]:
        """Return the program that extracts from a text."""
        return extract(self.output_type, text, repair=self.repair, mode=self.mode)

    def first_request(self, job: Job) -> Request:
        """Return the first request of a job without sending it."""
        return first_request(self.program(job.item.text), self.required_model.capabilities)

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:
        """Extract one value and compare it; a value that cannot be read has no fields."""
        expected = job.item.more["expected"]
        try:
            done = await self.runtime(limits).run_result(self.program(job.item.text))
        except ExtractError as error:
            spent: Any = error.spent
            scores = {**compare_values(None, expected), "exact": False, "valid": False, "attempts": len(error.tries)}
            return Measurement(scores, spent) if spent is not None else Measurement(scores)
        got = self.output_type.dump(done.value.value)
        scores = compare_values(got, expected)
        return Measurement({**scores, "valid": True, "attempts": len(done.value.attempts), "value": got}, done.spent)


def compare_values(got: Json, expected: Json) -> dict[str, Json]:
    """Compare two values: whether they are equal, and the F1 of their fields.

    >>> compare_values({"name": "tea", "count": 2}, {"name": "tea", "count": 3})
    {'exact': False, 'fields': 2, 'expected_fields': 2, 'right_fields': 1, 'f1': 0.5}
    """
    actual, wanted = Counter(_fields(got, "")), Counter(_fields(expected, ""))
    right = sum((actual & wanted).values())
    total = sum(actual.values()) + sum(wanted.values())
    exact = canonical(got) == canonical(expected)
    return {
        "exact": exact, "fields": sum(actual.values()), "expected_fields": sum(wanted.values()), "right_fields": right,
        "f1": 2 * right / total if total else float(exact),
    }  # fmt: skip


def _fields(value: Json, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the canonical text of each scalar; null counts as absent."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _fields(part, f"{path}.{name}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _fields(part, f"{path}[{number}]")
    elif value is not None:
        yield path, canonical(value)


def _extraction_line(rows: Sequence[EvalRow]) -> dict[str, Json]:
    exact, valid = share_marked(rows, "exact"), share_marked(rows, "valid")
    scores = [number_field(row, "f1") for row in rows]
    right, stated = sum_field(rows, "right_fields"), sum_field(rows, "fields")
    return {
        "exact": exact.share, "exact_interval": interval_json(exact.interval), "valid": valid.share,
        "valid_interval": interval_json(valid.interval), "f1": rounded(sum(scores) / len(scores) if scores else None),
        "f1_interval": interval_json(bootstrap_mean(scores)),
        "field_precision": rounded(right / stated if stated else None),
        "attempts": sum_field(rows, "attempts"),
    }  # fmt: skip


EXTRACTION_REPORT = SetReport(
    _extraction_line,
    (
        *HEAD_COLUMNS,
        Column("exact %", with_interval("exact", "exact_interval"), figure=True),
        Column("field F1", decimal_with_interval("f1"), figure=True),
        Column("field precision", decimal("field_precision"), figure=True, main=False),
        Column("valid %", with_interval("valid", "valid_interval"), figure=True),
        Column("attempts", plain("attempts"), main=False),
        FAILED_COLUMN,
    ),
    "exact",
    "exact matches, %",
    ("Intervals at 95 %: Wilson's for shares, of 1,000 draws of the texts for F1.",),
)
