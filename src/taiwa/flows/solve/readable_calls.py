"""Answers with tool calls in their text, as people read them: results stay, calls are left to the trace."""

import re
from collections.abc import Iterable

from taiwa.flows.solve.tool_call_formats import TaggedFormat

MONEY = re.compile(
    r"(?<![\d.,])\d[\d,]*\.\d(?=\s?(?:dollars?|euros?|pounds?|USD|EUR|GBP|ドル|ユーロ|ポンド|美元|欧元|€|£))"
)
"""A sum with one decimal."""


class ResultText:
    """The text of an answer while it is written: results of calls come in without the calls.

    >>> shown = ResultText()
    >>> shown.text("The total is ") + shown.result(" 8.4") + shown.text(" dollars.") + shown.end()
    'The total is 8.40 dollars.'
    """

    def __init__(self) -> None:
        self._held = ""
        self._last = ""

    def text(self, text: str) -> str:
        """Return what to show of the next text of the model."""
        return self._show(MONEY.sub(r"\g<0>0", self._take() + text, count=1) if self._held else text)

    def result(self, text: str) -> str:
        """Take the result of a call, which is shown with the text behind it."""
        before = self._show(self._take())
        self._held = text.lstrip(" ") if self._last.endswith((" ", "\n")) or not self._last else text
        return before

    def end(self) -> str:
        """Return what was held back."""
        return self._take()

    def _take(self) -> str:
        held, self._held = self._held, ""
        return held

    def _show(self, text: str) -> str:
        self._last = text or self._last
        return text


def readable_answer(text: str, tools: Iterable[str]) -> str:
    """Return an answer without the calls of the tools in its text.

    >>> readable_answer("That is <<calculator: 2*4.2>> 8.4 dollars.", ["calculator"])
    'That is 8.40 dollars.'
    """
    names = tuple(tools)
    if not names or "<<" not in text:
        return text
    scanner, shown, parts = TaggedFormat().scanner(names), ResultText(), list[str]()
    while call := scanner.feed(text):
        parts.append(shown.text(text[: max(call.end - call.size, 0)]))
        text = text[call.end :]
        result = re.match(r" ?\S*", text)
        if call.name in names and result:
            parts.append(shown.result(result[0]))
            text = text[result.end() :]
    return "".join((*parts, shown.text(text), shown.end()))
