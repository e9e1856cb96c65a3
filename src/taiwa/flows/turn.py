"""One turn, made of what the app declares: shorten the history, consult documents, record what the user said, complete with tools,
check and repair the reply, commit.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from taiwa.conversation.app import App, ReplyLayout, settled
from taiwa.conversation.history import (
    NO_MODEL,
    AnsweredBy,
    Conversation,
    PastTurn,
    TurnParts,
    add_turn,
    edit_state,
    summarize_window,
    turns_to_keep,
)
from taiwa.conversation.record_prompts import record_language
from taiwa.conversation.replies import ParsedReply, find_delta, parse_delta, parse_reply, parse_typed, reply_watcher
from taiwa.conversation.state import BLANK, State, TurnContext, apply_delta
from taiwa.conversation.state_record import (
    ASKS,
    fields_from,
    known_words,
    parse_changes,
    question_request,
    questioned,
    record_request,
)
from taiwa.conversation.turn_prompt import (
    TYPED,
    Material,
    field_summary_request,
    render_reply,
    reply_schema,
    summary_request,
    turn_request,
)
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import (
    Complete,
    GetCapabilities,
    HideOutput,
    HideText,
    Program,
    Step,
    Watcher,
    complete_or_downgrade,
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
    Choice,
    Constraint,
    FinishReason,
    JsonSchema,
    Message,
    Part,
    Passage,
    Request,
    Response,
    Text,
    ToolResult,
    ToolSpec,
    assistant,
    file_texts,
    is_quoted,
    user,
    with_new_ids,
)
from taiwa.kernel.serialization import Json, parse_json, value
from taiwa.kernel.text import defuse, estimate_tokens, plural, truncate, whole_characters
from taiwa.kernel.wording import Wording
from taiwa.structured import OutputType

if TYPE_CHECKING:
    from taiwa.flows.ask.ask_result import AskResult, AskTurnOptions
    from taiwa.flows.ask.consult import Consulted
    from taiwa.flows.ask.quote import TermWeights
    from taiwa.flows.extract import Attempt
    from taiwa.flows.solve.rationale import ExecutedCall, Rationale

REPAIR_PROMPT = """\
The JSON of your last reply cannot be used:
{faults}
Reply only with the corrected JSON, in one line, and nothing else. Its type:

{type}"""


FINISH_WARNINGS: Mapping[FinishReason, str] = {
    "length": Wording("the answer was cut off at the length limit"),
    "interrupted": "the answer was interrupted",
    "repetition": Wording("the answer was ended because it repeated itself"),
    "refusal": Wording("the model refused to continue"),
    "tool_calls": "the model called a tool, and this conversation has none",
}


NO_STATE = Wording("the model wrote no state")

NO_WORDS = f" \n.{BLANK}"
"""What an answer without words consists of: the placeholder of the form, which small models copy or spell with dots."""


@value
class Findings:
    """What a turn rests on besides the conversation: the result of the documents stage, the calls of tools, the chain of thought of the
    app `solve` with its answer, and the attempts of the app `extract`, of which the last one gave the value.
    """

    documents: "AskResult | None" = None
    calls: "tuple[ExecutedCall, ...]" = ()
    rationale: "Rationale | None" = None
    attempts: "tuple[Attempt, ...]" = ()

    def to_json(self) -> dict[str, Json]:
        """Return what the node of the turn keeps."""
        found: dict[str, Json] = {}
        if self.documents is not None:
            found["documents"] = self.documents.to_json()
        if self.calls:
            found["calls"] = [call_json(each.name, each.input, each.result) for each in self.calls]
        if (solved := self.rationale) is not None:
            ways: dict[str, Json] = {"ending": solved.ending, "tool_mode": solved.tool_mode}
            found["solved"] = {"answer": solved.answer, "answered_by": solved.answered_by, **ways}
        if self.attempts:
            found["extracted"] = {"attempts": len(self.attempts), "mode": self.attempts[-1].mode}
        return found


NO_FINDINGS = Findings()


@value(tag="reply")
class Reply:
    """The answer of a turn, its state delta, and warnings for the user.

    `state_read` is false if the app has state, and what the model wrote of it is missing or cannot be used.
    """

    text: str
    delta: Json = None
    warnings: tuple[str, ...] = ()
    state_read: bool = True
    value: Json = None
    """The answer as JSON, if the answers of the app have a type."""
    typed: Any = dataclasses.field(default=None, compare=False)
    """The same as a value of that type; None for a type that only JSON has."""
    response: Response | None = dataclasses.field(default=None, compare=False)
    """The response of the model that the answer was read from: its finish reason, tool calls and log probabilities."""
    findings: Findings = dataclasses.field(default=NO_FINDINGS, compare=False)

    @property
    def is_refused(self) -> bool:
        """Whether the model refused to answer, or to continue."""
        rationale = self.findings.rationale
        solved = rationale is not None and rationale.ending == "refusal"
        return solved or (self.response is not None and self.response.finish == "refusal")


def call_json(name: str, written: str, result: ToolResult) -> Json:
    """Return a call of a tool as the findings of a turn keep it: with its arguments as they were written."""
    files: list[Json] = [each.reference() for each in result.attachments]
    found: dict[str, Json] = {"name": name, "input": written, "result": result.as_text, "error": result.error}
    return found | {"attachments": files} if files else found


@value
class _Said:
    """What the user said in a turn, how its answer begins and who gives it; `strict` as of `say`."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    prefix: str = ""
    by: AnsweredBy = NO_MODEL
    strict: bool = False


