"""Every value that stands in a text on its own: found by its bracket, read tolerantly, never from inside another one."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from taiwa.kernel import Json
from taiwa.shape.reading import Fix
from taiwa.shape.scan import BRACKETS, KEY, DepthError, EscapedError, UnreadableError, Work
from taiwa.shape.strings import Hints
from taiwa.shape.tolerant import Draft, read_value

__all__ = ["drafts", "reread"]

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


def drafts(text: str, start: int, end: int, work: Work, hints: Hints) -> Iterator[Draft]:
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


def _at(text: str, at: int, end: int, work: Work, hints: Hints) -> tuple[Draft | None, int]:
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


def _exact(text: str, at: int, end: int, work: Work) -> Draft | None:
    """Read a value that is JSON as it stands, which is never mended; None where it is not, or seems to go on."""
    try:
        data, stop = DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        work.exact -= 1  # the decoder's error counts the lines of the whole text
        return None
    work.spend(stop - at)
    if stop > end or GOES_ON.match(text, stop, end):
        return None
    return Draft(data, at, stop, ())


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is there twice")
    return made


def _finite(name: str) -> Json:
    raise ValueError(name)


DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_finite)


def _with_closers(text: str, draft: Draft, end: int) -> Draft:
    """Note closers right after a value, one too many as they are."""
    after = EXTRA.match(text, draft.end, end)
    if draft.open or after is None:
        return draft
    return replace(draft, fixes=(*draft.fixes, Fix("extra-closer", after.start(1), "likely")))


def _past(text: str, at: int, end: int, depth: int, work: Work) -> int:
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


def reread(text: str, draft: Draft, end: int, work: Work, hints: Hints) -> Draft | None:
    """Read a value again from its start with other hints, or give None where that cannot be read."""
    try:
        return read_value(text, draft.start, end, work, hints, bare_object=draft.bare)
    except UnreadableError:
        return None


def _bare_object(text: str, start: int, end: int, work: Work, hints: Hints) -> Draft | None:
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


def _doubled(text: str, start: int, end: int, work: Work, hints: Hints) -> Draft | None:
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


def _unescaped(text: str, start: int, end: int, work: Work, hints: Hints) -> Draft | None:
    """Read a value whose every quote is escaped, as if it stood inside of a string."""
    inner = ESCAPE.sub(lambda found: ESCAPES.get(found[1], found[1]), text[start:end])
    work.spend(end - start)
    try:
        draft = read_value(inner, 0, len(inner), work, hints)
    except UnreadableError:
        return None
    fixes = tuple(replace(fix, position=start) for fix in draft.fixes)
    return replace(draft, start=start, end=end, fixes=(Fix("escaped-quotes", start, "likely"), *fixes))
