"""A turn that survives a crash: begun in the store, journaled while it runs, committed in one transaction.

When a turn ends, `Store.commit` writes in one transaction its nodes, its app if the store lacks it, the session's new tip with an
entry in its log, and the end of the run. A turn with a `transcript` adds the digest by which its history is found again. Then
`Repository.commit` adds a snapshot every 32nd turn if the app has state or some turns have left the window: a checkout would otherwise read
the history from its root. A turn of the flow `ask` assigns its session to the user. The tables are in `taiwa.store.schema`.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import takewhile
from math import inf
from operator import attrgetter
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, cast

from taiwa.conversation.app import EXTRACT, ROUTE, App
from taiwa.conversation.history import (
    NO_MODEL,
    AnsweredBy,
    Conversation,
    Node,
    PastTurn,
    Transcript,
    TurnParts,
    change_app,
    next_address,
    turn_digest,
)
from taiwa.conversation.state import State
from taiwa.flows.turn import Findings, Reply, compact, complete_turn, input_text, record_first, say
from taiwa.kernel.approval import ApprovalRequest, Approve
from taiwa.kernel.attachments import Attachment, read_reference
from taiwa.kernel.effects import Complete, Program, Step, notify
from taiwa.kernel.errors import ApprovalRequiredError, ConflictError, InputError, StoreError, TaiwaError, describe
from taiwa.kernel.execution import EffectStarted, Entry, Event, Journal, Observer
from taiwa.kernel.messages import Message, TextDelta, ToolResult, Usage, result_files
from taiwa.kernel.runtime import AnyModel, Interrupts, Retriever, Tool, start_in_thread
from taiwa.kernel.serialization import Json, item_at, items_at, record, restore, value
from taiwa.kernel.text import truncate
from taiwa.kernel.usage_limits import Billing, Price, Prices, RunUsage, UsageLimits, currency_units
from taiwa.kernel.wording import Wording
from taiwa.sessions.repository import Repository
from taiwa.store import Run, check_name, conflict_message

if TYPE_CHECKING:
    from taiwa.flows.ask.ask_result import AskResult, AskTurnOptions, Citation
    from taiwa.flows.ask.quote import TermWeights
    from taiwa.flows.program_turn import Paused, TurnProgram
    from taiwa.sessions.ask_resources import RagResources
    from taiwa.structured import OutputType


if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    V = TypeVarWithDefault("V", default=Any)
else:
    V = TypeVar("V")
"""The type of the answers."""
T = TypeVar("T")

MAX_TEXT_CHARS = 2_000_000


def no_attachments(app: App) -> Wording:
    """Return the message of an app that does not take attachments."""
    return Wording("the app {app!r} does not take attachments; index the files: {command}", app=app.name, command="taiwa index FOLDER")  # fmt: skip


def check_text(text: object) -> None:
    """Check that the user's text can be sent.

    Raises:
        InputError: it is not a text, empty or too long.
    """
    if not isinstance(text, str):
        raise InputError(f"the text must be a str, got {describe(text)}")
    if not text.strip():
        raise InputError(Wording("the text is empty"))
    if len(text) > MAX_TEXT_CHARS:
        raise InputError(Wording("the text has {n} characters; at most {most} are allowed in one turn", n=f"{len(text):,}", most=f"{MAX_TEXT_CHARS:,}"))  # fmt: skip


class RuntimeOptions(TypedDict, total=False):
    """Options of a runtime in addition to its model."""

    tools: Iterable[Tool]
    retriever: Retriever
    observers: Iterable[Observer]
    limits: UsageLimits | None
    billing: Billing
    approve: Approve | None


def state_table(state: State) -> str:
    """Return a state as a table of Markdown; "" if it is empty."""
    from taiwa.retrieval.tables import table_text

    rows = [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in state.items()
    ]
    return table_text(("state", "value"), rows) if rows else ""


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A model and its prices; None if they are unknown."""

    model: AnyModel
    rates: Prices | None = None

    @property
    def price(self) -> Price:
        """The price of a call, for limits and usage."""
        return lambda _, usage: None if self.rates is None else self.rates.cost(usage)


