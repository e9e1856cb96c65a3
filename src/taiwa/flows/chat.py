"""One turn of a conversation: `turn → [Complete] → step(state, delta) → commit`, as a step over conversations.

If anything fails the conversation has not moved; what was paid for stays in the journal.
"""

from collections.abc import Sequence
from dataclasses import replace

from taiwa.conversation.app import App
from taiwa.conversation.growing import whole_characters
from taiwa.conversation.history import Conversation, cut, take
from taiwa.conversation.layout import fold_request, turn_request
from taiwa.conversation.replies import Read, read_delta, read_reply, watcher
from taiwa.conversation.window import kept_turns
from taiwa.flows.asking import asked
from taiwa.flows.toolturn import answered_with_tools
from taiwa.kernel.effects import Abilities, Complete, Hidden, Program, Step, perform, tell
from taiwa.kernel.errors import ConfigError, InputError, LimitError, ModelError, RefusalError, ShapeError
from taiwa.kernel.records import Json, canonical, value
from taiwa.kernel.values import JsonSchema, Request, Response, ToolSpec, assistant, user

__all__ = ["Reply", "say"]

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
            able = bool(app.written) and app.reply == "json" and (yield from _takes_schemas())
            request = turn_request(settled, text, constrained=able)
            response = yield from asked(request, watcher(app))
        read = yield from mended(app, request, response, repairs)
        if read.delta is None and strict:
            raise ShapeError(
                f"the reply's state cannot be used: {read.faults[0]}", text=response.text, diagnostics=read.faults
            )
        after, read = committed(settled, text, read, strict)
        warnings = _warnings(response, read)
        for warning in warnings:
            yield from tell(warning, code="turn", warning=True)
        return Reply(read.answer, after.fresh[-1].delta, warnings), after

    return step


def _takes_schemas() -> Program[bool]:
    """Whether the server can be held to a schema; asked where one would be sent, as every effect is written down."""
    return "json_schema" in (yield from perform(Abilities()))


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
    staying = kept_turns(conversation)
    if staying is None:
        return conversation
    kept = [past.hash for past in staying]
    if conversation.app.keep.fold == "drop":
        return cut(conversation, kept, conversation.summary)
    leaving = tuple(past for past in conversation.turns if past not in staying)
    try:
        response = yield from perform(Complete(fold_request(conversation, leaving), Hidden))
    except ModelError as error:
        # A summary that a provider refuses would be refused before every later turn too.
        return (yield from _uncut(conversation, f": {error.message}"))
    summary = whole_characters(response.text).strip()
    if not summary or response.finish in {"refusal", "interrupted"}:
        return (yield from _uncut(conversation))
    return cut(conversation, kept, summary)


def _uncut(conversation: Conversation, why: str = "") -> Program[Conversation]:
    yield from tell(f"the old turns could not be summarised; they stay in the prompt{why}", code="fold", warning=True)
    return conversation


def committed(conversation: Conversation, text: str, read: Read, strict: bool) -> tuple[Conversation, Read]:
    """Commit a turn; a delta that a reducer refuses is left out, unless that is not allowed.

    Raises:
        InputError: strict, and a reducer refused the delta.
    """
    try:
        return take(conversation, text, read.answer, _kept_delta(conversation, read)), read
    except InputError as error:
        if strict or read.delta is None:
            raise
        without = replace(read, delta=None, faults=(error.message,))
        return take(conversation, text, read.answer, _kept_delta(conversation, without)), without


def mended(app: App, request: Request, response: Response, rounds: int) -> Program[Read]:
    """Read a reply; where its delta cannot be used, keep the answer and ask for the delta alone."""
    if response.finish == "refusal" and not response.text.strip():
        raise RefusalError("the model refused to answer", request=request.digest)
    read = read_reply(app, response.text)
    bad = response.text
    for _ in range(rounds):
        if read.delta is not None or response.finish in {"interrupted", "refusal", "length"}:
            break
        try:
            able = yield from _takes_schemas()
            again = yield from asked(_repair(app, request, bad, read.faults, able), Hidden)
        except (ModelError, LimitError, ConfigError) as error:
            # The answer is there and paid for: that its delta cannot be asked for again does not take it away.
            read = replace(read, faults=(f"it could not be asked for again: {error.message}", *read.faults))
            break
        second = read_delta(app, again.text)
        if second.delta is None and set(second.faults) == set(read.faults):
            break
        read, bad = replace(second, answer=_answer(read, second)), again.text
    return read


def _repair(app: App, request: Request, bad: str, faults: tuple[str, ...], able: bool) -> Request:
    whole = app.reply == "environment"
    shape = app.environment if whole else app.delta
    lines = "\n".join(f"{number}. {fault}" for number, fault in enumerate(faults, 1))
    asked = user(REPAIR.format(faults=lines, type=shape.render()))
    constraint = JsonSchema(shape.schema(), "delta") if able else None
    return replace(request, messages=(*request.messages, assistant(bad), asked), constraint=constraint)


def _answer(first: Read, second: Read) -> str:
    """The answer of the first reply stays; an environment brings its own."""
    renewed = second.delta.get("response") if second.delta is not None else None
    return renewed if isinstance(renewed, str) else first.answer


def _kept_delta(conversation: Conversation, read: Read) -> dict[str, Json]:
    if read.delta is not None:
        return {name: given for name, given in read.delta.items() if name != "response"}
    if conversation.app.reply == "environment":
        return {field.name: conversation.state[field.name] for field in conversation.app.written}
    return {}


def _warnings(response: Response, read: Read) -> tuple[str, ...]:
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
        said.append(f"the state was left as it was: {'; '.join(read.faults[:3])}")
    return tuple(said)
