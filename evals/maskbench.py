"""Coverage of JSON Schemas by guides: which schemas are refused, and whether exactly the valid instances are accepted.

A file has one schema per line: `{"id": …, "schema": …, "tests": [{"data": …, "valid": true}, …]}` (MaskBench). An instance
counts as accepted if it can be written with its keys in some order, because a guide fixes the order and validity does not.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from taiwa import constraints
from taiwa.constraints import UnsupportedConstraintError, Vocabulary
from taiwa.constraints.allowed_tokens import MatcherGuide, MatcherState
from taiwa.json_schema import Document, Schema, SchemaLocation, is_object
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.messages import JsonSchema
from taiwa.kernel.serialization import Json, value

__all__ = ["SchemaCoverage", "check_schemas", "coverage_report", "is_writable"]

MAX_STEPS = 5_000
MAX_LOCATIONS = 200
Locations: TypeAlias = tuple[SchemaLocation, ...]
KnownKey: TypeAlias = tuple[str, Locations]
"""The text of a key, and the schemas of its value."""
BYTES = Vocabulary.of_bytes()
"""Instances are encoded as bytes, so that no tokenisation is preferred."""


@value
class SchemaCoverage:
    """One schema: why it was refused, or the instances that were wrongly accepted or rejected."""

    id: str
    refused: str = ""
    let_through: tuple[str, ...] = ()
    kept_out: tuple[str, ...] = ()


class _TooManyStepsError(Exception):
    pass


class _Writer:
    """A search over the orders of an object's keys, that of its schemas first, in at most `MAX_STEPS` steps."""

    def __init__(self, schema: Schema) -> None:
        self.left = MAX_STEPS
        self.document = Document(schema)
        self.divided = cache(_tokens_of)

    def text(self, state: MatcherState, text: str) -> MatcherState | None:
        self.left -= 1
        if self.left < 0:
            raise _TooManyStepsError
        tokens = self.divided(text)
        return state.go(tokens) if state.takes(tokens) else None

    def held(self, state: MatcherState, data: Json, places: Locations) -> Iterator[MatcherState]:
        if isinstance(data, dict):
            opened = self.text(state, "{")
            if opened is not None:
                wide = self.opened(places)
                listed = [name for place in wide for name in _keyword_map(place, "properties")]
                likely = sorted(data, key=lambda key: listed.index(key) if key in listed else len(listed))
                known = {key: (f"{json.dumps(key, ensure_ascii=False)}:", _member_schemas(wide, key)) for key in data}
                yield from self.keys(opened, data, tuple(likely), known)
        elif isinstance(data, list):
            opened = self.text(state, "[")
            if opened is not None:
                yield from self.items(opened, data, 0, self.opened(places))
        else:
            done = self.text(state, json.dumps(data, ensure_ascii=False))
            if done is not None:
                yield done

    def keys(
        self, state: MatcherState, data: Mapping[str, Json], left: tuple[str, ...], known: Mapping[str, KnownKey]
    ) -> Iterator[MatcherState]:
        if not left:
            closed = self.text(state, "}")
            if closed is not None:
                yield closed
            return
        comma = "," if len(left) < len(data) else ""
        for key in left:
            name, below = known[key]
            begun = self.text(state, comma + name)
            if begun is not None:
                rest = tuple(each for each in left if each != key)
                for written in self.held(begun, data[key], below):
                    yield from self.keys(written, data, rest, known)

    def items(self, state: MatcherState, data: list[Json], number: int, places: Locations) -> Iterator[MatcherState]:
        if number == len(data):
            closed = self.text(state, "]")
            if closed is not None:
                yield closed
            return
        begun = self.text(state, ",") if number else state
        if begun is not None:
            for written in self.held(begun, data[number], _item_schemas(places)):
                yield from self.items(written, data, number + 1, places)

    def opened(self, places: Locations) -> Locations:
        """Return the schemas with those that they refer to or contain."""
        found: list[SchemaLocation] = []
        waiting = list(places)
        while waiting and len(found) < MAX_LOCATIONS:
            place = waiting.pop(0)
            if not is_object(place.schema):
                continue
            found.append(place)
            reference = place.schema.get("$ref")
            target = self.document.find(reference, place.base) if isinstance(reference, str) else None
            waiting = [*([target] if target else []), *_subschemas(place), *waiting]
        return tuple(found)


