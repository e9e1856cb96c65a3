"""From the bytes of tokens to text that is sure, up to a stop string."""

from codecs import getincrementaldecoder

__all__ = ["Spelling"]

Decoder = getincrementaldecoder("utf-8")


class Spelling:
    """Takes bytes and gives out text: whole characters only, nothing that may be the start of a stop string.

    >>> spelling = Spelling(("END",))
    >>> [spelling.add(piece) for piece in (b"so E", b"Nough E", b"N", b"D of it")]
    ['so ', 'ENough ', '', '']
    >>> spelling.stop
    'END'
    """

    __slots__ = ("_decoder", "_held", "_stops", "stop")

    def __init__(self, stops: tuple[str, ...] = ()) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._decoder = Decoder("replace")
        self._held = ""
        self.stop: str | None = None

    def add(self, written: bytes) -> str:
        """Take the next bytes; give out the text that is sure. After a stop string there is none."""
        if self.stop is not None:
            return ""
        return self._out(self._held + self._decoder.decode(written))

    def close(self) -> str:
        """Give out what was held back; half a character becomes U+FFFD."""
        if self.stop is not None:
            return ""
        text = self._out(self._held + self._decoder.decode(b"", True)) + self._held
        self._held = ""
        return text

    def _out(self, text: str) -> str:
        if not self._stops:
            self._held = ""
            return text
        # The one that is complete first; of two that end together, the longer.
        found = [(text.find(stop) + len(stop), -len(stop), stop) for stop in self._stops if stop in text]
        if found:
            end, _, self.stop = min(found)
            self._held = ""
            return text[: end - len(self.stop)]
        sure = len(text) - max(self._open(text, stop) for stop in self._stops)
        self._held = text[sure:]
        return text[:sure]

    @staticmethod
    def _open(text: str, stop: str) -> int:
        """How many characters at the end of the text begin this stop string."""
        for length in range(min(len(stop) - 1, len(text)), 0, -1):
            if text.endswith(stop[:length]):
                return length
        return 0
