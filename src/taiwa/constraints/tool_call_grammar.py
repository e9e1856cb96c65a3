"""The grammar of tool calls in free text, generated from the tools' specifications.

Terminals are greedy and do not backtrack: an input that may contain a `)` consumes the one that closes the call. Therefore a
quoted input excludes the closing marker, and an unquoted one ends where the marker begins.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from taiwa.constraints.allowed_tokens import lark_pattern, lark_string
from taiwa.constraints.guide import SchemaClause
from taiwa.constraints.schema_rewriter import close_objects, rewrite_schema
from taiwa.json_schema import Schema, is_any, is_object, listed_values, map_subschemas, names, types
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import ToolCallsInText, ToolSpec
from taiwa.kernel.serialization import Json

ANY_VALUE = "any"
LONGEST_NESTED = 60


def marker_free_pattern(mark: str) -> str:
    """Return a pattern of the texts without a marker; in quotes, a text may end with the beginning of one.

    If the first character of a marker occurs in it again, but not throughout, or the marker is long, no text contains that character.

    >>> [bool(re.search(marker_free_pattern(">>"), text)) for text in ("a > b", "a >> b", "a >")]
    [True, False, True]
    >>> [bool(re.search(marker_free_pattern("</call>"), text)) for text in ("a < b", "</call>", "</call", "<</call>>")]
    [True, False, True, False]
    """
    first, rest = mark[0], mark[1:]
    other = f"[^{_in_class(first)}]"
    if mark == first * len(mark):
        ways = (f"{_one(first) * count}{other}" for count in range(len(mark)))
        return f"^(?:{'|'.join(ways)})*{_one(first)}{{0,{len(rest)}}}$"
    if first in rest or len(mark) > LONGEST_NESTED:  # each character nests a group
        return f"^{other}*$"
    behind = ""
    for char in reversed(rest):  # what may follow a beginning of the marker, up to the next first character
        longer = f"|{_one(char)}{behind}" if behind else ""
        behind = f"(?:[^{_in_class(first)}{_in_class(char)}]{other}*{longer})?"
    return f"^{other}*(?:{_one(first)}{behind})*$"


def _in_class(char: str) -> str:
    return f"\\{char}" if char in r"\]^-[&~" else char


def _one(char: str) -> str:
    return re.escape(char) if not char.isalnum() and char not in "<>" else char


def exclude_marker(schema: Mapping[str, Json], mark: str) -> dict[str, Json]:
    """Return a rewritten schema whose strings and keys cannot contain a marker.

    A listed word that contains the marker stays.
    """
    rule = marker_free_pattern(mark)
    anything: dict[str, Json] = {"$ref": f"#/$defs/{ANY_VALUE}"}

    def restricted(schema: Schema) -> Schema:
        if is_any(schema) or not is_object(schema):
            return schema is not False and anything
        made = map_subschemas(schema, lambda _, part: restricted(part))
        if {"$ref", "anyOf", "enum", "const"} & made.keys():
            return made
        kinds = types(schema)
        if "object" in kinds:  # arbitrary keys; if listed keys have a rule, they stay unchanged
            rest = made.get("additionalProperties", anything)
            free = "additionalProperties" not in made
            if rest is not False and "patternProperties" not in made and (free or not made.get("properties")):
                made["patternProperties"] = {rule: {} if made.get("properties") else rest}
                made["additionalProperties"] = False
        if "array" in kinds:
            made.setdefault("items", anything)
        if "string" in kinds:
            if "pattern" in made:
                made["allOf"] = [*cast("list[Json]", made.get("allOf", [])), {"pattern": rule}]
            made.setdefault("pattern", rule)
        return made

    made = restricted(schema)
    root: dict[str, Json] = dict(made) if is_object(made) else {}
    definitions = cast("dict[str, Json]", root.get("$defs") or {})
    options: list[Json] = [
        {"type": ["null", "boolean", "number"]},
        {"type": "string", "pattern": rule},
        {"type": "array", "items": anything},
        {"type": "object", "patternProperties": {rule: anything}, "additionalProperties": False},
    ]
    return {**root, "$defs": {**definitions, ANY_VALUE: {"anyOf": options}}}


NAME = r"[A-Za-z_][A-Za-z0-9_\-]*"
ANY = "(?s:.*)"
PAIRS = ("()", "[]", "{}")
DEEPEST = 12
"""The nesting depth of brackets where a bracket ends a call."""


def call_markers(calls: ToolCallsInText) -> tuple[str, str]:
    """Return the markers before and after the name of a tool in a call.

    Raises:
        InputError: there are no tools, two have the same name, or a marker is missing or longer than a line.
    """
    before, mark, after = calls.opening.partition("{name}")
    if not calls.tools:
        raise InputError("free text with tools requires at least one tool")
    if not (before and mark and after.strip() and calls.closing.strip()) or "\n" in calls.opening + calls.closing:
        raise InputError("a call requires markers on one line before its name, after it, and at its end")
    if len({spec.name for spec in calls.tools}) < len(calls.tools):
        raise InputError("two of the tools have the same name")
    return before, after


def first_words(calls: ToolCallsInText) -> str:
    """Return the pattern of the text before a call."""
    return rf"[^{_in_class(calls.opening[0])}\s]{ANY}" if calls.words_first else ANY


class ToolCallGrammar:
    """The grammar of the tools of a request; `missed` lists the parts of their schemas that are not enforced."""

    def __init__(self, calls: ToolCallsInText) -> None:
        before, after = call_markers(calls)
        self.calls = calls
        self.missed: list[SchemaClause] = []
        self._before = before
        self._after = after
        self._pair = (after[-1], calls.closing) if after[-1:] + calls.closing in PAIRS else None

    def text(self) -> str:
        """Return the grammar in the engine's Lark notation."""
        specs = self.calls.tools
        ways = [f"t{number}" for number in range(len(specs))] + (["REST"] if self.calls.free_text else [])
        lines = [f"start: {' | '.join(ways)}"]
        if self.calls.free_text:
            lines.append(f"REST: /{first_words(self.calls)}/ & ~/{ANY}({self._openings()}){ANY}/")
        for number, spec in enumerate(specs):
            lines += [f"t{number}: HEAD{number} {self._body(number, spec)}", self._head(number, spec)]
            lines += self._input(number, spec)
        return "\n".join(lines) + "\n"

    def json_openings(self) -> Iterator[str]:
        """Yield the openings of the calls whose input is JSON."""
        for spec in self.calls.tools:
            if parameter_schemas(spec) and plain_parameter(spec) is None:
                yield self.calls.opening.format(name=spec.name)

    def _openings(self) -> str:
        """Return the pattern that opens a call of a known tool (with the spaces that the tagged format allows) or of another."""
        known = "|".join(lark_pattern(spec.name) for spec in self.calls.tools)
        before, after = lark_pattern(self._before), lark_pattern(self._after.strip())
        spaces = r"[ \t]*"
        return f"{before}{spaces}({known}){spaces}{after}|{before}{NAME}{after}"

    def _head(self, number: int, spec: ToolSpec) -> str:
        """Return the terminal of the text up to the first opening of a call, which is this tool's."""
        written = self.calls.opening.format(name=spec.name)
        own = lark_pattern(written[: len(written) - self._lent(spec)])
        if not self.calls.free_text:
            return f"HEAD{number}: /{own}/"
        openings, behind = self._openings(), len(self._after) - len(self._after.rstrip())
        earlier = rf"{ANY}({openings})(?s:.{{{behind + 1},}})"
        return f"HEAD{number}: /{first_words(self.calls)}{own}/ & ~/{earlier}/"

    def _lent(self, spec: ToolSpec) -> int:
        """Return how many characters of the opening move to the closing marker."""
        return 1 if not parameter_schemas(spec) and len(self.calls.closing) == 1 else 0

    def _body(self, number: int, spec: ToolSpec) -> str:
        closed = self._bare(spec) is None or self._pair is not None
        return f"in{number} {lark_string(self.calls.closing)}" if closed and parameter_schemas(spec) else f"in{number}"

    def _input(self, number: int, spec: ToolSpec) -> Iterator[str]:
        bare = self._bare(spec)
        suffix = "" if bare is not None and self._pair is not None else f", suffix={lark_string(self.calls.closing)}"
        if not parameter_schemas(spec):  # an empty input is captured only before a marker of two characters
            lent = self.calls.opening[len(self.calls.opening) - self._lent(spec) :]
            bare, suffix = "//", f", suffix={lark_string(lent + self.calls.closing)}"
        if bare is not None:
            yield f"in{number}[capture={lark_string(spec.name)}{suffix}]: IN{number}"
            yield f"IN{number}: {bare}"
            return
        name = f"in{number}[capture={lark_string(spec.name)}]"
        written = rewrite_schema(close_objects(input_schema(spec)))
        self.missed += [
            SchemaClause(f"/{spec.name}{clause.pointer}", clause.keyword, clause.reason) for clause in written.missed
        ]
        closed = {**exclude_marker(written.schema, self.calls.closing), "x-guidance": {"whitespace_pattern": " "}}
        yield f"{name}: %json {json.dumps(closed, ensure_ascii=False)}"

    def _bare(self, spec: ToolSpec) -> str | None:
        """Return the terminal of an input without quotes, which ends at the closing marker; None for JSON."""
        plain = plain_parameter(spec)
        if plain is None:
            return None
        name, schema = plain
        words, closing = listed_words(spec, name, schema), self.calls.closing
        if words is not None:
            if any(f"{word}{closing}".find(closing) < len(word) for word in words):
                raise InputError(f"a word of the tool {spec.name} contains the marker {closing!r} that ends a call")
            return f"/(?:{'|'.join(map(lark_pattern, words))})/"
        rules = [r"/[^ \t\n][^\n]*/"]
        if "minLength" in schema or "maxLength" in schema:
            length = f"{schema.get('minLength', 1)},{schema.get('maxLength', '')}"
            rules.append(rf"/[^\n]{{{length}}}/")
        if self._pair is not None:
            rules.append(f"/{_balanced(*self._pair)}/")
        else:
            rules.append(f"~/{ANY}{lark_pattern(closing)}{ANY}/")
            # After `>` the marker `>>` would begin one character early, where a parser ends the call.
            rules += [f"~/{ANY}{lark_pattern(head)}/" for head in _overlapping(closing)]
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            rules.append(f"/{_whole(pattern, spec.name, name)}/")
        if "format" in schema:
            reason = "formats of inputs without quotes are not enforced"
            self.missed.append(SchemaClause(f"/{spec.name}/properties/{name}", "format", reason))
        return " & ".join(rules)