@value(tag="turn-options")
class TurnOptions:
    """Options of the turns of a session.

    - `strict`: an unparsable state delta fails the turn. `repairs`: how often an invalid delta is sent back.
    - `limits`: usage limits of all turns of an opened session together; None: those that the conversation keeps.
    - `interrupts`: what a KeyboardInterrupt does to a streaming answer (`keep`: the turn is committed with the text so far).
    - `tools`: tools that an app may name in addition to the built-in ones.
    - `types`: types of answers as code defines them, which may check more than the schema that an app keeps.
    - `approve`: decides on calls of tools that need approval, as that of a runtime.
    - `whole`: nothing reads an answer before its end, as that of an `AsyncRuntime`.
    """

    strict: bool = False
    repairs: int = 1
    limits: UsageLimits | None = None
    interrupts: Interrupts = "raise"
    tools: tuple[Tool, ...] = ()
    approve: Approve | None = None
    types: "tuple[OutputType[Any], ...]" = ()
    whole: bool = False

    @property
    def cost_limit(self) -> int | None:
        """The cost limit, in billionths of the currency unit."""
        return None if self.limits is None else self.limits.cost

    @property
    def of_answer(self) -> dict[str, Json]:
        """The options that an answer depends on, without limits."""
        return {"strict": self.strict, "repairs": self.repairs}


@value
class CommitTarget:
    """Where a turn is committed, and the reason in the log: `replaces` is the tip that the session leaves when it goes back.

    A turn that `branches` starts a new session at a node of another one; with `may_branch` it does so only if the session has moved, and
    if it `stays`, only if the session was deleted. One that `compacts` replaces all earlier turns by a summary.
    """

    reason: str = "turn"
    replaces: str | None = None
    branches: bool = False
    may_branch: bool = False
    stays: bool = False
    compacts: bool = False

    def branches_from(self, tip: str | None) -> bool:
        """Return whether the turn becomes a branch if its session is at another tip than expected, None if it was deleted."""
        return self.may_branch and not (self.stays and tip)


