"""Parse a reply into answer and state delta, and show only its answer while it streams."""

import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Any, ClassVar, cast

from taiwa.conversation.app import App, ReplyLayout
from taiwa.conversation.state import NOT_FIELDS, delta_output_type, environment_output_type, shorten_delta
from taiwa.conversation.turn_prompt import DELTA_LINE, ENVIRONMENT
from taiwa.kernel.effects import HideOutput, Watcher, WatchResult
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.serialization import Json, digest, exact_json, value
from taiwa.kernel.text import whole_characters
from taiwa.kernel.wording import Wording
from taiwa.structured import OutputType, ParseResult, PartialParser
from taiwa.structured.validators import FieldsValidator

DECORATION = "*_`~#>"
"""Markdown that models put around a delta line."""

MARK = rf"(?:(?<!\S)[{DECORATION}]+[ \t]*)?@@[ ]?{DELTA_LINE[2:]}(?!\w)[{DECORATION}:]*"

LINE = re.compile(rf"(?mi)^[ \t]*{MARK}[ \t\r]*(?=[\n{{`]|\Z)\n?")

JSON_NEXT = re.compile(r"\s*(?:```(?:json)?\s*)?(?=\{)")

INLINE = re.compile(rf"{MARK}{JSON_NEXT.pattern}(?=\{{\s*(?:[\"'}}]|\w+\s*(?::|\Z)|\Z))", re.IGNORECASE)
"""A marker anywhere, followed by an object."""

AFTER_LINE = re.compile(r"\s*(?:```(?:json)?\s*)?(?=[\[{])")

NEXT_OBJECT = re.compile(rf"\s*(?:{MARK}[ \t\r]*)?{JSON_NEXT.pattern}", re.IGNORECASE)

FENCE_NEXT = re.compile(r"\s*(?:`{1,2}|```(?:|j|js|jso|json)\s*)?")

FENCE_END = re.compile(r"\s*(?:```)?\s*")

REST_OF_LINE = re.compile(rf"[ \t\r{DECORATION}]*(?:\n|\Z)")

UNFINISHED = re.compile(
    rf"(?:(?<!\S)[{DECORATION}]+[ \t]*)?(?:@(?:@ ?(?:d(?:e(?:l(?:t)?)?)?)?)?)?\Z|{MARK}{FENCE_NEXT.pattern}\Z",
    re.IGNORECASE,
)
"""The end of a text that may become a marker followed by JSON."""

FENCE = r"```(?:json)?[ \t\r]*\n\s*"

UNFINISHED_OBJECT = re.compile(
    r"^[ \t]*(?:`{1,2}|```\w*[ \t\r]*|(?:```\w*[ \t\r]*\n\s*)?(?:\{\s*(?:\"(?P<key>[^\"\n]*)(?:\"\s*)?)?)?)\Z",
    re.MULTILINE,
)
"""The end of a text that may become an object on lines of its own; `key` is the beginning of its first key."""

FENCE_LINE = re.compile(r"^[ \t]*```", re.MULTILINE)

OPEN_FENCE = re.compile(r"^[ \t]*```\w*[ \t\r]*\n\s*\Z", re.MULTILINE)
"""A fence around a delta and its line."""

CLOSING = {True: re.compile(r"```"), False: re.compile(r"\n[ \t\r]*\n|```")}
"""What ends a malformed object with, and without, a fence."""

END = {True: re.compile(r"\s*`{0,3}\s*\Z"), False: re.compile(r"\s*\Z")}
"""What may follow an object, with and without a fence, at the end of a reply."""

CUT_VALUE = re.compile(r"\s*[\w+.-]*\s*|\\?u?[0-9A-Fa-f]{0,4}")
"""The rest of a text that ends within a JSON value or an escape."""

DECODER = json.JSONDecoder()

CANDIDATES = 20
"""The number of positions at the end of a text at which a delta without its own line is searched for."""


@value
class DeltaSpan:
    """The start of the delta of a reply, with its marker and fence, and the start of its JSON."""

    start: int
    json: int


