"""One chat turn: complete, repair the delta, summarise; with and without tools."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, add_turn, summarize_window, turns_to_keep
from taiwa.conversation.replies import ParsedReply, parse_delta, parse_reply, reply_watcher
from taiwa.conversation.turn_prompt import DELTA_LINE, summary_request, turn_request
from taiwa.flows.solve.find_tool_calls import CallMatch, Scanner
from taiwa.flows.solve.native_call_loop import FunctionCallingLoop
from taiwa.flows.solve.rationale import CallBudget, EndReason, SolveLimits, TextPart
from taiwa.flows.solve.text_loop import TextLoop, _RationaleBuilder
from taiwa.flows.solve.tool_call_formats import Tagged
from taiwa.kernel.effects import (
    Complete,
    GetCapabilities,
    HideOutput,
    Program,
    Step,
    Watcher,
    WatchResult,
    notify,
    perform,
)
from taiwa.kernel.errors import (
    ConfigError,
    InputError,
    LimitError,
    ModelError,
    OutputValidationError,
    RefusalError,
    UnsupportedError,
)
from taiwa.kernel.messages import (
    FinishReason,
    JsonSchema,
    Request,
    Response,
    ToolSpec,
    assistant,
    system,
    user,
)
from taiwa.kernel.records import Json, canonical, value
from taiwa.kernel.text import whole_characters

__all__ = ["Reply", "say"]


BOUNDS = SolveLimits(tokens=None)
"""A reply may be as long as any other."""

BETWEEN = "\n\n"

DELTA = re.compile(rf"(?m)^[ \t]*{DELTA_LINE}\s*(?:```(?:json)?\s*)?\{{")

FINISHES: Mapping[EndReason, FinishReason] = {
    "end": "stop", "calls": "stop", "length": "length", "refusal": "refusal", "interrupted": "interrupted",
    "repeat": "interrupted", "stops": "interrupted", "tool": "interrupted",
}  # fmt: skip

BROKEN: Mapping[EndReason, str] = {
    "calls": "no further call of a tool was allowed",
    "repeat": "the same call of a tool was asked for again and again",
    "stops": "the reply came to no end",
}


def answered_with_tools(request: Request, tools: Sequence[ToolSpec], app: App) -> Program[Response]:
    """Ask for the reply of a turn; the answer is as one without tools would be, calls in its text included.

    Raises (when run):
        ConfigError: the app's replies are JSON, in whose text nothing can be put, and the model takes no tools.
    """
    capabilities = yield from perform(GetCapabilities())
    calls = CallBudget(tools, BOUNDS)
    track: FunctionCallingLoop | TextLoop
    if "tools" in capabilities:
        track = FunctionCallingLoop(request, calls, BOUNDS, Tagged(), _Lines(reply_watcher(app)))
    elif app.model_fields and app.reply != "text+delta":
        raise ConfigError(
            f"the app {app.name!r} has tools and replies in JSON, so its model must take tools, and this one does not"
        )
    else:
        spoken = _BeforeDelta() if app.model_fields else Tagged()
        track = TextLoop(tooled(request, tools), calls, BOUNDS, spoken, reply_watcher(app))
        track.enable(in_place="prefix" in capabilities, stops="stop" in capabilities)
    yield from track.run()
    ending: EndReason = track.ending or "end"
    if ending in BROKEN:
        yield from notify(BROKEN[ending], code="turn", warning=True)
    return Response(assistant(_text(track, app)), FINISHES.get(ending, "stop"))


def tooled(request: Request, tools: Sequence[ToolSpec]) -> Request:
    """Tell the model in its instructions how to call tools in its text."""
    head, *rest = request.messages
    return replace(request, messages=(system(f"{head.text}\n\n{Tagged().instructions(tools)}"), *rest))


def _text(track: _RationaleBuilder, app: App) -> str:
    """The words of the reply. Of JSON only the last is the reply; what came before it went with calls."""
    if isinstance(track, TextLoop):
        return track.text
    said = [part.text for part in track.parts if isinstance(part, TextPart)]
    return BETWEEN.join(said) if app.reply == "text+delta" or not app.model_fields else said[-1] if said else ""


class _BeforeDelta(Tagged):
    """Calls in the words of a reply: what stands in its delta is data, whatever it looks like."""

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls before the delta."""
        return _Before(super().scanner(names))


