"""What a guest's words mean for an order: a weighted grammar of wishes and edits, read from left to right.

A text is a run of frames. A frame says something of one thing: a dish that is wished for, or a line of the order (`the latte`,
`the second one`, `it`), with a size, a count and options, and with words that take it back, ask for more of it or change it.
Each frame that closes changes the order in the way that its parts allow; one that allows none is not read. Every step has a
cost, and of all readings the cheapest are kept (beam search).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

from taiwa.models.builtin.order_app import Order
from taiwa.models.builtin.order_drafts import Draft, close
from taiwa.models.builtin.order_frames import EMPTY, Frame, extend
from taiwa.models.builtin.order_tokens import CJK, KANA, WEIGHTY, read_tokens

BEAM = 40
DEAREST = 3.5
"""The cost from which on a reading is none."""
UNFINISHED = 1.5
"""What it costs to divide a part of several only, or that a verb has no object."""
ASKS = re.compile(
    r"\b(?:how (?:much|many|expensive)|price|cost|do you (?:have|sell|serve|do|offer|make|happen)|have you got|is there|are there|what(?:'s| is| are| do| did| have)|which|charge|total|bill|sum|repeat|read)\b"
    r"|ありますか|ありませんか|いくら|値段|何ですか|おすすめ|合計|価格|置いて|ある$|確認"
)
"""Questions, which order nothing."""
QUIET: Final = frozenset({"on", "change", "into", "with", "oh", "rather", "the"})
"""Words that may stand before a frame."""
HEADS: Final = frozenset(
    {"a", "the", "remove", "more", "place", "line", "it", "last", "all", "each", "other", "done", "oh"}
)
"""Words with which a frame begins."""
State: TypeAlias = tuple[Draft, Frame, str]
"""The order so far, the open frame, and the kind of the last word."""
Beam: TypeAlias = dict[State, float]


@lru_cache(32)
def read_meanings(order: Order, said: str) -> tuple[tuple[float, Draft], ...]:
    """Return what a text may mean for an order, with what it costs to read it so, the cheapest first.

    >>> (cost, draft), *_ = read_meanings(Order(), "two large lattes")
    >>> draft.new
    (OrderLine(number=0, name='latte', size='large', quantity=2, options=()),)
    """
    text = said.lower()
    japanese = bool(CJK.search(text))
    nothing = Draft("ja" if KANA.search(text) else "zh" if japanese else "en", order.lines)
    if not text:
        return ((0.0, replace(nothing, odd=True)),)
    if ASKS.search(text):
        return ()
    edges = read_tokens(text)
    beams: list[Beam] = [{} for _ in range(len(edges) + 1)]
    beams[0][nothing, EMPTY, "joint"] = 0.0
    for at, here in enumerate(edges):
        for (draft, frame, last), cost in _cheapest(_with_closed(order, beams[at], japanese=japanese), 2 * BEAM):
            for end, kind, name, price in here:
                for more, after, told in _extended(draft, frame, last, kind, name, japanese=japanese):
                    quiet = kind == "wo" or (kind == "fill" and not told.unknown) or (kind in QUIET and told.is_empty)
                    _keep(beams[end], (after, told, last if quiet else kind), cost + price + more)
    found: dict[Draft, float] = {}
    for cost, draft in _ends(order, beams[-1], japanese=japanese):
        if cost < DEAREST and replace(draft, done=False) != nothing:
            found[draft] = min(found.get(draft, cost), cost)
    return tuple(sorted(((cost, draft) for draft, cost in found.items()), key=lambda each: each[0])[:BEAM])


def _cheapest(beam: Mapping[State, float], count: int) -> list[tuple[State, float]]:
    return sorted(beam.items(), key=lambda each: each[1])[:count]


def _keep(beam: Beam, state: State, cost: float) -> None:
    beam[state] = min(beam.get(state, cost), cost)


def _with_closed(order: Order, beam: Beam, *, japanese: bool) -> Beam:
    """Return the best states, and what they become where their frames close."""
    best = dict(_cheapest(beam, BEAM))
    closed: Beam = {}
    for (draft, frame, last), cost in best.items():
        if not frame.is_empty and not draft.done:
            for more, after in close(order, draft, frame, japanese=japanese):
                _keep(closed, (after, EMPTY, "joint" if last in ("joint", "stop") else "closed"), cost + more)
    for state, cost in closed.items():
        _keep(best, state, cost)
    return best


def _extended(
    draft: Draft, frame: Frame, last: str, kind: str, name: str, *, japanese: bool
) -> Iterator[tuple[float, Draft, Frame]]:
    """Yield what a state becomes by a word."""
    if draft.done and kind not in ("fill", "stop", "done"):
        return
    price = 0.0
    if last == "closed" and kind not in QUIET | {"joint", "stop", "fill"}:
        price = 0.1 if kind in HEADS or (kind == "count" and not japanese) else 0.8
    for more, told in extend(frame, last, kind, name, japanese=japanese):
        yield price + more, draft, told
    if kind == "done" and frame.is_empty:
        yield price, replace(draft, done=True), frame


def _ends(order: Order, beam: Beam, *, japanese: bool) -> Iterator[tuple[float, Draft]]:
    """Yield the drafts at the end of a text."""
    for (draft, frame, _), cost in beam.items():
        ends = [(0.0, draft)] if frame.is_empty else close(order, draft, frame, japanese=japanese)
        for more, after in ends:
            is_divided = after.base is not None and 0 < after.rest < after.base.quantity
            is_idle = frame.is_empty and bool(frame.flags & WEIGHTY)
            if not after.owed:
                bare = replace(after, base=None, rest=0, gone=-1, seen=frozenset())
                yield cost + more + UNFINISHED * (is_divided + is_idle), bare
