"""A store behaves like a few dictionaries, whatever is done to it in whatever order."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from taiwa.conversation.history import Node
from taiwa.kernel.errors import ConflictError, InputError
from taiwa.store import Store
from tests.database import Database
from tests.store.turns import APP, root, turn

names = st.sampled_from(["one", "two", "three"])
texts = st.sampled_from(["a", "b", "c"])
steps = st.integers(1, 3)
UNDOING = ("undo", "redo", "rename")


@dataclass
class Session:
    """A name in the model: where it stands and where it has been, oldest first."""

    tip: str
    log: list[tuple[str, str]] = field(default_factory=list)

    def move(self, op: str, tip: str) -> None:
        self.tip = tip
        self.log.append((op, tip))


class Histories(RuleBasedStateMachine):
    """The same steps on a store and on a model of it."""

    def opened(self) -> Store:
        return Store.open(":memory:")

    @initialize()
    def empty(self) -> None:
        self.store = self.opened()
        self.bases: dict[str, str | None] = {}
        self.parents: dict[str, str | None] = {}
        self.sessions: dict[str, Session] = {}
        self.order: list[str] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            assert self.store.fsck() == ()
            self.store.close()

    def keep(self, node: Node, base: str | None) -> str:
        """Put a node into the model; one that is there stays as it is."""
        self.parents.setdefault(node.hash, node.parent)
        self.bases.setdefault(node.hash, base)
        return node.hash

    def moved(self, name: str, op: str, tip: str) -> None:
        self.sessions[name].move(op, tip)
        self.order = [name, *(other for other in self.order if other != name)]

    def back(self, tip: str, count: int) -> str | None:
        at: str | None = tip
        for _ in range(count):
            at = None if at is None else self.bases[at]
        return at

    def reached(self) -> set[str]:
        found: set[str] = set()
        for session in self.sessions.values():
            at: str | None = session.tip
            while at is not None and at not in found:
                found.add(at)
                at = self.parents[at]
        return found

    @rule(name=names)
    def begin(self, name: str) -> None:
        if name in self.sessions:
            with pytest.raises(ConflictError):
                self.store.commit(name, [root()], expected=None, apps=[APP])
            return
        tip = self.keep(root(), None)
        assert self.store.commit(name, [root()], expected=None, apps=[APP]) == tip
        self.sessions[name] = Session(tip)
        self.moved(name, "create", tip)

    @rule(name=names, said=texts, fold=st.sampled_from(["none", "before", "after"]))
    def say(self, name: str, said: str, fold: str) -> None:
        if name not in self.sessions:
            return
        tip = self.sessions[name].tip
        nodes: list[Node] = []
        if fold == "before":
            nodes.append(Node(tip, "summary", APP.hash, answer="so far"))
        nodes.append(turn(nodes[-1].hash if nodes else tip, said))
        if fold == "after":
            nodes.append(Node(nodes[-1].hash, "summary", APP.hash, answer="so far"))

        assert self.store.commit(name, nodes, expected=tip) == nodes[-1].hash

        for node in nodes:
            self.keep(node, tip)
        self.moved(name, "commit", nodes[-1].hash)
        with pytest.raises(ConflictError):
            self.store.commit(name, nodes, expected=tip)

    @rule(name=names, new=names, count=st.integers(0, 2))
    def fork(self, name: str, new: str, count: int) -> None:
        at = self.back(self.sessions[name].tip, count) if name in self.sessions else None
        if at is None or new in self.sessions:
            return
        assert self.store.resolve(f"{name}~{count}") == at
        self.store.refs.create(new, at)
        self.sessions[new] = Session(at)
        self.moved(new, "create", at)

    @rule(name=names, count=steps)
    def undo(self, name: str, count: int) -> None:
        at = self.back(self.sessions[name].tip, count) if name in self.sessions else None
        if at is None:
            with pytest.raises(InputError):
                self.store.undo(name, count)
            return
        assert self.store.undo(name, count) == at
        self.moved(name, "undo", at)

    @rule(name=names, count=steps)
    def redo(self, name: str, count: int) -> None:
        undone = self.undone(name)
        if count > len(undone):
            with pytest.raises(InputError):
                self.store.redo(name, count)
            return
        assert self.store.redo(name, count) == undone[-count]
        self.moved(name, "redo", undone[-count])

    def undone(self, name: str) -> list[str]:
        if name not in self.sessions:
            return []
        session = self.sessions[name]
        at: str | None = next((tip for op, tip in reversed(session.log) if op not in UNDOING), None)
        found: list[str] = []
        while at is not None and at != session.tip:
            found.append(at)
            at = self.bases[at]
        return found if at == session.tip else []

    @rule(name=names, new=names)
    def rename(self, name: str, new: str) -> None:
        if name not in self.sessions or new in self.sessions:
            return
        self.store.refs.rename(name, new)
        self.sessions[new] = self.sessions.pop(name)
        self.order = [new if other == name else other for other in self.order]
        self.moved(new, "rename", self.sessions[new].tip)

    @rule(name=names)
    def delete(self, name: str) -> None:
        if name in self.sessions:
            assert self.store.refs.delete(name) == self.sessions.pop(name).tip
            self.order.remove(name)

    @rule()
    def collect(self) -> None:
        held = self.reached()
        assert self.store.gc(keep=0).nodes == len(self.parents) - len(held)
        self.parents = {node: parent for node, parent in self.parents.items() if node in held}
        self.bases = {node: base for node, base in self.bases.items() if node in held}
        for session in self.sessions.values():
            session.log = session.log[-1:]

    @rule()
    def collect_nothing(self) -> None:
        self.store.gc()

    @precondition(lambda self: self.sessions)
    @rule(name=names)
    def forget(self, name: str) -> None:
        if name not in self.sessions:
            return
        self.collect()
        before = self.reached()
        del self.sessions[name]
        self.order.remove(name)
        held = self.reached()
        assert self.store.delete_session(name).nodes == len(before - held)
        self.parents = {node: parent for node, parent in self.parents.items() if node in held}
        self.bases = {node: base for node, base in self.bases.items() if node in held}

    @rule(name=names)
    def send(self, name: str) -> None:
        if name not in self.sessions:
            return
        lines = list(self.store.export(name))
        with Store.open(":memory:") as other:
            assert other.import_lines(lines) == self.sessions[name].tip
            assert list(other.export(name)) == lines
        assert self.store.import_lines(lines) == self.sessions[name].tip

    @invariant()
    def the_store_is_where_the_model_is(self) -> None:
        if not hasattr(self, "store"):
            return
        assert {ref.name: ref.tip for ref in self.store.refs.list()} == {
            name: session.tip for name, session in self.sessions.items()
        }
        assert [ref.name for ref in self.store.refs.list()] == self.order
        assert self.store.refs.latest() == (self.order[0] if self.order else None)
        assert self.store.nodes.count() == len(self.parents)
        for name, session in self.sessions.items():
            log = [(move.op, move.new) for move in self.store.refs.reflog(name)]
            assert log == session.log[::-1]
            path = [node for node, _ in self.store.nodes.path(session.tip)]
            assert [self.parents[node] for node in path] == [*path[1:], None]


Histories.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
test_histories = Histories.TestCase


def test_histories_on_a_server(database: Database) -> None:
    class OnServer(Histories):
        def opened(self) -> Store:
            database.empty()
            return Store.open(database.url)

    # What a rule does is known to be right; here it must come to the same.
    run_state_machine_as_test(OnServer, settings=settings(max_examples=6, stateful_step_count=15, deadline=None))  # type: ignore[no-untyped-call]
