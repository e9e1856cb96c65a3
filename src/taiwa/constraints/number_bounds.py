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
NUMBER = re.compile(rb"[-0-9][-+.0-9eE]*")
REST = re.compile(rb"[-+.0-9eE]+")
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
        """The tokens that continue a number, by the part that does."""
        self._too_long: dict[int, bytes] = {}
        """The tokens that contain a number beyond the bounds."""
        for text, tokens in vocabulary.tokens_by_text.items():
            rest = REST.match(text)
            if rest is not None:
                self._by_rest.setdefault(rest[0], []).extend(tokens)
            if len(text) > 4 and any(BEGINNING.fullmatch(number) is None for number in NUMBER.findall(text)):
                self._too_long.update(dict.fromkeys(tokens, text))
        self._mask_of_shape = lru_cache(SHAPES)(self._mask)

    def mask(self, scan: JsonScan) -> "Mask | None":
        """Return the mask of the tokens within the bounds; None if all are."""
        return self._mask_of_shape(scan._replace(number=DIGIT.sub(b"1", scan.number)))

    def _mask(self, scan: JsonScan) -> "Mask | None":
        excluded = {token for token, text in self._too_long.items() if scan.follow(text) is None}
        if scan.number:
            for rest, tokens in self._by_rest.items():
                if BEGINNING.fullmatch(scan.number + rest) is None:
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
