"""A reader of GBNF that follows a text as llama.cpp does: a set of stacks of what must come, all of them at once.

It refuses what llama.cpp refuses: a rule that is missing, and one that begins with itself.
"""

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[A-Za-z0-9-]+|[|()])')
SIGN = re.compile(r"\\x([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\(.)|(.)", re.DOTALL)
SHORT = {"n": "\n", "r": "\r", "t": "\t"}

Part: TypeAlias = str | tuple[tuple[int, int], ...]
Rules: TypeAlias = dict[str, list[tuple[Part, ...]]]


class Gbnf:
    """The texts of a grammar in GBNF."""

    def __init__(self, text: str) -> None:
        self.rules: Rules = {}
        for line in text.splitlines():
            name, _, body = line.partition(" ::= ")
            assert name not in self.rules, f"two rules are called {name}"
            self.rules[name] = []
            self._tokens = deque(found[1] for found in TOKEN.finditer(body))
            self.rules[name] = self._bodies()
            assert not self._tokens, body
        used = {part for bodies in self.rules.values() for body in bodies for part in body if isinstance(part, str)}
        assert used <= self.rules.keys(), f"missing: {used - self.rules.keys()}"
        self._check()

    def accepts(self, text: str) -> bool:
        stacks = self.advanced(("root",))
        for char in text:
            stacks = frozenset(
                rest for stack in stacks if stack and _holds(stack[0], ord(char)) for rest in self.advanced(stack[1:])
            )
        return () in stacks

    @lru_cache(maxsize=100_000)  # noqa: B019  (it lives for one test)
    def advanced(self, stack: tuple[Part, ...]) -> frozenset[tuple[Part, ...]]:
        """The stacks with a character on top, or nothing."""
        if not stack or not isinstance(stack[0], str):
            return frozenset((stack,))
        return frozenset(found for body in self.rules[stack[0]] for found in self.advanced((*body, *stack[1:])))

    def _bodies(self) -> list[tuple[Part, ...]]:
        bodies: list[tuple[Part, ...]] = []
        body: list[Part] = []
        while self._tokens and self._tokens[0] != ")":
            token = self._tokens.popleft()
            if token == "|":
                bodies.append(tuple(body))
                body = []
            elif token == "(":
                name = f"({len(self.rules)}"
                self.rules[name] = []
                self.rules[name] = self._bodies()
                assert self._tokens.popleft() == ")"
                body.append(name)
            elif token[0] == '"':
                body += (((code, code),) for code in _codes(token[1:-1]))
            elif token[0] == "[":
                body.append(_ranges(token[1:-1]))
            else:
                body.append(token)
        return [*bodies, tuple(body)]

    def _check(self) -> None:
        """See that no rule begins with itself."""
        empty = set[str]()
        while fresh := {
            name
            for name, bodies in self.rules.items()
            if name not in empty
            and any(all(isinstance(part, str) and part in empty for part in body) for body in bodies)
        }:
            empty |= fresh
        first = {name: set(self._first(name, empty)) for name in self.rules}
        for name in self.rules:
            reached, todo = set[str](), list(first[name])
            while todo:
                here = todo.pop()
                if here not in reached:
                    reached.add(here)
                    todo += first[here]
            assert name not in reached, f"{name} begins with itself"

    def _first(self, name: str, empty: set[str]) -> Iterator[str]:
        for body in self.rules[name]:
            for part in body:
                if isinstance(part, str):
                    yield part
                if part not in empty:
                    break


def _holds(part: Part, code: int) -> bool:
    assert not isinstance(part, str)
    return any(low <= code <= high for low, high in part)


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    assert not text.startswith("^")
    signs = [(found[0], _code(found)) for found in SIGN.finditer(text)]
    ranges: list[tuple[int, int]] = []
    while signs:
        low = signs.pop(0)[1]
        if len(signs) > 1 and signs[0][0] == "-":
            signs.pop(0)
            ranges.append((low, signs.pop(0)[1]))
        else:
            ranges.append((low, low))
    return tuple(ranges)


def _codes(text: str) -> Iterator[int]:
    return (_code(found) for found in SIGN.finditer(text))


def _code(found: re.Match[str]) -> int:
    digits = found[1] or found[2] or found[3]
    if digits:
        return int(digits, 16)
    return ord(found[5] or SHORT.get(found[4], found[4]))
