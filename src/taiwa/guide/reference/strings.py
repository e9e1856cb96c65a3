r"""The strings of JSON as regular expressions: any, by a pattern, by a format.

A pattern speaks of a string, and JSON writes some of its characters in another way: `"` as `\"`, a new line as `\n`. Each
character is written in one way only, so `\u` and `\/` do not occur: a key that is spelled otherwise would be another key.
"""

from collections.abc import Iterator

from taiwa.guide.reference.charset import ALL, Ranges, inverted, joined
from taiwa.guide.reference.pattern import Chars, Either, Node, Repeat, Then, parse, written

__all__ = ["CHARACTER", "FORMATS", "STRING", "searched"]

CHARACTER = r'([^"\\\x00-\x1f\x7f]|\\["\\bfnrt])'
STRING = f'"{CHARACTER}*"'
HEX = "[0-9a-fA-F]"
LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
DATE = f"([0-9]{{4}}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|{LEAP_YEAR}-02-29)"
CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
ZONE = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
FORMATS = {
    "date": DATE,
    "time": f"{CLOCK}{ZONE}",
    "date-time": f"{DATE}T{CLOCK}{ZONE}",
    "uuid": f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}",
    "ipv4": rf"{BYTE}(\.{BYTE}){{3}}",
}
ESCAPED: Ranges = ((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, 0x7F))
SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
ANYTHING = Repeat(Chars(ALL), 0, None)


def searched(pattern: str) -> str:
    r"""Write the strings in which a pattern is found as JSON writes them, without the quotes around them.

    >>> searched("^[a-c]$")
    '[a-c]'
    >>> searched('^"$')
    '\\\\"'

    Raises:
        InputError: an automaton cannot hold a text to this pattern.
    """
    found = _quoted(parse(pattern, around=ANYTHING))
    return f"({written(found)})" if isinstance(found, Either) else written(found)


def _quoted(node: Node) -> Node:
    match node:
        case Chars(ranges):
            options = list(_written(ranges))
            return options[0] if len(options) == 1 else Either(tuple(options))
        case Then(parts):
            return Then(tuple(map(_quoted, parts)))
        case Either(options):
            return Either(tuple(map(_quoted, options)))
        case Repeat(part, least, most):
            return Repeat(_quoted(part), least, most)
        case _:
            return node


def _written(ranges: Ranges) -> Iterator[Node]:
    """The ways in which JSON writes one of some characters."""
    plain = inverted(joined((*inverted(ranges), *ESCAPED)))
    if plain:
        yield Chars(plain)
    short = [ord(sign) for code, sign in SHORT.items() if any(low <= code <= high for low, high in ranges)]
    if short:
        yield Then((Chars(((0x5C, 0x5C),)), Chars(joined((sign, sign) for sign in short))))
    if not plain and not short:
        yield Chars(())
