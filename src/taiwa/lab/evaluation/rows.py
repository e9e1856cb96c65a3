"""The rows of an evaluation and the header of its file, as values and as lines of JSON."""

from collections.abc import Mapping
from dataclasses import field
from typing import cast

from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import Usage

__all__ = ["Fault", "Header", "Row", "fault", "read_header", "read_row", "written"]

FORMAT = "1"
"""Rows of unreleased versions have the number 1 here, and other names of errors."""
SAME = ("evaluation", "data_hash", "model", "options")
"""What two runs must share for their rows to belong together."""


@value(tag="row-error")
class Fault:
    """Why an item has no measurement: the error's name, its code where it has one, and its words."""

    code: str
    message: str


@value(tag="eval-row")
class Row:
    """One item under one setting: what was found, or why nothing was; and what it cost in either case."""

    setting: str
    id: str
    kind: str = ""
    found: Mapping[str, Json] = field(default_factory=dict[str, Json])
    spent: Spent = Spent()
    error: Fault | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What a row is counted by, once."""
        return self.setting, self.id


@value(tag="eval-header")
class Header:
    """What was evaluated, by which program, and when (ISO 8601, UTC); `options` is all that rows depend on beside these."""

    evaluation: str
    data: str
    data_hash: str
    model: str
    date: str
    program: str
    settings: tuple[str, ...] = ()
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    scripted: bool = False

    def differs(self, other: "Header") -> str:
        """Name what keeps two headers' rows apart; '' where nothing does."""
        return next((name for name in SAME if getattr(self, name) != getattr(other, name)), "")


def fault(error: TaiwaError) -> Fault:
    """The error of a row."""
    code = getattr(error, "code", "")
    return Fault(f"{error.tag}{f'/{code}' if code else ''}", error.message)


def written(what: Header | Row) -> dict[str, Json]:
    """A header or a row as a JSON object."""
    if isinstance(what, Header):
        return {
            "format": FORMAT, "evaluation": what.evaluation, "model": what.model, "scripted": what.scripted,
            "data": what.data, "data_hash": what.data_hash, "date": what.date, "program": what.program,
            "settings": list(what.settings), "options": dict(what.options),
        }  # fmt: skip
    spent = what.spent
    return {
        "setting": what.setting, "id": what.id, "kind": what.kind, "found": dict(what.found),
        "requests": spent.requests, "tool_calls": spent.tool_calls, "unmetered": spent.unmetered,
        "usage": _tokens(spent.usage), "usage_estimated": _tokens(spent.estimated),
        "cost": _money(spent.cost), "cost_at_most": _money(spent.cost_at_most), "ms": round(spent.seconds * 1000, 3),
        "error": None if what.error is None else {"code": what.error.code, "message": what.error.message},
    }  # fmt: skip


def _tokens(usage: Usage) -> dict[str, Json]:
    return {
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }  # fmt: skip


def _money(nano: int | None) -> float | None:
    return None if nano is None else nano / 1e9


def read_header(line: Mapping[str, Json]) -> Header:
    """Read a header.

    Raises:
        ValueError: it is none, or of a format to come.
    """
    if line.get("format") != FORMAT:
        raise ValueError(f"its format is {line.get('format')!r}, and this program reads {FORMAT}")
    words = {name: str(line[name]) for name in ("evaluation", "data", "data_hash", "model", "date", "program")}
    settings, options = cast("list[str]", line["settings"]), cast("dict[str, Json]", line["options"])
    return Header(**words, settings=tuple(settings), options=options, scripted=line.get("scripted") is True)


def read_row(line: Mapping[str, Json]) -> Row:
    """Read a row.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    error = cast("dict[str, str] | None", line["error"])
    spent = Spent(
        cast("int", line["requests"]), cast("int", line["tool_calls"]), _usage(line["usage"]), cast("int", line["unmetered"]),
        _nano(line["cost"]), cast("float", line["ms"]) / 1000, _usage(line["usage_estimated"]), _nano(line["cost_at_most"]),
    )  # fmt: skip
    return Row(
        str(line["setting"]), str(line["id"]), str(line["kind"]), cast("dict[str, Json]", line["found"]), spent,
        None if error is None else Fault(error["code"], error["message"]),
    )  # fmt: skip


def _usage(given: Json) -> Usage:
    return Usage(**cast("dict[str, int]", given))


def _nano(cost: Json) -> int | None:
    return None if cost is None else round(cast("float", cost) * 1e9)
