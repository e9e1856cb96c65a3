"""A vocabulary: what each token of a model writes, which tokens end a text, and how the tokenizer itself would divide one."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from hashlib import blake2b
from struct import pack
from typing import TypeAlias

from taiwa.kernel.errors import InputError

__all__ = ["Encode", "Vocabulary"]

Encode: TypeAlias = Callable[[str], Sequence[int]]
"""How the tokenizer divides a text: the canonical tokens, without any that begin or end it."""

DIGEST_BYTES = 16


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

    def show(self, token: int) -> str:
        """Write a token as a person reads it: the text in quotes, a special one by its name."""
        written = self.tokens[token].decode("utf-8", "backslashreplace")
        return written if token in self.special else repr(written)

    @cached_property
    def _spelled(self) -> tuple[dict[bytes, int], int]:
        spelled: dict[bytes, int] = {}
        for token, text in enumerate(self.tokens):
            if text and token not in self.special:
                spelled.setdefault(text, token)
        return spelled, max(map(len, spelled), default=0)

    @classmethod
    def of_bytes(cls) -> "Vocabulary":
        """The 256 bytes and an end: every text can be written, one byte at a time."""
        return cls(
            (*(bytes([byte]) for byte in range(256)), b"<end>"),
            256,
            encode=lambda text: tuple(text.encode()),
            name="bytes",
        )
