"""An order at the café's desk, as the built-in model reads and answers it.

The prompt is one line: the order so far with its prices, its status, what the desk asked last, and what the guest says.

    1 latte grande x2 @4.2 oat milk, iced; 2 bagel x1 @2.8 | open | Anything else? > two more bagels

Of what the guest and the desk said the signs of this form are taken out, so that no text can pose as an order. The answer is
held to a grammar that depends on the order: no dish, price or option that is not on the menu, and no line that is not there.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import cast

from taiwa.kernel.records import Json, value
from taiwa.kernel.values import Grammar, Message, Request
from taiwa.models.builtin.plain import plain
from taiwa.models.builtin.reading.marks import first_paragraph, spoken
from taiwa.models.builtin.reading.menu import COUNTED, MEASURES, MENU, PLAIN, SIZES

__all__ = ["CONFIRMED", "Order", "OrderLine", "desk", "grammar", "prompt"]

OPEN, CONFIRMED, CANCELLED = "open", "confirmed", "cancelled"
STATUSES = (OPEN, CONFIRMED, CANCELLED)
BLOCK = re.compile(r"\A<state>\n(.*)\n</state>\Z", re.DOTALL)
MENU_HEADING = "\nThe menu, in dollars:\n"
MENU_MARK = "a9267c76d814581d372c49798b3b3252146765561c2ab5f14514ed165492345b"
"""The digest of the menu in the app's instructions, which says the same as `MENU`."""
DELTA_LINE = "\n@@delta\n"
CALLED = re.compile(r"<<[^<>]*>>")
QUESTION = re.compile(r"[^.!?。！？\n]*[?？]\s*\Z")
MOST_LINES = 99
MOST_NEW = 12
MOST_OPTIONS = 10
LONGEST_QUESTION = 80
LONGEST_ORDER = 700
LONGEST = 1_190
FEWEST_WORDS = "-"
WORDS = r"[^<>@`\n]{1,700}"
QUANTITY = "[1-9][0-9]?"
ADDED = "[2-9]|1[0-9]|20"


@value
class OrderLine:
    """One line of an order, with the number that names it in the state."""

    number: int
    name: str
    size: str
    quantity: int
    options: tuple[str, ...] = ()


@value
class Order:
    """An order: its lines by number, and whether it is open, confirmed or cancelled."""

    lines: tuple[OrderLine, ...] = ()
    status: str = OPEN


def desk(request: Request) -> tuple[str, Grammar] | None:
    """Read a turn of the app `order` as a short prompt and the grammar of its reply; None where it holds something else."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "user":
        return None
    menu = first_paragraph(request.messages[0].text.partition(MENU_HEADING)[2])
    if sha256(menu.encode("utf-8", "replace")).hexdigest() != MENU_MARK:
        return None  # a copy of the app with a menu of its own, which the model does not know
    block = BLOCK.match(spoken(last, transient=True))
    state = _json(block[1]) if block else None
    if not isinstance(state, dict):
        return None
    order = _order(state)
    if order is None:
        return None
    asked = _asked(request.messages[:-1]) if state.get("turns") else ""
    line = prompt(order, spoken(last), asked)
    return None if line is None else (line, grammar(tuple(line.number for line in order.lines)))


def prompt(order: Order, said: str, asked: str = "") -> str | None:
    """Write an order, the desk's last question and what the guest says on one line; None where the order is too long.

    >>> prompt(Order((OrderLine(1, "latte", "grande", 2, ("oat milk", "iced")),)), "And a bagel", "Anything else?")
    '1 latte grande x2 @4.2 oat milk, iced | open | Anything else? > And a bagel'
    >>> prompt(Order(), "Hi!")
    '- | open > Hi!'
    """
    lines = "; ".join(map(_line, order.lines)) or FEWEST_WORDS
    if len(lines) > LONGEST_ORDER:
        return None
    question = f" | {_inert(asked)[-LONGEST_QUESTION:].strip()}" if asked else ""
    head = f"{lines} | {order.status}{question} > "
    return (head + _inert(said[: 4 * LONGEST])[: LONGEST - len(head)]).strip()


def question(answer: str) -> str:
    """What the desk asked at the end of an answer, or nothing.

    >>> question("Two lattes. Anything else?"), question("Thank you.")
    ('Anything else?', '')
    """
    found = QUESTION.search(CALLED.sub("", answer.partition(DELTA_LINE)[0])[-4 * LONGEST_QUESTION :])
    return found[0].strip() if found else ""


def _asked(messages: Sequence[Message]) -> str:
    said = next((message.text for message in reversed(messages) if message.role == "assistant"), "")
    return question(said)


def _line(line: OrderLine) -> str:
    size = f" {line.size}" if line.size else ""
    options = f" {', '.join(line.options)}" if line.options else ""
    return f"{line.number} {line.name}{size} x{line.quantity} @{MENU[line.name].price}{options}"


def _inert(text: str) -> str:
    """Words in which no sign of the prompt's form occurs."""
    return plain(text.translate({ord("|"): "/", ord(">"): ")"}))


