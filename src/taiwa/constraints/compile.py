"""Compile a constraint for a vocabulary into a guide; guides are cached by vocabulary, source and options."""

import json
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from taiwa.constraints.allowed_tokens import ESCAPES, MatcherGuide, error_line, lark_string
from taiwa.constraints.explain import explain_state
from taiwa.constraints.guide import Coverage, Source, UnsupportedConstraintError, Whitespace, check_json, check_unicode
from taiwa.constraints.schema_regex import space_regex
from taiwa.constraints.schema_rewriter import SPACED, RewrittenSchema, close_objects, rewrite_schema
from taiwa.constraints.tool_call_grammar import ToolCallGrammar
from taiwa.constraints.vocabulary import Vocabulary, import_llguidance
from taiwa.json_schema import from_openapi
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import Choice, Grammar, JsonSchema, Regex, ToolCallsInText
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import truncate
from taiwa.kernel.wording import Wording
from taiwa.schema_values import find_unsatisfiable

if TYPE_CHECKING:
    from taiwa.constraints.allowed_tokens import Describe

RULE = r"^[ \t]*[?!]?{name}(?:\[[^\]]*\])?[ \t]*:"


def to_engine_lark(grammar: Grammar) -> str:
    """Return a grammar in the engine's Lark dialect with a rule `start`; the input is Lark, or GBNF (the EBNF of llama.cpp).

    Raises:
        InputError: the start rule does not exist, or the text is in neither notation.
    """
    text, start = grammar.text, grammar.start
    if re.search(r"^[ \t]*[\w-]+[ \t]*::=", text, re.MULTILINE):
        text = _gbnf_to_lark(text)
        start = "start" if start == "root" else start
    if not _has_rule(text, start):
        raise InputError(Wording("the grammar has no rule {name!r} to start with", name=start))
    if start == "start":
        return text
    if _has_rule(text, "start"):
        raise InputError(f"the grammar starts with {start!r}, so another rule must not be called start: rename it")
    return f"start: {start}\n{text}"


def _has_rule(text: str, name: str) -> bool:
    return re.search(RULE.format(name=re.escape(name)), text, re.MULTILINE) is not None


def _gbnf_to_lark(text: str) -> str:
    import_llguidance()
    from llguidance.gbnf_to_lark import GbnfToLarkError, any_to_lark

    try:
        return str(any_to_lark(text))
    except (GbnfToLarkError, ValueError, IndexError, KeyError, AssertionError) as error:
        raise InputError(f"cannot read the grammar as EBNF: {error}") from None


