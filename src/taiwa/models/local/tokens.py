"""How a tokenizer of transformers divides a text that is nothing but text."""

import re
from typing import Any, cast

__all__ = ["Divider"]

SPACE = "▁"
ANCHOR = "\x02"
"""Stands before a text where a tokenizer puts a space before every text: what it puts there is cut off with it."""


class Divider:
    """Divides a text; the names of special tokens in it are words like any others.

    A tokenizer takes `<|im_end|>` in a text for the token, so that whoever writes it could end a message. A second tokenizer
    that does not is made when the first text with such a name comes.
    """

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401  (transformers')
        self._backend: Any = tokenizer.backend_tokenizer
        self._plain: Any = None
        added = tokenizer.added_tokens_decoder.items()
        self.ids: dict[str, int] = {str(each): int(token) for token, each in added if each.special}
        names = sorted(self.ids, key=len, reverse=True)
        self.names = re.compile("|".join(map(re.escape, names))) if names else None
        self._anchored = self._spaced()

    def __call__(self, text: str) -> tuple[int, ...]:
        """The tokens of a text, wherever it stands; none that begin or end one."""
        if not text:
            return ()
        backend = self._backend
        if self.names is not None and self.names.search(text):
            backend = self._without_names()
        if not self._anchored:
            return tuple(backend.encode(text, add_special_tokens=False).ids)
        anchor = self._anchor
        found = tuple(backend.encode(ANCHOR + text, add_special_tokens=False).ids)
        if found[: len(anchor)] == anchor:
            return found[len(anchor) :]
        return tuple(backend.encode(text, add_special_tokens=False).ids)

    def whole(self, text: str) -> tuple[int, ...]:
        """The tokens of a text that begins here, as the tokenizer makes them: names of special tokens are these tokens."""
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)

    def beginning(self) -> tuple[int, ...]:
        """The special tokens with which the tokenizer begins a text."""
        return tuple(token for token in self._backend.encode("").ids if token in set(self.ids.values()))

    @property
    def _anchor(self) -> tuple[int, ...]:
        return tuple(self._backend.encode(ANCHOR, add_special_tokens=False).ids)

    def _spaced(self) -> bool:
        """Whether a text divided on its own begins with a space that is not its own."""
        divided = self._backend.encode("a", add_special_tokens=False).tokens
        return bool(divided) and str(divided[0]).startswith(SPACE)

    def _without_names(self) -> Any:  # noqa: ANN401  (a tokenizer of the `tokenizers` library)
        if self._plain is None:
            kind = cast("Any", type(self._backend))
            plain: Any = kind.from_str(self._backend.to_str())
            plain.encode_special_tokens = True
            self._plain = plain
        return self._plain
