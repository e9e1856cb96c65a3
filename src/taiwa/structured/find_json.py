"""Where JSON stands in an answer: thinking blocks, fences, candidates."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from taiwa.kernel.records import Json
from taiwa.structured.json_repair.parser import LenientResult, read_value
from taiwa.structured.json_repair.scanner import (
    BRACKETS,
    KEY,
    DepthError,
    EscapedError,
    Fix,
    UnreadableError,
    WorkBudget,
)
from taiwa.structured.json_repair.strings import ParseHints

__all__ = ["AnswerStart", "after_thinking", "find_candidates", "inside_fence", "parse_again"]


TAGS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"

OPEN = re.compile(rf"\s*(?:<({TAGS})>|\[(THINK)\]|<\|channel\|>\s*(analysis|commentary)\b)", re.IGNORECASE)

CLOSE = re.compile(rf"</(?:{TAGS})>|\[/THINK\]", re.IGNORECASE)

FINAL = re.compile(r"<\|channel\|>\s*final[^<]*<\|message\|>", re.IGNORECASE)

END_TOKEN = re.compile(r"\s*<\|(?:end|return|im_end|eot_id|endoftext)\|>\s*\Z")

FENCE = re.compile(r"\s*(`{3,}|~{3,})[^\S\n]*[\w+.-]*[^\S\n]*\r?\n?")


def after_thinking(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out a thinking block before the answer; a block that never ends leaves nothing.

    A closing tag without an opening one ends thinking too, for some chat templates write the opening one themselves; but not
    inside of JSON that has begun, where it is text.
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


def _before_token(text: str, start: int, end: int) -> int:
    found = END_TOKEN.search(text, max(start, end - 64), end)
    return found.start() if found else end


def inside_fence(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Give the inside of a fence that holds the whole text, or None where there is no such fence."""
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

ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def find_candidates(text: str, start: int, end: int, work: WorkBudget, hints: ParseHints) -> Iterator[LenientResult]:
    """Give the values of a text in order.

    A bracket of prose may be read as a value that fits nothing; what is inside of it is looked at again. What is inside of
    broken JSON is not: an inner object must not pass for the answer.

    Raises:
        DepthError: a value is nested too deep.
        BudgetError: the work budget is spent.
    """
    bare = _bare_object(text, start, end, work, hints)
    if bare is not None:
        yield bare
    at = start if bare is None else bare.end
    tuples = text[at : at + 200].lstrip().startswith("(")
    while True:
        found = (TUPLE if tuples else BRACKETS).search(text, at, end)
        tuples = False
        work.spend((found.start() if found else end) - at + 8)
        if found is None:
            return
        at = found.start()
        draft, at = _at(text, at, end, work, hints)
        if draft is not None:
            yield _with_closers(text, draft, end)


def _at(text: str, at: int, end: int, work: WorkBudget, hints: ParseHints) -> tuple[LenientResult | None, int]:
    """Read the value at a bracket, and say where to look for the next one."""
    like = JSON_LIKE.match(text, at, end) is not None
    if not like and text[at] in "{｛":
        return None, at + 1  # words in braces, as prose has them
    exact = _exact(text, at, end, work) if like and work.exact else None
    if exact is not None:
        return exact, exact.end
    try:
        draft = _doubled(text, at, end, work, hints) or read_value(text, at, end, work, hints)
    except DepthError:
        raise
    except EscapedError:
        return _unescaped(text, at, end, work, hints), end
    except UnreadableError as error:
        if not like:
            return None, at + 1
        work.stuck = error.position
        return None, _past(text, max(error.position, at + 1), end, error.depth, work)
    return draft, draft.end if like or not draft.open else at + 1


def _exact(text: str, at: int, end: int, work: WorkBudget) -> LenientResult | None:
    """Read a value that is JSON as it stands, which is never mended; None where it is not, or seems to go on."""
    try:
        data, stop = DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        work.exact -= 1  # the decoder's error counts the lines of the whole text
        return None
    work.spend(stop - at)
    if stop > end or GOES_ON.match(text, stop, end):
        return None
    return LenientResult(data, at, stop, ())


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is there twice")
    return made


def _finite(name: str) -> Json:
    raise ValueError(name)


DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_finite)


def _with_closers(text: str, draft: LenientResult, end: int) -> LenientResult:
    """Note closers right after a value, one too many as they are."""
    after = EXTRA.match(text, draft.end, end)
    if draft.open or after is None:
        return draft
    return replace(draft, fixes=(*draft.fixes, Fix("extra-closer", after.start(1), "likely")))


