"""Find JSON in the text of an answer: skip thinking blocks and fences, read every candidate."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from taiwa.kernel.records import refuse_constant
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
from taiwa.structured.validators import unique_keys

TAGS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
OPEN = re.compile(rf"\s*(?:<({TAGS})>|\[(THINK)\]|<\|channel\|>\s*(analysis|commentary)\b)", re.IGNORECASE)
CLOSE = re.compile(rf"</(?:{TAGS})>|\[/THINK\]", re.IGNORECASE)
FINAL = re.compile(r"<\|channel\|>\s*final[^<]*<\|message\|>", re.IGNORECASE)
END_TOKEN = re.compile(r"\s*<\|(?:end|return|im_end|eot_id|endoftext)\|>\s*\Z")
FENCE = re.compile(r"\s*(`{3,}|~{3,})[^\S\n]*[\w+.-]*[^\S\n]*\r?\n?")


def after_thinking(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span after a thinking block; the span is empty if the block never ends.

    A closing tag without an opening one ends thinking as well, because some chat templates write the opening tag themselves;
    inside JSON that has begun it is text.
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
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def find_candidates(text: str, start: int, end: int, work: WorkBudget, hints: ParseHints) -> Iterator[LenientResult]:
    """Yield the values of a text in order.

    A bracket in prose may be read as a value that is not valid; its inside is searched again. The inside of malformed JSON is
    not searched, because an inner object must not be taken for the answer.

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
        return _unescaped(text, at, end, work, hints), end
    except UnreadableError as error:
        if not like:
            return None, at + 1
        work.unreadable_at = error.position
        return None, _skip_broken(text, max(error.position, at + 1), end, error.depth, work)
    return result, result.end if like or not result.open else at + 1


def _exact(text: str, at: int, end: int, work: WorkBudget) -> LenientResult | None:
    """Read a value that is valid JSON, which is never altered; None if it is not valid, or seems to go on."""
    try:
        data, stop = DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        work.exact_attempts -= 1  # a failure is expensive: the error counts the lines of the whole text
        return None
    work.spend(stop - at)
    if stop > end or GOES_ON.match(text, stop, end):
        return None
    return LenientResult(data, at, stop, ())


DECODER = json.JSONDecoder(object_pairs_hook=unique_keys, parse_constant=refuse_constant)


def _with_closers(text: str, result: LenientResult, end: int) -> LenientResult:
    """Add a fix for extra closing brackets right after a value."""
    after = EXTRA.match(text, result.end, end)
    if result.open or after is None:
        return result
    return replace(result, fixes=(*result.fixes, Fix("extra-closer", after.start(1), "likely")))


def _skip_broken(text: str, at: int, end: int, depth: int, work: WorkBudget) -> int:
    """Return the end of a value that cannot be read: where all of its open brackets are closed."""
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
    """Read a value whose braces are all doubled, as in templates; None if they are not."""
    if not DOUBLED.match(text, start, end) or not text.startswith("}}", text.rfind("}", start, end) - 1):
        return None
    inner = text[start:end].replace("{{", "{").replace("}}", "}")
    result = _rewritten(inner, Fix("doubled-braces", start, "guess"), end, work, hints)
    return None if result is None or result.open else result


def _unescaped(text: str, start: int, end: int, work: WorkBudget, hints: ParseHints) -> LenientResult | None:
    """Read a value whose quotes are all escaped, as if it were inside a string."""
    inner = ESCAPE.sub(lambda escape: ESCAPES.get(escape[1], escape[1]), text[start:end])
    return _rewritten(inner, Fix("escaped-quotes", start, "likely"), end, work, hints)


def _rewritten(inner: str, fix: Fix, end: int, work: WorkBudget, hints: ParseHints) -> LenientResult | None:
    """Read the value of a text that a fix rewrote up to `end`; None if it is not readable."""
    work.spend(end - fix.position)
    result = try_value(inner, 0, len(inner), work, hints)
    if result is None:
        return None
    fixes = (fix, *(replace(each, position=fix.position) for each in result.fixes))
    return replace(result, start=fix.position, end=end, fixes=fixes)


OPENING = (*(f"<{tag}>" for tag in TAGS.split("|")), "[think]")
MAX_TAG_CHARS = 24
BRACKET = re.compile(r"[{\[]")
SOLID = re.compile(r"[^\s\ufeff]")
FIRST = {"{": '"}', "[": '"{[]-0123456789tfnTFN'}
"""The characters that may follow a bracket of JSON; others follow a bracket in prose."""


class AnswerStart:
    """Finds the opening bracket of an answer in pieces of text, passing over prose such as `{name}` or `[see above]`."""

    def __init__(self) -> None:
        self._lead: str | None = ""
        self._thinking = False
        self._bracket = ""

    def find(self, text: str) -> tuple[str, str] | None:
        """Take a piece of text; return the opening bracket and the text after it, None if there is none yet."""
        while text:
            if self._thinking:
                text = self._think(text)
            elif self._lead is not None:
                text = self._decide(self._lead, text)
            else:
                return self._find_in_prose(text)
        return None

    def _decide(self, lead: str, text: str) -> str:
        """Decide whether a thinking block opens; return the text that is left to read."""
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
        close = CLOSE.search(whole)
        if close is None:
            self._lead = whole[-MAX_TAG_CHARS:]
            return ""
        self._thinking, self._lead = False, ""
        return whole[close.end() :]

    def _find_in_prose(self, text: str) -> tuple[str, str] | None:
        at = 0
        while at < len(text):
            char = (SOLID if self._bracket else BRACKET).search(text, at)
            if char is None:
                return None
            bracket, at = self._bracket, char.end()
            self._bracket = char[0] if char[0] in FIRST else ""
            if bracket and char[0] in FIRST[bracket]:
                self._bracket = ""
                return bracket, text[char.start() :]
        return None
