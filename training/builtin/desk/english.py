"""Order items in spoken English: the words before the noun, the noun, and the words after it."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from training.builtin.desk.english_words import MILK_WORDS, NOUNS, SIZE_WORDS, STANDS, SWEET_WORDS
from training.builtin.desk.menu import MENU
from training.builtin.desk.wishes import DRINKS, SHORT_DRINKS, Extra, Wish
from training.builtin.desk.wording import an, fill
from training.builtin.noise import number_words

__all__ = ["count", "described", "noun", "phrase", "stands", "together"]

Parts: TypeAlias = "list[tuple[str, str]]"
KNOWN = frozenset(form for forms in NOUNS.values() for one, _ in forms for form in (one,)) | frozenset(MENU)
FIRST_CHOICE = 0.62
"""The share of items that are called by their usual name."""
LITTLE = {"no": "[no|no|no|without|without any|hold the|skip the|minus the|leave out the]",
          "light": "[light|light|easy|less|a little|a bit of|just a bit of|not too much|just a touch of|only a little]",
          "extra": "[extra|extra|extra|lots of|plenty of|loads of|a lot of|more]",
          "half": "[half|half the]"}  # fmt: skip
STARTS_BARE = ("no", "without", "hold", "skip", "minus", "leave", "light", "easy", "less", "extra", "not", "half")
PUMPS = "[pumps|pumps|squirts|shots|splashes|dashes]"
PUMP = "[a pump of|a pump of|a squirt of|a shot of|a dash of|one pump of|some|a splash of]"
PACKS = "[packets|packets|sachets|spoons|spoonfuls|teaspoons|packs|lumps]"
PACK = "[a packet of|a sachet of|a spoon of|one|a spoonful of|some|a teaspoon of|one packet of]"
ONLY_SYRUP = ("cinnamon", "almond", "coconut", "brown sugar", "rose", "chocolate", "strawberry")
"""Flavours that mean something else without `syrup`."""


def stands(random: Random, form: Sequence[str]) -> str:
    """Choose a wording; the first is the usual one."""
    return form[0] if random.random() < FIRST_CHOICE else random.choice(form)


def noun(random: Random, name: str, *, several: bool = False) -> str:
    """Return a dish as guests call it."""
    forms = NOUNS.get(name, ())
    if not forms or random.random() < FIRST_CHOICE:
        return plural(name) if several else name
    return random.choice(forms)[several]


def plural(name: str) -> str:
    """Return the plural of a dish.

    >>> plural("ham sandwich"), plural("latte"), plural("pancakes")
    ('ham sandwiches', 'lattes', 'pancakes')
    """
    return name + ("" if name.endswith("cakes") else "es" if name.endswith(("ch", "sh", "s")) else "s")


def small(random: Random, number: str) -> str:
    """Return a count from two to twenty, in words or digits."""
    return number_words(random, int(number), digits=0.25).replace("a couple of", "two")


def before(random: Random, extra: Extra, called: str) -> str:
    """Return an extra as it stands before a noun, or "" if it cannot."""
    name = extra.name
    if extra.sort == "milk":
        return stands(random, MILK_WORDS[name])
    if extra.sort == "syrup":
        flavour = name.removesuffix(" syrup")
        if (
            flavour in ("almond", "coconut", "brown sugar")
            or f"{flavour} {called}" in KNOWN
            or extra.measure in ("no", "half")
        ):
            return ""
        if extra.measure.isdigit():
            return f"{small(random, extra.measure)} {fill(random, '[pump|pump|squirt|shot]')} {flavour}"
        return f"{extra.measure} {flavour}".strip()
    if extra.sort == "topping":
        short = {"whipped cream": "whip"}.get(name, name) if random.random() < 0.3 else name
        return f"{extra.measure} {short}" if extra.measure in ("no", "light", "extra") else ""
    if extra.sort == "shot" and called not in SHORT_DRINKS:
        return {"": "extra shot", "2": "double shot", "3": "triple shot"}.get(extra.measure, "")
    if extra.sort == "sweet" and extra.measure.isdigit() and name == "sugar" and random.random() < 0.3:
        return f"{small(random, extra.measure)} sugar"
    forms = STANDS.get(name, ((), ()))[0]
    return stands(random, forms) if forms else ""


def behind(random: Random, extra: Extra) -> tuple[str, str]:
    """Return an extra as it stands after a noun: its words, and `with` if that precedes them."""
    name, measure = extra.name, extra.measure
    if extra.sort == "milk":
        return _milk(random, name)
    if measure in LITTLE:
        return _measured(random, extra)
    if extra.sort == "syrup":
        flavour = (
            name
            if name.removesuffix(" syrup") in ONLY_SYRUP
            else fill(random, f"[{name}|{name.removesuffix(' syrup')}]")
        )
        if measure:
            return f"{small(random, measure)} {fill(random, PUMPS)} of {flavour}", "with"
        return fill(random, f"[||{PUMP}|added] {flavour}"), "with"
    if extra.sort == "sweet":
        return _sweet(random, name, measure), "with"
    if extra.sort == "shot":
        return _shot(random, measure), "with"
    if extra.sort == "topping":
        return _topped(random, name, measure)
    forms = STANDS[name][1] or STANDS[name][0]
    return stands(random, forms), ""


def _milk(random: Random, name: str) -> tuple[str, str]:
    said = stands(random, MILK_WORDS[name])
    whole = said if said.endswith("milk") or said == "half and half" else f"{said} milk"
    if random.random() < 0.14:
        return fill(random, f"[{whole}|made with {whole}|on {whole}|using {whole}|{whole} please|{whole} instead]"), ""
    return (said if random.random() < 0.2 and said in ("oat", "almond", "coconut", "skim") else whole), "with"


def _measured(random: Random, extra: Extra) -> tuple[str, str]:
    name = extra.name
    if extra.sort == "sweet":
        name = random.choice(SWEET_WORDS.get(name, (name,)))
    if name == "whipped cream":
        name = fill(random, "[whipped cream|whipped cream|whip]")
    said = fill(random, LITTLE[extra.measure])
    if extra.measure in ("light", "extra") and random.random() < 0.12:
        heavy = {"light": "[light|easy|go easy]", "extra": "[heavy|generous]"}[extra.measure]
        return fill(random, f"{heavy} on the {name}"), ""
    loose = said.split(" ")[0] in STARTS_BARE
    return f"{said} {name}", "" if loose and (said != "no" or random.random() < 0.7) else "with"


def _sweet(random: Random, name: str, measure: str) -> str:
    said = random.choice(SWEET_WORDS.get(name, (name,)))
    if not measure:
        return said if random.random() < 0.5 else fill(random, f"{PACK} {said}")
    if random.random() < 0.5:
        return f"{small(random, measure)} {said}{'s' if said[-1] not in 'swy' and ' ' not in said else ''}"
    return f"{small(random, measure)} {fill(random, PACKS)} of {said}"


def _shot(random: Random, measure: str) -> str:
    if not measure:
        return fill(
            random,
            "[an extra shot|an extra shot|an added shot|one more shot|a shot of espresso|an espresso shot|an extra espresso shot]",
        )
    return fill(
        random,
        f"{small(random, measure)} [extra shots|extra shots|shots|espresso shots|shots of espresso|additional shots]",
    )


def _topped(random: Random, name: str, measure: str) -> tuple[str, str]:
    said = fill(random, "[whipped cream|whip]") if name == "whipped cream" else name
    if measure:
        return f"{small(random, measure)} {fill(random, '[portions|helpings|servings]')} of {said}", "with"
    if name in ("cinnamon", "nutmeg", "cocoa", "sprinkles", "whipped cream") and random.random() < 0.3:
        return fill(random, f"[{said} on top|topped with {said}|a sprinkle of {said} on it|dusted with {said}]"), ""
    if name in ("milk", "cream", "half and half", "heavy cream", "water") and random.random() < 0.3:
        return fill(random, f"[a splash of|a drop of|some|a dash of] {said}"), "with"
    return fill(random, f"[||some ]{said}"), "with"


def count(random: Random, quantity: int, head: str) -> tuple[str, str]:
    """Return the quantity before the words that follow, and a suffix that may replace it (`x2`)."""
    if quantity == 1:
        chance = random.random()
        if chance < 0.7:
            return (an(head) if random.random() < 0.96 else random.choice(("a", "an"))), ""
        if chance < 0.87:
            return "one", ""
        return random.choice(
            (("1", ""), ("1", ""), ("", ""), ("", ""), ("", ""), ("1x", ""), ("just one", ""), ("", "x1"))
        )
    if random.random() < 0.05:
        return random.choice(((f"{quantity}x", ""), (f"{quantity} x", ""), ("", f"x{quantity}"), ("", f"x {quantity}")))
    return number_words(random, quantity, digits=0.3), ""


def described(random: Random, wish: Wish) -> tuple[list[str], str, Parts, Wish]:
    """Return the words before the noun, the noun, the parts after it, and the item with its extras in spoken order."""
    called = noun(random, wish.name, several=wish.quantity > 1)
    early: list[tuple[str, Extra | None]] = []
    late: list[tuple[str, str, Extra | None]] = []
    eager = random.choice((0.15, 0.5, 0.5, 0.85))
    for extra in random.sample(wish.extras, len(wish.extras)):
        said = before(random, extra, called) if random.random() < eager or extra.sort == "bagel" else ""
        if said:
            early.append((said, extra))
        else:
            late.append((*behind(random, extra), extra))
    if wish.size:
        said = stands(random, SIZE_WORDS.get(wish.size, (wish.size,)))
        if random.random() < 0.86:
            early.insert(0 if random.random() < 0.72 else random.randint(0, len(early)), (said, None))
        elif MENU[wish.name].kind in DRINKS:
            tail = fill(random, f"[{said}|{said}|size {said}|in {said}|{said} size|in a {said}|{said} please]")
            late.insert(random.randint(0, len(late)), (tail, "", None))
    ordered = [extra for _, extra in early] + [extra for _, _, extra in late]
    sized = wish.size if None in ordered else ""
    after = replace(wish, size=sized, extras=tuple(extra for extra in ordered if extra is not None))
    return [said for said, _ in early], called, [(said, link) for said, link, _ in late], after


def phrase(random: Random, wish: Wish) -> tuple[str, Wish]:
    """Return an item in words, and the item that these words describe."""
    early, called, late, after = described(random, wish)
    head = " ".join((*early, called))
    if early and random.random() < 0.06:
        head = f"{', '.join(early)} {called}"
    number, times = count(random, wish.quantity, head)
    return " ".join(filter(None, (number, head + (f" {times}" if times else "") + together(random, late)))), after


def together(random: Random, parts: Parts) -> str:
    """Join the parts after a noun."""
    joint = random.choice((" and ", ", ", " and ", " with ", " and ", ", with ", " and with ", " plus "))
    loose = random.choice((", ", " ", ", ", " ", " and "))
    text, linked = "", False
    for said, link in parts:
        if link and not linked:
            text += f" {fill(random, '[with|with|with|with|plus|and add|w/]')} {said}"
        elif link:
            text += joint + said
        else:
            text += (loose if text or loose != " and " else " ") + said
        linked = bool(link)
    return text
