r"""Writing GBNF: literals, sets of characters, and an automaton as rules.

A pattern is written from its minimal automaton and not from its tree: each state is a rule that ends in one other rule or
in nothing. So at every place of a text there is just one way to go on, which is what keeps llama.cpp fast (it follows all
ways at once), no rule can begin with itself, and no repetition is too large for it.
"""

from collections.abc import Iterable, Iterator

from taiwa.guide.reference.automaton import Automaton
from taiwa.guide.reference.charset import ALL, Ranges, joined
from taiwa.kernel.errors import InputError

__all__ = ["MOST_RULES", "automaton_rules", "charset", "literal", "rule"]

MOST_RULES = 20_000
"""As many rules as a grammar may have: llama.cpp reads this many in a tenth of a second."""
EMPTY = '""'
SHORT = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x5C: "\\\\"}
SPECIAL = frozenset('"\\[]^-')


def literal(text: str) -> str:
    r"""Write a text as GBNF does.

    >>> print(literal('say "hi"\n'))
    "say \"hi\"\n"
    """
    return '"' + "".join(_char(ord(char), quoted=True) for char in text) + '"'


def charset(ranges: Ranges) -> str:
    r"""Write one character out of some ranges.

    >>> print(charset(((0x30, 0x39), (0x5D, 0x5D))))
    [0-9\x5D]
    """
    if ranges == ALL:
        return "[\\x00-\\U0010FFFF]"
    return f"[{''.join(_span(low, high) for low, high in ranges)}]"


def rule(name: str, options: Iterable[str]) -> str:
    """Write one rule."""
    return f"{name} ::= {' | '.join(options)}"


def automaton_rules(automaton: Automaton, name: str, start: int = 0) -> Iterator[str]:
    """Write an automaton over characters as rules, the first called `name`, from a state on.

    Raises:
        InputError: there would be too many of them.
    """
    entered = _entered(automaton, start)
    if len(entered) > MOST_RULES:
        raise InputError(f"the grammar would have more than {MOST_RULES:,} rules: make its repetitions smaller")
    chains = {state for state, count in entered.items() if count == 1 and state != start and _only(automaton, state)}
    names = {state: name if state == start else f"{name}-{place}" for place, state in enumerate(entered)}
    for state in entered:
        if state not in chains and (automaton.moves[state] or state == start):
            options = [_way(automaton, ranges, there, chains, names) for there, ranges in _targets(automaton, state)]
            if state in automaton.finals:
                options.append(EMPTY)
            yield rule(names[state], options)


def _entered(automaton: Automaton, start: int) -> dict[int, int]:
    """The states that can be reached, in that order, and from how many moves each."""
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
    return [(there, joined(ranges)) for there, ranges in spans.items()]


def _only(automaton: Automaton, state: int) -> bool:
    """Whether just one character can follow, so that it is written into the rule before."""
    row = automaton.moves[state]
    return state not in automaton.finals and len(row) == 1 and row[0][0] == row[0][1] and row[0][2] != state


def _way(automaton: Automaton, ranges: Ranges, there: int, chains: set[int], names: dict[int, str]) -> str:
    """One way on: a set or a literal, as far as nothing else can come, and the rule that follows."""
    one = ranges[0][0] if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else None
    parts, text = ([charset(ranges)], "") if one is None else ([], chr(one))
    while there in chains:
        low, _, there = automaton.moves[there][0]
        text += chr(low)
    if text:
        parts.append(literal(text))
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
