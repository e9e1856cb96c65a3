"""Context-free rules without left recursion: a parser that goes from the top, as llama.cpp's, never ends in one.

The rules are first freed of empty texts where that is needed, then each group of rules that begin with each other is
rewritten one by one (M. Paull; A. Aho and J. Ullman, "The Theory of Parsing", 1972, section 2.4).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TypeAlias

from taiwa.kernel.errors import InputError

__all__ = ["Rules", "rightward"]

Body: TypeAlias = tuple[str, ...]
Rules: TypeAlias = dict[str, list[Body]]
"""The bodies of each rule; a name that is no key is a terminal."""

MOST_BODIES = 5_000
MOST_EMPTY = 10
"""How many parts of one body may be empty: each doubles the number of bodies."""


def rightward(rules: Mapping[str, Iterable[Body]], start: str) -> Rules:
    """Rewrite rules so that none begins with itself; the texts stay the same.

    >>> rightward({"sum": [("sum", "+", "n"), ("n",)]}, "sum")
    {'sum': [('n',), ('n', 'sum~')], 'sum~': [('+', 'n'), ('+', 'n', 'sum~')]}

    Raises:
        InputError: no text can be written, or there would be too many rules.
    """
    useful = _useful({name: list(dict.fromkeys(bodies)) for name, bodies in rules.items()}, start)
    if start not in useful:
        raise InputError("the grammar has no text that ends")
    if not any(_circles(useful)):
        return useful
    has_empty = start in _empty(useful)
    full = _useful(_without_empty(useful), start)
    if not full:
        return {start: [()]}
    for circle in list(_circles(full)):
        _straighten(full, circle)
    if has_empty:
        outer = f"{start}~start"
        return {start: [(outer,), ()]} | {
            (outer if name == start else name): [tuple(outer if part == start else part for part in body) for body in bodies]
            for name, bodies in full.items()
        }  # fmt: skip
    return full


def _useful(rules: Rules, start: str) -> Rules:
    """Leave out what no text has, and what the start does not lead to."""
    alive: set[str] = set()
    grown = True
    while grown:
        fresh = {
            name
            for name, bodies in rules.items()
            if name not in alive and any(all(part not in rules or part in alive for part in body) for body in bodies)
        }
        alive |= fresh
        grown = bool(fresh)
    found, todo = dict[str, list[Body]](), [start]
    for name in todo:
        if name in alive and name not in found:
            found[name] = [body for body in rules[name] if all(part not in rules or part in alive for part in body)]
            todo += (part for body in found[name] for part in body if part in rules)
    return found


def _empty(rules: Rules) -> set[str]:
    """The rules that can be empty."""
    found: set[str] = set()
    grown = True
    while grown:
        fresh = {
            name for name, bodies in rules.items() if name not in found and any(set(body) <= found for body in bodies)
        }
        found |= fresh
        grown = bool(fresh)
    return found


def _without_empty(rules: Rules) -> Rules:
    empty = _empty(rules)
    found: Rules = {}
    for name, bodies in rules.items():
        variants: dict[Body, None] = {}
        for body in bodies:
            if sum(part in empty for part in body) > MOST_EMPTY:
                raise InputError(f"the rule {name} of the grammar has more than {MOST_EMPTY} parts that can be empty")
            choices = [((part,), ()) if part in empty else ((part,),) for part in body]
            for chosen in product(*choices):
                made: Body = tuple(word for part in chosen for word in part)
                if made and made != (name,):
                    variants[made] = None
        found[name] = list(variants)
    return found


def _circles(rules: Rules) -> Iterator[list[str]]:
    """Groups of rules each of which can begin with each."""
    empty = _empty(rules)
    first: dict[str, set[str]] = {name: set() for name in rules}
    for name, bodies in rules.items():
        for body in bodies:
            for part in body:
                if part in rules:
                    first[name].add(part)
                if part not in empty:
                    break
    reach = {name: _reached(first, name) for name in rules}
    seen: set[str] = set()
    for name in rules:
        if name in reach[name] and name not in seen:
            circle = [other for other in rules if other in reach[name] and name in reach[other]]
            seen.update(circle)
            yield circle


def _reached(first: Mapping[str, set[str]], name: str) -> set[str]:
    found: set[str] = set()
    todo = list(first[name])
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += first[here]
    return found


def _straighten(rules: Rules, circle: list[str]) -> None:
    for place, name in enumerate(circle):
        for earlier in circle[:place]:
            bodies: dict[Body, None] = {}
            for body in rules[name]:
                if body and body[0] == earlier:
                    bodies |= dict.fromkeys((*head, *body[1:]) for head in rules[earlier])
                else:
                    bodies[body] = None
                if len(bodies) > MOST_BODIES:
                    raise InputError(f"the rules around {name} of the grammar begin with each other in too many ways")
            rules[name] = list(bodies)
        _loosen(rules, name)


def _loosen(rules: Rules, name: str) -> None:
    """Write `a: a x | y` as `a: y | y a~` and `a~: x | x a~`: nothing becomes empty that could hide another circle."""
    again = [body[1:] for body in rules[name] if body[0] == name and len(body) > 1]
    heads = [body for body in rules[name] if body[0] != name]
    rules[name] = heads  # without `a: a`, which says nothing
    if again:
        rest = f"{name}~"
        rules[name] = [*heads, *((*body, rest) for body in heads)]
        rules[rest] = [*again, *((*body, rest) for body in again)]
