"""Calls of tools in free text as one grammar, for servers that read GBNF.

It says what `taiwa.guide.toolgrammar` says to the local engine: free text in which nothing but a call of one of the tools can
follow what opens a call, and which ends with the first call. GBNF knows neither intersection nor complement, so these are
taken of automata, and the grammar is what comes out.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from taiwa.guide.gbnf.frompattern import joined_rules
from taiwa.guide.gbnf.writing import automaton_rules
from taiwa.guide.protocol import Clause, UncoveredError
from taiwa.guide.reference.automaton import Automaton, compiled
from taiwa.guide.reference.pattern import Node, parse
from taiwa.guide.reference.schema import escaped, to_regex
from taiwa.guide.reference.strings import ANYTHING
from taiwa.guide.sources import Tools
from taiwa.guide.toolgrammar import NAME, PLAIN_TYPES, examples, kind_of, needed, properties_of, property_of
from taiwa.kernel.errors import InputError
from taiwa.kernel.values import ToolSpec

__all__ = ["CallGrammar", "of_tools"]

MOST_STATES = 50_000
LINE = r"[^ \t\n][^\n]*"
SPACE = " ?"
ANY = "(?s:.*)"

States: TypeAlias = tuple[int | None, ...]
"""Where several automata are that read one text; None for one that has no way on."""


@dataclass(frozen=True, slots=True)
class CallGrammar:
    """The grammar, the automaton that it was written from, and what of the tools' schemas it leaves out."""

    text: str
    automaton: Automaton
    missed: tuple[Clause, ...] = ()

    def accepts(self, text: str) -> bool:
        """Say whether a whole text is one of the grammar's."""
        return self.automaton.accepts(map(ord, text))


def of_tools(tools: Tools, begun: str = "") -> CallGrammar:
    """Write the grammar of some tools, and try it on examples made from their specifications.

    Raises:
        InputError: the tools cannot be used, a text that begins with `begun` cannot be one of them, or it is too large.
    """
    builder = _Builder(tools)
    automaton = builder.built()
    good, bad = examples(tools)
    for texts, wanted in ((good, True), (bad, False)):
        for text in texts:
            if automaton.accepts(map(ord, text)) is not wanted:
                verb = "refuses" if wanted else "lets through"
                raise InputError(f"the grammar of the tools {verb} {text!r}: check their schemas and the examples")
    start = automaton.walk(map(ord, begun))
    if start is None:
        raise InputError(f"the answer begins with {begun[-40:]!r}, behind which no call of these tools can come")
    return CallGrammar(joined_rules(automaton_rules(automaton, "root", start)), automaton, tuple(builder.missed))