def _tokens_of(text: str) -> tuple[int, ...]:
    return BYTES.divide(text.encode())


def _subschemas(place: SchemaLocation) -> Iterator[SchemaLocation]:
    for keyword in ("allOf", "anyOf", "oneOf"):
        listed = place.schema.get(keyword) if is_object(place.schema) else None
        if isinstance(listed, list):
            yield from (SchemaLocation(cast("Schema", part), "", place.base) for part in listed)


def _keyword_map(place: SchemaLocation, keyword: str) -> Mapping[str, Json]:
    held = place.schema.get(keyword) if is_object(place.schema) else None
    return held if isinstance(held, dict) else {}


def _member_schemas(places: Locations, key: str) -> Locations:
    found: list[SchemaLocation] = []
    for place in places:
        own = _keyword_map(place, "properties").get(key)
        others = [*_keyword_map(place, "patternProperties").values(), _keyword_map(place, "additionalProperties")]
        parts = [own] if own is not None else others
        found += [SchemaLocation(cast("Schema", part), "", place.base) for part in parts]
    return tuple(found)


def _item_schemas(places: Locations) -> Locations:
    return tuple(SchemaLocation(_keyword_map(place, "items"), "", place.base) for place in places)


def is_writable(compiled: MatcherGuide, data: Json, schema: Schema) -> bool:
    """Return whether a guide over bytes accepts a value with its keys in some order; the schema suggests the order."""
    writer = _Writer(schema)
    try:
        return any(state.is_final for state in writer.held(compiled.start(), data, (writer.document.root,)))
    except _TooManyStepsError:
        return False


def check_schemas(rows: Iterable[Mapping[str, Any]], *, strict: bool = True) -> Iterator[SchemaCoverage]:
    """Check the instances of each schema."""
    for row in rows:
        try:
            compiled = constraints.compile(JsonSchema(row["schema"]), BYTES, strict=strict)
        except UnsupportedConstraintError as error:
            yield SchemaCoverage(row["id"], "; ".join(error.clauses))
            continue
        except TaiwaError as error:
            yield SchemaCoverage(row["id"], error.message)
            continue
        wrong: dict[bool, list[str]] = {True: [], False: []}
        for number, test in enumerate(row["tests"]):
            if is_writable(compiled, test["data"], row["schema"]) is not test["valid"]:
                wrong[test["valid"]].append(f"{number}: {test.get('description', '')}")
        yield SchemaCoverage(row["id"], "", tuple(wrong[False]), tuple(wrong[True]))


def coverage_report(path: str | Path, out: str | Path | None = None) -> dict[str, Json]:
    """Check a file of schemas in both modes; write the figures to a file if `out` is given."""
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    report: dict[str, Json] = {"schemas": len(rows), "instances": sum(len(row["tests"]) for row in rows)}
    for mode in ("strict", "lenient"):
        found = list(check_schemas(rows, strict=mode == "strict"))
        refused = Counter(_keyword(each.refused) for each in found if each.refused)
        report[mode] = {
            "compiled": sum(not each.refused for each in found),
            "exact": sum(not (each.refused or each.let_through or each.kept_out) for each in found),
            "let through an invalid instance": [each.id for each in found if each.let_through],
            "kept out a valid instance": [each.id for each in found if each.kept_out],
            "refused for": dict(refused.most_common()),
        }
    if out is not None:
        Path(out).write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return report


def _keyword(refused: str) -> str:
    """Return the keyword of the first clause of a refusal."""
    _, _, rest = refused.partition(": ")
    return rest.split(" ", 1)[0] or refused