def say(
    text: str,
    attachments: Sequence[Attachment] = (),
    *,
    strict: bool = False,
    repairs: int = 1,
    tools: Sequence[ToolSpec] = (),
    prefix: str = "",
    by: AnsweredBy = NO_MODEL,
    documents: "AskTurnOptions | None" = None,
    term_weights: "TermWeights | None" = None,
) -> Step[Conversation, Reply]:
    """Answer one turn. An invalid state delta is requested again, without the answer, at most `repairs` times.

    If that fails, the turn is committed with an unchanged state and a warning; with `strict` it fails instead. With `tools`
    the model may call them before it replies. With `documents` they are searched first, and may lead to a question back; their terms
    are those of `term_weights`. `prefix` is prefilled. `by` is recorded in the turn.

    Raises (when run):
        OutputValidationError: `strict`, and the delta is invalid; or the answer does not have the type of the app, or the
        assessment of the question could not be read.
        RefusalError: the model refused and wrote nothing.
    """

    said = _Said(text, tuple(attachments), prefix, by, strict)

    def step(conversation: Conversation) -> Program[tuple[Reply, Conversation]]:
        conversation = yield from compress_fields((yield from shorten_history(conversation)))
        app, consulted = conversation.app, None
        layout, constrained = yield from _choose_layout(app, prefix, calls_tools=bool(tools))
        records = layout == "record" and bool(app.model_fields) and bool(text)
        # The state comes first, so that the search and the reply know what this message changed.
        recorded, state = (yield from _record(conversation, text)) if records else (None, None)
        if documents is not None and text.strip():  # files alone do not ask
            from taiwa.flows.ask.consult import consult

            known = known_words(app, conversation.state if state is None else state)
            only = app.only_answers
            consulted = yield from consult(conversation, text, documents, term_weights, only_answers=only, known=known)
            if not consulted.needs_model:
                answered = consulted.passages, consulted.by_program()
                return (yield from _reply_by_program(conversation, said, *answered, recorded))
        if consulted is not None:
            material = consulted.material
        else:
            material = _shown(conversation, text) if records else None
        request = turn_request(
            conversation, text, attachments, layout=layout, constrained=constrained, state=state, material=material
        )
        request = request if consulted is None else consulted.limited(request)
        try:
            begun = replace(request, prefix=prefix)
            words_first = consulted is not None
            hides = words_first and material is not None
            response, calls = yield from _complete(begun, tools, app, layout, hides=hides, words_first=words_first)
            if response.finish == "refusal" and app.only_answers:
                raise RefusalError(Wording("the model refused to answer"), request=request.digest)
        except RefusalError as error:
            if consulted is None or not app.only_answers:
                raise  # an app that only answers from documents can quote them without a model
            yield from notify(Wording("quoting the passages instead: {problem}", problem=error.message), code="answer", warning=True)  # fmt: skip
            answered = consulted.passages, consulted.by_program()
            return (yield from _reply_by_program(conversation, said, *answered, recorded))
        parsed = yield from _parse_or_repair(app, request, response, repairs, layout)
        calls, wrong = yield from _calculate(parsed.answer, tools if app.output_type is None else (), calls)
        written = parsed.written
        if recorded is not None and parsed.delta is not None:
            parsed = yield from _record_reply(conversation, text, replace(recorded, answer=parsed.answer), state, calls)
        if (app.output_type is not None and not written) or (strict and parsed.problems):
            if not written and response.finish == "refusal":
                raise RefusalError(Wording("the model refused to answer"), request=request.digest)
            reason = "the reply's state cannot be used"
            if app.output_type is not None and not written:
                reason = FINISH_WARNINGS.get(response.finish) or f"the answer is not of the type {app.output_type.name}"
            message = f"{reason}: {parsed.problems[0]}"
            raise OutputValidationError(message, text=response.text, diagnostics=parsed.problems)
        answer = None if app.output_type is None else parse_json(parsed.answer)
        typed = None if app.output_type is None else app.output_type.parse(written).value
        reply = Reply(parsed.answer, value=answer, typed=typed, response=response, findings=Findings(calls=calls))
        if consulted is not None:
            reply, parsed = yield from _check_against_passages(reply, parsed, app, consulted)
        passages = () if consulted is None else consulted.passages
        sources = _sources(conversation, passages, calls, said.attachments)
        # JSON that the model repeats from a document, a tool or a file must not set state.
        if layout == "text+delta" and parsed.delta and _is_quoted(app, response.text, parsed.delta, sources):
            parsed = replace(parsed, delta={}, missing=True, problems=())
        return (yield from _settle(conversation, said, parsed, reply, passages, wrong))

    return step


def _shown(conversation: Conversation, text: str) -> Material | None:
    """Show how a reply calculates from facts and notes, if the instructions hold digits (decision 0131)."""
    app = conversation.app
    if app.is_template or not any(map(str.isdecimal, app.instructions)):
        return None
    from taiwa.flows.ask.prompts import load_prompts

    language = record_language(text, conversation.last_answer)
    return Material("", text, exchanges=load_prompts(language).exchanges(excerpts=False))


