"""Replay a conversation from its records without calls, or rerun it with another model in a new session."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, Node
from taiwa.flows.ask.ask_result import documents_of, options_of
from taiwa.flows.program_turn import run_turn
from taiwa.flows.turn import Reply, complete_turn, say
from taiwa.kernel.effects import Complete, Effect, Step
from taiwa.kernel.errors import ConfigError, OutputValidationError, ReplayError, TaiwaError
from taiwa.kernel.execution import EffectStarted, Entry, Event, Journal, Observer, replay
from taiwa.kernel.messages import Request, Response, user
from taiwa.kernel.serialization import Json, value
from taiwa.sessions.commit_turn import find_paused
from taiwa.sessions.repository import HistoryEntry, Repository
from taiwa.sessions.turn_programs import turn_program

if TYPE_CHECKING:
    from taiwa.flows.ask.answer import TermWeights
    from taiwa.flows.ask.ask_result import AskTurnOptions


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
    for entry, before in _with_bases(repository, revision):
        if entry.node.hash != entry.hash:
            yield ReplayedNode(entry.hash, entry.node.kind, entry.after.count, 0, "its content has another hash")
        elif entry.node.kind == "turn":
            yield _replay_turn(repository, entry, before)
        else:
            yield ReplayedNode(entry.hash, entry.node.kind, entry.after.count, 0)


def recorded_requests(repository: Repository, revision: str) -> tuple[Request, ...]:
    """Return the exact requests of a turn, found by replaying it; () if it cannot be replayed."""
    effects = (step.effect for step in recorded_steps(repository, revision))
    return tuple(effect.request for effect in effects if isinstance(effect, Complete))


@value
class RecordedStep:
    """An effect of a turn and its entry in the journal; the effect is None if the turn cannot be replayed."""

    entry: Entry
    effect: Effect[Any] | None = None


def recorded_steps(repository: Repository, revision: str) -> tuple[RecordedStep, ...]:
    """Return the effects of a turn with their answers, in the order of its journal; () for nodes without calls."""
    name = repository.store.resolve(revision)
    started: list[EffectStarted] = []
    *_, (entry, before) = _with_bases(repository, name)
    if entry.node.kind == "turn" and _replay_turn(repository, entry, before, started).difference:
        started.clear()
    effects = {(each.strand, each.index): each.effect for each in started}
    entries = repository.store.runs.journal_of(name)
    return tuple(RecordedStep(each, effects.get((each.strand, each.index))) for each in entries)


def _with_bases(repository: Repository, revision: str) -> Iterator[tuple[HistoryEntry, Conversation | None]]:
    """Follow a history; yield each node with the conversation before it."""
    before: Conversation | None = None
    since: dict[str, Conversation] = {}  # from the last turn on
    for entry in repository.walk(repository.store.resolve(revision)):
        if entry.node.kind == "turn":
            # Summaries and compressed fields are part of the turn that was committed with them.
            yield entry, since.get(repository.store.nodes.base(entry.hash) or "", before)
            since.clear()
        else:
            yield entry, before
        if entry.node.kind == "app":  # committed with the turn, but not created by its program
            since = dict.fromkeys(since, entry.after)
        before = since[entry.hash] = entry.after


def _replay_turn(
    repository: Repository, entry: HistoryEntry, before: Conversation | None, effects: list[EffectStarted] | None = None
) -> ReplayedNode:
    """Replay a turn; its effects are appended to a list."""
    started: list[EffectStarted] = [] if effects is None else effects

    def watch(event: Event) -> None:
        if isinstance(event, EffectStarted):
            started.append(event)

    entries = repository.store.runs.journal_of(entry.hash)
    if before is not None:
        try:
            before = replace(before, app=repository.with_type(before.app))
        except TaiwaError as error:
            return ReplayedNode(entry.hash, "turn", entry.after.count, 0, error.message)
    if (own := _replay_own_program(repository, entry, before, entries, watch)) is not None:
        return own
    answers = sum(isinstance(entry.answer, Response) for entry in entries)
    result = ReplayedNode(entry.hash, "turn", entry.after.count, answers)
    has_documents = documents_of(entry.node.findings) is not None and bool(entries)
    if before is None or not (answers or has_documents):
        return result
    difference = ""
    # One answer is the reply, later ones are repairs; a summary of a full window and tool calls may precede it.
    for repairs in range(max(answers - 1, 0), -1, -1):
        started.clear()
        try:
            program = _program(repository, entry.node, before.app, repairs)
            _, after = replay(program(before), Journal(entries), (watch,))
        except (ConfigError, ReplayError, OutputValidationError) as error:
            difference = error.message
        else:
            difference = "" if after.tip == entry.hash else f"it ends in {after.tip[:12]}"
        if not difference:
            break
    return replace(result, difference=difference)


def _replay_own_program(
    repository: Repository, entry: HistoryEntry, before: Conversation | None, entries: Iterable[Entry], watch: Observer
) -> ReplayedNode | None:
    """Replay a turn that was made by a program; None for any other turn. One that is not the app's is not stored."""
    findings = entry.node.findings
    if before is None or not isinstance(findings, dict) or "program" not in findings:
        return None
    own = tuple(entries)
    answers = sum(isinstance(each.answer, Response) for each in own)
    result = ReplayedNode(entry.hash, "turn", entry.after.count, answers if before.app.flow else 0)
    if not before.app.flow or not own:
        return result
    paused, earlier = find_paused(repository, before)
    try:
        node, app = entry.node, before.app
        flow = turn_program(app, repository.tools_of(app), node.attachments)
        program = run_turn(flow, node.user or "", node.attachments, paused=paused, by=node.answered_by)(before)
        _, after = replay(program, Journal((*earlier, *own)), (watch,))
    except TaiwaError as error:
        return replace(result, difference=error.message)
    return replace(result, difference="" if after.tip == entry.hash else f"it ends in {after.tip[:12]}")


def _program(repository: Repository, node: Node, app: App, repairs: int) -> Step[Conversation, Reply]:
    if node.messages or app.answer_options.shapes_reply:
        inputs = node.messages[:-1] or (user(node.user or ""),)
        return complete_turn(inputs, node.attachments, node.prefix, node.answered_by)
    specs, documents, weights = [tool.spec for tool in repository.tools_of(app)], None, None
    if (found := documents_of(node.findings)) is not None:
        documents, weights = _document_options(found)
    return say(
        node.user or "", node.attachments, repairs=repairs, tools=specs, prefix=node.prefix, documents=documents,
        term_weights=weights, by=node.answered_by,
    )  # fmt: skip


def _document_options(found: dict[str, Json]) -> "tuple[AskTurnOptions, TermWeights]":
    """Return the options of a documents stage from its record.

    Raises:
        ConfigError: they are not recorded, or cannot be used by this version.
    """
    from taiwa.i18n import dialogue_version
    from taiwa.sessions.ask_resources import term_weights_of

    options = options_of(found)
    if options is None:
        raise ConfigError("its options are not recorded")
    version = options.clarify.catalogue_version
    if version > dialogue_version():
        raise ConfigError(f"version {version} of the dialogue catalogue worded it, which is not installed here")
    return options, term_weights_of(options.terms)
