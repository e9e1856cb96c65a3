"""Where an answer to a question of quantities stands, byte by byte: in words, in a call of a tool, or in the number at its end.

A place is a value, and `after` gives the one behind one more byte, or None where it may not come. What a place lets through
depends on the numbers that may be copied in one way only: which digits may follow. So all else of it is its `key`.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from taiwa.models.builtin.figures import Figures
from taiwa.tools.elements import elements
from taiwa.tools.functions import FUNCTIONS, SEVERAL

__all__ = ["Place", "after", "key"]

Mode: TypeAlias = Literal["words", "open", "name", "sum", "formula", "equation", "close", "answer"]
MODES: Final[dict[str, Mode]] = {"calculator": "sum", "molar_mass": "formula", "stoichiometry": "equation"}
LEAD = "answer is "
MONEY = "$"
SIGNS = "+-*/^"
NUMERIC = frozenset("0123456789.")
NAMES: Final = frozenset(name for name in (*FUNCTIONS, *SEVERAL) if name.isascii())
WORDS: Final = frozenset(name[:end] for name in (*NAMES, "pi") for end in range(1, len(name) + 1))
ELECTRON = "e"
CHARGED = "charged"
STARTS: Final = frozenset(symbol[0] for symbol in elements())
SYMBOLS: Final = frozenset((*elements(), ELECTRON))
DEEPEST = 4
FORMULA = "0123456789()[].^+-\u00c2\u00b7"
"""Signs of a formula; the last two are the bytes of `·`."""
EQUATION = FORMULA + "? =\u00e2\u0086\u0092"
"""The question mark is a coefficient that is asked for; the last three are the bytes of `→`."""
FOLLOWING: Final = {"\u00c2": "\u00b7", "\u00e2": "\u0086", "\u0086": "\u0092"}
"""Which byte follows one of a character that has several."""
INNER: Final = frozenset(FOLLOWING.values())
PHASES: Final = frozenset(("(g", "(s", "(l", "(a", "(aq"))
"""What may stand in brackets behind a formula of an equation, as far as it is written."""
DUE: Final = {
    **{chr(byte): (1, 0x80, 0xBF) for byte in range(0xC2, 0xE0)},
    **{chr(byte): (2, 0x80, 0xBF) for byte in range(0xE0, 0xF0)},
    **{chr(byte): (3, 0x80, 0xBF) for byte in range(0xF0, 0xF5)},
    "\u00e0": (2, 0xA0, 0xBF),
    "\u00ed": (2, 0x80, 0x9F),
    "\u00f0": (3, 0x90, 0xBF),
    "\u00f4": (3, 0x80, 0x8F),
}
"""How many bytes a character has behind its first one, and between which the next of them lies."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in an answer.

    In words: how much of `answer is ` was just written (`lead`), which bytes are `due`, whether a digit is `barred`, whether
    all but a new line is `held` back, and whether a > or a new line was `last`, which no other may follow.
    In a call: its `word` so far (a name, a number, an element), what is wanted (`want`) and how many brackets are open.
    """

    tools: tuple[str, ...]
    mode: Mode = "words"
    lead: int = 0
    due: tuple[int, int, int] = (0, 0, 0)
    barred: bool = False
    held: bool = False
    fresh: bool = True
    word: str = ""
    want: str = "value"
    depth: int = 0
    last: str = ""

    @property
    def is_final(self) -> bool:
        """Say whether the text may end here, but for a number that must be whole."""
        return not (self.fresh or self.held) and self.mode in ("words", "answer") and not self.due[0]


def key(place: Place) -> Place:
    """The place without a number that was begun: what may follow but digits."""
    if place.mode in ("sum", "answer") and place.word[:1] in NUMERIC and place.word:
        return replace(place, word="", want="sign")
    return place


def after(place: Place, sign: str, known: Figures) -> Place | None:
    """The place behind one more byte, given as the character of its number; None where it may not come."""
    mode = place.mode
    if mode == "words":
        return _words(place, sign)
    if mode == "sum":
        return _sum(place, sign, known)
    if mode in ("formula", "equation"):
        return _formula(place, sign)
    if mode == "answer":
        return _answer(place, sign, known)
    if mode == "open":
        return Place(place.tools, "name", fresh=False) if sign == "<" else None
    if mode == "close":
        return Place(place.tools, fresh=False) if sign == ">" else None
    return _name(place, sign)


def _words(place: Place, sign: str) -> Place | None:
    if place.held and sign != "\n":
        return None
    more, low, high = place.due
    if more:
        follows = low <= ord(sign) <= high
        return replace(place, due=(more - 1, 0x80, 0xBF) if more > 1 else (0, 0, 0)) if follows else None
    if sign == "<":
        return Place(place.tools, "open", fresh=False) if place.tools else None
    if sign == ">":  # one may be of an arrow; two end a call, and none was begun
        return Place(place.tools, last=sign, fresh=False) if place.last != sign else None
    if sign == "\n":
        return Place(place.tools, last=sign, fresh=False) if place.last != sign and not place.fresh else None
    if (place.barred and sign.isdigit()) or sign < " " or sign == "\x7f":
        return None
    if sign > "\x7f":
        return Place(place.tools, due=DUE[sign], fresh=False) if sign in DUE else None
    lead = place.lead + 1 if sign == LEAD[place.lead] else int(sign == LEAD[0])
    if lead == len(LEAD):
        return Place(place.tools, "answer", fresh=False)
    return Place(place.tools, lead=lead, fresh=False)


def _answer(place: Place, sign: str, known: Figures) -> Place | None:
    """The number, or the formulas, that the answer ends in; behind them, words."""
    word = place.word
    if sign in NUMERIC and word + sign in known.begun and place.want == "value":
        return replace(place, word=word + sign)
    if not word and place.want == "value":
        if sign in STARTS:  # a formula, or an equation
            return Place(place.tools, fresh=False)
        return replace(place, last=sign) if sign in ("-", MONEY) and place.last != sign else None
    whole = place.want == "sign" or word in known.whole
    if sign.isdigit() or not (whole or (word.endswith(".") and word[:-1] in known.whole)):
        return None
    return _words(Place(place.tools, barred=sign == ".", fresh=False), sign) if sign != "." else _stop(place)


def _stop(place: Place) -> Place | None:
    """A full stop behind a number: no digit may make a fraction of it."""
    return Place(place.tools, barred=True, fresh=False) if not place.word.endswith(".") else None


def _name(place: Place, sign: str) -> Place | None:
    word = place.word + sign
    fitting = [tool for tool in place.tools if f"{tool}: ".startswith(word)]
    if not fitting:
        return None
    if word == f"{fitting[0]}: ":
        return Place(place.tools, MODES[fitting[0]], fresh=False, last=" ")
    return replace(place, word=word)


def _sum(place: Place, sign: str, known: Figures) -> Place | None:
    """A calculation: numbers that are known, signs between them, functions and brackets."""
    word, want = place.word, place.want
    numeric = word[:1] in NUMERIC if word else sign in NUMERIC
    if want in ("value", "number") and numeric and word + sign in known.begun:
        return replace(place, word=word + sign, last=sign)
    if not numeric and word + sign in WORDS and want in ("value", "number") and place.depth <= DEEPEST:
        return replace(place, word=word + sign, last=sign)
    if word in NAMES:
        return _inner(place) if sign == "(" else None
    if word:
        if word not in known.whole and word != "pi":
            return None
        place = replace(place, word="", want="sign")
    return _between(place, sign)


def _between(place: Place, sign: str) -> Place | None:
    """What stands between the numbers of a calculation."""
    is_value = place.want == "sign"
    if sign == " ":
        return replace(place, last=" ") if place.last != " " else None
    if sign == "(":
        return None if is_value or place.depth >= DEEPEST else _inner(place)
    if not is_value:
        return replace(place, want="number", last=sign) if sign == "-" and place.want == "value" else None
    if sign == ")":
        return replace(place, depth=place.depth - 1, last=sign) if place.depth else None
    if sign in SIGNS or (sign == "," and place.depth):
        return replace(place, want="value", last=sign)
    if sign == "%":
        return replace(place, last=sign) if place.last != "%" else None
    return replace(place, mode="close") if sign == ">" and not place.depth else None


def _inner(place: Place) -> Place:
    return replace(place, word="", want="value", depth=place.depth + 1, last="(")


def _formula(place: Place, sign: str) -> Place | None:
    """A formula, or an equation: elements, numbers, brackets, charges."""
    word = place.word
    if place.last in FOLLOWING or sign in INNER:
        return replace(place, last=sign) if FOLLOWING.get(place.last) == sign else None
    if word and word + sign in SYMBOLS:
        return replace(place, word=word + sign, last=sign)
    if place.mode == "equation" and (word or place.last) + sign in PHASES:
        return replace(place, word=(word or place.last) + sign, last=sign)
    if word and word not in SYMBOLS and not (word in PHASES and word != "(a" and sign == ")"):
        return None
    if sign in STARTS or (sign == ELECTRON and place.mode == "equation"):
        return replace(place, word=sign, last=sign)
    place = replace(place, word="")
    if sign == ">":
        return _ended(place)
    if sign not in (EQUATION if place.mode == "equation" else FORMULA) or (sign == " " == place.last):
        return None
    if sign in "([" and place.depth < DEEPEST:
        return replace(place, depth=place.depth + 1, last=sign)
    if sign in ")]":
        return replace(place, depth=place.depth - 1, last=sign) if place.depth and place.last not in "([" else None
    if place.last == "^" and (sign.isdigit() or sign in "+-"):  # the sign of a charge begins no arrow
        return replace(place, last="^" if sign.isdigit() else CHARGED)
    return None if sign in "([" else replace(place, last=sign)


def _ended(place: Place) -> Place | None:
    """The end of an arrow, or of the call."""
    if place.mode == "equation" and place.last in ("-", "="):
        return replace(place, last=">")
    if place.depth or place.last in " >-+=^.([":
        return None
    return replace(place, mode="close")
