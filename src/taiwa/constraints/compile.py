"""Compile a constraint for a vocabulary into a guide; guides are cached by vocabulary, source and options."""

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from copy import deepcopy
from threading import Lock

from taiwa.constraints.allowed_tokens import ESCAPES, MatcherGuide, error_line, lark_string
from taiwa.constraints.explain import Describe, describe_json_state, describe_state
from taiwa.constraints.guide import Coverage, SchemaClause, Source, UnsupportedConstraintError, Whitespace
from taiwa.constraints.schema_rewriter import RewrittenSchema, rewrite_schema
from taiwa.constraints.tool_call_grammar import ToolCallGrammar, check_samples, sample_texts
from taiwa.constraints.vocabulary import Vocabulary, import_llguidance
from taiwa.json_schema.value_sets import find_unsatisfiable
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import Grammar, JsonSchema, OneOf, Regex, ToolCallsInText
from taiwa.kernel.records import Json, record

RULE = r"^[ \t]*[?!]?{name}(?:\[[^\]]*\])?[ \t]*:"


def to_engine_lark(grammar: Grammar) -> str:
    """Return a grammar in the engine's Lark dialect with a rule `start`; the input is Lark, or GBNF (the EBNF of llama.cpp).

    Raises:
        InputError: the start rule does not exist, or the text is in neither notation.
    """
    text = grammar.text
    if re.search(r"^[ \t]*[\w-]+[ \t]*::=", text, re.MULTILINE):
        text = _of_gbnf(text)
        return text if grammar.start in ("start", "root") else _started(text, grammar.start)
    return text if grammar.start == "start" and _has(text, "start") else _started(text, grammar.start)


def _has(text: str, rule: str) -> bool:
    return re.search(RULE.format(name=re.escape(rule)), text, re.MULTILINE) is not None


def _started(text: str, rule: str) -> str:
    if not _has(text, rule):
        raise InputError(f"the grammar has no rule {rule!r} to start with")
    if _has(text, "start"):
        raise InputError(f"the grammar starts with {rule!r}, so another rule must not be called start: rename it")
    return f"start: {rule}\n{text}"


def _of_gbnf(text: str) -> str:
    import_llguidance()
    from llguidance.gbnf_to_lark import GbnfToLarkError, any_to_lark

    try:
        return str(any_to_lark(text))
    except (GbnfToLarkError, ValueError, IndexError, KeyError, AssertionError) as error:
        raise InputError(f"cannot read the grammar as EBNF: {error}") from None


GUIDES = 128
"""The size of the cache; a guide takes up to 14 MB."""
WHITESPACE: Mapping[Whitespace, Mapping[str, Json]] = {
    "bounded": {"whitespace_pattern": r" |\n {0,24}"},
    "compact": {"whitespace_flexible": False},
    "free": {"whitespace_flexible": True},
}
MERGED = "(min/max|pattern)Propert|intersection stack"
MOST_CHARACTERS = 4 << 20
"""The maximum length of a source; larger ones exceed the engine's limits as well."""
SHOWN = 8


