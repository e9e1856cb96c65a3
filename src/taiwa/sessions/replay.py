"""Replay a conversation from its records without calls, or rerun it with another model in a new session."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taiwa.conversation.history import Conversation, Node, PastTurn, past_turn
from taiwa.flows.ask.ask_result import documents_of, options_of
from taiwa.flows.turn import Reply
from taiwa.kernel.effects import Complete, Effect, Program
from taiwa.kernel.errors import ConfigError, TaiwaError
from taiwa.kernel.execution import EffectStarted, Entry, Event, Journal, replay
from taiwa.kernel.messages import Request, Response, ToolResult, Usage, user
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.usage_limits import RunUsage
from taiwa.sessions.commit_turn import Resent, TurnInput, TurnOptions, TurnResult, find_paused, step_of
from taiwa.sessions.repository import HistoryEntry, Repository
from taiwa.store import Run

if TYPE_CHECKING:
    from taiwa.flows.ask.ask_result import AskTurnOptions
    from taiwa.flows.ask.quote import TermWeights


@value
class ReplayedNode:
    """A replayed node: `calls` recorded answers were used; 0 if the history has no calls.

    `difference` says how it differs from the record, or is empty.
    """

    hash: str
    kind: str
    turn: int
    calls: int
    difference: str = ""


def replay_history(repository: Repository, revision: str) -> Iterator[ReplayedNode]:
    """Replay a history from its root without a model: every node and every state must have its recorded hash, and every turn
    whose calls are recorded must end in the same node.

    Raises:
        CorruptError: a node leads to another state than it recorded.
    """
    for entry, before, recorded in _with_bases(repository, revision):
        if entry.node.hash != entry.hash:
            yield ReplayedNode(entry.hash, entry.node.kind, entry.after.count, 0, "its content has another hash")
        elif entry.node.kind == "turn":
            yield _replay_turn(repository, entry, before, recorded)
        else:
            yield ReplayedNode(entry.hash, entry.node.kind, entry.after.count, 0)


def recorded_requests(repository: Repository, revision: str) -> tuple[Request, ...]:
    """Return the exact requests of a turn, found by replaying it; () if it cannot be replayed."""
    effects = (step.effect for step in recorded_steps(repository, revision))
    return tuple(effect.request for effect in effects if isinstance(effect, Complete))


def stored_result(repository: Repository, run: Run, name: str) -> TurnResult:
    """Return the result of a stored turn again, by the run that ended with a node."""
    *_, (entry, before, recorded) = _with_bases(repository, name)
    runs, node, replies = repository.store.runs, entry.node, list[Reply]()
    if node.kind == "turn":
        _replay_turn(repository, entry, before, recorded, replies=replies)
    reply = replies[-1] if replies else Reply(node.answer or "", node.delta)
    answers = [repository.store.blobs.filled_result(each.answer) for each in runs.journal(run.id)]
    tools = tuple(answer for answer in answers if isinstance(answer, ToolResult))
    spent = RunUsage(tool_calls=len(tools))
    for call in runs.calls_of(run.id):
        if call.kind == "complete":
            missing, cost = int(call.usage is None), call.cost_nano
            spent += RunUsage(1, 0, call.usage or Usage(), missing, cost, call.time.ms / 1000, max_cost=cost)
    parent = run.base or node.parent or ""
    prefix = node.parts.prefix
    return TurnResult(reply, run.ref, name, parent, spent, entry.after.state, tools, node.findings, prefix)


def recorded_replies(repository: Repository, revision: str) -> dict[str, Reply]:
    """Return the replies of the turns of a history by their nodes, of those that can be replayed."""
    found: dict[str, Reply] = {}
    for entry, before, recorded in _with_bases(repository, revision):
        replies = list[Reply]()
        if entry.node.kind == "turn":
            _replay_turn(repository, entry, before, recorded, replies=replies)
        for reply in replies:
            found[entry.hash] = reply
    return found


@value
class RecordedStep:
    """An effect of a turn and its entry in the journal; the effect is None if the turn cannot be replayed."""

    entry: Entry
    effect: Effect[Any] | None = None


def recorded_steps(repository: Repository, revision: str) -> tuple[RecordedStep, ...]:
    """Return the effects of a turn with their answers, in the order of its journal; () for nodes without calls."""
    name = repository.store.resolve(revision)
    started: list[EffectStarted] = []
    *_, (entry, before, recorded) = _with_bases(repository, name)
    if entry.node.kind == "turn" and _replay_turn(repository, entry, before, recorded, started).difference:
        started.clear()
    effects = {(each.strand, each.index): each.effect for each in started}
    entries = repository.store.runs.journal_of(name)
    return tuple(RecordedStep(each, effects.get((each.strand, each.index))) for each in entries)


def _with_bases(
    repository: Repository, revision: str
) -> Iterator[tuple[HistoryEntry, Conversation | None, tuple[PastTurn, ...]]]:
    """Follow a history; yield each node with the conversation before it, and the turns that were recorded with it."""
    before: Conversation | None = None
    since: dict[str, Conversation] = {}  # from the last turn on
    path: dict[str, PastTurn | None] = {}  # from the last turn that a model answered on
    for entry in repository.walk(repository.store.resolve(revision)):
        if entry.node.kind == "turn":
            # Summaries and compressed fields are part of the turn that was committed with them.
            base = since.get(repository.store.nodes.base(entry.hash) or "", before)
            since.clear()
            made = repository.store.runs.that_made(entry.hash) if any(path.values()) else ()
            start = made[0].base or next(iter(path)) if made else ""
            behind = [*path.values()][[*path].index(start) + 1 :] if start in path else []
            recorded = tuple(past for past in behind if past is not None)
            yield entry, repository.checkout(start) if recorded else base, recorded
        else:
            yield entry, before, ()
        path = {} if entry.node.by.model else path
        path[entry.hash] = past_turn(entry.hash, entry.node) if entry.node.kind == "turn" else None
        if entry.node.kind == "app":  # committed with the turn, but not created by its program
            since = dict.fromkeys(since, entry.after)
        before = since[entry.hash] = entry.after


def _replay_turn(
    repository: Repository,
    entry: HistoryEntry,
    before: Conversation | None,
    recorded: tuple[PastTurn, ...],
    effects: list[EffectStarted] | None = None,
    replies: list[Reply] | None = None,
) -> ReplayedNode:
    """Replay a turn; its effects, and its reply if it ends in the same node, are appended to lists."""
    started: list[EffectStarted] = [] if effects is None else effects

    def watch(event: Event) -> None:
        if isinstance(event, EffectStarted):
            started.append(event)

    node, entries = entry.node, repository.store.runs.journal_of(entry.hash)
    answers = sum(isinstance(entry.answer, Response) for entry in entries)
    result = ReplayedNode(entry.hash, "turn", entry.after.count, answers)
    made_by_program = isinstance(node.findings, dict) and "program" in node.findings
    if made_by_program and before is not None and not before.app.flow:  # by a program that is not stored
        return replace(result, calls=0)
    if before is None or not (answers or (entries and (made_by_program or documents_of(node.findings) is not None))):
        return result
    difference = ""
    # One answer is the reply, later ones are repairs; a summary of a full window and tool calls may precede it.
    for repairs in range(max(answers - 1, 0), -1, -1):
        started.clear()
        try:
            program, earlier = _program(repository, node, before, recorded, repairs)
            reply, after = replay(program, Journal((*earlier, *entries)), (watch,))
        except TaiwaError as error:
            difference = error.message
        else:
            difference = "" if after.tip == entry.hash else f"it ends in {after.tip[:12]}"
            if replies is not None and not difference:
                replies.append(reply)
        if not difference:
            break
    return replace(result, difference=difference)


def _program(
    repository: Repository, node: Node, before: Conversation, recorded: tuple[PastTurn, ...], repairs: int
) -> tuple[Program[tuple[Reply, Conversation]], tuple[Entry, ...]]:
    """Return the program of a turn, and the calls that were paid for while it waited for the text of the turn."""
    before = replace(before, app=repository.with_type(before.app))
    app, text, messages = before.app, node.user or "", node.parts.messages[:-1]
    if not messages and (node.parts.messages or app.answer_options.parts.shape_reply):
        messages = (user(text),)
    turn_input = TurnInput(
        before,
        text,
        attachments=node.attachments,
        messages=messages,
        prefix=node.parts.prefix,
        resent=Resent(unknown=recorded),
    )
    found, tools = documents_of(node.findings), repository.tools_of(app)
    documents = None if found is None else _document_options(found)
    paused, earlier = (None, ()) if recorded else find_paused(repository, turn_input)
    turn = step_of(turn_input, TurnOptions(repairs=repairs), tools, paused, node.by, documents)
    return turn(before), earlier


def _document_options(found: dict[str, Json]) -> "tuple[AskTurnOptions, TermWeights]":
    """Return the options of a documents stage from its record.

    Raises:
        ConfigError: they are not recorded, or cannot be used by this version.
    """
    from taiwa.i18n import dialogue_version
    from taiwa.retrieval.analyzer import Analyzer

    options = options_of(found)
    if options is None:
        raise ConfigError("its options are not recorded")
    version = options.clarify.catalogue_version
    if version > dialogue_version():
        raise ConfigError(f"version {version} of the dialogue catalogue worded it, which is not installed here")
    return options, Analyzer.named(options.terms)