def _complete(
    request: Request, tools: Sequence[ToolSpec], app: App, layout: ReplyLayout, *, hides: bool, words_first: bool
) -> "Program[tuple[Response, tuple[ExecutedCall, ...]]]":
    """Complete a request, with tools in the loop, and return the calls too; a reply that `hides` is shown when it is checked.

    Where documents were consulted, the reply begins with words (decision 0112).
    """
    watch = reply_watcher(app, request.prefix, layout)
    watch = HideOutput if hides and app.output_type is None else watch
    if not tools:
        return _behind(request.prefix, (yield from complete_or_downgrade(request, watch))), ()
    from taiwa.flows.solve.loops import complete_with_tools

    return (yield from complete_with_tools(request, tools, app, layout, watch, words_first=words_first))


def _calculate(
    text: str, tools: Sequence[ToolSpec], calls: "tuple[ExecutedCall, ...]"
) -> "Program[tuple[tuple[ExecutedCall, ...], tuple[str, ...]]]":
    """Run `calculate_equations`, which few replies need."""
    if not tools or "=" not in text:
        return calls, ()
    from taiwa.flows.solve.equations import calculate_equations

    return (yield from calculate_equations(text, tools, calls))


def _reply_by_program(
    conversation: Conversation,
    said: _Said,
    passages: Sequence[Passage],
    answered: "tuple[AskResult, str]",
    recorded: ParsedReply | None,
) -> Program[tuple[Reply, Conversation]]:
    """Reply without the model; what the user said is recorded all the same."""
    result, words = answered
    parsed = ParsedReply(words, {})
    if conversation.app.model_fields:
        recorded = recorded or (yield from _record(conversation, said.text))[0]
        parsed = replace(recorded, answer=words)
    reply = Reply(words, findings=Findings(result))
    said = replace(said, strict=False, prefix="")
    return (yield from _settle(conversation, said, parsed, reply, passages))


def _settle(
    conversation: Conversation,
    said: _Said,
    parsed: ParsedReply,
    reply: Reply,
    passages: Sequence[Passage],
    wrong: Sequence[str] = (),
) -> Program[tuple[Reply, Conversation]]:
    """Commit a turn with what its sources hold, and warn of what is left out."""
    after, parsed, uncited = _commit(conversation, said, parsed, reply, passages)
    warnings = (*_warnings(reply.response or Response(assistant(reply.text)), parsed), *wrong, *uncited)
    for warning in warnings:
        yield from notify(warning, code="turn", warning=True)
    state_read = not (parsed.problems or parsed.missing)
    return replace(reply, delta=after.new_nodes[-1].delta, warnings=warnings, state_read=state_read), after


def _check_against_passages(
    reply: Reply, parsed: ParsedReply, app: App, consulted: "Consulted"
) -> Program[tuple[Reply, ParsedReply]]:
    """Mark what restates the passages; an app that only answers from them shows their words beside anything else."""
    assert reply.response is not None
    if app.only_answers or consulted.options.quote:
        read = consulted.read(reply.response)
        if read.doubted and read.source == "extractive":
            yield from notify("the model found no answer in the passages; quoting the nearest ones", code="answer")
        result = consulted.result(read)
        words = result.render_text()
    else:
        is_typed = app.output_type is not None
        said, answer = consulted.cited(parsed.answer, reply.value, is_typed=is_typed)
        result = consulted.result(answer, said)
        words = said if is_typed else result.render_text()
    findings = replace(reply.findings, documents=result)
    return replace(reply, text=words, findings=findings), replace(parsed, answer=words)


def _choose_layout(app: App, prefix: str, *, calls_tools: bool) -> Program[tuple[ReplyLayout, bool]]:
    """Return the layout of the reply, and whether its schema is sent; capabilities are asked for only where they decide."""
    decides = app.reply == "auto" and bool(app.model_fields)
    if not decides and (calls_tools or reply_schema(app, app.layout()) is None):
        return app.layout(), False
    able = yield from perform(GetCapabilities())
    enforces = "json_schema" in able
    layout = app.layout(enforces_schemas=enforces, is_local="local" in able)
    in_text = (prefix or calls_tools) and app.output_type is None  # calls and a prefix belong into a text
    if layout == "json" and app.reply == "auto" and in_text:
        layout = app.layout()
    return layout, enforces and not calls_tools and reply_schema(app, layout) is not None


def _record(conversation: Conversation, text: str) -> Program[tuple[ParsedReply, State]]:
    """Ask what the text changes; return the delta with an empty answer, and the state with it."""
    app = conversation.app
    if not fields_from(app, "user"):
        return ParsedReply("", {}), conversation.state
    response = yield from complete_or_downgrade(record_request(conversation, text), HideOutput)
    cut = FINISH_WARNINGS.get(response.finish)
    parsed = parse_changes(app, response.text, is_cut=cut is not None)
    if cut is not None:
        if not parsed.delta:
            return ParsedReply("", None, (cut,)), conversation.state
        yield from notify(f"the record of what was said: {cut}; its whole changes count", code="turn", warning=True)
    if parsed.delta:
        from taiwa.flows.ask.provenance import stated_only

        kept, left_out = stated_only(conversation, text, parsed.delta)
        yield from _not_said(left_out)
        parsed = replace(parsed, delta=(yield from _wished(conversation, text, kept, response.text)))
    turn = TurnContext(conversation.count + 1, text, "", None)
    try:
        return parsed, apply_delta(app.fields, conversation.state, parsed.delta or {}, turn)
    except InputError:
        parsed = _accepted(conversation, parsed)
        return parsed, apply_delta(app.fields, conversation.state, parsed.fits, turn)


