"""Write constraints as GBNF, the notation of llama.cpp that other servers read as EBNF: patterns, Lark grammars, tool calls.

A pattern is written from its minimal automaton: each state is a rule that ends in one other rule or in nothing. Every
position therefore has only one continuation, which keeps llama.cpp fast (it follows all of them at once), no rule begins
with itself, and no repetition is too large. GBNF has no lexer: a terminal is read in every possible way, as by Lark's lexer
`dynamic_complete`; ignored terminals (`%ignore`) may precede each terminal and the end. It has neither intersection nor
complement, so for tool calls in free text these are computed on automata.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from taiwa.constraints.automaton import (
    ALL,
    Alternation,
    Automaton,
    Concatenation,
    Node,
    Ranges,
    Repeat,
    compile_regex,
    escape_regex,
    format_regex,
    merge_ranges,
    parse_regex,
    reaching,
)
from taiwa.constraints.guide import SchemaClause, UnsupportedConstraintError
from taiwa.constraints.readable_guides import EarleyRules, read_rules
from taiwa.constraints.schema_regex import ANYTHING, to_regex
from taiwa.constraints.tool_call_grammar import (
    NAME,
    call_markers,
    first_words,
    input_schema,
    listed_words,
    parameter_schemas,
    plain_parameter,
)
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Grammar, ToolCallsInText, ToolSpec

MOST_RULES = 20_000
"""The maximum number of rules; llama.cpp reads this many in 0.1 s."""
EMPTY = '""'
SHORT = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x5C: "\\\\"}
SPECIAL = frozenset('"\\[]^-')


def gbnf_literal(text: str) -> str:
    r"""Return a text as a GBNF literal.

    >>> print(gbnf_literal('say "hi"\n'))
    "say \"hi\"\n"
    """
    return '"' + "".join(_char(ord(char), quoted=True) for char in text) + '"'


def gbnf_charset(ranges: Ranges) -> str:
    r"""Return a character set in GBNF.

    >>> print(gbnf_charset(((0x30, 0x39), (0x5D, 0x5D))))
    [0-9\x5D]
    """
    if ranges == ALL:
        return "[\\x00-\\U0010FFFF]"
    return f"[{''.join(_span(low, high) for low, high in ranges)}]"


def gbnf_rule(name: str, options: Iterable[str]) -> str:
    """Return one GBNF rule."""
    return f"{name} ::= {' | '.join(options)}"


def automaton_rules(automaton: Automaton, name: str, start: int = 0) -> Iterator[str]:
    """Yield an automaton over characters as rules, the first called `name`, from a state on.

    Raises:
        InputError: there are too many states.
    """
    entered = _entered(automaton, start)
    if len(entered) > MOST_RULES:
        raise InputError(f"the grammar would have more than {MOST_RULES:,} rules: make its repetitions smaller")
    # A state with one way in and one out is written as a literal, so that `true` is one rule and not four.
    chains = {state for state, count in entered.items() if count == 1 and state != start and _only(automaton, state)}
    names = {state: name if state == start else f"{name}-{place}" for place, state in enumerate(entered)}
    for state in entered:
        if state not in chains and (automaton.moves[state] or state == start):
            options = [_way(automaton, ranges, there, chains, names) for there, ranges in _targets(automaton, state)]
            if state in automaton.finals:
                options.append(EMPTY)
            yield gbnf_rule(names[state], options)


def _entered(automaton: Automaton, start: int) -> dict[int, int]:
    """Return the reachable states in order, with the number of moves that lead to each."""
    found, todo = {start: 1}, [start]
    for state in todo:
        for there, _ in _targets(automaton, state):
            if there not in found:
                todo.append(there)
            found[there] = found.get(there, 0) + 1
    return found


def _targets(automaton: Automaton, state: int) -> list[tuple[int, Ranges]]:
    spans: dict[int, list[tuple[int, int]]] = {}
    for low, high, there in automaton.moves[state]:
        spans.setdefault(there, []).append((low, high))
    return [(there, merge_ranges(ranges)) for there, ranges in spans.items()]


def _only(automaton: Automaton, state: int) -> bool:
    """Return whether exactly one character can follow, so that it is written into the previous rule."""
    row = automaton.moves[state]
    return state not in automaton.finals and len(row) == 1 and row[0][0] == row[0][1] and row[0][2] != state


def _way(automaton: Automaton, ranges: Ranges, there: int, chains: set[int], names: dict[int, str]) -> str:
    """Return one continuation: a set or a literal, up to the next choice, and the rule that follows."""
    one = ranges[0][0] if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else None
    parts, text = ([gbnf_charset(ranges)], "") if one is None else ([], chr(one))
    while there in chains:
        low, _, there = automaton.moves[there][0]
        text += chr(low)
    if text:
        parts.append(gbnf_literal(text))
    if automaton.moves[there]:
        parts.append(names[there])
    return " ".join(parts)


def _span(low: int, high: int) -> str:
    between = "" if high <= low + 1 else "-"
    return _char(low) + (between + _char(high) if high > low else "")


def _char(code: int, *, quoted: bool = False) -> str:
    if quoted and code in SHORT:
        return SHORT[code]
    char = chr(code)
    if char.isascii() and char.isprintable() and (quoted or char not in SPECIAL):
        return char
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def regex_to_gbnf(pattern: str, begun: str = "") -> str:
    r"""Return the grammar of the texts that match a pattern; with `begun`, of the rest of the texts that begin with it.

    >>> print(regex_to_gbnf("yes|no"))
    root ::= "no" | "yes"
    >>> print(regex_to_gbnf("[0-9]{4}-[0-9]{2}", begun="2026-1"))
    root ::= [0-9]

    Raises:
        InputError: no automaton can represent the pattern, no matching text begins with `begun`, or it is too large.
    """
    automaton = compile_regex(pattern, chars=True)
    start = automaton.walk(map(ord, begun))
    if start is None:
        raise InputError(f"the answer begins with {begun[-40:]!r}, and no text that matches the pattern does")
    return "\n".join(automaton_rules(automaton, "root", start))


def regex_size(pattern: str | Node) -> int:
    """Return the approximate number of states of a pattern's automaton before minimisation, a measure of its cost.

    >>> regex_size("(ab|c){3}d")
    10

    Raises:
        InputError: this is not a pattern for an automaton.
    """
    node = parse_regex(pattern) if isinstance(pattern, str) else pattern
    match node:
        case Concatenation(parts):
            return sum(map(regex_size, parts))
        case Alternation(options):
            return sum(map(regex_size, options))
        case Repeat(part, least, most):
            return regex_size(part) * (least + 1 if most is None else most)
        case _:
            return 1


ARROW = re.compile(r"^[ \t]*[\w-]+[ \t]*::=", re.MULTILINE)
NUMBERED = re.compile(r"-(\d+)\Z")
HELPER = re.compile(r"^__|_(?:star|plus)_\d+$")
FORBIDDEN = re.compile(r"[^A-Za-z0-9]+")


def grammar_to_gbnf(grammar: Grammar) -> str:
    r"""Return a Lark grammar in GBNF; a grammar in GBNF is returned unchanged.

    >>> print(grammar_to_gbnf(Grammar('start: "(" NUMBER ")"\nNUMBER: /[0-9]+/')))
    root ::= "(" number ")"
    number ::= [0-9] number-1
    number-1 ::= [0-9] number-1 | ""

    Raises:
        ConfigError: the extra `constraints` is not installed.
        InputError: it is not a grammar, or cannot be written in GBNF: a left-recursive rule, for one.
    """
    if ARROW.search(grammar.text):
        return _rooted(grammar)
    rules = read_rules(grammar.text, grammar.start, chars=True)
    if rules.is_empty:
        raise InputError("the grammar has no text that ends")
    bodies: dict[str, list[tuple[str, ...]]] = {}
    for rule in rules.rules[1:]:
        body = rule.symbols
        if rule.name.startswith("__") and body[:1] == (rule.name,):
            body = (*body[1:], rule.name)  # Lark writes a repetition as `x: y | x y`; `x: y | y x` is the same
        bodies.setdefault(rule.name, []).append(body)
    _refuse_left_recursion(bodies, rules.nullable)
    return "\n".join(_GrammarWriter(bodies, rules, grammar.start).lines())


def _rooted(grammar: Grammar) -> str:
    if grammar.start in ("start", "root"):
        return grammar.text
    if re.search(r"^[ \t]*root[ \t]*::=", grammar.text, re.MULTILINE):
        raise InputError(
            f"the grammar starts with {grammar.start!r}, so another rule must not be called root; rename it"
        )
    return f"root ::= {grammar.start}\n{grammar.text}"


def _refuse_left_recursion(bodies: dict[str, list[tuple[str, ...]]], nullable: set[str]) -> None:
    """Refuse rules that can begin with themselves: the parsers of GBNF servers do not terminate on them."""
    edges: list[tuple[str, str]] = []
    for name, symbols in ((name, body) for name, each in bodies.items() for body in each):
        end = next((at for at, symbol in enumerate(symbols, 1) if symbol not in nullable), len(symbols))
        edges += ((name, symbol) for symbol in symbols[:end] if symbol in bodies)
    for name in bodies:
        before = reaching([name], edges)
        if any(user == name and symbol in before for user, symbol in edges):
            raise InputError(
                f"the rule {HELPER.sub('', name)!r} of the grammar is left-recursive, which GBNF does not allow;"
                " write it as a repetition"
            )


class _GrammarWriter:
    """Writes rules and their terminals under names that GBNF allows."""

    def __init__(self, bodies: dict[str, list[tuple[str, ...]]], rules: EarleyRules, start: str) -> None:
        self.rules = bodies
        self.terminals = rules.terminals
        self.skipped = rules.ignored
        self.start = start
        self._taken = {"root", "skip"}
        self._names = {} if self.skipped else {start: "root"}
        self._used: dict[str, str] = {}

    def lines(self) -> list[str]:
        """Return the lines of the grammar."""
        lines = [gbnf_rule("root", [f"{self.name(self.start)} skip"])] if self.skipped else []
        for name, bodies in self.rules.items():
            lines.append(gbnf_rule(self.name(name), _factored([tuple(self._parts(body)) for body in bodies])))
        if self.skipped:
            lines.append(gbnf_rule("skip", [*(f"{self._terminal(name)} skip" for name in self.skipped), EMPTY]))
        for name, written in self._used.items():
            lines += automaton_rules(self.terminals[name], written)
        if len(lines) > MOST_RULES:
            raise InputError(f"the grammar would have more than {MOST_RULES:,} rules: divide it")
        return lines

    def name(self, name: str) -> str:
        """Return the GBNF name of a rule or terminal."""
        if name not in self._names:
            bare = FORBIDDEN.sub("-", name).strip("-").lower() or "gbnf_rule"
            bare = NUMBERED.sub(r"\1", bare)  # `name-1` is a state of the automaton of `name`
            fitting = next(
                each for each in (bare, *(f"{bare}x{n}" for n in range(MOST_RULES))) if each not in self._taken
            )
            self._names[name] = fitting
            self._taken.add(fitting)
        return self._names[name]

    def _parts(self, body: tuple[str, ...]) -> Iterator[str]:
        for part in body:
            if part in self.rules:
                yield self.name(part)
            else:
                yield from ("skip",) if self.skipped else ()
                yield self._terminal(part)

    def _terminal(self, name: str) -> str:
        """Return a terminal: a single text or character inline, any other by the name of its rules."""
        automaton = self.terminals[name]
        text, here = "", 0
        while here not in automaton.finals and len(automaton.moves[here]) == 1:
            low, high, there = automaton.moves[here][0]
            if low != high:
                break
            text, here = text + chr(low), there
        if not automaton.moves[here] and here in automaton.finals:
            return gbnf_literal(text)
        if set(automaton.finals) == {1} and len(automaton.moves) == 2 and not automaton.moves[1]:
            return gbnf_charset(tuple((low, high) for low, high, _ in automaton.moves[0]))
        if name not in self._used:
            self._used[name] = self.name(name)
        return self._used[name]


def _factored(bodies: list[tuple[str, ...]]) -> list[str]:
    """Factor out common beginnings: otherwise each level of nesting would double the number of parses in llama.cpp."""
    tails: dict[str, list[tuple[str, ...]]] = {}
    for body in bodies:
        tails.setdefault(body[0] if body else EMPTY, []).append(body[1:])
    options: list[str] = []
    for part, rests in sorted(tails.items(), key=lambda each: each[0] == EMPTY):
        ways = _factored(list(dict.fromkeys(rests))) if part != EMPTY else [EMPTY]
        tail = "" if ways == [EMPTY] else f" {ways[0]}" if len(ways) == 1 else f" ({' | '.join(ways)})"
        options.append(part + tail)
    return options


MOST_STATES = 50_000
LINE = r"[^ \t\n][^\n]*"
SPACE = " ?"
ANY = "(?s:.*)"
TOO_LARGE = "the grammar of the tools is too large: use fewer, or make their limits smaller"

States: TypeAlias = tuple[int | None, ...]
"""The states of several automata that read the same text; None for one that has failed."""


@dataclass(frozen=True, slots=True)
class ToolCallGbnf:
    """The grammar, its automaton, and the parts of the tools' schemas that are not enforced."""

    text: str
    automaton: Automaton
    missed: tuple[SchemaClause, ...] = ()

    def accepts(self, text: str) -> bool:
        """Return whether the grammar accepts a whole text."""
        return self.automaton.accepts(map(ord, text))


