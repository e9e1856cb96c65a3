"""Changes to an order: size, quantity, milk or dish; more, less or none of an extra."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from taiwa.models.builtin.order_app import COUNTED, OrderLine
from training.builtin.desk.english_words import MILK_WORDS, STANDS
from training.builtin.desk.japanese_words import ADDED, SIZE_WORDS
from training.builtin.desk.menu import MENU
from training.builtin.desk.ordering import tongue
from training.builtin.desk.references import named_alone, reference
from training.builtin.desk.replies import listed
from training.builtin.desk.scene import (
    Scene,
    answer,
    change_words,
    closing,
    following,
    make_sample,
    next_number,
    scene,
    step,
)
from training.builtin.desk.wishes import DRINKS, MILK_NAMES, Extra, Wish, extra, size, wish
from training.builtin.noise import number_ja, number_words
from training.builtin.samples import Sample

__all__ = [
    "absent",
    "added",
    "again",
    "amount",
    "change",
    "extra_words",
    "fitting",
    "heated",
    "pick",
    "remove",
    "removed_words",
    "same_but",
    "size_words",
    "swap",
    "which",
]


def _say(random: Random, code: str, name: str, **slots: str) -> str:
    text = change_words(random, code, name)
    for slot, words in slots.items():
        text = text.replace(f"{{{slot}}}", words)
    return str(tongue(code)[1].written(random, text))


def amount(random: Random, code: str, number: int) -> str:
    """Return a number in words."""
    return (
        number_words(random, number, digits=0.35).replace("a couple of", "two").replace("a single", "one")
        if code == "en"
        else number_ja(random, number)
    )


def pick(random: Random, place: Scene) -> OrderLine:
    """Choose a line to refer to, preferably the newest."""
    return place.lines[-1] if random.random() < 0.4 else random.choice(place.lines)


def _changed(random: Random, place: Scene, text: str, *lines: OrderLine) -> Sample:
    code = place.code
    space = " " if code == "en" else ""
    words = answer(code, "now", x=listed(code, lines)) + space + answer(code, "more")
    return make_sample(random, "change", place, text, [words], step(place, lines))


def change(random: Random, code: str) -> Sample:
    """Return a change of the given kind to a line."""
    place = scene(random, code, least=1)
    line = pick(random, place)
    ways = (
        ["size"] * 4
        + ["quantity"] * 4
        + ["with"] * 7
        + ["rename"] * 3
        + ["milk"] * (4 if _milk(line) else 0)
        + ["drop"] * (3 if _droppable(line) else 0)
    )
    ways += ["one_of"] * (3 if line.quantity > 1 else 0)
    way = random.choice(ways)
    ref = reference(random, code, place.order, line)
    if way == "size":
        return _resized(random, place, line, ref)
    if way == "quantity":
        return _recounted(random, place, line, ref)
    if way in ("with", "one_of"):
        return _added(random, place, line, ref, one_of=way == "one_of")
    if way == "milk":
        return _milked(random, place, line, ref)
    if way == "drop":
        return _dropped(random, place, line, ref)
    return _renamed(random, place, line, ref)


def _resized(random: Random, place: Scene, line: OrderLine, ref: str) -> Sample:
    chosen = next((each for each in (size(random, line.name) for _ in range(6)) if each != line.size), "large")
    said = size_words(place.code, chosen)
    return _changed(random, place, _say(random, place.code, "size", r=ref, x=said), replace(line, size=chosen))


def _recounted(random: Random, place: Scene, line: OrderLine, ref: str) -> Sample:
    number = random.choice([each for each in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20) if each != line.quantity])
    text = _say(
        random,
        place.code,
        "quantity",
        r=ref,
        n=amount(random, place.code, number),
        o=amount(random, place.code, line.quantity),
    )
    return _changed(random, place, text, replace(line, quantity=number))


def size_words(code: str, chosen: str) -> str:
    """Return the wording of a size."""
    return chosen if code == "en" else SIZE_WORDS[chosen][0]


def extra_words(random: Random, code: str, found: Extra) -> tuple[str, str]:
    """Return the section of templates for an added extra, and its words."""
    said, link = _behind(random, code, found)
    return "with" if link else "bare", said


def added(line: OrderLine, found: Extra) -> OrderLine:
    """Return a line with an extra added; a new milk or temperature replaces the old one."""
    gone = {"milk": MILK_NAMES, "temperature": SORTS["temperature"]}.get(found.sort, ())
    kept = (each for each in line.options if each not in gone)
    return replace(line, options=(*kept, found.text))


def heated(random: Random, line: OrderLine) -> Extra | None:
    """Return the temperatures that a drink does not have yet, hot or iced."""
    other = random.choice([each for each in ("iced", "iced", "hot", "extra hot") if each not in line.options])
    return Extra(other, "temperature") if MENU[line.name].kind in DRINKS else None


def removed_words(random: Random, code: str, ref: str) -> str:
    """Return the wording of a removal."""
    return _bare_words(random, code, "remove", ref)


def fitting(random: Random, line: OrderLine) -> Extra | None:
    """Draw an extra that the line lacks and that fits its other extras."""
    have = tuple(_as_extra(option) for option in line.options)
    found = extra(random, line.name, have)
    return None if found is None or found.sort == "bagel" or len(line.options) > 5 else found


def _as_extra(option: str) -> Extra:
    measure, _, name = option.partition(" ")
    if option in COUNTED or not name or name not in COUNTED:
        measure, name = "", option
    sort = "milk" if name in MILK_NAMES else "syrup" if name.endswith("syrup") else "topping"
    for known, names in SORTS.items():
        if name in names:
            sort = known
    return Extra(name, sort, measure)


FAMILIAR = ("latte", "tea", "bagel", "cappuccino", "iced tea")
SORTS = {
    "temperature": ("iced", "hot", "extra hot", "warm", "lukewarm"), "served": ("to go", "for here", "with room", "lid", "no lid", "straw", "no straw"),
    "strength": ("decaf", "half caf", "one third caf", "two thirds caf", "black", "strong", "weak", "dry", "wet", "unsweetened", "blended"),
    "handled": ("warmed", "toasted", "cut in half", "sliced", "gluten-free", "vegan"), "bagel": ("plain", "sesame", "everything", "whole wheat"), "shot": ("espresso shot",),
}  # fmt: skip


def _behind(random: Random, code: str, more: Extra) -> tuple[str, str]:
    """Return the words for an added extra, and whether `with` precedes them."""
    if code == "ja":
        return str(tongue(code)[0].behind(random, more)), ""
    if more.name in STANDS:
        return (STANDS[more.name][1] or STANDS[more.name][0])[0], ""
    said, link = tongue(code)[0].behind(random, more)
    return said.removesuffix(" please").removesuffix(" instead"), link


def _added(random: Random, place: Scene, line: OrderLine, ref: str, *, one_of: bool) -> Sample:
    more = fitting(random, line)
    if more is None or (more.sort == "milk" and _milk(line)):
        return _recounted(random, place, line, ref)
    said, link = _behind(random, place.code, more)
    options = (*line.options, more.text)
    if one_of:
        text = _say(random, place.code, "one_of", r=ref, x=f"with {said}" if link else said)
        fewer = replace(line, quantity=line.quantity - 1)
        return _changed(
            random, place, text, fewer, replace(line, number=next_number(place.order), quantity=1, options=options)
        )
    text = _say(random, place.code, "with" if link else "bare", r=ref, x=said)
    return _changed(random, place, text, replace(line, options=options))


def _milk(line: OrderLine) -> str:
    return next((option for option in line.options if option in MILK_NAMES), "")


def _milked(random: Random, place: Scene, line: OrderLine, ref: str) -> Sample:
    old, new = _milk(line), random.choice(MILK_NAMES)
    if new == old:
        return _recounted(random, place, line, ref)
    words = MILK_WORDS if place.code == "en" else ADDED
    text = _say(random, place.code, "milk", r=ref, x=words[new][0], o=random.choice(words[old][:2]))
    return _changed(
        random, place, text, replace(line, options=tuple(new if each == old else each for each in line.options))
    )


def _droppable(line: OrderLine) -> list[Extra]:
    found = [_as_extra(option) for option in line.options]
    return [each for each in found if each.name in COUNTED and each.measure != "no"]


def _dropped(random: Random, place: Scene, line: OrderLine, ref: str) -> Sample:
    gone = random.choice(_droppable(line))
    name = gone.name.removesuffix(" syrup") if random.random() < 0.5 else gone.name
    said = name if place.code == "en" else ADDED[gone.name][0]
    text = _say(random, place.code, "drop", r=ref, o=said)
    return _changed(
        random, place, text, replace(line, options=tuple(each for each in line.options if each != gone.text))
    )


def _renamed(random: Random, place: Scene, line: OrderLine, ref: str) -> Sample:
    other = wish(random, 1)
    if other.name == line.name:
        return _recounted(random, place, line, ref)
    said, meant = tongue(place.code)[0].phrase(
        random, replace(other, quantity=line.quantity if random.random() < 0.6 else 1)
    )
    return _changed(random, place, _say(random, place.code, "rename", r=ref, w=said), meant.line(line.number))


def swap(random: Random, code: str) -> Sample:
    """Remove one line and order something else in the same turn."""
    place = scene(random, code, least=1)
    line = pick(random, place)
    ref, (_, talk) = reference(random, code, place.order, line), tongue(code)
    said, meant = tongue(code)[0].phrase(random, wish(random, 2))
    first = _bare_words(random, code, "remove", ref)
    joint = (
        random.choice((" and ", ", ", ". ", " but ", " and then "))
        if code == "en"
        else random.choice(("、", "。", "、それと", "。あと"))
    )
    second = (
        random.choice(("add ", "i'd like ", "give me ", "put in ", "get me ", "i'll have ")) + said
        if code == "en"
        else said + random.choice(("をください", "をお願いします", "を追加で", "お願いします"))
    )
    new = meant.line(next_number(place.order))
    space = " " if code == "en" else ""
    words = space.join(
        (
            answer(code, "off", x=listed(code, [line])),
            listed(code, [new]) + ("." if code == "en" else "ですね。"),
            answer(code, "more"),
        )
    )
    return make_sample(
        random,
        "swap",
        place,
        talk.written(random, first + joint + second),
        [words],
        step(place, [new], [line]),
    )


def _bare_words(random: Random, code: str, name: str, ref: str) -> str:
    return change_words(random, code, name).replace("{r}", ref)


def remove(random: Random, code: str) -> Sample:
    """Remove a line, or one of several."""
    place = scene(random, code, least=1)
    line = pick(random, place)
    ref = reference(random, code, place.order, line)
    if line.quantity > 1 and random.random() < 0.35:
        return _changed(random, place, _say(random, code, "one_less", r=ref), replace(line, quantity=line.quantity - 1))
    gone = [line]
    if len(place.lines) > 2 and random.random() < 0.15:
        other = random.choice([each for each in place.lines if each is not line])
        ref += (" and " if code == "en" else "と") + reference(random, code, place.order, other)
        gone = sorted((line, other), key=lambda each: each.number)
    left = following(place.order, {each.number: None for each in gone})
    space = " " if code == "en" else ""
    words = answer(code, "off", x=listed(code, gone)) + space + answer(code, "more" if left else "gone")
    return make_sample(
        random,
        "remove",
        place,
        _say(random, code, "remove", r=ref),
        [words],
        step(place, gone=gone),
    )


def again(random: Random, code: str) -> Sample:
    """Order more of an existing line."""
    place = scene(random, code, least=1)
    chance = random.random()
    line = place.lines[-1] if chance < 0.55 else pick(random, place)
    if chance < 0.2:
        return _changed(random, place, _say(random, code, "again"), _more(line, line.quantity))
    if chance < 0.4:
        return _changed(random, place, _say(random, code, "another"), _more(line, 1))
    ref = reference(random, code, place.order, line)
    if chance < 0.7:
        return _changed(random, place, _say(random, code, "more_of", r=ref), _more(line, 1))
    if chance < 0.85 and named_alone(place.order, line):
        return _changed(random, place, _by_name(random, code, line), _more(line, 1))
    number = random.choice((1, 2, 2, 3, 4, 5))
    return _changed(
        random, place, _say(random, code, "n_more", r=ref, n=amount(random, code, number)), _more(line, number)
    )


def _by_name(random: Random, code: str, line: OrderLine) -> str:
    """Order `another latte` when the order has one."""
    called = tongue(code)[0].noun(random, line.name)
    text = random.choice(
        (
            f"another {called}",
            f"one more {called}",
            f"and another {called}",
            f"add another {called}",
            f"can i get another {called}",
            f"one more {called} please",
            f"i'd like another {called}",
            f"an additional {called}",
        )
    )
    if code == "ja":
        text = random.choice(
            (
                f"{called}をもう一つ",
                f"もう一つ{called}",
                f"{called}もう一つください",
                f"{called}をもう一つお願いします",
                f"{called}のおかわり",
                f"{called}をもうひとつ",
            )
        )
    return str(tongue(code)[1].written(random, text))


def _more(line: OrderLine, number: int) -> OrderLine:
    return replace(line, quantity=min(99, line.quantity + number))


def same_but(random: Random, code: str) -> Sample:
    """Order one more of the newest line, with a change."""
    place = scene(random, code, least=1)
    line = place.lines[-1]
    old, new = _milk(line), random.choice(MILK_NAMES)
    more = fitting(random, line)
    if old and new != old and random.random() < 0.5:
        said, link = _behind(random, code, Extra(new, "milk"))
        options = tuple(new if each == old else each for each in line.options)
    elif more is None or (more.sort == "milk" and old):
        return again(random, code)
    else:
        said, link = _behind(random, code, more)
        options = (*line.options, more.text)
    added = replace(line, number=next_number(place.order), quantity=1, options=options)
    text = _say(random, code, "same_but", x=f"with {said}" if link else said)
    words = listed(code, [added]) + (". " if code == "en" else "ですね。") + answer(code, "more")
    return make_sample(random, "same_but", place, text, [words], step(place, [added]))


def absent(random: Random, code: str) -> Sample:
    """Refer to something that was never ordered."""
    place = scene(random, code, most=4)
    if not place.lines and random.random() < 0.5:
        that = random.choice(("that", "it", "them") if code == "en" else ("それ", "これ", "さっきの"))
        return make_sample(
            random, "absent", place, _of(random, code, that, random.choice(FAMILIAR)), [answer(code, "empty")]
        )
    other = random.choice([name for name in MENU if all(name != line.name for line in place.lines)])
    wording = tongue(code)[0]
    called = wording.noun(random, other)
    ref = f"{random.choice(('the', 'the', 'my', 'that'))} {called}" if code == "en" else called
    text = _of(random, code, ref, other)
    space = " " if code == "en" else ""
    shown = other if code == "en" else MENU[other].japanese
    return make_sample(
        random, "absent", place, text, [answer(code, "absent", x=shown) + space + closing(place, place.lines)]
    )


def _of(random: Random, code: str, ref: str, name: str) -> str:
    """Say about a dish that it is not wanted, or how it is wanted."""
    if random.random() < 0.4:
        return _say(random, code, "remove", r=ref)
    if random.random() < 0.3:
        chosen = size(random, name)
        return _say(random, code, "size", r=ref, x=chosen if code == "en" else SIZE_WORDS[chosen][0])
    more = extra(random, name)
    said, link = (
        _behind(random, code, more)
        if more and more.sort != "bagel"
        else _behind(random, code, Extra("to go", "served"))
    )
    return _say(random, code, "with" if link else "bare", r=ref, x=said)


def which(random: Random, code: str) -> Sample:
    """Change one of two lines of the same dish; the reply must ask which one."""
    place = scene(random, code, least=1, most=3)
    line = place.lines[-1]
    twin = _twin(random, line, next_number(place.order))
    order = replace(place.order, lines=(*(each for each in place.lines if each.name != line.name), line, twin))
    place = replace(place, order=order)
    called = tongue(code)[0].noun(random, line.name)
    ref = f"{random.choice(('the', 'the', 'my', 'that'))} {called}" if code == "en" else called
    text = _of(random, code, ref, line.name)
    return make_sample(random, "which", place, text, [answer(code, "which", x=listed(code, (line, twin), choice=True))])


def _twin(random: Random, line: OrderLine, number: int) -> OrderLine:
    """Return a different line of the same dish."""
    more = fitting(random, line)
    if more is None:
        return replace(line, number=number, size="small" if line.size != "small" else "large", quantity=1)
    return Wish(line.name, line.size, 1, (*map(_as_extra, _some(line.options)), more)).line(number)


def _some(options: Sequence[str]) -> Sequence[str]:
    return options[:1]
