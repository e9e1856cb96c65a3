"""A weighted grammar of orders and edits, parsed from left to right: what a guest's text changes in an order.

A text is a sequence of frames. A frame describes one thing, a dish to order or a line of the order (`the latte`, `the second
one`, `it`), with a size, a quantity and options, and with words that withdraw, add to or change it. Each frame that closes
changes the order as its parts allow; a frame that allows no change is rejected. Every step has a cost, and the cheapest readings
are kept (beam search).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

from taiwa.kernel.serialization import value
from taiwa.models.builtin.order_app import COUNTED, MILKS, TEMPERATURES, Order, OrderLine
from taiwa.models.builtin.order_reply import divide_option
from taiwa.models.builtin.order_words import CJK, HESITATION, KANA, WEIGHTY, drinks, read_tokens

HIRAGANA = re.compile(r"[ぁ-ん]")


@value
class Frame:
    """What has been said about one thing.

    `also` are further frames of things removed together (`the latte and the second one`), `ref` refers to a line other than by
    its dish: `it`, `place 2`. `narrow` is the size that identifies it, `off` are withdrawn options; `measure` and `number` wait
    for their option. A negative count is one that cannot be ordered.
    """

    dish: str = ""
    also: tuple["Frame", ...] = ()
    ref: str = ""
    size: str = ""
    count: int = 0
    opts: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    measure: str = ""
    number: int = 0
    unknown: str = ""
    narrow: str = ""

    @property
    def is_empty(self) -> bool:
        """Return true if nothing has been said yet that orders or refers to something."""
        return self == replace(EMPTY, flags=self.flags)

    @property
    def has_thing(self) -> bool:
        """Return true if the topic of the frame is known."""
        return bool(self.dish or self.ref)


EMPTY: Final = Frame()


MEASURING: Final = ("no", "light", "extra", "half")
FLAGS: Final = (
    "with", "on", "remove", "instead", "change", "into", "more", "each", "all", "plain", "oh", "rather",
)  # fmt: skip
"""Kinds of words that are only recorded."""


def extend(frame: Frame, last: str, kind: str, name: str, *, japanese: bool) -> Iterator[tuple[float, Frame]]:
    """Yield the frames that result from a word of a kind, with their costs; nothing if the word is not possible there.

    `last` is the kind of the previous word. `japanese` also applies to Chinese, in which options and counts may follow too.
    """
    pending = bool(frame.measure or frame.number)
    frame = _topical(frame, kind)
    if "pre" in frame.flags and kind not in (
        "option", "attribute", "dish", "size", "fill", "stop", "number", "suffix", "pre", *MEASURING,
    ):  # fmt: skip
        return
    if kind == "fill":
        if not pending or japanese:
            yield 0.4 * ("the" in frame.flags and not frame.has_thing), _unflag(frame, "the")
    elif kind in ("stop", "joint"):
        dangling = (frame.opts or frame.size) and not frame.has_thing and not frame.count
        is_cut = kind == "joint" and "the" in frame.flags and not frame.has_thing
        if not pending and not is_cut and not (dangling and (japanese or kind == "joint")):
            is_more = not japanese and "more" in frame.flags and not (frame.has_thing or frame.opts or frame.size)
            yield 0.4 * is_more, frame if frame.has_thing else _unflag(frame, "the")
    elif kind == "unknown":
        yield from _unknown(frame, last, name, japanese=japanese)
    elif frame.unknown:
        if not japanese and kind in ("of", "unit", "joint") and last == "unknown":
            yield 0.1 if kind == "of" else 0.5, replace(frame, unknown=f"{frame.unknown} {name}")
        elif japanese and kind in ("count", "wo"):
            yield (-0.5, replace(frame, count=int(name))) if kind == "count" else (0.0, frame)
    elif kind in ("dish", "dishes"):
        if last == ("joint" if japanese else "the"):
            yield from _joined(frame, Frame(dish=name, flags=THE), pending=pending, japanese=japanese)
        if last == "size" and frame.also and not frame.also[-1].has_thing:
            yield 0.0, replace(frame, also=(*frame.also[:-1], replace(frame.also[-1], dish=name)))
            return
        frame = _flag(_flag(frame, "many" if kind == "dishes" else ""), "led" if frame.opts and japanese else "")
        if not frame.dish and not frame.ref and not pending:
            if "the" in frame.flags:
                yield 0.0, _flag(replace(frame, dish=name), "definite")
            else:
                is_led = frame.count or japanese or frame.flags & {"remove", "more", "not", "instead"}
                yield (0.0 if is_led else 0.6 + 0.15 * len(frame.opts)), _unflag(replace(frame, dish=name), "pre")
                if japanese or frame.flags & {
                    "remove",
                    "more",
                    "each",
                    "all",
                    "not",
                    "instead",
                    "change",
                    "into",
                    "on",
                }:
                    named = replace(frame, narrow=frame.size, size="") if frame.size and japanese else frame
                    yield 0.15, _unflag(_flag(replace(named, dish=name), "definite"), "pre")
    elif kind == "size":
        if last == "the":
            yield from _joined(frame, Frame(narrow=name, flags=THE), pending=pending, japanese=japanese)
        if "the" in frame.flags and not frame.has_thing and not pending:
            yield 0.0, replace(frame, narrow=name)
        elif not frame.size and not pending:
            yield (0.0 if not frame.dish or last == "with" else 0.1), replace(frame, size=name)
    elif kind in ("option", "attribute", "adverb"):
        yield from _optional(frame, last, kind, name, japanese=japanese)
    elif kind == "times":
        if last in ("dish", "dishes") and not frame.count:
            yield 0.0, replace(frame, count=int(name))
    elif kind in ("count", "number"):
        yield from _counted(frame, last, kind, int(name), japanese=japanese)
    elif kind in ("a", "one"):
        is_behind = frame.has_thing or ((frame.opts or frame.size) and "on" not in frame.flags)
        if kind == "a" and is_behind:
            if frame.has_thing or (frame.count and frame.opts):
                yield 0.0 if frame.has_thing else 0.4, frame
        elif kind == "a" and not frame.count and not pending and "the" not in frame.flags:
            yield 0.0, replace(frame, count=1)
        elif kind == "one" and "the" in frame.flags and not frame.has_thing:
            if frame.opts:
                yield 0.0, replace(frame, ref=f"one {frame.opts[-1]}", opts=frame.opts[:-1])
            elif not frame.size:
                yield 0.0, _flag(frame, "one")
    elif kind in ("it", "last", "place", "line"):
        if last == "joint":
            yield from _joined(frame, Frame(ref=f"{kind} {name}", flags=THE), pending=pending, japanese=japanese)
        if not frame.dish and not frame.ref and not pending:
            yield (0.0 if kind != "it" else 0.1), replace(frame, ref=f"{kind} {name}")
    elif kind in MEASURING:
        yield from _measured(frame, kind, japanese=japanese)
    elif kind == "unit":
        if frame.count and not frame.has_thing and not frame.number and not frame.opts:
            yield 1.0, replace(frame, unknown=name)
        if frame.number:
            yield 0.0, frame
        elif not japanese and (
            last == "a"
            or (last == "with" and (frame.has_thing or frame.count))
            or (last == "count" and frame.count == 1)
        ):
            is_measure = frame.count == 1 and not (frame.has_thing or frame.opts)
            yield 0.0, replace(frame, count=0 if is_measure else frame.count, flags=frame.flags | {"unit"})
    elif kind == "not":
        if japanese:
            if last == "count" and frame.count:
                yield 0.0, replace(frame, count=0)
            elif last == "option" and frame.opts:
                yield 0.0, replace(frame, opts=frame.opts[:-1], off=(*frame.off, frame.opts[-1]))
            elif last in ("dish", "it", "place", "line", "last") and frame.has_thing:
                yield 0.0, _flag(_flag(frame, "definite"), "instead")
            elif frame.is_empty:
                yield 0.0, _flag(frame, "rather")
        elif not pending:
            yield 0.0, _flag(frame, "not")
    elif kind == "pre":
        if last in ("option", "suffix", "size", *MEASURING) and not frame.has_thing:
            yield 0.0, _flag(frame, "pre")
        elif last in ("dish", "it", "place", "line"):
            yield 0.0, _flag(frame, "possessive")
    elif kind == "post":
        fits = last in ("option", "suffix", "size", "number", "count", "adverb", *MEASURING)
        if (
            fits
            and (frame.has_thing or frame.count or "same" in frame.flags)
            and not (last == "count" and name in ("に変えて", "に変更で", "にして"))
            and not (last == "count" and not frame.opts and name == "追加で")
        ):
            yield 0.0, frame
    elif kind == "the":
        if not frame.has_thing:
            yield 0.0, _flag(frame, "the")
        elif not pending:
            yield 0.1, frame
    elif kind == "fewer":
        if not frame.has_thing:
            yield 0.0, _flag(_flag(frame, "each"), "remove")
    elif kind == "wo" and last in ("dish", "place", "it") and name in ("を", "は"):
        yield 0.0, _flag(frame, "topic" if name == "を" else "edit")
    elif kind == "of them" and not pending and frame.count and not frame.has_thing:
        yield from ((0.06, frame), (0.0, _flag(frame, "the")))
    elif kind in ("of", "wo") or (kind == "some" and not pending):
        yield 0.0, frame
    elif kind == "suffix":
        if frame.opts and frame.opts[-1].endswith(" syrup") and last in ("option", "adverb"):
            yield 0.0, frame
    elif kind == "other":
        if not frame.has_thing and not frame.count:
            yield 0.0, replace(frame, count=1)
    elif kind == "same":
        if not frame.has_thing and not pending:
            yield 0.0, _flag(_flag(frame, "more"), "same")
    elif kind == "only":
        if frame.has_thing:
            yield 0.0, _flag(frame, "edit")
    elif kind == "order":
        yield 0.0, _flag(frame, "all") if "remove" in frame.flags and not frame.has_thing else frame
    elif kind in FLAGS:
        if japanese and kind == "more" and frame.opts and not frame.has_thing:
            return
        misplaced = kind in ("oh", "rather") and not frame.is_empty and name != "instead"
        misplaced |= kind == "with" and not (
            frame.has_thing or frame.opts or frame.count or frame.flags & {"all", "one"}
        )
        is_cut = "the" in frame.flags and not (frame.has_thing or frame.opts or frame.size or frame.flags & {"one"})
        misplaced |= is_cut and kind in ("on", "change", "into") and not japanese
        if not pending and misplaced and kind == "oh":
            yield 0.5 if name == "no" else 0.05, frame
        elif not pending and not misplaced:
            late = kind == "remove" and frame.has_thing and last in ("joint", "stop") and not japanese
            noted = "undo" if name == "undo" else "only" if name in ("only", "just") else ""
            yield 0.3 * late, _flag(_flag(frame, kind), noted)


THE: Final = frozenset({"the", "definite"})


def _joined(frame: Frame, other: Frame, *, pending: bool, japanese: bool) -> Iterator[tuple[float, Frame]]:
    """Yield a frame with another thing to remove: `take off the latte and the second one`."""
    is_bare = frame.has_thing and not (frame.opts or frame.count or frame.size or pending)
    if is_bare and (japanese or frame.flags & {"remove", "definite"} or frame.ref):
        yield 0.3 if japanese else 0.15, _flag(replace(frame, also=(*frame.also, other)), "definite")


def _flag(frame: Frame, flag: str) -> Frame:
    return replace(frame, flags=frame.flags | {flag}) if flag else frame


def _unflag(frame: Frame, *gone: str) -> Frame:
    return replace(frame, flags=frame.flags - {*gone})


def _unknown(frame: Frame, last: str, name: str, *, japanese: bool) -> Iterator[tuple[float, Frame]]:
    if frame.has_thing or frame.measure or frame.number:
        return
    if japanese and (frame.opts or frame.size or (frame.count and last in ("joint", "stop"))):
        return
    if frame.unknown and last in ("unknown", "of", "unit", "joint"):
        yield 0.05, replace(frame, unknown=f"{frame.unknown}{'' if japanese else ' '}{name}")
    elif not frame.unknown and name not in ("x", "u", "r"):
        price = 1.2 if japanese and HIRAGANA.match(name) else 1.0 if frame.count or japanese else 3.5
        yield price, replace(frame, unknown=name)


def _topical(frame: Frame, kind: str) -> Frame:
    """Mark a dish as the topic of a change: `ラテを大きく`; `ラテを二つ` is an order."""
    if "topic" not in frame.flags:
        return frame
    return _flag(
        _unflag(frame, "topic"), "edit" if kind not in ("count", "number", "wo", "fill", "stop", "joint") else ""
    )


def _optional(frame: Frame, last: str, kind: str, name: str, *, japanese: bool) -> Iterator[tuple[float, Frame]]:
    option, name = name, bare(name)
    if frame.measure or frame.number:
        if name not in COUNTED or (frame.number and name in EXCLUSIVE[0]):
            return
        option = name if frame.number == 1 else f"{frame.measure or frame.number} {name}"
    if "one" in frame.flags and not frame.has_thing:
        yield 0.0, _unflag(replace(frame, ref=f"one {option}", measure="", number=0), "one", "with")
        return
    if "not" in frame.flags and not japanese:
        yield 0.0, _unflag(replace(frame, off=(*frame.off, option), measure="", number=0), "not")
        return
    if any(bare(each) == name for each in frame.opts):
        return
    if japanese and kind == "attribute" and frame.has_thing:
        return
    if japanese and kind == "adverb" and not (frame.has_thing or frame.count or "same" in frame.flags):
        return
    price = 0.0
    if frame.has_thing and not japanese:
        is_led = last == "with" or frame.measure == "no" or (frame.number and "with" in frame.flags)
        price = 0.0 if is_led else 0.1
    if not japanese and last == "count" and option == name and not frame.has_thing:
        price += 0.15
    after = replace(frame, opts=(*frame.opts, option), measure="", number=0, flags=frame.flags - {"with", "unit"})
    yield price, _flag(after, "pre" if kind == "attribute" else "")


def _counted(frame: Frame, last: str, kind: str, number: int, *, japanese: bool) -> Iterator[tuple[float, Frame]]:
    if japanese:
        if frame.opts and frame.opts[-1] in COUNTED and last in ("option", "suffix") and 1 < number <= 20:
            yield 0.0, replace(frame, opts=(*frame.opts[:-1], f"{number} {frame.opts[-1]}"))
        if frame.opts and frame.opts[-1] in COUNTED and last in ("option", "suffix") and number == 1:
            yield 0.2, frame
        if kind == "count" and not frame.count and not (last == "joint" and frame.has_thing):
            is_number = frame.opts and frame.opts[-1] in COUNTED and last in ("option", "suffix")
            yield (0.6 if is_number else 0.0 if frame.has_thing else 0.3), replace(frame, count=number)
        return
    if frame.measure or frame.number:
        return
    if "not" in frame.flags:
        if "the" not in frame.flags or frame.has_thing:
            yield 0.0, _unflag(frame, "not")
    elif "with" in frame.flags and not frame.count and "definite" in frame.flags:
        yield 0.4, replace(frame, count=number)
    elif not frame.count:
        is_new = bool(frame.dish) and "definite" not in frame.flags
        is_late = not frame.has_thing and (frame.opts or frame.size)
        if not is_late and not (is_new and "with" in frame.flags):
            yield 0.2 * is_new, replace(frame, count=number)
    if 0 < number <= 20:
        yield 0.0, replace(frame, number=number)


def _measured(frame: Frame, kind: str, *, japanese: bool) -> Iterator[tuple[float, Frame]]:
    if japanese:
        if frame.opts and frame.opts[-1] in COUNTED:
            yield 0.0, replace(frame, opts=(*frame.opts[:-1], f"{kind} {frame.opts[-1]}"))
    elif not frame.measure and not frame.number:
        yield 0.0, replace(frame, measure=kind)


def bare(option: str) -> str:
    """Return an option without its amount or number."""
    return divide_option(option)[1]


def is_cold(option: str) -> bool:
    """Whether an option is for drinks alone."""
    return bare(option) in ("iced", "blended")


EXCLUSIVE: Final = (frozenset(MILKS.split("|")), frozenset(TEMPERATURES.split("|")))
"""Options of which a dish has at most one."""


@value
class Draft:
    """The changes of an order: its lines (None for a removed one), lines that are split off, new lines, and unavailable items.

    `which` and `absent` are what the reply must ask or say instead, `odd` is true if something cannot be ordered (no
    cookie, an iced bagel), `kept` are the places of lines that the reply repeats unchanged. The rest is used only while parsing: `base` is a new line that may be
    divided, and `rest` what is left of it, `gone` is the place of the line removed last, `owed` is true if another dish must
    replace it, `renames` if the words suggest that, `seen` are the lines referred to.
    """

    code: str
    renames: bool = False
    old: tuple[OrderLine | None, ...] = ()
    split: tuple[OrderLine, ...] = ()
    new: tuple[OrderLine, ...] = ()
    lacking: tuple[str, ...] = ()
    done: bool = False
    which: tuple[OrderLine, ...] = ()
    absent: str = ""
    odd: bool = False
    cancelled: bool = False
    kept: frozenset[int] = frozenset()
    base: OrderLine | None = None
    rest: int = 0
    gone: int = -1
    owed: bool = False
    seen: frozenset[int] = frozenset()


Closed: TypeAlias = tuple[float, Draft]
SHORT_DRINKS: Final = frozenset({"espresso", "ristretto", "lungo", "macchiato"})
SHOT_SIZES: Final = frozenset({"single", "double", "triple", "quad", "solo", "doppio"})


def close(order: Order, draft: Draft, frame: Frame, *, japanese: bool) -> Iterator[Closed]:
    """Yield the drafts that result from a frame, with their costs; nothing if the frame makes no sense for the order."""
    if frame.measure or frame.number or draft.which or draft.absent or draft.cancelled or frame.flags & {"pre"}:
        return
    if draft.owed and (frame.unknown or not frame.dish or "definite" in frame.flags):
        return
    if any(not each.has_thing for each in frame.also):
        return
    if frame.also:
        named = [next(_targets(order, draft, each), (0.0, ()))[1] for each in (replace(frame, also=()), *frame.also)]
        if frame.flags & {"remove"} and all(len(places) == 1 and places[0] >= 0 for places in named):
            lines = [place for places in named for place in places]
            yield from _edited(order, draft, replace(frame, also=()), lines, japanese=japanese)
        return
    if frame.unknown:
        if not frame.flags & {"remove", "more", "not", "the"}:
            yield 0.0 if frame.count else 1.5, replace(draft, lacking=(*draft.lacking, frame.unknown))
        return
    kind, _, place = frame.ref.partition(" ")
    if frame.count < 0 or ("undo" in frame.flags and kind == "it"):
        if frame.has_thing:
            yield 0.0, replace(draft, odd=True)
        return
    if (
        kind == "place"
        and draft.base is not None
        and int(place) == draft.base.quantity - draft.rest + 1
        and not frame.count
    ):
        yield from _parted(draft, replace(frame, ref="", count=1, flags=frame.flags - {"the"}))
    if not frame.has_thing:
        yield from _parted(draft, frame)
    if is_divided(draft):  # of the others nothing more is said
        for price, after in close(order, _with_rest(draft), frame, japanese=japanese):
            yield PARTED + price, after
        return
    if frame.dish and "definite" not in frame.flags:
        yield from _wished(order, draft, frame, japanese=japanese)
        return
    if not frame.has_thing:
        yield from _one_apart(order, draft, frame, japanese=japanese)
    for price, places in _targets(order, draft, frame):
        for more, after in _edited(order, draft, frame, places, japanese=japanese):
            yield price + more, after


def is_divided(draft: Draft) -> bool:
    """Whether some of several that were wished for are to differ, and of the others nothing was said."""
    return draft.base is not None and 0 < draft.rest < draft.base.quantity


def _with_rest(draft: Draft) -> Draft:
    """Return a draft with a line for the others of several: `two lattes, one with oat milk`."""
    assert draft.base is not None, "several were divided"
    left, at = draft.base.quantity - draft.rest, len(draft.new)
    while left > 0 and at:
        at -= 1
        left -= draft.new[at].quantity
    others = replace(draft.base, quantity=draft.rest)
    return replace(draft, new=(*draft.new[:at], others, *draft.new[at:]), base=None, rest=0)


def _one_apart(order: Order, draft: Draft, frame: Frame, *, japanese: bool) -> Iterator[Closed]:
    """Yield what becomes of an order where one of several that it has is to differ: `make one iced`, `一つはアイスに`."""
    several = [
        at for at, line in enumerate(draft.old) if line is not None and line.quantity > 1 and _suits(line, frame)
    ]
    is_plain = frame.flags <= {"change", "on", "with", "oh", "rather", "into"} and "change" in frame.flags
    if frame.count == 1 and (frame.opts or frame.size) and is_plain and not draft.new and len(several) == 1:
        told = replace(frame, count=0, flags=frame.flags | {"each"})
        for price, after in _edited(order, draft, told, several, japanese=japanese):
            yield 0.1 + price, after


def _strangeness(line: OrderLine) -> float:
    """Return the cost of an unusual combination: a warmed drink, a hot dish called hot, or a long drink by the shot."""
    shots = 0.3 * (line.size in SHOT_SIZES and line.name not in SHORT_DRINKS)
    return shots + 0.4 * sum(each in (("warmed",) if line.name in drinks() else TEMPERATURES) for each in line.options)


def _suits(line: OrderLine, frame: Frame) -> bool:
    """Whether what a frame wishes can be had of a line: nothing to eat is iced or has a size, and two are not `it`."""
    is_several = frame.ref in ("it them", "it those", "it these")
    has_wish = bool(frame.size) or any(map(is_cold, frame.opts))
    return not (has_wish and line.name not in drinks()) and not (is_several and line.quantity < 2)


def _wished(order: Order, draft: Draft, frame: Frame, *, japanese: bool) -> Iterator[Closed]:
    if frame.off or frame.flags & {"remove", "not", "instead", "each", "plain"}:
        return
    line = OrderLine(0, frame.dish, frame.size, frame.count or 1, frame.opts)
    base_price = _strangeness(line) + (0.5 if "more" in frame.flags else 1.0 if "all" in frame.flags else 0.0)
    is_change = frame.flags & ({"change", "edit", "possessive", "into"} if japanese else {"into"})
    price = base_price + (1.0 if japanese else 0.5) * bool(is_change)
    is_there = any(each is not None and each.name == line.name for each in draft.old)
    is_bare = not frame.count and "led" not in frame.flags
    price += 1.0 * bool(is_there and frame.count and "only" in frame.flags)  # so many of what is there
    if japanese and "more" in frame.flags and frame.count and not is_there:
        price -= 0.5
    if is_there and (draft.code == "zh" or (japanese and (is_bare or "more" in frame.flags))):
        price += 0.8 if draft.code == "ja" else 1.0
    added_price = price + 0.3 * (draft.gone >= 0 and (draft.code == "zh" or draft.renames))
    base = line if line.quantity > 1 else None
    added = replace(draft, new=(*draft.new, line), base=base, rest=line.quantity, gone=-1)
    if not draft.owed and frame.flags & {"oh", "rather"} and draft.new:
        again = 1.0 * (draft.new[-1].name == line.name)
        yield price + again, replace(added, new=(*draft.new[:-1], line))
        yield added_price + (1.5 if "rather" in frame.flags else 0.3), added
    elif not draft.owed:
        yield added_price, added
    if draft.gone >= 0:
        if (draft.code == "zh" or "many" in frame.flags) and not frame.count:
            line = replace(line, quantity=order.lines[draft.gone].quantity)
        changed = (*draft.old[: draft.gone], line, *draft.old[draft.gone + 1 :])
        is_renamed = draft.owed or draft.renames or "change" in frame.flags
        price = (
            base_price
            if is_renamed and not frame.flags & {"edit", "possessive"}
            else price + 0.1
            if draft.code == "zh"
            else price + 0.3
        )
        yield price, replace(draft, old=changed, gone=-1, owed=False)


def _parted(draft: Draft, frame: Frame) -> Iterator[Closed]:
    """Yield the drafts in which some of several new items differ."""
    base = draft.base
    if base is None or frame.off or frame.size or frame.flags & {"remove", "not", "the", "all"} or not draft.new:
        return
    if not (frame.opts or "plain" in frame.flags):
        return
    number = frame.count
    if not 0 < number <= draft.rest:
        return
    start = draft.new[:-1] if draft.rest == base.quantity else draft.new
    part = replace(base, quantity=number, options=(*base.options, *frame.opts))
    yield 0.0, replace(draft, new=(*start, part), rest=draft.rest - number)


def japanese_count(draft: Draft, frame: Frame) -> bool:
    """Whether a frame is nothing but another count: `やっぱり3つにして`."""
    is_bare = not (frame.opts or frame.off or frame.size) and frame.flags <= {"change", "oh", "rather", "only"}
    return draft.code == "ja" and frame.count > 0 and "change" in frame.flags and is_bare


def _targets(order: Order, draft: Draft, frame: Frame) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the lines to which a frame refers: places of the order, followed by those of new lines."""
    size = len(draft.old)
    lines = [*draft.old, *draft.new]
    news = range(size, len(lines))
    kind, _, name = frame.ref.partition(" ")
    if "all" in frame.flags and not frame.dish:
        places = tuple(news) or tuple(at for at in range(size) if draft.old[at] is not None)
        if places:
            yield 0.0, places
    elif frame.dish:
        is_there = any(line is not None and line.name == frame.dish for line in lines)
        for some in (news, range(size)):
            alike = [
                at
                for at in some
                if (line := lines[at]) is not None
                and (line.name == frame.dish or (not is_there and line.name.endswith(f" {frame.dish}")))
                and at not in draft.seen
            ]
            if frame.narrow:
                alike = [at for at in alike if (line := lines[at]) is not None and line.size == frame.narrow]
            if len(alike) == 1 or (alike and "all" in frame.flags):
                yield 0.0, tuple(alike)
            elif alike and "many" in frame.flags:
                yield 0.1, tuple(alike)
            elif alike and some is not news:
                yield 0.1, tuple(-1 - at for at in alike)
            if alike:
                return
        is_pointed = frame.flags & {"the", "edit", "remove"} or (draft.code == "ja" and "change" in frame.flags)
        if is_pointed and not news:
            yield 0.2 if frame.flags & {"the", "edit", "change"} else 0.6, (size,)
    elif kind in ("it", "last"):
        at = size - 1 if frame.flags & {"instead", "not"} and size else len(lines) - 1
        suited = [place for place, line in enumerate(lines) if line is not None and _suits(line, frame)]
        if kind == "last" or not lines or at in suited or not suited:
            if lines and lines[at] is not None:
                yield 0.0, (at,)
        elif len(suited) == 1:  # `make them large` is not said of a cake
            yield 0.0, tuple(suited)
    elif kind == "place":
        if news and int(name) <= len(news):
            yield 0.0, (size + int(name) - 1,)
        elif not news and int(name) <= size and lines[int(name) - 1] is not None:
            yield 0.0, (int(name) - 1,)
    elif kind == "line":
        yield from (
            (0.0, (at,)) for at, line in enumerate(order.lines) if line.number == int(name) and lines[at] is not None
        )
    elif kind == "one":
        alike = [at for at, line in enumerate(lines) if line is not None and name in line.options]
        if len(alike) == 1:
            yield 0.0, tuple(alike)
    elif not frame.has_thing and frame.opts and "remove" in frame.flags:
        names = {bare(each) for each in frame.opts}
        having = [at for at, line in enumerate(lines) if line is not None and names <= {*map(bare, line.options)}]
        if len(having) == 1:  # `take off the extra shot`
            yield 0.1, tuple(having)
    elif not frame.has_thing and japanese_count(draft, frame) and len(lines) == 1 and lines[0] is not None:
        yield 0.1, (0,)
    elif not frame.has_thing and (frame.flags & {"more"}) and lines and lines[-1] is not None:
        yield (0.7 if draft.code == "ja" else 0.4) if news else 0.1, (len(lines) - 1,)