def _accepted(conversation: Conversation, parsed: ParsedReply) -> ParsedReply:
    """Return a reply without the parts of its delta that a reducer refuses."""
    usable, refused = dict[str, Json](), dict[str, tuple[str, ...]]()
    for name, part in parsed.fits.items():
        try:
            add_turn(conversation, "", "", {name: part})
            usable[name] = part
        except InputError as error:
            refused[name] = (f"$.{name}: {error.message}",)
    return replace(parsed, delta=None, usable=usable, refused=refused, problems=()).settled(*parsed.problems)


def _not_said(left_out: Mapping[str, Json]) -> Program[None]:
    if left_out:
        shown = _named(left_out, [*left_out])
        yield from notify(Wording("not recorded, because it was not said: {names} (`cite: false` takes it all the same)", names=shown), code="turn", warning=True)  # fmt: skip


def _wished(conversation: Conversation, text: str, delta: dict[str, Json], written: str) -> Program[dict[str, Json]]:
    """Leave out what a question would overwrite that only wants to know something, as the model reads it."""
    app, state = conversation.app, conversation.state
    names = questioned(app, state, delta, written, text)
    if not names:
        return delta
    answer = yield from complete_or_downgrade(question_request(app, state, delta, names, text), HideOutput)
    if not answer.text.strip().casefold().startswith(ASKS):
        return delta
    shown = _named(delta, names)
    yield from notify(Wording("not recorded, because the message only asks: {names}", names=shown), code="turn", warning=True)  # fmt: skip
    return {name: part for name, part in delta.items() if name not in names}


def _named(delta: Mapping[str, Json], names: Sequence[str]) -> str:
    """Name some fields in a warning, each with what was not written to it."""
    return ", ".join(f"{name}: {truncate(json.dumps(delta[name], ensure_ascii=False), 40)}" for name in names)


def _record_reply(
    conversation: Conversation, text: str, parsed: ParsedReply, state: "State | None", calls: "tuple[ExecutedCall, ...]"
) -> Program[ParsedReply]:
    """Ask what the reply changes, with the results that it rests on; return the delta with both changes."""
    app = conversation.app
    if not fields_from(app, "reply") or parsed.delta is None or not parsed.answer.strip():
        return parsed
    lines = (f"{call.name}({call.input}) = {call.result.text}" for call in calls if not call.result.error)
    results = "".join(f"\n{' '.join(defuse(line).split())}" for line in lines)  # a result imitates no other part
    request = record_request(conversation, text, f"{parsed.answer}{results}", state)
    response = yield from complete_or_downgrade(request, HideOutput)
    cut = FINISH_WARNINGS.get(response.finish)
    changed = parse_changes(app, response.text) if cut is None else ParsedReply("", None, (cut,))
    kept = changed.delta or {}
    if kept:
        from taiwa.flows.ask.provenance import without_repeats

        kept, repeated = without_repeats(conversation, "reply", f"{parsed.answer}{results}", kept)
        yield from _not_said(repeated)
    return replace(parsed, delta=parsed.delta | kept, problems=(*parsed.problems, *changed.problems))


def record_first(turns: Sequence[PastTurn], turn: Step[Conversation, Reply]) -> Step[Conversation, Reply]:
    """Return a turn before which turns that were answered elsewhere join the conversation, with what they change, as by the layout
    `record`. If the model fails, they join without that; the reply warns of it.
    """

    def step(conversation: Conversation) -> Program[tuple[Reply, Conversation]]:
        lost, failure, problem = list[str](), "", ""
        for past in turns:
            parsed = ParsedReply(past.answer, None, (failure,))
            try:
                if not failure:
                    parsed = yield from _record_past(conversation, past)
            except (ModelError, LimitError, ConfigError) as error:
                failure = error.message  # the requests for the turns after it would fail too
                parsed = replace(parsed, problems=(failure,))
            said = _Said(past.user, past.parts.attachments)
            conversation, parsed, uncited = _commit(conversation, said, parsed, Reply(past.answer), ())
            if faults := (*parsed.problems, *uncited):
                lost.append(past.user or past.answer)
                problem = problem or faults[0]
        warnings = [f"the state of {plural(len(turns), 'unknown resent turn')} was recorded from the text"]
        if lost:
            warnings.append(f"the state lacks what {named_turns(lost)} changed: {problem}")
        for warning in warnings:
            yield from notify(warning, code="turn", warning=True)
        reply, after = yield from turn(conversation)
        return replace(reply, warnings=(*warnings, *reply.warnings)), after

    return step