@value
class Resent:
    """What a client that keeps no ids resent before a turn, whose node is found again by its `transcript`.

    The `unknown` turns, which were answered elsewhere, are recorded before it.
    """

    transcript: Transcript | None = None
    unknown: tuple[PastTurn, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """What the result of the turn warns about, apart from its answer; not stored."""


@value
class TurnInput:
    """The user's message of a turn, the conversation before it, and where it is committed.

    `messages` replace the text in an app without state, and the model answers them once. `prefix` is prefilled.
    """

    base: Conversation
    text: str
    target: CommitTarget = CommitTarget()
    attachments: tuple[Attachment, ...] = ()
    messages: tuple[Message, ...] = ()
    prefix: str = ""
    resent: Resent = Resent()
    attempt: str = field(default="", compare=False)
    """What `Runs.repeated` finds the run by."""
    program: "TurnProgram | None" = field(default=None, compare=False)
    """A program that makes the turn instead of the app's; it is not stored, so it is given again to resume an interrupted turn of it."""

    @property
    def follows(self) -> str | None:
        """The node that the turn follows, None if it is not stored yet."""
        return self.base.stored_tip

    @property
    def expected(self) -> str | None:
        """The tip that the session must have, None if it must not exist."""
        return None if self.target.branches else self.target.replaces or self.follows

    def check(self) -> None:
        """Check the turn, before anything is stored for it.

        Raises:
            InputError: the text is empty or too long, or the app does not take attachments or a prefix.
        """
        text, app = input_text(self.messages) if self.messages else self.text, self.base.app
        if not self.target.compacts and (text or not (self.messages or self.attachments)):
            check_text(text)
        if self.attachments and app.only_answers:
            raise InputError(no_attachments(app))
        if self.attachments and app.flow not in ("", EXTRACT, ROUTE):
            raise InputError(f"the program of the app {app.name!r} does not take attachments")
        if self.prefix and (app.documents is not None or app.flow):
            does = "searches documents" if app.documents is not None else "has a program for its turns"
            raise InputError(f"the app {app.name!r} {does}: its answers cannot be made to begin with a text")

    def to_json(self) -> dict[str, Json]:
        """Return the data that another process needs to commit the turn."""
        more: dict[str, Json] = {
            "attachments": [each.reference() for each in self.attachments],
            "messages": record(self.messages),
            "branches": self.target.branches,
            "compacts": self.target.compacts,
            "transcript": record(self.resent.transcript),
            "prefix": self.prefix,
            "unknown": [
                {
                    "user": past.user,
                    "answer": past.answer,
                    "attachments": [each.reference() for each in past.parts.attachments],
                }
                for past in self.resent.unknown
            ],
            "program": _name_of(self.program),
        }
        return {"reason": self.target.reason, "replaces": self.target.replaces} | {
            name: part for name, part in more.items() if part
        }


@value
class TurnResult(Generic[V]):
    """A committed turn: the reply, its place in the store, and its usage.

    `state` is the dialogue state after it, `calls` are the results of the tools that it called, `findings` are those of `Node`, and
    `prefix` is the prefilled beginning of the answer. The reply has what the turn rests on: the response of the model, the rationale of
    `solve`, the attempts of `extract`.
    """

    reply: Reply
    session: str
    node: str
    parent: str
    spent: RunUsage
    state: State = field(default_factory=dict[str, Json])
    calls: tuple[ToolResult, ...] = ()
    findings: Json = None
    prefix: str = ""

    @property
    def text(self) -> str:
        """The answer."""
        return self.reply.text

    @property
    def value(self) -> V:
        """A typed answer: a value of the type that code gave, or JSON, as `reply.value` always is."""
        return cast("V", self.reply.value if self.reply.typed is None else self.reply.typed)

    @property
    def delta(self) -> Json:
        """The state delta."""
        return self.reply.delta

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user."""
        return self.reply.warnings

    @property
    def ask(self) -> "AskResult | None":
        """The result of its documents."""
        return self.reply.findings.documents

    @property
    def is_refused(self) -> bool:
        """Whether the model refused to answer, or to continue."""
        return self.reply.is_refused

    @property
    def continuation(self) -> str:
        """The text that the model wrote after the prefilled beginning of the answer."""
        return self.text.removeprefix(self.prefix)

    def __repr__(self) -> str:
        return f"TurnResult({truncate(self.text, 60)!r}, session {self.session!r}, node {self.node[:8]})"

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: the answer, and the state after it as a table."""
        return "\n\n".join(filter(None, (self.text, state_table(self.state))))

    @property
    def citations(self) -> "tuple[Citation, ...]":
        """The citations of an answer from documents."""
        return () if self.ask is None else self.ask.citations

    @property
    def usage(self) -> Usage:
        """The tokens of all calls of the turn; see `spent` for calls with unknown usage."""
        return self.spent.usage

    @property
    def cost(self) -> Decimal | None:
        """The cost of the turn in currency units; None if a price is unknown."""
        return currency_units(self.spent.cost)


LEFT_OUT = ("reply.response", "reply.findings.calls", "reply.findings.rationale", "reply.findings.attempts")
"""The parts of a turn that the record of its reply leaves out."""


def turn_to_json(turn: "TurnResult[Any]") -> dict[str, Json]:
    """Serialise a turn, without the value of a type that only code has."""
    parts = {name: record(getattr(turn, name)) for name in ("reply", "spent", "calls")}
    more: dict[str, Json] = {path: record(attrgetter(path)(turn)) for path in LEFT_OUT}
    texts = {name: getattr(turn, name) for name in ("session", "node", "parent", "state", "findings", "prefix")}
    return {**texts, **parts, "more": more}


def turn_from_json(data: Mapping[str, Any]) -> "TurnResult[Any]":
    """Read a turn that `turn_to_json` wrote."""
    from taiwa.flows.ask.ask_result import AskResult
    from taiwa.flows.extract import Attempt
    from taiwa.flows.solve.rationale import ExecutedCall, Rationale

    del Attempt, ExecutedCall, Rationale  # their tags are known from now on
    turn = dict(data) | {name: restore(data[name]) for name in ("reply", "spent", "calls")}
    kept = turn.pop("more")
    response, *more = (restore(kept[path]) for path in LEFT_OUT)
    found = Findings(AskResult.of(turn["findings"]), *more)
    return TurnResult(**turn | {"reply": replace(turn["reply"], response=response, findings=found)})


KEEP_SECONDS = 1.0
"""Seconds between two writes of an answer that is being streamed: what a killed process loses of it."""


class PartialAnswer:
    """The text of an answer while it is streamed, kept in the store now and then, and when the turn fails.

    A `whole` answer arrives at its end, when its turn is about to be stored.
    """

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic, *, whole: bool = False
    ) -> None:
        self._write = write
        self._clock = clock
        self._pieces: list[str] = []
        self._next = inf if whole else clock() + KEEP_SECONDS
        self.rest: Observer | None = None
        """Observes the events other than text, of which an answer has thousands."""

    def __call__(self, event: Event) -> None:
        """Observe an event."""
        if isinstance(event, TextDelta):
            self._pieces.append(event.text)
            if self._clock() >= self._next:
                self._next = self._clock() + KEEP_SECONDS
                start_in_thread(self.keep, "keep-partial")  # a stream does not wait for it
        elif self.rest is not None:
            self.rest(event)

    def keep(self) -> None:
        """Write the text received so far."""
        self._write("".join(self._pieces))


