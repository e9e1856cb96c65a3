"""Putting a text behind tokens that were read already, so that as few of them as possible must be read again.

A tokenizer divides a text as a whole: behind `12` the text `3` may belong to the token `123`. What stands behind the tokens
is therefore divided together with the last few of them. Where a border between two tokens stays where it was, all before it
stays, too; tokens that the model drew itself are not divided anew just because the tokenizer would have divided them otherwise.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

__all__ = ["Divide", "shared", "spliced"]

Divide: TypeAlias = Callable[[str], Sequence[int]]
WINDOWS = (1, 2, 4, 8, 16, 32)
"""How many of the last tokens are divided again, until one of them keeps its end."""


def spliced(tokens: Sequence[int], text: str, spell: Callable[[int], bytes], divide: Divide) -> list[int]:
    """The tokens of what `tokens` write with `text` behind it; `spell` gives the bytes of a token, none for a special one.

    >>> words = ["1", "12", "123", "2", "3", " "]
    >>> def longest(text: str) -> list[int]:
    ...     found = []
    ...     while text:
    ...         found.append(max((i for i, word in enumerate(words) if text.startswith(word)), key=lambda i: len(words[i])))
    ...         text = text[len(words[found[-1]]):]
    ...     return found
    >>> spliced([0, 5, 1], "3 1", lambda token: words[token].encode(), longest)
    [0, 5, 2, 5, 0]
    """
    if not text:
        return list(tokens)
    for window in WINDOWS:
        kept = max(len(tokens) - window, 0)
        found = _behind(tokens[kept:], text, spell, divide)
        if found is not None:
            return [*tokens[: kept + 1], *found]
        if kept == 0:
            break
    return _anew(tokens, text, spell, divide)


def _behind(last: Sequence[int], text: str, spell: Callable[[int], bytes], divide: Divide) -> list[int] | None:
    """The tokens behind the first one of `last`, if that one keeps its end; None if it does not, or is half a character."""
    if not last:
        return None
    head = spell(last[0])
    if not head:  # a special token has no text that could grow
        found = _decoded(b"".join(map(spell, last[1:])))
        return None if found is None else list(divide(found + text))
    whole = _decoded(b"".join(map(spell, last)))
    if whole is None:
        return None
    divided = list(divide(whole + text))
    ends = [0, *accumulate(len(spell(token)) for token in divided)]
    if ends[-1] != len((whole + text).encode()) or len(head) not in ends:
        return None
    return divided[ends.index(len(head)) :]


def _anew(tokens: Sequence[int], text: str, spell: Callable[[int], bytes], divide: Divide) -> list[int]:
    """Divide everything behind the last special token again."""
    start = max((place + 1 for place, token in enumerate(tokens) if not spell(token)), default=0)
    before = _decoded(b"".join(map(spell, tokens[start:])))
    if before is None:
        return [*tokens, *divide(text)]
    return [*tokens[:start], *divide(before + text)]


def _decoded(written: bytes) -> str | None:
    try:
        return written.decode()
    except UnicodeDecodeError:
        return None


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts begin with in common."""
    most = min(len(one), len(other))
    return next((place for place in range(most) if one[place] != other[place]), most)
