"""Questions without an answer: a made-up unit, units of different dimensions, or a missing quantity."""

from training.builtin.everyday.measuring import BASES, quantity, units
from training.builtin.everyday.telling import Everyday, EverydayProblem, Money
from training.builtin.quantities.others import MISSING
from training.builtin.quantities.words import invented, several

__all__ = ["MISMATCH", "UNKNOWN", "lacking", "mismatch", "unknown_unit"]

UNKNOWN = "I do not know this unit: I cannot convert it."
MISMATCH = "These units measure different things: I cannot convert them."
PARTS_JA = "ブ ラ ガ モ ゾ ピ ク ネ ヌ フ ル ポ リ ゲ ドン バ ザ メ キ ロン ット ガル ント".split()
PARTS_ZH = "布 拉 克 隆 普 朵 嘎 咪 噜 萨 兹 奇 摩 卡 罗".split()


def _unit(writer: Everyday) -> str:
    if writer.code == "en":
        return several(invented(writer))
    return "".join(
        writer.random.choices(PARTS_JA if writer.code == "ja" else PARTS_ZH, k=writer.random.choice((2, 3, 3)))
    )


def _known(writer: Everyday) -> tuple[str, str, str]:
    sort = writer.random.choice([each for each in units() if each != "temperature"])
    one = writer.random.choice(units()[sort])
    return quantity(writer, str(writer.whole(2, 200)), one), one.said(writer), sort


def unknown_unit(writer: Everyday) -> EverydayProblem:
    """Ask about a made-up unit."""
    shown, name, _ = _known(writer)
    made = _unit(writer)
    slots = {"q": shown, "v": name, "I": made, "n": writer.figure(str(writer.whole(2, 300)))}
    return EverydayProblem(writer.say("unknown unit", slots), (), UNKNOWN, (made, name, shown))


def mismatch(writer: Everyday) -> EverydayProblem:
    """Ask for a length in litres."""
    shown, name, sort = _known(writer)
    other = sort
    while other == sort:
        _, name, other = _known(writer)
    return EverydayProblem(writer.say("mismatch", {"q": shown, "v": name}), (), MISMATCH, (shown, name))


def lacking(writer: Everyday) -> EverydayProblem:
    """Ask a question that lacks a number."""
    money = Money(writer)
    _, name, _ = _known(writer)
    share = writer.pick("5", "10", "20", "30", "50")
    clock = f"{writer.whole(6, 22)}:{writer.pick('00', '15', '30', '45')}"
    slots = {
        "r": share, "R": writer.pick(f"{share}%", f"{writer.whole(1, 9)}割"), "Z": writer.pick("8", "7", "九", "八", "7.5"), "p": money.say(money.price(3, 200)), "v": name, "n": str(writer.whole(2, 12)),
        "m": str(writer.whole(2, 12)), "X": writer.goods(), "F": writer.of("flour", "小麦粉", "面粉"), "t": str(writer.whole(2, 9)), "d": f"{writer.whole(5, 500)}",
        "A": writer.pick("HCl", "HNO3", *BASES), "a": clock, "w": str(writer.whole(5, 100, 5)),
    }  # fmt: skip
    return EverydayProblem(writer.say("lacking", slots), (), MISSING, (name,), 0.1)