def step_of(
    turn_input: TurnInput,
    options: "TurnOptions",
    tools: Iterable[Tool],
    paused: "Paused | None" = None,
    by: AnsweredBy = NO_MODEL,
    documents: "tuple[AskTurnOptions, TermWeights] | None" = None,
) -> Step[Conversation, Reply]:
    """Return the step of a turn: what its app, its options and its input make it; unknown turns are recorded first."""
    app, text, attachments = turn_input.base.app, turn_input.text, turn_input.attachments
    options_of_search, term_weights = documents or (None, None)
    default = partial(
        say, strict=options.strict, repairs=options.repairs, tools=[tool.spec for tool in tools], by=by,
        documents=options_of_search, term_weights=term_weights,
    )  # fmt: skip
    turn: Step[Conversation, Reply]
    if turn_input.target.compacts:
        turn = compact
    elif turn_input.program is not None or app.flow:
        from taiwa.flows.program_turn import run_turn
        from taiwa.sessions.turn_programs import turn_program

        program = turn_input.program or turn_program(app, tools, attachments)
        shows = turn_input.program is None and not app.runs_file  # `solve` shows its steps, which are its reply
        turn = run_turn(program, text, attachments, paused=paused, by=by, default=default, shows=shows)
    elif turn_input.messages:
        turn = complete_turn(turn_input.messages, attachments, turn_input.prefix, by)
    else:
        turn = default(text, attachments, prefix=turn_input.prefix)
    unknown = turn_input.resent.unknown
    return record_first(unknown, turn) if unknown else turn


