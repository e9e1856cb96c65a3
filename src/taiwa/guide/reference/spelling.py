"""All tokens of a vocabulary at once: which of them can come next, found without reading a common beginning twice."""

from collections.abc import Callable
from functools import lru_cache
from itertools import takewhile
from typing import TypeVar

from taiwa.guide.vocabulary import Vocabulary

__all__ = ["Spelling", "spelling"]

P = TypeVar("P")


class Spelling:
    """The texts of a vocabulary in the order of their bytes: a tree of tokens, written as a list.

    Gaps and special tokens write nothing and are left out; tokens that write the same stand in one row.
    """

    __slots__ = ("_rows", "singles")

    def __init__(self, vocabulary: Vocabulary) -> None:
        spelled: dict[bytes, list[int]] = {}
        for token, text in enumerate(vocabulary.tokens):
            if text and token not in vocabulary.special:
                spelled.setdefault(text, []).append(token)
        rows: list[tuple[bytes, int, tuple[int, ...]]] = []
        before = b""
        for text in sorted(spelled):
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, text, strict=False)))
            rows.append((text, shared, tuple(spelled[text])))
            before = text
        self._rows = tuple(rows)
        self.singles = frozenset(text[0] for text in spelled if len(text) == 1)
        """The bytes that have a token of their own."""

    def reached(self, place: P, step: Callable[[P, int], P | None]) -> dict[int, P]:
        """Where each token leads that can come next; `step` says where one byte leads, if it leads anywhere."""
        found: dict[int, P] = {}
        path = [place]  # after each byte of the text that was read last, as far as it could be read
        for text, shared, tokens in self._rows:
            if len(path) <= shared:
                continue  # it begins as the last one did, beyond where that one failed
            del path[shared + 1 :]
            for byte in text[shared:]:
                there = step(path[-1], byte)
                if there is None:
                    break
                path.append(there)
            else:
                found.update(dict.fromkeys(tokens, path[-1]))
        return found


@lru_cache(maxsize=4)
def spelling(vocabulary: Vocabulary) -> Spelling:
    """The spelling of a vocabulary, made once."""
    return Spelling(vocabulary)
