"""Types of answers as users name or write them: in a file, a module, or a text."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from taiwa.json_schema import TYPES, check_bounds
from taiwa.kernel.attachments import read_file, read_json_object
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, parse_json
from taiwa.kernel.wording import Wording
from taiwa.structured import OutputType
from taiwa.structured.type_notation import is_field_list, parse_fields, parse_notation

EXPECTED = "expected FILE.json, FILE.ts:Type, FILE.py:Type, module:Type, or fields such as 'name, age int'"
SCHEMA_KEYS = frozenset({"$schema", "$ref", "$defs", "properties", "anyOf", "oneOf", "allOf"})
DECLARED = re.compile(r"\b(?:interface(?=\s+\w+\s*(?:\{|extends\b))|type(?=\s+\w+\s*=))\s+(\w+)")
DATA_FILE = re.compile(r".+\.json|.+\.ts:[^:]*")
"""The name of a type in a file without code."""
IN_MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
NAME = re.compile(r"[\w.:/-]+")
"""A word, or the name of a type elsewhere."""
QUOTED_KEY = re.compile(r'\{\s*"')


def load_output_type(target: str) -> OutputType[Any]:
    """Find an output type: FILE.json (a JSON Schema), FILE.ts:Type, FILE.py:Type or `module:Type`, whose module is imported
    from the current folder, or the fields of an object, such as `name, age: int, kind: spam|ham, bio: one sentence`.

    Raises:
        InputError: the type is not found or not supported, or its module failed.
    """
    if DATA_FILE.fullmatch(target):
        return read_type_file(target)
    place, _, path = target.rpartition(":")
    if not place.endswith(".py"):
        if is_field_list(target):
            return OutputType.fields("Answer", *parse_fields(target))
        place, _, path = target.partition(":")
    if not place or not path:
        raise InputError(f"invalid type {target!r}; {EXPECTED}")
    from taiwa.tools.registry import find_in_code

    found = find_in_code(place, path)
    return found if _is_output_type(found) else OutputType[Any](found)


def _is_output_type(found: object) -> TypeGuard[OutputType[Any]]:
    return isinstance(found, OutputType)


def read_type_file(target: str, folder: Path = Path()) -> OutputType[Any]:
    """Read a type that a `DATA_FILE` declares, FILE.json or FILE.ts:Type; a relative path begins at the folder.

    Raises:
        InputError: the file cannot be read, or does not hold the type. ConfigError: the extra `typescript` is not installed.
    """
    name, _, declared = (target, "", "") if target.endswith(".json") else target.rpartition(":")
    path = folder / os.path.expanduser(name)  # noqa: PTH111  (`Path` fails for an unknown user)
    if declared or not target.endswith(".json"):
        from taiwa.structured.from_typescript import TypeScriptError

        try:
            return OutputType.from_typescript(read_file(path), declared)
        except TypeScriptError as error:
            raise InputError(f"{path}:{error.line}:{error.column}: {error.reason}") from error
    schema = read_json_object(path)
    name = "".join(word.capitalize() for word in "".join(c if c.isalnum() else " " for c in path.stem).split())
    try:
        return OutputType.from_json_schema(schema, name=name if "title" not in schema and name.isidentifier() else "")
    except InputError as error:
        raise InputError(f"{path}: {error.message}") from error


def is_schema(found: Mapping[str, Json]) -> bool:
    """Return whether an object is a JSON Schema rather than the fields of an object, or an example of one.

    >>> is_schema({"type": "string"}), is_schema({"type": "str", "items": "list[str]"})
    (True, False)
    """
    kind = found.get("type")
    is_typed = isinstance(kind, list) or kind in (*TYPES, "integer") or isinstance(found.get("items"), dict)
    return is_typed or bool(SCHEMA_KEYS & set(found)) or isinstance(found.get("enum"), list) or "const" in found


def read_output_type(text: str) -> OutputType[Any]:
    """Read a type that is written out: fields as in `name, age int`, a type as in `list[{name: str}]`, a JSON Schema, an example as
    JSON, or TypeScript, whose last declaration counts. No file is read and no module imported.

    >>> read_output_type('{"name": "Ann", "tags": ["x"]}').schema()["properties"]["tags"]["items"]
    {'type': 'string'}
    >>> read_output_type('{"type": "string", "pattern": "^[0-9]{4}$"}').schema()["properties"]["value"]["pattern"]
    '^[0-9]{4}$'

    Raises:
        InputError: it is none of these.
    """
    text, problem = text.strip(), ""
    if text.startswith("{"):
        try:
            found = parse_json(text)
        except ValueError as error:
            problem = f"the type is not JSON: {error}" if QUOTED_KEY.match(text) else ""
        else:
            assert isinstance(found, dict), "it begins with a brace"
            return _of_schema(found if is_schema(found) else _schema_like(found))
    if declared := DECLARED.findall(text):
        return OutputType.from_typescript(text, declared[-1])
    try:
        return OutputType(parse_notation(text), name="Answer")
    except InputError as error:
        if not problem and NAME.fullmatch(text):
            raise InputError(Wording("invalid type {type!r}; expected fields such as 'name, age int', a JSON Schema, an example as JSON, or TypeScript", type=text[:60])) from None  # fmt: skip
        if problem or not is_field_list(text):
            raise InputError(problem or error.message) from None
    return OutputType.fields("Answer", *parse_fields(text))


def answer_type(plain: Json, folder: Path | None) -> OutputType[Any]:
    """Return the type of the answers of an app: as a table (fields, or a JSON Schema), or as text; `folder` has its file, if it is
    read from one.

    Raises:
        InputError: it is not a type. ConfigError: the extra `typescript` is not installed.
    """
    if not isinstance(plain, str):
        assert isinstance(plain, dict), "a table or a text"
        return _of_schema(plain) if is_schema(plain) else OutputType[Any](parse_notation(plain), name="Answer")
    if DATA_FILE.fullmatch(plain):
        if folder is None:
            raise InputError(f"{plain} is read only with the file of the app")
        return read_type_file(plain, folder)
    if IN_MODULE.fullmatch(plain) and not is_field_list(plain):
        place, _, path = plain.partition(":")
        raise InputError(f"an app imports no module; name the file: {place.replace('.', '/')}.py:{path}")
    return read_output_type(plain)


def _of_schema(schema: Mapping[str, Json]) -> OutputType[Any]:
    """Return the type of a JSON Schema from outside.

    Raises:
        InputError: it is not one, or too large.
    """
    check_bounds(schema)
    return OutputType.from_json_schema(schema)


def _schema_like(example: Json) -> dict[str, Json]:
    """Return the schema of values like an example."""
    match example:
        case dict():
            properties: dict[str, Json] = {name: _schema_like(each) for name, each in example.items()}
            return {
                "type": "object",
                "properties": properties,
                "required": list(example),
                "additionalProperties": False,
            }
        case list():
            return {"type": "array", "items": _schema_like(example[0])} if example else {"type": "array"}
        case None:
            return {}
        case _:
            kinds: dict[type, str] = {bool: "boolean", int: "integer", float: "number"}
            return {"type": kinds.get(type(example), "string")}
