"""A turn that is a program of the app: `def turn(conversation, text)` yields effects and returns a reply.

It may ask the user by `answer = yield AskUser(question, options)`. The turn then ends with the question, and the next one runs the
program again from its beginning: what it did before is answered from the journal, the question from the new text.
"""

import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast
from unicodedata import normalize

from taiwa.conversation.app import App
from taiwa.conversation.code_files import function_named
from taiwa.conversation.history import NO_MODEL, AnsweredBy, Conversation, TurnParts, add_turn
from taiwa.conversation.turn_prompt import earlier_part
from taiwa.flows.turn import Reply, call_json, compress_fields, say, shorten_history
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import (
    CallTool,
    Complete,
    Effect,
    Gather,
    HideOutput,
    Notify,
    Program,
    Step,
    perform,
    program_with,
)
from taiwa.kernel.errors import ConfigError, InputError, OutputValidationError, TaiwaError, describe
from taiwa.kernel.messages import Found, Message, Notice, Passage, Response, TextDelta, ToolResult, assistant, user
from taiwa.kernel.serialization import Json, exact_json, item_at, items_at, text_at
from taiwa.kernel.serialization import value as value_class
from taiwa.plugins import FAILURES, one_line

T = TypeVar("T")
PARAGRAPH = "\n\n"
TurnProgram: TypeAlias = Callable[[Conversation, str], Program[Any]]
"""A program that makes a turn: it returns a `Reply`, the text of one, or a value of the type of the app's answers."""


OF_TURN = "only the program of a turn may yield it, and not within `gather`"


@value_class(tag="ask-user")
class AskUser(Effect[str]):
    """Ask the user, and end the turn; the answer is the user's next text, or the option whose number it is.

    Only the program of a turn can ask, and not within `gather`.
    """

    unhandled = OF_TURN
    question: str
    options: tuple[str, ...] = ()


@value_class(tag="default-turn")
class DefaultTurn(Effect[Reply]):
    """Make the turn that the app would make of a text without its program, with its tools and documents, and return the reply.

    Only the program of a turn can, and not within `gather`. `shows` is as of `Complete`.
    """

    unhandled = OF_TURN
    text: str
    shows: bool = field(default=False, compare=False)


def show(program: Program[T]) -> Program[T]:
    """Run a part of the program of a turn, and show what models write in it as it is written: the reply begins with that.

    Not within `gather`, and not where the answers of the app have a type.
    """
    return (yield from program_with(_shown, program))


def _shown(effect: Effect[Any]) -> Effect[Any]:
    return replace(effect, shows=True) if isinstance(effect, (Complete, DefaultTurn)) else effect


@dataclass(frozen=True, slots=True)
class Paused:
    """A program that waits for an answer: the conversation before its first turn, and the texts of the user since."""

    base: Conversation
    texts: tuple[str, ...]


def question_of(findings: Json) -> AskUser | None:
    """Return the question of a program with which a turn ended, from its findings; None for every other turn."""
    asked = item_at(findings, "asked")
    return None if asked is None else AskUser(text_at(asked, "question"), tuple(map(str, items_at(asked, "options"))))


def program_of(flow: str) -> TurnProgram:
    """Return the program of the turns of an app.

    Raises:
        ConfigError: its file was not confirmed, or it is not a function.
    """
    found = function_named(flow)
    if not callable(found):
        raise ConfigError(f"{flow} is not a function; name a generator function")
    return cast("TurnProgram", found)


def earlier_messages(conversation: Conversation) -> list[Message]:
    """Return the turns in the window of a conversation as messages, after a summary of those before."""
    messages = [
        message
        for turn in conversation.turns
        for message in (user(turn.user, turn.parts.attachments), assistant(turn.answer))
    ]
    earlier = earlier_part(conversation)
    first = messages[0].parts if messages else ()
    return [Message("user", (*earlier, *first)), *messages[1:]] if earlier else messages


