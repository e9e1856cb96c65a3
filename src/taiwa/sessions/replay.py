"""Doing a conversation again: from its records without any call, or with another model on a new branch."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation
from taiwa.flows.chat import say
from taiwa.kernel.errors import ConfigError, ConflictError, OutputValidationError, ReplayError
from taiwa.kernel.execution import replay
from taiwa.kernel.journal import Entry, Journal
from taiwa.kernel.messages import Response
from taiwa.kernel.records import value
from taiwa.sessions.checkout import HistoryEntry, Repository
from taiwa.sessions.durable_turn import PricedModel, TurnOptions, TurnResult
from taiwa.sessions.session import Session

__all__ = ["Replayed", "replayed", "rerun"]


@value
class Replayed:
    """One node that was done again: `calls` recorded answers were used; 0 where the history came without its calls.

    `fault` says in what it differs from the record, or is empty.
    """

    hash: str
    kind: str
    turn: int
    calls: int
    fault: str = ""


def replayed(repository: Repository, revision: str) -> Iterator[Replayed]:
    """Follow a history from its root without a model: every state is folded anew and must have its recorded hash, and
    every turn whose calls are there is run again from them and must end in the same node.

    Raises:
        CorruptError: a node leads to another state than it recorded.
    """
    before: Conversation | None = None
    start: Conversation | None = None
    for stop in repository.walk(repository.store.resolve(revision)):
        if stop.node.kind == "turn":
            yield _turn_again(repository, stop, start or before)
            start = None
        else:
            yield Replayed(stop.hash, stop.node.kind, stop.after.count, 0)
        if stop.node.kind == "summary":
            start = start or before
        before = stop.after


def _turn_again(repository: Repository, stop: HistoryEntry, before: Conversation | None) -> Replayed:
    entries = repository.store.runs.journal_of(stop.hash)
    answers = sum(isinstance(entry.answer, Response) for entry in entries)
    made = Replayed(stop.hash, "turn", stop.after.count, answers)
    if before is not None and before.app.flow == "ask" and entries:
        return replace(made, fault=_asked_again(stop, before, entries))
    if not answers or before is None:
        return made
    fault = ""
    # One answer is the reply, those after it are repairs; before it may be a summary of a full window, and calls of tools.
    for repairs in range(answers - 1, -1, -1):
        try:
            specs = [tool.spec for tool in repository.tools_of(before.app)]
            _, after = replay(say(stop.node.user or "", repairs=repairs, tools=specs)(before), Journal(entries))
        except (ConfigError, ReplayError, OutputValidationError) as error:
            fault = error.message
        else:
            fault = "" if after.tip == stop.hash else f"it ends in {after.tip[:12]}"
        if not fault:
            break
    return replace(made, fault=fault)


def _asked_again(stop: HistoryEntry, before: Conversation, entries: Iterable[Entry]) -> str:
    """Look up and decide again from the record; say in what that differs."""
    from taiwa.ask.conversation_step import ask_turn
    from taiwa.ask.result import options_from_delta
    from taiwa.i18n import dialogue_version
    from taiwa.sessions.stored_ask import reader_of

    asking = options_from_delta(stop.node.delta)
    if asking is None:
        return "its options are not recorded"
    if asking.clarify.catalogue_version > dialogue_version():
        return f"version {asking.clarify.catalogue_version} of the dialogue catalogue worded it, which is not installed here"
    try:
        program = ask_turn(stop.node.user or "", asking, reader_of(asking.terms))(before)
        _, after = replay(program, Journal(entries))
    except (ConfigError, ReplayError, OutputValidationError) as error:
        return error.message
    return "" if after.tip == stop.hash else f"it ends in {after.tip[:12]}"


def rerun(
    repository: Repository, revision: str, name: str, priced_model: PricedModel, app: App | None, options: TurnOptions
) -> Iterator[TurnResult]:
    """Say every utterance of a history again, in a new conversation; the models are asked, the old branch stays.

    Raises:
        ConflictError: there is a conversation of that name.
    """
    if repository.store.refs.has(name):
        raise ConflictError(f"there is a session {name!r} already: choose another name")
    stops = tuple(repository.walk(repository.store.resolve(revision)))
    talk = Session(repository, name, repository.start(app or stops[0].after.app), priced_model, options=options)
    for stop in stops:
        if stop.node.kind == "turn":
            yield talk.say(stop.node.user or "")
        elif stop.node.kind == "edit" and isinstance(stop.node.delta, dict):
            talk.set_state(stop.node.delta)
        elif stop.node.kind == "app" and app is None:
            talk.change_app(stop.after.app)
