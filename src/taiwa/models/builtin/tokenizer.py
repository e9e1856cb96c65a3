"""The tokenizer of the built-in model: the normal form of a text, and its division into tokens.

Tokens are single digits, single chemical elements, and the longest piece for all other text.

A text is tokenized in two steps. First it is split into runs that no token crosses: the elements of a chemical formula, the
digits of a number, words with the space before them, Japanese and Chinese characters, punctuation, white space. Then each run is
split into the longest known pieces, or into bytes if there is none. A number or a formula can therefore be copied piece by piece
wherever it occurs.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from random import Random
from typing import TYPE_CHECKING
from unicodedata import category, combining, decomposition, normalize

from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import ConfigError, InputError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

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

MAX_CACHED_CHARS = 24
MAX_CHARS = 1_200
"""Length of a normalized text; the end is kept."""
MAX_RAW_CHARS = 24_000
MAX_ACCENTS = 2
"""Maximum accents on one letter; more are not a word."""

SIMILAR = {
    **dict.fromkeys("‐‑‒–−﹣－", "-"),
    **dict.fromkeys("—―", " - "),
    **dict.fromkeys("‘’‛´`′ʹ", "'"),
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("→⟶➔➝➞⇒⟹⇌⇄⇋↔", "->"),
    **dict.fromkeys("•∙⋅‧", "·"),
    **dict.fromkeys("⁄∕", "/"),
    "×": "x",
    "✕": "x",
    "÷": "/",
}
DROPPED_CATEGORIES = frozenset(("Cf", "Cs", "Co", "Cn"))
"""Invisible characters, surrogates, private and unassigned code points."""
UNUSUAL = re.compile(r"[^ -_a-~]+|`")
SPACES = re.compile(r"\s+")
SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")


def normalize_text(text: str) -> str:
    """Normalize a text as in training; a normalized text stays unchanged.

    >>> normalize_text("  How much H₂O is in 2½ cm³\\nof “it”?  ")
    'How much H2O is in 2 1/2 cm^3 of "it"?'
    >>> normalize_text("カフェラテ　２杯、ＣＯ２")
    'カフェラテ 2杯、CO2'
    """
    raw = SUPERSCRIPT.sub(lambda found: f"^{found[0]}", text[-MAX_RAW_CHARS:])
    normal = normalize("NFKC", _replace_unusual(raw))
    # NFKC itself can yield a character that has to be replaced.
    return SPACES.sub(" ", _limit_accents(_replace_unusual(normal))).strip()[-MAX_CHARS:].strip()


def _replace_unusual(text: str) -> str:
    return UNUSUAL.sub(lambda found: "".join(map(_replacement, found[0])), text)


@lru_cache(4_096)
def _replacement(char: str) -> str:
    if char in SIMILAR:
        return SIMILAR[char]
    kind = category(char)
    if kind in DROPPED_CATEGORIES or "\ufe00" <= char <= "\ufe0f":
        return ""
    if kind == "Cc" or char.isspace():
        return " "
    decomposed = decomposition(char)
    if decomposed.startswith("<fraction>"):
        return f" {normalize('NFKC', char).replace(chr(0x2044), '/')} "
    if decomposed.startswith("<circle>"):
        return f"({normalize('NFKC', char)})"
    return char


def _limit_accents(text: str) -> str:
    if text.isascii():
        return text
    kept: list[str] = []
    accents = 0
    for char in text:
        accents = accents + 1 if combining(char) else 0
        if accents <= MAX_ACCENTS:
            kept.append(char)
    return normalize("NFKC", "".join(kept))


def split_runs(text: str) -> Iterator[str]:
    """Divide a text into the runs that no token crosses.

    >>> list(split_runs("12 mol of NaOH."))
    ['1', '2', ' mol', ' of', ' ', 'Na', 'O', 'H', '.']
    """
    start = 0
    for found in FORMULA.finditer(text):
        yield from RUN.findall(text[start : found.start()])
        yield from ATOM.findall(found[0])
        start = found.end()
    yield from RUN.findall(text[start:])


class Tokens:
    """A tokenizer. Ids: the 256 bytes, then the special tokens, then the pieces."""

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
        self._cached = lru_cache(maxsize=8_192)(self._split)

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def digest(self) -> str:
        """The digest of the tokens in their order, which the weights name."""
        return sha256(json.dumps((list(self.special), list(self.pieces))).encode()).hexdigest()

    def encode(self, text: str) -> tuple[int, ...]:
        """Divide a text into tokens; nothing in it becomes a special token."""
        found: list[int] = []
        for run in split_runs(text):
            found += self._cached(run) if len(run) <= MAX_CACHED_CHARS else self._split(run)
        return tuple(found)

    def encode_randomly(self, text: str, random: Random, share: float) -> tuple[int, ...]:
        """Divide a text for training: a `share` of the runs into random pieces, so that parts of rare words are trained too."""
        found: list[int] = []
        for run in split_runs(text):
            found += self._split(run, random) if len(run) > 1 and random.random() < share else self._cached(run)
        return tuple(found)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens; special ones have none."""
        return self.vocabulary.decode(ids).decode("utf-8", "replace")

    def _split(self, run: str, random: Random | None = None) -> tuple[int, ...]:
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
        """Return (length, token) of the pieces that the run has at `here`, longest first."""
        longest = min(self._longest, len(run) - here)
        found = [
            (size, token)
            for size in range(longest, 0, -1)
            if (token := self.pieces.get(run[here : here + size])) is not None
        ]
        if run[here].isascii() and not (found and found[-1][0] == 1):
            found.append((1, ord(run[here])))
        return found


@cache
def builtin_tokens() -> Tokens:
    """Load the tokenizer of the package.

    Raises:
        ConfigError: it is missing or broken.
    """
    return load_tokens(files("taiwa.models.builtin") / "data" / "vocabulary.json")


def load_tokens(path: "Path | Traversable") -> Tokens:
    """Read a tokenizer from its file.

    Raises:
        ConfigError: it is missing or broken.
    """
    try:
        content = path.read_bytes()
    except OSError:
        raise ConfigError(
            "the built-in model is missing from this installation; install taiwa again, or set another model"
        ) from None
    try:
        table = json.loads(content)
        return Tokens(table["special"], table["pieces"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError) as error:
        raise ConfigError(f"{path} is not a tokenizer of the built-in model ({error}); install taiwa again") from None
