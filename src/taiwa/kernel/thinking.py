"""Separate the thinking of a model from its answer, where a server leaves it in the text as `<think>…</think>`."""

import re
from typing import TypeAlias

from taiwa.kernel.messages import TextDelta, ThinkingDelta
from taiwa.kernel.records import value

Delta: TypeAlias = TextDelta | ThinkingDelta

BLOCKS = {
    "<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "<seed:think>": "</seed:think>",
    "[think]": "[/think]",
}  # fmt: skip

MAX_BLANK_CHARS = 1_000
"""White space before an answer that is held back to see whether a block follows."""

UNOPENED = re.compile(r"\n[ \t]*</think(?:ing)?>[ \t]*\r?\n\s*(?=\S)", re.IGNORECASE)

FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


class ThinkingSplitter:
    """Splits the text of an answer, in pieces, into thinking and text. Thinking stands in blocks at the start of the answer.

    >>> splitter = ThinkingSplitter()
    >>> [*splitter.feed("<think>One and one"), *splitter.feed("…</th"), *splitter.feed("ink>\\n\\nTwo.")]
    [ThinkingDelta(text='One and one'), ThinkingDelta(text='…'), TextDelta(text='Two.')]
    """

    __slots__ = ("_after_block", "_closing", "_held", "_is_text")

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._after_block = False
        self._is_text = False

    def feed(self, text: str) -> list[Delta]:
        """Take the next piece of the answer; return what is certain of it."""
        if self._is_text:
            return [TextDelta(text)]
        deltas: list[Delta] = []
        self._held += text
        while self._held and (self._think(deltas) if self._closing else self._begin(deltas)):
            pass
        return deltas

    def close(self) -> list[Delta]:
        """Return what was held back at the end of the answer."""
        held, self._held = self._held, ""
        if self._closing:
            return [ThinkingDelta(held)] if held else []
        held = held.lstrip() if self._after_block else held
        return [TextDelta(held)] if held else []

    def _begin(self, deltas: list[Delta]) -> bool:
        """Decide whether a block or the text begins; return whether that is decided."""
        begun = self._held.lstrip()
        lower = begun[: max(map(len, BLOCKS))].lower()
        opening = next((opening for opening in BLOCKS if lower.startswith(opening)), None)
        if opening is not None:
            self._closing, self._held = BLOCKS[opening], begun[len(opening) :]
            if self._after_block:
                deltas.append(ThinkingDelta("\n\n"))
            return True
        if any(opening.startswith(lower) for opening in BLOCKS) and len(self._held) < MAX_BLANK_CHARS:
            return False
        deltas.append(TextDelta(begun if self._after_block else self._held))
        self._is_text, self._held = True, ""
        return True

    def _think(self, deltas: list[Delta]) -> bool:
        """Add what is certain of a block; return whether it has ended."""
        end = self._held.lower().find(self._closing)
        if end >= 0:
            thought, self._held = self._held[:end], self._held[end + len(self._closing) :]
            self._closing, self._after_block = "", True
        else:
            keep = max(
                (n for n in range(1, len(self._closing)) if self._held.lower().endswith(self._closing[:n])), default=0
            )
            thought, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        if thought:
            deltas.append(ThinkingDelta(thought))
        return end >= 0


@value
class SplitAnswer:
    """The thinking of an answer and its text."""

    thinking: str
    text: str


def split_unopened(text: str) -> SplitAnswer | None:
    """Split an answer whose thinking was opened by the chat template, so that it has only a closing tag; None for others.

    The tag stands on a line of its own, outside of code. While such an answer streams, nothing tells its thinking from text.
    """
    closing = UNOPENED.search(text)
    if closing is None:
        return None
    thinking = text[: closing.start()]
    if any(opening in thinking.lower() for opening in BLOCKS) or len(FENCE.findall(thinking)) % 2:
        return None
    return SplitAnswer(thinking.strip(), text[closing.end() :])
