"""Replies that make the edits which a guest's words may mean: worked out from the order, for the network to choose from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Final, TypeAlias

from taiwa.models.builtin.order_app import COUNTED, MILKS, TEMPERATURES, Order, OrderLine
from taiwa.models.builtin.order_reply import KANA, MEASURES_JA, ONE_OF, Heard, divide_option, named_lines, weigh
from taiwa.models.builtin.order_words import drinks, shown

MOST_LINES, MOST_COMBINED, MOST_EDITS = 3, 250, 12
Edit: TypeAlias = tuple[OrderLine, ...]
"""What a line becomes: nothing, another line, or two of them."""
EXCLUSIVE: Final = (frozenset(MILKS.split("|")), frozenset(TEMPERATURES.split("|")))
"""Options of which a dish has one."""
MEASURED: Final = {
    "no": re.compile(r"\b(?:no|without|hold|skip|minus|leave out)\b|なし|抜き|不要"),
    "light": re.compile(r"\b(?:light|easy|less|little|bit|touch|not too much)\b|少なめ|控えめ"),
    "extra": re.compile(r"\b(?:extra|lots|plenty|loads|more|a lot|heavy|generous)\b|多め|増し"),
}


def edited_replies(order: Order, said: str) -> Iterator[str]:
    """Yield replies without a fault that change the lines which the guest's words name, a few at most."""
    heard = Heard.of(order, said)
    lines = named_lines(order, heard)
    if not 0 < len(lines) <= MOST_LINES:
        return
    choices = [list(_edits(heard, line)) for line in lines]
    texts = (_reply(order, said, lines, edits) for edits in islice(product(*choices), MOST_COMBINED))
    yield from islice((text for text in texts if not weigh(order, said, text)), MOST_EDITS)


def _edits(heard: Heard, line: OrderLine) -> Iterator[Edit]:
    yield ()
    yield from ((replace(line, size=size),) for size in sorted(heard.of_kind("sizes") - {line.size}))
    old = line.quantity
    numbers = {old + 1, old - 1, *heard.counts, *(old + count for count in heard.counts)} - {old}
    yield from ((replace(line, quantity=number),) for number in sorted(numbers) if 0 < number < 100)
    kept = [option for option in line.options if not heard.names("options", divide_option(option)[1])]
    if len(kept) < len(line.options):
        yield (replace(line, options=tuple(kept)),)
    for option in _wished(heard):
        for options in dict.fromkeys(_with(line.options, option)):
            if old > 1 and ONE_OF.search(heard.said):
                yield (replace(line, quantity=old - 1), replace(line, number=0, quantity=1, options=options))
            yield (replace(line, options=options),)


def _wished(heard: Heard) -> Iterator[str]:
    """Yield the options that are named, with the measures and numbers that are."""
    for name in sorted(heard.of_kind("options")):
        yield name
        if name in COUNTED:
            yield from (f"{measure} {name}" for measure, words in MEASURED.items() if words.search(heard.said))
            yield from (f"{count} {name}" for count in sorted(heard.counts) if 1 < count <= 20)


def _with(options: tuple[str, ...], option: str) -> Iterator[tuple[str, ...]]:
    """Yield options with one more: behind the others, or in the place of another milk or temperature."""
    alike = next((names for names in EXCLUSIVE if option in names), frozenset[str]())
    yield (*(each for each in options if each not in alike), option)
    yield tuple(option if each in alike else each for each in options)


def _reply(order: Order, said: str, lines: Sequence[OrderLine], edits: Sequence[Edit]) -> str:
    code = "ja" if KANA.search(said) else "en"
    gone = [line for line, edit in zip(lines, edits, strict=True) if not edit]
    now = [line for edit in edits for line in edit]
    is_empty = len(gone) == len(order.lines)
    if code == "en":
        off = f"Taken off: {_listed(code, gone)}. " if gone else ""
        changed = f"Now: {_listed(code, now)}. " if now else ""
        return off + changed + ("Nothing is ordered now. What would you like?" if is_empty else "Anything else?")
    off = f"{_listed(code, gone)}を取り消しました。" if gone else ""
    changed = f"{_listed(code, now)}に変更しました。" if now else ""
    return off + changed + ("ご注文はなくなりました。何になさいますか?" if is_empty else "ほかにはいかがですか?")


def _listed(code: str, lines: Sequence[OrderLine]) -> str:
    joint, last = (", ", " and ") if code == "en" else ("、", "と")
    *others, final = map(_english if code == "en" else _japanese, lines)
    return joint.join(others) + (last if others else "") + final


def _english(line: OrderLine) -> str:
    several = line.quantity > 1 and not line.name.endswith("cakes")
    ending = "es" if line.name.endswith(("ch", "sh", "s")) else "s"
    options = f" ({', '.join(line.options)})" if line.options else ""
    return f"{line.quantity} {line.size + ' ' if line.size else ''}{line.name}{ending if several else ''}{options}"


def _japanese(line: OrderLine) -> str:
    size = f"{shown('sizes')[line.size]}の" if line.size else ""
    unit = "つ" if line.quantity < 10 else "杯" if line.name in drinks() else "個"
    said = {english: japanese for japanese, english in MEASURES_JA.items()}
    options = [
        (shown("options")[name], said.get(measure, measure)) for measure, name in map(divide_option, line.options)
    ]
    behind = f"({'、'.join(map(''.join, options))})" if options else ""
    return f"{size}{shown('dishes')[line.name]}{line.quantity}{unit}{behind}"
