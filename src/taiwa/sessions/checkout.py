"""The conversations of one store: checking out, committing, and looking back. No model is needed here."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from itertools import count, islice
from pathlib import Path

from taiwa.apps.catalog import load_source
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, Node, PastTurn, advance, apply_nodes, begin, change_app, edit_state
from taiwa.conversation.state import State
from taiwa.conversation.state_paths import MISSING, Missing, StatePath, format_path, get_path
from taiwa.kernel.errors import ConfigError, CorruptError, InputError, StoreError
from taiwa.kernel.records import Json, value
from taiwa.kernel.runtime import Tool
from taiwa.settings import Settings
from taiwa.sql import PostgresUrl
from taiwa.store import FsckProblem, Store

__all__ = ["HistoryEntry", "Repository", "ValueOrigin"]


SNAPSHOT_EVERY = 32


@value
class HistoryEntry:
    """One node of a history together with the conversation after it."""

    hash: str
    node: Node
    after: Conversation


@value
class ValueOrigin:
    """Who gave a value: the node that set it last, the number of its turn, and what stood there before."""

    hash: str
    node: Node
    turn: int
    before: Json
    after: Json


class Repository:
    """Conversations by name or revision. Everything that changes a session is one transaction of the store.

    `tools` are what apps may name beside the built-in ones, by name; `place` is the file beside which
    indexes are kept, or the server that keeps them; `settings` name what an index is asked by meaning with.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.place: Path | PostgresUrl | None = store.path
        self.settings: Settings | None = None
        self.tools: dict[str, Tool] = {}
        self._apps: dict[str, App] = {}

    def app(self, name: str) -> App:
        """Open the app that a node was made with."""
        if name not in self._apps:
            self._apps[name] = load_source(self.store.nodes.app(name))
        return self._apps[name]

    def tools_of(self, app: App) -> tuple[Tool, ...]:
        """Find the tools that an app names.

        Raises:
            ConfigError: one is neither built in nor was handed over.
        """
        missing = [name for name in app.tools if name not in self.tools]
        if not missing:
            return tuple(self.tools[name] for name in app.tools)
        from taiwa.tools import builtin

        known = {**builtin(), **self.tools}
        unknown = next((name for name in missing if name not in known), None)
        if unknown is not None:
            near = get_close_matches(unknown, known, 1, 0.6)
            mend = f"did you mean {near[0]!r}?" if near else f"hand it over: TurnOptions(tools=({unknown},))"
            raise ConfigError(f"the app {app.name!r} uses the tool {unknown!r}, which is not built in; {mend}")
        return tuple(known[name] for name in app.tools)

    def session(self, name: str = "") -> str:
        """Return the session of that name, or the one that moved last.

        Raises:
            InputError: there is none.
        """
        found = name or self.store.refs.latest()
        if found is None:
            raise InputError("there are no conversations yet; begin one with `taiwa chat` or `taiwa say`")
        self.store.refs.tip(found)
        return found

    def new_name(self, app: App) -> str:
        """Find a free name for a conversation with an app: `chat-1`, `chat-2` …"""
        refs, runs = self.store.refs, self.store.runs
        return next(name for n in count(1) if not refs.has(name := f"{app.name}-{n}") and not runs.has_open(name))

    def start(self, app: App) -> Conversation:
        """Begin a conversation that no session has yet."""
        # One app for all its conversations, so that its shapes are made once.
        return begin(self._apps.setdefault(app.hash, app))

    def at(self, revision: str = "") -> Conversation:
        """Check out the conversation at a revision.

        Raises:
            InputError: the revision names nothing.
        """
        return self.checkout(self.store.resolve(revision))

    def checkout(self, tip: str) -> Conversation:
        """Check out the conversation after a node, from the nearest snapshot before it.

        Raises:
            CorruptError: a node leads to another state than it recorded.
        """
        found = self.store.snapshots.checkout(tip)
        steps = found.steps
        if found.near is None:
            start, steps = self._root(*steps[0]), steps[1:]
        else:
            start = self._restored(*found.near)
        here = apply_nodes(start, steps, self.app)
        if len(steps) > SNAPSHOT_EVERY:
            with suppress(StoreError):  # a store that cannot be written is only slower
                self.store.snapshots.put(tip, _snapshot(here))
        return here

    def walk(self, tip: str) -> Iterator[HistoryEntry]:
        """Follow a history from its root to a node, and check every recorded state on the way."""
        conversation: Conversation | None = None
        for name, node in reversed(tuple(self.store.nodes.path(tip))):
            conversation = self._root(name, node) if conversation is None else advance(conversation, node, self.app)
            yield HistoryEntry(name, node, conversation)

    def fsck(self) -> tuple[FsckProblem, ...]:
        """Look for faults of the store, and follow every session from its root: each state must be the recorded one."""
        return (*self.store.fsck(), *self._astray())

    def _astray(self) -> Iterator[FsckProblem]:
        for tip in dict.fromkeys(ref.tip for ref in self.store.refs.list()):
            try:
                deque(self.walk(tip), maxlen=0)
            except (CorruptError, ConfigError) as error:
                yield FsckProblem(f"node {tip}", error.message)

    def import_lines(self, lines: Iterable[str], name: str | None = None) -> Conversation:
        """Read an exported conversation, all or nothing: every hash is checked, and every state folded anew.

        Raises:
            InputError: a line is bad, or a state is not the one that it records; nothing was imported.
            ConflictError: a session of that name stands elsewhere.
        """
        return self.checkout(self.store.import_lines(lines, name, self.checkout))

    def commit(
        self,
        session: str,
        conversation: Conversation,
        *,
        expected: str | None,
        why: str = "turn",
        run: int | None = None,
    ) -> Conversation:
        """Write the fresh nodes of a conversation, move the session to them, and close the run that made them.

        Raises:
            ConflictError: somebody else moved the session; nothing of theirs is overwritten.
        """
        app, fresh = conversation.app, conversation.new_nodes
        self._apps.setdefault(app.hash, app)
        apps = (app.source,) if any(node.kind in {"root", "app"} for node in fresh) else ()
        self.store.commit(session, fresh, expected=expected, reason=why, run=run, apps=apps)
        settled = replace(conversation, new_nodes=())
        if settled.count and settled.count % SNAPSHOT_EVERY == 0:
            self.store.snapshots.put(settled.tip, _snapshot(settled))
        return settled

    def set_state(self, session: str, values: State) -> Conversation:
        """Change the state by hand; the edit is a node of its own, so that every value has an author."""
        tip = self.store.refs.tip(session)
        return self.commit(session, edit_state(self.checkout(tip), values), expected=tip, why="state set")

    def change_app(self, session: str, app: App) -> Conversation:
        """Go on with another app, or an edited one; values that still fit stay."""
        tip = self.store.refs.tip(session)
        return self.commit(session, change_app(self.checkout(tip), app), expected=tip, why=f"app {app.name}")

    def fork(self, revision: str, name: str) -> str:
        """Give the node of a revision a second name and return its hash."""
        tip = self.store.resolve(revision)
        self.store.refs.create(name, tip, reason=f"fork of {revision or 'the latest'}")
        return tip

    def before_turn(self, tip: str, turns: int = 1) -> str:
        """The node from which the last turns began; edits of the state between them are no turns.

        Raises:
            InputError: there are not so many turns.
        """
        return self.store.refs.back(self.turn(tip, turns)[0], 1)

    def turn(self, tip: str, turns: int = 1) -> tuple[str, Node]:
        """The turn so many turns ago; 1 is the last one.

        Raises:
            InputError: there are not so many turns.
        """
        past = ((name, node) for name, node in self.store.nodes.path(tip) if node.kind == "turn")
        found = list(islice(past, max(turns, 1)))
        if not 1 <= turns <= len(found):
            raise InputError(f"there are only {len(found)} turns, not {turns}" if found else "there is no turn yet")
        return found[-1]

    def origin(self, tip: str, place: StatePath) -> ValueOrigin:
        """Find out who set a value.

        Raises:
            InputError: nothing stands there.
        """
        found: ValueOrigin | None = None
        held: Json | Missing = MISSING
        for stop in self.walk(tip):
            now = get_path(dict(stop.after.state), place)
            if not isinstance(now, Missing) and (isinstance(held, Missing) or now != held):
                found = ValueOrigin(
                    stop.hash, stop.node, stop.after.count, None if isinstance(held, Missing) else held, now
                )
            held = now
        if found is None or isinstance(held, Missing):
            raise InputError(f"nothing stands at {format_path(place)}; `taiwa state` shows what there is")
        return found

    def _root(self, name: str, root: Node) -> Conversation:
        if root.kind != "root":
            raise CorruptError(f"node {name[:12]} has no parent and is no root")
        return replace(begin(self.app(root.app)), new_nodes=())

    def _restored(self, tip: str, held: Json) -> Conversation:
        match held:
            case {
                "app": str(app),
                "state": dict(state),
                "turns": list(turns),
                "summary": str(summary),
                "count": int(number),
            }:
                return Conversation(self.app(app), tip, state, self._past(turns), summary, number)
            case _:
                raise CorruptError(f"the snapshot of {tip[:12]} cannot be read; `taiwa gc --snapshots` makes them anew")

    def _past(self, names: list[Json]) -> tuple[PastTurn, ...]:
        nodes = ((str(name), self.store.nodes.get(str(name))) for name in names)
        return tuple(PastTurn(name, node.user or "", node.answer or "", node.delta) for name, node in nodes)


def _snapshot(conversation: Conversation) -> Json:
    turns: list[Json] = [past.hash for past in conversation.turns]
    return {
        "app": conversation.app.hash,
        "state": conversation.state,
        "turns": turns,
        "summary": conversation.summary,
        "count": conversation.count,
    }