@dataclass(slots=True)
class ActiveTurn:
    """A turn that is running: its program, the journal of its calls, the options of its runtime, and its answer so far."""

    repository: Repository
    session: str
    turn_input: TurnInput
    run: int
    program: Program[tuple[Reply, Conversation]]
    journal: Journal
    runtime_options: RuntimeOptions
    resources: "RagResources | None"
    partial: PartialAnswer

    def fail(self, error: BaseException) -> None:
        """Record how the turn failed; a missing approval, or an exception other than `TaiwaError`, leaves the turn open."""
        runs = self.repository.store.runs
        with suppress(StoreError):
            self.partial.keep()
            if isinstance(error, ApprovalRequiredError):
                runs.wait(self.run, [{"name": each.name, "arguments": dict(each.arguments)} for each in error.calls])
            elif isinstance(error, TaiwaError):
                runs.end(self.run, "failed", error)
            else:
                runs.release(self.run)

    def _committed(self, session: str, after: Conversation, expected: str | None) -> Conversation:
        repository, turn_input = self.repository, self.turn_input
        place = turn_input.resent.transcript
        if place is None:
            return repository.commit(session, after, expected=expected, reason=turn_input.target.reason, run=self.run)
        with repository.store.transaction(session):
            committed = repository.commit(
                session, after, expected=expected, reason=turn_input.target.reason, run=self.run
            )
            digest = turn_digest(after.turns[-1].all_messages)
            address = next_address(place.address, digest)
            repository.store.transcripts.put(place.app, address, digest, committed.tip, session)
        repository.remember(committed)
        return committed

    def commit(
        self, reply: Reply, after: Conversation, spent: RunUsage, calls: tuple[ToolResult, ...] = ()
    ) -> tuple[TurnResult[Any], Conversation]:
        """Write the turn with the results of its tool calls, and move the session to it.

        Raises:
            ConflictError: another process moved the session; the turn is kept as a branch, which the message names.
        """
        turn_input, follows = self.turn_input, self.turn_input.follows
        try:
            committed = self._committed(self.session, after, turn_input.expected)
        except ConflictError:
            refs = self.repository.store.refs
            if not turn_input.target.branches_from(refs.find_tip(self.session)):  # paid turns are kept
                with self.repository.store.transaction():  # two processes take different names
                    branch = refs.free_name(self.session)
                    self._committed(branch, after, None)
                raise ConflictError(moved_message(self.session, branch)) from None
            self.session = branch_name(after)
            committed = self._committed(self.session, after, None)
        recorded = [node.hash for node in after.new_nodes[:-1] if node.kind == "turn"]
        parent = recorded[-1] if recorded else follows or str(after.new_nodes[1].parent)
        if turn_input.resent.warnings:
            reply = replace(reply, warnings=(*turn_input.resent.warnings, *reply.warnings))
        result: TurnResult[Any] = TurnResult(
            reply, self.session, committed.tip, parent, spent,
            committed.state, calls, after.turns[-1].findings if after.turns else None, turn_input.prefix,
        )  # fmt: skip
        if self.resources is not None:
            self.resources.assign_session(self.repository.store, self.session)
        return result, committed


def moved_message(session: str, branch: str) -> str:
    """Return the message for a turn whose session was moved by another program meanwhile."""
    return f"session {session!r}: another program changed it first; this turn is kept as session {branch!r}"


def branch_name(conversation: Conversation) -> str:
    """Return a name for a session begun by a program; it is unique without checking the store."""
    return f"{conversation.app.name}-{token_hex(5)}"


