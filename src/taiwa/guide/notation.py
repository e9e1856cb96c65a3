"""Texts in the engine's Lark notation."""

import json

__all__ = ["literal", "quoted"]

SIGNS = frozenset(r".^$*+?{}[]\|()/-&~#")


def quoted(text: str) -> str:
    """A text as a string of a grammar."""
    return json.dumps(text, ensure_ascii=False)


def literal(text: str) -> str:
    """A text inside a `/pattern/` of a grammar.

    >>> literal("a/b?")
    'a\\\\/b\\\\?'
    """
    return "".join(f"\\{char}" if char in SIGNS else {"\n": "\\n", "\r": "\\r"}.get(char, char) for char in text)
