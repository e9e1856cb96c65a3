"""The conversations of one store: checkout, commit, history. Independent of models."""

import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taiwa.apps.catalog import load_app, load_source
from taiwa.conversation.app import SOLVE, TYPE, App
from taiwa.conversation.code_files import IN_FILE, confirmed_copy, function_named
from taiwa.conversation.history import (
    Conversation,
    Node,
    advance,
    apply_nodes,
    begin,
    change_app,
    edit_state,
    past_turn,
)
from taiwa.conversation.state import MISSING, Missing, State, StatePath, format_path, get_path
from taiwa.kernel.errors import (
    ConfigError,
    CorruptError,
    InputError,
    NotFoundError,
    StoreError,
    TaiwaError,
)
from taiwa.kernel.messages import Found, Response
from taiwa.kernel.serialization import Json, canonical, digest, item_at, value
from taiwa.kernel.text import plural
from taiwa.kernel.usage_limits import Budget, SharedBudget, UsageLimits
from taiwa.sessions.budgets import Quota, StoredBudget
from taiwa.settings import Settings
from taiwa.sql import PostgresUrl
from taiwa.store import Checkout, FsckProblem, Store
from taiwa.store.maintenance import without_advice
from taiwa.store.refs import FORK
from taiwa.store.runs import Scope, SpendingLimit

if TYPE_CHECKING:
    from taiwa.flows.ask.provenance import SourceKind, ValueSource
    from taiwa.kernel.runtime import Retriever, Tool
    from taiwa.retrieval.index import IndexScope
    from taiwa.structured import OutputType

logger = logging.getLogger("taiwa.sessions")

SNAPSHOT_EVERY = 32
MOST_RECENT = 64
LONGEST_RECENT = 250_000
"""Maximum characters of a conversation kept in memory."""
MOST_APPS = 1_000
"""Apps kept in memory."""
LONGEST_OPTIONS = 100_000
"""Maximum bytes of the options of an app kept in memory: those of a request may be as long as its body."""
TRUST_SECONDS = 1
"""How long `Repository.trust` does not look again, since another process can delete and import an app at any time."""


@value
class HistoryEntry:
    """A node of a history and the conversation after it."""

    hash: str
    node: Node
    after: Conversation