def begin_turn(
    repository: Repository, session: str, turn_input: TurnInput, priced_model: PricedModel, options: TurnOptions
) -> ActiveTurn:
    """Begin a turn; all its paid calls are stored. Without a name, a new session takes a free one.

    Raises:
        ConflictError: the session has another tip, so the turn could not be committed; no call was made.
        InputError: the session name or the text is invalid, or the app searches documents and the message has attachments.
        RateLimitError, LimitError: the quota of the caller is used up.
    """
    store, base = repository.store, turn_input.base
    turn_input.check()
    repository.check_trust(base.app)
    # An interrupted turn can be resumed after them; a root alone is stored with its turn.
    drafts = base.new_nodes if any(node.kind != "root" for node in base.new_nodes) else ()
    if drafts:
        expected = turn_input.expected
        target = replace(turn_input.target, replaces=expected, branches=expected is None)
        turn_input = replace(turn_input, base=base.stored(), target=target)
    turn_input = _filled(repository, turn_input)
    resources = open_resources(repository, base, priced_model)
    try:
        program, runtime_options, paid = prepare_turn(repository, turn_input, priced_model, options, resources)
        with store.transaction(session if turn_input.expected else ""):  # two processes take different names
            session = check_name(session or repository.new_name(base.app))
            tip = store.refs.find_tip(session)
            if tip != turn_input.expected and turn_input.target.branches_from(tip):
                session, turn_input = (
                    branch_name(base),
                    replace(turn_input, target=replace(turn_input.target, branches=True)),
                )
            elif tip != turn_input.expected:
                raise ConflictError(conflict_message(session, tip, turn_input.expected))
            elif (turn_input.program is not None or answers_program(base)) and store.runs.is_running(session):
                # What follows a question or an approval must not happen once for each process that answers.
                raise ConflictError(f"session {session!r}: another program completes a turn; wait for its end")
            # Within the transaction, or requests at the same time would each find the last place free.
            if repository.quota is not None:
                repository.quota.admit()
            limit: dict[str, Json] = {} if options.cost_limit is None else {"max_cost": options.cost_limit}
            recorded = options.of_answer | limit | turn_input.to_json()
            if resources is not None:
                recorded["turn_options"] = record(resources.options)
            app = base.app.source if base.new_nodes else base.app.hash
            files = (
                *turn_input.attachments,
                *result_files(turn_input.messages),
                *(file for past in turn_input.resent.unknown for file in past.files),
            )
            target, text = turn_input.target, turn_input.text
            follows = store.keep(drafts, (base.app.source,)) if drafts else turn_input.follows
            branches = target.branches and target.may_branch
            run = store.runs.begin(
                session, follows, app, text, recorded, files, branches=branches, attempt=turn_input.attempt
            )
    except BaseException:
        if resources is not None:
            resources.close()
        raise
    journal = Journal(paid, sink(repository, run, priced_model))
    answer = PartialAnswer(partial(store.runs.keep_partial, run), whole=options.whole)
    return ActiveTurn(repository, session, turn_input, run, program, journal, runtime_options, resources, answer)


def prepare_turn(
    repository: Repository,
    turn_input: TurnInput,
    priced_model: PricedModel,
    options: TurnOptions,
    resources: "RagResources | None",
) -> tuple[Program[tuple[Reply, Conversation]], RuntimeOptions, tuple[Entry, ...]]:
    """Return the program of a turn, the options of its runtime, and the paid calls of the program that waits for its text.

    Raises:
        ConfigError: a tool is not found, or the file of its program was not confirmed.
        InputError: its app lacks what its program needs.
    """
    base, model = turn_input.base, priced_model.model
    tools = repository.tools_of(base.app)
    paused, paid = (None, ()) if turn_input.resent.unknown else find_paused(repository, turn_input)
    by = AnsweredBy(model.name, str(getattr(model, "host", "")))
    documents = None if resources is None else (resources.options, resources.term_weights)
    turn = step_of(turn_input, options, tools, paused, by, documents)
    runtime_options: RuntimeOptions = {"tools": tools, "approve": options.approve}
    if resources is not None:
        turn = resources.reporting(turn)
        runtime_options["retriever"] = resources.retriever
    hint: str | None = getattr(model, "tools_hint", None) if tools and not (base.app.flow or base.turns) else None
    return turn(base) if hint is None else _after_notice(hint, turn(base)), runtime_options, paid


def _after_notice(text: str, program: Program[T]) -> Program[T]:
    yield from notify(text, code="downgrade", warning=True)
    return (yield from program)