GUIDES = 128
"""The size of the cache; a guide takes up to 14 MB."""
UNFORCED = '%llguidance {"no_forcing": true}'
"""The last line of grammars of users: where only a text without end is left, the engine would look for its end."""
BOUNDED_SPACE = r" |\n {0,24}"
MERGED = "(min/max|pattern)Propert|intersection stack"
MOST_CHARACTERS = 4 << 20
"""The maximum length of a source; larger ones exceed the engine's limits as well."""
MOST_OF_GRAMMAR = 100_000
"""The maximum length of a grammar of a user: for a larger one the engine takes minutes before it finds it too large."""
TOO_DEEP = "the source is nested too deeply; move parts of it into $defs"
SHOWN = 8


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A source; sources with the same key are equal."""

    key: Hashable
    source: object = field(compare=False)


@lru_cache(maxsize=GUIDES)
def _compiled(
    source: _Keyed, vocabulary: Vocabulary, strict: bool, whitespace: Whitespace, order: tuple[str, ...], closed: bool
) -> MatcherGuide:
    return _Compilation(vocabulary, strict, whitespace, order, closed).of(_to_source(source.source))


clear_cache = _compiled.cache_clear
"""Clear the cache, so that the next compilation is a first one."""


def compile(
    source: object,
    vocabulary: Vocabulary,
    *,
    strict: bool = True,
    whitespace: Whitespace = "bounded",
    order: tuple[str, ...] = (),
    closed: bool = False,
) -> MatcherGuide:
    """Compile a constraint for a vocabulary, or return the cached guide.

    `source` is a `JsonSchema`, `Regex`, `Grammar`, `Choice` or `ToolCallsInText`, an `OutputType`, or a type. With `strict`,
    a part that cannot be enforced is an error; otherwise it is left out, the guide's coverage lists it, and the answer must
    be validated. The keys of an object come in the order of the schema, those in `order` first; with `closed`, it
    has no others unless the schema says so. `whitespace` is a mode, or a `Regex` of white space.

    Raises:
        ConfigError: llguidance is not installed.
        NoValidTokenError: no text satisfies the constraint.
        InputError: the source cannot be read; `UnsupportedConstraintError` if strict and a part cannot be enforced.
    """
    if isinstance(source, str):
        raise InputError("a text is ambiguous as a constraint; use Regex(…), Grammar(…) or Choice(…)")
    if isinstance(source, Mapping):
        raise InputError("a mapping is ambiguous as a constraint; use JsonSchema(…)")
    try:
        return _compiled(_Keyed(_cache_key(source), source), vocabulary, strict, whitespace, order, closed)
    except RecursionError:
        raise InputError(TOO_DEEP) from None


def _cache_key(source: object) -> Hashable:
    """Return the cache key of a source; schemas with another order of keys differ."""
    if isinstance(source, ToolCallsInText):
        return repr(source)
    if isinstance(source, JsonSchema):
        return JsonSchema, source.name, repr(dict(source.schema))
    try:
        hash(source)
    except TypeError:
        raise InputError(f"a {type(source).__name__} is mutable and cannot be a constraint; use tuples") from None
    return source


class _Compilation:
    """One compilation."""

    def __init__(
        self, vocabulary: Vocabulary, strict: bool, whitespace: Whitespace, order: tuple[str, ...], closed: bool
    ) -> None:
        space_regex(whitespace)
        self.vocabulary = vocabulary
        self.strict = strict
        self.whitespace: Whitespace = whitespace
        self.order = order
        self.closed = closed

    def of(self, source: Source) -> MatcherGuide:
        """Compile a source by its type."""
        if isinstance(source, JsonSchema):
            return self._schema(source)
        if isinstance(source, ToolCallsInText):
            return self._tools(source)
        if isinstance(source, Choice):
            return self._choice(source)
        matcher = import_llguidance().LLMatcher
        if isinstance(source, Regex):
            _check_text(source.pattern, "the pattern")
            grammar = matcher.grammar_from_regex(source.pattern)
            what: str = Wording("the pattern {pattern!r}", pattern=truncate(source.pattern, 60))
            describe = f"text that matches {source.pattern}"
        else:
            _check_text(source.text, "the grammar", MOST_OF_GRAMMAR)
            grammar = matcher.grammar_from_lark(f"{to_engine_lark(source)}\n{UNFORCED}")
            what, describe = "the grammar", "what the grammar says next"
        kind = "regex" if isinstance(source, Regex) else "grammar"
        return self._guide(grammar, what, Coverage(), partial(explain_state, keyword=kind, expected=describe))

    def _schema(self, source: JsonSchema) -> MatcherGuide:
        check_json(dict(source.schema), "the schema")
        if "$schema" not in source.schema:
            source = JsonSchema(from_openapi(source.schema), source.name)
        if self.closed:
            source = JsonSchema(close_objects(source.schema), source.name)
        try:
            return self._rewritten(rewrite_schema(source.schema, self.order), source)
        except InputError as error:
            # In merged schemas the engine neither counts keys nor distinguishes patterns, and references may recurse without
            # end.
            if not re.search(MERGED, error.message) or isinstance(error, UnsupportedConstraintError):
                raise
        return self._rewritten(rewrite_schema(source.schema, self.order, merged=True), source)

    def _rewritten(self, written: RewrittenSchema, source: JsonSchema) -> MatcherGuide:
        coverage = self._check_coverage(Coverage(written.enforced, written.missed, written.ignored))
        nothing = find_unsatisfiable(written.schema, written.origins)
        if nothing is not None:
            raise NoValidTokenError(f"{nothing or '/'}: no finite value fits this part of the schema", state=nothing)
        text = json.dumps(written.schema, ensure_ascii=False)
        _check_text(text, "the schema")
        options: dict[str, Json] = {
            "json_allowed_escapes": ESCAPES,
            "whitespace_flexible": self.whitespace != "compact",
        }
        if self.whitespace == "spaced":
            options |= SPACED
        if isinstance(self.whitespace, Regex):
            options["whitespace_pattern"] = self.whitespace.pattern
        elif self.whitespace == "bounded":
            options["whitespace_pattern"] = BOUNDED_SPACE
        grammar = import_llguidance().LLMatcher.grammar_from_json_schema(text, overrides=options)
        what, describe = f"the schema {source.name}", partial(explain_state, schema=dict(source.schema))
        return self._guide(grammar, what, coverage, describe, ("",))

    def _check_coverage(self, coverage: Coverage) -> Coverage:
        missed = coverage.relaxed
        if len(missed) > 0 and self.strict:
            lines = tuple(str(clause) for clause in missed)
            more = f" and {len(missed) - 1} more" if len(missed) > 1 else ""
            hint = "express it in other keywords, or compile with strict=False and validate the answer"
            raise UnsupportedConstraintError(f"this cannot be enforced: {missed[0]}{more}; {hint}", clauses=lines)
        return coverage

    def _choice(self, source: Choice) -> MatcherGuide:
        words = tuple(dict.fromkeys(source.texts))
        if not words:
            raise InputError("a choice needs at least one word")
        text = f"start: WORD\nWORD: {' | '.join(map(lark_string, words))}\n"
        _check_text(text, "the choice")
        self.vocabulary.check_spells(words)
        shown = " or ".join(map(repr, words[:SHOWN])) + (" or …" if len(words) > SHOWN else "")
        grammar = import_llguidance().LLMatcher.grammar_from_lark(text)
        return self._guide(grammar, "the choice", Coverage(), partial(explain_state, keyword="choice", expected=shown))

    def _tools(self, source: ToolCallsInText) -> MatcherGuide:
        check_unicode(f"{source.opening}{source.closing}{''.join(spec.name for spec in source.tools)}", "a call")
        for spec in source.tools:
            check_json(dict(spec.parameters), f"the schema of the tool {spec.name}")
        grammar = ToolCallGrammar(source)
        made = import_llguidance().LLMatcher.grammar_from_lark(grammar.text())
        coverage = self._check_coverage(Coverage((), tuple(grammar.missed)))
        expected = f"text, or a call of {', '.join(spec.name for spec in source.tools)}"
        describe = partial(explain_state, keyword="tools", expected=expected)
        return self._guide(made, "the grammar of the tools", coverage, describe, tuple(grammar.json_openings()))

    def _guide(
        self, grammar: str, what: str, coverage: Coverage, describe: "Describe", json_after: tuple[str, ...] = ()
    ) -> MatcherGuide:
        guide = MatcherGuide(self.vocabulary, grammar, coverage, describe, json_after)
        if guide.fault:
            raise _refused(what, guide.fault)
        if guide.warnings and self.strict:
            raise UnsupportedConstraintError(
                f"{what} asks for what cannot be enforced: {guide.warnings[0]}", clauses=guide.warnings
            )
        try:
            first = guide.start().allowed(0)
        except NoValidTokenError as error:
            raise NoValidTokenError(f"nothing can be written under {what}: {error.message}") from None
        if first == ():
            raise NoValidTokenError(f"nothing can be written under {what} with this vocabulary")
        return guide


def _refused(what: str, message: str) -> InputError | NoValidTokenError:
    if "nsatisfiable" in message:
        return NoValidTokenError(f"nothing fits {what}: {error_line(message)}")
    if "too big" in message or "too large" in message or "stack level exceeded" in message:
        return InputError(f"{what} is larger than the engine's limits: {error_line(message)}; divide it")
    place = re.match(r"(?:at )?(\d+)\((\d+)\):", message)
    where = f", line {place[1]}, column {place[2]}" if place and what == "the grammar" else ""
    return InputError(Wording("{what} cannot be used: {problem}", what=Wording.joined("", (what, where)), problem=error_line(message)))  # fmt: skip


def _check_text(text: str, what: str, most: int = MOST_CHARACTERS) -> None:
    check_unicode(text, what)
    if len(text) > most:
        raise InputError(f"{what} has {len(text)} characters; {most} at most")


def _to_source(source: object) -> Source:
    """Return the source as one of the values that can be compiled."""
    if isinstance(source, (JsonSchema, Regex, Grammar, Choice, ToolCallsInText)):
        return source
    from taiwa.structured import OutputType

    if not isinstance(source, OutputType):
        source = OutputType(source)
    return JsonSchema(source.schema(), source.name)