def _record_past(conversation: Conversation, past: PastTurn) -> Program[ParsedReply]:
    """Ask what a turn that was answered elsewhere changes."""
    app, recorded, state = conversation.app, ParsedReply("", {}), conversation.state
    if app.model_fields and past.user:
        recorded, state = yield from _record(conversation, past.user)
    parsed = yield from _record_reply(conversation, past.user, replace(recorded, answer=past.answer), state, ())
    if app.reply != "environment" or not parsed.delta:
        return parsed
    turn = TurnContext(conversation.count + 1, past.user, past.answer, None)
    try:
        after = apply_delta(app.fields, conversation.state, parsed.delta, turn)
    except InputError as error:
        return replace(parsed, delta=None, problems=(error.message,))
    return replace(parsed, delta={name: after[name] for name in parsed.delta})  # such an app has whole values


MOST_NAMED, LONGEST_NAMED = 3, 60
"""The most turns that a warning names, and the most characters of each."""


def named_turns(texts: Sequence[str]) -> str:
    """Name some turns by their texts in a warning."""
    named = (repr(truncate(text, LONGEST_NAMED)) for text in texts[:MOST_NAMED])
    return ", ".join(named) + (", …" if len(texts) > MOST_NAMED else "")


def _sources(
    conversation: Conversation,
    passages: Sequence[Passage],
    calls: "Sequence[ExecutedCall]",
    files: tuple[Attachment, ...],
) -> list[str]:
    """Return the texts of others in the prompt of a turn, names of documents and files among them."""
    shown = (*files, *(each for past in conversation.turns for each in past.parts.attachments))
    earlier = (part for past in conversation.turns for message in past.parts.messages for part in message.parts)
    return [
        *(text for each in passages for text in (each.text, each.source, *each.heading)),
        *(call.result.text for call in calls),
        *(part.text for part in earlier if isinstance(part, ToolResult)),
        *(each.name for each in shown),
        *file_texts(shown),
    ]


def _is_quoted(app: App, text: str, delta: Json, sources: Sequence[str]) -> bool:
    """Whether the delta of a reply is JSON that a source contains, as it is written or read: what a model repeats changes nothing."""
    span = find_delta(text, [field.name for field in app.fields])
    written = "" if span is None else text[span.json :]
    with suppress(ValueError, RecursionError):  # JSON with a fault ends with the reply
        written = written[: json.JSONDecoder().raw_decode(written)[1]]
    read = json.dumps(delta, ensure_ascii=False)
    return any(is_quoted(each, sources) for each in ("".join(written.split()).rstrip("`"), read) if len(each) > 2)


def _behind(prefix: str, response: Response) -> Response:
    """Return the complete response of a model that continued the beginning of an answer."""
    if not prefix:
        return response
    parts: tuple[Part, ...] = (*response.message.thinking, Text(prefix + response.text), *response.message.tool_calls)
    return replace(response, message=Message("assistant", parts))


def complete_turn(
    inputs: Sequence[Message], attachments: Sequence[Attachment] = (), prefix: str = "", by: AnsweredBy = NO_MODEL
) -> Step[Conversation, Reply]:
    """Answer messages by one unmodified response of the model: for an app without state, whose tools its client calls.

    The attachments are those of the last message of the user. The model is made to begin with `prefix`. `by` is recorded in the
    turn.

    Raises (when run):
        OutputValidationError: the model cannot enforce the schema of the request, and neither its answer nor a second one
        fits.
    """

    def step(conversation: Conversation) -> "Program[tuple[Reply, Conversation]]":  # not evaluated for each turn
        text = input_text(inputs)
        conversation = yield from shorten_history(conversation)
        request = turn_request(conversation, text, attachments, inputs=tuple(inputs))
        try:
            response, warnings = yield from _complete_passed_on(request, prefix)
        except UnsupportedError as error:
            if not request.tools or error.capability not in ("tools", "tool_choice"):
                raise
            response, warnings = yield from _complete_with_tools_in_prompt(request, prefix, error.message)
        response = with_new_ids(response, request)
        words = whole_characters(response.text)
        answer = Message("assistant", (Text(words), *response.message.tool_calls))
        parts = TurnParts(tuple(attachments), response.message.signed_thinking, (*inputs, answer), prefix)
        after = add_turn(conversation, text, words, {}, parts, by)
        return Reply(words, {}, warnings, response=response), after

    return step


def _complete_passed_on(request: Request, prefix: str) -> Program[tuple[Response, tuple[str, ...]]]:
    """Complete a request of a client as it is; without its schema if the server cannot enforce that.

    Raises (when run):
        UnsupportedError: the server has no tools, or answers in words although `tool_choice` requires a call.
        OutputValidationError: the answer is not what the server is known to enforce, or a second one does not fit either.
    """
    schema = None if prefix or not isinstance(request.constraint, JsonSchema) else request.constraint
    is_known = schema is None or (yield from _enforces_schemas())
    whole = replace(request, prefix=prefix) if prefix else request
    must_call = bool(request.tools) and request.tool_choice not in ("auto", "none")
    try:
        # An answer is not shown before it is checked, if nothing is known about the server; several ignore `tool_choice`.
        asked = Complete(whole, HideOutput if not is_known else HideText if must_call else None)
        response = _behind(prefix, (yield from perform(asked)))
    except UnsupportedError as error:
        if schema is None or error.capability != "json_schema":
            raise
        return (yield from _complete_checked(request, schema, error.message, 2))
    if must_call and not response.message.tool_calls and response.finish == "stop" and response.stop != "refusal":
        why = "its server answers in words although `tool_choice` requires a call"
        raise UnsupportedError(why, capability="tool_choice")
    try:
        if not response.message.tool_calls and not prefix:
            _check_promised(request.constraint, response)
    except OutputValidationError as error:
        if schema is None or is_known:
            raise
        if fenced := _answer_in_fences(request, schema, response.text):
            message = Message("assistant", (*response.message.thinking, Text(fenced)))
            return replace(response, message=message), (f"the answer was taken out of its fences: {error.message}",)
        return (yield from _complete_checked(request, schema, error.message, 1))  # one was paid for already
    return response, ()


