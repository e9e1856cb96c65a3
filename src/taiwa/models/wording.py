"""A constraint in a server's own words, and what of it the server's decoder will keep.

What a server has no words for is never dropped in silence: it is refused, or, where the caller is lenient, left out and told
as `checked`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from taiwa.constraints.gbnf import grammar_to_gbnf, regex_size, regex_to_gbnf, tool_calls_to_gbnf
from taiwa.constraints.readable_guides import choice_regex
from taiwa.constraints.schema_regex import to_regex
from taiwa.constraints.schema_rewriter import rewrite_schema
from taiwa.kernel.errors import ConfigError, InputError, UnsupportedError
from taiwa.kernel.records import Json
from taiwa.kernel.values import Ability, Calls, Enforcement, Grammar, JsonSchema, OneOf, Regex
from taiwa.models.abilities import Facts
from taiwa.models.enforcing import NAMES, by_findings, by_places, clause, clauses
from taiwa.models.llamacpp import held
from taiwa.models.strict import is_strict, strict_form
from taiwa.models.wire import Hold, Way

__all__ = ["Worded", "Wording"]

WORDS: dict[type, tuple[Ability, str]] = {
    JsonSchema: ("json_schema", "a JSON Schema"),
    Regex: ("regex", "a regular expression"),
    OneOf: ("regex", "a choice"),
    Grammar: ("grammar", "a grammar"),
    Calls: ("grammar", "tools in free text"),
}
GRAMMAR_FIELDS: dict[Way, tuple[str, ...]] = {
    "structured_outputs": ("structured_outputs", "grammar"), "fields": ("ebnf",), "gbnf": ("grammar",), "llguidance": ("grammar",)
}  # fmt: skip
SPACE = " ?"
MOST_PLACES = 3_000
"""Larger patterns of schemas take more time to be made a grammar of than it takes to ask; they are kept once they are made."""
LONGEST_PATTERN = 30_000
MOST_KEPT = 256

Held: TypeAlias = JsonSchema | Regex | Grammar | OneOf | Calls


@dataclass(frozen=True, slots=True)
class Worded:
    """The fields of a request's body, and how the constraint is kept by them."""

    fields: Mapping[str, Json]
    enforcement: Enforcement