class _Before:
    """A scanner that finds nothing once the delta has begun. That is looked up only where there would be a call."""

    def __init__(self, inner: Scanner, seen: str = "") -> None:
        self._inner = inner
        self._seen = seen

    def __copy__(self) -> "_Before":
        return _Before(copy(self._inner), self._seen)

    @property
    def open(self) -> bool:
        """Whether the text ends in what lacks only the mark at which a server may have stopped."""
        return self._inner.open

    def feed(self, text: str) -> CallMatch | None:
        """Take the next words, up to the first call in them."""
        trigger = self._inner.feed(text)
        words = text if trigger is None else text[: trigger.end]
        self._seen += words
        if trigger is None or not self._over():
            return trigger
        self._seen += text[len(words) :]
        return None

    def skip(self, text: str) -> None:
        """Take what was put in."""
        self._inner.skip(text)
        self._seen += text

    def _over(self) -> bool:
        return DELTA.search(self._seen) is not None


class _Lines:
    """Makes the watchers of one reply that comes in several answers: each but the first begins a paragraph."""

    def __init__(self, make: Callable[[], Watcher] | None) -> None:
        self._make = make
        self._said = False

    def __call__(self) -> Watcher:
        """Watch the next answer."""
        return _Paragraph(self, None if self._make is None else self._make())

    def led(self, show: str) -> str:
        """Put a blank line between what was shown and what comes."""
        lead = BETWEEN if self._said and show else ""
        return lead + show

    def over(self) -> None:
        """The answers so far are over."""
        self._said = True


class _Paragraph:
    """Watches one answer."""

    def __init__(self, lines: _Lines, inner: Watcher | None) -> None:
        self._lines = lines
        self._inner = inner
        self._begun = False

    def feed(self, text: str) -> WatchResult:
        """Show what there is to show."""
        return WatchResult(self._led(text if self._inner is None else self._inner.feed(text).show))

    def close(self) -> WatchResult:
        """Show what was held back."""
        shown = self._led("" if self._inner is None else self._inner.close().show)
        if self._begun:
            self._lines.over()
        return WatchResult(shown)

    def _led(self, show: str) -> str:
        if self._begun or not show:
            return show
        self._begun = True
        return self._lines.led(show)


def complete_or_downgrade(request: Request, watch: Callable[[], Watcher] | None = None) -> Program[Response]:
    """Ask; where the server cannot enforce the schema, ask without it and say so: the answer is checked all the same."""
    try:
        return (yield from perform(Complete(request, watch)))
    except UnsupportedError as error:
        if request.constraint is None or error.capability not in {"json_schema", "regex", "grammar"}:
            raise
        yield from notify(f"the form of the answer is checked afterwards: {error.message}", code="downgrade")
        return (yield from perform(Complete(replace(request, constraint=None), watch)))


TEXT_LIMIT = 2_000_000

REPAIR = """\
The JSON of your last reply cannot be used:
{faults}
Reply only with the corrected JSON, in one line, and nothing else. Its type:

{type}"""


@value(tag="reply")
class Reply:
    """What a turn answered, what it changed, and what a person should know of it."""

    text: str
    delta: Json = None
    warnings: tuple[str, ...] = ()


def say(
    text: str, *, strict: bool = False, repairs: int = 1, tools: Sequence[ToolSpec] = ()
) -> Step[Conversation, Reply]:
    """One turn. A delta that cannot be used is asked for again, alone, at most `repairs` times.

    With `tools` the model may call them on its way to the reply.

    If that fails the turn is committed without a change of state and with a warning; under `strict` it fails instead.

    Raises (when run):
        InputError: the text is empty or larger than 2,000,000 characters.
        ShapeError: strict, and the delta could not be read.
        RefusalError: the model refused and said nothing.
    """

    def step(conversation: Conversation) -> Program[tuple[Reply, Conversation]]:
        check(text)
        settled = yield from settle(conversation)
        app = settled.app
        if tools:
            request = turn_request(settled, text)
            response = yield from answered_with_tools(request, tools, app)
        else:
            able = bool(app.model_fields) and app.reply == "json" and (yield from _takes_schemas())
            request = turn_request(settled, text, constrained=able)
            response = yield from complete_or_downgrade(request, reply_watcher(app))
        read = yield from mended(app, request, response, repairs)
        if read.delta is None and strict:
            raise OutputValidationError(
                f"the reply's state cannot be used: {read.problems[0]}", text=response.text, diagnostics=read.problems
            )
        after, read = committed(settled, text, read, strict)
        warnings = _warnings(response, read)
        for warning in warnings:
            yield from notify(warning, code="turn", warning=True)
        return Reply(read.answer, after.new_nodes[-1].delta, warnings), after

    return step


def _takes_schemas() -> Program[bool]:
    """Whether the server can be held to a schema; asked where one would be sent, as every effect is written down."""
    return "json_schema" in (yield from perform(GetCapabilities()))


