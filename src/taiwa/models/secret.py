"""A key that does not show itself, and the means to take it out of whatever a server repeats."""

from collections.abc import Iterable
from hmac import compare_digest
from typing import NoReturn

from taiwa.kernel.errors import ConfigError, TaiwaError

__all__ = ["Secret", "conceal", "hide", "hide_bytes"]

MASK = "•••"
SHORTEST_PIECE = 6


class Secret:
    """A key. Its text is had by `reveal` alone: it has no other form as a string, and cannot be pickled or copied out."""

    __slots__ = ("_text",)

    def __init__(self, text: str, name: str = "the key") -> None:
        if not text:
            raise ConfigError(f"{name} is empty; set it with `taiwa keys set`")
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise ConfigError(
                f"{name} holds a space, a line break or a letter no key has; set it again with `taiwa keys set`"
            )
        self._text = text

    def reveal(self) -> str:
        """Give out the text, for the header that carries it and for the file that keeps it."""
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


def hide(text: str, secrets: Iterable[str]) -> str:
    """Mask every secret in a text, and the beginning of one that the end of the text cuts off (`…` may mark the cut)."""
    for secret in secrets:
        text = text.replace(secret, MASK)
        end = len(text.rstrip("…"))
        for length in range(len(secret) - 1, SHORTEST_PIECE - 1, -1):
            if text.endswith(secret[:length], 0, end):
                text = text[: end - length] + MASK + text[end:]
                break
    return text


def hide_bytes(text: bytes, secrets: Iterable[str]) -> bytes:
    """Mask every secret in the bytes of an answer."""
    for secret in secrets:
        text = text.replace(secret.encode(), MASK.encode())
    return text


def conceal(error: TaiwaError, secrets: Iterable[str]) -> None:
    """Mask every secret in all that an error says."""
    secrets = tuple(secrets)
    for name in ("message", *error.details):
        said = getattr(error, name)
        if isinstance(said, str):
            setattr(error, name, hide(said, secrets))
    error.args = (error.message,)
