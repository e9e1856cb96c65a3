"""The tokenizer of the built-in model: single digits, single chemical elements, and the longest piece for all other text.

A text is divided in two steps. First into runs that no token crosses: a chemical formula into its elements, a number into its
digits, words with the blank before them, characters of Japanese and Chinese, signs, white space. Then each run into the longest
pieces that are known, and what has none into its bytes. So a number or a formula can be copied piece by piece wherever it stands.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from random import Random
from typing import TYPE_CHECKING

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, InputError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

__all__ = ["BYTES", "END", "Tokens", "runs", "tokenizer", "tokens"]


BYTES = 256

END = "<end>"

FORMULA = re.compile(
    r"(?<![A-Za-z])(?=[A-Z][a-z]?[A-Z0-9(\[·]|[(\[][A-Z][a-z]?[A-Z0-9])(?:[A-Z][a-z]?|[0-9()\[\]·])+(?![a-z])"
)

ATOM = re.compile(r"[A-Z][a-z]?|.")

RUN = re.compile(
    r"[0-9]| ?[A-Za-z\u00c0-\u024f]+| ?[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆]+|\n+| (?![^ ])|"
    r" ?[^\sA-Za-z0-9\u00c0-\u024f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|\s"
)

LONGEST_KEPT = 24

MISSING = "the built-in model is not part of this copy of taiwa: install it again, or set another model"


def runs(text: str) -> Iterator[str]:
    """Divide a text into the runs that no token crosses.

    >>> list(runs("12 mol of NaOH."))
    ['1', '2', ' mol', ' of', ' ', 'Na', 'O', 'H', '.']
    """
    start = 0
    for found in FORMULA.finditer(text):
        yield from RUN.findall(text[start : found.start()])
        yield from ATOM.findall(found[0])
        start = found.end()
    yield from RUN.findall(text[start:])


class Tokens:
    """A table of pieces. Ids: the 256 bytes, then the special tokens, then the pieces."""

    def __init__(self, special: Sequence[str], pieces: Sequence[str]) -> None:
        self.special = {name: BYTES + place for place, name in enumerate(special)}
        first = BYTES + len(special)
        self.pieces = {piece: first + place for place, piece in enumerate(pieces)}
        self._longest = max(map(len, pieces), default=1)
        written = [bytes([byte]) for byte in range(BYTES)]
        written += [name.encode() for name in special]
        written += [piece.encode() for piece in pieces]
        self.vocabulary = Vocabulary(
            written, self.special[END], self.special.values(), encode=self.encode, name="builtin"
        )
        self._kept = lru_cache(maxsize=8_192)(self._divided)

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def digest(self) -> str:
        """By which it is known: that of all its tokens in their order."""
        return sha256(json.dumps((list(self.special), list(self.pieces))).encode()).hexdigest()

    def encode(self, text: str) -> tuple[int, ...]:
        """Divide a text; nothing in it is ever a special token."""
        found: list[int] = []
        for run in runs(text):
            found += self._kept(run) if len(run) <= LONGEST_KEPT else self._divided(run)
        return tuple(found)

    def scattered(self, text: str, random: Random, share: float) -> tuple[int, ...]:
        """Divide a text for training: a `share` of the runs not by the longest pieces, so that rare words are met in parts."""
        found: list[int] = []
        for run in runs(text):
            found += self._divided(run, random) if len(run) > 1 and random.random() < share else self._kept(run)
        return tuple(found)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some tokens; special ones write nothing."""
        return self.vocabulary.decode(ids).decode("utf-8", "replace")

    def _divided(self, run: str, random: Random | None = None) -> tuple[int, ...]:
        found: list[int] = []
        here = 0
        while here < len(run):
            fitting = self._fitting(run, here)
            if not fitting:
                found += run[here].encode("utf-8", "replace")
                here += 1
                continue
            size, token = fitting[0] if random is None else random.choice(fitting)
            found.append(token)
            here += size
        return tuple(found)

    def _fitting(self, run: str, here: int) -> list[tuple[int, int]]:
        """The pieces that a place begins with, longest first."""
        most = min(self._longest, len(run) - here)
        found = [
            (size, token)
            for size in range(most, 0, -1)
            if (token := self.pieces.get(run[here : here + size])) is not None
        ]
        if run[here].isascii() and not (found and found[-1][0] == 1):
            found.append((1, ord(run[here])))
        return found


@cache
def tokens() -> Tokens:
    """The tokenizer that comes along.

    Raises:
        ConfigError: it is missing or broken.
    """
    return tokenizer(files("taiwa.models.builtin") / "data" / "vocabulary.json")


def tokenizer(path: "Path | Traversable") -> Tokens:
    """Read a tokenizer from its file.

    Raises:
        ConfigError: it is missing or broken.
    """
    try:
        held = path.read_bytes()
    except OSError:
        raise ConfigError(MISSING) from None
    try:
        table = json.loads(held)
        return Tokens(table["special"], table["pieces"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError) as error:
        raise ConfigError(f"{path} holds no tokenizer of the built-in model ({error}): install taiwa again") from None
