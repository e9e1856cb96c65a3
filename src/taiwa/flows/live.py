"""What a person sees of a rationale while it comes: the model's words as text, calls and results as notes of their own.

Joined in the order in which they come, the words and the notes with these codes are the transcript, byte for byte:

    call      a call as it stands in the text
    result    what was put in behind it
    stop      the mark at which a server had stopped, put back
    cue       words that lead a model on, as in zero-shot prompts
"""

from taiwa.flows.interrupting import Interrupt
from taiwa.kernel.effects import Seen, Watcher

__all__ = ["MARKED", "Live", "Through", "withheld"]

MARKED = ("call", "result", "stop", "cue")
"""The codes of notes whose text belongs to the transcript."""
OPEN, CLOSE = "<<", ">>"
LONGEST_CALL = 1_400


class Live:
    """Watches an answer as an interrupt does, and holds back what may become a call, so that it can be shown as one.

    Calls that are whole lines, as in ReAct, are shown as the words they are.
    """

    __slots__ = ("_inner", "_wait", "goes_on")

    def __init__(self, inner: Interrupt) -> None:
        self.goes_on = False
        self._inner = inner
        self._wait = ""

    def feed(self, text: str) -> Seen:
        """Show all words that are surely no part of a call."""
        seen = self._inner.feed(text)
        whole = self._wait + seen.show
        trigger = self._inner.trigger
        if seen.cut is not None and trigger is not None:
            self._wait = ""
            return Seen(whole[: len(whole) - len(withheld(whole, trigger.size))], seen.cut)
        sure = _sure(whole)
        self._wait = whole[sure:]
        return Seen(whole[:sure])

    def close(self) -> Seen:
        """Show what might have become a call and did not; one that only lacks its end may still become one."""
        whole = self._wait + self._inner.close().show
        self.goes_on = self._inner.trigger is not None or self._inner.scanner.open
        if self._inner.trigger is not None:
            return Seen(whole[: len(whole) - len(withheld(whole, self._inner.trigger.size))])
        return Seen(whole[: _sure(whole)] if self.goes_on else whole)


class Through:
    """Shows of a rationale only what another watcher shows; where it is cut, or ends in a call, it shows all it was given,
    because the other one saw no whole answer.
    """

    __slots__ = ("_fed", "_first", "_second", "_shown")

    def __init__(self, first: Live, second: Watcher) -> None:
        self._first = first
        self._second = second
        self._fed = ""
        self._shown = 0

    def feed(self, text: str) -> Seen:
        """Show what both let through."""
        seen = self._first.feed(text)
        show = self._next(seen.show)
        return Seen(show if seen.cut is None else show + self._rest(), seen.cut)

    def close(self) -> Seen:
        """Show what both held back."""
        show = self._next(self._first.close().show)
        return Seen(show + (self._rest() if self._first.goes_on else self._second.close().show))

    def _next(self, text: str) -> str:
        self._fed += text
        show = self._second.feed(text).show if text else ""
        self._shown += len(show)
        return show

    def _rest(self) -> str:
        return self._fed[self._shown :]


def withheld(text: str, size: int | None) -> str:
    """The end of what a model wrote that was not shown: a call of that size; None for one that lacks its end."""
    start = _sure(text) if size is None else max(len(text) - size, 0)
    return text[start:] if text.startswith(OPEN, start) else ""


def _sure(text: str) -> int:
    """How much of a text belongs to no call, whatever comes."""
    at = text.find(OPEN, text.rfind("\n") + 1)
    while at >= 0 and (closed := text.find(CLOSE, at)) >= 0:
        at = text.find(OPEN, closed + len(CLOSE))
    if at < 0:
        return len(text) - text.endswith(OPEN[0])
    return at if len(text) - at <= LONGEST_CALL else len(text)
