"""How the built-in model handles the café app `order`: its menu, the prompt of a turn, and the grammar of its reply."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

from taiwa.kernel.messages import Grammar
from taiwa.kernel.serialization import Json, value
from taiwa.models.builtin.order_words import asks_to_undo
from taiwa.models.builtin.tokenizer import normalize_text

MENU_HEADING = "\nThe menu, in dollars:\n"

DISHES = re.compile(r"((?=[a-z])(?:[a-z ]+ [^ ,;]+(?:, |(?= \d)))+) (\d+\.\d\d)")
"""Menu items of the same price: names in English and Japanese, and the price."""


def find_menu(instructions: str) -> str:
    """Return the menu in the instructions of the app."""
    return instructions.partition(MENU_HEADING)[2].strip().partition("\n\n")[0].strip()


MENU_TEXT = find_menu((files("taiwa.apps") / "builtin" / "order.md").read_text("utf-8"))
"""The menu that the model was trained on, from the built-in app."""

MENU: Mapping[str, str] = MappingProxyType(
    {
        dish.rpartition(" ")[0]: price.rstrip("0").rstrip(".")
        for names, price in DISHES.findall(" ".join(MENU_TEXT.split()))
        for dish in names.split(", ")
    }
)
"""The prices of the menu in dollars, as the calculator reads them."""

SIZES = tuple(
    "short small tall medium regular grande large venti trenta mini extra-large solo single doppio double triple quad".split()
)

MILKS = "whole milk|2% milk|1% milk|low-fat milk|nonfat milk|oat milk|soy milk|almond milk|coconut milk|rice milk|lactose-free milk"

CREAMERS = "creamer|whole milk creamer|2% creamer|1% creamer|nonfat creamer|oat creamer|soy creamer|almond creamer|coconut creamer"

FLAVOURS = """vanilla|sugar-free vanilla|caramel|hazelnut|peppermint|raspberry|cinnamon|toffee|almond|orange|buttered rum|chocolate
|white chocolate|strawberry|coconut|maple|gingerbread|pumpkin spice|lavender|rose|irish cream|brown sugar|cherry|peach"""

SWEETENERS = "sugar|brown sugar|sugar in the raw|honey|equal|splenda|sweet n low|stevia|truvia|agave|sweetener"

TOPPINGS = """milk|cream|half and half|heavy cream|foam|ice|whipped cream|cinnamon|nutmeg|cocoa|sprinkles|marshmallows|caramel sauce
|chocolate sauce|water|salt|lemon|mint|ginger|espresso shot"""

SPREADS = """butter|cream cheese|jam|strawberry jam|peanut butter|chocolate spread|cheese|ham|egg|bacon|tomato|lettuce|onion|pickles
|mayonnaise|mustard"""

TEMPERATURES = "iced|hot|extra hot|warm|lukewarm"

STRENGTHS = "decaf|half caf|one third caf|two thirds caf|black|strong|weak|dry|wet|unsweetened|blended"

SERVED = """to go|for here|with room|lid|no lid|straw|no straw|warmed|toasted|cut in half|sliced|gluten-free|vegan|plain|sesame
|whole wheat|everything"""


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.replace("\n", "").split("|"))


COUNTED = tuple(
    dict.fromkeys(
        (
            *_split(MILKS), *_split(CREAMERS), *(f"{flavour} syrup" for flavour in _split(FLAVOURS)),
            *_split(SWEETENERS), *_split(TOPPINGS), *_split(SPREADS),
        )
    )
)  # fmt: skip
"""Options that may follow a number or an amount: `2 vanilla syrup`, `no foam`, `light ice`, `extra butter`."""

PLAIN = (*_split(TEMPERATURES), *_split(STRENGTHS), *_split(SERVED))
"""Options without a number or an amount."""

MEASURES = ("no", "light", "extra", "half")


def options() -> tuple[str, ...]:
    """Return all options, without numbers and amounts."""
    return (*COUNTED, *PLAIN)


OPEN, CONFIRMED, CANCELLED = "open", "confirmed", "cancelled"

STATUSES = (OPEN, CONFIRMED, CANCELLED)

DELTA_LINE = "\n@@delta\n"

TOOL_CALL = re.compile(r"<<[^<>]*>>")

QUESTION = re.compile(r"[^.!?。！？\n]*[?？]\s*\Z")

MAX_LINES = 99
MAX_NEW_LINES = 12
MAX_OPTIONS = 10
MAX_QUESTION_CHARS = 80
MAX_ORDER_CHARS = 700
MAX_PROMPT_CHARS = 1_190

TEXT = r"[^<>@`\n]{1,700}"
QUANTITY = "[1-9][0-9]?"
OPTION_COUNT = "[2-9]|1[0-9]|20"


@value
class OrderLine:
    """A line of an order, with the number that identifies it in the state."""

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


def format_order(order: Order, text: str, asked: str = "") -> str | None:
    """Write an order, the last question of the assistant and the guest's text on one line; None if the order is too long.

    >>> format_order(Order((OrderLine(1, "latte", "grande", 2, ("oat milk", "iced")),)), "And a bagel", "Anything else?")
    '1 latte grande x2 @4.2 oat milk, iced | open | Anything else? > And a bagel'
    >>> format_order(Order(), "Hi!")
    '- | open > Hi!'
    """
    lines = "; ".join(map(_format_line, order.lines)) or "-"
    if len(lines) > MAX_ORDER_CHARS:
        return None
    question = f" | {_escape(asked)[-MAX_QUESTION_CHARS:].strip()}" if asked else ""
    head = f"{lines} | {order.status}{question} > "
    return (head + _escape(text[: 4 * MAX_PROMPT_CHARS])[: MAX_PROMPT_CHARS - len(head)]).strip()


def last_question(answer: str) -> str:
    """Return the question at the end of an answer, or an empty text.

    >>> last_question("Two lattes. Anything else?"), last_question("Thank you.")
    ('Anything else?', '')
    """
    found = QUESTION.search(TOOL_CALL.sub("", answer.partition(DELTA_LINE)[0])[-4 * MAX_QUESTION_CHARS :])
    return found[0].strip() if found else ""


def _format_line(line: OrderLine) -> str:
    size = f" {line.size}" if line.size else ""
    options = f" {', '.join(line.options)}" if line.options else ""
    return f"{line.number} {line.name}{size} x{line.quantity} @{MENU[line.name]}{options}"


def _escape(text: str) -> str:
    """Normalize a text and replace the separators of the prompt in it."""
    return normalize_text(text.translate({ord("|"): "/", ord(">"): ")"}))


def parse_order(state: Mapping[str, Json]) -> Order | None:
    """Return the order in a state; None if it contains an item that is not on the menu."""
    items, status = state.get("items"), state.get("status")
    if not isinstance(items, dict) or status not in STATUSES:
        return None
    lines = [_parse_line(number, item) for number, item in items.items()]
    known = [line for line in lines if line is not None]
    if len(known) < len(lines):
        return None
    return Order(tuple(sorted(known, key=lambda line: line.number)), status)


def _parse_line(number: str, item: Json) -> OrderLine | None:
    if not isinstance(item, dict) or not re.fullmatch(QUANTITY, number):
        return None
    name, size, quantity, options = (item.get(key) for key in ("name", "size", "quantity", "options"))
    if not isinstance(name, str) or name not in MENU or not isinstance(quantity, int) or not 1 <= quantity <= 99:
        return None
    if not (size is None or (isinstance(size, str) and size in SIZES)) or not isinstance(options, list):
        return None
    known = tuple(option for option in options if isinstance(option, str) and _option_pattern().fullmatch(option))
    return OrderLine(int(number), name, size or "", quantity, known) if len(known) == len(options) else None


def order_before(turns: Iterable[tuple[str, str]], order: Order) -> Order | None:
    """Return the order before its last change that was not undone; None if the known turns do not determine it.

    `turns` are the guest's texts and the replies with their deltas, oldest first.
    """
    state: dict[str, Json] = {"items": {}, "status": OPEN}
    orders = [Order()]
    for said, reply in turns:
        state = _moved(state, reply.partition(DELTA_LINE)[2])
        after = parse_order(state)
        if after is None:
            return None
        if len(orders) > 1 and asks_to_undo(said) and after.lines == orders[-2].lines != orders[-1].lines:
            orders[-2:] = [after]
        elif after != orders[-1]:
            orders.append(after)
    return orders[-2] if len(orders) > 1 and orders[-1] == order else None


def _moved(state: Mapping[str, Json], delta: str) -> dict[str, Json]:
    """Return the state after a delta; an invalid delta changes nothing."""
    try:
        found: Json = json.loads(delta or "{}")
    except ValueError:
        found = {}
    after = {**state, **found} if isinstance(found, dict) else dict(state)
    old, new = state["items"], after["items"]
    if isinstance(old, dict) and isinstance(new, dict):
        after["items"] = {number: item for number, item in (old | new).items() if item is not None}
    return after


def _any(words: Sequence[str]) -> str:
    """Return a pattern that matches one of some words."""
    return "|".join(re.sub(r"([.+*?()])", r"\\\1", word) for word in words)


def _option_regex() -> str:
    return f"(({'|'.join(MEASURES)}|{OPTION_COUNT}) )?({_any(COUNTED)})|{_any(PLAIN)}"


@lru_cache(1)
def _option_pattern() -> re.Pattern[str]:
    return re.compile(_option_regex())


@lru_cache(256)
def grammar(numbers: tuple[int, ...]) -> Grammar:
    """Return the grammar of a reply to an order with lines of these numbers: text, sums of prices, and a state delta.

    Existing lines can be changed or removed; new lines continue the numbering.
    """
    start = max(numbers, default=0) + 1
    return Grammar("\n".join((*_fixed_rules(), *_entry_rules(sorted(numbers), start))))


@lru_cache(1)
def _fixed_rules() -> tuple[str, ...]:
    prices = _any(sorted(set(MENU.values())))
    term = rf"({QUANTITY}\*)?({prices})"
    call = rf"<<calculator: {term}(\+{term}){{0,30}}>> [0-9]{{1,6}}(\.[0-9]{{1,2}})?"
    return (
        r'start: TEXT "\n@@delta\n" delta',
        f"TEXT: /{TEXT}({call}({TEXT})?){{0,2}}/",
        'delta: "{" (items ("," status)? | status)? "}"',
        rf'status: "\"status\":\"" ({" | ".join(json.dumps(each) for each in STATUSES)}) "\""',
        r'items: "\"items\":{" entries "}"',
        r'item: "{\"name\":\"" NAME "\"" (",\"size\":\"" SIZE "\"")? ",\"quantity\":" QUANTITY options "}"',
        rf'options: ",\"options\":[" (OPTION ("," OPTION){{0,{MAX_OPTIONS - 1}}})? "]"',
        f"NAME: /{_any(tuple(MENU))}/",
        f"SIZE: /{_any(SIZES)}/",
        f"QUANTITY: /{QUANTITY}/",
        f'OPTION: /"({_option_regex()})"/',
    )


def _entry_rules(numbers: Sequence[int], start: int) -> Iterator[str]:
    """Yield the rules for the entries of a delta, in the order of their numbers."""
    last = min(start + MAX_NEW_LINES, MAX_LINES + 1)
    rules = [f"old{number}" for number in numbers] + [f"new{number}" for number in range(start, last)]
    yield f"entries: {rules[0]}" if rules else 'entries: "\\"1\\":null"'
    for at, rule in enumerate(rules):
        following = rules[at + 1] if at + 1 < len(rules) else ""
        item = '(item | "null")' if rule.startswith("old") else "item"
        more = f' ("," {following})?' if following else ""
        skipped = f" | {following}" if following and rule.startswith("old") else ""
        yield f'{rule}: "\\"{rule[3:]}\\":" {item}{more}{skipped}'