def _past(text: str, at: int, end: int, depth: int, work: WorkBudget) -> int:
    """Go past what is left of a broken value: to where as many brackets have closed as were open."""
    begin = at
    for found in ANY_BRACKET.finditer(text, at, end):
        depth += 1 if found[0] in "{[" else -1
        at = found.end()
        if depth <= 0:
            break
    else:
        at = end
    work.spend(at - begin)
    return at


def parse_again(text: str, draft: LenientResult, end: int, work: WorkBudget, hints: ParseHints) -> LenientResult | None:
    """Read a value again from its start with other hints, or give None where that cannot be read."""
    try:
        return read_value(text, draft.start, end, work, hints, bare_object=draft.bare)
    except UnreadableError:
        return None


def _bare_object(text: str, start: int, end: int, work: WorkBudget, hints: ParseHints) -> LenientResult | None:
    """Read an object that has lost its opening brace; only one that has its closing brace counts."""
    first = BRACKETS.search(text, start, end)
    key = LINE_KEY.search(text, start, first.start() if first else end)
    if key is None or not KEY.match(text, key.end(), end):
        return None
    start = key.end()
    try:
        draft = read_value(text, start, end, work, hints, bare_object=True)
    except UnreadableError:
        return None
    return None if draft.open else draft


def _doubled(text: str, start: int, end: int, work: WorkBudget, hints: ParseHints) -> LenientResult | None:
    """Read a value whose every brace is doubled, as templates write them; None where they are not."""
    if not DOUBLED.match(text, start, end) or not text.startswith("}}", text.rfind("}", start, end) - 1):
        return None
    inner = text[start:end].replace("{{", "{").replace("}}", "}")
    work.spend(end - start)
    try:
        draft = read_value(inner, 0, len(inner), work, hints)
    except UnreadableError:
        return None
    if draft.open:
        return None
    fixes = tuple(replace(fix, position=start) for fix in draft.fixes)
    return replace(draft, start=start, end=end, fixes=(Fix("doubled-braces", start, "guess"), *fixes))


def _unescaped(text: str, start: int, end: int, work: WorkBudget, hints: ParseHints) -> LenientResult | None:
    """Read a value whose every quote is escaped, as if it stood inside of a string."""
    inner = ESCAPE.sub(lambda found: ESCAPES.get(found[1], found[1]), text[start:end])
    work.spend(end - start)
    try:
        draft = read_value(inner, 0, len(inner), work, hints)
    except UnreadableError:
        return None
    fixes = tuple(replace(fix, position=start) for fix in draft.fixes)
    return replace(draft, start=start, end=end, fixes=(Fix("escaped-quotes", start, "likely"), *fixes))


OPENING = (*(f"<{tag}>" for tag in TAGS.split("|")), "[think]")

LONGEST_TAG = 24

BRACKET = re.compile(r"[{\[]")

SOLID = re.compile(r"[^\s\ufeff]")

FIRST = {"{": '"}', "[": '"{[]-0123456789tfnTFN'}
"""What must follow a bracket for it to open JSON rather than an aside in prose."""


class AnswerStart:
    """Finds the opening bracket of an answer; asides such as `{name}` or `[see above]` are none."""

    def __init__(self) -> None:
        self._lead: str | None = ""
        self._thinking = False
        self._bracket = ""

    def find(self, text: str) -> tuple[str, str] | None:
        """Take a piece of text; give the opening bracket and what follows it, or None while there is none."""
        while text:
            if self._thinking:
                text = self._think(text)
            elif self._lead is not None:
                text = self._decide(self._lead, text)
            else:
                found = self._prose(text)
                if found is not None:
                    return found
                return None
        return None

    def _decide(self, lead: str, text: str) -> str:
        """Read on until it is plain whether a thinking block opens; give the text that is still to be read."""
        for at, char in enumerate(text):
            if not lead and not SOLID.match(char):
                continue
            lead += char
            if lead.lower() in OPENING:
                self._thinking, self._lead = True, ""
                return text[at + 1 :]
            if not any(tag.startswith(lead.lower()) for tag in OPENING):
                self._lead = None
                return lead + text[at + 1 :]
        self._lead = lead
        return ""

    def _think(self, text: str) -> str:
        whole = (self._lead or "") + text
        found = CLOSE.search(whole)
        if found is None:
            self._lead = whole[-LONGEST_TAG:]
            return ""
        self._thinking, self._lead = False, ""
        return whole[found.end() :]

    def _prose(self, text: str) -> tuple[str, str] | None:
        at = 0
        while at < len(text):
            found = (SOLID if self._bracket else BRACKET).search(text, at)
            if found is None:
                return None
            bracket, at = self._bracket, found.end()
            self._bracket = found[0] if found[0] in FIRST else ""
            if bracket and found[0] in FIRST[bracket]:
                self._bracket = ""
                return bracket, text[found.start() :]
        return None
