"""Orders of one or more items with extras, of several items that differ, and of items not on the menu."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from types import ModuleType

from taiwa.models.builtin.order_app import OrderLine
from training.builtin.desk import english, english_talk, japanese, japanese_talk
from training.builtin.desk.foreign import foreign_order
from training.builtin.desk.menu import MENU
from training.builtin.desk.replies import listed, missing
from training.builtin.desk.scene import (
    Scene,
    answer,
    closing,
    following,
    make_sample,
    next_number,
    scene,
    shown_sum,
    step,
)
from training.builtin.desk.unknown import unknown
from training.builtin.desk.wishes import Wish, extra, wishes
from training.builtin.samples import Sample, Span

__all__ = ["DONE", "abroad", "nothing_here", "order", "ordered", "taken", "tongue"]

MOST_OPTIONS = 8
DONE = 0.16


def tongue(code: str) -> tuple[ModuleType, ModuleType]:
    """The modules of a language: items, and the words around them."""
    return (english, english_talk) if code == "en" else (japanese, japanese_talk)


def taken(
    place: Scene, lines: Sequence[OrderLine], lacking: Sequence[str] = (), *, done: bool = False
) -> list[str | Span]:
    """Return the reply to new lines: what was understood, what is not available, and the total or "anything else?"."""
    understood = listed(place.code, lines) + ("." if place.code == "en" else "ですね。")
    parts = [understood, *([missing(place.code, lacking)] if lacking else [])]
    space = " " if place.code == "en" else ""
    if not done:
        return [space.join((*parts, answer(place.code, "more")))]
    after = following(place.order, {line.number: line for line in lines})
    return [space.join((*parts, "")), *shown_sum(place.code, "total", after)]


def ordered(random: Random, place: Scene, wished: Sequence[Wish], kind: str = "order") -> Sample:
    """Order the given items, occasionally with something that is not on the menu."""
    wording, talk = tongue(place.code)
    spoken = [wording.phrase(random, each) for each in wished]
    said, meant = [text for text, _ in spoken], [after for _, after in spoken]
    lacking: list[str] = []
    if random.random() < 0.09:
        for _ in range(random.choice((1, 1, 2))):
            asked_for, name = unknown(random, place.code)
            said.insert(random.randint(0, len(said)) if not lacking else len(said), asked_for)
            lacking.append(name)
    tail = ""
    if len(meant) > 1 and not lacking and random.random() < 0.05:
        tail, meant = _for_all(random, place.code, meant)
    done = random.random() < DONE
    mood = (
        "yes"
        if place.asked == "more" and random.random() < 0.4
        else "more"
        if place.lines and random.random() < 0.75
        else "first"
    )
    text = talk.ordering(random, [*said[:-1], said[-1] + tail], f"{mood} done" if done else mood)
    lines = [each.line(next_number(place.order) + at) for at, each in enumerate(meant)]
    answered = taken(place, lines, lacking, done=done)
    return make_sample(random, kind, place, text, answered, step(place, lines, done=done))


def _for_all(random: Random, code: str, meant: list[Wish]) -> tuple[str, list[Wish]]:
    """Return an instruction that applies to all items: `all to go`."""
    wording, talk = tongue(code)
    common = extra(random, meant[0].name)
    known = {each.name for one in meant for each in one.extras} | {each.sort for one in meant for each in one.extras}
    mixed = len({MENU[each.name].kind for each in meant}) > 1
    if (
        common is None
        or (mixed and common.sort != "served")
        or common.name in known
        or common.sort in known
        or common.sort in ("bagel", "shot")
    ):
        return "", meant
    part = wording.behind(random, common)
    parts = [part] if isinstance(part, tuple) else [(part, "")]
    return talk.shared(random, parts), [replace(each, extras=(*each.extras, common)) for each in meant]


def order(random: Random, code: str) -> Sample:
    """Order something."""
    place = scene(random, code) if random.random() < 0.45 else scene(random, code, most=0)
    return ordered(random, place, wishes(random, 6 if len(place.lines) < 3 else 3))


def nothing_here(random: Random, code: str) -> Sample:
    """Order only things that are not on the menu."""
    place = scene(random, code) if random.random() < 0.5 else scene(random, code, most=0)
    found = [unknown(random, code) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    _, talk = tongue(code)
    text = talk.ordering(random, [said for said, _ in found], "first")
    space = " " if code == "en" else ""
    return make_sample(
        random,
        "nothing_here",
        place,
        text,
        [missing(code, [name for _, name in found]) + space + closing(place, place.lines)],
    )


def abroad(random: Random, _: str) -> Sample:
    """Order in a few words of another language; the reply is in English."""
    place = scene(random, "en", most=2) if random.random() < 0.3 else scene(random, "en", most=0)
    text, meant = foreign_order(random)
    lines = [each.line(next_number(place.order) + at) for at, each in enumerate(meant)]
    return make_sample(
        random,
        "abroad",
        place,
        text,
        taken(place, lines),
        step(place, lines),
    )