def tool_calls_to_gbnf(calls: ToolCallsInText, begun: str = "") -> ToolCallGbnf:
    """Return the grammar of tool calls.

    It accepts the texts of `taiwa.constraints.tool_call_grammar`: free text in which only a call of one of the tools can follow the
    opening of a call, and which ends with the first call. `begun` is the beginning of an answer that the server continues.

    Raises:
        InputError: the tools cannot be used, no accepted text begins with `begun`, or the grammar is too large.
    """
    builder = _ToolCallBuilder(calls)
    automaton = builder.built()
    start = automaton.walk(map(ord, begun))
    if start is None:
        raise InputError(f"the answer begins with {begun[-40:]!r}, after which no call of these tools is possible")
    return ToolCallGbnf("\n".join(automaton_rules(automaton, "root", start)), automaton, tuple(builder.missed))


class _ToolCallBuilder:
    """Combines the automata of free text, of the openings, and of each tool's input."""

    def __init__(self, calls: ToolCallsInText) -> None:
        before, after = call_markers(calls)
        names = [spec.name for spec in calls.tools]
        self.calls = calls
        self.missed: list[SchemaClause] = []
        self._tail = after[len(after.rstrip()) :]
        self._moves: list[list[tuple[int, int, int]]] = []
        self._finals: set[int] = set()
        head, mark = escape_regex(before), escape_regex(after.strip())
        self._heads = [compile_regex(f"{head}{escape_regex(name)}{mark}", chars=True) for name in names]
        spaces = r"[ \t]*"
        known = "|".join(map(escape_regex, names))
        openings = f"{ANY}({head}{spaces}({known}){spaces}{mark}|{head}{NAME}{mark})"
        found = [compile_regex(f"{ANY}{head}{escape_regex(name)}{mark}", chars=True) for name in names]
        begun = compile_regex(first_words(calls), chars=True)
        self._text = (compile_regex(openings, chars=True), begun, *found) if calls.free_text else tuple(self._heads)

    def built(self) -> Automaton:
        """Return the automaton of whole texts."""
        calls = [self._call(spec) for spec in self.calls.tools]
        firsts = [self._copied(call) for call in calls]
        numbers = _explore(self._text, self._moves, lambda states: self._opened(states, firsts), TOO_LARGE)
        if self.calls.free_text:
            self._finals |= {number for states, number in numbers.items() if states[1] in self._text[1].finals}
        return _trimmed(self._moves, self._finals, next(iter(numbers.values())))

    def _opened(self, states: States, firsts: list[int]) -> int | None:
        """Return the first state of the input of the tool whose call was opened; -1 if it is unknown, None if none was opened."""
        free = self.calls.free_text
        own = states[2:] if free else states
        if free and states[1] is None:
            return -1
        for number, (state, first) in enumerate(zip(own, firsts, strict=True)):
            if state is not None and state in self._text[number + 2 * free].finals:
                return first
        return -1 if free and states[0] in self._text[0].finals else None

    def _call(self, spec: ToolSpec) -> Automaton:
        """Return the automaton of an input and its closing marker, which ends the call at its first occurrence."""
        tail, close = escape_regex(self._tail), escape_regex(self.calls.closing)
        rules = [compile_regex(parse_regex(f"{tail}({pattern}){close}"), chars=True) for pattern in self._inputs(spec)]
        ending = compile_regex(f"{ANY}{close}", chars=True)
        once = tuple(() if state in ending.finals else row for state, row in enumerate(ending.moves))
        parts = (*rules, Automaton(once, ending.finals))
        moves: list[list[tuple[int, int, int]]] = []
        too_large = f"the input of the tool {spec.name} is too large for a grammar: make its limits smaller"
        numbers = _explore(parts, moves, lambda states: -1 if None in states else None, too_large)
        finals = {
            number
            for states, number in numbers.items()
            if all(state in part.finals for part, state in zip(parts, states, strict=True))
        }
        if not finals:
            raise InputError(f"the tool {spec.name} has no input that fits into a call")
        return _trimmed(moves, finals, 0)

    def _inputs(self, spec: ToolSpec) -> Iterator[str | Node]:
        """Yield the patterns that an input must all match."""
        plain = plain_parameter(spec)
        if plain is None:
            yield self._json(spec)
            return
        name, schema = plain
        words = listed_words(spec, name, schema)
        if words is not None:
            yield "|".join(map(escape_regex, words))
            return
        yield LINE
        if "minLength" in schema or "maxLength" in schema:
            yield rf"[^\n]{{{schema.get('minLength', 1)},{schema.get('maxLength', '')}}}"
        if isinstance(schema.get("pattern"), str):
            try:
                yield format_regex(parse_regex(str(schema["pattern"]), around=ANYTHING))
            except InputError as error:
                self._miss(spec, f"/properties/{name}", "pattern", error.message)
        if "format" in schema:
            self._miss(spec, f"/properties/{name}", "format", "formats of inputs without quotes are not enforced")

    def _json(self, spec: ToolSpec) -> str:
        if not parameter_schemas(spec):
            return ""
        try:
            return to_regex(json.loads(json.dumps(dict(input_schema(spec)))), SPACE)
        except UnsupportedConstraintError as error:
            for clause in error.clauses:
                pointer, _, rest = clause.partition(": ")
                keyword, _, reason = rest.partition(" (")
                self._miss(spec, pointer.rstrip("/"), keyword, reason.rstrip(")"))
        except InputError as error:
            self._miss(spec, "", "type", error.message)
        return LINE

    def _miss(self, spec: ToolSpec, pointer: str, keyword: str, reason: str) -> None:
        self.missed.append(SchemaClause(f"/{spec.name}{pointer}", keyword, reason))

    def _copied(self, call: Automaton) -> int:
        """Copy the states of an automaton; return the first of them."""
        first = len(self._moves)
        for row in call.moves:
            self._moves.append([(low, high, there + first) for low, high, there in row])
        self._finals |= {state + first for state in call.finals}
        if len(self._moves) > MOST_STATES:
            raise InputError(TOO_LARGE)
        return first