def resume_turn(
    repository: Repository, interrupted: Run, priced_model: PricedModel, approve: Approve | None = None,
    program: "TurnProgram | None" = None,
) -> ActiveTurn:  # fmt: skip
    """Resume an interrupted turn; recorded calls are not repeated. If its session has moved, the turn is kept as a branch.

    Raises:
        ConflictError: another process resumed it.
        InputError: it is the turn of a program, which is not given.
    """
    store = repository.store
    if is_of_program(interrupted) and program is None:
        raise InputError(
            "the turn was made by a program, which is not stored; run it again: session.run(program, text, approve=…)"
        )
    # First of all: of two processes that resume it, only one may go on.
    run = store.runs.claim(interrupted.id)
    recorded, target = _recorded(run)
    has_moved = has_moved_since(repository, run)
    if run.app is None:
        raise InputError(f"run {run.id} has no app to resume with")
    app = repository.app(run.app)
    base = repository.start(app) if run.base is None else repository.checkout(run.base)
    base = base if base.app.hash == app.hash else change_app(base, app)
    repository.check_trust(base.app)
    repairs = recorded.get("repairs")
    options = TurnOptions(bool(recorded.get("strict")), repairs if isinstance(repairs, int) else 1, approve=approve)
    attachments = tuple(map(read_reference, items_at(recorded, "attachments")))
    messages, transcript = restore(recorded.get("messages") or []), restore(recorded.get("transcript"))
    turn_input = TurnInput(
        base, run.text, target, attachments, messages, str(recorded.get("prefix", "")),
        Resent(transcript, tuple(map(_past_turn, items_at(recorded, "unknown")))), program=program,
    )  # fmt: skip
    turn_input = _filled(repository, turn_input)
    resources = open_resources(repository, base, priced_model, recorded)
    session = run.ref
    if has_moved:
        session = store.refs.free_name(run.ref)
        turn_input = replace(turn_input, target=replace(turn_input.target, branches=True, may_branch=True))
    running, runtime_options, earlier = prepare_turn(repository, turn_input, priced_model, options, resources)
    recent = store.runs.journal(run.id)
    for entry in recent:
        entry.answer = store.blobs.filled_result(entry.answer)
    journal = Journal((*earlier, *recent), sink(repository, run.id, priced_model))
    answer = PartialAnswer(partial(store.runs.keep_partial, run.id))
    return ActiveTurn(repository, session, turn_input, run.id, running, journal, runtime_options, resources, answer)


def answers_program(base: Conversation) -> bool:
    """Return whether the next text answers the question of a program."""
    return bool(base.turns) and item_at(base.turns[-1].findings, "asked") is not None


def is_of_program(run: Run, program: "TurnProgram | None" = None) -> bool:
    """Return whether an interrupted turn was begun by `Session.run`, with that program if one is given."""
    name = _recorded(run)[0].get("program")
    return name is not None and (program is None or name == _name_of(program))


def _name_of(program: "TurnProgram | None") -> str:
    if program is None:
        return ""
    from taiwa.flows.program_turn import program_name

    return program_name(program)


def find_paused(repository: Repository, turn_input: TurnInput) -> "tuple[Paused | None, tuple[Entry, ...]]":
    """Return the program of a turn if it waits for the text, with the records of its turns so far, which were paid for."""
    base, program = turn_input.base, turn_input.program
    if base.stored_tip is None or not answers_program(base) or (program is None and not base.app.flow):
        return None, ()
    from taiwa.flows.program_turn import Paused, program_name
    from taiwa.sessions.turn_programs import turn_program

    own = program_name(program or turn_program(base.app, ()))

    def has_asked(turn: tuple[str, Node]) -> bool:
        findings = turn[1].findings
        return item_at(findings, "asked") is not None and item_at(findings, "program") == own

    path = ((name, node) for name, node in repository.store.nodes.path(base.stored_tip) if node.kind == "turn")
    turns = list(takewhile(has_asked, path))[::-1]
    if not turns:
        return None, ()
    start = repository.checkout(repository.before_turn(base.stored_tip, len(turns)))
    if start.app.hash != base.app.hash:  # its program may be another one
        return None, ()
    entries = [entry for name, _ in turns for entry in repository.store.runs.journal_of(name)]
    for entry in entries:
        entry.settled = True
    return Paused(start, tuple(node.user or "" for _, node in turns)), tuple(entries)


def waiting_calls(interrupted: Run) -> tuple[ApprovalRequest, ...]:
    """Return the calls for whose approval an interrupted turn waits."""
    found = (each for each in items_at(_recorded(interrupted)[0], "waiting") if isinstance(each, dict))
    return tuple(ApprovalRequest(str(each["name"]), cast("dict[str, Json]", each["arguments"])) for each in found)