def check(text: str) -> None:
    """See that an utterance can be sent.

    Raises:
        InputError: it cannot.
    """
    if not text.strip():
        raise InputError("there is nothing to say: the text is empty")
    if len(text) > TEXT_LIMIT:
        raise InputError(f"the text has {len(text):,} characters; at most {TEXT_LIMIT:,} can be said in one turn")
    canonical(text)  # half a character would otherwise be found when the turn is committed, and paid for


def settle(conversation: Conversation) -> Program[Conversation]:
    """Cut the window if it is full; a summary is asked for where the app wants one."""
    staying = turns_to_keep(conversation)
    if staying is None:
        return conversation
    kept = [past.hash for past in staying]
    if not conversation.app.window.summarize:
        return summarize_window(conversation, kept, conversation.summary)
    leaving = tuple(past for past in conversation.turns if past not in staying)
    try:
        response = yield from perform(Complete(summary_request(conversation, leaving), HideOutput))
    except ModelError as error:
        # A summary that a provider refuses would be refused before every later turn too.
        return (yield from _uncut(conversation, f": {error.message}"))
    summary = whole_characters(response.text).strip()
    if not summary or response.finish in {"refusal", "interrupted"}:
        return (yield from _uncut(conversation))
    return summarize_window(conversation, kept, summary)


def _uncut(conversation: Conversation, why: str = "") -> Program[Conversation]:
    yield from notify(f"the old turns could not be summarised; they stay in the prompt{why}", code="fold", warning=True)
    return conversation


def committed(
    conversation: Conversation, text: str, read: ParsedReply, strict: bool
) -> tuple[Conversation, ParsedReply]:
    """Commit a turn; a delta that a reducer refuses is left out, unless that is not allowed.

    Raises:
        InputError: strict, and a reducer refused the delta.
    """
    try:
        return add_turn(conversation, text, read.answer, _kept_delta(conversation, read)), read
    except InputError as error:
        if strict or read.delta is None:
            raise
        without = replace(read, delta=None, problems=(error.message,))
        return add_turn(conversation, text, read.answer, _kept_delta(conversation, without)), without


def mended(app: App, request: Request, response: Response, rounds: int) -> Program[ParsedReply]:
    """Read a reply; where its delta cannot be used, keep the answer and ask for the delta alone."""
    if response.finish == "refusal" and not response.text.strip():
        raise RefusalError("the model refused to answer", request=request.digest)
    read = parse_reply(app, response.text)
    bad = response.text
    for _ in range(rounds):
        if read.delta is not None or response.finish in {"interrupted", "refusal", "length"}:
            break
        try:
            able = yield from _takes_schemas()
            again = yield from complete_or_downgrade(_repair(app, request, bad, read.problems, able), HideOutput)
        except (ModelError, LimitError, ConfigError) as error:
            # The answer is there and paid for: that its delta cannot be asked for again does not take it away.
            read = replace(read, problems=(f"it could not be asked for again: {error.message}", *read.problems))
            break
        second = parse_delta(app, again.text)
        if second.delta is None and set(second.problems) == set(read.problems):
            break
        read, bad = replace(second, answer=_answer(read, second)), again.text
    return read


def _repair(app: App, request: Request, bad: str, faults: tuple[str, ...], able: bool) -> Request:
    whole = app.reply == "environment"
    shape = app.environment_type if whole else app.delta_type
    lines = "\n".join(f"{number}. {fault}" for number, fault in enumerate(faults, 1))
    asked = user(REPAIR.format(faults=lines, type=shape.render()))
    constraint = JsonSchema(shape.schema(), "delta") if able else None
    return replace(request, messages=(*request.messages, assistant(bad), asked), constraint=constraint)


def _answer(first: ParsedReply, second: ParsedReply) -> str:
    """The answer of the first reply stays; an environment brings its own."""
    renewed = second.delta.get("response") if second.delta is not None else None
    return renewed if isinstance(renewed, str) else first.answer


def _kept_delta(conversation: Conversation, read: ParsedReply) -> dict[str, Json]:
    if read.delta is not None:
        return {name: given for name, given in read.delta.items() if name != "response"}
    if conversation.app.reply == "environment":
        return {field.name: conversation.state[field.name] for field in conversation.app.model_fields}
    return {}


def _warnings(response: Response, read: ParsedReply) -> tuple[str, ...]:
    said: list[str] = []
    if response.finish == "length":
        said.append("the answer was cut off at the length limit")
    if response.finish == "interrupted":
        said.append("the answer was interrupted")
    if response.finish == "refusal":
        said.append("the model refused to go on")
    if response.finish == "tool_calls":
        said.append("the model asked for a tool, and this conversation has none")
    elif not read.answer.strip() and not said:
        said.append("the model said nothing")
    if read.delta is None:
        said.append(f"the state was left as it was: {'; '.join(read.problems[:3])}")
    return tuple(said)