@dataclass(frozen=True, slots=True)
class Wording:
    """How one server is told of a constraint. `is_strict`: schemas are rewritten as OpenAI holds models to them."""

    label: str
    model: str
    way: Way
    facts: Facts
    strict: bool = False
    hold: Hold = "auto"

    def of(self, constraint: Held, begun: str = "") -> Worded:
        """Write a constraint; `begun` is the beginning of the answer, which the server continues and holds to nothing.

        Raises:
            UnsupportedError: the server cannot be told of it, or would not hold all of it and the caller is strict.
        """
        ability, words = WORDS[type(constraint)]
        try:
            self.facts.require(ability, self.model)
            worded = self._told(constraint, begun)
        except (InputError, UnsupportedError) as error:
            if self.hold == "lenient":
                return Worded({}, Enforcement(checked=tuple(_clauses(constraint))))
            if isinstance(error, UnsupportedError):
                raise
            raise UnsupportedError(f"{self.label} cannot be given {words}: {error.message}", ability=ability) from error
        left = worded.enforcement.checked
        if left and self.hold == "strict":
            first, *others = left
            more = f" and {len(others)} more" if others else ""
            raise UnsupportedError(
                f"{self.label} does not hold the answer to this: {first}{more}; leave it out, or check the answer instead",
                ability=ability,
            )
        return worded

    def _told(self, constraint: Held, begun: str) -> Worded:
        match constraint:
            case JsonSchema():
                return self._schema(constraint, begun)
            case Regex(pattern):
                return self._pattern(pattern, begun, "regex")
            case OneOf(texts):
                return self._pattern(choice_regex(texts), begun, "choice", texts)
            case Grammar():
                if begun:
                    raise InputError("an answer that was begun cannot be gone on with under a grammar")
                return self._grammar(self._translated(constraint), "grammar")
            case Calls():
                made = tool_calls_to_gbnf(constraint, begun)
                worded = self._grammar(made.text, "tools")
                missed = tuple(clause(each.pointer, each.keyword) for each in made.missed)
                return replace(worded, enforcement=replace(worded.enforcement, checked=missed))

    def _pattern(self, pattern: str, begun: str, name: str, texts: tuple[str, ...] = ()) -> Worded:
        """A pattern as it is, where a server takes patterns and nothing was written yet, else as a grammar."""
        if not begun and self.way == "structured_outputs":
            field: dict[str, Json] = {"choice": [*texts]} if texts else {"regex": pattern}
            return self._worded({"structured_outputs": field}, f"structured_outputs.{next(iter(field))}", name)
        if not begun and self.way == "fields":
            return self._worded({"regex": pattern}, "regex", name)
        return self._grammar(_of_regex(pattern, begun), name)

    def _translated(self, grammar: Grammar) -> str:
        try:
            return grammar_to_gbnf(grammar)
        except ConfigError:  # without Lark's own reader nothing is translated
            if self.way != "structured_outputs":
                raise
            return _from_start(grammar)

    def _grammar(self, text: str, name: str) -> Worded:
        path = GRAMMAR_FIELDS.get(self.way)
        if path is None:
            ability: Ability = "regex" if name in ("regex", "choice") else "grammar"
            raise UnsupportedError(f"there is no way to give {self.label} a {name}", ability=ability)
        field: Json = text
        for key in reversed(path):
            field = {key: field}
        assert isinstance(field, dict)
        return self._worded(field, ".".join(path), name)

    def _worded(self, fields: Mapping[str, Json], way: str, name: str) -> Worded:
        """What is no schema is held as a whole: as was measured of llama.cpp, found by a probe, or promised."""
        ability = "regex" if name in ("regex", "choice") else "grammar"
        known = self.way in ("gbnf", "llguidance") or dict(self.facts.held).get(ability) == "enforced"
        held_to = (clause("", name),)
        return Worded(fields, Enforcement(way, held_to, ()) if known else Enforcement(way, (), held_to))

    # --- schemas ------------------------------------------------------------------------------------------------------

    def _schema(self, constraint: JsonSchema, begun: str) -> Worded:
        schema = dict(constraint.schema)
        if begun:
            return self._begun_schema(schema, begun)
        if self.way == "llguidance":
            return _for_llguidance(json.dumps(schema, ensure_ascii=False))
        verdicts = dict(self.facts.held)
        if self.way == "structured_outputs":
            told = by_findings(schema, verdicts, "structured_outputs.json", is_promised=True)
            return Worded({"structured_outputs": {"json": schema}}, told)
        if self.way == "gbnf":
            enforcement = by_places(schema, held(schema), verdicts, "response_format")
            own = self._own_grammar(schema) if enforcement.checked else None
            if own is not None:
                every = tuple(dict.fromkeys((*enforcement.enforced, *enforcement.checked)))
                return Worded({"grammar": own}, Enforcement("grammar", every))
            return Worded(_response_format(constraint, schema, is_strict(schema)), enforcement)
        sent, strict = strict_form(schema) if self.strict else (schema, is_strict(schema))
        told = by_findings(sent, verdicts, "response_format", is_promised=strict or not self.strict)
        if sent != schema:  # what was said in words only is not held
            told = _checked_too(told, schema)
        return Worded(_response_format(constraint, sent, strict), told)

    def _own_grammar(self, schema: Mapping[str, Json]) -> str | None:
        """A grammar of our own for a schema of which the server would drop a part, where a pattern can say all of it."""
        if "grammar" not in self.facts.abilities or _is_recursive(schema):
            return None
        try:
            pattern = to_regex(dict(schema), SPACE)
            return _of_regex(pattern, "") if _is_small(pattern) else None
        except InputError:
            return None

    def _begun_schema(self, schema: Mapping[str, Json], begun: str) -> Worded:
        """A server holds only what it writes itself, and would begin the JSON anew: so it is given what is left of it."""
        if GRAMMAR_FIELDS.get(self.way) is None:
            raise UnsupportedError(
                f"{self.label} cannot go on with an answer and be held to a JSON Schema at once", ability="prefix"
            )
        pattern = to_regex(dict(schema), SPACE)
        if not _is_small(pattern):
            raise InputError("the schema is too large for an answer that was begun")
        worded = self._grammar(_of_regex(pattern, begun), "schema")
        every = tuple(dict.fromkeys(clause(pointer, keyword) for pointer, _, keyword in clauses(schema)))
        known = bool(worded.enforcement.enforced)
        told = Enforcement(worded.enforcement.way, every if known else (), () if known else every)
        return Worded(worded.fields, told)