def run_turn(
    program: TurnProgram,
    text: str,
    attachments: tuple[Attachment, ...] = (),
    *,
    paused: Paused | None = None,
    by: AnsweredBy = NO_MODEL,
    default: Callable[[str], Step[Conversation, Reply]] = say,
    shows: bool = False,
) -> Step[Conversation, Reply]:
    """Make a turn of a program; with `paused`, the text answers its last question. `attachments` and `by` are recorded in the turn,
    and `default` makes the turns that the program asks for by `DefaultTurn`. The user sees what models write in the program only if it
    `shows` that, or within `show`; a reply may be another text.

    Raises (when run):
        InputError: the state delta of the reply does not fit the fields.
        ConfigError: the program is not a generator, raised, yielded something else than an effect, or returned something else than
            a reply.
        OutputValidationError: the value is not of the type of the app's answers.
    """

    def step(conversation: Conversation) -> Program[tuple[Reply, Conversation]]:
        texts = (text,) if paused is None else (*paused.texts, text)
        answers, said = list(texts[1:]), [texts[0]]
        start = conversation if paused is None else paused.base
        start = yield from compress_fields((yield from shorten_history(start)))
        calls: list[Json] = []
        passages: list[Passage] = []
        made: list[Reply] = []
        written: list[str] = []
        can_show = start.app.output_type is None

        def performed(effect: Effect[Any]) -> Program[object]:
            is_part = can_show and isinstance(effect, (Complete, DefaultTurn)) and effect.shows
            is_part = is_part and not answers  # what stands before an answered question was part of that turn
            is_shown = shows or is_part
            if is_part and written:
                written.append(_behind("".join(written), PARAGRAPH))
                yield Notify(TextDelta(written[-1]))
            if not isinstance(effect, DefaultTurn):
                answer = yield from perform(effect) if is_shown else program_with(_hidden, perform(effect))
                if is_part and isinstance(effect, Complete):
                    written.append(_text_of(effect, answer))
                return answer
            turn = default(effect.text)(start)
            reply, _ = yield from turn if is_shown else program_with(_hidden, turn)
            if is_part:
                written.append(reply.text)
            made.append(reply)
            found = reply.findings
            calls.extend(items_at(found.to_json(), "calls"))
            checked = None if found.documents is None else found.documents.answer
            read = () if checked is None else checked.passages
            passages.extend(read)
            if is_part and found.documents is not None and (read or reply.response is None):
                yield Notify(TextDelta(reply.text))  # the reply is checked before it is shown, or no model wrote it
            return replace(reply, findings=replace(found, calls=()))

        given = replace(start, state=deepcopy(start.state))
        begun = _begun(program, given, texts[0])
        running = _until_question(begun, answers, said, performed, calls, passages)
        result = yield from _without_earlier_notices(running, answers)
        if given.state != start.state:
            raise ConfigError(
                f"the program {program_name(program)} changed conversation.state; return the change in a reply"
            )
        findings: dict[str, Json] = {"program": program_name(program)}
        if isinstance(result, AskUser):
            listed = "".join(f"\n{number}. {option}" for number, option in enumerate(result.options, 1))
            reply = Reply(f"{result.question}{listed}")
            findings["asked"] = {"question": result.question, "options": list[Json](result.options)}
        else:
            reply = read_result(start.app, result, made)
        if written:
            reply, rest = _with_shown("".join(written), reply)
            if rest:
                yield Notify(TextDelta(rest))
        if calls:
            findings["calls"] = calls
        findings |= reply.findings.to_json()
        if made and (documents := made[-1].findings.documents) is not None:
            # Later turns read what the program replied, and a replay the options of the search.
            own: dict[str, Json] = {} if reply.text == made[-1].text else {"answer": reply.text}
            findings["documents"] = documents.to_json() | own
        here = start if paused is None else conversation
        if isinstance(reply.delta, dict) and any(field.cite for field in start.app.model_fields):
            from taiwa.flows.ask.provenance import cited_only

            kept, uncited = cited_only(here, "\n".join(said), reply.delta, findings, passages)
            reply = replace(reply, delta=kept, warnings=(*reply.warnings, *uncited))
        parts = TurnParts(attachments, findings=findings)
        after = add_turn(here, text, reply.text, reply.delta or {}, parts, by)
        return replace(reply, delta=after.new_nodes[-1].delta), after

    return step


