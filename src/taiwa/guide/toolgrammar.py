"""The grammar of calls in free text, made from the tools' own specifications, and tried before it is used.

Nobody writes its terminals by hand, because terminals are greedy and do not give back: an input that may hold a `)` swallows
the one that closes the call. So an input in quotes cannot hold the closing mark, and one without ends where the mark begins.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from taiwa.guide.closing import kept_apart
from taiwa.guide.notation import literal, quoted
from taiwa.guide.protocol import Clause
from taiwa.guide.schema.rewrite import rewrite
from taiwa.guide.schema.samples import sample
from taiwa.guide.sources import Tools
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.kernel.values import ToolSpec

__all__ = [
    "LONGEST_INPUT",
    "NAME",
    "PLAIN_TYPES",
    "ToolGrammar",
    "examples",
    "kind_of",
    "needed",
    "properties_of",
    "property_of",
]

LONGEST_INPUT = 1_000
"""As long as the tagged protocol reads an input (`taiwa.flows.tagged`)."""
NAME = r"[A-Za-z_][A-Za-z0-9_\-]*"
ANY = "(?s:.*)"
PLAIN_TYPES = ("string", None)
PAIRS = ("()", "[]", "{}")
DEEPEST = 12
"""How deep brackets may stand in brackets where a bracket ends a call."""


class ToolGrammar:
    """The grammar of some tools, and what of their schemas it leaves out."""

    def __init__(self, tools: Tools) -> None:
        before, mark, after = tools.opening.partition("{name}")
        if not tools.specs:
            raise InputError("free text with tools needs at least one tool")
        if not (before and mark and after.strip() and tools.closing.strip()) or "\n" in tools.opening + tools.closing:
            raise InputError("a call needs marks on one line before its name, behind it, and at its end")
        if len({spec.name for spec in tools.specs}) < len(tools.specs):
            raise InputError("two of the tools have the same name")
        self.tools = tools
        self.missed: list[Clause] = []
        self._before = before
        self._after = after
        self._pair = (after[-1], tools.closing) if after[-1:] + tools.closing in PAIRS else None

    def text(self) -> str:
        """The grammar in the engine's Lark notation."""
        specs = self.tools.specs
        ways = [f"t{number}" for number in range(len(specs))] + (["REST"] if self.tools.free_text else [])
        lines = [f"start: {' | '.join(ways)}"]
        if self.tools.free_text:
            lines.append(f"REST: /{ANY}/ & ~/{ANY}({self._openings()}){ANY}/")
        for number, spec in enumerate(specs):
            lines += [f"t{number}: HEAD{number} {self._body(number, spec)}", self._head(number, spec)]
            lines += self._input(number, spec)
        return "\n".join(lines) + "\n"

    def _openings(self) -> str:
        """What opens a call, of a known tool (with the spaces that the tagged protocol forgives) or of another."""
        known = "|".join(literal(spec.name) for spec in self.tools.specs)
        before, after = literal(self._before), literal(self._after.strip())
        spaces = r"[ \t]*"
        return f"{before}{spaces}({known}){spaces}{after}|{before}{NAME}{after}"

    def _head(self, number: int, spec: ToolSpec) -> str:
        """Text up to the first opening of a call, which is this tool's."""
        written = self.tools.opening.format(name=spec.name)
        own = literal(written[: len(written) - self._lent(spec)])
        if not self.tools.free_text:
            return f"HEAD{number}: /{own}/"
        openings, behind = self._openings(), len(self._after) - len(self._after.rstrip())
        earlier = rf"{ANY}({openings})(?s:.{{{behind + 1},}})"
        return f"HEAD{number}: /{ANY}{own}/ & ~/{earlier}/"

    def _lent(self, spec: ToolSpec) -> int:
        """How many signs of the opening stand with the closing mark."""
        return 1 if not properties_of(spec) and len(self.tools.closing) == 1 else 0

    def _body(self, number: int, spec: ToolSpec) -> str:
        closed = self._bare(spec) is None or self._pair is not None
        return f"in{number} {quoted(self.tools.closing)}" if closed and properties_of(spec) else f"in{number}"

    def _input(self, number: int, spec: ToolSpec) -> Iterator[str]:
        bare = self._bare(spec)
        suffix = "" if bare is not None and self._pair is not None else f", suffix={quoted(self.tools.closing)}"
        if not properties_of(spec):  # an empty text is captured only with a mark of two signs behind it
            lent = self.tools.opening[len(self.tools.opening) - self._lent(spec) :]
            bare, suffix = "//", f", suffix={quoted(lent + self.tools.closing)}"
        if bare is not None:
            yield f"in{number}[capture={quoted(spec.name)}{suffix}]: IN{number}"
            yield f"IN{number}: {bare}"
            return
        name = f"in{number}[capture={quoted(spec.name)}]"
        wanted = needed(spec)
        schema: Mapping[str, Json] = spec.parameters
        if len(wanted) == 1 and kind_of(spec, wanted[0]) not in ("object", "array"):
            schema = property_of(spec, wanted[0])
        written = rewrite(schema)
        self.missed += [
            Clause(f"/{spec.name}{clause.pointer}", clause.keyword, clause.reason) for clause in written.missed
        ]
        closed = {**kept_apart(written.schema, self.tools.closing), "x-guidance": {"whitespace_pattern": " "}}
        yield f"{name}: %json {json.dumps(closed, ensure_ascii=False)}"

    def _bare(self, spec: ToolSpec) -> str | None:
        """The terminal of an input that stands without quotes and ends at the closing mark; None for JSON."""
        wanted = needed(spec)
        if len(wanted) != 1 or kind_of(spec, wanted[0]) not in PLAIN_TYPES:
            return None
        schema = property_of(spec, wanted[0])
        if "enum" in schema or "const" in schema:
            words = schema["enum"] if "enum" in schema else [schema["const"]]
            if any(self.tools.closing in str(word) for word in cast("list[Json]", words)):
                raise InputError(
                    f"a word of the tool {spec.name} holds the mark {self.tools.closing!r} that ends a call"
                )
            if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
                raise InputError(f"the tool {spec.name} takes none of the words of its parameter {wanted[0]}")
            return f"/(?:{'|'.join(literal(str(word)) for word in words)})/"
        rules = [r"/[^ \t\n][^\n]*/"]
        if "minLength" in schema or "maxLength" in schema:
            length = f"{schema.get('minLength', 1)},{schema.get('maxLength', '')}"
            rules.append(rf"/[^\n]{{{length}}}/")
        if self._pair is not None:
            rules.append(f"/{_balanced(*self._pair)}/")
        else:
            rules.append(f"~/{ANY}{literal(self.tools.closing)}{ANY}/")
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            rules.append(f"/{_whole(pattern, spec.name, wanted[0])}/")
        if "format" in schema:
            reason = "an input without quotes has no format"
            self.missed.append(Clause(f"/{spec.name}/properties/{wanted[0]}", "format", reason))
        return " & ".join(rules)