def _edited(order: Order, draft: Draft, frame: Frame, places: Sequence[int], *, japanese: bool) -> Iterator[Closed]:
    """Yield the drafts that result from changing the lines in these places; a negative place is one of several candidates."""
    lines = [*draft.old, *draft.new]
    size = len(draft.old)
    split = draft.split
    gone, owed = -1, False
    flags = frame.flags
    price = 0.5 * (not japanese and flags >= {"into", "remove"})
    opts = frame.opts
    chosen = frame.size
    named = [line for at in places if 0 <= at < len(lines) and (line := lines[at]) is not None]
    is_all = bool(opts or chosen) and frame.count == sum(line.quantity for line in named)
    count = 0 if is_all else frame.count
    removed = bool(flags & {"remove", "instead", "not"}) and not opts and not chosen
    if not places or (frame.is_empty and not flags) or "plain" in flags:
        return
    if not japanese and flags & {"not", "instead"} and (opts or chosen) and not frame.off:
        return
    if draft.old == order.lines and not draft.new:
        if places == (size,) and frame.dish:
            yield 0.0, replace(draft, absent=frame.dish)
            return
        if places[0] < 0:
            yield 0.0, replace(draft, which=tuple(order.lines[-1 - at] for at in places))
            return
    is_whole = removed and "all" in flags and not frame.dish and not frame.off
    if is_whole and places == tuple(range(size)) and draft.old == order.lines:
        yield 0.0, replace(draft, cancelled=True)
        return
    if min(places) < 0 or max(places) >= len(lines):
        return
    if "remove" not in flags and any(map(is_cold, opts)) and any(line.name not in drinks() for line in named):
        yield 0.2, replace(draft, odd=True)
        return
    for at in places:
        line = lines[at]
        if line is None:
            return
        if "each" in flags:
            if line.quantity < 2 or len(places) > 1:
                return
            price = 0.5 if draft.base is not None else 0.0
            lines[at] = replace(line, quantity=line.quantity - 1)
            if opts or chosen:
                split = (*split, replace(_set(line, opts, chosen, frame.off), quantity=1))
            elif "remove" not in flags:
                return
        elif "more" in flags:
            if frame.off or flags & {"remove"} or ((opts or chosen) and frame.has_thing):
                return
            if opts or chosen:
                lines.append(replace(_set(line, opts, chosen, ()), quantity=count or 1))
                continue
            added = count or (line.quantity if "same" in flags else 1)
            lines[at] = replace(line, quantity=min(99, line.quantity + added))
        elif removed:
            if frame.off:
                kept = tuple(each for each in line.options if bare(each) not in map(bare, frame.off))
                if len(kept) == len(line.options):
                    return
                lines[at] = replace(line, options=kept)
            elif count and (count < line.quantity or not japanese):
                if not japanese:
                    return
                lines[at] = replace(line, quantity=line.quantity - count)
            elif line.quantity > 1 and draft.code == "ja" and count:
                return
            else:
                lines[at] = None
                gone = at if at < size else -1
                if flags & {"instead", "not"} and "remove" not in flags:
                    if draft.new and gone >= 0:
                        lines[at] = draft.new[-1]
                        yield (
                            0.0,
                            replace(draft, old=tuple(lines[:size]), new=draft.new[:-1], base=None, rest=0, gone=-1),
                        )
                        lines[at] = None
                    owed = gone >= 0
        elif "remove" in flags:
            names = {bare(each) for each in opts}
            kept = tuple(each for each in line.options if bare(each) not in names)
            if chosen or len(kept) == len(line.options):
                return
            lines[at] = replace(line, options=kept)
        else:
            after = _set(line, opts, chosen, frame.off)
            price += 0.5 * bool(count and (opts or chosen))
            if count and not (count == 1 and chosen):
                after = replace(after, quantity=count)
            if after == line and draft.code == "zh" and count and flags & {"into", "definite"} and at < size:
                yield 0.1, replace(draft, kept=draft.kept | {at}, seen=draft.seen | {at}, base=None, rest=0, gone=-1)
                return
            if after == line:
                if flags & {"into", "topic", "edit"} and at < size and not (opts or chosen or count or frame.off):
                    yield 0.1, replace(draft, gone=at, owed=True, base=None, rest=0)
                return
            if japanese and not flags & {"change", "possessive", "edit", "into"}:
                price += 0.2 if frame.narrow else 0.5
            lines[at] = after
    new = tuple(line for line in lines[size:] if line is not None)
    yield (
        price,
        replace(
            draft,
            old=tuple(lines[:size]),
            new=new,
            split=split,
            gone=gone,
            owed=owed,
            base=None,
            rest=0,
            seen=draft.seen | {at for at in places if at < size},
        ),
    )


