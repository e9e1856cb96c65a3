"""When two lines of an order are the same: the rules for names, sizes and options, all of them here.

Compared are words, not letters: case, accents, signs, the order of words and the plural do not count, nor do words that only
join (`a`, `of`, `with`, `pump`). Names of one thing count as one (`caffe latte` is `latte`, `doppio` is `double`, `fat free
milk` is `nonfat milk`); the tables below hold all of them. A size that was not said and one that was made up differ.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from unicodedata import category, normalize

from taiwa.kernel.records import Json, value

__all__ = ["Dish", "Matched", "dishes_of", "match", "merged", "words_of"]

WORD = re.compile(r"[^\W_]+")
JOINING = frozenset(
    "a an the of and with in on for please some pump pumps pack packs packet packets piece pieces squirt squirts dash".split()
)
NUMBERS = {
    name: str(number)
    for number, name in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
} | {"double": "double", "single": "single"}
JOINED = (
    ("poppy seed", "poppyseed"), ("flatwhite", "flat white"), ("cheese cake", "cheesecake"), ("non fat", "nonfat"),
    ("fat free", "nonfat"), ("donut", "doughnut"), ("decaffeinated", "decaf"), ("half caff", "half caf"),
    ("take away", "to go"), ("takeaway", "to go"), ("take out", "to go"), ("sliced", "cut"),
)  # fmt: skip
"""What is written in several ways, and how it is compared; whole words only."""
SAME = {
    "caffe": "cafe", "yoghurt": "yogurt", "skim": "nonfat", "skimmed": "nonfat", "skinny": "nonfat", "soya": "soy",
    "doppio": "double", "solo": "single", "heated": "warmed", "toasted": "warmed",
}  # fmt: skip
MILKS = frozenset("almond coconut nonfat oat percent soy whole".split())
"""Beside one of these words `milk` says nothing more."""
UNCOUNTED = frozenset("less glass swiss s hibiscus citrus asparagus".split())
"""Words that end in `s` and are no plurals."""


@value
class Dish:
    """A line of an order. `names` are the names that are right; a line that was heard has one."""

    names: tuple[str, ...]
    quantity: int = 1
    size: str = ""
    options: tuple[str, ...] = ()

    def record(self) -> dict[str, Json]:
        """The line as JSON."""
        return {"names": [*self.names], "quantity": self.quantity, "size": self.size, "options": [*self.options]}


@value
class Matched:
    """A line that was wanted beside the one that was heard for it: what of it is right. The name always is."""

    quantity: bool
    size: bool
    options: bool

    @property
    def whole(self) -> bool:
        """Whether all of it is right."""
        return self.quantity and self.size and self.options


def words_of(text: str) -> tuple[str, ...]:
    """The words that count of a name, a size or an option, in alphabetical order.

    >>> words_of("Muffins, Blueberry") == words_of("a blueberry muffin")
    True
    >>> words_of("two pumps of vanilla syrup"), words_of("Caffè Latte"), words_of("soy"), words_of("soya milk")
    (('2', 'syrup', 'vanilla'), ('latte',), ('soy',), ('soy',))
    """
    spread = (sign for sign in normalize("NFKD", text.replace("’", "'")) if category(sign) != "Mn")
    plain = " ".join(WORD.findall("".join(spread).casefold()))
    for written, compared in JOINED:
        plain = re.sub(rf"\b{written}(?=s?\b)", compared, plain)
    words = [SAME.get(word, word) for word in (NUMBERS.get(word, word) for word in map(_singular, plain.split()))]
    words = [word for word in words if word not in JOINING] or words
    if len(words) > 1:
        words = [word for word in words if word not in ("cafe", "1")] or words
    if MILKS & {*words}:
        words = [word for word in words if word != "milk"]
    return tuple(sorted("coffee" if word == "cafe" else word for word in words))


def _singular(word: str) -> str:
    """A word without the sign of its plural; of a word in another script, the word."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us")) or word in UNCOUNTED:
        return word
    if word.endswith("ies") and len(word) > 5 and not word.endswith(("ookies", "ownies", "oothies")):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "sses", "xes")) else word[:-1]


def dishes_of(items: Json) -> tuple[Dish, ...]:
    """The lines of an order desk's state: a table by numbers, or a list."""
    lines = items.values() if isinstance(items, Mapping) else items if isinstance(items, list) else ()
    return tuple(_heard(line) for line in lines if isinstance(line, Mapping))


def _heard(line: Mapping[str, Json]) -> Dish:
    quantity, options = line.get("quantity"), line.get("options")
    return Dish(
        (str(line.get("name") or ""),),
        quantity if isinstance(quantity, int) else 0,
        str(line.get("size") or ""),
        tuple(map(str, options)) if isinstance(options, list) else (),
    )


def merged(lines: Iterable[Dish]) -> tuple[Dish, ...]:
    """Lines that are alike in all but their quantities, as one: two lattes and a latte are three."""
    found: dict[object, Dish] = {}
    for line in lines:
        key = (*(words_of(name) for name in line.names), words_of(line.size), _options(line))
        before = found.get(key)
        more = 0 if before is None else before.quantity
        found[key] = Dish(line.names, line.quantity + more, line.size, line.options)
    return tuple(found.values())


def match(wanted: Sequence[Dish], heard: Sequence[Dish]) -> tuple[Matched | None, ...]:
    """Give each line that was wanted the one that was heard for it, each of them once; None where there is none.

    Whole lines are given first, then those with the right name and quantity, then those with the right name: so no other way
    to give them finds more of the first or of the second kind.
    """
    given: dict[int, Matched] = {}
    left = list(range(len(heard)))
    for fits in (_whole, _counted, _named):
        for place, line in enumerate(wanted):
            if place in given:
                continue
            fitting = [(other, _compared(line, heard[other])) for other in left if _is_named(line, heard[other])]
            found = [(other, each) for other, each in fitting if fits(each)]
            if found:
                other, each = max(found, key=lambda one: (one[1].size + one[1].options, -one[0]))
                given[place] = each
                left.remove(other)
    return tuple(given.get(place) for place in range(len(wanted)))


def _whole(found: Matched) -> bool:
    return found.whole


def _counted(found: Matched) -> bool:
    return found.quantity


def _named(_: Matched) -> bool:
    return True


def _is_named(wanted: Dish, heard: Dish) -> bool:
    named = words_of(heard.names[0])
    return any(words_of(name) == named for name in wanted.names)


def _compared(wanted: Dish, heard: Dish) -> Matched:
    return Matched(
        wanted.quantity == heard.quantity,
        words_of(wanted.size) == words_of(heard.size),
        _options(wanted) == _options(heard),
    )


def _options(line: Dish) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted(words_of(option) for option in line.options))
