"""A regular expression as a grammar."""

from collections.abc import Iterable

from taiwa.guide.gbnf.writing import automaton_rules
from taiwa.guide.reference.automaton import compiled
from taiwa.guide.reference.pattern import Either, Node, Repeat, Then, parse
from taiwa.kernel.errors import InputError

__all__ = ["joined_rules", "of_regex", "places"]


def of_regex(pattern: str, begun: str = "") -> str:
    r"""Write the texts that match a pattern from end to end; of those that begin with `begun`, what is left to write.

    >>> print(of_regex("yes|no"))
    root ::= "no" | "yes"
    >>> print(of_regex("[0-9]{4}-[0-9]{2}", begun="2026-1"))
    root ::= [0-9]

    Raises:
        InputError: an automaton cannot hold a text to the pattern, no text that matches begins so, or it is too large.
    """
    automaton = compiled(pattern, chars=True)
    start = automaton.walk(map(ord, begun))
    if start is None:
        raise InputError(f"the answer begins with {_short(begun)}, and no text that matches the pattern does")
    return joined_rules(automaton_rules(automaton, "root", start))


def places(pattern: str) -> int:
    """About how many places the automaton of a pattern has before it is made smaller: what it takes to make one.

    >>> places("(ab|c){3}d")
    10

    Raises:
        InputError: this is no pattern for an automaton.
    """
    return _places(parse(pattern))


def _places(node: Node) -> int:
    match node:
        case Then(parts):
            return sum(map(_places, parts))
        case Either(options):
            return sum(map(_places, options))
        case Repeat(part, least, most):
            return _places(part) * (least + 1 if most is None else most)
        case _:
            return 1


def joined_rules(rules: Iterable[str]) -> str:
    """A grammar of some rules."""
    return "\n".join(rules)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"…{text[-39:]}")
