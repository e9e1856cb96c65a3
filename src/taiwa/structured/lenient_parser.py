"""The lenient parser: parse malformed JSON, and record each repair: punctuation, containers left open, values without quotes.

`output_type` decides when it is used and converts values of the wrong type; `flows.extract` asks the model again.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, nan
from typing import cast

from taiwa.kernel.serialization import Json, read_fraction, refuse_constant
from taiwa.kernel.text import END_TOKEN
from taiwa.structured.lenient_scanner import (
    BARE_KEY,
    CLOSERS,
    COLONS,
    COMMAS,
    ESCAPES,
    KEY,
    MAX_DEPTH,
    OPENERS,
    QUOTES,
    DepthError,
    EscapedError,
    Fix,
    Level,
    OpenContainer,
    ParseHints,
    Scanner,
    StringReader,
    UnreadableError,
    WorkBudget,
)
from taiwa.structured.validators import unique_keys

BRACKETS = re.compile(r"[{\[｛［]")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.$+%-])")
LOOSE_NUMBER = re.compile(
    r"([-+]?)([0-9]+(?:_[0-9]+)*)?(?:\.([0-9]+(?:_[0-9]+)*)?)?(?:[eE]([-+]?[0-9]+))?(?![\w.$+/%:-])"
)

GROUPED = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?=\s*(?:,\s*[\"'\w]|[}\]]|\n))")

CONSTANTS: dict[str, tuple[bool | float | None, Level]] = {
    **dict.fromkeys(("true", "True"), (True, "safe")),
    **dict.fromkeys(("false", "False"), (False, "safe")),
    **dict.fromkeys(("null", "None"), (None, "safe")),
    "TRUE": (True, "likely"),
    "FALSE": (False, "likely"),
    **dict.fromkeys(("NULL", "Null", "nil"), (None, "likely")),
    "undefined": (None, "guess"),
    **dict.fromkeys(("NaN", "nan"), (nan, "guess")),
    **dict.fromkeys(("Infinity", "inf"), (inf, "guess")),
    **dict.fromkeys(("-Infinity", "-inf"), (-inf, "guess")),
}
"""Constants of JSON, Python and JavaScript; non-finite numbers are parsed so that they can be refused by name."""

WORD = re.compile(r"-?[A-Za-z]+(?![\w$])")
FRACTION = re.compile(r"/(?![/*])")
WIDE_NUMBER = re.compile(r"(?:[－−–][0-9０-９]|-?[０-９])[0-9０-９]*(?:[．.][0-9０-９]+)?(?![\w.．-])")
"""A number with full-width digits, or with a minus sign that is not the one of ASCII."""
CALL = re.compile(r"(?:new\s+)?[A-Za-z_][\w.]{0,40}\(\s*")
CALLED = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')\s*\)")
STOP = re.compile(r"[,，\n}\]{\[\"'“｝］]|```")
AFTER_CONSTANT = re.compile(r"[\s,，}\]｝］)/#;`\"']|\Z")


def read_word(reader: StringReader, frame: OpenContainer) -> Json:
    """Read a value without quotes or brackets: a number, a constant, a call or a bare string.

    Raises:
        UnreadableError: the text is not a value.
    """
    scan = reader.scan
    number = NUMBER.match(scan.text, scan.at, scan.end)
    if number is not None and not FRACTION.match(scan.text, number.end(), scan.end):
        grouped = GROUPED.match(scan.text, scan.at, scan.end) if frame.is_object else None
        if grouped is None:
            scan.at = number.end()
            return _number(number[0])
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
        return read_wide_number(wide[0])
    loose = _loose(reader)
    if loose is not None:
        return loose
    called = _call(reader)
    return _bare(reader, frame) if called is None else called


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() and len(text) <= 4000 else read_fraction(text)


def read_wide_number(text: str) -> int | float:
    """Return the number of a text that `WIDE_NUMBER` matches."""
    return _number(unicodedata.normalize("NFKC", re.sub("[−–]", "-", text)))


def _loose(reader: StringReader) -> int | float | None:
    """Read a number that JSON does not allow: `+5`, `.5`, `5.`, `1_000`."""
    scan = reader.scan
    number = LOOSE_NUMBER.match(scan.text, scan.at, scan.end)
    if number is None:
        return None
    sign, whole, part, power = number.groups()
    if (whole is None and not part) or (whole and len(whole) > 1 and whole[0] == "0"):
        return None
    level: Level = "safe" if sign == "+" and "_" not in number[0] and (whole and part != "") else "likely"
    scan.fix("number", level)
    scan.at = number.end()
    text = f"{sign.replace('+', '')}{whole or '0'}" + (f".{part or '0'}" if part is not None else "")
    text += f"e{power}" if power else ""
    return _number(text.replace("_", ""))


def _call(reader: StringReader) -> int | float | str | None:
    """Read the argument of a call such as `ObjectId("…")`."""
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


def _bare(reader: StringReader, frame: OpenContainer) -> str:
    """Read a string without quotes, up to the punctuation that ends its member or item."""
    scan = reader.scan
    start = at = scan.at
    balance = 0
    while True:
        match = STOP.search(scan.text, at, scan.end)
        stop = match.start() if match else scan.end
        scan.work.spend(stop - at + 1)
        if match is None:
            break
        char = match[0]
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


def _ends(reader: StringReader, frame: OpenContainer, char: str, at: int) -> bool:
    """Return whether a bare string ends at this character."""
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


MAX_BARE_KEY_CHARS = 80
MAX_JUNK_CHARS = 200
DOTS = ("...", "…")


@dataclass(frozen=True, slots=True)
class LenientResult:
    """The data read from `start` to `end`.

    `open` lists the containers that were not closed, each with the key or index that was being filled. `cut`: the text ended
    inside a token, or before a required one; `fenced`: a code fence ended it; `elided`: an ellipsis stands for omitted data;
    `bare`: the opening brace is missing.
    """

    data: Json
    start: int
    end: int
    fixes: tuple[Fix, ...]
    open: tuple[tuple[Json, str | int], ...] = ()
    cut: bool = False
    fenced: bool = False
    elided: bool = False
    bare: bool = False


def read_value(
    text: str, start: int, end: int, work: WorkBudget, hints: ParseHints, *, bare_object: bool = False
) -> LenientResult:
    """Read the object or list that starts at `start`; with `bare_object`, an object without its opening brace.

    Raises:
        UnreadableError: the text cannot be repaired.
        WorkLimitError: the work budget is spent.
    """
    reader = _Reader(Scanner(text, start, end, work), hints)
    try:
        return reader.run(bare_object=bare_object)
    except UnreadableError as error:
        error.depth = len(reader.frames)
        raise


class _Reader:
    def __init__(self, scan: Scanner, hints: ParseHints) -> None:
        self.scan = scan
        self.hints = hints
        self.start = scan.at
        self.frames: list[OpenContainer] = []
        self.strings = StringReader(scan, self.frames, hints)
        self.root: Json = None
        self.cut = self.done = self.fenced = self.elided = False

    def run(self, *, bare_object: bool) -> LenientResult:
        scan = self.scan
        if bare_object:
            scan.fix("missing-opener", "guess")
            self.push("}", scan.at)
        else:
            self.open(scan.peek())
        while self.frames and not self.done:
            frame = self.frames[-1]
            char = scan.skip()
            if not char:
                self.cut = self.cut or frame.state != "after"
                break
            if frame.state == "after":
                self.after(frame, char)
            elif frame.state == "value":
                self.member_value(frame, char)
            else:
                self.key_or_item(frame, char)
        opened = tuple((cast("Json", frame.data), frame.place) for frame in self.frames)
        if opened:
            scan.fix("missing-closer", "guess")
        fixes = tuple(scan.fixes)
        return LenientResult(
            self.root, self.start, scan.at, fixes, opened, self.cut, self.fenced, self.elided, bare_object
        )

    def push(self, closer: str, at: int) -> None:
        if len(self.frames) >= MAX_DEPTH:
            raise DepthError(at)
        data: dict[str, Json] | list[Json] = {} if closer == "}" else []
        self.put(cast("Json", data))
        self.frames.append(OpenContainer(closer, data, at))

    def open(self, char: str) -> None:
        if char not in "{[":
            self.scan.fix_once("punctuation" if char != "(" else "tuple", "safe" if char != "(" else "likely")
        self.push(OPENERS[char], self.scan.at)
        self.scan.at += 1

    def put(self, value: Json) -> None:
        """Add a value to the innermost container."""
        if not self.frames:
            self.root = value
            return
        frame = self.frames[-1]
        if isinstance(frame.data, list):
            frame.data.append(value)
        else:
            if frame.key in frame.data:
                same = frame.data[frame.key] == value
                self.scan.fix("duplicate-key", "likely" if same else "guess", frame.key_at)
            frame.data[frame.key] = value
        frame.state, frame.comma = "after", -1

    def close(self, *, at: int, missing: bool = False) -> None:
        """Close the innermost container."""
        frame = self.frames.pop()
        if missing:
            self.scan.fix("missing-closer", "guess", at)
        if frame.comma >= 0:
            self.scan.fix("trailing-comma", "safe", frame.comma)

    def closer(self, char: str) -> None:
        """Read a closing bracket, which may be wrong or superfluous."""
        scan, wanted = self.scan, CLOSERS[char]
        if char not in "}])":
            scan.fix_once("punctuation", "safe")
        kinds, fit, after = [frame.closer for frame in self.frames], self.strings.fit, scan.at + 1
        scan.work.spend(len(kinds))
        if len(kinds) == 1 and wanted == "}" and self.goes_on():
            scan.fix("extra-closer", "guess")
        elif kinds[-1] == wanted:
            self.close(at=scan.at)
        elif wanted in kinds and fit(len(kinds), after) > fit(self.strings.outside(len(kinds), wanted), after):
            scan.fix("extra-closer", "guess")
        elif wanted in kinds:
            while self.frames[-1].closer != wanted:
                self.close(at=scan.at, missing=True)
            self.close(at=scan.at)
        elif fit(len(kinds) - 1, after) >= fit(len(kinds), after):
            scan.fix("wrong-closer", "guess")
            self.close(at=scan.at)
        else:
            scan.fix("extra-closer", "guess")
        scan.at += 1

    def goes_on(self) -> bool:
        """Return whether the outermost object continues after its closing brace: a comma and a key follow."""
        after, where = self.scan.look(self.scan.at + 1)
        return after == "," and self.scan.key_at(where + 1, bare=False) is not None

    def after(self, frame: OpenContainer, char: str) -> None:
        """Read what follows a value: a comma, a closing bracket, or the next value without a comma."""
        scan = self.scan
        if char in COMMAS or char == ";":
            if char != ",":
                scan.fix_once("punctuation", "safe" if char != ";" else "likely")
            frame.state, frame.comma = "next", scan.at
            scan.at += 1
        elif char in CLOSERS:
            self.closer(char)
        elif self.strings.fence(scan.at):
            self.fenced = self.done = True
        elif frame.is_object:
            self.next_member(frame, char)
        elif char in COLONS:
            raise UnreadableError(scan.at)  # `[1: 2]` is neither list nor object
        else:
            scan.fix("missing-comma", "likely")
            frame.state = "next"

    def next_member(self, frame: OpenContainer, char: str) -> None:
        scan = self.scan
        # `[{…, {…}]`: a member cannot begin with a bracket, so the brace of the object before is missing.
        if char in OPENERS and len(self.frames) > 1 and not self.frames[-2].is_object:
            self.close(at=scan.at, missing=True)
        elif scan.key_at(scan.at, bare=True) is not None or char in QUOTES:
            scan.fix("missing-comma", "likely")
            frame.state = "next"
        else:
            self.junk()

    def junk(self) -> None:
        """Skip words that are neither key nor value."""
        scan = self.scan
        at, stop = scan.at, min(scan.end, scan.at + MAX_JUNK_CHARS)
        while at < stop and scan.text[at] not in ',}]\n"{[':
            at += 1
        if at == scan.at or at >= stop:
            raise UnreadableError(scan.at)
        scan.work.spend(at - scan.at)
        scan.fix("dropped-text", "guess")
        scan.at = at

    def comma(self, frame: OpenContainer) -> None:
        """Read a comma in place of a value."""
        first = frame.state == "first"
        self.scan.fix("leading-comma" if first else "extra-comma", "likely" if first else "guess")
        self.scan.at += 1

    def dots(self) -> bool:
        """Read an ellipsis, if there is one: the value is not complete."""
        if not self.scan.text.startswith(DOTS, self.scan.at, self.scan.end):
            return False
        self.scan.fix("elision", "guess")
        self.scan.at += 3 if self.scan.starts("...") else 1
        self.elided = True
        return True

    def key_or_item(self, frame: OpenContainer, char: str) -> None:
        """Read a key of an object or an item of a list, or a substitute."""
        if char in CLOSERS:
            self.closer(char)
        elif char in COMMAS:
            self.comma(frame)
        elif self.strings.fence(self.scan.at):
            self.fenced = self.done = self.cut = True
        elif self.dots():
            frame.state = frame.state if frame.is_object or frame.state == "first" else "after"
        elif frame.is_object:
            self.read_key(frame, char)
        else:
            self.value(frame, char)

    def value(self, frame: OpenContainer, char: str) -> None:
        """Read the value that starts here."""
        scan = self.scan
        if char in OPENERS:
            self.open(char)
            return
        start = scan.at
        if char in QUOTES:
            text = self.strings.read("member" if frame.is_object else "item")
            if self.strings.ended:
                text = self.joined(text, frame)
            else:
                self.cut = self.done = True
            if not frame.is_object and not self.done and self.key_in_list(text, start):
                return
            self.put(text)
            return
        self.refuse_escaped(char)
        word = read_word(self.strings, frame)
        self.put(word)
        if scan.at >= scan.end and not (word is None or isinstance(word, bool)):
            self.cut = True  # a number or a bare string could continue

    def refuse_escaped(self, char: str) -> None:
        if char == "\\" and self.scan.text[self.scan.at + 1 : self.scan.at + 2] in ('"', "n", "t", "r"):
            raise EscapedError(self.scan.at)

    def joined(self, text: str, frame: OpenContainer) -> str:
        """Read the rest of strings joined by `+`."""
        scan = self.scan
        while True:
            after, where = scan.look(scan.at)
            if after != "+":
                return text
            quote, at = scan.look(where + 1)
            if not quote or quote not in QUOTES:
                return text
            scan.fix("joined-strings", "likely", where)
            scan.at = at
            text += self.strings.read("member" if frame.is_object else "item")
            if not self.strings.ended:
                self.cut = self.done = True
                return text

    def key_in_list(self, text: str, start: int) -> bool:
        """Treat a string in a list as a key if a colon follows: a bracket of the list or of the object is missing."""
        after, where = self.scan.look(self.scan.at)
        if not after or after not in COLONS:
            return False
        outer = next((frame for frame in reversed(self.frames) if frame.is_object), None)
        if outer is not None and (self.frames[-1].state == "next" or self.frames[-1].data):
            while not self.frames[-1].is_object:
                self.frames[-1].comma = -1
                self.close(at=start, missing=True)
        else:
            self.scan.fix("missing-opener", "guess", start)
            self.push("}", start)
        self.scan.at = where + 1
        self.key(self.frames[-1], text, start)
        return True

    def key(self, frame: OpenContainer, text: str, at: int) -> None:
        frame.key, frame.key_at, frame.state = text, at, "value"

    def read_key(self, frame: OpenContainer, char: str) -> None:
        start = self.scan.at
        if char in OPENERS:
            self.bracket_for_key(frame, char)
        elif char not in QUOTES:
            self.bare_key(frame)
        else:
            text = self.strings.read("key")
            if self.strings.ended:
                self.colon(frame, text, start)
            else:
                self.cut = self.done = True

    def member_value(self, frame: OpenContainer, char: str) -> None:
        if char in COMMAS or char in CLOSERS:  # missing; the type decides whether that is valid
            self.scan.fix("missing-value", "guess", frame.key_at)
            frame.state = "after"
        elif self.strings.fence(self.scan.at):
            self.fenced = self.done = self.cut = True
        else:
            self.value(frame, char)

    def colon(self, frame: OpenContainer, text: str, start: int) -> None:
        """Read the separator between a key and its value."""
        scan = self.scan
        char = scan.skip()
        if not char:
            self.cut = self.done = True
            return
        if char in COLONS:
            if char != ":":
                scan.fix_once("punctuation", "safe")
            scan.at += 1
        elif char == "=":
            scan.fix("separator", "likely")
            scan.at += 2 if scan.starts("=>") else 1
        elif char in ",}" and not frame.data and frame.state == "first":
            self.as_set(frame, text)
            return
        elif char in ",}":
            raise UnreadableError(start)
        else:
            scan.fix("missing-colon", "likely")
        self.key(frame, text, start)

    def as_set(self, frame: OpenContainer, text: str) -> None:
        """Turn an object without values into a list: it is a Python set."""
        self.scan.fix("set", "guess", frame.opened)
        items: list[Json] = [text]
        self.frames.pop()
        if not self.frames:
            self.root = cast("Json", items)
        else:
            outer = self.frames[-1]
            if isinstance(outer.data, list):
                outer.data[-1] = cast("Json", items)
            else:
                outer.data[outer.key] = cast("Json", items)
        self.frames.append(OpenContainer("}", items, frame.opened, "after"))

    def bracket_for_key(self, frame: OpenContainer, char: str) -> None:
        """Read a bracket in place of a key: a doubled brace, or the next item after a missing brace."""
        scan = self.scan
        if char in "{｛" and not frame.data and frame.state == "first":
            scan.fix("extra-opener", "guess")
            frame.state = "doubled"
            scan.at += 1
        elif len(self.frames) > 1 and not self.frames[-2].is_object:
            frame.comma = -1
            self.close(at=scan.at, missing=True)
            self.frames[-1].state = "next"
        else:
            raise UnreadableError(scan.at)

    def bare_key(self, frame: OpenContainer) -> None:
        """Read a key without quotes, or with one quote."""
        scan = self.scan
        self.refuse_escaped(scan.peek())
        start = at = scan.at
        stop = min(scan.end, at + MAX_BARE_KEY_CHARS)
        while at < stop and scan.text[at] not in ":：=\n\"',{}[]":
            at += 1
        scan.work.spend(at - start + 1)
        word, char = scan.text[start:at].strip(), scan.text[at] if at < stop else ""
        if char in ('"', "'") and word and scan.look(at + 1)[0] in (":", "："):
            scan.fix("missing-quote", "guess", start)
            scan.at = at + 1
            self.colon(frame, word, start)
        elif char in (":", "：", "=") and word:
            plain = BARE_KEY.match(scan.text, start, scan.end) is not None or word.isalnum()
            scan.fix("unquoted-key", "likely" if plain else "guess", start)
            scan.bare_keys = True
            scan.at = at
            self.colon(frame, word, start)
        elif at == scan.end:
            self.cut = self.done = True
        elif frame.data and char:
            self.junk()
        else:
            raise UnreadableError(start)  # words in braces, as in prose


TAGS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
OPEN = re.compile(rf"\s*(?:<({TAGS})>|\[(THINK)\]|<\|channel\|>\s*(analysis|commentary)\b)", re.IGNORECASE)
OPENED = re.compile(rf"<(?:{TAGS})>|\[THINK\]", re.IGNORECASE)
CLOSE = re.compile(rf"</(?:{TAGS})>|\[/THINK\]", re.IGNORECASE)
FINAL = re.compile(r"<\|channel\|>\s*final[^<]*<\|message\|>", re.IGNORECASE)
FENCE = re.compile(r"\s*(`{3,}|~{3,})[^\S\n]*[\w+.-]*[^\S\n]*\r?\n?")


def after_thinking(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span after a thinking block; the span is empty if the block never ends.

    A closing tag without an opening one also ends thinking, because some chat templates write the opening tag themselves;
    inside JSON it is text.
    """
    while True:
        final = FINAL.search(text, start, end)
        if final is not None and OPEN.match(text, start, end):
            return final.end(), _before_token(text, final.end(), end)
        opened = OPEN.match(text, start, end)
        if opened is None:
            break
        close = CLOSE.search(text, opened.end(), end)
        if close is None:
            return end, end
        start = close.end()
    head = text[start : min(end, start + 64)].lstrip()
    if head[:1] not in ("{", "[", '"', "`", ""):
        close = CLOSE.search(text, start, end)
        if close is not None:
            start = close.end()
    return start, _before_token(text, start, end)