def _set(line: OrderLine, opts: Sequence[str], size: str, off: Sequence[str]) -> OrderLine:
    """Return a line with other options: a milk or a temperature replaces the old one; `no` removes an option."""
    milks = EXCLUSIVE[0] if any(bare(each) in EXCLUSIVE[0] for each in opts) else frozenset[str]()
    gone = {bare(each) for each in off}
    options = [each for each in line.options if bare(each) not in gone or each in milks]
    for option in opts:
        name = bare(option)
        alike = EXCLUSIVE[0] if name in EXCLUSIVE[0] else frozenset({name})
        at = next((at for at, each in enumerate(options) if bare(each) in alike), -1)
        if option.startswith("no ") and at >= 0:
            options.pop(at)
        elif at >= 0:
            options[at] = option
        else:
            options = [each for each in options if not (name in EXCLUSIVE[1] and each in EXCLUSIVE[1])] + [option]
    return replace(line, options=tuple(options), size=size or line.size)


BEAM = 40
DEAREST = 3.5
"""The cost from which a reading is rejected."""
UNFINISHED, PARTED = 1.5, 0.3
"""The cost of a verb without an object, and of a division that leaves some of several as they are."""
ASKS = re.compile(
    r"\b(?:how (?:\w+ )?(?:much|many|expensive)|price|cost|do you (?:have|sell|serve|do|offer|make|happen)|have you got|is there|are there|what(?:'s| is| are| was| were| do| did| have)|say (?:it|that|them) back|which|charge|total|bill|sum|repeat|read)\b"
    r"|ありますか|ありませんか|は頼めますか|いくら|値段|何ですか|おすすめ|合計|価格|置いて|ある$|確認"
)
"""Questions, which order nothing."""
RENAMES = re.compile(r"\bforget\b.+\band (?:give me|get me|make it)\b|なしで、")
"""Words that order something as a replacement for what they remove."""
QUIET: Final = frozenset({"on", "change", "into", "with", "oh", "rather", "the"})
"""Words that may precede a frame."""
HEADS: Final = frozenset(
    {"a", "the", "remove", "more", "place", "line", "it", "last", "all", "each", "other", "done", "oh"}
)
"""Words with which a frame begins."""
IDLE: Final = WEIGHTY | {"plain", "into"}
IDLE_JA: Final = IDLE | {"change"}
"""Words that must not end the text without an object."""
State: TypeAlias = tuple[Draft, Frame, str]
"""The order so far, the open frame, and the kind of the last word."""
Beam: TypeAlias = dict[State, float]


