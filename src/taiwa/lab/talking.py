"""The laws of conversations with an app: going back, branching, replaying, folding, and the prefix that a cache needs."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from hypothesis import strategies as st

from taiwa.conversation.app import App
from taiwa.conversation.fields import held_shape
from taiwa.conversation.history import Conversation, begin, change, cut, follow, take
from taiwa.conversation.layout import ENVIRONMENT, said, stable_bytes, turn_request
from taiwa.conversation.node import Node
from taiwa.conversation.replies import read_reply, watcher
from taiwa.conversation.window import kept_turns
from taiwa.flows.chat import say
from taiwa.kernel.effects import Program, Step, map
from taiwa.kernel.journal import Journal
from taiwa.kernel.records import Json, canonical, record, revive
from taiwa.kernel.replay import replay
from taiwa.lab.generated import texts, values
from taiwa.lab.law import Law, demand, written
from taiwa.lab.playing import Oracle, play
from taiwa.lab.stepping import stored

__all__ = ["conversation_laws"]


@dataclass(frozen=True, slots=True)
class Turn:
    """Somebody says something; the model answers and changes the state."""

    user: str
    answer: str
    delta: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Edit:
    """A person changes the state."""

    changes: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Fold:
    """The oldest turns leave the window."""

    leaving: int
    summary: str


Move: TypeAlias = Turn | Edit | Fold


def moved(before: Conversation, move: Move) -> Conversation:
    """Make a move."""
    match move:
        case Turn(user, answer, delta):
            return take(before, user, answer, delta)
        case Edit(changes):
            return change(before, changes)
        case Fold(leaving, summary):
            return cut(before, [past.hash for past in before.turns[leaving:]], summary)


def places(app: App, moves: list[Move]) -> list[Conversation]:
    """A new conversation, and where it is after each move."""
    found = [begin(app)]
    for move in moves:
        found.append(moved(found[-1], move))
    return found


def reloaded(app: App, nodes: tuple[Node, ...]) -> Conversation:
    """Follow nodes as they come back from a store."""
    stored: list[Node] = [revive(json.loads(canonical(record(node)))) for node in nodes[1:]]
    return follow(begin(app), ((node.hash, node) for node in stored), {app.hash: app}.__getitem__)


def look(here: Conversation) -> tuple[object, ...]:
    """All that a later turn may depend on, the exact next request included."""
    return here.tip, here.state_hash, here.turns, here.summary, here.count, repr(turn_request(here, "next"))


def undo(app: App, moves: list[Move]) -> None:
    """Undo after a commit leads to where one was, redo to where one came from; nothing is lost on the way."""
    for before, after in pairwise(places(app, moves)):
        demand(look(reloaded(app, after.fresh[:-1])), look(before), "undone")
        demand(look(reloaded(app, after.fresh)), look(after), "done again")


def follows(app: App, moves: list[Move]) -> None:
    """Folding the recorded deltas gives each recorded state; no model is asked."""
    for here in places(app, moves):
        demand(reloaded(app, here.fresh).state_hash, here.fresh[-1].state_hash, "the state")


def fork(app: App, moves: list[Move], ours: list[Move], theirs: list[Move]) -> None:
    """Work on a fork changes nothing that the other branch can reach."""
    here = left = right = places(app, moves)[-1]
    before = look(here)
    for move in ours:
        left = moved(left, move)
    kept = look(left), written(record(left.fresh))
    for move in theirs:
        right = moved(right, move)
    demand((look(left), written(record(left.fresh))), kept, "our branch")
    demand(look(here), before, "where both began")


def prefix(app: App, moves: list[Move]) -> None:
    """The next request begins with the bytes of this one, unless a fold lies between."""
    for (before, after), move in zip(pairwise(places(app, moves)), moves, strict=True):
        text = move.user if isinstance(move, Turn) else "next"
        if isinstance(move, Fold):
            continue
        sent = stable_bytes(turn_request(before, text))
        follow_up = stable_bytes(turn_request(after, text if isinstance(move, Edit) else "and then"))
        demand(follow_up[: len(sent)], sent, "the beginning of the next request")


def folds(app: App, moves: list[Move], leaving: int, summary: str) -> None:
    """A fold keeps all typed state; the same fold again changes nothing, and a window that was cut is not full."""
    here = places(app, moves)[-1]
    kept = kept_turns(here)
    staying = here.turns[leaving:] if kept is None else kept
    names = [past.hash for past in staying]
    once = cut(here, names, summary)
    twice = cut(once, names, summary)
    demand((once.state, once.count), (here.state, here.count), "the state after a fold")
    demand((twice.turns, twice.summary, twice.state), (once.turns, once.summary, once.state), "folded twice")
    if kept is not None:
        demand(kept_turns(once), None, "a window that was cut is full")


def edits(app: App, moves: list[Move], one: dict[str, Json], two: dict[str, Json]) -> None:
    """What was put is there, what is put last counts, and putting back what is there changes nothing."""
    here = places(app, moves)[-1]
    demand({name: change(here, one).state[name] for name in one}, one, "what was put")
    demand(change(change(here, one), one | two).state_hash, change(here, one | two).state_hash, "put twice")
    demand(change(here, {name: here.state[name] for name in one}).state_hash, here.state_hash, "put back")


def typed(app: App, moves: list[Move]) -> None:
    """Whatever happens, each field holds a value of its type."""
    for here in places(app, moves):
        for field in app.fields:
            held_shape(field).check({field.name: here.state[field.name]})


def replied(app: App, answer: str, delta: dict[str, Json], cuts: list[int]) -> None:
    """What was said is read back and, wherever it is cut, its answer is shown and nothing else."""
    text = _reply(app, answer, delta)
    read = read_reply(app, text)
    spoken = answer.rstrip() if app.reply == "text+delta" and app.written else answer
    demand(read.answer, spoken, "the answer")
    got = {name: given for name, given in (read.delta or {}).items() if name != "response"}
    demand(written(got), written(delta), "the delta")
    make = watcher(app)
    if make is not None:
        watching, edges = make(), [0, *sorted(min(place, len(text)) for place in cuts), len(text)]
        shown = [watching.feed(text[start:end]).show for start, end in pairwise(edges)]
        demand("".join([*shown, watching.close().show]), spoken, "what was shown")


def turns(app: App, moves: list[Move], text: str, oracle: Callable[[], Oracle], strict: bool) -> None:
    """A turn is replayed from its journal; one that fails leaves the conversation where it was, and its bill stays."""
    here = places(app, moves)[-1]
    before = look(here)
    step: Step[Conversation, str] = map(say(text, strict=strict), lambda reply: reply.text)
    first = play(_told(step(here)), oracle())
    demand(look(here), before, "where the turn began")
    if first.error is None:
        again = replay(_told(step(here)), Journal(stored(first.journal)))
        demand(again, first.value, "the replay")
    else:
        demand(len(first.requests) > 0, True, "a failed turn has a bill")


def _told(program: Program[tuple[str, Conversation]]) -> Program[tuple[str, ...]]:
    text, after = yield from program
    return text, after.tip, after.state_hash, after.summary


def _reply(app: App, answer: str, delta: dict[str, Json]) -> str:
    if app.reply == "environment" and app.written:
        return f"{ENVIRONMENT[0]}\n{json.dumps({'response': answer} | delta)}\n{ENVIRONMENT[1]}"
    return said(app, answer, delta)


def conversation_laws(app: App) -> Iterator[Law]:
    """All laws of conversations with an app."""
    drawn = _Drawn(app)
    moves = st.lists(drawn.moves, max_size=4)
    subject = f"{app.name} ({app.reply})"
    laws: list[tuple[str, tuple[st.SearchStrategy[Any], ...], Callable[..., None]]] = [
        ("undo after a commit", (moves,), undo),
        ("recorded deltas give the recorded states", (moves,), follows),
        ("a fork leaves the other branch alone", (moves, moves, moves), fork),
        ("the prefix holds", (moves,), prefix),
        ("a fold keeps the state and is done once", (moves, st.integers(0, 3), texts), folds),
        ("puts and gets of the state", (moves, drawn.edits, drawn.edits), edits),
        ("the state keeps its types", (moves,), typed),
        (
            "a reply is read back and shown",
            (drawn.answers, drawn.deltas, st.lists(st.integers(0, 99), max_size=5)),
            replied,
        ),
        ("a turn is replayed or rolled back", (moves, drawn.words, drawn.oracles, st.booleans()), turns),
    ]
    for name, arguments, holds in laws:
        yield Law(name, subject, st.tuples(*arguments), partial(holds, app))


class _Drawn:
    """What can be said and done in a conversation with an app."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.words = texts.filter(lambda text: bool(text.strip()))
        self.answers = texts | st.sampled_from(
            ["@@delta\n{}", "```json\n{}\n```", "<state>", '"', "a\n\n@@del", "{", " x"]
        )

    @property
    def deltas(self) -> st.SearchStrategy[dict[str, Json]]:
        """What the model may write; a whole environment where it writes that."""
        if not self.app.written:
            return st.just({})
        if self.app.reply != "environment":
            return values(self.app.delta)
        return values(self.app.environment).map(lambda data: {name: data[name] for name in data if name != "response"})

    @property
    def edits(self) -> st.SearchStrategy[dict[str, Json]]:
        """What a person may set."""
        if not self.app.written:
            return st.just({})
        each = [values(held_shape(field)) for field in self.app.written]
        return st.lists(st.one_of(each), max_size=2).map(
            lambda parts: {name: part[name] for part in parts for name in part}
        )

    @property
    def moves(self) -> st.SearchStrategy[Move]:
        """Turns for the most part."""
        turn = st.builds(Turn, self.words, self.answers, self.deltas)
        return st.one_of(turn, turn, st.builds(Edit, self.edits), st.builds(Fold, st.integers(0, 3), texts))

    @property
    def oracles(self) -> st.SearchStrategy[Callable[[], Oracle]]:
        """Models that keep to the form of a reply now and then."""
        good = st.builds(partial(_reply, self.app), self.answers, self.deltas)
        words = st.lists(good | self.answers, min_size=1, max_size=3).map(tuple)
        return st.builds(_speaking, st.integers(0, 99), words, st.sampled_from([0, 0, 4]))


def _speaking(seed: int, words: tuple[str, ...], failing: int) -> Callable[[], Oracle]:
    return lambda: Oracle(seed, False, failing, words, frozenset({"json_schema"}))
