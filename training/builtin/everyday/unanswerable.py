"""Questions without an answer: a made-up unit, units of different dimensions, or a missing quantity."""

from training.builtin.everyday.measuring import BASES, quantity, units
from training.builtin.everyday.telling import Asked, Everyday, Money
from training.builtin.quantities.others import MISSING
from training.builtin.quantities.words import invented, several

__all__ = ["MISMATCH", "UNKNOWN", "lacking", "mismatch", "unknown_unit"]

UNKNOWN = "I do not know this unit: I cannot convert it."
MISMATCH = "These units measure different things: I cannot convert them."
PARTS_JA = "ブ ラ ガ モ ゾ ピ ク ネ ヌ フ ル ポ リ ゲ ドン バ ザ メ キ ロン ット ガル ント".split()
PARTS_ZH = "布 拉 克 隆 普 朵 嘎 咪 噜 萨 兹 奇 摩 卡 罗".split()


def _unit(told: Everyday) -> str:
    if told.code == "en":
        return several(invented(told))
    return "".join(told.random.choices(PARTS_JA if told.code == "ja" else PARTS_ZH, k=told.random.choice((2, 3, 3))))


def _known(told: Everyday) -> tuple[str, str, str]:
    sort = told.random.choice([each for each in units() if each != "temperature"])
    one = told.random.choice(units()[sort])
    return quantity(told, str(told.whole(2, 200)), one), one.said(told), sort


def unknown_unit(told: Everyday) -> Asked:
    """Ask about a made-up unit."""
    shown, name, _ = _known(told)
    made = _unit(told)
    slots = {"q": shown, "v": name, "I": made, "n": told.figure(str(told.whole(2, 300)))}
    return Asked(told.say("unknown unit", slots), (), UNKNOWN, (made, name, shown))


def mismatch(told: Everyday) -> Asked:
    """Ask for a length in litres."""
    shown, name, sort = _known(told)
    other = sort
    while other == sort:
        _, name, other = _known(told)
    return Asked(told.say("mismatch", {"q": shown, "v": name}), (), MISMATCH, (shown, name))


def lacking(told: Everyday) -> Asked:
    """Ask a question that lacks a number."""
    money = Money(told)
    _, name, _ = _known(told)
    share = told.pick("5", "10", "20", "30", "50")
    clock = f"{told.whole(6, 22)}:{told.pick('00', '15', '30', '45')}"
    slots = {
        "r": share, "R": told.pick(f"{share}%", f"{told.whole(1, 9)}割"), "Z": told.pick("8", "7", "九", "八", "7.5"), "p": money.say(money.price(3, 200)), "v": name, "n": str(told.whole(2, 12)),
        "m": str(told.whole(2, 12)), "X": told.goods(), "F": told.of("flour", "小麦粉", "面粉"), "t": str(told.whole(2, 9)), "d": f"{told.whole(5, 500)}",
        "A": told.pick("HCl", "HNO3", *BASES), "a": clock, "w": str(told.whole(5, 100, 5)),
    }  # fmt: skip
    return Asked(told.say("lacking", slots), (), MISSING, (name,), 0.1)