MOST_READ = 300
"""Characters of a text that are parsed; each takes milliseconds."""


@lru_cache(32)
def read_meanings(order: Order, said: str) -> tuple[tuple[float, Draft], ...]:
    """Return the possible meanings of a text for an order, with the costs of their readings, cheapest first.

    >>> (cost, draft), *_ = read_meanings(Order(), "two large lattes")
    >>> draft.new
    (OrderLine(number=0, name='latte', size='large', quantity=2, options=()),)
    """
    text = said.lower()
    if len(text) > MOST_READ:
        return ()
    japanese = bool(CJK.search(text))
    code = "ja" if KANA.search(text) else "zh" if japanese else "en"
    nothing = Draft(code, bool(RENAMES.search(text)), order.lines)
    if not text:
        return ((0.0, replace(nothing, odd=True)),)
    if ASKS.search(" ".join(HESITATION.sub(" ", text).split())):
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
        if cost < DEAREST and (replace(draft, done=False) != nothing or (draft.done and order.lines)):
            found[draft] = min(found.get(draft, cost), cost)
    return tuple(sorted(((cost, draft) for draft, cost in found.items()), key=lambda each: each[0])[:BEAM])


def _cheapest(beam: Mapping[State, float], count: int) -> list[tuple[State, float]]:
    return sorted(beam.items(), key=lambda each: each[1])[:count]


