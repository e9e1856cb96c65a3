"""Equality of two order lines: the rules for names, sizes and options.

Words are compared, not letters: case, accents, punctuation, word order and plurals do not matter, nor do function words (`a`,
`of`, `with`, `pump`). Synonyms are equal (`caffe latte` and `latte`, `doppio` and `double`, `fat free milk` and `nonfat milk`);
the tables below hold all of them. A missing size and an invented one differ.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from unicodedata import category, normalize

from taiwa.kernel.serialization import Json, value

__all__ = ["LineMatch", "OrderLine", "compared_words", "match_lines", "merge_lines", "order_lines"]

WORD = re.compile(r"[^\W_]+")
IGNORED_WORDS = frozenset(
    "a an the of and with in on for please some pump pumps pack packs packet packets piece pieces squirt squirts dash".split()
)
NUMBERS = {
    name: str(number)
    for number, name in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
} | {"double": "double", "single": "single"}
SPELLINGS = (
    ("poppy seed", "poppyseed"), ("flatwhite", "flat white"), ("cheese cake", "cheesecake"), ("non fat", "nonfat"),
    ("fat free", "nonfat"), ("donut", "doughnut"), ("decaffeinated", "decaf"), ("half caff", "half caf"),
    ("take away", "to go"), ("takeaway", "to go"), ("take out", "to go"), ("sliced", "cut"),
)  # fmt: skip
"""Spellings and the form that is compared; whole words only."""
SYNONYMS = {
    "caffe": "cafe", "yoghurt": "yogurt", "skim": "nonfat", "skimmed": "nonfat", "skinny": "nonfat", "soya": "soy",
    "doppio": "double", "solo": "single", "heated": "warmed", "toasted": "warmed",
}  # fmt: skip
MILKS = frozenset("almond coconut nonfat oat percent soy whole".split())
"""`milk` is ignored next to one of these words."""
UNCOUNTED = frozenset("less glass swiss s hibiscus citrus asparagus".split())
"""Words in `s` that are not plurals."""


@value
class OrderLine:
    """A line of an order. `names` are the acceptable names; a line written by a model has one."""

    names: tuple[str, ...]
    quantity: int = 1
    size: str = ""
    options: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the line as JSON."""
        return {"names": [*self.names], "quantity": self.quantity, "size": self.size, "options": [*self.options]}


@value
class LineMatch:
    """The parts in which an expected line and the written line of the same name agree."""

    quantity: bool
    size: bool
    options: bool

    @property
    def whole(self) -> bool:
        """Return true if all parts agree."""
        return self.quantity and self.size and self.options


def compared_words(text: str) -> tuple[str, ...]:
    """Return the words of a name, a size or an option that are compared, in alphabetical order.

    >>> compared_words("Muffins, Blueberry") == compared_words("a blueberry muffin")
    True
    >>> compared_words("two pumps of vanilla syrup"), compared_words("Caffè Latte"), compared_words("soy"), compared_words("soya milk")
    (('2', 'syrup', 'vanilla'), ('latte',), ('soy',), ('soy',))
    """
    spread = (sign for sign in normalize("NFKD", text.replace("’", "'")) if category(sign) != "Mn")
    plain = " ".join(WORD.findall("".join(spread).casefold()))
    for written, compared in SPELLINGS:
        plain = re.sub(rf"\b{written}(?=s?\b)", compared, plain)
    words = [SYNONYMS.get(word, word) for word in (NUMBERS.get(word, word) for word in map(_singular, plain.split()))]
    words = [word for word in words if word not in IGNORED_WORDS] or words
    if len(words) > 1:
        words = [word for word in words if word not in ("cafe", "1")] or words
    if MILKS & {*words}:
        words = [word for word in words if word != "milk"]
    return tuple(sorted("coffee" if word == "cafe" else word for word in words))


def _singular(word: str) -> str:
    """Return the singular of an English word; any other word unchanged."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us")) or word in UNCOUNTED:
        return word
    if word.endswith("ies") and len(word) > 5 and not word.endswith(("ookies", "ownies", "oothies")):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "sses", "xes")) else word[:-1]


def order_lines(items: Json) -> tuple[OrderLine, ...]:
    """Return the lines in the state of the app: a table by number, or a list."""
    lines = items.values() if isinstance(items, Mapping) else items if isinstance(items, list) else ()
    return tuple(_written_line(line) for line in lines if isinstance(line, Mapping))


def _written_line(line: Mapping[str, Json]) -> OrderLine:
    quantity, options = line.get("quantity"), line.get("options")
    return OrderLine(
        (str(line.get("name") or ""),),
        quantity if isinstance(quantity, int) else 0,
        str(line.get("size") or ""),
        tuple(map(str, options)) if isinstance(options, list) else (),
    )


def merge_lines(lines: Iterable[OrderLine]) -> tuple[OrderLine, ...]:
    """Merge lines that differ in quantity only: two lattes and a latte are three."""
    found: dict[object, OrderLine] = {}
    for line in lines:
        key = (*(compared_words(name) for name in line.names), compared_words(line.size), _compared_options(line))
        before = found.get(key)
        more = 0 if before is None else before.quantity
        found[key] = OrderLine(line.names, line.quantity + more, line.size, line.options)
    return tuple(found.values())


def match_lines(wanted: Sequence[OrderLine], written: Sequence[OrderLine]) -> tuple[LineMatch | None, ...]:
    """Match each expected line with a written one, each at most once; None without a match.

    Lines that agree entirely are matched first, then those with the right name and quantity, then those with the right
    name, so no other matching has more of the first or second kind.
    """
    given: dict[int, LineMatch] = {}
    left = list(range(len(written)))
    for fits in (lambda one: one.whole, lambda one: one.quantity, lambda _: True):
        for place, line in enumerate(wanted):
            if place in given:
                continue
            fitting = [(other, _compare(line, written[other])) for other in left if _is_named(line, written[other])]
            found = [(other, each) for other, each in fitting if fits(each)]
            if found:
                other, each = max(found, key=lambda one: (one[1].size + one[1].options, -one[0]))
                given[place] = each
                left.remove(other)
    return tuple(given.get(place) for place in range(len(wanted)))


def _is_named(wanted: OrderLine, written: OrderLine) -> bool:
    named = compared_words(written.names[0])
    return any(compared_words(name) == named for name in wanted.names)


def _compare(wanted: OrderLine, written: OrderLine) -> LineMatch:
    return LineMatch(
        wanted.quantity == written.quantity,
        compared_words(wanted.size) == compared_words(written.size),
        _compared_options(wanted) == _compared_options(written),
    )


def _compared_options(line: OrderLine) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted(compared_words(option) for option in line.options))
