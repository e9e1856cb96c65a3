"""An answer held against its constraint when it is there, whatever the server said that it would do.

Patterns, choices, tools in free text and grammars are checked here. JSON is checked by whoever reads it as a type
(`taiwa.shape`), as there it must be anyway.
"""

from dataclasses import replace
from functools import lru_cache

from taiwa.constraints.automaton import Automaton, compile_regex
from taiwa.constraints.earley import GrammarGuide
from taiwa.constraints.gbnf import tool_calls_to_gbnf
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.values import Calls, Chunk, Enforcement, Finished, Grammar, OneOf, Regex, Request, TextDelta
from taiwa.models.enforcing import clause

__all__ = ["Keeping", "broken"]

MOST_KEPT = 64
LONGEST = 20_000
"""Longer answers are not read by a grammar here: that takes time that grows faster than they do."""


class Keeping:
    """Watches the chunks of an answer go by, and adds to the last one how its constraint was kept."""

    def __init__(self, enforcement: Enforcement, request: Request) -> None:
        self._enforcement = enforcement
        self._request = request
        self._said = [request.prefix]

    def seen(self, chunk: Chunk) -> Chunk:
        """Give out a chunk."""
        if isinstance(chunk, TextDelta):
            self._said.append(chunk.text)
        elif isinstance(chunk, Finished):
            faults = broken(self._request, "".join(self._said)) if chunk.finish == "stop" else ()
            return replace(chunk, enforcement=replace(self._enforcement, broken=faults))
        return chunk


def broken(request: Request, text: str) -> tuple[str, ...]:
    """Say which constraint a whole answer breaks; of a schema nothing is said here.

    >>> broken(Request((), constraint=Regex("[0-9]+")), "ten")
    ('/: regex',)
    """
    constraint = request.constraint
    match constraint:
        case Regex(pattern):
            automaton = _automaton(pattern)
            name, fits = "regex", automaton is None or automaton.accepts(map(ord, text))
        case OneOf(texts):
            name, fits = "choice", text in texts
        case Calls():
            name, fits = "tools", _calls(constraint, text)
        case Grammar():
            name, fits = "grammar", len(text) > LONGEST or _grammar(constraint, text)
        case _:
            return ()
    return () if fits else (clause("", name),)


@lru_cache(maxsize=MOST_KEPT)
def _automaton(pattern: str) -> Automaton | None:
    try:
        return compile_regex(pattern, chars=True)
    except InputError:
        return None  # a pattern of the server's own dialect


def _calls(calls: Calls, text: str) -> bool:
    try:
        return tool_calls_to_gbnf(calls).accepts(text)
    except InputError:
        return True


def _grammar(grammar: Grammar, text: str) -> bool:
    guide = _reference(grammar)
    return guide is None or guide.accepts(text)


@lru_cache(maxsize=MOST_KEPT)
def _reference(grammar: Grammar) -> GrammarGuide | None:
    try:
        return GrammarGuide(grammar.text, Vocabulary.of_bytes(), start=grammar.start)
    except (ConfigError, InputError):
        return None  # no Lark here, or a grammar of the server's own dialect