def find_delta(text: str, names: Sequence[str]) -> DeltaSpan | None:
    """Find the delta of a reply, or of its beginning, whose state has fields of these names.

    The last delta line followed by JSON counts, with those directly before it; else the first object after a marker within a line, if no
    other text follows on that line; else an object with keys among `names`, on separate lines at the end of the reply.
    """
    span: DeltaSpan | None = None
    for line in reversed([*LINE.finditer(text)]):
        end = _end_of_json(text, line.end())
        if span is not None and (end == line.end() or not FENCE_END.fullmatch(text, end, span.start)):
            break
        if span is not None or AFTER_LINE.match(text, line.end()):
            span = DeltaSpan(line.start(), line.end())
    span = span or next(_marked(text), None)
    if span is None:
        return next(_unmarked(text, tuple(names)), None)
    opened = OPEN_FENCE.search(text, 0, span.start)
    is_open = opened is not None and len(FENCE_LINE.findall(text, 0, span.start)) % 2
    if opened is not None and is_open and "```" in text[_end_of_json(text, span.json) :]:
        return DeltaSpan(opened.start(), span.json)
    return span


def _end_of_json(text: str, start: int) -> int:
    """Return the end of the object that follows `start`, or `start` if none does that is whole."""
    begun = JSON_NEXT.match(text, start)
    return (begun and _object_end(text, begun.end())) or start


def certain_answer(text: str, names: Sequence[str]) -> int:
    """Return the number of characters of a streaming reply that certainly belong to its answer."""
    if JSON_NEXT.match(text) and ((end := _end_of_json(text, 0)) == 0 or END[True].match(text, end)):
        return 0  # it may be one object
    delta = find_delta(text, names)
    ends = [len(text) if delta is None else delta.start]
    if mark := UNFINISHED.search(text):
        ends.append(mark.start())
    ends += [fence.start() for end in ends if (fence := OPEN_FENCE.search(text, 0, end))]
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
    """Return the pattern of an object on separate lines that is empty or whose first key is one of the names."""
    keys = "|".join(map(re.escape, names))
    return re.compile(rf"^[ \t]*(?P<fence>{FENCE})?(?=\{{\s*(?:\}}|\"(?:{keys})\"\s*:))", re.MULTILINE)


def _newest(found: Iterable[re.Match[str]]) -> Iterable[re.Match[str]]:
    return deque(found, maxlen=CANDIDATES)