def _response_format(constraint: JsonSchema, schema: Mapping[str, Json], strict: bool) -> dict[str, Json]:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", constraint.name)[:64] or "answer"
    named: dict[str, Json] = {"name": name, "schema": dict(schema), "strict": strict}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _checked_too(told: Enforcement, schema: Mapping[str, Json]) -> Enforcement:
    known = {*told.enforced, *told.promised, *told.checked}
    missing = (clause(pointer, keyword) for pointer, _, keyword in clauses(schema))
    return replace(told, checked=(*told.checked, *(each for each in dict.fromkeys(missing) if each not in known)))


def _clauses(constraint: Held) -> list[str]:
    if isinstance(constraint, JsonSchema):
        return list(dict.fromkeys(clause(pointer, keyword) for pointer, _, keyword in clauses(constraint.schema)))
    return [clause("", NAMES[type(constraint)])]


@lru_cache(maxsize=MOST_KEPT)
def _is_small(pattern: str) -> bool:
    return len(pattern) <= LONGEST_PATTERN and regex_size(pattern) <= MOST_PLACES


@lru_cache(maxsize=MOST_KEPT)
def _of_regex(pattern: str, begun: str) -> str:
    return regex_to_gbnf(pattern, begun)


@lru_cache(maxsize=MOST_KEPT)
def _for_llguidance(schema: str) -> Worded:
    """A schema for a llama.cpp with llguidance in it, rewritten into what that enforces, as for a model in this process."""
    written = rewrite_schema(json.loads(schema))
    # No white space: the engine's older versions, which servers are built with, do not keep its bounds.
    text = json.dumps({**written.schema, "x-guidance": {"whitespace_flexible": False}}, ensure_ascii=False)
    enforced = tuple(dict.fromkeys(clause(each.pointer, each.keyword) for each in written.enforced))
    checked = tuple(dict.fromkeys(clause(each.pointer, each.keyword) for each in written.missed))
    kept = tuple(each for each in enforced if each not in checked)
    return Worded({"grammar": f"%llguidance {{}}\nstart: %json {text}\n"}, Enforcement("grammar", kept, (), checked))


def _is_recursive(schema: Mapping[str, Json]) -> bool:
    """Whether a schema refers to itself, however far around: a pattern could say that to a small depth only."""
    leads: dict[str, set[str]] = {}
    for pointer, here, keyword in clauses(schema):
        if keyword == "$ref":
            leads.setdefault(pointer, set()).add(str(here["$ref"]).removeprefix("#"))
    targets = {target for found in leads.values() for target in found}
    reach = {
        target: {other for pointer, found in leads.items() if pointer.startswith(target) for other in found}
        for target in targets
    }
    for target in targets:
        seen, todo = set[str](), list(reach[target])
        while todo:
            here_ = todo.pop()
            if here_ not in seen:
                seen.add(here_)
                todo += reach.get(here_, ())
        if target in seen:
            return True
    return False


def _from_start(grammar: Grammar) -> str:
    """Write a grammar whose first rule is called `start`, as the wire wants it."""
    if grammar.start == "start":
        return grammar.text
    if re.search(r"^\s*[?!]*start\s*:", grammar.text, re.MULTILINE):
        raise InputError(f"the grammar begins at {grammar.start!r} and has another rule 'start': rename it")
    return f"start: {grammar.start}\n{grammar.text}"
