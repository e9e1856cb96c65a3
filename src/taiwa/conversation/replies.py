"""Parse a reply into answer and state delta, and show only its answer while it streams."""

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache, partial

from taiwa.conversation.app import App
from taiwa.conversation.turn_prompt import DELTA_LINE, ENVIRONMENT
from taiwa.kernel.effects import HideOutput, Watcher, WatchResult
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.records import Json, digest, value
from taiwa.kernel.text import whole_characters
from taiwa.structured import OutputType, PartialParser


class MemberWatcher:
    """Shows the string member `name` of a JSON reply while it streams; `parse` returns the answer of the whole reply.

    Where that answer differs from what was shown, it is shown as well, so that the user sees what is stored.
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
        show = ""
        for update in () if self._is_whole else self._parser.feed(text):
            if update.path == (self._name,) and not self._is_whole:
                self._is_whole = update.closed
                show = whole_characters(update.value) if isinstance(update.value, str) else ""
                if update.closed:  # then the value has all that was shown of it, too
                    show = show.removeprefix("".join(self._shown))
                self._shown.append(show)
        return WatchResult(show)

    def close(self) -> WatchResult:
        """Show what is known only from the whole reply."""
        answer, shown = self._parse("".join(self._pieces)), "".join(self._shown)
        return WatchResult(answer.removeprefix(shown) if answer.startswith(shown) else f"\n\n{answer}")


@cache
def _any_object() -> OutputType[dict[str, object]]:
    return OutputType(dict[str, object])


LINE = re.compile(rf"(?m)^[ \t]*{DELTA_LINE}[ \t\r]*(?=[\n{{`]|\Z)\n?")

JSON_NEXT = re.compile(r"\s*(?:```(?:json)?\s*)?(?=\{)")

FENCE_NEXT = re.compile(r"\s*(?:`{1,2}|```(?:|j|js|jso|json)\s*)?")

FENCE_END = re.compile(r"\s*(?:```)?\s*")

OPENED = re.compile(rf"{ENVIRONMENT[0]}{JSON_NEXT.pattern}")

SCAN_EACH_CHUNK = 1_000
"""Characters of held text up to which it is scanned with every chunk; above, only when it has doubled, so that the work is
linear in the length of the text."""


@value
class ParsedReply:
    """A parsed reply: its answer, its state delta, or None and the problems of the delta, one line each."""

    answer: str
    delta: dict[str, Json] | None
    problems: tuple[str, ...] = ()


@lru_cache(maxsize=16)
def parse_reply(app: App, text: str) -> ParsedReply:
    """Parse a reply into answer and state delta by the app's reply mode.

    Cached, because the watcher of a reply parses it at its end, and the turn does so again.
    """
    if app.output_type is not None:
        return _parse_typed(app.output_type, text)
    if not app.model_fields:
        return ParsedReply(whole_characters(text), {})
    if app.reply == "environment":
        return _parse_environment(app, text)
    return _parse_json(app, text) if app.reply == "json" else _parse_text(app, text)


def parse_delta(app: App, text: str) -> ParsedReply:
    """Parse a state delta without an answer, as after a repair; a typed answer is the whole reply."""
    if app.output_type is not None:
        return _parse_typed(app.output_type, text)
    output_type = app.environment_type if app.reply == "environment" else app.delta_type
    try:
        return _storable("", output_type.parse(text).value)
    except OutputValidationError as error:
        return ParsedReply("", None, error.diagnostics or (error.message,))


def _parse_typed(output_type: OutputType[Json], text: str) -> ParsedReply:
    """Parse a typed answer; it is kept as JSON on one line."""
    try:
        answer = json.dumps(output_type.dump(output_type.parse(text).value), ensure_ascii=False)
    except OutputValidationError as error:
        return ParsedReply(whole_characters(text), None, error.diagnostics or (error.message,))
    return ParsedReply(whole_characters(answer), {})


def _storable(answer: str, delta: dict[str, Json]) -> ParsedReply:
    """Accept only a delta that can be recorded in a node."""
    try:
        digest(delta)
    except InputError as error:
        return ParsedReply(whole_characters(answer), None, (f"$: {error.message}",))
    return ParsedReply(whole_characters(answer), delta)


def _parse_text(app: App, text: str) -> ParsedReply:
    mark = next((line for line in reversed([*LINE.finditer(text)]) if JSON_NEXT.match(text, line.end())), None)
    if mark is None:
        return _without_delta(text)
    answer, rest = text[: mark.start()].rstrip(), text[mark.end() :]
    inner, behind = _split_delta(rest)
    parsed = parse_delta(app, inner)
    return ParsedReply(whole_characters(answer or behind), parsed.delta, parsed.problems)


def _without_delta(text: str) -> ParsedReply:
    """Parse a reply without JSON; a delta line at its end is not part of the answer."""
    last = next((line for line in LINE.finditer(text) if FENCE_NEXT.fullmatch(text, line.end())), None)
    if last is None:
        return ParsedReply(whole_characters(text.rstrip()), None, (f"there is no {DELTA_LINE} line",))
    return ParsedReply(
        whole_characters(text[: last.start()].rstrip()), None, (f"nothing follows the {DELTA_LINE} line",)
    )


def _split_delta(rest: str) -> tuple[str, str]:
    """Split the JSON behind a delta line from the text behind it, which is the answer where none came before."""
    start = JSON_NEXT.match(rest)
    if start is None:
        return rest, ""
    try:
        _, end = json.JSONDecoder().raw_decode(rest, start.end())
    except (ValueError, RecursionError):
        return rest, ""
    fence = FENCE_END.match(rest, end)
    return rest[start.end() : end], rest[end if fence is None else fence.end() :].rstrip()


@cache
def _reply_type() -> OutputType[dict[str, Json]]:
    return OutputType.fields("Reply", {"answer": str, "delta": object}, required=frozenset({"answer"}))


def _parse_json(app: App, text: str) -> ParsedReply:
    try:
        reply = _reply_type().parse(text).value
    except OutputValidationError as error:
        return ParsedReply(_partial_answer("answer", text), None, error.diagnostics or (error.message,))
    answer = str(reply["answer"])
    try:
        return _storable(answer, app.delta_type.validate(reply.get("delta") or {}))
    except OutputValidationError as error:
        problems = tuple(f"$.delta{line.removeprefix('$')}" for line in error.diagnostics)
        return ParsedReply(whole_characters(answer), None, problems)


def _parse_environment(app: App, text: str) -> ParsedReply:
    opened, end = OPENED.search(text), text.rfind(ENVIRONMENT[1])
    start = 0 if opened is None else opened.end()
    inner = text[start : end if end > start else len(text)]
    parsed = parse_delta(app, inner)
    if parsed.delta is not None:
        return ParsedReply(whole_characters(str(parsed.delta["response"])), parsed.delta)
    return ParsedReply(_partial_answer("response", inner), None, parsed.problems)


def _partial_answer(member: str, text: str) -> str:
    """Return the answer of an unparsable reply: the part that can be read, or all of a text without JSON."""
    parser = PartialParser(_any_object())
    parser.feed(text)
    found = parser.view.get(member) if isinstance(parser.view, dict) else None
    return whole_characters(found if found and isinstance(found, str) else text.strip())


class AnswerWatcher:
    """Shows the answer of a `text+delta` reply while it streams; holds back what may be the delta line and its JSON.

    `parse` returns the answer of the whole reply.
    """

    __slots__ = ("_parse", "_pending", "_pieces", "_scan_at", "_shown", "_size")

    def __init__(self, parse: Callable[[str], str]) -> None:
        self._parse = parse
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
        if (
            self._shown and "\n" not in pending
        ):  # in the middle of a line, as most pieces are: no delta line begins here
            end = len(pending.rstrip())
        else:
            end = _answer_end(pending, 0 if self._shown == 0 else pending.find("\n") + 1 or len(pending))
        self._pending, self._size = [pending[end:]], len(pending) - end
        self._scan_at = 2 * self._size if self._size > SCAN_EACH_CHUNK else 0
        self._shown += end
        return WatchResult(whole_characters(pending[:end]))

    def close(self) -> WatchResult:
        """Show what was held back and belongs to the answer."""
        return WatchResult(self._parse("".join(self._pieces))[self._shown :])


def _answer_end(text: str, start: int) -> int:
    """Return how much belongs to the answer for certain: all before the newest delta line that has, or may get, JSON."""
    begun: int | None = None
    for line in LINE.finditer(text, start):
        if JSON_NEXT.match(text, line.end()) or (begun is None and FENCE_NEXT.fullmatch(text, line.end())):
            begun = line.start()
    if begun is None:
        last = max(text.rfind("\n") + 1, start)
        begun = last if last < len(text) and DELTA_LINE.startswith(text[last:].strip()) else len(text)
    return len(text[:begun].rstrip())


def reply_watcher(app: App) -> Callable[[], Watcher] | None:
    """Return the factory of the watcher that shows only the answer of an app's replies; None where no watcher is needed.

    A typed answer is shown when it is whole, since it may be repaired.
    """
    if app.output_type is not None:
        return HideOutput
    if not app.model_fields:
        return None

    def parse(text: str) -> str:
        return parse_reply(app, text).answer

    if app.reply == "text+delta":
        return partial(AnswerWatcher, parse)
    return partial(MemberWatcher, "answer" if app.reply == "json" else "response", parse)