def _object_end(text: str, start: int) -> int | None:
    """Return the end of the JSON object at `start`; None if it is incomplete or malformed."""
    try:
        return DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Return whether JSON is invalid only because the text ends within it."""
    return error.msg.startswith("Unterminated") or CUT_VALUE.fullmatch(text, error.pos) is not None


class MemberWatcher:
    """Shows the string member `name` of a JSON reply while it streams; `parse` returns the answer of the whole reply.

    If that answer differs from what was shown, it is shown too, so that the user sees what is stored.
    """

    __slots__ = ("_is_whole", "_name", "_parse", "_parser", "_pieces", "_shown")

    def __init__(self, name: str, parse: Callable[[str], str]) -> None:
        self._name = name
        self._parse = parse
        self._parser = PartialParser(_any_object())
        self._is_whole = False
        self._pieces: list[str] = []
        self._shown: list[str] = []

    def feed(self, text: str) -> WatchResult:
        """Show the next characters of the string."""
        self._pieces.append(text)
        show, in_delta = "", self._is_whole and bool(text.strip("} \n"))
        for update in () if self._is_whole else self._parser.feed(text):
            if update.path == (self._name,) and not self._is_whole:
                self._is_whole = update.closed
                show = whole_characters(update.value) if isinstance(update.value, str) else ""
                if update.closed:  # then the value has all that was shown of it, too
                    show = show.removeprefix("".join(self._shown))
                self._shown.append(show)
            in_delta = in_delta or (bool(update.path) and update.path[0] != self._name)
        return WatchResult(show, in_delta=in_delta)

    def close(self) -> WatchResult:
        """Show what is known only from the whole reply."""
        answer, shown = self._parse("".join(self._pieces)), "".join(self._shown)
        return WatchResult(answer.removeprefix(shown) if answer.startswith(shown) else f"\n\n{answer}")


@cache
def _any_object() -> OutputType[dict[str, Json]]:
    return OutputType(FieldsValidator(dict[str, Any]))


NOTES_LINE = re.compile(r"^\[Notes: \{.*\}\]\s*$\n?", re.MULTILINE)
"""The notes of the layout `record`, which small models copy into their reply."""

OPENED = re.compile(rf"{ENVIRONMENT[0]}{JSON_NEXT.pattern}")

BEGINS_DELTA = re.compile(r"[\n@*_`~#>]")

SCAN_EACH_CHUNK = 1_000
"""Characters of held-back text up to which it is scanned with every chunk; above, only when it has doubled, so that the
work is linear."""


@value
class ParsedReply:
    """A parsed reply: its answer, its state delta, or None and the problems of the delta, one line each.

    `usable` is what fits of a delta with problems, and `refused` says why a field, or a part of it, does not. `missing` says that the
    model wrote no delta, which is not the same as a delta that changes nothing. `repairs` names what was repaired in the JSON of a typed
    answer, and `written` is its text before: the JSON of a value need not be one of its type.
    """

    answer: str
    delta: dict[str, Json] | None
    problems: tuple[str, ...] = ()
    missing: bool = False
    repairs: tuple[str, ...] = ()
    written: str = ""
    usable: dict[str, Json] = field(default_factory=dict[str, Json])
    refused: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def fits(self) -> dict[str, Json]:
        """What can be used of the delta."""
        return self.usable if self.delta is None else self.delta

    def repaired(self, again: "ParsedReply", names: Collection[str], tables: Collection[str] = ()) -> "ParsedReply":
        """Return the reply with a delta that was written again, whole or in part: what fits of either counts, the later one first.

        A field of these names that fitted in neither stays refused; other keys may have been taken back. An entry that fitted in one
        of the `tables` stays where the other ones of it are written again.
        """
        usable = self.usable | again.fits
        for name in self.refused.keys() & {*tables}:
            before, after = self.usable.get(name), usable.get(name)
            if isinstance(before, dict) and isinstance(after, dict):
                usable[name] = before | after
        is_read = again.delta is not None or again.refused
        refused = {
            name: lines
            for name, lines in (again.refused | self.refused).items()
            if name in again.refused or not (name in again.fits or (is_read and name not in names))
        }
        merged = replace(self, usable=usable, refused=refused, problems=again.problems)
        return merged if again.delta is None else merged.settled() if refused else replace(merged, delta=merged.usable)

    def settled(self, *problems: str) -> "ParsedReply":
        """Return the reply with what can be used of its delta; the problems are those of the rest, after some others."""
        lines = tuple(line for lines in self.refused.values() for line in lines)
        return replace(self, delta=self.fits or None, problems=(*problems, *(lines or self.problems)))


def parse_reply(app: App, text: str, layout: ReplyLayout | None = None) -> ParsedReply:
    """Parse a reply into answer and state delta by its layout, which is that of a model without schemas unless one is given.

    A reply without a delta changes nothing, unless a field is required. Cached, because the watcher of a reply parses it at its
    end, and the turn does so again.
    """
    return _parse_reply(app, app.code_type, text, layout or app.layout())


@lru_cache(maxsize=16)
def _parse_reply(app: App, _code_type: OutputType[Any] | None, text: str, layout: ReplyLayout) -> ParsedReply:
    """Parse a reply; equal apps may have other types of code."""
    if app.output_type is not None:
        if layout == "json" and app.model_fields:
            return _parse_typed_reply(app, app.output_type, text)
        return parse_typed(app.output_type, text)
    if not app.model_fields or layout == "record":
        return ParsedReply(whole_characters(NOTES_LINE.sub("", text) if app.model_fields else text), {})
    if layout == "environment":
        return _parse_environment(app, text)
    return _parse_json(app, text) if layout == "json" else _parse_text(app, text)


def parse_delta(app: App, text: str, layout: ReplyLayout | None = None, *, full: bool = False) -> ParsedReply:
    """Parse a state delta without an answer, as after a repair.

    In a `full` delta every field is named, and null says that one stays as it is.
    """
    is_environment = (layout or app.layout()) == "environment"
    try:
        data = _any_object().parse(text).value
    except OutputValidationError:
        whole = _parse_as(app.environment_type if is_environment else app.delta_type, text)
        is_cut = whole.delta is None and not text.rstrip().endswith(("}", "`"))
        members = _whole_members(text) if is_cut else {}
        return _cut(whole, _fit(app, members, is_environment=is_environment)) if members else whole
    if not is_environment:
        return fit_delta(app, data, text, full=full)
    computed = {field.name for field in app.fields if field.computed}
    written = {name: part for name, part in data.items() if name not in computed}
    return _fit(app, written, text if written == data else "", is_environment=True)


def fit_delta(app: App, data: Mapping[str, Json], text: str = "", *, full: bool = False) -> ParsedReply:
    """Return JSON as a delta, without what does not count; `text` is the text that consists of it alone."""
    names, inner = {*_names(app)}, next(iter(data.values()), None)
    is_around = len(data) == 1 and not data.keys() & names and isinstance(inner, dict) and inner.keys() <= names
    delta = shorten_delta(app.fields, cast("dict[str, Json]", inner) if is_around and inner else data, full=full)
    return _fit(app, delta, text if text and delta == data else "")


def _fit(app: App, data: dict[str, Json], text: str = "", *, is_environment: bool = False) -> ParsedReply:
    """Check a delta; if it does not fit, each field of it alone, and of one that does not, each entry that is added to a list or table.

    A value that replaces the one before counts whole or not at all: without an entry that does not fit, it would remove the one before.
    """
    whole = _parse_as(app.environment_type if is_environment else app.delta_type, text or json.dumps(data))
    if whole.delta is not None:
        return whole
    fields = [replace(field, required=False) for field in app.fields]
    kind = environment_output_type(fields, whole=False) if is_environment else delta_output_type(fields)
    known = [field.name for field in app.model_fields] + ["response"] * is_environment
    added = {each.name for each in app.model_fields if each.reducer.delta_kind != "value" and not is_environment}
    needed = known if is_environment else [field.name for field in app.model_fields if field.required]
    usable, refused = dict[str, Json](), dict[str, tuple[str, ...]]()
    refused |= {name: (f"$.{name}: missing",) for name in needed if name not in data}
    for name, part in data.items():
        if name not in known:
            names = ", ".join(known)
            refused[name] = (Wording("the state has no field {name!r}; fields: {names}", name=name, names=names),)
            continue
        read = _parse_as(kind, json.dumps({name: part}))
        if read.delta is None:
            refused[name] = tuple(line.replace("$:", f"$.{name}:", 1) for line in read.problems)
            left = _fitting(kind, name, part) if name in added else None
            read = _parse_as(kind, json.dumps({name: left})) if left else read
        usable |= read.delta or {}
    return replace(whole, usable=usable, refused=refused)


def _fitting(kind: OutputType[dict[str, Json]], name: str, part: Json) -> Json:
    """Return the entries of a list or table that fit alone; null for other values."""

    def fits(alone: Json) -> bool:
        return _parse_as(kind, json.dumps({name: alone})).delta is not None

    if isinstance(part, dict):
        return {key: each for key, each in part.items() if fits({key: each})}
    return [each for each in part if fits([each])] if isinstance(part, list) else None


def _cut(whole: ParsedReply, parts: ParsedReply) -> ParsedReply:
    """Return a reply that ends within its delta, with the parts of that which are whole."""
    return replace(whole, usable=parts.fits, refused=parts.refused)


def _whole_members(text: str, *path: str) -> dict[str, Json]:
    """Return the members of an object, at a path, that are whole in a text that ends within it."""
    updates = PartialParser(_any_object()).feed(text)
    return {str(at[-1]): each.value for each in updates if each.closed and (at := each.path)[:-1] == path and at}


def _parse_as(output_type: OutputType[dict[str, Json]], text: str) -> ParsedReply:
    try:
        return _storable("", output_type.parse(text).value)
    except OutputValidationError as error:
        return ParsedReply("", None, error.diagnostics or (error.message,))


def parse_typed(output_type: OutputType[Json], text: str) -> ParsedReply:
    """Parse a typed answer; it is kept as JSON on one line."""
    try:
        result = output_type.parse(text)
        answer = json.dumps(output_type.dump(result.value), ensure_ascii=False)
    except OutputValidationError as error:
        return ParsedReply(whole_characters(text), None, error.diagnostics or (error.message,))
    return ParsedReply(whole_characters(answer), {}, repairs=_repairs(result), written=text)


def _repairs(result: ParseResult[Any]) -> tuple[str, ...]:
    """Return the codes of the changes that may have changed a value."""
    return tuple(dict.fromkeys(fix.code for fix in result.fixes if fix.level != "safe"))


def _parse_typed_reply(app: App, output_type: OutputType[Json], text: str) -> ParsedReply:
    """Parse a `json` reply whose answer has a type; the answer may stand there without its key, or before a delta line."""
    line = next((line for line in LINE.finditer(text) if AFTER_LINE.match(text, line.end())), None)
    try:
        result = _any_object().parse(text[: line and line.start()])
    except OutputValidationError as error:
        return ParsedReply(whole_characters(text), None, error.diagnostics or (error.message,))
    data = result.value
    bare = {name: part for name, part in data.items() if name != "delta"}
    read = [parse_typed(output_type, exact_json(each, allow_nan=True)) for each in (data.get("answer"), bare)]
    typed = next((each for each in read if each.delta is not None), None)
    if typed is None:
        return replace(read[0], problems=tuple(f"$.answer{line.removeprefix('$')}" for line in read[0].problems))
    parsed = _with_delta(app, typed.answer, data.get("delta") if line is None else text[line.end() :])
    return replace(parsed, repairs=_repairs(result), written=typed.written)


def _storable(answer: str, delta: dict[str, Json]) -> ParsedReply:
    """Accept only a delta that can be recorded in a node."""
    try:
        digest(delta)
    except InputError as error:
        return ParsedReply(whole_characters(answer), None, (f"$: {error.message}",))
    return ParsedReply(whole_characters(answer), delta)


def _parse_text(app: App, text: str) -> ParsedReply:
    if (told := _parse_object(app, text)) is not None:
        return told
    delta = find_delta(text, _names(app))
    if delta is None:
        return _without_delta(app, text)
    inner, behind = _split_delta(text[delta.json :], _names(app))
    before, behind = text[: delta.start].rstrip(), behind.rstrip()
    said = (
        before if before.strip() == behind.strip() else f"{before}\n{behind}" if before and behind else before or behind
    )
    return replace(parse_delta(app, inner, "text+delta"), answer=whole_characters(said))


def _names(app: App) -> tuple[str, ...]:
    """Return the keys by which a delta is recognised; those of computed fields too, which models echo."""
    return tuple(field.name for field in app.fields)


def _without_delta(app: App, text: str) -> ParsedReply:
    """Parse a reply without JSON; a delta line at its end is not part of the answer."""
    last = next((line for line in LINE.finditer(text) if FENCE_NEXT.fullmatch(text, line.end())), None)
    answer = whole_characters(text[: None if last is None else last.start()].rstrip())
    if not _needs_delta(app):
        return ParsedReply(answer, {}, missing=True)
    return ParsedReply(answer, None, (f"{'there is no' if last is None else 'nothing follows the'} {DELTA_LINE} line",))


def _parse_object(app: App, text: str, *, full: bool = False) -> ParsedReply | None:
    """Parse a reply that is one object of a text and the state, as other layouts have it; None for any other, which the user may have
    asked for. Under keys of ours the state may stand beside the text, else it is the object `state` or `delta`.
    """
    begun, end = JSON_NEXT.match(text), _end_of_json(text, 0)
    if begun is None or not end or END[True].match(text, end) is None:
        return None
    data: dict[str, Json] = json.loads(text[begun.end() : end])
    names = {*_names(app)}
    beside = {name: part for name, part in data.items() if name in names}
    around = {name: part for name, part in data.items() if name not in names and part is not None}
    texts = [part for part in around.values() if isinstance(part, str)]
    inner = [part for part in around.values() if isinstance(part, dict)]
    is_ours = around.keys() <= {"delta", *NOT_FIELDS}
    if not is_ours and not any(around.get(name) in inner for name in ("delta", "state")):
        return None
    if len(texts) != 1 or len(texts) + len(inner) != len(around) or len(inner) + bool(beside) != 1:
        return None
    return replace(fit_delta(app, inner[0] if inner else beside, full=full), answer=whole_characters(texts[0]))


def _split_delta(rest: str, names: Collection[str]) -> tuple[str, str]:
    """Split the JSON after a delta line from the text after it, which belongs to the answer.

    Objects of fields of these names that follow each other, with delta lines of their own or not, are one delta.
    """
    found, at = list[str](), 0
    while (start := NEXT_OBJECT.match(rest, at)) and (end := _object_end(rest, start.end())):
        if found and not json.loads(rest[start.end() : end]).keys() <= {*names}:
            break
        found.append(rest[start.end() : end])
        fence = FENCE_END.match(rest, end)
        at = end if fence is None else fence.end()
        at = rest_of_line.end() if (rest_of_line := REST_OF_LINE.match(rest, at)) else at
    if len(found) > 1:
        joined: dict[str, Json] = {}
        for each in map(json.loads, found):
            joined |= {name: join_parts(joined.get(name), part) for name, part in each.items()}
        return json.dumps(joined), rest[at:].rstrip()
    return (found[0], rest[at:].rstrip()) if found else (rest, "")


def join_parts(before: Json, after: Json) -> Json:
    """Join what is written twice to a field: the items of lists that differ, the entries of tables; else the later counts."""
    if isinstance(before, list) and isinstance(after, list) and before != after:
        return [*before, *after]
    if isinstance(before, dict) and isinstance(after, dict):
        return before | after
    return after


@cache
def _reply_type() -> OutputType[dict[str, Json]]:
    return OutputType.fields("Reply", {"delta": object, "answer": str}, required=frozenset({"answer"}))


def _needs_delta(app: App) -> bool:
    return any(field.required for field in app.model_fields)


def _parse_json(app: App, text: str) -> ParsedReply:
    try:
        result = _reply_type().parse(text)
    except OutputValidationError as error:
        return _parse_other(app, text, error.diagnostics or (error.message,))
    parsed = _with_delta(app, str(result.value["answer"]), result.value.get("delta"))
    return replace(parsed, repairs=_repairs(result))


def _parse_other(app: App, text: str, problems: tuple[str, ...]) -> ParsedReply:
    """Parse what is not a reply in JSON: text, with or without a delta line, JSON that is cut, or whose answer is not a text."""
    if (told := _parse_object(app, text, full=True)) is not None:
        return told
    if not text.lstrip().startswith("{") and ("{" not in text or find_delta(text, _names(app)) is not None):
        return _parse_text(app, text.strip())
    answer, delta = _partial_answer("answer", text), _whole_members(text).get("delta")
    if delta is not None and answer != text.strip():
        return _with_delta(app, answer, delta)
    return _cut(ParsedReply(answer, None, problems), fit_delta(app, _whole_members(text, "delta"), full=True))


def _with_delta(app: App, answer: str, delta: Json) -> ParsedReply:
    """Add the delta of a reply in JSON, which may be JSON in a string or a list of one object."""
    answer = whole_characters(answer)
    if delta is None and not _needs_delta(app):
        return ParsedReply(answer, {}, missing=True)
    text = delta if isinstance(delta, str) else exact_json(delta or {}, allow_nan=True)
    parsed = parse_delta(app, text, "json", full=True)
    return replace(
        parsed, answer=answer, problems=tuple(f"$.delta{line.removeprefix('$')}" for line in parsed.problems)
    )


def _parse_environment(app: App, text: str) -> ParsedReply:
    opened, end = OPENED.search(text), text.rfind(ENVIRONMENT[1])
    start = 0 if opened is None else opened.end()
    inner = text[start : end if end > start else len(text)]
    parsed = parse_delta(app, inner, "environment")
    said = parsed.fits.get("response")
    return replace(parsed, answer=_partial_answer("response", inner) if said is None else whole_characters(str(said)))


def _partial_answer(member: str, text: str) -> str:
    """Return the answer of an unparsable reply: the part that can be read, as JSON if it is not a text, or all of a text without JSON."""
    parser = PartialParser(_any_object())
    parser.feed(text)
    if not isinstance(parser.view, dict) or not parser.view.keys() & {member, "delta"}:
        return whole_characters(text.strip())
    found = parser.view.get(member)
    return whole_characters(found if isinstance(found, str) else "" if found is None else json.dumps(found))


class AnswerWatcher:
    """Shows the answer of a `text+delta` reply while it streams; holds back what may be the delta line and its JSON.

    `parse` returns the answer of the whole reply; `names` are those of the fields that the model writes.
    """

    __slots__ = ("_names", "_parse", "_pending", "_pieces", "_scan_at", "_shown", "_size")

    def __init__(self, parse: Callable[[str], str], names: Sequence[str] = ()) -> None:
        self._parse = parse
        self._names = names
        self._pieces: list[str] = []
        self._pending: list[str] = []
        self._size = 0
        self._scan_at = 0
        self._shown = 0

    def feed(self, text: str) -> WatchResult:
        """Show all that cannot be part of the delta."""
        self._pieces.append(text)
        self._pending.append(text)
        self._size += len(text)
        if self._size < self._scan_at:
            return WatchResult()
        pending = "".join(self._pending)
        if self._shown and not BEGINS_DELTA.search(pending):
            end = len(pending.rstrip())
        else:  # what was shown ends within a line
            lead = "." if self._shown else ""
            end = max(certain_answer(lead + pending, self._names) - len(lead), 0)
        self._pending, self._size = [pending[end:]], len(pending) - end
        self._scan_at = 2 * self._size if self._size > SCAN_EACH_CHUNK else 0
        self._shown += end
        return WatchResult(whole_characters(pending[:end]), in_delta=DELTA_LINE in self._pending[0])

    def close(self) -> WatchResult:
        """Show the held-back text that belongs to the answer."""
        return WatchResult(self._parse("".join(self._pieces))[self._shown :])


@dataclass(frozen=True, slots=True)
class TypedWatch:
    """Makes the watchers of typed answers, whose text is not shown; `in_member`: the answer is that member of the reply."""

    output_type: OutputType[Any]
    in_member: bool
    hides: ClassVar[bool] = True

    def __call__(self) -> Watcher:
        """Watch the next reply."""
        return _TypedWatcher(_any_object() if self.in_member else self.output_type, in_member=self.in_member)


class _TypedWatcher(HideOutput):
    __slots__ = ("_in_member", "_known", "_parser")

    def __init__(self, output_type: OutputType[Any], *, in_member: bool) -> None:
        self._parser = PartialParser(output_type)
        self._in_member = in_member
        self._known: Json = None

    def feed(self, text: str) -> WatchResult:
        """Pass on the value so far, if the text changes it."""
        if not self._parser.feed(text):
            return WatchResult()
        value = _snapshot(self._parser.view, self._parser.open)
        if self._in_member:
            value = value.get("answer") if isinstance(value, dict) else None
        if value == self._known:
            return WatchResult()
        self._known = value
        return WatchResult(partial=value)


def _snapshot(view: Json, path: tuple[str | int, ...]) -> Json:
    """Copy a partial value where it is being written: to copy what is complete would take time in its square."""
    if not isinstance(view, (dict, list)):
        return view
    copied = cast("dict[str | int, Json]", view.copy())
    if path:
        with suppress(LookupError):  # nothing is written there yet
            copied[path[0]] = _snapshot(copied[path[0]], path[1:])
    return cast("Json", copied)


def reply_watcher(app: App, prefix: str = "", layout: ReplyLayout | None = None) -> Callable[[], Watcher] | None:
    """Return the factory of the watcher that shows only the answer of an app's replies; None if no watcher is needed.

    A typed answer is shown when it is complete, since it may be repaired; what is certain of its value is passed on before. If a reply
    continues a `prefix`, only the rest is shown.
    """
    layout = layout or app.layout()
    if prefix and (watch := reply_watcher(app, layout=layout)) is not None:

        def fed() -> Watcher:
            watcher = watch()
            watcher.feed(prefix)
            return watcher

        return fed
    if app.output_type is not None:
        return TypedWatch(app.output_type, in_member=layout == "json" and bool(app.model_fields))
    if not app.model_fields or layout == "record":
        return None

    def parse(text: str) -> str:
        return parse_reply(app, text, layout).answer

    if layout == "text+delta":
        return partial(AnswerWatcher, parse, _names(app))
    return partial(MemberWatcher, "answer" if layout == "json" else "response", parse)
