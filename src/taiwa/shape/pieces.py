"""The content of a JSON string that arrives in pieces, with escapes that may be cut anywhere."""

import re

__all__ = ["Pieces"]

PLAIN = re.compile(r'[^"\\]+')
ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
HEX = re.compile(r"[0-9a-fA-F]{4}\Z")


class Pieces:
    """Grows by `take` until `ended`; half of a character waits for its other half."""

    def __init__(self) -> None:
        self.ended = False
        self._whole = ""
        self._parts: list[str] = []
        self._told = 0
        self._length = 0
        self._escape = ""
        self._half = ""

    @property
    def text(self) -> str:
        """The content so far."""
        if self._parts:
            self._whole = "".join([self._whole, *self._parts])
            self._parts = []
        return self._whole

    def fresh(self) -> str:
        """Give what came since the last call."""
        if self._told == self._length:
            return ""
        words = "".join(self._parts) if self._told == len(self._whole) else self.text[self._told :]
        self._told = self._length
        return words

    def take(self, text: str, at: int) -> int:
        """Read on in a piece of text; give the place after the end of the string, or the end of the piece."""
        while at < len(text) and not self.ended:
            if self._escape:
                self._escape += text[at]
                at += 1
                self._unescape()
                continue
            found = PLAIN.match(text, at)
            if found:
                self._add(found[0])
                at = found.end()
            elif text[at] == "\\":
                self._escape = "\\"
                at += 1
            else:
                self._add("")
                self.ended = True
                at += 1
        return at

    def _unescape(self) -> None:
        escape = self._escape
        if escape[1] != "u":
            self._escape = ""
            self._add(ESCAPES.get(escape[1], escape))
        elif len(escape) == 6:
            self._escape = ""
            self._add_code(escape[2:])

    def _add_code(self, digits: str) -> None:
        char = chr(int(digits, 16)) if HEX.match(digits) else f"\\u{digits}"
        if self._half and "\udc00" <= char <= "\udfff":
            both, self._half = self._half + char, ""
            self._add(both.encode("utf-16", "surrogatepass").decode("utf-16"))
        elif "\ud800" <= char <= "\udbff":
            self._add("")
            self._half = char
        else:
            self._add(char)

    def _add(self, piece: str) -> None:
        if self._half:
            piece, self._half = "\ufffd" + piece, ""  # the other half did not come
        if piece:
            self._parts.append(piece)
            self._length += len(piece)
