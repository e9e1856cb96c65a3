"""Texts that arrive in pieces."""

from collections.abc import Sequence

from taiwa.flows.solve.loops import StopAtCall


def watch_pieces(watch: StopAtCall, text: str, sizes: Sequence[int]) -> tuple[str, int | None]:
    """Feed a text in pieces of these sizes, over and over, until a call cuts it; return what is shown, and where it is cut."""
    shown, cut, at, turn = "", None, 0, 0
    while at < len(text) and cut is None:
        step = sizes[turn % len(sizes)]
        seen = watch.feed(text[at : at + step])
        shown, cut = shown + seen.show, seen.cut
        at, turn = at + step, turn + 1
    return shown, cut
