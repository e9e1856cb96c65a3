"""What came of the built-in model: the card that its training wrote, as rows for people. A copy without a card tells what it knows."""

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import TypeAlias

from taiwa.kernel.records import Json

__all__ = ["CAN", "Row", "card", "figures", "is_there"]

Row: TypeAlias = tuple[str, str]
CAN: tuple[Row, ...] = (
    ("quantities", "word problems of every day, worked out by the calculator: taiwa solve"),
    ("chemistry", "formulas, molar masses, percentages, equations, limiting reagents, by tools: taiwa solve"),
    ("orders", "a café's order desk with state, corrections and totals, in English and Japanese: taiwa chat order"),
    ("asking back", "five scores of a question to documents, a question back, a stand-alone query: taiwa ask"),
)
"""What it learned, and the command that uses it."""


def card() -> Mapping[str, Json]:
    """The card; empty where there is none."""
    try:
        found: Json = json.loads((files("taiwa.models.builtin") / "data" / "card.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def is_there() -> bool:
    """Whether this copy of the program has the model."""
    return (files("taiwa.models.builtin") / "data" / "weights.safetensors").is_file()


def figures(told: Mapping[str, Json]) -> Iterator[Row]:
    """The sizes, the training, what is written exactly of what was held out, and the evaluations, as far as the card says it."""
    size = _inner(told, "size")
    if number := _number(size, "parameters"):
        yield "parameters", f"{number:,.0f} ({_number(size, 'bytes') / 1e6:.1f} MB)"
    if number := _number(size, "context"):
        yield "reads", f"{number:,.0f} tokens at most; {_number(size, 'vocab'):,.0f} different ones"
    training = _inner(told, "training")
    if number := _number(training, "tokens"):
        yield "trained", f"on {number / 1e6:,.1f} million tokens in {_number(training, 'minutes'):,.0f} minutes"
    held = _inner(told, "held_out")
    for name in held:
        whole = _inner(_inner(held, name), "all")
        if _number(whole, "of"):
            share, of = _number(whole, "share"), _number(whole, "of")
            yield f"exact: {name}", f"{share:.1%} of {of:,.0f} held-out samples{_interval(whole)}"
    yield from _evaluated(told.get("headline"))
    yield from _speeds(_inner(told, "speed"))


def _evaluated(rows: Json) -> Iterator[Row]:
    """What came of it on text that no one here wrote; the held-out samples are told before."""
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and _number(row, "of") and not str(row.get("what", "held-out")).startswith("held-out"):
            shown = "{:.3f}" if row.get("unit") == "AUC" else "{:.1%}"
            yield (
                str(row["what"]),
                f"{shown.format(_number(row, 'value'))} of {_number(row, 'of'):,.0f}{_interval(row, shown)}",
            )


def _speeds(told: Mapping[str, Json]) -> Iterator[Row]:
    rows = told.get("rows")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("name"), str) and _number(row, "tokens_a_second"):
            yield f"speed: {row['name']}", f"{_number(row, 'tokens_a_second'):,.0f} tokens a second on one core"


def _interval(told: Mapping[str, Json], shown: str = "{:.1%}") -> str:
    bounds = told.get("interval")
    if not isinstance(bounds, list) or len(bounds) != 2:
        return ""
    low, high = (bound if isinstance(bound, (int, float)) else 0.0 for bound in bounds)
    return f" ({shown.format(low)} to {shown.format(high)})"


def _inner(told: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    found = told.get(name)
    return found if isinstance(found, dict) else {}


def _number(told: Mapping[str, Json], name: str) -> float:
    found = told.get(name)
    return float(found) if isinstance(found, (int, float)) else 0.0
