"""A vocabulary: what each token of a model writes, which tokens end a text, and how the tokenizer itself would divide one."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from struct import pack
from typing import TypeAlias

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value

__all__ = ["Encode", "Findings", "Vocabulary", "parts"]

Encode: TypeAlias = Callable[[str], Sequence[int]]
"""How the tokenizer divides a text: the canonical tokens, without any that begin or end it."""

DIGEST_BYTES = 16
END = "<|endoftext|>"
UTF8_BYTES = (9, 10, 13, *range(0x20, 0x7F), *range(0x80, 0xC0), *range(0xC2, 0xF5))
"""The bytes that text is made of: control characters and what UTF-8 never uses are not missed."""
PROBES = (
    "a b",
    ' {\n  "key": [1.5, true, null]}',
    "<<name: input>>",
    "naïve – “ja”",
    "日本語の文。",
    "中文，句子",
    "🙂",
    "\t\n\n  x",
)
"""Texts that must come back as they were: a table that was read wrongly loses a space or a letter of one of them."""

BLANK = re.compile(r"(?<=\S) (?=\S)")


def parts(text: str, longest: int) -> Iterator[str]:
    """Divide a long text where it does not matter: before the last single blank among so many characters, if there is one.

    To divide a word costs merges its length squared, and some tables of merges go down over a million letters.

    >>> list(parts("one two three", 9)), list(parts("aaaaa", 3))
    (['one two', ' three'], ['aaa', 'aa'])
    """
    start = 0
    while len(text) - start > longest:
        end = max(
            (found.start() for found in BLANK.finditer(text, start + 1, start + longest)), default=start + longest
        )
        yield text[start:end]
        start = end
    yield text[start:]


@value
class Findings:
    """What is odd about a vocabulary.

    `gaps` are ids without bytes, `duplicates` ids that write the same; neither keeps a guide from being right. `missing` are
    bytes of UTF-8 that no token writes and `joined` those that none writes alone, so some texts, or some places where a text
    can be cut, are out of reach. `broken` are probe texts that do not come back from the tokenizer as they went in.
    """

    gaps: tuple[int, ...] = ()
    duplicates: tuple[tuple[int, ...], ...] = ()
    missing: bytes = b""
    joined: bytes = b""
    broken: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """One line for each thing that makes constraints unreachable; none for a vocabulary to rely on."""
        lines: list[str] = []
        if self.missing:
            lines.append(f"no token writes {len(self.missing)} of the bytes of UTF-8: {_listed(self.missing)}")
        if self.broken:
            shown = ", ".join(repr(probe) for probe in self.broken[:3])
            lines.append(f"{len(self.broken)} of {len(PROBES)} texts do not come back from the tokenizer: {shown}")
        return tuple(lines)


def _listed(found: bytes) -> str:
    shown = ", ".join(repr(chr(byte)) if byte < 0x7F else f"0x{byte:02X}" for byte in found[:8])
    return shown + (" …" if len(found) > 8 else "")


class Vocabulary:
    """The tokens of a model; a value: equal digests are equal vocabularies.

    `tokens[i]` are the bytes that token i writes. `b""` is a gap: an id that never comes. The bytes of a special token are
    its name, and no text is made of them; `end` are the tokens that end a text.
    """

    __slots__ = ("__dict__", "__weakref__", "_encode", "end", "name", "special", "tokens")

    def __init__(
        self,
        tokens: Iterable[bytes],
        end: int | Iterable[int],
        special: Iterable[int] = (),
        *,
        encode: Encode | None = None,
        name: str = "",
    ) -> None:
        self.tokens = tuple(tokens)
        self.end = (end,) if isinstance(end, int) else tuple(end)
        self.special = frozenset(special) | frozenset(self.end)
        self.name = name
        self._encode = encode
        if not self.end:
            raise InputError("a vocabulary needs a token that ends a text")
        for token in sorted(self.special):
            if not 0 <= token < len(self.tokens):
                kind = "end" if token in self.end else "special"
                raise InputError(
                    f"the {kind} token {token} is not among the {len(self.tokens)} tokens of the vocabulary"
                )

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({self.name or self.digest[:8]}: {len(self)} tokens)"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Vocabulary) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """The name of what the tokens write; the tokenizer's own division is not part of it."""
        lengths = [len(token) for token in self.tokens]
        named = sorted(self.special)
        made = blake2b(pack(f"<{len(lengths)}I", *lengths), digest_size=DIGEST_BYTES)
        made.update(b"".join(self.tokens))
        made.update(pack(f"<{len(self.end)}I", *self.end) + b"|" + pack(f"<{len(named)}I", *named))
        return made.hexdigest()

    @property
    def is_canonical(self) -> bool:
        """Say whether the tokenizer's own division of a text is known."""
        return self._encode is not None

    def decode(self, tokens: Iterable[int]) -> bytes:
        """The bytes that tokens write; special ones write nothing."""
        return b"".join(self.tokens[token] for token in tokens if token not in self.special)

    def encode(self, text: str) -> tuple[int, ...]:
        """Divide a text as the tokenizer does; where that is not known, always take the longest token that fits.

        Raises:
            InputError: the tokens cannot write the text.
        """
        if self._encode is not None:
            return tuple(self._encode(text))
        return self.divide(text.encode("utf-8"))

    def divide(self, text: bytes) -> tuple[int, ...]:
        """Divide bytes by taking the longest token each time.

        Raises:
            InputError: no token writes what comes next.
        """
        spelled, longest = self._spelled
        found: list[int] = []
        here = 0
        while here < len(text):
            for there in range(min(here + longest, len(text)), here, -1):
                if (token := spelled.get(text[here:there])) is not None:
                    break
            else:
                raise InputError(f"no token writes byte {here} of the text, {text[here : here + 1]!r}")
            found.append(token)
            here = there
        return tuple(found)

    def spells(self, text: bytes) -> bool:
        """Say whether some sequence of tokens writes these bytes."""
        spelled, longest = self._spelled
        reached = [True] + [False] * len(text)
        for here in range(len(text)):
            if reached[here]:
                for there in range(here + 1, min(here + longest, len(text)) + 1):
                    reached[there] = reached[there] or text[here:there] in spelled
        return reached[-1]

    def show(self, token: int) -> str:
        """Write a token as a person reads it: the text in quotes, a special one by its name.

        >>> Vocabulary(["文".encode(), b"\\xe6\\x96", b"<end>"], 2).show(1)
        "'\\\\xe6\\\\x96'"
        """
        written = self.tokens[token]
        if token in self.special:
            return written.decode("utf-8", "backslashreplace")
        try:
            return repr(written.decode())
        except UnicodeDecodeError:  # a part of a character
            return repr(written)[1:]

    @cached_property
    def _spelled(self) -> tuple[dict[bytes, int], int]:
        spelled: dict[bytes, int] = {}
        for token, text in enumerate(self.tokens):
            if text and token not in self.special:
                spelled.setdefault(text, token)
        return spelled, max(map(len, spelled), default=0)

    def check(self) -> "Findings":
        """Look for what keeps a constraint from being written with these tokens."""
        places: dict[bytes, list[int]] = {}
        for token, text in enumerate(self.tokens):
            if text and token not in self.special:
                places.setdefault(text, []).append(token)
        inside = frozenset(b"".join(places))
        alone = frozenset(text[0] for text in places if len(text) == 1)
        return Findings(
            gaps=tuple(token for token, text in enumerate(self.tokens) if not text),
            duplicates=tuple(tuple(tokens) for tokens in places.values() if len(tokens) > 1),
            missing=bytes(byte for byte in UTF8_BYTES if byte not in inside),
            joined=bytes(byte for byte in UTF8_BYTES if byte in inside and byte not in alone),
            broken=tuple(probe for probe in PROBES if not self._comes_back(probe)),
        )

    def _comes_back(self, probe: str) -> bool:
        try:
            return self.decode(self.encode(probe)) == probe.encode()
        except (InputError, IndexError):
            return False

    @classmethod
    def from_tekken(cls, path: str | Path) -> "Vocabulary":
        """Read a `tekken.json`; see `taiwa.guide.tokenizers`."""
        from taiwa.guide.tokenizers import from_tekken

        return from_tekken(path)

    @classmethod
    def from_tiktoken(
        cls, source: "str | Path | Mapping[bytes, int]", *, special: Mapping[str, int] | None = None, end: str = END
    ) -> "Vocabulary":
        """Read a file of tiktoken ranks, or take the ranks themselves; see `taiwa.guide.tokenizers`."""
        from taiwa.guide.tokenizers import from_tiktoken

        return from_tiktoken(source, special=special, end=end)

    @classmethod
    def from_hf(cls, tokenizer: object, *, end: int | Iterable[int] | None = None, size: int = 0) -> "Vocabulary":
        """Read a tokenizer of transformers or tokenizers; see `taiwa.guide.tokenizers`."""
        from taiwa.guide.tokenizers import from_hf

        return from_hf(tokenizer, end=end, size=size)

    @classmethod
    def of_bytes(cls) -> "Vocabulary":
        """The 256 bytes and an end: every text can be written, one byte at a time."""
        tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
        return cls(tokens, 256, encode=lambda text: tuple(text.encode()), name="bytes")