@value
class ValueOrigin:
    """The origin of a value: the node that set it last, the number of its turn, the value before, and whose words it is.

    `is_removed`: the node removed the value, and `after` is None. `sources` has each text and number of the value, or that of a
    boolean; it is empty if no turn set it.
    """

    hash: str
    node: Node
    turn: int
    before: Json
    after: Json
    is_removed: bool = False
    sources: "tuple[ValueSource, ...]" = ()

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: what the value was and became, its sources, and the texts of the turn."""
        before, after = (json.dumps(each, ensure_ascii=False) for each in (self.before, self.after))
        change = f"{before} → {'removed' if self.is_removed else after}"
        sources = "".join(f"\n- {each.path or 'from'}, {each.kind}: `` {each.words} ``" for each in self.sources)
        return f"**turn {self.turn}**: `` {change} ``\n{sources}\n\n{self.node._repr_markdown_()}"


def value_changes(
    entries: Iterable[HistoryEntry], path: StatePath
) -> "Iterator[tuple[HistoryEntry, Json | Missing, Json | Missing]]":
    """Yield the entries of a history that gave a path of the state another value, with the values before and after."""
    before: Json | Missing = MISSING
    for entry in entries:
        after = get_path(dict(entry.after.state), path)
        if after != before:
            yield entry, before, after
        before = after


class Repository:
    """Conversations by name or revision. Each change of a session is one transaction of the store.

    `tools` are those that apps may name in addition to the built-in ones; `place` is the file next to which indexes are
    stored, or their server; `settings` name the embedding model of indexes. With `may_load_tools`, tools of files that the
    user named earlier are loaded again. For callers of a server, `scope` limits the searched indexes, and `quota` the
    spending. `limits` apply to every run in addition to its own, and `budget` is what all runs of this process may cost.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.place: Path | PostgresUrl | None = store.path
        self.settings: Settings | None = None
        self.retriever: Retriever | None = None
        self.scope: IndexScope | None = None
        self.quota: Quota | None = None
        self.limits: UsageLimits | None = None
        self.budget: Budget | None = None
        self.tools: dict[str, Tool] = {}
        self.types: dict[str, OutputType[Any]] = {}
        self.may_load_tools = False
        self._apps: dict[str, App] = {}
        self._trusted: dict[str, float] = {}
        self._recent: dict[str, Conversation] = {}
        self._begun: Conversation | None = None

    def limit_all_runs(self, limits: UsageLimits) -> None:
        """Let the runs of a server cost at most `limits.cost` together, and apply the other limits on cost to each of them."""
        self.budget = None if limits.cost is None else SharedBudget(limits.cost)
        self.limits = replace(limits, requests=None, tool_calls=None, cost=None)

    def budgets(self, run: int, limits: UsageLimits | None) -> tuple[Budget, ...]:
        """Return the budgets that the calls of a run share with those of other runs."""
        own = limits or UsageLimits()
        own = own if self.limits is None else own.under(self.limits)
        bounds: tuple[tuple[Scope, int | None], ...] = (
            ("conversation", own.conversation_cost),
            ("owner", None if self.quota is None else self.quota.max_cost),
            ("store", own.day_cost),
        )
        stored = tuple(SpendingLimit(scope, bound) for scope, bound in bounds if bound is not None)
        shared = () if self.budget is None else (self.budget,)
        return (*shared, StoredBudget(self.store, run, stored)) if stored else shared

    @property
    def limits_cost(self) -> bool:
        """Whether a limit on cost applies to every run."""
        return bool(self.budgets(0, None)) or (self.limits is not None and self.limits.call_cost is not None)

    def app(self, name: str) -> App:
        """Open the app of a node; the model, tools, files and limits of an untrusted app are ignored."""
        found = self._apps.get(name)
        if found is not None:
            return found
        app = load_source(self.store.nodes.app(name))
        own = self.store.nodes.is_trusted(name)
        options = replace(app.options, limits=None, tool_files=(), request=None)
        return self._kept(name, app if own else replace(app, model="", tools=(), options=options))

    def _kept(self, name: str, app: App) -> App:
        """Keep an app for later turns, unless one of its hash is kept; return the one that is. The oldest of many is forgotten."""
        if (kept := self._apps.get(name)) is not None:
            return kept
        options = app.source.options
        if options is None or len(canonical(options)) <= LONGEST_OPTIONS:
            self._apps[name] = app
        if len(self._apps) > MOST_APPS:  # the options of requests make others of one app
            self._apps.pop(next(iter(self._apps)), None)
        return app

    def trust(self, name: str) -> None:
        """Trust an app, so that its model, tools and documents apply; an app that the store lacks is already trusted."""
        if time.monotonic() < self._trusted.get(name, 0):
            return
        if not self.store.nodes.is_trusted(name):
            self.store.nodes.trust(name)
            # They hold the app without its model and tools.
            self._apps.pop(name, None)
            self._recent.clear()
        if len(self._trusted) > MOST_APPS:
            self._trusted.clear()
        self._trusted[name] = time.monotonic() + TRUST_SECONDS

    def check_trust(self, app: App) -> None:
        """Check that an app may do what cannot be left out of its turns.

        Raises:
            InputError: it was imported, is not trusted, and searches documents or has a program.
        """
        does = "search documents" if app.documents is not None else "run a program" if app.runs_file else ""
        if does and not self.store.nodes.is_trusted(app.hash):
            raise InputError(f"the app {app.name!r} was imported and may not {does}; see `taiwa apps trust {app.name}`")

    def require_trust(self, app: App, doing: str) -> None:
        """Check that an app is trusted before something that makes another app of it, which would be the user's own.

        Raises:
            InputError: it was imported, and what it names would apply from then on.
        """
        if not self.store.nodes.is_trusted(app.hash):
            name = app.name
            raise InputError(f"the app {name!r} was imported; trust it before {doing}: taiwa apps trust {name}")

    def last_model(self, tip: str, session: str = "") -> str:
        """Return the name of the model of the last answer up to a node; "" if there is none in this store.

        Without an answer up to there, as after `undo` of the first turn, it is the model that the session called last. The model
        of an imported answer does not count: the conversation would be sent to a place that its sender chose.
        """
        runs = self.store.runs
        return runs.last_model(tip, session) or (runs.model_of_session(session) if session else "")

    def add_tools(self, tools: "Iterable[Tool]") -> None:
        """Let apps find the tools of a caller by name, before the built-in ones.

        Raises:
            InputError: two have the same name: a server of tools could stand in for one of the caller's own.
        """
        given: dict[str, Tool] = {}
        for tool in tools:
            if given.setdefault(tool.spec.name, tool) is not tool:
                raise InputError(f"two tools have the name {tool.spec.name!r}")
        self.tools.update(given)

    def add_types(self, types: "Iterable[OutputType[Any]]") -> None:
        """Let apps whose answers have the schemas of these types use the types themselves, which may check more."""
        self.types |= {digest(each.json_schema.schema): each for each in types}

    def with_type(self, app: App) -> App:
        """Return an app with the type of its answers as code defines it: one of `add_types`, or of a file that the user named earlier.

        Raises:
            ConfigError: the file has changed or no longer exists, or that of a trusted app was not confirmed here.
            InputError: it cannot be imported.
        """
        if (code := app.answer_code) and app.code_type is None and self.store.nodes.is_trusted(app.hash):
            if code not in self.types:
                from taiwa.structured import OutputType

                self.types[code] = OutputType[Any].of(function_named(code))
            return replace(app, code_type=self.types[code])
        schema = app.answer_options.schema
        if schema is None or app.code_type is not None:
            return app
        files = [each for each in app.answer_options.tool_files if each.startswith(TYPE) and self.may_load_tools]
        if files and digest(schema.schema) not in self.types:
            from taiwa.structured import OutputType
            from taiwa.tools.registry import remembered_type

            self.add_types(OutputType[Any].of(found) for each in files if (found := remembered_type(each)) is not None)
        found = self.types.get(digest(schema.schema))
        return app if found is None else replace(app, code_type=found)

    def tools_of(self, app: App) -> "tuple[Tool, ...]":
        """Find the tools that an app names.

        Raises:
            ConfigError: a tool is neither built in nor passed in `tools`, or its file was not confirmed.
        """
        if app.flow != SOLVE:
            return self._tools_of(app)
        from taiwa.sessions.turn_programs import preset

        return tuple(preset(tool, app) for tool in self._tools_of(app))

    def _tools_of(self, app: App) -> "tuple[Tool, ...]":
        missing = [name for name in app.tools if name not in self.tools]
        if not missing:
            return tuple(self.tools[name] for name in app.tools)
        from taiwa.tools.registry import find_tools, named_tool, remembered_tool, tool_names

        for name in missing:
            if (match := IN_FILE.fullmatch(name)) is not None:  # a confirmed file stays as it is
                place = confirmed_copy(match["file"], match["hash"] or "")
                (self.tools[name],) = find_tools([f"{place}:{match['name']}"])

        files = {each.partition("@")[0]: each for each in app.answer_options.tool_files if self.may_load_tools}
        found = {
            name: self.tools.get(name) or (remembered_tool(files[name]) if name in files else named_tool(name))
            for name in app.tools
        }
        unknown = next((name for name, tool in found.items() if tool is None), None)
        if unknown is not None:
            near = get_close_matches(unknown, (*self.tools, *tool_names()), 1, 0.6)
            more = f"pass it: --tool FILE.py:{unknown} or --mcp-server, in Python tools=[{unknown}]"
            mend = f"did you mean {near[0]!r}? If not, {more}" if near else more
            raise ConfigError(f"the app {app.name!r} uses the tool {unknown!r}, which is not built in; {mend}")
        return tuple(filter(None, found.values()))

    def session(self, name: str = "") -> str:
        """Return the session of that name, by default the one that moved last.

        Raises:
            InputError: it does not exist.
        """
        if not name and self.store.refs.latest() is None and (begun := self.store.runs.open_runs()):
            raise InputError(f"the first turn of {begun[-1].ref!r} was cut off; `taiwa resume` finishes it")
        session = name or self.store.refs.require_latest()
        self.store.refs.tip(session)
        return session

    def new_name(self, app: App) -> str:
        """Find a free name for a conversation with an app: `chat-1`, `chat-2` …"""
        return self.store.refs.free_name(app.name)

    def start(self, app: App) -> Conversation:
        """Begin a conversation that is not stored yet."""
        # One app object is shared by all its conversations, so that its output types are built once.
        app = self._kept(app.hash, app)
        begun = self._begun
        if begun is None or begun.app is not app:
            self._begun = begun = begin(app)
        return begun

    def find_or_begin(
        self, name: str, app: str | App, params: Mapping[str, Json], load: Callable[[], App]
    ) -> Conversation:
        """Return the conversation of a session, or begin one with the app that `load` returns, which is then trusted.

        Raises:
            InputError: the session exists, and has another app than this one, or parameters were given for it.
        """
        if not name or not self.store.refs.has(name):
            loaded = load()
            self.trust(loaded.hash)  # the caller names the app, so it is trusted
            return self.start(loaded)
        found = self.at(name)
        is_path = isinstance(app, str) and ("/" in app or app.endswith(".md"))
        wanted = app.name if isinstance(app, App) else load_app(app).name if is_path else app
        if wanted and wanted != found.app.name:
            raise InputError(
                f"session {name!r} has the app {found.app.name!r}, not {wanted!r}; choose another session name, or change "
                "the app of this one (/app in taiwa chat, change_app in Python)"
            )
        if params:
            raise InputError(
                f"session {name!r} exists and has its parameters; choose another session name for new ones"
            )
        return found

    def at(self, revision: str = "") -> Conversation:
        """Check out the conversation at a revision.

        Raises:
            InputError: the revision does not exist.
        """
        return self.checkout(self.store.resolve(revision))

    def checkout(self, tip: str) -> Conversation:
        """Check out the conversation after a node, from the nearest snapshot before it.

        Raises:
            CorruptError: a node leads to another state than it recorded.
        """
        try:
            here, steps = self._folded(self.store.snapshots.checkout(tip))
        except (StoreError, InputError):  # possibly only the snapshot, which is a cache, is damaged
            here, steps = self._folded(self.store.snapshots.checkout(tip, from_root=True))
        if steps > SNAPSHOT_EVERY and _is_worth_a_snapshot(here):
            with suppress(StoreError):  # a read-only store is only slower
                self.store.snapshots.put(tip, _snapshot(here))
        return here

    def recent(self, tip: str) -> Conversation:
        """Check out a conversation that `remember` probably still caches."""
        found = self._recent.get(tip)
        return self.checkout(tip) if found is None or not self.store.nodes.has(tip) else found

    def remembers(self, conversation: Conversation) -> bool:
        """Return whether a conversation is cached, as short ones are after their turns."""
        return conversation.tip in self._recent

    def remember(self, conversation: Conversation) -> None:
        """Cache a committed conversation in memory for its next turn, if it is not long and has no files."""
        if conversation.app.hash in self._apps and not conversation.files and conversation.size <= LONGEST_RECENT:
            self._recent[conversation.tip] = conversation
            for oldest in list(self._recent)[:-MOST_RECENT]:
                self._recent.pop(oldest, None)

    def with_attachments(self, conversation: Conversation) -> Conversation:
        """Fill in the bytes of the attachments in the window of a conversation.

        Raises:
            CorruptError: the bytes are not those of an attachment.
        """
        if not conversation.files:
            return conversation
        return replace(conversation, turns=tuple(map(self.store.blobs.filled_turn, conversation.turns)))

    def walk(self, tip: str, base: str | None = None) -> Iterator[HistoryEntry]:
        """Follow a history from its root, or after one of its nodes, and check every recorded state on the way."""
        conversation = None if base is None else self.checkout(base)
        for name, node in reversed(tuple(self.store.nodes.path(tip, base))):
            conversation = self._root(name, node) if conversation is None else advance(conversation, node, self.app)
            yield HistoryEntry(name, node, conversation)

    def fsck(self) -> tuple[FsckProblem, ...]:
        """Check the store, and replay every session from its root: each state must be the recorded one."""
        return (*self.store.fsck(), *self._check_states())

    def _check_states(self) -> Iterator[FsckProblem]:
        try:
            tips = tuple(dict.fromkeys(ref.tip for ref in self.store.refs.list()))
        except CorruptError as error:
            yield FsckProblem("conversations", without_advice(error.message))
            return
        for tip in tips:
            try:
                deque(self.walk(tip), maxlen=0)
            except TaiwaError as error:
                yield FsckProblem(f"node {tip}", without_advice(error.message))

    def readable_sessions(self) -> tuple[str, ...]:
        """Return the sessions of a damaged store that can be exported, the latest first."""
        try:
            names = tuple(ref.name for ref in self.store.refs.list())
        except CorruptError:
            return ()
        return tuple(filter(self._can_be_exported, names))

    def _can_be_exported(self, session: str) -> bool:
        try:
            deque(self.store.export(session), maxlen=0)
        except TaiwaError:
            return False
        return True

    def import_lines(self, lines: Iterable[str], name: str | None = None, *, trusted: bool = False) -> Conversation:
        """Import an exported conversation, all or nothing; every hash and every state is checked.

        It does not become the latest session, and its apps are untrusted (`store.nodes.is_trusted`), unless the store had
        them before; with `trusted`, they are trusted.

        Raises:
            InputError: a line is invalid, or a state is not the recorded one; nothing was imported.
            ConflictError: a session of that name has another tip.
        """
        return self.checkout(self.store.import_lines(lines, name, self.checkout, trusted=trusted))

    def commit(
        self,
        session: str,
        conversation: Conversation,
        *,
        expected: str | None,
        reason: str = "turn",
        run: int | None = None,
    ) -> Conversation:
        """Write the new nodes of a conversation, move the session to them, and close the run that made them.

        Raises:
            ConflictError: another process moved the session; nothing was overwritten.
        """
        app, new_nodes = conversation.app, conversation.new_nodes
        self._kept(app.hash, app)
        apps = (app.source,) if any(node.kind in {"root", "app"} for node in new_nodes) else ()
        self.store.commit(session, new_nodes, expected=expected, reason=reason, run=run, apps=apps)
        logger.info("%s of %s: turn %d, node %s", reason, session, conversation.count, conversation.tip[:12])
        committed = conversation.stored()
        if committed.count and committed.count % SNAPSHOT_EVERY == 0 and _is_worth_a_snapshot(committed):
            self.store.snapshots.put(committed.tip, _snapshot(committed))
        return committed

    def set_state(self, session: str, values: State, *, author: str = "", at: str = "") -> Conversation:
        """Set values of the state by hand, at the end of a session or after another node, from which it then continues.

        The edit is a node, so that every value has an origin; `author` is who made it.
        """
        tip = self.store.refs.tip(session)
        edited = edit_state(self.checkout(at or tip), values, author)
        return self.commit(session, edited, expected=tip, reason="state set")

    def change_app(self, session: str, app: App) -> Conversation:
        """Continue with another or an edited app; values that fit its fields are kept."""
        tip = self.store.refs.tip(session)
        return self.commit(session, change_app(self.checkout(tip), app), expected=tip, reason=f"app {app.name}")

    def fork(self, revision: str, name: str, session: str = "") -> str:
        """Give the node of a revision a second name and return its hash; `session` is the one that is forked, if it is known."""
        tip = self.store.resolve(revision)
        self.store.refs.create(name, tip, reason=f"{FORK}{session or revision or 'the latest'}")
        return tip

    def before_turn(self, tip: str, turns: int = 1) -> str:
        """Return the node before the last turns; edits of the state are not counted.

        Raises:
            InputError: the conversation has fewer turns.
        """
        return self.store.refs.back(self.turn(tip, turns)[0], 1)

    def turn(self, tip: str, turns: int = 1) -> tuple[str, Node]:
        """Return a turn, counted from the end; 1 is the last one.

        Raises:
            InputError: the conversation has fewer turns.
        """
        past = ((name, node) for name, node in self.store.nodes.path(tip) if node.kind == "turn")
        last = list(islice(past, max(turns, 1)))
        if not 1 <= turns <= len(last):
            raise InputError(
                f"there {'is' if len(last) == 1 else 'are'} only {plural(len(last), 'turn')}, not {turns}"
                if last
                else "there is no turn yet"
            )
        return last[-1]

    def origin(self, tip: str, path: StatePath) -> ValueOrigin:
        """Find the node that set or removed a value last.

        Raises:
            InputError: there never was a value at the path.
        """
        found = self.find_origin(tip, path)
        if found is None:
            raise NotFoundError(f"no value at {format_path(path)}; `taiwa state` shows the state")
        return found

    def find_origin(self, tip: str, path: StatePath) -> ValueOrigin | None:
        """Find the node that set or removed a value last; None if there never was a value at the path."""
        last = deque(value_changes(self.walk(tip), path), maxlen=1)
        if not last:
            return None
        ((entry, *values),) = last
        before, after = (None if isinstance(each, Missing) else each for each in values)
        origin = ValueOrigin(entry.hash, entry.node, entry.after.count, before, after, values[1] is MISSING)
        computed = {each.name: each.computed for each in entry.after.app.fields}
        return replace(origin, sources=self._sources(origin, str(path[0]), computed.get(str(path[0]), "")))

    def _sources(self, origin: ValueOrigin, field: str, computed: str) -> "tuple[ValueSource, ...]":
        """Return where each text and number of a value of a field comes from, or a boolean; () if no turn set it."""
        node = origin.node
        if node.kind != "turn" or origin.is_removed:
            return ()
        from taiwa.conversation.state_record import stated_under
        from taiwa.flows.ask.answer import values_in
        from taiwa.flows.ask.ask_result import AskResult
        from taiwa.flows.ask.provenance import ValueSource, sources_of

        if computed:
            return (ValueSource("computed", computed),)
        before, names, texts = None, [origin.hash], [node.user or ""]
        for name, each in () if node.parent is None else self.store.nodes.path(node.parent):
            if each.kind != "turn":
                continue
            before = each.answer or "" if before is None else before
            if item_at(each.findings, "asked") is None:
                break
            # A program that asked the user continues in the next turn, with all that it was told and found.
            names, texts = [*names, name], [each.user or "", *texts]
        documents = AskResult.of(node.findings)
        read = None if documents is None else {(each.source, each.start) for each in documents.passages}
        answers = [entry.answer for name in names for entry in self.store.runs.journal_of(name)]
        found = (each for answer in answers if isinstance(answer, Found) for each in answer.passages)
        passages = tuple(dict.fromkeys(each for each in found if read is None or (each.source, each.start) in read))
        text = "\n".join(texts)
        named = (stated_under(each.text).get(field) for each in answers if isinstance(each, Response))
        stated = next((each for each in named if each and each in text), "")  # a model may have written other words
        found_in = sources_of(origin.after, text, node.findings, before or "", passages, stated)
        of_program = item_at(node.findings, "program") is not None
        alone: SourceKind = (
            "program" if of_program and not any(isinstance(each, Response) for each in answers) else "model"
        )
        is_imported = not self.store.runs.that_made(origin.hash)
        if is_imported and (of_program or (documents is not None and documents.passages)):
            alone = "unknown"
        found_in = tuple(replace(each, kind=alone) if each.kind == "model" else each for each in found_in)
        known = [part for _, part in values_in(origin.before)]
        parts = [part for _, part in values_in(origin.after)] or [origin.after] * len(found_in)
        return tuple(each for each, part in zip(found_in, parts, strict=True) if part not in known)

    def _folded(self, parts: Checkout) -> tuple[Conversation, int]:
        """Fold nodes, and return the conversation with their number."""
        if parts.near is None:
            return apply_nodes(self._root(*parts.steps[0]), parts.steps[1:], self.app), len(parts.steps) - 1
        return apply_nodes(self._restored(*parts.near), parts.steps, self.app), len(parts.steps)

    def _root(self, name: str, root: Node) -> Conversation:
        if root.kind != "root":
            raise CorruptError(f"node {name[:12]} has no parent and is not a root")
        return replace(begin(self.app(root.app)), new_nodes=())

    def _restored(self, tip: str, data: Json) -> Conversation:
        match data:
            case {
                "app": str(app),
                "state": dict(state),
                "turns": list(turns),
                "summary": str(summary),
                "count": int(n),
                **more,
            }:
                names = [str(name) for name in turns]
                past = tuple(map(past_turn, names, self.store.nodes.get_all(names)))
                last = more.get("last_answer")  # older snapshots lack it
                last_answer = last if isinstance(last, str) else past[-1].said if past else ""
                here = Conversation(self.app(app), tip, state, past, summary, n, last_answer)
                if here.state_hash == self.store.nodes.get(tip).state_hash:
                    return here
            case _:
                pass
        raise CorruptError(f"the snapshot of {tip[:12]} cannot be read")


def _is_worth_a_snapshot(conversation: Conversation) -> bool:
    """Return whether a snapshot saves anything: without state and with all turns in the window, every node is read anyway."""
    return bool(conversation.app.fields) or len(conversation.turns) < conversation.count


def _snapshot(conversation: Conversation) -> Json:
    here, turns = conversation, list[Json]([past.hash for past in conversation.turns])
    snapshot: dict[str, Json] = {"app": here.app.hash, "state": here.state, "turns": turns, "summary": here.summary}
    return snapshot | {"count": here.count, "last_answer": here.last_answer}
