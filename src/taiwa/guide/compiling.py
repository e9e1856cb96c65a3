"""From a constraint to a guide: once for each vocabulary, source and options; then it is kept."""

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from copy import deepcopy
from threading import Lock

from taiwa.guide.lark import lark
from taiwa.guide.library import library
from taiwa.guide.matching import MatcherGuide
from taiwa.guide.notation import quoted
from taiwa.guide.protocol import Clause, Coverage, UncoveredError
from taiwa.guide.schema import Rewritten, rewrite
from taiwa.guide.schema.finite import blocked
from taiwa.guide.sources import Choice, Source, Tools, Whitespace
from taiwa.guide.telling import Tell, tell_json, telling
from taiwa.guide.toolgrammar import ToolGrammar, examples
from taiwa.guide.verdict import ESCAPES, said
from taiwa.guide.vocabulary import Vocabulary
from taiwa.kernel.errors import DeadEndError, InputError
from taiwa.kernel.records import Json, record
from taiwa.kernel.values import Calls, Grammar, JsonSchema, OneOf, Regex

__all__ = ["compile", "forget"]

GUIDES = 128
"""How many guides are kept: each takes up to 14 MB."""
WHITESPACE: Mapping[Whitespace, Mapping[str, Json]] = {
    "bounded": {"whitespace_pattern": r" |\n {0,24}"},
    "compact": {"whitespace_flexible": False},
    "free": {"whitespace_flexible": True},
}
MERGED = "(min/max|pattern)Propert|intersection stack"
MOST_CHARACTERS = 4 << 20
"""How long a source may be: what is larger does not fit the engine's limits either."""
SHOWN = 8


