"""One value of malformed JSON, read in a single pass without recursion; every departure from JSON is written down.

The reader never drops a value without a word and never invents one: what is missing stays missing, and the type decides
whether that matters.
"""

from dataclasses import dataclass
from typing import cast

from taiwa.kernel import Json
from taiwa.shape.reading import Fix
from taiwa.shape.scan import (
    BARE_KEY,
    CLOSERS,
    COLONS,
    COMMAS,
    OPENERS,
    QUOTES,
    DepthError,
    EscapedError,
    Scanner,
    UnreadableError,
    Work,
)
from taiwa.shape.strings import Frame, Hints, StringReader
from taiwa.shape.words import read_word

__all__ = ["Draft", "read_value"]

LONGEST_BARE_KEY = 80
LONGEST_JUNK = 200
DOTS = ("...", "…")


@dataclass(frozen=True, slots=True)
class Draft:
    """What was read from `start` to `end`.

    `open` holds the path of containers that no closer ended, as (container, key or index that was being filled);
    `cut` means that the text ended inside a token or where another had to follow; `fenced` that a fence ended it; `elided` that
    the writer left something out; `bare` that the opening brace is missing.
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


def read_value(text: str, start: int, end: int, work: Work, hints: Hints, *, bare_object: bool = False) -> Draft:
    """Read the object or list that starts at `start`; `bare_object` reads an object whose opening brace is missing.

    Raises:
        UnreadableError: this is no JSON, whatever is mended.
        BudgetError: the work budget is spent.
    """
    reader = _Reader(Scanner(text, start, end, work), hints)
    try:
        return reader.run(bare_object=bare_object)
    except UnreadableError as error:
        error.depth = len(reader.frames)
        raise


class _Reader:
    def __init__(self, scan: Scanner, hints: Hints) -> None:
        self.scan = scan
        self.hints = hints
        self.start = scan.at
        self.frames: list[Frame] = []
        self.strings = StringReader(scan, self.frames, hints)
        self.root: Json = None
        self.cut = self.done = self.fenced = self.elided = False

    def run(self, *, bare_object: bool) -> Draft:
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
            elif frame.is_object:
                self.in_object(frame, char)
            else:
                self.in_list(frame, char)
        opened = tuple((cast("Json", frame.data), _place(frame)) for frame in self.frames)
        if opened:
            scan.fix("missing-closer", "guess")
        fixes = tuple(scan.fixes)
        return Draft(self.root, self.start, scan.at, fixes, opened, self.cut, self.fenced, self.elided, bare_object)

    def push(self, closer: str, at: int) -> None:
        if len(self.frames) >= self.hints.depth:
            raise DepthError(at)
        data: dict[str, Json] | list[Json] = {} if closer == "}" else []
        self.put(cast("Json", data))
        self.frames.append(Frame(closer, data, at))

    def open(self, char: str) -> None:
        if char not in "{[":
            self.scan.fix_once("punctuation" if char != "(" else "tuple", "safe" if char != "(" else "likely")
        self.push(OPENERS[char], self.scan.at)
        self.scan.at += 1

    def put(self, value: Json) -> None:
        """Lay a value into the innermost container."""
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
        """Take a closing bracket: it ends the innermost container of its kind, or the wrong one, or none."""
        scan, wanted = self.scan, CLOSERS[char]
        if char not in "}])":
            scan.fix_once("punctuation", "safe")
        kinds = [frame.closer for frame in self.frames]
        scan.work.spend(len(kinds))
        if len(kinds) == 1 and wanted == "}" and self.goes_on():
            scan.fix("extra-closer", "guess")
        elif kinds[-1] == wanted:
            self.close(at=scan.at)
        elif wanted in kinds and self.is_extra(wanted):
            scan.fix("extra-closer", "guess")
        elif wanted in kinds:
            while self.frames[-1].closer != wanted:
                self.close(at=scan.at, missing=True)
            self.close(at=scan.at)
        elif self.strings.fit(len(kinds) - 1, scan.at + 1) >= self.strings.fit(len(kinds), scan.at + 1):
            scan.fix("wrong-closer", "guess")
            self.close(at=scan.at)
        else:
            scan.fix("extra-closer", "guess")
        scan.at += 1

    def is_extra(self, wanted: str) -> bool:
        """Tell whether a closer of another kind than the innermost is one too many, rather than the inner ones missing."""
        depth, after = len(self.frames), self.scan.at + 1
        without = self.strings.fit(depth, after)
        return without > self.strings.fit(self.strings.outside(depth, wanted), after)

    def goes_on(self) -> bool:
        """Tell whether the outermost object goes on after its closing brace: a comma and a key follow."""
        after, where = self.scan.look(self.scan.at + 1)
        return after == "," and self.scan.key_at(where + 1, bare=False) is not None

    def after(self, frame: Frame, char: str) -> None:
        """Go on after a value: comma, closer, or a next value whose comma is missing."""
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

    def next_member(self, frame: Frame, char: str) -> None:
        scan = self.scan
        if char in OPENERS and len(self.frames) > 1 and not self.frames[-2].is_object:
            self.close(at=scan.at, missing=True)
        elif scan.key_at(scan.at, bare=True) is not None or char in QUOTES:
            scan.fix("missing-comma", "likely")
            frame.state = "next"
        else:
            self.junk()

    def junk(self) -> None:
        """Step over words that are neither key nor value; only a guess may."""
        scan = self.scan
        at, stop = scan.at, min(scan.end, scan.at + LONGEST_JUNK)
        while at < stop and scan.text[at] not in ',}]\n"{[':
            at += 1
        if at == scan.at or at >= stop:
            raise UnreadableError(scan.at)
        scan.work.spend(at - scan.at)
        scan.fix("dropped-text", "guess")
        scan.at = at

    def comma(self, frame: Frame) -> None:
        """Take a comma where a value should be."""
        first = frame.state == "first"
        self.scan.fix("leading-comma" if first else "extra-comma", "likely" if first else "guess")
        self.scan.at += 1

    def dots(self) -> bool:
        """Take an ellipsis: the writer left something out, so the value is not complete."""
        if not self.scan.text.startswith(DOTS, self.scan.at, self.scan.end):
            return False
        self.scan.fix("elision", "guess")
        self.scan.at += 3 if self.scan.starts("...") else 1
        self.elided = True
        return True

    def in_list(self, frame: Frame, char: str) -> None:
        if char in CLOSERS:
            self.closer(char)
        elif char in COMMAS:
            self.comma(frame)
        elif self.strings.fence(self.scan.at):
            self.fenced = self.done = self.cut = True
        elif not self.dots():
            self.value(frame, char)
        elif frame.state != "first":
            frame.state = "after"

    def value(self, frame: Frame, char: str) -> None:
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
            self.cut = True  # a number or a bare word could have gone on

    def refuse_escaped(self, char: str) -> None:
        if char == "\\" and self.scan.text[self.scan.at + 1 : self.scan.at + 2] in ('"', "n", "t", "r"):
            raise EscapedError(self.scan.at)

    def joined(self, text: str, frame: Frame) -> str:
        """Read on where strings are joined by `+`."""
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
        """Take a string in a list that a colon follows: the list, or the object around it, has lost a bracket."""
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

    def key(self, frame: Frame, text: str, at: int) -> None:
        frame.key, frame.key_at, frame.state = text, at, "value"

    def in_object(self, frame: Frame, char: str) -> None:
        scan = self.scan
        if frame.state == "value":
            self.member_value(frame, char)
        elif char in CLOSERS:
            self.closer(char)
        elif char in COMMAS:
            self.comma(frame)
        elif char in QUOTES:
            start = scan.at
            text = self.strings.read("key")
            if not self.strings.ended:
                self.cut = self.done = True
                return
            self.colon(frame, text, start)
        elif char in OPENERS:
            self.bracket_for_key(frame, char)
        elif self.strings.fence(scan.at):
            self.fenced = self.done = self.cut = True
        elif not self.dots():
            self.bare_key(frame)

    def member_value(self, frame: Frame, char: str) -> None:
        if char in COMMAS or char in CLOSERS:  # left out; the type says whether it may be
            self.scan.fix("missing-value", "guess", frame.key_at)
            frame.state = "after"
        elif self.strings.fence(self.scan.at):
            self.fenced = self.done = self.cut = True
        else:
            self.value(frame, char)

    def colon(self, frame: Frame, text: str, start: int) -> None:
        """Take what stands between a key and its value."""
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

    def as_set(self, frame: Frame, text: str) -> None:
        """Turn what looked like an object into a list: Python writes a set in braces."""
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
        self.frames.append(Frame("}", items, frame.opened, "after"))

    def bracket_for_key(self, frame: Frame, char: str) -> None:
        """A bracket where a key should be: a doubled brace, or the next item after a missing brace."""
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

    def bare_key(self, frame: Frame) -> None:
        """Read a key without quotes, or one that lost a quote."""
        scan = self.scan
        self.refuse_escaped(scan.peek())
        start = at = scan.at
        stop = min(scan.end, at + LONGEST_BARE_KEY)
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
            raise UnreadableError(start)  # words in braces, as prose has them


def _place(frame: Frame) -> str | int:
    return len(frame.data) if isinstance(frame.data, list) else frame.key
