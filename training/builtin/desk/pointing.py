"""Several changes in one turn, and references to more than one line (`the lattes`, `everything`, `two more`), also in Chinese."""

from dataclasses import replace
from random import Random
from typing import TypeAlias

from taiwa.models.builtin.order_app import Order, OrderLine
from training.builtin.desk.changing import (
    added,
    again,
    amount,
    extra_words,
    fitting,
    heated,
    pick,
    removed_words,
    size_words,
)
from training.builtin.desk.foreign import DISHES, NUMBERS, SIZES, ZH
from training.builtin.desk.ordering import tongue
from training.builtin.desk.references import reference
from training.builtin.desk.replies import listed
from training.builtin.desk.scene import Scene, answer, change_words, following, make_sample, next_number, scene, step
from training.builtin.desk.wishes import Wish, size, wish
from training.builtin.desk.wording import fill
from training.builtin.samples import Sample

__all__ = ["alike", "in_chinese", "more", "several"]

POINTING = frozenset("that it them those these それ これ 今の さっきの".split()) | {"that one"}
JOINTS = {
    "en": (" and ", ", ", ". ", ", and ", ". also ", " and also ", ", then ", "; "),
    "ja": ("。", "、あと", "。それから", "、それと", "。あと", "、", "。それと"),
}
EVERYTHING = {
    "en": (
        "everything",
        "all of it",
        "all of them",
        "the whole order",
        "everything i ordered",
        "all the items",
        "it all",
    ),
    "ja": ("全部", "すべて", "注文を全部", "全部の商品", "全て"),
}
Change: TypeAlias = "tuple[str, OrderLine | None]"
"""The words of a change, and the resulting line."""


def _answered(place: Scene, changed: list[OrderLine], gone: list[OrderLine], new: list[OrderLine]) -> str:
    code = place.code
    parts = [answer(code, "off", x=listed(code, gone))] if gone else []
    parts += [answer(code, "now", x=listed(code, changed))] if changed else []
    parts += [listed(code, new) + ("." if code == "en" else "ですね。")] if new else []
    left = following(
        place.order, {**{each.number: None for each in gone}, **{each.number: each for each in (*changed, *new)}}
    )
    return (" " if code == "en" else "").join((*parts, answer(code, "more" if left else "gone")))


def several(random: Random, code: str) -> Sample:
    """Change two or three lines, or change one and order something new."""
    place = scene(random, code, least=2)
    lines = random.sample(place.lines, min(len(place.lines), random.choice((1, 2, 2, 2, 3))))
    said: list[str] = []
    changed: list[OrderLine] = []
    gone: list[OrderLine] = []
    for line in lines:
        words, after = _change(random, place, line)
        said.append(words)
        if after is None:
            gone.append(line)
        else:
            changed.append(after)
    new: list[OrderLine] = []
    if len(lines) == 1 or random.random() < 0.3:
        phrase, meant = tongue(code)[0].phrase(random, wish(random, 2))
        verb = random.choice(("add ", "i'd like ", "give me ", "get me ", "i'll have ", "put in ", "also "))
        tail = random.choice(("をください", "をお願いします", "を追加で", "お願いします", "も"))
        said.append(verb + phrase if code == "en" else phrase + tail)
        new.append(meant.line(next_number(place.order)))
    text = said[0] + "".join(random.choice(JOINTS[code]) + each for each in said[1:])
    gone.sort(key=lambda each: each.number)
    changed.sort(key=lambda each: each.number)
    words = _answered(place, changed, gone, new)
    return make_sample(
        random, "several", place, tongue(code)[1].written(random, text), [words], step(place, (*changed, *new), gone)
    )


