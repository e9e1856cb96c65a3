"""Find the state delta in a reply, where a model put it: behind a delta line, behind a mark within a line, or as JSON alone.

A reply is read whole and while it streams by the same rules, so that no text is shown that may turn out to be the delta.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from taiwa.conversation.turn_prompt import DELTA_LINE
from taiwa.kernel.records import value

DECORATION = "*_`~#>"
"""Markdown that models put around a delta line."""

MARK = rf"(?:(?<!\S)[{DECORATION}]+[ \t]*)?@@[ ]?{DELTA_LINE[2:]}(?!\w)[{DECORATION}:]*"

LINE = re.compile(rf"(?mi)^[ \t]*{MARK}[ \t\r]*(?=[\n{{`]|\Z)\n?")

PLAIN_LINE = re.compile(rf"(?m)^[ \t]*{DELTA_LINE}[ \t\r]*(?=[\n{{`]|\Z)\n?")
"""The delta line as the prompt asks for it."""

JSON_NEXT = re.compile(r"\s*(?:```(?:json)?\s*)?(?=\{)")

INLINE = re.compile(rf"{MARK}{JSON_NEXT.pattern}(?=\{{\s*(?:[\"'}}]|\w+\s*(?::|\Z)|\Z))", re.IGNORECASE)
"""A mark anywhere, and an object behind it."""

FENCE_NEXT = re.compile(r"\s*(?:`{1,2}|```(?:|j|js|jso|json)\s*)?")

FENCE_END = re.compile(r"\s*(?:```)?\s*")

REST_OF_LINE = re.compile(rf"[ \t\r{DECORATION}]*(?:\n|\Z)")

UNFINISHED = re.compile(
    rf"(?:(?<!\S)[{DECORATION}]+[ \t]*)?(?:@(?:@ ?(?:d(?:e(?:l(?:t)?)?)?)?)?)?\Z|{MARK}{FENCE_NEXT.pattern}\Z",
    re.IGNORECASE,
)
"""The end of a text that may become a mark with JSON behind it."""

FENCE = r"```(?:json)?[ \t\r]*\n\s*"

UNFINISHED_OBJECT = re.compile(
    rf"^[ \t]*(?:`{{1,2}}|```(?:|j|js|jso|json)[ \t\r]*|(?:{FENCE})?(?:\{{\s*(?:\"(?P<key>[^\"\n]*)(?:\"\s*)?)?)?)\Z",
    re.MULTILINE,
)
"""The end of a text that may become an object on lines of its own; `key` is the beginning of its first key."""

CLOSING = {True: re.compile(r"```"), False: re.compile(r"\n[ \t\r]*\n|```")}
"""What ends a malformed object with, and without, a fence."""

END = {True: re.compile(r"\s*`{0,3}\s*\Z"), False: re.compile(r"\s*\Z")}
"""What may stand behind an object with, and without, a fence at the end of a reply."""

CUT_VALUE = re.compile(r"\s*[\w+.-]*\s*|\\?u?[0-9A-Fa-f]{0,4}")
"""The rest of a text that ends within a value of JSON, or within an escape."""

DECODER = json.JSONDecoder()

CANDIDATES = 20
"""The number of the last places of a text at which a delta without a line of its own is looked for."""


@value
class DeltaSpan:
    """Where the delta of a reply begins, with its mark and fence, and where its JSON begins."""

    start: int
    json: int


def find_delta(text: str, names: Sequence[str], *, exact: bool = False) -> DeltaSpan | None:
    """Find the delta of a reply, or of its beginning, whose state has fields of these names.

    The newest delta line with JSON behind it counts. Without one, the first object behind a mark within a line on which no
    other text follows, and then an object whose keys are `names`, on lines of its own at the end of the reply. `exact` looks
    only for a delta line as the prompt asks for it.
    """
    lines = (PLAIN_LINE if exact else LINE).finditer(text)
    line = next((line for line in reversed([*lines]) if JSON_NEXT.match(text, line.end())), None)
    if line is not None or exact:
        return line and DeltaSpan(line.start(), line.end())
    return next(_marked(text), None) or next(_unmarked(text, tuple(names)), None)


def certain_answer(text: str, names: Sequence[str]) -> int:
    """Return how many characters of a reply that still streams belong to its answer for certain."""
    delta = find_delta(text, names)
    ends = [len(text) if delta is None else delta.start]
    if mark := UNFINISHED.search(text):
        ends.append(mark.start())
    if (begun := UNFINISHED_OBJECT.search(text)) and any(name.startswith(begun["key"] or "") for name in names):
        ends.append(begun.start())
    return len(text[: min(ends)].rstrip())


def _marked(text: str) -> Iterator[DeltaSpan]:
    for found in _newest(INLINE.finditer(text)):
        end = _object_end(text, found.end())
        if end is None or REST_OF_LINE.match(text, end):
            yield DeltaSpan(found.start(), found.end())


def _unmarked(text: str, names: tuple[str, ...]) -> Iterator[DeltaSpan]:
    for found in _newest(_object_of(names).finditer(text)) if names else ():
        is_fenced, start = found["fence"] is not None, found.end()
        try:
            data, end = DECODER.raw_decode(text, start)
        except RecursionError:
            is_delta = True
        except json.JSONDecodeError as error:
            closing = None if _is_cut(text, error) else CLOSING[is_fenced].search(text, start)
            is_delta = closing is None or END[is_fenced].match(text, closing.start()) is not None
        else:
            is_delta = END[is_fenced].match(text, end) is not None and data.keys() <= set(names)
        if is_delta:
            yield DeltaSpan(found.start(), start)


@lru_cache(maxsize=64)
def _object_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of an object on lines of its own that is empty or whose first key is one of the names."""
    keys = "|".join(map(re.escape, names))
    return re.compile(rf"^[ \t]*(?P<fence>{FENCE})?(?=\{{\s*(?:\}}|\"(?:{keys})\"\s*:))", re.MULTILINE)


def _newest(found: Iterable[re.Match[str]]) -> Iterable[re.Match[str]]:
    return deque(found, maxlen=CANDIDATES)


def _object_end(text: str, start: int) -> int | None:
    """Return the end of the JSON object at `start`; None if it is not whole, or malformed."""
    try:
        return DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Say whether JSON is invalid only because the text ends within it."""
    return error.msg.startswith("Unterminated") or CUT_VALUE.fullmatch(text, error.pos) is not None