class _Builder:
    """Puts together the automaton of free text, of the openings, and of each tool's input."""

    def __init__(self, tools: Tools) -> None:
        before, mark, after = tools.opening.partition("{name}")
        names = [spec.name for spec in tools.specs]
        if not (before and mark and after.strip() and tools.closing.strip()) or "\n" in tools.opening + tools.closing:
            raise InputError("a call needs marks on one line before its name, behind it, and at its end")
        if not names or len(set(names)) < len(names):
            raise InputError("free text with tools needs at least one tool, and no two of one name")
        self.tools = tools
        self.missed: list[Clause] = []
        self._tail = after[len(after.rstrip()) :]
        self._moves: list[list[tuple[int, int, int]]] = []
        self._finals: set[int] = set()
        head, mark = escaped(before), escaped(after.strip())
        self._heads = [compiled(f"{head}{escaped(name)}{mark}", chars=True) for name in names]
        spaces = r"[ \t]*"
        known = "|".join(map(escaped, names))
        openings = f"{ANY}({head}{spaces}({known}){spaces}{mark}|{head}{NAME}{mark})"
        found = [compiled(f"{ANY}{head}{escaped(name)}{mark}", chars=True) for name in names]
        self._text = (compiled(openings, chars=True), *found) if tools.free_text else tuple(self._heads)

    def built(self) -> Automaton:
        """The automaton of whole texts."""
        calls = [self._call(spec) for spec in self.tools.specs]
        firsts = [self._copied(call) for call in calls]
        free = self.tools.free_text
        start: States = tuple(0 for _ in self._text)
        numbers: dict[States, int] = {start: len(self._moves)}
        todo: list[States] = [start]
        self._moves.append([])
        for here in todo:
            row = self._moves[numbers[here]]
            if free:
                self._finals.add(numbers[here])
            for low, high, there in _together(self._text, here):
                target = self._opened(there, firsts)
                if target is None:
                    if there not in numbers:
                        numbers[there] = len(self._moves)
                        self._moves.append([])
                        todo.append(there)
                    target = numbers[there]
                if target >= 0:
                    row.append((low, high, target))
            self._bounded()
        return _trimmed(self._moves, self._finals, numbers[start])

    def _opened(self, states: States, firsts: list[int]) -> int | None:
        """Where the input of the tool begins whose call was opened; -1 for one that must not be, None where none was."""
        free = self.tools.free_text
        own = states[1:] if free else states
        for number, (state, first) in enumerate(zip(own, firsts, strict=True)):
            if state is not None and state in self._text[number + free].finals:
                return first
        return -1 if free and states[0] in self._text[0].finals else None

    def _call(self, spec: ToolSpec) -> Automaton:
        """What stands behind the opening of a call: the input and its closing mark, which ends it where it first comes."""
        tail, close = escaped(self._tail), escaped(self.tools.closing)
        rules = [compiled(parse(f"{tail}({pattern}){close}"), chars=True) for pattern in self._inputs(spec)]
        ending = compiled(f"{ANY}{close}", chars=True)
        parts = (*rules, ending)
        start: States = tuple(0 for _ in parts)
        numbers: dict[States, int] = {start: 0}
        todo: list[States] = [start]
        moves, finals = [list[tuple[int, int, int]]()], set[int]()
        for here in todo:
            if here[-1] in ending.finals:
                if all(state in rule.finals for rule, state in zip(rules, here, strict=False)):
                    finals.add(numbers[here])
                continue
            for low, high, there in _together(parts, here):
                if None not in there:
                    if there not in numbers:
                        numbers[there] = len(moves)
                        moves.append([])
                        todo.append(there)
                    moves[numbers[here]].append((low, high, numbers[there]))
            if len(moves) > MOST_STATES:
                raise InputError(
                    f"the input of the tool {spec.name} is too large for a grammar: make its limits smaller"
                )
        if not finals:
            raise InputError(f"the tool {spec.name} takes no input that can stand in a call")
        return _trimmed(moves, finals, 0)

    def _inputs(self, spec: ToolSpec) -> Iterator[str | Node]:
        """Patterns all of which an input must match."""
        wanted = needed(spec)
        if len(wanted) != 1 or kind_of(spec, wanted[0]) not in PLAIN_TYPES:
            yield self._json(spec, wanted)
            return
        schema = property_of(spec, wanted[0])
        words = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if words is not None:
            if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
                raise InputError(f"the tool {spec.name} takes none of the words of its parameter {wanted[0]}")
            yield "|".join(escaped(str(word)) for word in words)
            return
        yield LINE
        if "minLength" in schema or "maxLength" in schema:
            yield rf"[^\n]{{{schema.get('minLength', 1)},{schema.get('maxLength', '')}}}"
        if isinstance(schema.get("pattern"), str):
            yield from self._pattern(str(schema["pattern"]), spec, wanted[0])
        if "format" in schema:
            self._miss(spec, f"/properties/{wanted[0]}", "format", "an input without quotes has no format")

    def _pattern(self, pattern: str, spec: ToolSpec, name: str) -> Iterator[str]:
        try:
            parse(pattern, around=ANYTHING)
        except InputError as error:
            self._miss(spec, f"/properties/{name}", "pattern", error.message)
            return
        start, end = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
        core = pattern[start : len(pattern) - end]
        yield f"{'' if start else ANY}(?:{core}){'' if end else ANY}"

    def _json(self, spec: ToolSpec, wanted: tuple[str, ...]) -> str:
        if not properties_of(spec):
            return ""
        one = len(wanted) == 1 and kind_of(spec, wanted[0]) not in ("object", "array")
        schema = property_of(spec, wanted[0]) if one else spec.parameters
        try:
            return to_regex(json.loads(json.dumps(schema)), SPACE)
        except UncoveredError as error:
            for clause in error.clauses:
                pointer, _, rest = clause.partition(": ")
                keyword, _, reason = rest.partition(" (")
                self._miss(spec, pointer.rstrip("/"), keyword, reason.rstrip(")"))
        except InputError as error:
            self._miss(spec, "", "type", error.message)
        return LINE

    def _miss(self, spec: ToolSpec, pointer: str, keyword: str, reason: str) -> None:
        self.missed.append(Clause(f"/{spec.name}{pointer}", keyword, reason))

    def _copied(self, call: Automaton) -> int:
        """Add the states of an automaton; the first of them."""
        first = len(self._moves)
        for row in call.moves:
            self._moves.append([(low, high, there + first) for low, high, there in row])
        self._finals |= {state + first for state in call.finals}
        self._bounded()
        return first

    def _bounded(self) -> None:
        if len(self._moves) > MOST_STATES:
            raise InputError("the grammar of the tools is too large: use fewer, or make their limits smaller")


def _together(automata: tuple[Automaton, ...], states: States) -> Iterator[tuple[int, int, States]]:
    """The moves of automata that read one text; a range ends where it ends for one of them."""
    rows = [
        automaton.moves[state] if state is not None else () for automaton, state in zip(automata, states, strict=True)
    ]
    cuts = sorted({edge for row in rows for low, high, _ in row for edge in (low, high + 1)})
    for low, end in pairwise(cuts):
        there = tuple(
            None if state is None else automaton.step(state, low)
            for automaton, state in zip(automata, states, strict=True)
        )
        if any(state is not None for state in there):
            yield low, end - 1, there


def _trimmed(moves: list[list[tuple[int, int, int]]], finals: set[int], start: int) -> Automaton:
    """The automaton of some moves, less the states that lead nowhere; the start becomes state 0."""
    back: dict[int, set[int]] = {}
    for state, row in enumerate(moves):
        for *_, there in row:
            back.setdefault(there, set()).add(state)
    alive, todo = set(finals), list(finals)
    while todo:
        fresh = back.get(todo.pop(), set()) - alive
        alive |= fresh
        todo += fresh
    if start not in alive:
        raise InputError("no text can be written with these tools")
    order = [start, *(state for state in sorted(alive) if state != start)]
    number = {state: place for place, state in enumerate(order)}
    kept = tuple(
        tuple(sorted((low, high, number[there]) for low, high, there in moves[state] if there in alive))
        for state in order
    )
    return Automaton(kept, frozenset(number[state] for state in finals))