class _GuideCache:
    """Guides by their source. A source that cannot be hashed (it contains a schema) is found by identity, then by content."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_content: OrderedDict[tuple[object, ...], MatcherGuide] = OrderedDict()
        self._by_object: OrderedDict[tuple[object, ...], tuple[object, object, MatcherGuide]] = OrderedDict()

    def get(self, key: tuple[object, ...], source: object) -> MatcherGuide | None:
        """Return the guide of a source if it was compiled before and has not changed."""
        if not isinstance(source, (JsonSchema, ToolCallsInText)):
            try:
                return self._by_content.get((*key, source))
            except TypeError:
                raise InputError(
                    f"a {type(source).__name__} is mutable and cannot be a constraint; use tuples"
                ) from None
        found = self._by_object.get((*key, id(source)))
        if found is not None and found[0] is source and found[1] == source:
            return found[2]
        return self._by_content.get((*key, _content(source)))

    def clear(self) -> None:
        """Remove all guides."""
        with self._lock:
            self._by_content.clear()
            self._by_object.clear()

    def keep(self, key: tuple[object, ...], source: object, guide: MatcherGuide) -> MatcherGuide:
        """Add a guide; the oldest ones are removed."""
        with self._lock:
            if isinstance(source, (JsonSchema, ToolCallsInText)):
                self._by_object[(*key, id(source))] = (source, deepcopy(source), guide)
                self._by_content[(*key, _content(source))] = guide
            else:
                self._by_content[(*key, source)] = guide
            for kept in (self._by_content, self._by_object):
                while len(kept) > GUIDES:
                    kept.popitem(last=False)
        return guide


def _content(source: JsonSchema | ToolCallsInText) -> str:
    """Return the content of a source, in its order: keys in another order are another guide."""
    return f"{type(source).__name__} {json.dumps(record(source), ensure_ascii=False)}"


_cache = _GuideCache()


def clear_cache() -> None:
    """Clear the cache, so that the next compilation is a first one."""
    _cache.clear()


def compile(
    source: object,
    vocabulary: Vocabulary,
    *,
    strict: bool = True,
    whitespace: Whitespace = "bounded",
    order: tuple[str, ...] = (),
) -> MatcherGuide:
    """Compile a constraint for a vocabulary, or return the cached guide.

    `source` is a `JsonSchema`, `Regex`, `Grammar`, `OneOf` or `ToolCallsInText`, a `Shape`, or a type. `strict` refuses what cannot be
    enforced; otherwise it is left out, the guide's coverage lists it, and the answer must be validated. The keys of an object
    come in the order of the schema, those in `order` first.

    Raises:
        ConfigError: llguidance is not installed.
        DeadEndError: no text satisfies the constraint.
        InputError: the source cannot be read; `UnsupportedConstraintError` if strict and a part cannot be enforced.
    """
    _checked(source)
    key = (vocabulary.digest, strict, whitespace, order)
    try:
        found = _cache.get(key, source)
        if found is not None:
            return found
        work = _Compilation(vocabulary, strict, whitespace, order)
        return _cache.keep(key, source, work.of(_plain(source)))
    except RecursionError:
        raise InputError("the source is nested too deeply; move parts of it into $defs") from None


class _Compilation:
    """One compilation."""

    def __init__(self, vocabulary: Vocabulary, strict: bool, whitespace: Whitespace, order: tuple[str, ...]) -> None:
        if whitespace not in WHITESPACE:
            raise InputError(f"unknown whitespace mode {whitespace!r}; choose one of {', '.join(WHITESPACE)}")
        self.vocabulary = vocabulary
        self.strict = strict
        self.whitespace: Whitespace = whitespace
        self.order = order

    def of(self, source: Source) -> MatcherGuide:
        """Compile a source by its type."""
        if isinstance(source, JsonSchema):
            return self._schema(source)
        if isinstance(source, ToolCallsInText):
            return self._tools(source)
        if isinstance(source, OneOf):
            return self._choice(source)
        matcher = import_llguidance().LLMatcher
        if isinstance(source, Regex):
            _bounded(source.pattern, "pattern")
            grammar = matcher.grammar_from_regex(source.pattern)
            what, tell = (
                f"the pattern {_short(source.pattern)}",
                describe_state("regex", f"text that matches {source.pattern}"),
            )
        else:
            _bounded(source.text, "grammar")
            grammar = matcher.grammar_from_lark(to_engine_lark(source))
            what, tell = "the grammar", describe_state("grammar", "what the grammar says next")
        return self._guide(grammar, what, Coverage(), tell)

    def _schema(self, source: JsonSchema) -> MatcherGuide:
        written = rewrite_schema(source.schema, self.order)
        try:
            return self._written(written, source)
        except InputError as error:
            # In merged schemas the engine neither counts keys nor distinguishes patterns, and references may not end.
            if not re.search(MERGED, error.message) or isinstance(error, UnsupportedConstraintError):
                raise
        return self._written(rewrite_schema(source.schema, self.order, merged=True), source)

    def _written(self, written: RewrittenSchema, source: JsonSchema) -> MatcherGuide:
        coverage = self._covered(written.enforced, written.missed, written.ignored)
        nothing = find_unsatisfiable(written.schema, written.origins)
        if nothing is not None:
            raise NoValidTokenError(f"{nothing or '/'}: no finite value fits this part of the schema", state=nothing)
        text = json.dumps(written.schema, ensure_ascii=False)
        _bounded(text, "schema")
        options = {**WHITESPACE[self.whitespace], "json_allowed_escapes": ESCAPES}
        grammar = import_llguidance().LLMatcher.grammar_from_json_schema(text, overrides=options)
        return self._guide(grammar, f"the schema {source.name}", coverage, describe_json_state(source.schema))

    def _covered(
        self,
        enforced: tuple[SchemaClause, ...],
        missed: tuple[SchemaClause, ...],
        ignored: tuple[SchemaClause, ...] = (),
    ) -> Coverage:
        if len(missed) > 0 and self.strict:
            lines = tuple(str(clause) for clause in missed)
            more = f" and {len(missed) - 1} more" if len(missed) > 1 else ""
            hint = "express it in other keywords, or compile with strict=False and validate the answer"
            raise UnsupportedConstraintError(f"this cannot be enforced: {missed[0]}{more}; {hint}", clauses=lines)
        return Coverage(enforced, missed, ignored=ignored)

    def _choice(self, source: OneOf) -> MatcherGuide:
        words = tuple(dict.fromkeys(source.texts))
        if not words:
            raise InputError("a choice needs at least one word")
        text = f"start: WORD\nWORD: {' | '.join(map(lark_string, words))}\n"
        _bounded(text, "choice")
        for word in words:
            self._spelled(word)
        shown = " or ".join(map(repr, words[:SHOWN])) + (" or …" if len(words) > SHOWN else "")
        grammar = import_llguidance().LLMatcher.grammar_from_lark(text)
        return self._guide(grammar, "the choice", Coverage(), describe_state("choice", shown))

    def _spelled(self, word: str) -> None:
        """Refuse a word that the vocabulary cannot write: without it the choice would be another one."""
        if not self.vocabulary.spells(word.encode()):
            hint = "drop it, or use a vocabulary that can"
            raise NoValidTokenError(f"no sequence of tokens spells {word!r}: {hint}", state=word)

    def _tools(self, source: ToolCallsInText) -> MatcherGuide:
        grammar = ToolCallGrammar(source)
        made = import_llguidance().LLMatcher.grammar_from_lark(grammar.text())
        coverage = self._covered((), tuple(grammar.missed))
        tell = describe_state("tools", f"text, or a call of {', '.join(spec.name for spec in source.tools)}")
        trial = _Compilation(Vocabulary.of_bytes(), self.strict, self.whitespace, self.order)
        tried = trial._guide(made, "the grammar of the tools", coverage, tell)
        check_samples(lambda text: tried.accepts(text.encode()), *sample_texts(source))
        return self._guide(made, "the grammar of the tools", coverage, tell)

    def _guide(self, grammar: str, what: str, coverage: Coverage, tell: Describe) -> MatcherGuide:
        guide = MatcherGuide(self.vocabulary, grammar, coverage, tell)
        if guide.fault:
            raise _refused(what, guide.fault)
        if guide.warnings and self.strict:
            told = guide.warnings
            raise UnsupportedConstraintError(f"{what} asks for what cannot be enforced: {told[0]}", clauses=told)
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
    return InputError(f"{what}{where} cannot be used: {error_line(message)}")


def _bounded(text: str, what: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"the {what} has {len(text)} characters; {MOST_CHARACTERS} at most")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def _checked(source: object) -> None:
    """Refuse texts and mappings, whose meaning is ambiguous."""
    if isinstance(source, str):
        raise InputError("a text is ambiguous as a constraint; use Regex(…), Grammar(…) or OneOf(…)")
    if isinstance(source, Mapping):
        raise InputError("a mapping is ambiguous as a constraint; use JsonSchema(…)")


def _plain(source: object) -> Source:
    """Return the source as one of the values that can be compiled."""
    if isinstance(source, (JsonSchema, Regex, Grammar, OneOf, ToolCallsInText)):
        return source
    from taiwa.structured import OutputType

    if isinstance(source, OutputType):
        return JsonSchema(source.schema(), source.name)
    made = OutputType(source)
    return JsonSchema(made.schema(), made.name)
