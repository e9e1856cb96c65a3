"""Wording of everyday questions in three languages."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeAlias

from training.builtin.noise import kanji
from training.builtin.quantities.telling import Teller
from training.builtin.quantities.wordings import Said, wordings

__all__ = ["LANGUAGES", "Everyday", "EverydayProblem", "Make", "Money", "apart"]

FOLDER = Path(__file__).parent
LANGUAGES = {"en": 0.42, "ja": 0.34, "zh": 0.24}
SAID: Mapping[str, Said] = {code: wordings(code, FOLDER) for code in LANGUAGES}
FORMULA = re.compile(r"(?=.*[A-Z])[A-Za-z0-9()]{2,}")
SIGNS = str.maketrans("‹›", "[]")
MONEYS = {
    "en": (("dollars", ("${}", "${}", "{} dollars", "{} USD")), ("euros", ("€{}", "{} euros", "{} €")), ("pounds", ("£{}", "{} pounds")), ("yen", ("{} yen", "¥{}")), ("dollars", ("${}", "{} dollars"))),
    "ja": (("yen", ("{}円",)), ("yen", ("{}円", "¥{}")), ("yen", ("{}円",)), ("yen", ("{}円",)), ("dollars", ("{}ドル",)), ("euros", ("{}ユーロ",))),
    "zh": (("yuan", ("{}元", "{}块", "{}块钱", "{}元")), ("yuan", ("{}元",)), ("yuan", ("{}块钱", "{}块")), ("dollars", ("{}美元",)), ("yen", ("{}日元",))),
}  # fmt: skip
GOODS = {
    "en": "apple pen book ticket cup pencil orange shirt lemon bottle notebook cookie plate chair lamp bag toy candle stamp card sandwich ball flower melon hat towel battery key ring pizza".split(),
    "ja": "りんご みかん 本 ノート 鉛筆 消しゴム パン ケーキ 卵 おにぎり お菓子 ペン 皿 コップ ボール タオル レモン トマト じゃがいも 電池 切手 カード プリン アイス 花 ジュース 玉ねぎ 桃".split(),
    "zh": "苹果 橘子 面包 本子 铅笔 橡皮 鸡蛋 包子 杯子 盘子 球 毛巾 西瓜 柠檬 电池 灯泡 蛋糕 玩具 笔 卡片 桃子 梨 碗 袋子 盒子 饺子".split(),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class EverydayProblem:
    """A question, its solution steps, and the unit of its answer. Words in `keep` are never misspelt."""

    question: str
    steps: tuple[tuple[str, str], ...]
    unit: str = ""
    keep: tuple[str, ...] = ()
    distracted: float = 0.05


def apart(text: str, words: Iterable[str]) -> str:
    """Insert a space between a formula and a number after it.

    >>> apart("H2146gは", ["H2"])
    'H2 146gは'
    """
    for word in filter(FORMULA.fullmatch, words):
        text = re.sub(rf"(?<={re.escape(word)})(?=\d)", " ", text)
    return text


class Everyday(Teller):
    """A writer of one question in one language."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.code = random.choices(list(LANGUAGES), list(LANGUAGES.values()))[0]
        self._in_kanji = random.random() < 0.12

    def of(self, english: str, japanese: str, chinese: str) -> str:
        """Return the text for this language, choosing among alternatives separated by `|`."""
        return self.random.choice({"en": english, "ja": japanese, "zh": chinese}[self.code].split("|"))

    def say(self, section: str, slots: Mapping[str, str] | None = None) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a wording from a section, with slots filled in."""
        template = self.random.choice(SAID[self.code][section])
        text = super().say(template, slots) if self.code == "en" else self.expanded(template, slots or {})
        return apart(text.translate(SIGNS).replace("PH ", "pH ").replace("POH ", "pOH "), (slots or {}).values())

    def problem(
        self, section: str, slots: Mapping[str, str], work: tuple[str, str], unit: str = "", *keep: str
    ) -> EverydayProblem:
        """Return a question with one step."""
        return EverydayProblem(self.say(section, slots), (work,), unit, (*slots.values(), *keep))

    def figure(self, number: str) -> str:
        """Return a number as this language writes it: 1500, 1,500, in words, 千五百, 1万2千."""
        if self.code == "en":
            said = self.measure(number)
            grouped = number.isdigit() and len(number) > 3 and said == number and self.chance(0.4)
            return f"{int(number):,}" if grouped else said
        if not number.isdigit() or not int(number):
            return number
        value = int(number)
        if self._in_kanji and value < 10_000 and (value < 100 or value % 100 == 0):
            return kanji(value) if self.code == "ja" or value != 2 else "两"
        if value >= 10_000 and value % 1_000 == 0 and self.chance(0.3):
            return f"{value // 10_000}万{f'{value // 1_000 % 10}千' if value % 10_000 else ''}"
        return f"{value:,}" if value >= 1_000 and self.chance(0.25) else number

    def goods(self) -> str:
        """Draw a countable thing that is for sale."""
        return self.random.choice(GOODS[self.code])


class Money:
    """Draw a currency and its notation."""

    def __init__(self, writer: Everyday) -> None:
        self.writer = writer
        self.name, forms = writer.random.choice(MONEYS[writer.code])
        self._form = writer.random.choice(forms)

    def price(self, low: int, high: int) -> str:
        """Return an amount of money; yen are whole and a hundred times as many."""
        writer = self.writer
        if self.name == "yen":
            return str(writer.whole(low * 50, high * 100, writer.random.choice((10, 10, 50, 100))))
        if writer.chance(0.6):
            return str(writer.whole(low, high))
        return f"{writer.whole(low, high)}.{writer.pick('50', '25', '75', '99', '20', '5', '90', '80', '40')}"

    def say(self, number: str) -> str:
        """Return the amount with its currency."""
        writer = self.writer
        return self._form.format(writer.figure(number) if self._form.startswith("{}") else number)


Make: TypeAlias = Callable[[Everyday], EverydayProblem]