def _order(state: Mapping[str, Json]) -> Order | None:
    """The order that a state holds, or None where it holds what is not on the menu."""
    items, status = state.get("items"), state.get("status")
    if not isinstance(items, dict) or status not in STATUSES:
        return None
    lines = [_order_line(number, item) for number, item in items.items()]
    known = [line for line in lines if line is not None]
    if len(known) < len(lines):
        return None
    return Order(tuple(sorted(known, key=lambda line: line.number)), status)


def _order_line(number: str, item: Json) -> OrderLine | None:
    if not isinstance(item, dict) or not re.fullmatch(QUANTITY, number):
        return None
    name, size, quantity, options = (item.get(key) for key in ("name", "size", "quantity", "options"))
    if not isinstance(name, str) or name not in MENU or not isinstance(quantity, int) or not 1 <= quantity <= 99:
        return None
    if not (size is None or (isinstance(size, str) and size in SIZES)) or not isinstance(options, list):
        return None
    known = tuple(option for option in options if isinstance(option, str) and _option().fullmatch(option))
    return OrderLine(int(number), name, size or "", quantity, known) if len(known) == len(options) else None


def _json(text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _any(words: Sequence[str]) -> str:
    """A pattern for one of some words; longer ones first, as a place in a pattern is read."""
    return "|".join(re.sub(r"([.+*?()])", r"\\\1", word) for word in words)


def _options() -> str:
    return f"(({'|'.join(MEASURES)}|{ADDED}) )?({_any(COUNTED)})|{_any(PLAIN)}"


@lru_cache(1)
def _option() -> re.Pattern[str]:
    return re.compile(_options())


@lru_cache(256)
def grammar(numbers: tuple[int, ...]) -> Grammar:
    """The grammar of a whole reply to an order that has lines of these numbers: words, sums of prices, and a delta.

    A line that is there can be changed or removed; new ones are numbered on from the last.
    """
    start = max(numbers, default=0) + 1
    return Grammar("\n".join((*_fixed(), *_entries(sorted(numbers), start))))


@lru_cache(1)
def _fixed() -> tuple[str, ...]:
    prices = _any(sorted({dish.price for dish in MENU.values()}))
    term = rf"({QUANTITY}\*)?({prices})"
    call = rf"<<calculator: {term}(\+{term}){{0,30}}>> [0-9]{{1,6}}(\.[0-9]{{1,2}})?"
    return (
        r'start: SAID "\n@@delta\n" delta',
        f"SAID: /{WORDS}({call}({WORDS})?){{0,2}}/",
        'delta: "{" (items ("," status)? | status)? "}"',
        rf'status: "\"status\":\"" ({" | ".join(json.dumps(each) for each in STATUSES)}) "\""',
        r'items: "\"items\":{" entries "}"',
        r'item: "{\"name\":\"" NAME "\"" (",\"size\":\"" SIZE "\"")? ",\"quantity\":" QUANTITY options "}"',
        rf'options: ",\"options\":[" (OPTION ("," OPTION){{0,{MOST_OPTIONS - 1}}})? "]"',
        f"NAME: /{_any(tuple(MENU))}/",
        f"SIZE: /{_any(SIZES)}/",
        f"QUANTITY: /{QUANTITY}/",
        f'OPTION: /"({_options()})"/',
    )


def _entries(numbers: Sequence[int], start: int) -> Iterator[str]:
    """Rules for the entries of a delta, in the order of their numbers."""
    last = min(start + MOST_NEW, MOST_LINES + 1)
    rules = [f"old{number}" for number in numbers] + [f"new{number}" for number in range(start, last)]
    yield f"entries: {rules[0]}" if rules else 'entries: "\\"1\\":null"'
    for at, rule in enumerate(rules):
        following = rules[at + 1] if at + 1 < len(rules) else ""
        held = '(item | "null")' if rule.startswith("old") else "item"
        more = f' ("," {following})?' if following else ""
        passed = f" | {following}" if following and rule.startswith("old") else ""
        yield f'{rule}: "\\"{rule[3:]}\\":" {held}{more}{passed}'