def _text_of(effect: Complete, answer: Response) -> str:
    """Return what the user saw of an answer."""
    if effect.watch is None:
        return answer.text
    watcher = effect.watch()
    return watcher.feed(answer.text).show + watcher.close().show


def _with_shown(shown: str, reply: Reply) -> tuple[Reply, str]:
    """Return a reply that begins with what was shown, and its rest."""
    said, head = reply.text.strip(), shown.strip()
    rest = said[len(head) :] if said.startswith(head) else f"{PARAGRAPH}{said}" if said else ""
    rest = _behind(shown, rest)
    return replace(reply, text=shown + rest), rest


def _behind(shown: str, text: str) -> str:
    """Return a text without the white space at its beginning with which what was shown ends."""
    space = shown[len(shown.rstrip()) :]
    return next((text[size:] for size in range(len(space), 0, -1) if text.startswith(space[-size:])), text)


def _hidden(effect: Effect[Any]) -> Effect[Any]:
    """Return an effect of which the user sees nothing: the text of a model, or the result of a call within it."""
    if isinstance(effect, Complete):
        return replace(effect, watch=HideOutput)
    if isinstance(effect, Notify) and isinstance(effect.notice, Notice):
        code = "call" if effect.notice.code == "result" else effect.notice.code
        return replace(effect, notice=replace(effect.notice, code=code, in_answer=False))
    return effect


def _begun(program: TurnProgram, conversation: Conversation, text: str) -> Program[Any]:
    try:
        begun: object = program(conversation, text)
    except TaiwaError:
        raise
    except FAILURES as error:
        raise _failed(program, error) from error
    if not isinstance(begun, Generator):  # a user's function
        what = f"it returned {describe(begun)} at once"
        if isinstance(begun, AsyncGenerator | Coroutine):
            what = "write `def` and `yield from` instead of `async def` and `await`"
            if isinstance(begun, Coroutine):
                begun.close()
        raise ConfigError(f"the program {program_name(program)} must yield effects and return a reply; {what}")
    return begun


def _until_question(
    program: Program[Any],
    answers: list[str],
    said: list[str],
    performed: Callable[[Effect[Any]], Program[object]],
    calls: list[Json],
    passages: list[Passage],
) -> Program[object]:
    """Run a program to its end, or to a question without an answer; move the answers, or the options that they choose, to what was
    `said`, and add its calls of tools and what it retrieved to the lists.
    """

    def answered(effect: Effect[Any]) -> Program[object]:
        if not isinstance(effect, AskUser):
            return (yield from _noted(effect, performed, calls, passages))
        if not answers:
            raise _AskedError(effect)
        said.append(_chosen(effect, answers.pop(0)))
        return said[-1]

    try:
        return (yield from _driven(program, answered))
    except _AskedError as asked:
        return asked.question


class _AskedError(Exception):
    """A program asked the user."""

    def __init__(self, question: AskUser) -> None:
        self.question = question


def _noted(
    effect: Effect[Any], performed: Callable[[Effect[Any]], Program[object]], calls: list[Json], passages: list[Passage]
) -> Program[object]:
    """Perform an effect, and note a call of a tool and what was retrieved; of `gather` in the order of its programs."""
    if isinstance(effect, Gather):
        found = [(list[Json](), list[Passage]()) for _ in effect.programs]
        strands = zip(effect.programs, found, strict=True)
        noting = (
            _driven(each, partial(_noted, performed=perform, calls=called, passages=read))
            for each, (called, read) in strands
        )
        answer = yield from performed(Gather(tuple(noting)))
        for called, read in found:
            calls += called
            passages += read
        return answer
    try:
        answer = yield from performed(effect)
    except TaiwaError as error:
        if isinstance(effect, CallTool):
            calls.append(_call_of(effect, ToolResult("", effect.name, error=str(error))))
        raise
    if isinstance(answer, Found):
        passages += answer.passages
    elif isinstance(effect, CallTool) and isinstance(answer, ToolResult):
        calls.append(_call_of(effect, answer))
    return answer


