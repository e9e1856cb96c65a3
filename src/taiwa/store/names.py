"""What a session may be called: nothing that reads as a revision, a hash or an option."""

import re
import unicodedata

from taiwa.kernel.errors import InputError

__all__ = ["check_name", "composed"]

LONGEST = 100
FORBIDDEN = frozenset("~@{}")
LIKE_A_HASH = re.compile(r"[0-9a-fA-F]{4,32}")


def composed(name: str) -> str:
    """Return the one way in which a name is written: composed Unicode."""
    return unicodedata.normalize("NFC", name)


def check_name(name: str) -> str:
    """Return the name as it is kept.

    Raises:
        InputError: it is no name for a session.
    """
    kept = composed(name)
    if not kept or len(kept) > LONGEST:
        raise InputError(f"a session's name has 1 to {LONGEST} characters")
    if kept.startswith("-"):
        raise InputError("a session's name does not begin with '-': that begins an option")
    for char in kept:
        if char in FORBIDDEN or unicodedata.category(char)[0] in "CZ":
            raise InputError(f"a session's name has no spaces, control characters or any of ~ @ {{ }}, not {char!r}")
    if LIKE_A_HASH.fullmatch(kept):
        raise InputError(f"the name {kept!r} looks like the beginning of a hash: add another letter")
    return kept
