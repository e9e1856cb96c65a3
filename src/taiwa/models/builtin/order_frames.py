"""Frames: what has been said of one thing, a dish that is wished for or a line of the order, and how each word adds to it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from taiwa.kernel.serialization import value
from taiwa.models.builtin.order_app import COUNTED
from taiwa.models.builtin.order_reply import divide_option

HIRAGANA = re.compile(r"[ぁ-ん]")


@value
class Frame:
    """What has been said of one thing.

    `also` are further dishes (`the latte and the tea`), `ref` names a line otherwise than by its dish: `it`, `place 2`. `narrow` is the size by which it is named, `off` are options
    that are taken back; `measure` and `number` wait for their option. A count below zero is one that cannot be ordered.
    """

    dish: str = ""
    also: tuple[str, ...] = ()
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
        """Whether nothing was said yet that orders or names something."""
        return self == replace(EMPTY, flags=self.flags)

    @property
    def has_thing(self) -> bool:
        """Whether it is known what this is about."""
        return bool(self.dish or self.ref)


EMPTY: Final = Frame()


MEASURING: Final = ("no", "light", "extra", "half")
FLAGS: Final = (
    "with", "on", "remove", "instead", "change", "into", "more", "each", "all", "plain", "oh", "rather",
)  # fmt: skip
"""Kinds of words that are only noted."""


def extend(frame: Frame, last: str, kind: str, name: str, *, japanese: bool) -> Iterator[tuple[float, Frame]]:
    """Yield what a frame becomes by a word of a kind, with what that costs; nothing if the word cannot stand there.

    `last` is the kind of the word before; `japanese` holds for Chinese too, where options and counts follow as well.
    """
    pending = bool(frame.measure or frame.number)
    frame = _topical(frame, kind)
    if "pre" in frame.flags and kind not in (
        "option", "attribute", "dish", "size", "fill", "stop", "number", "suffix", "pre", *MEASURING,
    ):  # fmt: skip
        return
    if kind == "fill":
        if not pending or japanese:
            yield 0.0, _unflag(frame, "the")
    elif kind in ("stop", "joint"):
        dangling = (frame.opts or frame.size) and not frame.has_thing and not frame.count
        if not pending and not (dangling and (japanese or kind == "joint")):
            yield 0.0, frame
    elif kind == "unknown":
        yield from _unknown(frame, last, name, japanese=japanese)
    elif frame.unknown:
        if not japanese and kind in ("of", "unit", "joint") and last == "unknown":
            yield 0.1 if kind == "of" else 0.5, replace(frame, unknown=f"{frame.unknown} {name}")
        elif japanese and kind in ("count", "wo"):
            yield 0.0, frame
    elif kind in ("dish", "dishes"):
        is_joined = last == "joint" if japanese else last == "the" and "remove" in frame.flags
        if is_joined and frame.dish and not (frame.opts or frame.count or frame.size or pending):
            yield 0.3, _flag(replace(frame, also=(*frame.also, name)), "definite")
        frame = _flag(frame, "many" if kind == "dishes" else "")
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
        if "the" in frame.flags and not frame.has_thing and not pending:
            yield 0.0, replace(frame, narrow=name)
        elif not frame.size and not pending:
            yield (0.0 if not frame.dish or last == "with" else 0.1), replace(frame, size=name)
    elif kind in ("option", "attribute", "adverb"):
        yield from _optional(frame, last, kind, name, japanese=japanese)
    elif kind in ("count", "number"):
        yield from _counted(frame, last, kind, int(name), japanese=japanese)
    elif kind in ("a", "one"):
        is_behind = frame.has_thing or ((frame.opts or frame.size) and "on" not in frame.flags)
        if kind == "a" and is_behind:
            if frame.has_thing or (frame.count and frame.opts):
                yield 0.0, frame
        elif kind == "a" and not frame.count and not pending:
            yield 0.0, replace(frame, count=1)
        elif kind == "one" and "the" in frame.flags and not frame.has_thing and frame.opts:
            yield 0.0, replace(frame, ref=f"one {frame.opts[-1]}", opts=frame.opts[:-1])
    elif kind in ("it", "last", "place", "line"):
        if not frame.dish and not frame.ref and not pending:
            yield (0.0 if kind != "it" else 0.1), replace(frame, ref=f"{kind} {name}")
    elif kind in MEASURING:
        yield from _measured(frame, kind, japanese=japanese)
    elif kind == "unit":
        if frame.count and not frame.has_thing and not frame.number and not frame.opts:
            yield 1.0, replace(frame, unknown=name)
        if frame.number:
            yield 0.0, frame
        elif not japanese and (last == "a" or (last in ("with", "count") and (frame.has_thing or frame.count))):
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
            and (frame.has_thing or frame.count)
            and not (last == "count" and name in ("に変えて", "に変更で", "にして"))
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
    elif (
        kind in ("of", "wo")
        or (kind == "some" and not pending)
        or (kind == "of them" and frame.count and not frame.has_thing)
    ):
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
    elif kind in FLAGS:
        if japanese and kind == "more" and frame.opts and not frame.has_thing:
            return
        misplaced = kind in ("oh", "rather") and not frame.is_empty and name != "instead"
        misplaced |= kind == "with" and not (frame.has_thing or frame.opts or frame.count)
        if not pending and misplaced and kind == "oh":
            yield 0.05, frame
        elif not pending and not misplaced:
            late = kind == "remove" and frame.has_thing and last in ("joint", "stop") and not japanese
            yield 0.3 * late, _flag(frame, kind)


def _flag(frame: Frame, flag: str) -> Frame:
    return replace(frame, flags=frame.flags | {flag}) if flag else frame


def _unflag(frame: Frame, *gone: str) -> Frame:
    return replace(frame, flags=frame.flags - {*gone})


def _unknown(frame: Frame, last: str, name: str, *, japanese: bool) -> Iterator[tuple[float, Frame]]:
    if frame.has_thing or frame.measure or frame.number:
        return
    if frame.unknown and last in ("unknown", "of", "unit", "joint"):
        yield 0.05, replace(frame, unknown=f"{frame.unknown}{'' if japanese else ' '}{name}")
    elif not frame.unknown and name not in ("x", "u", "r"):
        price = 2.0 if japanese and HIRAGANA.match(name) else 1.0 if frame.count or japanese else 3.5
        yield price, replace(frame, unknown=name)


def _topical(frame: Frame, kind: str) -> Frame:
    """Note that a dish is the topic of a change: `ラテを大きく`; `ラテを二つ` is a wish."""
    if "topic" not in frame.flags:
        return frame
    return _flag(
        _unflag(frame, "topic"), "edit" if kind not in ("count", "number", "wo", "fill", "stop", "joint") else ""
    )


def _optional(frame: Frame, last: str, kind: str, name: str, *, japanese: bool) -> Iterator[tuple[float, Frame]]:
    option, name = name, bare(name)
    if frame.measure or frame.number:
        if name not in COUNTED:
            return
        option = name if frame.number == 1 else f"{frame.measure or frame.number} {name}"
    if "not" in frame.flags and not japanese:
        yield 0.0, _unflag(replace(frame, off=(*frame.off, option), measure="", number=0), "not")
        return
    if any(bare(each) == name for each in frame.opts):
        return
    if japanese and kind == "attribute" and frame.has_thing:
        return
    if japanese and kind == "adverb" and not (frame.has_thing or frame.count):
        return
    price = 0.0
    if frame.has_thing and not japanese:
        price = 0.0 if last == "with" or frame.measure == "no" else 0.1
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
            yield (0.0 if frame.has_thing else 0.3), replace(frame, count=number)
        return
    if frame.measure or frame.number:
        return
    if "not" in frame.flags:
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
    """Return an option without its measure or number."""
    return divide_option(option)[1]