def _overlapping(marker: str) -> list[str]:
    """Return the beginnings of a marker after which another one starts inside the first.

    >>> _overlapping(">>"), _overlapping("</call>")
    (['>'], [])
    """
    return [marker[:size] for size in range(1, len(marker)) if marker.startswith(marker[size:])]


def _balanced(opening: str, closing: str) -> str:
    """Return a pattern of texts with balanced brackets, so that the next bracket closes the call."""
    other = rf"[^\{opening}\{closing}\n]"
    pattern = f"{other}*"
    for _ in range(DEEPEST):
        pattern = rf"(?:{other}|\{opening}{pattern}\{closing})*"
    return pattern


def _whole(pattern: str, tool: str, parameter: str) -> str:
    """Convert a pattern that is searched for into one that matches the complete text."""
    bare = re.sub(r"\\.|\[(?:\\.|[^\]])*\]|\([^()]*\)", "", re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", pattern))
    if "|" in bare and re.search(r"[\^$]", bare):
        where = f"the parameter {parameter} of the tool {tool}"
        raise InputError(f"the pattern of {where} has ends on one side of a |: write it as ^(…|…)$")
    start = "" if pattern.startswith("^") else ANY
    end = "" if re.search(r"(?<!\\)(?:\\\\)*\$\Z", pattern) else ANY
    core = pattern.removeprefix("^")
    core = core[:-1] if not end else core
    return f"{start}(?:{core.replace('/', chr(92) + '/')}){end}".replace("\\\\/", "\\/")


def parameter_schemas(spec: ToolSpec) -> Mapping[str, Json]:
    """Return the schemas of a tool's parameters."""
    properties = spec.parameters.get("properties")
    return properties if is_object(properties) else {}


def _single_parameter(spec: ToolSpec) -> tuple[str, Mapping[str, Json], object]:
    """Return the only required parameter, its schema and its type (`json` if other schemas decide); '' if there are several.

    Required parameters are determined as in `taiwa.flows.solve.tool_call_formats`.
    """
    name, *others = names(spec.parameters) or tuple(parameter_schemas(spec)) or ("",)
    schema = parameter_schemas(spec).get(name)
    if others or not is_object(schema):
        return ("" if others else name), {}, None
    return name, schema, "json" if {"$ref", "anyOf", "allOf", "oneOf"} & schema.keys() else schema.get("type")


def plain_parameter(spec: ToolSpec) -> tuple[str, Mapping[str, Json]] | None:
    """Return the name and the schema of the parameter that is the whole input of a tool, without quotes; None for JSON."""
    name, schema, kind = _single_parameter(spec)
    return (name, schema) if name and kind in ("string", None) else None


def input_schema(spec: ToolSpec) -> Mapping[str, Json]:
    """Return the schema of an input in JSON: of the only parameter if that is a scalar, otherwise of all of them."""
    name, schema, kind = _single_parameter(spec)
    return schema if name and kind not in ("object", "array") else spec.parameters


def listed_words(spec: ToolSpec, name: str, schema: Mapping[str, Json]) -> list[str] | None:
    """Return the words that a parameter accepts; None if its schema does not list them.

    Raises:
        InputError: the listed values are not words.
    """
    words = listed_values(schema)
    if words is not None and not (words and all(isinstance(word, str) for word in words)):
        raise InputError(f"the tool {spec.name} accepts no word of its parameter {name}")
    return cast("list[str] | None", words)
