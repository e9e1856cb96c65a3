"""Texts of models, documents and files made safe to show: on a terminal, in a file, in JSON."""

import json
import re
import unicodedata

from taiwa.kernel.text import IGNORABLE

CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]|{IGNORABLE.pattern}")
"""Control codes, line and paragraph separators, and what is displayed as nothing: direction marks, fillers, tags, joiners."""
JOINERS = "\u200c\u200d"
SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
IDEOGRAPHS = "\u2e80"
"""From here on, characters may have the variants of ideographs."""
KEYCAPS = "0123456789#*"


def plain(text: str) -> str:
    """Make text safe to show: control codes and invisible controls of the layout become visible characters.

    >>> plain("a\\x1b[2Jb\\r")
    'a␛[2Jb␍'
    """

    def shown(match: re.Match[str]) -> str:
        if _is_needed(match):
            return match[0]
        return chr(0x2400 + ord(match[0])) if ord(match[0]) < 0x20 else "\ufffd"

    return text if text.isascii() and text.isprintable() else CONTROL.sub(shown, text)


def _is_needed(match: re.Match[str]) -> bool:
    """Whether a script or an emoji needs an invisible character where it stands, behind a character that can take it.

    At the beginning of a text it may belong to the one that was printed before.
    """
    sign, before = match[0], match.string[max(match.start() - 1, 0) : match.start()]
    if sign not in JOINERS and not SELECTORS.match(sign):
        return False
    if not before:
        return True
    if before.isascii():
        return before in KEYCAPS and sign == "\ufe0f"
    if CONTROL.match(before) and not (sign in JOINERS and before == "\ufe0f"):
        return False
    return unicodedata.category(before)[0] in "LMS" and (sign < "\U000e0100" or before >= IDEOGRAPHS)


def inert(text: str) -> str:
    """Escape control codes in JSON text; it is parsed to the same value."""

    def escaped(match: re.Match[str]) -> str:
        if _is_needed(match):
            return match[0]
        return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"

    return CONTROL.sub(escaped, text)