FENCED = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)


def _answer_in_fences(request: Request, schema: JsonSchema, text: str) -> str:
    """Return the JSON in the only fences of a text if it fits a schema as it is and does not stand in a message; else ""."""
    found = FENCED.findall(text)
    if len(found) != 1:
        return ""
    plain = "".join(found[0].split())
    if any(plain in "".join(message.text.split()) for message in request.messages):
        return ""
    parsed = parse_typed(OutputType.from_json_schema(dict(schema.schema), name=schema.name), found[0])
    return "" if parsed.delta is None or parsed.repairs else parsed.answer


def _complete_with_tools_in_prompt(
    request: Request, prefix: str, reason: str
) -> Program[tuple[Response, tuple[str, ...]]]:
    """Complete a request whose tools the server does not call: they are in the prompt, and calls are read from the answer.

    An answer without a call that `tool_choice` requires is sent back once.

    Raises (when run):
        OutputValidationError: the second one has none either.
    """
    from taiwa.flows.tools_in_prompt import CallsHidden, read_calls, tools_in_prompt

    tools = request.tools if request.tool_choice != "none" else ()
    is_required = request.tool_choice not in ("auto", "none")
    warnings = (f"the functions are in the prompt, and calls are read from the answer: {reason}",)
    enforces = is_required and (yield from _enforces_schemas())
    asked = tools_in_prompt(request, enforces_schemas=enforces)
    if isinstance(request.constraint, JsonSchema) and not (is_required or prefix):
        response, more = yield from _complete_checked(asked, request.constraint, reason, 2, tools)
        return response, (*warnings, *more)
    response = Response(assistant(""))
    for _ in range(2):
        watch: Callable[[], Watcher] = HideOutput if is_required else partial(CallsHidden, tools, request.messages)
        made = yield from perform(Complete(replace(asked, prefix=prefix), watch))
        response = read_calls(_behind(prefix, made), tools, request)
        if response.message.tool_calls or not is_required or response.finish != "stop":
            return response, warnings
        messages = (*asked.messages, assistant(made.text), user("Answer only with a call."))
        asked = replace(asked, messages=messages)
    raise OutputValidationError("the answer has no call, which tool_choice requires", text=response.text)


def _check_promised(constraint: Constraint | None, response: Response) -> None:
    """Check an answer that the model's server should have constrained; one that was cut or refused reports that itself.

    Raises:
        OutputValidationError: it does not fit.
    """
    if response.finish != "stop":
        return
    problems = () if response.decoding.enforcement is None else response.decoding.enforcement.broken
    if isinstance(constraint, Choice) and response.text not in constraint.texts:
        problems = ("not one of the texts",)
    elif isinstance(constraint, JsonSchema):
        problems = _mismatches(constraint, response.text)
    if problems:
        why = f"the answer is not what the model's server was to bind it to: {problems[0]}"
        raise OutputValidationError(why, text=response.text, diagnostics=problems)


def _mismatches(constraint: JsonSchema, text: str) -> tuple[str, ...]:
    """Return why a text, which is passed on as it is, does not fit a schema. A `null` may stand for what the schema leaves out: servers
    that enforce the strict form of a schema write it.
    """
    output_type = OutputType.from_json_schema(dict(constraint.schema), name=constraint.name)
    try:
        data = parse_json(text)
    except ValueError:
        return ("$: not JSON",)
    try:
        output_type.validate(data)
    except OutputValidationError as error:
        read = parse_typed(output_type, text)
        if not read.problems and _without_nulls(parse_json(read.answer)) == _without_nulls(data):
            return ()
        return error.diagnostics or (error.message,)
    return ()


def _without_nulls(data: Json) -> Json:
    if isinstance(data, dict):
        return {name: _without_nulls(each) for name, each in data.items() if each is not None}
    return [_without_nulls(each) for each in data] if isinstance(data, list) else data


