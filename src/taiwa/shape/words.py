"""Values without quotes: constants, numbers in loose spellings, calls around a value, and bare words."""

import re
import unicodedata

from taiwa.kernel import Json
from taiwa.shape.reading import Level
from taiwa.shape.scan import CLOSERS, COMMAS, CONSTANTS, GROUPED, LOOSE_NUMBER, NUMBER, OPENERS, QUOTES, UnreadableError
from taiwa.shape.strings import Frame, StringReader

__all__ = ["read_word"]

WORD = re.compile(r"[A-Za-z]+(?![\w$])")
WIDE_NUMBER = re.compile(r"[－−-]?[０-９]+(?:[．.][０-９]+)?(?![\w.．-])")
NEGATIVE = re.compile(r"-(?:Infinity|inf)(?![\w$])")
CALL = re.compile(r"(?:new\s+)?[A-Za-z_][\w.]{0,40}\(\s*")
CALLED = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')\s*\)")
STOP = re.compile(r"[,，\n}\]{\[\"'“｝］]|```")
AFTER_CONSTANT = re.compile(r"[\s,，}\]｝］)/#;`\"']|\Z")


def read_word(reader: StringReader, frame: Frame) -> Json:
    """Read the value here, which starts with no quote and no bracket.

    Raises:
        UnreadableError: nothing that could be a value stands here.
    """
    scan = reader.scan
    found = NUMBER.match(scan.text, scan.at, scan.end)
    if found is not None and not (
        found.end() < scan.end and scan.text[found.end()] == "/" and not _comment(reader, found.end())
    ):
        grouped = GROUPED.match(scan.text, scan.at, scan.end) if frame.is_object else None
        if grouped is None:
            scan.at = found.end()
            return _number(found[0])
        scan.fix("number", "likely")
        scan.at = grouped.end()
        return _number(grouped[0].replace(",", ""))
    word = WORD.match(scan.text, scan.at, scan.end)
    if word and word[0] in CONSTANTS and AFTER_CONSTANT.match(scan.text, word.end(), scan.end):
        constant, level = CONSTANTS[word[0]]
        if word[0] not in ("true", "false", "null"):
            scan.fix("literal", level)
        scan.at = word.end()
        return constant
    wide = WIDE_NUMBER.match(scan.text, scan.at, scan.end)
    if wide:
        scan.fix_once("punctuation", "safe")
        scan.at = wide.end()
        return _number(unicodedata.normalize("NFKC", wide[0]).replace("−", "-"))
    negative = NEGATIVE.match(scan.text, scan.at, scan.end)
    if negative:
        scan.fix("literal", "guess")
        scan.at = negative.end()
        return float("-inf")
    loose = _loose(reader)
    if loose is not None:
        return loose
    called = _call(reader)
    return _bare(reader, frame) if called is None else called


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() and len(text) <= 4000 else float(text)


def _comment(reader: StringReader, at: int) -> bool:
    return reader.scan.text.startswith(("//", "/*"), at, reader.scan.end)


def _loose(reader: StringReader) -> int | float | None:
    """Read a number as people and programming languages write it: `+5`, `.5`, `5.`, `1_000`."""
    scan = reader.scan
    found = LOOSE_NUMBER.match(scan.text, scan.at, scan.end)
    if found is None:
        return None
    sign, whole, part, power = found.groups()
    if (whole is None and not part) or (whole and len(whole) > 1 and whole[0] == "0"):
        return None
    level: Level = "safe" if sign == "+" and "_" not in found[0] and (whole and part != "") else "likely"
    scan.fix("number", level)
    scan.at = found.end()
    text = f"{sign.replace('+', '')}{whole or '0'}" + (f".{part or '0'}" if part is not None else "")
    text += f"e{power}" if power else ""
    return _number(text.replace("_", ""))


def _call(reader: StringReader) -> int | float | str | None:
    """Read the one argument of a call such as `ObjectId("…")`."""
    scan = reader.scan
    head = CALL.match(scan.text, scan.at, scan.end)
    if head is None:
        return None
    inner = CALLED.match(scan.text, head.end(), scan.end)
    if inner is None:
        return None
    scan.work.spend(inner.end() - scan.at)
    scan.fix("call", "guess")
    scan.at = inner.end()
    if inner[1][0] not in "\"'":
        return _number(inner[1])
    return reader.unescaped(inner.start(1) + 1, inner.end(1) - 1)


def _bare(reader: StringReader, frame: Frame) -> str:
    """Read a string without quotes, up to the punctuation that ends its member or item."""
    scan = reader.scan
    start = at = scan.at
    balance = 0
    while True:
        found = STOP.search(scan.text, at, scan.end)
        stop = found.start() if found else scan.end
        scan.work.spend(stop - at + 1)
        if found is None:
            break
        char = found[0]
        if char in OPENERS:
            balance += 1
        elif char in CLOSERS and balance > 0:
            balance -= 1
        elif _ends(reader, frame, char, stop):
            break
        at = stop + len(char)
    word = scan.text[start:stop].rstrip()
    if not word:
        raise UnreadableError(start)
    if word[-1] in QUOTES and not frame.is_object:
        word = word[:-1]
    scan.fix("bare-string", "guess")
    scan.at = stop
    return word


def _ends(reader: StringReader, frame: Frame, char: str, at: int) -> bool:
    """Tell whether a bare string ends at this character."""
    scan = reader.scan
    in_object = frame.is_object
    if char == "```" or char in CLOSERS:
        return True
    if char in COMMAS:
        after, where = scan.look(at + 1)
        return not in_object or not after or after in CLOSERS or scan.key_at(where, bare=True) is not None
    if char == "\n":
        after, where = scan.look(at)
        if not after or after in CLOSERS or not in_object:
            return True
        return scan.key_at(where, bare=True) is not None
    return in_object and scan.key_at(at, bare=False) is not None