def _balanced(opening: str, closing: str) -> str:
    """A pattern of texts whose brackets close, so that the one behind them closes the call."""
    other = rf"[^\{opening}\{closing}\n]"
    pattern = f"{other}*"
    for _ in range(DEEPEST):
        pattern = rf"(?:{other}|\{opening}{pattern}\{closing})*"
    return pattern


def _whole(pattern: str, tool: str, parameter: str) -> str:
    """A pattern that is searched for, as one that a whole text matches."""
    bare = re.sub(r"\\.|\[(?:\\.|[^\]])*\]|\([^()]*\)", "", re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", pattern))
    if "|" in bare and re.search(r"[\^$]", bare):
        where = f"the parameter {parameter} of the tool {tool}"
        raise InputError(f"the pattern of {where} has ends on one side of a |: write it as ^(…|…)$")
    start = "" if pattern.startswith("^") else ANY
    end = "" if pattern.endswith("$") and not pattern.endswith("\\$") else ANY
    core = pattern.removeprefix("^")
    core = core[:-1] if not end else core
    return f"{start}(?:{core.replace('/', chr(92) + '/')}){end}".replace("\\\\/", "\\/")


def properties_of(spec: ToolSpec) -> Mapping[str, Json]:
    """The schemas of a tool's parameters."""
    held = spec.parameters.get("properties")
    return held if isinstance(held, dict) else {}


def needed(spec: ToolSpec) -> tuple[str, ...]:
    """The parameters that a call must give; as `taiwa.flows.tagged.arguments` reads them."""
    listed = spec.parameters.get("required")
    return tuple(str(name) for name in listed) if isinstance(listed, list) and listed else tuple(properties_of(spec))


def property_of(spec: ToolSpec, name: str) -> Mapping[str, Json]:
    """The schema of one parameter."""
    held = properties_of(spec).get(name)
    return held if isinstance(held, dict) else {}


def kind_of(spec: ToolSpec, name: str) -> object:
    """The type of one parameter; `json` where its schema leaves that to other schemas."""
    schema = property_of(spec, name)
    return schema.get("type") if not {"$ref", "anyOf", "allOf", "oneOf"} & schema.keys() else "json"


def examples(tools: Tools) -> tuple[list[str], list[str]]:
    """Texts that must pass and texts that must not, made from the specifications without the grammar."""
    good, bad = list(tools.accepts), list(tools.refuses)
    lead = "I compute: " if tools.free_text else ""
    for spec in tools.specs:
        opening = tools.opening.format(name=spec.name)
        bad.append(f"{lead}{tools.opening.format(name=spec.name + '_x')}1{tools.closing}")
        written = _input_of(spec, tools.closing)
        if written is not None:
            good.append(f"{lead}{opening}{written}{tools.closing}")
            bad += [f"{lead}{opening}{written}", f"{lead}{opening}{written}{tools.closing} and"]
    if tools.free_text:
        good += ["Nothing to compute.", "a < b, a << 2", "First line.\nSecond."]
    return good, bad


def _input_of(spec: ToolSpec, closing: str) -> str | None:
    wanted = needed(spec)
    if not properties_of(spec):
        return ""
    if len(wanted) == 1 and kind_of(spec, wanted[0]) not in ("object", "array"):
        value = sample(property_of(spec, wanted[0]))
        text = value if isinstance(value, str) else None if value is None else json.dumps(value)
    else:
        value = sample(spec.parameters)
        text = None if value is None else json.dumps(value, ensure_ascii=False)
    return None if text is None or closing in text or "\n" in text or not text.strip() else text.strip()