def _complete_checked(
    request: Request, schema: JsonSchema, reason: str, answers: int, tools: Sequence[ToolSpec] = ()
) -> Program[tuple[Response, tuple[str, ...]]]:
    """Complete a request whose schema the model cannot enforce: the schema is in the prompt, and the answer is checked.

    An invalid answer is sent back while fewer than `answers` were given. Only a valid answer is shown. Calls of the `tools` are read
    from its text.

    Raises (when run):
        OutputValidationError: the last answer does not fit either, or one was cut off at the length limit.
    """
    output_type = OutputType.from_json_schema(dict(schema.schema), name=schema.name)
    # Transient: the next request of the client does not repeat it, so it must not break the prefix of the cache.
    contract = Message("user", (Text(TYPED.format(type=output_type.render()), transient=True),))
    messages = (*request.messages, contract)
    warnings = [f"the answer was checked against its schema and not bound to it: {reason}"]
    problems: list[str] = []
    response = Response(assistant(""))
    for _ in range(answers):
        asked = replace(request, messages=messages, constraint=None)
        response = yield from perform(Complete(asked, HideOutput))
        if tools:
            from taiwa.flows.tools_in_prompt import read_calls

            response = read_calls(response, tools, asked)
        if response.message.tool_calls:
            return response, tuple(warnings)
        if response.finish == "length":  # a second answer would be cut too
            own = request.sampling.max_tokens
            why = f"{FINISH_WARNINGS['length']}; raise max_tokens" + ("" if own is None else f", which is {own:,}")
            raise OutputValidationError(why, text=response.text, diagnostics=(FINISH_WARNINGS["length"],))
        parsed = parse_typed(output_type, response.text)
        if parsed.delta is not None:
            if parsed.repairs:
                warnings.append(f"the JSON of the answer was repaired: {', '.join(parsed.repairs)}")
            message = Message("assistant", (*response.message.thinking, Text(parsed.answer)))
            return replace(response, message=message), tuple(warnings)
        problems = list(parsed.problems)
        messages = (*messages, *_repair_messages(response.text, problems, output_type.render()))
        warnings.append(f"the first answer did not fit and was repaired: {problems[0]}")
    why = f"the answer does not fit the schema, which the model cannot enforce: {problems[0]}"
    raise OutputValidationError(why, text=response.text, diagnostics=tuple(problems))


def compact(conversation: Conversation) -> Program[tuple[Reply, Conversation]]:
    """Replace all turns of the window by a summary.

    Raises (when run):
        InputError: there is no turn.
        ModelError: the model failed, or wrote no summary.
    """
    if not conversation.turns:
        raise InputError("the conversation has no turn to compact")
    request = summary_request(conversation, conversation.turns)
    summary, response = yield from _summarize(request)
    if not summary:
        raise RefusalError("the model wrote no summary", request=request.digest)
    return Reply(summary, response=response), summarize_window(conversation, (), summary)


def _summarize(request: Request) -> Program[tuple[str, Response]]:
    """Complete a request for a summary; the text is "" if the model wrote none."""
    response = yield from perform(Complete(request, HideOutput, "summarize"))
    usable = response.finish not in {"refusal", "interrupted"}
    return whole_characters(response.text).strip() if usable else "", response


def input_text(inputs: Sequence[Message]) -> str:
    """Return the text that represents the input of a turn in a log: the user's text, else the results of calls."""
    if len(inputs) == 1 and inputs[0].role == "user":
        return inputs[0].text
    said = [message.text for message in inputs if message.role == "user"]
    parts = [part for message in inputs for part in message.parts if isinstance(part, ToolResult)]
    results = [part.text or (EMPTY_RESULT if not part.attachments else "") for part in parts]
    return "\n\n".join(text for text in said or results if text)


EMPTY_RESULT = "(no text)"
"""What a log shows of a tool that returned nothing; the model is sent the empty result."""


def _enforces_schemas() -> Program[bool]:
    """Return whether the server enforces schemas; call it only if one would be sent, because every effect is recorded."""
    return "json_schema" in (yield from perform(GetCapabilities()))


def shorten_history(conversation: Conversation) -> Program[Conversation]:
    """Remove old turns from a full history; replace them by a summary if the app asks for one."""
    staying = turns_to_keep(conversation)
    if staying is None:
        return conversation
    hashes = [past.hash for past in staying]
    if not conversation.app.window.summarize:
        return summarize_window(conversation, hashes, conversation.summary)
    leaving = tuple(past for past in conversation.turns if past not in staying)
    reason = ""
    try:
        summary, _ = yield from _summarize(summary_request(conversation, leaving))
    except ModelError as error:
        # A refused summary would be refused before every later turn too, so the turn continues without one.
        reason = f": {error.message}"
    else:
        if summary:
            return summarize_window(conversation, hashes, summary)
    yield from notify(Wording.joined("", (Wording("the old turns could not be summarised; they stay in the prompt"), reason)), code="fold", warning=True)  # fmt: skip
    return conversation


def compress_fields(conversation: Conversation) -> Program[Conversation]:
    """Let the model compress texts that exceed a reducer `summary(tokens)`; if that fails, they stay unchanged."""
    values: dict[str, Json] = {}
    for field in conversation.app.model_fields:
        text, limit = conversation.state[field.name], field.reducer.max_tokens
        if limit is None or not isinstance(text, str) or estimate_tokens(text) <= limit:
            continue
        reason = ""
        try:
            summary, _ = yield from _summarize(field_summary_request(conversation.app, field, text))
        except ModelError as error:
            reason = f": {error.message}"
        else:
            if 0 < len(summary) < len(text):
                values[field.name] = summary
                continue
        yield from notify(f"the field {field.name} could not be compressed{reason}", code="fold", warning=True)
    return edit_state(conversation, values, "compressed by the model") if values else conversation


