"""Order items in spoken Japanese."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from training.builtin.desk.japanese_words import ADDED, NOUNS, SIZE_WORDS, STANDS
from training.builtin.desk.menu import MENU
from training.builtin.desk.wishes import DRINKS, Extra, Wish
from training.builtin.desk.wording import fill
from training.builtin.noise import number_ja

__all__ = ["count", "described", "noun", "phrase", "together"]

Parts: TypeAlias = "list[tuple[str, str]]"
FIRST_CHOICE = 0.6
MEASURES = {
    "no": "[なし|抜き|なし|ぬき]",
    "light": "[少なめ|少なめ|控えめ|ちょっと]",
    "extra": "[多め|多め|増し|たっぷり]",
    "half": "[半分|半量]",
}
PUMPS = "[ポンプ|プッシュ|つ|回分]"
KNOWN = frozenset(form for forms in NOUNS.values() for form in forms)


def stands(random: Random, forms: Sequence[str]) -> str:
    """Choose a wording; the first is the usual one."""
    return forms[0] if random.random() < FIRST_CHOICE else random.choice(forms)


def noun(random: Random, name: str, *, several: bool = False) -> str:  # noqa: ARG001  (one and many are alike)
    """Return a dish as guests call it."""
    return stands(random, NOUNS[name])


def _added(random: Random, extra: Extra) -> str:
    said = stands(random, ADDED[extra.name])
    if extra.sort == "syrup" and (
        said in ("アーモンド", "ココナッツ", "シナモン", "ローズ", "黒糖", "ブラウンシュガー") or random.random() < 0.65
    ):
        return f"{said}シロップ"
    return said


def before(random: Random, extra: Extra, called: str) -> str:
    """Return an extra as it stands before a noun, or "" if it cannot."""
    if extra.name in STANDS:
        return stands(random, STANDS[extra.name][0])
    said = _added(random, extra)
    if extra.sort == "milk":
        return (
            fill(random, f"[{said}の|{said}の|{said}]")
            if said not in ("アーモンド", "ココナッツ")
            else f"{said}ミルクの"
        )
    if extra.measure in MEASURES:
        return fill(random, f"{said}{MEASURES[extra.measure]}の")
    if extra.measure:
        return ""
    if extra.sort == "syrup" and not said.endswith("シロップ") and f"{said}{called}" not in KNOWN:
        return said
    return fill(random, f"{said}[入りの|付きの|入りの|を入れた|をつけた]")


def behind(random: Random, extra: Extra) -> str:
    """Return an extra as it stands after a noun."""
    if extra.name in STANDS:
        return stands(random, STANDS[extra.name][1])
    said = _added(random, extra)
    if extra.sort == "milk":
        whole = f"{said}ミルク" if said in ("アーモンド", "ココナッツ") else said
        return fill(
            random,
            f"[{whole}で|{whole}で|ミルクは{whole}で|{whole}に変えて|{whole}に変更で|{whole}にして|{whole}を使って]",
        )
    if extra.measure in MEASURES:
        particle = fill(random, "[||は]") if extra.measure != "half" else "を"
        return fill(random, f"{said}{particle}{MEASURES[extra.measure]}で")
    if extra.measure:
        number = int(extra.measure)
        if extra.sort == "syrup":
            counted = number_ja(random, number, fill(random, PUMPS))
        else:
            counted = number_ja(
                random, number, fill(random, "[つ|つ|個|杯分]" if extra.sort != "sweet" else "[つ|本|杯|個|袋]")
            )
        return fill(random, f"[{said}{counted}で|{said}を{counted}|{said}{counted}入れて|{said}{counted}追加で]")
    return fill(random, f"{said}[で|付きで|入りで|追加で|を入れて|を足して|をつけて|も|を追加して|ありで]")


def counter(random: Random, name: str) -> str:
    """Return the counter word of a dish."""
    if MENU[name].kind in DRINKS:
        return random.choice(("つ", "つ", "つ", "杯"))
    return random.choice(("つ", "つ", "個", "個"))


def count(random: Random, wish: Wish) -> str:
    """Return the quantity, or "" if one is implied."""
    if wish.quantity == 1 and random.random() < 0.22:
        return ""
    unit = counter(random, wish.name)
    if unit == "つ" and wish.quantity > 10:
        unit = "杯" if MENU[wish.name].kind in DRINKS else "個"
    return number_ja(random, wish.quantity, unit)


def described(random: Random, wish: Wish) -> tuple[list[str], str, Parts, Wish]:
    """Return the words before the noun, the noun, the parts after it, and the item with its extras in spoken order."""
    called = noun(random, wish.name)
    early: list[tuple[str, Extra | None]] = []
    late: list[tuple[str, Extra | None]] = []
    eager = random.choice((0.2, 0.5, 0.5, 0.85))
    for extra in random.sample(wish.extras, len(wish.extras)):
        said = before(random, extra, called) if random.random() < eager or extra.sort == "bagel" else ""
        if said:
            early.append((said, extra))
        else:
            late.append((behind(random, extra), extra))
    early.sort(key=lambda each: not each[0].endswith(("の", "た", "い")))
    if wish.size:
        said = stands(random, SIZE_WORDS[wish.size])
        if random.random() < 0.75 or wish.quantity > 1:
            link = "" if said[-1] == "い" else random.choice(("の", "の", "の", "")) if len(said) > 1 else "の"
            early.insert(0 if random.random() < 0.75 else _place(random, early), (f"{said}{link}", None))
        else:
            link = "の" if said[-1] == "い" else ""
            late.insert(
                random.randint(0, len(late)),
                (fill(random, f"[{said}{link}で|サイズは{said}{link}で|{said}{link}にして]"), None),
            )
    ordered = [extra for _, extra in early] + [extra for _, extra in late]
    after = replace(wish, extras=tuple(extra for extra in ordered if extra is not None))
    return [said for said, _ in early], called, [(said, "") for said, _ in late], after


def _place(random: Random, early: Sequence[tuple[str, object]]) -> int:
    """Return a position before the words that must be next to the noun."""
    loose = sum(said.endswith(("の", "た", "い")) for said, _ in early)
    return random.randint(0, loose)


def phrase(random: Random, wish: Wish) -> tuple[str, Wish]:
    """Return an item in words, and the item that these words describe."""
    early, called, late, after = described(random, wish)
    head, number, tail = "".join(early) + called, count(random, wish), together(random, late)
    if not number:
        return head + tail, after
    style = random.random()
    if style < 0.06:
        return f"{number}、{head}{tail}", after
    if style < 0.2 and tail:
        return f"{head}{tail}、{number}", after
    link = random.choice(("を", "を", "", "", "、"))
    return f"{head}{link}{number}{tail}", after


def together(random: Random, parts: Parts) -> str:
    """Join the parts after a noun."""
    joint = random.choice(("、", "、", "、", " ", ""))
    return "".join(joint + said for said, _ in parts)
