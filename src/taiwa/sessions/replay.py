"""Replay a conversation from its records without calls, or rerun it with another model in a new session."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, Node
from taiwa.flows.chat import Reply, complete_turn, say
from taiwa.kernel.effects import Complete, Effect, Step
from taiwa.kernel.errors import ConfigError, OutputValidationError, ReplayError
from taiwa.kernel.execution import EffectStarted, Entry, Event, Journal, Observer, replay
from taiwa.kernel.messages import Request, Response, user
from taiwa.kernel.serialization import value
from taiwa.sessions.repository import HistoryEntry, Repository


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
    answers = sum(isinstance(entry.answer, Response) for entry in entries)
    result = ReplayedNode(entry.hash, "turn", entry.after.count, answers)
    if before is not None and before.app.flow == "ask" and entries:
        return replace(result, difference=_replay_ask_turn(entry, before, entries, watch))
    if not answers or before is None:
        return result
    difference = ""
    # One answer is the reply, later ones are repairs; a summary of a full window and tool calls may precede it.
    # A turn may also have been recorded when a reply without a delta line was requested again.
    for repairs, exact in product(range(answers - 1, -1, -1), (False, True)):
        started.clear()
        try:
            program = _program(repository, entry.node, before.app, repairs, exact=exact)
            _, after = replay(program(before), Journal(entries), (watch,))
        except (ConfigError, ReplayError, OutputValidationError) as error:
            difference = error.message
        else:
            difference = "" if after.tip == entry.hash else f"it ends in {after.tip[:12]}"
        if not difference:
            break
    return replace(result, difference=difference)


def _program(repository: Repository, node: Node, app: App, repairs: int, *, exact: bool) -> Step[Conversation, Reply]:
    if not node.messages and not app.answer_options.shapes_reply:
        specs = [tool.spec for tool in repository.tools_of(app)]
        text, files = node.user or "", node.attachments
        return say(
            text, files, repairs=repairs, tools=specs, exact=exact, prefix=node.prefix, by=node.answered_by
        )  # fmt: skip
    inputs = node.messages[:-1] or (user(node.user or ""),)
    return complete_turn(inputs, node.attachments, node.prefix, node.answered_by)


def _replay_ask_turn(entry: HistoryEntry, before: Conversation, entries: Iterable[Entry], watch: Observer) -> str:
    """Replay a turn of the flow `ask` from its record; return the difference."""
    from taiwa.flows.ask.ask_turn import ask_turn, options_from_delta
    from taiwa.i18n import dialogue_version
    from taiwa.sessions.ask_resources import term_weights_of

    options = options_from_delta(entry.node.delta)
    if options is None:
        return "its options are not recorded"
    if options.clarify.catalogue_version > dialogue_version():
        return f"version {options.clarify.catalogue_version} of the dialogue catalogue worded it, which is not installed here"
    try:
        program = ask_turn(entry.node.user or "", options, term_weights_of(options.terms), entry.node.answered_by)(
            before
        )
        _, after = replay(program, Journal(entries), (watch,))
    except (ConfigError, ReplayError, OutputValidationError) as error:
        return error.message
    return "" if after.tip == entry.hash else f"it ends in {after.tip[:12]}"