def _commit(
    conversation: Conversation, said: _Said, parsed: ParsedReply, reply: Reply, passages: Sequence[Passage]
) -> tuple[Conversation, ParsedReply, tuple[str, ...]]:
    """Commit a turn, without its delta if a reducer rejects it; fields that demand a source keep only what one holds, and each of
    the others is warned of.

    Raises:
        InputError: strict, and a reducer rejected the delta.
    """
    uncited: tuple[str, ...] = ()
    findings = reply.findings.to_json() or None
    if parsed.delta and any(field.cite for field in conversation.app.model_fields):
        from taiwa.flows.ask.provenance import cited_only

        cited, uncited = cited_only(conversation, said.text, parsed.delta, findings, passages)
        parsed = replace(parsed, delta=cited)
    # In an environment `response` holds the answer; it is not a field.
    delta = {name: part for name, part in (parsed.delta or {}).items() if name != "response"}
    try:
        thinking = () if reply.response is None else reply.response.message.signed_thinking
        parts = TurnParts(said.attachments, thinking, prefix=said.prefix, findings=findings)
        after = add_turn(conversation, said.text, parsed.answer, delta, parts, said.by)
        return after, parsed, uncited
    except InputError:
        without = _accepted(conversation, parsed)
        if said.strict or len(without.fits) == len(parsed.fits):
            raise
        after, without, _ = _commit(conversation, said, without, reply, passages)
        return after, without, uncited


def _parse_or_repair(
    app: App, request: Request, response: Response, repairs: int, layout: ReplyLayout
) -> Program[ParsedReply]:
    """Parse a reply; if its delta is invalid, keep the answer and what fits of the delta, and request only the delta.

    If its typed answer is invalid, the whole reply is requested again.
    """
    if response.finish == "refusal" and not response.text.strip():
        raise RefusalError(Wording("the model refused to answer"), request=request.digest)
    parsed = parse_reply(app, response.text, layout)
    invalid, faults = response.text, parsed.problems
    for _ in range(repairs):
        if parsed.delta is not None or response.finish in {"interrupted", "refusal", "length", "repetition"}:
            break
        is_whole = app.output_type is not None and not parsed.written
        try:
            constrained = yield from _enforces_schemas()
            full = layout == "json" or constrained
            repair = _repair_request(app, request, invalid, parsed, layout, full=full, constrained=constrained)
            again = yield from complete_or_downgrade(repair, HideOutput)
        except (ModelError, LimitError, ConfigError) as error:
            # The answer is complete and paid for: a failed repair must not discard it.
            return replace(parsed, problems=faults).settled(f"it could not be requested again: {error.message}")
        repaired = parse_reply(app, again.text, layout) if is_whole else parse_delta(app, again.text, layout, full=full)
        # The model has not understood the faults, and would be paid for them once more.
        if repaired.delta is None and set(repaired.problems) == set(parsed.problems):
            break
        names = {field.name for field in app.fields}
        tables = {field.name for field in app.model_fields if field.reducer.delta_kind == "table"}
        tables = set[str]() if layout == "environment" else tables  # there a table is written whole
        parsed = repaired if is_whole else parsed.repaired(repaired, names, tables)
        # The answer of the first reply stays; an environment contains its own.
        if isinstance(answer := (repaired.delta or {}).get("response"), str):
            parsed = replace(parsed, answer=answer)
        invalid = again.text
    return parsed if parsed.delta is not None else replace(parsed, problems=faults).settled()


def _repair_request(
    app: App,
    request: Request,
    invalid: str,
    parsed: ParsedReply,
    layout: ReplyLayout,
    *,
    full: bool,
    constrained: bool,
) -> Request:
    if app.output_type is not None and not parsed.written:
        schema = reply_schema(app, layout)
        rendered = render_reply(app) if layout == "json" and app.model_fields else app.output_type.render()
    else:
        delta_type = app.full_delta_type if full else app.delta_type
        output_type = app.environment_type if layout == "environment" else delta_type
        schema, rendered = JsonSchema(output_type.schema(), "delta"), output_type.render()
    messages = (*request.messages, *_repair_messages(invalid, parsed.problems, rendered))
    constraint = schema if constrained else None
    return replace(request, messages=messages, constraint=constraint, sampling=settled(request.sampling))


def _repair_messages(invalid: str, faults: Sequence[str], rendered: str) -> tuple[Message, Message]:
    lines = "\n".join(f"{number}. {fault}" for number, fault in enumerate(faults, 1))
    return assistant(invalid), user(REPAIR_PROMPT.format(faults=lines, type=rendered))


def _warnings(response: Response, parsed: ParsedReply) -> tuple[str, ...]:
    finish = FINISH_WARNINGS.get(response.finish) or ("" if parsed.answer.strip(NO_WORDS) else Wording("the model returned no text"))  # fmt: skip
    problem = Wording.joined("; ", (NO_STATE,) if parsed.missing else parsed.problems)
    state = Wording("the state is unchanged: {problem}", problem=problem)
    if parsed.delta and parsed.problems:
        state = Wording("not recorded: {problem}", problem=problem)
    return tuple(filter(None, (finish, state if parsed.missing or parsed.problems else "")))