class _Kept:
    """Guides by their source. What cannot be hashed (it holds a schema) is found again as the very same object."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_content: OrderedDict[tuple[object, ...], MatcherGuide] = OrderedDict()
        self._by_object: OrderedDict[tuple[object, ...], tuple[object, object, MatcherGuide]] = OrderedDict()

    def get(self, key: tuple[object, ...], source: object) -> MatcherGuide | None:
        """The guide of a source, if it was compiled before and is still as it was."""
        if not isinstance(source, (JsonSchema, Tools)):
            try:
                return self._by_content.get((*key, source))
            except TypeError:
                raise InputError(f"a {type(source).__name__} that can change is no constraint: give tuples") from None
        found = self._by_object.get((*key, id(source)))
        if found is not None and found[0] is source and found[1] == source:
            return found[2]
        return self._by_content.get((*key, _content(source)))

    def forget(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._by_content.clear()
            self._by_object.clear()

    def keep(self, key: tuple[object, ...], source: object, guide: MatcherGuide) -> MatcherGuide:
        """Keep a guide; the oldest ones make room."""
        with self._lock:
            if isinstance(source, (JsonSchema, Tools)):
                self._by_object[(*key, id(source))] = (source, deepcopy(source), guide)
                self._by_content[(*key, _content(source))] = guide
            else:
                self._by_content[(*key, source)] = guide
            for kept in (self._by_content, self._by_object):
                while len(kept) > GUIDES:
                    kept.popitem(last=False)
        return guide


def _content(source: JsonSchema | Tools) -> str:
    """All that a source says, in its order: keys in another order are another guide."""
    return f"{type(source).__name__} {json.dumps(record(source), ensure_ascii=False)}"


_kept = _Kept()


def forget() -> None:
    """Forget all guides, so that the next compilation is a first one."""
    _kept.forget()


def compile(  # noqa: A001  (used as guide.compile)
    source: object,
    vocabulary: Vocabulary,
    *,
    strict: bool = True,
    whitespace: Whitespace = "bounded",
    order: tuple[str, ...] = (),
) -> MatcherGuide:
    """Compile a constraint for a vocabulary, or give the guide of an earlier time.

    `source` is a `JsonSchema`, `Regex`, `Grammar`, `Choice` or `Tools`, a `Shape`, or a type. `strict` refuses what cannot
    be enforced; without it, it is left out, the guide's coverage says so, and the answer must be checked. Keys of an object
    come in the order of the schema, those that `order` names first.

    Raises:
        ConfigError: the extra `guide` is not installed.
        DeadEndError: nothing can be written under the constraint.
        InputError: the source cannot be read; `UncoveredError` where it asks for what cannot be enforced.
    """
    _checked(source)
    source = _ours(source)
    key = (vocabulary.digest, strict, whitespace, order)
    try:
        found = _kept.get(key, source)
        if found is not None:
            return found
        work = _Work(vocabulary, strict, whitespace, order)
        return _kept.keep(key, source, work.of(_plain(source)))
    except RecursionError:
        raise InputError("the source is nested too deeply: move parts of it into $defs") from None


class _Work:
    """One compilation."""

    def __init__(self, vocabulary: Vocabulary, strict: bool, whitespace: Whitespace, order: tuple[str, ...]) -> None:
        if whitespace not in WHITESPACE:
            raise InputError(f"no white space {whitespace!r}; there are {', '.join(WHITESPACE)}")
        self.vocabulary = vocabulary
        self.strict = strict
        self.whitespace: Whitespace = whitespace
        self.order = order

    def of(self, source: Source) -> MatcherGuide:
        """Compile what is none of the values with a schema first: they need no walk."""
        if isinstance(source, JsonSchema):
            return self._schema(source)
        if isinstance(source, Tools):
            return self._tools(source)
        if isinstance(source, Choice):
            return self._choice(source)
        matcher = library().LLMatcher
        if isinstance(source, Regex):
            _bounded(source.pattern, "pattern")
            grammar = matcher.grammar_from_regex(source.pattern)
            what, tell = (
                f"the pattern {_short(source.pattern)}",
                telling("regex", f"text that matches {source.pattern}"),
            )
        else:
            _bounded(source.text, "grammar")
            grammar = matcher.grammar_from_lark(lark(source))
            what, tell = "the grammar", telling("grammar", "what the grammar says next")
        return self._guide(grammar, what, Coverage(), tell)

    def _schema(self, source: JsonSchema) -> MatcherGuide:
        written = rewrite(source.schema, self.order)
        try:
            return self._written(written, source)
        except InputError as error:
            # Of schemas that are merged the engine neither counts keys nor tells patterns apart, and references may not end.
            if not re.search(MERGED, error.message) or isinstance(error, UncoveredError):
                raise
        return self._written(rewrite(source.schema, self.order, merged=True), source)

    def _written(self, written: Rewritten, source: JsonSchema) -> MatcherGuide:
        coverage = self._covered(written.enforced, written.missed, written.ignored)
        nothing = blocked(written.schema, written.origins)
        if nothing is not None:
            raise DeadEndError(f"{nothing or '/'}: no finite value fits this part of the schema", state=nothing)
        text = json.dumps(written.schema, ensure_ascii=False)
        _bounded(text, "schema")
        options = {**WHITESPACE[self.whitespace], "json_allowed_escapes": ESCAPES}
        grammar = library().LLMatcher.grammar_from_json_schema(text, overrides=options)
        return self._guide(grammar, f"the schema {source.name}", coverage, tell_json(source.schema))

    def _covered(
        self, enforced: tuple[Clause, ...], missed: tuple[Clause, ...], ignored: tuple[Clause, ...] = ()
    ) -> Coverage:
        if len(missed) > 0 and self.strict:
            lines = tuple(str(clause) for clause in missed)
            more = f" and {len(missed) - 1} more" if len(missed) > 1 else ""
            hint = "say it otherwise, or compile with strict=False and check the answer afterwards"
            raise UncoveredError(f"this cannot be enforced: {missed[0]}{more}; {hint}", clauses=lines)
        return Coverage(enforced, missed, ignored=ignored)

    def _choice(self, source: Choice) -> MatcherGuide:
        words = tuple(dict.fromkeys(source.options))
        if not words:
            raise InputError("a choice needs at least one word")
        text = f"start: WORD\nWORD: {' | '.join(map(quoted, words))}\n"
        _bounded(text, "choice")
        for word in words:
            self._spelled(word)
        shown = " or ".join(map(repr, words[:SHOWN])) + (" or …" if len(words) > SHOWN else "")
        grammar = library().LLMatcher.grammar_from_lark(text)
        return self._guide(grammar, "the choice", Coverage(), telling("choice", shown))

    def _spelled(self, word: str) -> None:
        """Refuse a word that cannot be written: without it the choice would not be the one that was asked for."""
        if not self.vocabulary.spells(word.encode()):
            hint = "drop it, or use a vocabulary that can"
            raise DeadEndError(f"no sequence of tokens spells {word!r}: {hint}", state=word)

    def _tools(self, source: Tools) -> MatcherGuide:
        grammar = ToolGrammar(source)
        made = library().LLMatcher.grammar_from_lark(grammar.text())
        coverage = self._covered((), tuple(grammar.missed))
        tell = telling("tools", f"text, or a call of {', '.join(spec.name for spec in source.specs)}")
        good, bad = examples(source)
        trial = _Work(Vocabulary.of_bytes(), self.strict, self.whitespace, self.order)
        tried = trial._guide(made, "the grammar of the tools", coverage, tell)
        for texts, wanted in ((good, True), (bad, False)):
            for text in texts:
                if tried.accepts(text.encode()) is not wanted:
                    verb = "refuses" if wanted else "lets through"
                    raise InputError(f"the grammar of the tools {verb} {text!r}: check their schemas and the examples")
        return self._guide(made, "the grammar of the tools", coverage, tell)

    def _guide(self, grammar: str, what: str, coverage: Coverage, tell: Tell) -> MatcherGuide:
        guide = MatcherGuide(self.vocabulary, grammar, coverage, tell)
        if guide.fault:
            raise _refused(what, guide.fault)
        if guide.warnings and self.strict:
            told = guide.warnings
            raise UncoveredError(f"{what} asks for what cannot be enforced: {told[0]}", clauses=told)
        try:
            first = guide.start().allowed(0)
        except DeadEndError as error:
            raise DeadEndError(f"nothing can be written under {what}: {error.message}") from None
        if first == ():
            raise DeadEndError(f"nothing can be written under {what} with this vocabulary")
        return guide


def _refused(what: str, message: str) -> InputError | DeadEndError:
    if "nsatisfiable" in message:
        return DeadEndError(f"nothing fits {what}: {said(message)}")
    if "too big" in message or "too large" in message:
        return InputError(f"{what} is larger than the engine's limits: {said(message)}; divide it")
    place = re.match(r"(?:at )?(\d+)\((\d+)\):", message)
    where = f", line {place[1]}, column {place[2]}" if place and what == "the grammar" else ""
    return InputError(f"{what}{where} cannot be used: {said(message)}")


def _bounded(text: str, what: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"the {what} has {len(text)} characters; {MOST_CHARACTERS} at most")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def _checked(source: object) -> None:
    """Refuse what does not say how it is meant."""
    if isinstance(source, str):
        raise InputError("a text does not say what it means as a constraint: give Regex(…), Grammar(…) or Choice(…)")
    if isinstance(source, Mapping):
        raise InputError("a mapping does not say what it means as a constraint: give JsonSchema(…)")


def _ours(source: object) -> object:
    """A constraint of a request under the name that it has here."""
    if isinstance(source, OneOf):
        return Choice(source.texts)
    if isinstance(source, Calls):
        return Tools(source.tools, source.free_text, source.opening, source.closing)
    return source


def _plain(source: object) -> Source:
    """The source as one of the values that can be compiled."""
    if isinstance(source, (JsonSchema, Regex, Grammar, Choice, Tools)):
        return source
    from taiwa.shape import Shape

    if isinstance(source, Shape):
        return JsonSchema(source.schema(), source.name)
    made = Shape(source)
    return JsonSchema(made.schema(), made.name)