def _explore(
    automata: tuple[Automaton, ...],
    moves: list[list[tuple[int, int, int]]],
    replace: Callable[[States], int | None],
    too_large: str,
) -> dict[States, int]:
    """Append the common states of automata to `moves` and return their numbers, the start first.

    `replace` returns the number of a state that takes the place of common ones, -1 if they are left out, otherwise None.
    """
    start: States = tuple(0 for _ in automata)
    numbers: dict[States, int] = {start: len(moves)}
    moves.append([])
    todo: list[States] = [start]
    for here in todo:
        for low, high, states in _together(automata, here):
            there = replace(states)
            if there is None:
                if states not in numbers:
                    numbers[states] = len(moves)
                    moves.append([])
                    todo.append(states)
                there = numbers[states]
            if there >= 0:
                moves[numbers[here]].append((low, high, there))
        if len(moves) > MOST_STATES:
            raise InputError(too_large)
    return numbers


def _together(automata: tuple[Automaton, ...], states: States) -> Iterator[tuple[int, int, States]]:
    """Yield the common moves of automata that read the same text, divided at the ends of all ranges."""
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
    """Return an automaton without the states from which no final one is reachable; the start becomes state 0."""
    alive = reaching(finals, ((state, there) for state, row in enumerate(moves) for *_, there in row))
    if start not in alive:
        raise InputError("no text can be written with these tools")
    order = [start, *(state for state in sorted(alive) if state != start)]
    number = {state: place for place, state in enumerate(order)}
    kept = tuple(
        tuple(sorted((low, high, number[there]) for low, high, there in moves[state] if there in alive))
        for state in order
    )
    return Automaton(kept, frozenset(number[state] for state in finals))
