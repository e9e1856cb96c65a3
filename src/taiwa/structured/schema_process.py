"""Checks of JSON Schemas, and of values against them, in child processes with limits on time and memory; see `taiwa.isolation`.

A schema is a program that a caller of the server may have written, and the text that it reads is a model's: no bound on its
form bounds what both cost together. Patterns match in linear time, by the engine of pydantic.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

from taiwa.isolation import Handler, ProcessLimits, ProcessPool
from taiwa.json_schema import Document, is_object, join_pointer
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import truncate

LIMITS = ProcessLimits(seconds=2.0, memory_mb=256, characters=1_000_000)
MAX_ISSUES = 100
MAX_MESSAGE_CHARS = 500
FAULTS = (RecursionError, MemoryError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What the library raises for schemas that it does not support; others end the process."""
RECURSION_LIMIT = 10_000
"""The library calls about seven functions for each level of a value, which a recursive schema does not bound."""
MAX_KEPT = 32
"""The number of schemas that a process keeps ready."""


# --- the parent -------------------------------------------------------------------------------------------------------


_processes = ProcessPool(f"{__name__}:entry", "the schema", LIMITS)


def ask(question: dict[str, Json]) -> dict[str, Json]:
    """Answer a question in a process: see `entry`.

    Raises:
        InputError: it takes too much time or memory, or the schema cannot be used.
    """
    try:
        answer = _processes.ask(question)
    except ToolError as error:
        late = f"takes more than {LIMITS.seconds:g} s"
        why = late if error.code == "timeout" else f"fails, or needs more than {LIMITS.memory_mb} MB"
        raise InputError(f"schema: to check a value against it {why}; simplify the schema") from None
    if "invalid" in answer:
        raise InputError(str(answer["invalid"]))
    return answer


# --- the child --------------------------------------------------------------------------------------------------------


def entry(start: dict[str, Json]) -> Handler:
    """Return the function that answers questions: a `schema` is checked, and a `text` is compared with it."""
    del start
    sys.setrecursionlimit(RECURSION_LIMIT)
    _validator("{}")  # imports the library, which takes longer than most questions

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        del characters
        try:
            validator = _validator(str(question["schema"]))
            return {"issues": _issues(validator, json.loads(str(question["text"])))} if "text" in question else {}
        except InputError as error:
            return {"invalid": error.message}
        except FAULTS as error:
            return {"invalid": f"schema: it cannot be used: {type(error).__name__}: {error}"[:MAX_MESSAGE_CHARS]}

    return answer


def _issues(validator: Any, data: Json) -> list[Json]:  # noqa: ANN401  (of a library without types)
    issues: list[Json] = []
    for error in validator.iter_errors(data):
        issues.append([list(error.absolute_path), truncate(error.message, MAX_MESSAGE_CHARS), str(error.validator)])
        if len(issues) == MAX_ISSUES:
            break
    return issues


@lru_cache(maxsize=MAX_KEPT)
def _validator(text: str) -> Any:  # noqa: ANN401
    """Return the validator of the jsonschema library for the text of a schema; it fetches nothing.

    Raises:
        InputError: the text is not a JSON Schema, or has a pattern that the engine does not support.
    """
    exceptions, validators = import_module("jsonschema.exceptions"), import_module("jsonschema.validators")
    for name in ("_keywords", "_legacy_keywords", "_utils"):
        module: Any = import_module(f"jsonschema.{name}")
        module.re = _Patterns  # this process validates for nothing else
    schema = cast("Mapping[str, Json]", json.loads(text))
    validator_class = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        validator_class.check_schema(schema, format_checker=None)
    except exceptions.SchemaError as error:
        raise InputError(f"not a JSON Schema: {error.message} at {error.json_path}") from error
    for pointer, pattern in patterns(schema):
        try:
            _Patterns.engine(pattern)
        except _Patterns.refused() as error:
            why = str(error).strip().splitlines()[-1]
            raise InputError(
                f"schema: {pointer}: the pattern {truncate(pattern, 60)!r} is not supported: {why}"
            ) from None
    registry = validators.SPECIFICATIONS  # the drafts, without a function that retrieves; the default one opens URLs
    validator_class = validators.extend(validator_class, {"multipleOf": _multiple_of})
    # formats are rendered for the model, so they are checked as well
    return validator_class(schema, registry=registry, format_checker=validator_class.FORMAT_CHECKER)


def _multiple_of(validator: Any, step: float, number: Json, schema: Json) -> Iterator[Exception]:  # noqa: ANN401
    """Check the numbers as they are written: 19.99 is a multiple of 0.01, which a division of floats denies."""
    del schema
    if validator.is_type(number, "number") and (Fraction(str(number)) / Fraction(str(step))).denominator != 1:
        yield import_module("jsonschema.exceptions").ValidationError(f"{number!r} is not a multiple of {step}")


def patterns(schema: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Return the patterns of a schema with their pointers."""
    found: list[tuple[str, str]] = []
    for location in Document(schema).locations():
        if not is_object(location.schema):
            continue
        named = location.schema.get("patternProperties")
        found += (
            [(join_pointer(location.pointer, "patternProperties"), each) for each in named or ()]
            if is_object(named)
            else []
        )
        pattern = location.schema.get("pattern")
        found += [(join_pointer(location.pointer, "pattern"), pattern)] if isinstance(pattern, str) else []
    return found


class _Patterns:
    """What the library uses of the module `re`, in linear time."""

    @staticmethod
    def refused() -> type[Exception]:
        """Return the error of a pattern that the engine does not support."""
        from pydantic_core import SchemaError

        return SchemaError

    @staticmethod
    @lru_cache(maxsize=4_096)
    def engine(pattern: str) -> Any:  # noqa: ANN401
        """Compile a pattern."""
        from pydantic_core import SchemaValidator, core_schema

        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))

    @classmethod
    def search(cls, pattern: str, text: str) -> bool:
        """Return whether a pattern occurs in a text."""
        return bool(cls.engine(pattern).isinstance_python(text))