def _change(random: Random, place: Scene, line: OrderLine) -> Change:
    """Change one line that is referred to unambiguously."""
    code = place.code
    ref = reference(random, code, place.order, line)
    while ref in POINTING:
        ref = reference(random, code, place.order, line)
    ways = random.choice(("size", "quantity", "option", "option", "remove", "remove", "more"))
    if ways == "option":
        found = (heated(random, line) if random.random() < 0.3 else None) or fitting(random, line)
        if found is not None:
            name, said = extra_words(random, code, found)
            return _filled(random, code, name, r=ref, x=said), added(line, found)
        ways = "quantity"
    if ways == "size":
        chosen = next((each for each in (size(random, line.name) for _ in range(6)) if each != line.size), "large")
        return _filled(random, code, "size", r=ref, x=size_words(code, chosen)), replace(line, size=chosen)
    if ways == "quantity":
        number = random.choice([each for each in (1, 2, 3, 4, 5, 6, 8, 10) if each != line.quantity])
        words = _filled(
            random, code, "quantity", r=ref, n=amount(random, code, number), o=amount(random, code, line.quantity)
        )
        return words, replace(line, quantity=number)
    if ways == "more":
        number = random.choice((1, 2, 2, 3))
        words = _filled(random, code, "n_more" if number > 1 else "more_of", r=ref, n=amount(random, code, number))
        return words, replace(line, quantity=min(99, line.quantity + number))
    return removed_words(random, code, ref), None


def _filled(random: Random, code: str, name: str, **slots: str) -> str:
    text = change_words(random, code, name)
    for slot, words in slots.items():
        text = text.replace(f"{{{slot}}}", words)
    return text


def alike(random: Random, code: str) -> Sample:
    """Apply the same change to all lines of a dish, or to all lines."""
    place = scene(random, code, least=2)
    line = pick(random, place)
    whole = random.random() < 0.4
    if whole:
        option = random.choice(("to go", "for here"))
        lines = [each for each in place.lines if not {"to go", "for here"} & set(each.options)]
        if len(lines) < len(place.lines):
            return several(random, code)
        said = {"to go": ("to go", "持ち帰りに"), "for here": ("for here", "店内に")}[option][code == "ja"]
        ref = random.choice(EVERYTHING[code])
        changed = [replace(each, options=(*each.options, option)) for each in lines]
    else:
        found = (heated(random, line) if random.random() < 0.35 else None) or fitting(random, line)
        twin = replace(
            line,
            number=next_number(place.order),
            quantity=random.choice((1, 1, 2)),
            size="small" if line.size != "small" else "large",
        )
        if found is None or found.sort == "size" or len(place.lines) > 5:
            return several(random, code)
        others = (each for each in place.lines if each.name != line.name)
        place = replace(place, order=replace(place.order, lines=(*others, line, twin)))
        place = replace(
            place, order=Order(tuple(sorted(place.lines, key=lambda each: each.number)), place.order.status)
        )
        name, said = extra_words(random, code, found)
        said = f"with {said}" if name == "with" and code == "en" else said
        many = (
            tongue(code)[0].noun(random, line.name, several=True)
            if code == "en"
            else tongue(code)[0].noun(random, line.name)
        )
        ref = (
            random.choice((f"the {many}", f"both {many}", f"all the {many}", f"all {many}", f"my {many}"))
            if code == "en"
            else random.choice((f"{many}を全部", f"{many}は両方", f"{many}を両方とも", f"{many}は全部"))
        )
        changed = [added(each, found) for each in (line, twin)]
    text = (
        random.choice(
            (
                f"make {ref} {said}",
                f"{ref} {said} please",
                f"can you make {ref} {said}",
                f"i'd like {ref} {said}",
                f"i want {ref} {said}",
                f"could {ref} be {said}",
                f"{ref} should be {said}",
                f"please do {ref} {said}",
            )
        )
        if code == "en"
        else f"{ref}{said}{random.choice(('してください', 'お願いします', '', 'してもらえますか'))}"
    )
    words = _answered(place, sorted(changed, key=lambda each: each.number), [], [])
    return make_sample(random, "alike", place, tongue(code)[1].written(random, text), [words], step(place, changed))


def more(random: Random, code: str) -> Sample:
    """Order more of the newest line."""
    place = scene(random, code, least=1)
    if len(place.lines) > 1 and place.asked == "place":
        return again(random, code)
    line, number = [*place.lines][-1], random.choice((1, 2, 2, 2, 3, 4, 5))
    said = amount(random, code, number)
    text = (
        random.choice(
            (
                f"{said} more",
                f"{said} more of those",
                f"{said} more please",
                f"add {said} more",
                f"{said} more of the last one",
                f"i need {said} more",
                f"make that {said} more",
                f"can i get {said} more of those",
                f"{said} more of these",
                f"and {said} more",
                f"{said} more of them",
                f"give me {said} more of that",
            )
        )
        if code == "en"
        else random.choice(
            (
                f"あと{said}",
                f"もう{said}",
                f"それをあと{said}",
                f"それをもう{said}お願いします",
                f"あと{said}追加で",
                f"{said}追加してください",
                f"さっきのをもう{said}",
                f"同じのをあと{said}",
            )
        )
    )
    after = replace(line, quantity=min(99, line.quantity + number))
    return make_sample(
        random,
        "more",
        place,
        tongue(code)[1].written(random, text),
        [_answered(place, [after], [], [])],
        step(place, [after]),
    )


