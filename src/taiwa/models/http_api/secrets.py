"""API keys that cannot be printed, and masking them in errors."""

from collections.abc import Iterable
from hmac import compare_digest
from typing import NoReturn

from taiwa.kernel.errors import ConfigError, TaiwaError

MASK = "•••"
SHORTEST_PIECE = 6


class Secret:
    """An API key. Only `reveal` returns its text: it has no other form as a string, and cannot be pickled or copied."""

    __slots__ = ("_text",)

    def __init__(self, text: str, name: str = "the key") -> None:
        if not text:
            raise ConfigError(f"{name} is empty; set it with `taiwa keys set`")
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise ConfigError(
                f"{name} contains white space or a character that no key has; set it again with `taiwa keys set`"
            )
        self._text = text

    def reveal(self) -> str:
        """Return the text, for the header that carries it and for the file that stores it."""
        return self._text

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and compare_digest(self._text, other._text)

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled")


def mask_text(text: str, secrets: Iterable[str]) -> str:
    """Mask every secret in a text, and the beginning of one that the end of the text cuts off (`…` may mark the cut)."""
    for secret in secrets:
        text = text.replace(secret, MASK)
        end = len(text.rstrip("…"))
        for length in range(len(secret) - 1, SHORTEST_PIECE - 1, -1):
            if text.endswith(secret[:length], 0, end):
                text = text[: end - length] + MASK + text[end:]
                break
    return text


def mask_error(error: TaiwaError, secrets: Iterable[str]) -> None:
    """Mask every secret in the message and the details of an error."""
    secrets = tuple(secrets)
    for name in ("message", *error.details):
        said = getattr(error, name)
        if isinstance(said, str):
            setattr(error, name, mask_text(said, secrets))
    error.args = (error.message,)
