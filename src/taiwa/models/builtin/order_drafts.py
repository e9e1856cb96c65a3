"""Drafts: the order as it becomes while a guest's words are read, and what a frame does to it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from taiwa.kernel.serialization import value
from taiwa.models.builtin.order_app import MILKS, TEMPERATURES, Order, OrderLine
from taiwa.models.builtin.order_frames import Frame, bare
from taiwa.models.builtin.order_words import drinks

EXCLUSIVE: Final = (frozenset(MILKS.split("|")), frozenset(TEMPERATURES.split("|")))
"""Options of which a dish has one."""


@value
class Draft:
    """The order as it becomes: its lines (None for one that is gone), those that are split off, new ones, and what there is not.

    `which` and `absent` are what must be asked or said instead, `odd` holds where a count cannot be ordered. What is only of use
    while the words are read: `base` is a new line that may be divided, with what of it is left (`rest`), `gone` is the place of
    the line that was taken off last, `owed` whether another dish must take its place, `seen` are the lines that were named.
    """

    code: str
    old: tuple[OrderLine | None, ...] = ()
    split: tuple[OrderLine, ...] = ()
    new: tuple[OrderLine, ...] = ()
    lacking: tuple[str, ...] = ()
    done: bool = False
    which: tuple[OrderLine, ...] = ()
    absent: str = ""
    odd: bool = False
    cancelled: bool = False
    base: OrderLine | None = None
    rest: int = 0
    gone: int = -1
    owed: bool = False
    seen: frozenset[int] = frozenset()


Closed: TypeAlias = tuple[float, Draft]
SHORT_DRINKS: Final = frozenset({"espresso", "ristretto", "lungo", "macchiato"})
SHOT_SIZES: Final = frozenset({"single", "double", "triple", "quad", "solo", "doppio"})


def close(order: Order, draft: Draft, frame: Frame, *, japanese: bool) -> Iterator[Closed]:
    """Yield what becomes of an order by a frame, with what it costs to mean that; nothing if a frame makes no sense for it."""
    if frame.measure or frame.number or draft.which or draft.absent or draft.cancelled or frame.flags & {"pre"}:
        return
    if draft.owed and (frame.unknown or not frame.dish or "definite" in frame.flags):
        return
    if frame.also:
        frames = [replace(frame, dish=each, also=()) for each in (frame.dish, *frame.also)]
        targets = [next(_targets(order, draft, each), (0.0, ())) for each in frames]
        if frame.flags & {"remove"} and all(len(places) == 1 for _, places in targets):
            places = tuple(found[0] for _, found in targets)
            yield from _edited(order, draft, frames[0], places, japanese=japanese)
        return
    if frame.unknown:
        if not frame.flags & {"remove", "more", "not", "the"}:
            yield 0.0 if frame.count else 1.5, replace(draft, lacking=(*draft.lacking, frame.unknown))
        return
    if frame.count < 0:
        if frame.has_thing:
            yield 0.0, replace(draft, odd=True)
        return
    kind, _, place = frame.ref.partition(" ")
    if (
        kind == "place"
        and draft.base is not None
        and int(place) == draft.base.quantity - draft.rest + 1
        and not frame.count
    ):
        yield from _parted(draft, replace(frame, ref="", count=1, flags=frame.flags - {"the"}))
    if frame.dish and "definite" not in frame.flags:
        yield from _wished(order, draft, frame, japanese=japanese)
        return
    if not frame.has_thing:
        yield from _parted(draft, frame)
    for price, places in _targets(order, draft, frame):
        for more, after in _edited(order, draft, frame, places, japanese=japanese):
            yield price + more, after


def _strangeness(line: OrderLine) -> float:
    """Return what it costs to have a drink warmed up, something to eat hot, or a long drink by the shot."""
    shots = 0.3 * (line.size in SHOT_SIZES and line.name not in SHORT_DRINKS)
    return shots + 0.4 * sum(each in (("warmed",) if line.name in drinks() else TEMPERATURES) for each in line.options)


def _wished(order: Order, draft: Draft, frame: Frame, *, japanese: bool) -> Iterator[Closed]:
    if frame.off or frame.flags & {"remove", "not", "instead", "each", "plain"}:
        return
    price = 0.5 if "more" in frame.flags else 1.0 if "all" in frame.flags else 0.0
    price += 1.0 if frame.flags & {"change", "edit", "possessive", "into"} and japanese else 0.0
    line = OrderLine(0, frame.dish, frame.size, frame.count or 1, frame.opts)
    price += _strangeness(line)
    is_there = any(each is not None and each.name == line.name for each in draft.old)
    if is_there and (draft.code == "zh" or (japanese and not frame.count)):
        price += 0.3 if draft.code == "ja" else 1.0
    base = line if line.quantity > 1 else None
    added = replace(draft, new=(*draft.new, line), base=base, rest=line.quantity, gone=-1)
    if not draft.owed and frame.flags & {"oh", "rather"} and draft.new:
        again = 1.0 * (draft.new[-1].name == line.name)
        yield price + again, replace(added, new=(*draft.new[:-1], line))
        yield price + (1.5 if "rather" in frame.flags else 0.3), added
    elif not draft.owed:
        yield price, added
    if draft.gone >= 0:
        if draft.code == "zh" and not frame.count:
            line = replace(line, quantity=order.lines[draft.gone].quantity)
        changed = (*draft.old[: draft.gone], line, *draft.old[draft.gone + 1 :])
        price += 0.0 if draft.owed else 0.1 if draft.code == "zh" else 0.3
        yield price, replace(draft, old=changed, gone=-1, owed=False)


def _parted(draft: Draft, frame: Frame) -> Iterator[Closed]:
    """Yield what becomes of several that were wished for where some of them are to differ."""
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


def _targets(order: Order, draft: Draft, frame: Frame) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the lines that a frame names: places of the order, and those of new lines behind them."""
    size = len(draft.old)
    lines = [*draft.old, *draft.new]
    news = range(size, len(lines))
    kind, _, name = frame.ref.partition(" ")
    if "all" in frame.flags and not frame.dish:
        places = tuple(news) or tuple(at for at in range(size) if draft.old[at] is not None)
        if places:
            yield 0.0, places
    elif frame.dish:
        for some in (news, range(size)):
            alike = [
                at
                for at in some
                if (line := lines[at]) is not None and line.name == frame.dish and at not in draft.seen
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
        if frame.flags & {"the", "edit", "remove"}:
            yield 0.2 if frame.flags & {"the", "edit"} else 0.6, (size,)
    elif kind in ("it", "last"):
        at = size - 1 if frame.flags & {"instead", "not"} and size else len(lines) - 1
        if lines and lines[at] is not None:
            yield 0.0, (at,)
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
    elif not frame.has_thing and (frame.flags & {"more"}) and lines and lines[-1] is not None:
        yield 0.1, (len(lines) - 1,)


def _edited(order: Order, draft: Draft, frame: Frame, places: Sequence[int], *, japanese: bool) -> Iterator[Closed]:
    """Yield what becomes of the lines in these places; a place below zero is one of several that may be meant."""
    lines = [*draft.old, *draft.new]
    size = len(draft.old)
    split = draft.split
    gone, owed = -1, False
    price = 0.0
    flags = frame.flags
    opts = frame.opts
    chosen = frame.size
    named = [line for at in places if 0 <= at < len(lines) and (line := lines[at]) is not None]
    is_all = bool(opts or chosen) and frame.count == sum(line.quantity for line in named)
    count = 0 if is_all else frame.count
    removed = bool(flags & {"remove", "instead", "not"}) and not opts and not chosen
    if not places or (frame.is_empty and not flags) or "plain" in flags:
        return
    if draft.old == order.lines and not draft.new:
        if places == (size,) and frame.dish:
            yield 0.0, replace(draft, absent=frame.dish)
            return
        if places[0] < 0:
            yield 0.0, replace(draft, which=tuple(order.lines[-1 - at] for at in places))
            return
    if removed and "all" in flags and not frame.off and places == tuple(range(size)) and draft.old == order.lines:
        yield 0.0, replace(draft, cancelled=True)
        return
    if min(places) < 0 or max(places) >= len(lines):
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
    """Return a line with other options: a milk takes the place of another one, a temperature too; `no` takes away what is there."""
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
