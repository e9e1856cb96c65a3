"""The text before an answer, piece by piece: thinking and prose are skipped, up to the bracket that opens the answer."""

import re

from taiwa.shape.regions import CLOSE, TAGS

__all__ = ["Head"]

OPENING = (*(f"<{tag}>" for tag in TAGS.split("|")), "[think]")
LONGEST_TAG = 24
BRACKET = re.compile(r"[{\[]")
SOLID = re.compile(r"[^\s\ufeff]")
FIRST = {"{": '"}', "[": '"{[]-0123456789tfnTFN'}
"""What must follow a bracket for it to open JSON rather than an aside in prose."""


class Head:
    """Finds the opening bracket of an answer; asides such as `{name}` or `[see above]` are none."""

    def __init__(self) -> None:
        self._lead: str | None = ""
        self._thinking = False
        self._bracket = ""

    def find(self, text: str) -> tuple[str, str] | None:
        """Take a piece of text; give the opening bracket and what follows it, or None while there is none."""
        while text:
            if self._thinking:
                text = self._think(text)
            elif self._lead is not None:
                text = self._decide(self._lead, text)
            else:
                found = self._prose(text)
                if found is not None:
                    return found
                return None
        return None

    def _decide(self, lead: str, text: str) -> str:
        """Read on until it is plain whether a thinking block opens; give the text that is still to be read."""
        for at, char in enumerate(text):
            if not lead and not SOLID.match(char):
                continue
            lead += char
            if lead.lower() in OPENING:
                self._thinking, self._lead = True, ""
                return text[at + 1 :]
            if not any(tag.startswith(lead.lower()) for tag in OPENING):
                self._lead = None
                return lead + text[at + 1 :]
        self._lead = lead
        return ""

    def _think(self, text: str) -> str:
        whole = (self._lead or "") + text
        found = CLOSE.search(whole)
        if found is None:
            self._lead = whole[-LONGEST_TAG:]
            return ""
        self._thinking, self._lead = False, ""
        return whole[found.end() :]

    def _prose(self, text: str) -> tuple[str, str] | None:
        at = 0
        while at < len(text):
            found = (SOLID if self._bracket else BRACKET).search(text, at)
            if found is None:
                return None
            bracket, at = self._bracket, found.end()
            self._bracket = found[0] if found[0] in FIRST else ""
            if bracket and found[0] in FIRST[bracket]:
                self._bracket = ""
                return bracket, text[found.start() :]
        return None