def _keep(beam: Beam, state: State, cost: float) -> None:
    beam[state] = min(beam.get(state, cost), cost)


def _with_closed(order: Order, beam: Beam, *, japanese: bool) -> Beam:
    """Return the best states, and those that result from closing their frames."""
    best = dict(_cheapest(beam, BEAM))
    closed: Beam = {}
    for (draft, frame, last), cost in best.items():
        if not frame.is_empty and not draft.done:
            is_bare = "more" in frame.flags and not (frame.has_thing or frame.opts or frame.size)
            early = 0.5 * (japanese and is_bare)
            for more, after in close(order, draft, frame, japanese=japanese):
                is_clause = last in ("joint", "stop") or (japanese and last in ("remove", "change"))
                _keep(closed, (after, EMPTY, "joint" if is_clause else "closed"), cost + more + early)
    for state, cost in closed.items():
        _keep(best, state, cost)
    return best


def _extended(
    draft: Draft, frame: Frame, last: str, kind: str, name: str, *, japanese: bool
) -> Iterator[tuple[float, Draft, Frame]]:
    """Yield the states that result from a word."""
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
        is_open = not frame.is_empty or "more" in frame.flags or frame.flags >= {"remove", "all"}
        ends = close(order, draft, frame, japanese=japanese) if is_open else [(0.0, draft)]
        for more, after in ends:
            divided = is_divided(after)
            is_idle = not is_open and bool(frame.flags & (IDLE_JA if japanese else IDLE))
            if not after.owed:
                whole = _with_rest(after) if divided else after
                told = replace(whole, base=None, rest=0, gone=-1, seen=frozenset())
                yield cost + more + PARTED * divided + UNFINISHED * is_idle, told