def later_thinking(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of the thinking blocks in a part of a text; one that does not end is text.

    >>> later_thinking('{"a": 1}<think>{"a": 2}</think>', 0, 31)
    [(8, 31)]
    """
    spans: list[tuple[int, int]] = []
    while (opened := OPENED.search(text, start, end)) and (close := CLOSE.search(text, opened.end(), end)):
        spans.append((opened.start(), start := close.end()))
    return spans


def _before_token(text: str, start: int, end: int) -> int:
    token = END_TOKEN.search(text, max(start, end - 64), end)
    return token.start() if token else end


def inside_fence(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span inside a code fence around the whole text; None without such a fence."""
    opened = FENCE.match(text, start, end)
    if opened is None:
        return None
    stop = end
    while stop > opened.end() and text[stop - 1].isspace():
        stop -= 1
    if not text.startswith(opened[1], stop - len(opened[1])) or stop - len(opened[1]) < opened.end():
        return None
    return opened.end(), stop - len(opened[1])


JSON_LIKE = re.compile(
    r"[{｛]\s*(?:[\"'“”„‘「`}｝,/#{\\]|\.\.\.|…|[\w$-]+(?: [\w$-]+){0,2}\s*[:：=])"
    r"|[\[［(]\s*(?:[\"'“”„‘「`{｛\[［\]］,/#(\\-]|[0-9]|\.\.\.|…|(?:true|false|null|True|False|None)\b)"
)

LINE_KEY = re.compile(r"(?:^|\n)[^\S\n]*(?=\"[^\"\n]{1,100}\"\s*[:：])")
TUPLE = re.compile(r"[({\[]")
EXTRA = re.compile(r"\s*([}\]])")
DOUBLED = re.compile(r"\{\{\s*[\"'{}]")
GOES_ON = re.compile(r"\s*,\s*\"[^\"\n]{0,100}\"\s*:")
ANY_BRACKET = re.compile(r"[{}\[\]]")
ESCAPE = re.compile(r"\\([\"\\/nrt])")


def find_candidates(text: str, start: int, end: int, work: WorkBudget, hints: ParseHints) -> Iterator[LenientResult]:
    """Yield the values of a text in order.

    A bracket in prose may be parsed as an invalid value; its inside is searched again. The inside of malformed JSON is not
    searched, because an inner object must not be mistaken for the answer.

    Raises:
        DepthError: a value is nested too deep.
        WorkLimitError: the work budget is spent.
    """
    bare = _bare_object(text, start, end, work, hints)
    if bare is not None:
        yield bare
    at = start if bare is None else bare.end
    tuples = text[at : at + 200].lstrip().startswith("(")
    while True:
        bracket = (TUPLE if tuples else BRACKETS).search(text, at, end)
        tuples = False
        work.spend((bracket.start() if bracket else end) - at + 8)
        if bracket is None:
            return
        result, at = _read_at(text, bracket.start(), end, work, hints)
        if result is not None:
            yield _with_closers(text, result, end)


def _read_at(text: str, at: int, end: int, work: WorkBudget, hints: ParseHints) -> tuple[LenientResult | None, int]:
    """Read the value at a bracket; also return the position at which to search for the next one."""
    like = JSON_LIKE.match(text, at, end) is not None
    if not like and text[at] in "{｛":
        return None, at + 1  # words in braces, as in prose
    exact = _exact(text, at, end, work) if like and work.exact_attempts else None
    if exact is not None:
        return exact, exact.end
    try:
        result = _doubled(text, at, end, work, hints) or read_value(text, at, end, work, hints)
    except DepthError:
        raise
    except EscapedError:
        inner = ESCAPE.sub(lambda escape: ESCAPES[escape[1]], text[at:end])
        return _rewritten(inner, Fix("escaped-quotes", at, "likely"), end, work, hints), end
    except UnreadableError as error:
        if not like:
            return None, at + 1
        work.unreadable_at = error.position
        return None, _skip_broken(text, max(error.position, at + 1), end, error.depth, work)
    return result, result.end if like or not result.open else at + 1


def _exact(text: str, at: int, end: int, work: WorkBudget) -> LenientResult | None:
    """Read a value that is valid JSON, which is never altered; None if it is invalid or seems to continue."""
    try:
        data, stop = DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        work.exact_attempts -= 1  # a failure is expensive: the error counts the lines of the complete text
        return None
    work.spend(stop - at)
    if stop > end or GOES_ON.match(text, stop, end):
        return None
    return LenientResult(data, at, stop, ())


DECODER = json.JSONDecoder(object_pairs_hook=unique_keys, parse_float=read_fraction, parse_constant=refuse_constant)


def _with_closers(text: str, result: LenientResult, end: int) -> LenientResult:
    """Add a fix for extra closing brackets right after a value."""
    after = EXTRA.match(text, result.end, end)
    if result.open or after is None:
        return result
    return replace(result, fixes=(*result.fixes, Fix("extra-closer", after.start(1), "likely")))


def _skip_broken(text: str, at: int, end: int, depth: int, work: WorkBudget) -> int:
    """Return the end of an unreadable value: the position at which all its open brackets are closed."""
    begin = at
    for bracket in ANY_BRACKET.finditer(text, at, end):
        depth += 1 if bracket[0] in "{[" else -1
        at = bracket.end()
        if depth <= 0:
            break
    else:
        at = end
    work.spend(at - begin)
    return at


def try_value(
    text: str, start: int, end: int, work: WorkBudget, hints: ParseHints, *, bare_object: bool = False
) -> LenientResult | None:
    """Read the value at `start` as `read_value` does; None if it is not readable."""
    try:
        return read_value(text, start, end, work, hints, bare_object=bare_object)
    except UnreadableError:
        return None


def _bare_object(text: str, start: int, end: int, work: WorkBudget, hints: ParseHints) -> LenientResult | None:
    """Read an object without its opening brace; None unless it has its closing brace."""
    first = BRACKETS.search(text, start, end)
    key = LINE_KEY.search(text, start, first.start() if first else end)
    if key is None or not KEY.match(text, key.end(), end):
        return None
    result = try_value(text, key.end(), end, work, hints, bare_object=True)
    return None if result is None or result.open else result


def _doubled(text: str, start: int, end: int, work: WorkBudget, hints: ParseHints) -> LenientResult | None:
    """Read a value with doubled braces, as in templates; None if not all are doubled."""
    if not DOUBLED.match(text, start, end) or not text.startswith("}}", text.rfind("}", start, end) - 1):
        return None
    inner = text[start:end].replace("{{", "{").replace("}}", "}")
    result = _rewritten(inner, Fix("doubled-braces", start, "guess"), end, work, hints)
    return None if result is None or result.open else result


def _rewritten(inner: str, fix: Fix, end: int, work: WorkBudget, hints: ParseHints) -> LenientResult | None:
    """Read the value of a text that a fix rewrote up to `end`; None if it is not readable."""
    work.spend(end - fix.position)
    result = try_value(inner, 0, len(inner), work, hints)
    if result is None:
        return None
    fixes = (fix, *(replace(each, position=fix.position) for each in result.fixes))
    return replace(result, start=fix.position, end=end, fixes=fixes)
