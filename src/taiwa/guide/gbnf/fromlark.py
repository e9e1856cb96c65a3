"""A grammar in Lark's notation as GBNF.

GBNF has no lexer: a terminal is read in every way it can be, as by Lark's lexer `dynamic_complete` and by the reference guide
`Cfg`. What `%ignore` names may stand before each terminal and at the end.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from taiwa.guide.gbnf.frompattern import joined_rules
from taiwa.guide.gbnf.leftward import Body, Rules, rightward
from taiwa.guide.gbnf.writing import EMPTY, MOST_RULES, automaton_rules, charset, literal, rule
from taiwa.guide.reference.automaton import Automaton
from taiwa.guide.reference.cfg import loaded, terminal_of
from taiwa.kernel.errors import InputError
from taiwa.kernel.values import Grammar

if TYPE_CHECKING:
    from lark import Lark

__all__ = ["is_gbnf", "of_grammar"]

ARROW = re.compile(r"^[ \t]*[\w-]+[ \t]*::=", re.MULTILINE)
NUMBERED = re.compile(r"-(\d+)\Z")
FORBIDDEN = re.compile(r"[^A-Za-z0-9]+")


def is_gbnf(text: str) -> bool:
    """Say whether a grammar is in GBNF already."""
    return ARROW.search(text) is not None


def of_grammar(grammar: Grammar) -> str:
    r"""Write a grammar in GBNF; one that is in GBNF is left as it is.

    >>> print(of_grammar(Grammar('start: "(" NUMBER ")"\nNUMBER: /[0-9]+/')))
    root ::= "(" number ")"
    number ::= [0-9] number-1
    number-1 ::= [0-9] number-1 | ""

    Raises:
        ConfigError: the extra `guide` is not installed.
        InputError: it is no grammar, or GBNF cannot say it.
    """
    if is_gbnf(grammar.text):
        return _rooted(grammar)
    lark = loaded(grammar.text, grammar.start)
    terminals = {
        name: terminal_of(name, pattern, chars=True)
        for name, pattern in ((str(each.name), each.pattern.to_regexp()) for each in lark.terminals)
    }
    rules = rightward(_rules(lark, terminals), grammar.start)
    skipped = [str(name) for name in lark.ignore_tokens]
    return joined_rules(_Writer(rules, terminals, skipped, grammar.start).lines())


def _rooted(grammar: Grammar) -> str:
    if grammar.start in ("start", "root"):
        return grammar.text
    if re.search(r"^[ \t]*root[ \t]*::=", grammar.text, re.MULTILINE):
        raise InputError(
            f"the grammar starts with {grammar.start!r}, so another rule must not be called root: rename it"
        )
    return f"root ::= {grammar.start}\n{grammar.text}"


def _rules(lark: "Lark", terminals: dict[str, Automaton]) -> Rules:
    rules: Rules = {}
    for each in lark.rules:
        body: Body = tuple(str(part.name) for part in each.expansion)
        rules.setdefault(str(each.origin.name), []).append(body)
    for bodies in rules.values():
        for part in (part for body in bodies for part in body):
            if part not in rules and part not in terminals:
                raise InputError(f"the terminal {part} of the grammar has no text: it is only declared")
    return rules


class _Writer:
    """Writes rules and the terminals that they use under names that GBNF allows."""

    def __init__(self, rules: Rules, terminals: dict[str, Automaton], skipped: list[str], start: str) -> None:
        self.rules = rules
        self.terminals = terminals
        self.skipped = skipped
        self.start = start
        self._taken = {"root", "skip"}
        self._names = {} if self.skipped else {start: "root"}
        self._used: dict[str, str] = {}

    def lines(self) -> list[str]:
        """The whole grammar."""
        lines = [rule("root", [f"{self.name(self.start)} skip"])] if self.skipped else []
        for name, bodies in self.rules.items():
            lines.append(rule(self.name(name), _factored([tuple(self._parts(body)) for body in bodies])))
        if self.skipped:
            lines.append(rule("skip", [*(f"{self._terminal(name)} skip" for name in self.skipped), EMPTY]))
        for name, written in self._used.items():
            lines += automaton_rules(self.terminals[name], written)
        if len(lines) > MOST_RULES:
            raise InputError(f"the grammar would have more than {MOST_RULES:,} rules: divide it")
        return lines

    def name(self, name: str) -> str:
        """The name of a rule or terminal in GBNF."""
        if name not in self._names:
            bare = FORBIDDEN.sub("-", name).strip("-").lower() or "rule"
            bare = NUMBERED.sub(r"\1", bare)  # `name-1` is a state of the automaton of `name`
            fitting = next(
                each for each in (bare, *(f"{bare}x{n}" for n in range(MOST_RULES))) if each not in self._taken
            )
            self._names[name] = fitting
            self._taken.add(fitting)
        return self._names[name]

    def _parts(self, body: Body) -> Iterator[str]:
        for part in body:
            if part in self.rules:
                yield self.name(part)
            else:
                yield from ("skip",) if self.skipped else ()
                yield self._terminal(part)

    def _terminal(self, name: str) -> str:
        """A terminal of one text or one character is written where it stands, any other as rules."""
        automaton = self.terminals[name]
        text, here = "", 0
        while here not in automaton.finals and len(automaton.moves[here]) == 1:
            low, high, there = automaton.moves[here][0]
            if low != high:
                break
            text, here = text + chr(low), there
        if not automaton.moves[here] and here in automaton.finals:
            return literal(text)
        if set(automaton.finals) == {1} and len(automaton.moves) == 2 and not automaton.moves[1]:
            return charset(tuple((low, high) for low, high, _ in automaton.moves[0]))
        if name not in self._used:
            self._used[name] = self.name(name)
        return self._used[name]


def _factored(bodies: list[Body]) -> list[str]:
    """Write bodies that begin alike as one: else each level of nesting would double the ways that llama.cpp follows."""
    tails: dict[str, list[Body]] = {}
    for body in bodies:
        tails.setdefault(body[0] if body else EMPTY, []).append(body[1:])
    options: list[str] = []
    for part, rests in sorted(tails.items(), key=lambda each: each[0] == EMPTY):
        ways = _factored(list(dict.fromkeys(rests))) if part != EMPTY else [EMPTY]
        tail = "" if ways == [EMPTY] else f" {ways[0]}" if len(ways) == 1 else f" ({' | '.join(ways)})"
        options.append(part + tail)
    return options