def _call_of(effect: CallTool, result: ToolResult) -> Json:
    return call_json(effect.name, exact_json(dict(effect.arguments), allow_nan=True), result)


def _close(program: Program[Any]) -> None:
    try:
        program.close()
    except FAILURES as error:
        raise _failed(program, error) from error


def _without_earlier_notices(program: Program[T], answers: list[str]) -> Program[T]:
    """Run a program without the notices before its last answered question, which an earlier turn has sent."""

    def performed(effect: Effect[Any]) -> Program[object]:
        return None if answers and isinstance(effect, Notify) else (yield effect)

    return (yield from _driven(program, performed, is_own=False))


def _driven(
    program: Program[T], performed: Callable[[Effect[Any]], Program[object]], *, is_own: bool = True
) -> Program[T]:
    """Run a program whose effects another one performs.

    Raises:
        ConfigError: code of the user (`is_own`) raised, or yielded something else than an effect.
    """
    answer: object = None
    problem: TaiwaError | None = None
    try:
        while True:
            try:
                effect: object = program.send(answer) if problem is None else program.throw(problem)
            except StopIteration as stop:
                return cast("T", stop.value)
            except TaiwaError:
                raise
            except FAILURES as error:
                if not is_own:
                    raise
                raise _failed(program, error) from error
            answer, problem = None, None
            if not isinstance(effect, Effect):
                hint = "write `yield from`" if isinstance(effect, Generator) else "yield an effect"
                raise ConfigError(f"the program {program_name(program)} yielded {describe(effect)}; {hint}")
            try:
                answer = yield from performed(effect)
            except TaiwaError as error:
                problem = error
    finally:
        _close(program)


def _chosen(asked: AskUser, text: str) -> str:
    """Return the option whose number the user wrote, else the text."""
    plain = normalize("NFKC", text).strip(" .。)")
    number = int(plain) if plain.isdecimal() and len(plain) < 4 else 0
    return asked.options[number - 1] if 1 <= number <= len(asked.options) else text


def read_result(app: App, result: object, made: Sequence[Reply] = ()) -> Reply:
    """Return what a program returned as a reply whose text, value and delta fit the app; those of the replies that were `made` by
    default turns were checked.

    Raises:
        ConfigError: it is not a reply, a text or a value.
        InputError: the delta does not fit the fields.
        OutputValidationError: the value is not of the type of the app's answers.
    """
    from taiwa.structured import OutputType

    # `solve` and `extract` check, or warn, by themselves.
    if isinstance(result, Reply) and (result.findings.rationale or result.findings.attempts):
        return result
    if isinstance(result, str) and app.output_type is None:
        result = Reply(result)
    elif not isinstance(result, Reply):
        if app.output_type is None:
            raise ConfigError(f"the program of {app.name!r} must return a reply or a text, not {describe(result)}")
        result = Reply("", value=OutputType[Any](type(result)).dump(result))
    if app.output_type is not None:
        try:
            typed = app.output_type.validate(result.value)
        except OutputValidationError as error:
            why = f"the value of the reply of the program of {app.name!r} is {error.message}"
            raise OutputValidationError(why, diagnostics=error.diagnostics) from None
        value = app.output_type.dump(typed)
        text = result.text or json.dumps(value, ensure_ascii=False)
        result = replace(result, value=value, typed=typed, text=text)
    if result.delta is not None and all(result.delta != each.delta for each in made):
        try:
            app.delta_type.validate(result.delta)
        except OutputValidationError as error:
            why = error.diagnostics[0] if error.diagnostics else error.message
            raise InputError(f"the state delta of the program of {app.name!r} does not fit: {why}") from None
    return result


def _failed(program: object, error: BaseException) -> ConfigError:
    return ConfigError(f"the program {program_name(program)} failed: {one_line(error)}")


def program_name(program: object) -> str:
    """Return the name by which records know a program."""
    return str(getattr(program, "__name__", type(program).__name__))