ORDINALS = "一 二 三 四 五 六".split()
CUP = "[杯|个|份]"


def in_chinese(random: Random, _: str) -> Sample:
    """Ask for changes in Chinese; the reply is in English."""
    names = random.sample(tuple(DISHES[ZH]), random.choice((1, 2, 2, 3)))
    sizes = ("", "", "small", "large")
    lines = tuple(
        Wish(name, random.choice(sizes), random.choice((1, 1, 2, 3))).line(at) for at, name in enumerate(names, 1)
    )
    place = Scene("en", Order(lines), "more", random.choice(("Anything else?", "What else can I get you?")))
    line = random.choice(lines)
    at = lines.index(line)
    called = random.choice(DISHES[ZH][line.name].split("/"))
    refs = [called, called, called, f"第{ORDINALS[at]}{random.choice('个杯')}"]
    refs += [random.choice(("那个", "这个", "它", "最后一个", "刚才那个"))] if line is lines[-1] else []
    ref = random.choice(refs)
    number = random.choice((1, 2, 3, 4))
    many = random.choice(NUMBERS[ZH][number - 1].split("/"))
    other = random.choice([name for name in DISHES[ZH] if name not in names])
    way = random.choice(("size", "temperature", "remove", "quantity", "more", "replace"))
    if way == "remove":
        text = fill(
            random, f"[不要{ref}了|去掉{ref}|{ref}不要了|取消{ref}|把{ref}去掉|{ref}不用了|把{ref}取消|删掉{ref}]"
        )
        words = _answered(place, [], [line], [])
        return make_sample(random, "in_chinese", place, _polite(random, text), [words], step(place, gone=[line]))
    new, text = {
        "size": lambda: _sized(random, line, ref),
        "temperature": lambda: _heated(random, line, ref),
        "quantity": lambda: (replace(line, quantity=number), f"[{ref}改成{many}|把{ref}改为{many}|{ref}要{many}|{ref}换成{many}|{ref}总共{many}]"),
        "more": lambda: (replace(line, quantity=line.quantity + number), f"[再来{many}{called}|{called}再加{many}|再加{many}{called}|{called}再来{many}|多来{many}{called}]"),
        "replace": lambda: (Wish(other, "", line.quantity).line(line.number), f"[把{ref}换成{_named(random, other)}|{ref}改成{_named(random, other)}|不要{ref},要{_named(random, other)}|{ref}换{_named(random, other)}]"),
    }[way]()  # fmt: skip
    words = _answered(place, [new], [], [])
    return make_sample(random, "in_chinese", place, _polite(random, fill(random, text)), [words], step(place, [new]))


def _named(random: Random, name: str) -> str:
    return random.choice(DISHES[ZH][name].split("/"))


def _sized(random: Random, line: OrderLine, ref: str) -> tuple[OrderLine, str]:
    chosen = random.choice([each for each in SIZES[ZH] if each != line.size])
    said = SIZES[ZH][chosen]
    return replace(
        line, size=chosen
    ), f"[把{ref}换成{said}杯|{ref}改成{said}杯|{ref}要{said}杯|{ref}换成{said}的|{ref}改{said}杯|把{ref}改为{said}的]"


def _heated(random: Random, line: OrderLine, ref: str) -> tuple[OrderLine, str]:
    chosen, said = random.choice((("iced", "冰的"), ("hot", "热的"), ("decaf", "低因的"), ("to go", "打包的")))
    return replace(
        line, options=(*line.options, chosen)
    ), f"[把{ref}换成{said}|{ref}改成{said}|{ref}要{said}|{ref}换{said}|把{ref}做成{said}]"


def _polite(random: Random, text: str) -> str:
    front = random.choice(("", "", "", "请", "麻烦", "不好意思,", "那个,", "对不起,"))
    return front + text + random.choice(("", "", "", "。", "吧", ",谢谢", "可以吗"))