def waiting_id(interrupted: Run) -> str:
    """Return the id of the calls for which an interrupted turn waits, which changes with every step of the turn.

    A decision names it: one that is late or repeated must not decide on calls that were not shown with it.
    """
    return f"{interrupted.id}-{interrupted.calls}"


def decide_waiting(interrupted: Run, decisions: Iterable[bool | None]) -> Approve:
    """Return who decides on the calls for which an interrupted turn waits, once on each, and on no other; None leaves a call waiting."""
    waiting = list(zip(waiting_calls(interrupted), decisions, strict=False))

    def approve(request: ApprovalRequest) -> bool | None:
        asked = request.name, request.arguments
        found = next((each for each in waiting if (each[0].name, each[0].arguments) == asked), None)
        if found is None:
            return None
        waiting.remove(found)
        return found[1]

    return approve


def has_moved_since(repository: Repository, interrupted: Run) -> bool:
    """Report whether the session of an interrupted turn has moved since, so that the turn can only become a branch."""
    _, target = _recorded(interrupted)
    tip = repository.store.refs.find_tip(interrupted.ref)
    return tip != (None if target.branches else target.replaces or interrupted.base)


def _recorded(run: Run) -> tuple[dict[str, Json], CommitTarget]:
    """Return the recorded options of a run, and where its turn is committed."""
    recorded = run.options if isinstance(run.options, dict) else {}
    replaces = recorded.get("replaces")
    compacts, branches = (recorded.get(name) is True for name in ("compacts", "branches"))
    target = CommitTarget(
        str(recorded.get("reason") or "turn"), replaces if isinstance(replaces, str) else None, branches, branches,
        compacts=compacts,
    )  # fmt: skip
    return recorded, target


def _filled(repository: Repository, turn_input: TurnInput) -> TurnInput:
    """Fill in the bytes of the attachments in the request of a turn, and the type of its answers as code defines it."""
    fill, messages = repository.store.blobs.fill, repository.store.blobs.filled_messages(turn_input.messages)
    base, resent = repository.with_attachments(turn_input.base), turn_input.resent
    if (app := repository.with_type(base.app)) is not base.app:
        base = replace(base, app=app)
    if base is turn_input.base and not (turn_input.attachments or resent.unknown):
        return turn_input if messages is turn_input.messages else replace(turn_input, messages=messages)
    resent = replace(resent, unknown=tuple(map(repository.store.blobs.filled_turn, resent.unknown)))
    return replace(turn_input, base=base, attachments=fill(turn_input.attachments), messages=messages, resent=resent)


def _past_turn(recorded: Json) -> PastTurn:
    found = recorded if isinstance(recorded, dict) else {}
    files = tuple(map(read_reference, items_at(found, "attachments")))
    return PastTurn("", str(found.get("user")), str(found.get("answer")), parts=TurnParts(files))


def open_resources(
    repository: Repository, base: Conversation, priced_model: PricedModel, recorded: dict[str, Json] | None = None
) -> "RagResources | None":
    """Open the indexes of a turn, if its app has documents; an interrupted turn continues with its recorded options."""
    if base.app.documents is None:
        return None
    from taiwa.flows.ask.ask_result import options_of
    from taiwa.sessions.ask_resources import open_rag_resources

    options = None if recorded is None else options_of(recorded)
    if recorded is not None and options is None:
        return None
    return open_rag_resources(base.app, repository, options, model=priced_model.model, is_first_turn=not base.count)


def sink(repository: Repository, run: int, priced_model: PricedModel) -> Callable[[Entry], None]:
    """Return the sink that writes the journal of a run with its usage."""
    rates = priced_model.rates
    return repository.store.runs.sink(
        run, model=priced_model.model.name, price=priced_model.price, price_id="" if rates is None else rates.id
    )


def request_counter(repository: Repository, run: int, priced_model: PricedModel) -> Observer:
    """Return the observer that counts each model call of a run in the store before it is made."""
    name = priced_model.model.name

    def count(event: Event) -> None:
        if isinstance(event, EffectStarted) and isinstance(event.effect, Complete):
            repository.store.runs.count_request(run, name)

    return count
