"""Bounds of the numbers in a JSON text, which the mask engine leaves open: digits, decimals, exponent.

Without them `58347E+3496` is allowed, which no reader takes. Within them every number is finite, and every 64-bit integer and
every `float` up to 1e99 can be written. The patterns of `taiwa.constraints.schema_regex` have the same bounds.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from taiwa.constraints.guide import empty_mask, fill_mask
from taiwa.constraints.vocabulary import Vocabulary

if TYPE_CHECKING:
    from taiwa.constraints.guide import Mask

MOST_DIGITS = 20
"""The maximum number of digits before the point."""
MOST_DECIMALS = 24
EXPONENT = r"([eE](\+?[0-9]{1,2}|-[0-9]{1,3}))?"
BEGINNING = re.compile(
    rb"(?:-?(?:(?:0|[1-9][0-9]{0,%d})(?:\.[0-9]{0,%d})?(?:[eE](?:\+?[0-9]{0,2}|-[0-9]{0,3}))?)?)?"
    % (MOST_DIGITS - 1, MOST_DECIMALS)
)
"""The beginning of a number within the bounds."""
UNBOUNDED = re.compile(rb"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?)?")
"""The beginning of any number; all else the engine excludes itself."""
REST = re.compile(rb"[-+.0-9eE]+")
TOO_LONG = re.compile(rb"[0-9]{%d}|[eE]\+?[0-9]{3}|[eE]-[0-9]{4}" % (MOST_DIGITS + 1))
"""What every token contains that exceeds the bounds by itself."""
FIRST = frozenset(bytes((byte,)) for byte in b"-+.0123456789eE")
DIGIT = re.compile(rb"[0-9]")
SHAPES = 512
"""The masks that are kept for a vocabulary, each for numbers of the same length."""


class JsonScan(NamedTuple):
    """The end of an unfinished JSON text: whether it is inside a string, after a backslash, and the number that has begun."""

    in_string: bool = False
    is_escaped: bool = False
    number: bytes = b""

    def follow(self, text: bytes) -> "JsonScan | None":
        """Return the scan after more text; None if a number in it exceeds the bounds."""
        in_string, is_escaped, number = self
        if in_string and not is_escaped and b'"' not in text and b"\\" not in text:
            return self
        for byte in text:
            if in_string:
                in_string = is_escaped or byte != 0x22
                is_escaped = not is_escaped and byte == 0x5C
            elif byte in (b"-+.0123456789eE" if number else b"-0123456789"):
                number += bytes((byte,))
            elif BEGINNING.fullmatch(number) is None:
                return None
            else:
                in_string, number = byte == 0x22, b""
        return None if BEGINNING.fullmatch(number) is None else JsonScan(in_string, is_escaped, number)


class NumberBounds:
    """The tokens of a vocabulary that would exceed the bounds after a scan."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._size = len(vocabulary)
        self._by_rest: dict[bytes, list[int]] = {}
        """The tokens that may continue a number, by the form of the part that does."""
        self._too_long: dict[int, bytes] = {}
        """The tokens that may exceed the bounds by themselves."""
        for token, text in enumerate(vocabulary.tokens):
            if text[:1] in FIRST and token not in vocabulary.special and (rest := REST.match(text)):
                self._by_rest.setdefault(DIGIT.sub(b"1", rest[0]), []).append(token)
        if TOO_LONG.search(b"\n".join(vocabulary.tokens)):
            tokens = ((token, text) for token, text in enumerate(vocabulary.tokens) if token not in vocabulary.special)
            self._too_long = {token: text for token, text in tokens if TOO_LONG.search(text)}
        self._mask_of_shape = lru_cache(SHAPES)(self._mask)

    def mask(self, scan: JsonScan) -> "Mask | None":
        """Return the mask of the tokens within the bounds; None if all are."""
        if scan.number:
            scan = scan._replace(number=DIGIT.sub(b"1", scan.number))
        elif not self._too_long:
            return None
        return self._mask_of_shape(scan)

    def _mask(self, scan: JsonScan) -> "Mask | None":
        excluded = {token for token, text in self._too_long.items() if scan.follow(text) is None}
        if scan.number:
            for rest, tokens in self._by_rest.items():
                number = scan.number + rest
                if UNBOUNDED.fullmatch(number) and not BEGINNING.fullmatch(number):
                    excluded.update(tokens)
        if not excluded:
            return None
        mask = empty_mask(self._size)
        fill_mask(mask, excluded)
        return ~mask


@lru_cache(maxsize=4)
def number_bounds(vocabulary: Vocabulary) -> NumberBounds:
    """Return the bounds for a vocabulary; cached."""
    return NumberBounds(vocabulary)
