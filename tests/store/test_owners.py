"""Several owners of one store: each has sessions of its own, and what belongs to another does not exist, whatever is asked for."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node
from taiwa.kernel.errors import ConflictError, InputError, StoreError
from taiwa.store import Store
from tests.store.turns import APP, answered, begin, root, turn

SECRET = AppSource("chat", "---\ntaiwa: 1\nname: chat\n---\nThe price is 12,000 yen.\n", {})


def paid(store: Store, name: str, text: str) -> tuple[str, int]:
    """One paid turn of a session; return its tip and its run."""
    tip = store.refs.tip(name)
    run = store.runs.begin(name, tip, APP.hash, text)
    store.runs.count_request(run, "m")
    store.runs.sink(run, model="m")(answered(text, "はい"))
    return store.commit(name, [turn(tip, text)], expected=tip, run=run), run


def test_owners_have_names_of_their_own(store: Store) -> None:
    alice, bob = store.owned_by("alice"), store.owned_by("bob")
    for each, said in ((store, "nobody"), (alice, "alice"), (bob, "bob")):
        begin(each, "main", said)

    for each, said in ((store, "nobody"), (alice, "alice"), (bob, "bob")):
        assert [ref.name for ref in each.refs.list()] == ["main"]
        assert each.nodes.get(each.resolve("main")).user == said
    alice.refs.rename("main", "hers")
    bob.refs.delete("main")

    assert [[ref.name for ref in each.refs.list()] for each in (store, alice, bob)] == [["main"], ["hers"], []]
    assert [each.refs.latest() for each in (store, alice, bob)] == ["main", "hers", None]
    with pytest.raises(InputError, match="there are no sessions yet"):
        bob.resolve("hers")
    assert store.fsck() == ()


FORGED: dict[str, Callable[[Store, Node, str, int], object]] = {
    "get": lambda bob, _, tip, __: bob.nodes.get(tip),
    "path": lambda bob, _, tip, __: list(bob.nodes.path(tip)),
    "checkout": lambda bob, _, tip, __: bob.snapshots.checkout(tip),
    "snapshot": lambda bob, _, tip, __: bob.snapshots.put(tip, {}),
    "resolve": lambda bob, _, tip, __: bob.resolve(tip),
    "resolve a part": lambda bob, _, tip, __: bob.resolve(tip[:6]),
    "resolve a name": lambda bob, _, __, ___: bob.resolve("hers"),
    "resolve moves": lambda bob, _, __, ___: bob.resolve("hers@{1}"),
    "export": lambda bob, _, tip, __: list(bob.export(tip)),
    "export a name": lambda bob, _, __, ___: list(bob.export("hers", calls=True)),
    "fork": lambda bob, _, tip, __: bob.refs.create("mine", tip),
    "move": lambda bob, _, tip, __: bob.refs.move("own", tip, bob.refs.tip("own"), "x"),
    "undo": lambda bob, _, __, ___: bob.undo("hers"),
    "rename": lambda bob, _, __, ___: bob.refs.rename("hers", "mine"),
    "delete": lambda bob, _, __, ___: bob.refs.delete("hers"),
    "delete for ever": lambda bob, _, __, ___: bob.delete_session("hers"),
    "reflog": lambda bob, _, __, ___: bob.refs.reflog("hers"),
    "follow": lambda bob, _, tip, __: bob.commit("mine", [turn(tip, "x")], expected=None),
    "take the app": lambda bob, _, __, ___: bob.commit("mine", [root(SECRET)], expected=None),
    "app": lambda bob, _, __, ___: bob.nodes.app(SECRET.hash),
    "trust": lambda bob, _, __, ___: bob.nodes.trust(SECRET.hash),
    "import": lambda bob, _, tip, __: bob.import_lines(
        [f'{{"taiwa": "conversation", "format": 1, "name": "mine", "tip": "{tip}"}}']
    ),
    "begin a run": lambda bob, _, tip, __: bob.runs.begin("own", tip, None, "x"),
    "run": lambda bob, _, __, run: bob.runs.run(run),
    "journal": lambda bob, _, __, run: bob.runs.journal(run),
    "claim": lambda bob, _, __, run: bob.runs.claim(run),
    "pay": lambda bob, _, __, run: bob.runs.sink(run)(answered("x", "y")),
    "finish": lambda bob, _, __, run: bob.runs.finish(run, 1, "own"),
    "commit a run": lambda bob, node, _, run: bob.commit(
        "own", [replace(node, parent=bob.refs.tip("own"))], expected=bob.refs.tip("own"), run=run
    ),
    "feedback": lambda bob, _, __, ___: bob.users.add_feedback("ann", {}),
    "assign": lambda bob, _, __, ___: bob.users.assign_session("own", "ann"),
    "delete a user": lambda bob, _, __, ___: bob.users.delete("ann"),
    "gc": lambda bob, _, __, ___: bob.gc(),
    "fsck": lambda bob, _, __, ___: bob.fsck(),
}


@pytest.mark.parametrize("what", FORGED)
def test_an_id_of_another_owner_is_answered_as_one_that_does_not_exist(store: Store, what: str) -> None:
    alice, bob = store.owned_by("alice"), store.owned_by("bob")
    begin(alice, "hers", "12,000 yen")
    tip, run = paid(alice, "hers", "more")
    opened = alice.runs.begin("hers", tip, APP.hash, "open")
    alice.nodes.put_app(SECRET, untrusted=True)
    alice.users.put("ann", {"office": "Osaka"})
    begin(bob, "own", "x")
    before = list(alice.export("hers", calls=True)), alice.refs.reflog("hers"), alice.runs.run(opened)

    for run_number in (run, opened):
        with pytest.raises((InputError, StoreError), match=r"not found|no session|concerns|ends before"):
            FORGED[what](bob, alice.nodes.get(tip), tip, run_number)

    assert (list(alice.export("hers", calls=True)), alice.refs.reflog("hers"), alice.runs.run(opened)) == before
    assert not alice.nodes.is_trusted(SECRET.hash)
    assert [ref.name for ref in bob.refs.list()] == ["own"]
    assert store.fsck() == ()


def test_what_is_listed_found_and_paid_is_the_owners_own(store: Store) -> None:
    alice, bob = store.owned_by("alice"), store.owned_by("bob")
    begin(alice, "hers", "the price of mushrooms")
    tip, _ = paid(alice, "hers", "mushrooms again")
    alice.runs.begin("hers", tip, APP.hash, "open")
    alice.nodes.put_app(SECRET, untrusted=True)
    alice.users.put("ann", {})
    alice.users.assign_session("hers", "ann")
    begin(bob, "his", "mushrooms too")

    for other in (bob, store):
        assert "mushrooms again" not in [hit.excerpt.text for hit in other.search("mushrooms")]
        assert not other.nodes.has(tip)
        assert other.costs("session") == ()
        assert other.runs.calls(tip) == ()
        assert other.runs.journal_of(tip) == ()
        assert other.runs.model_of(tip) == ""
        assert other.runs.open_runs("hers") == ()
        assert other.refs.free_name("hers") == "hers-1"
        assert other.nodes.untrusted_apps() == ()
        assert other.users.list() == ()
        assert other.users.get("ann") is None
        assert other.users.sessions("ann") == ()
    assert [hit.refs for hit in alice.search("mushrooms")] == [("hers",), ("hers",)]
    assert [line.requests for line in alice.costs("session")] == [1]
    assert (store.nodes.count(), alice.nodes.count(), bob.nodes.count()) == (0, 3, 2)


def test_the_bills_of_all_owners_are_added_up_for_the_whole_store_only(store: Store) -> None:
    alice, bob = store.owned_by("alice"), store.owned_by("bob")
    for each in (store, alice, bob):
        begin(each, "main", "a")
    paid(alice, "main", "b")
    tip, _ = paid(alice, "main", "c")
    paid(store, "main", "d")
    alice.runs.count_request(alice.runs.begin("main", tip, APP.hash, "open"), "m")

    lines = {line.name: (line.requests, line.calls_without_usage) for line in store.costs("owner")}
    assert lines == {"": (1, 0), "alice": (3, 1)}
    with pytest.raises(InputError, match="concerns all owners"):
        alice.costs("owner")


def test_owners_who_write_the_same_share_its_rows_and_both_keep_it(store: Store) -> None:
    alice, bob = store.owned_by("alice"), store.owned_by("bob")
    tip = begin(store, "main", "the same")
    assert begin(alice, "main", "the same") == begin(bob, "main", "the same") == tip
    assert store._db.one("SELECT count(*) FROM node") == 2

    alice.delete_session("main")

    assert [each.nodes.get(tip).user for each in (store, bob)] == ["the same"] * 2
    assert [[ref.tip for ref in each.refs.list()] for each in (store, alice, bob)] == [[tip], [], [tip]]
    store.delete_session("main")
    bob.delete_session("main")
    assert store._db.one("SELECT count(*) FROM node") == 0
    assert store._db.one("SELECT count(*) FROM owned_node") == 0
    assert store._db.one("SELECT count(*) FROM owned_app") == 0


def test_a_store_of_one_owner_keeps_no_rows_about_owners(store: Store) -> None:
    for name in ("one", "two"):
        begin(store, name, "the same", name)

    assert store._db.one("SELECT count(*) FROM owned_node") == 0
    assert store._db.one("SELECT count(*) FROM owned_app") == 0


def test_an_app_is_trusted_by_each_owner_for_himself(store: Store) -> None:
    alice, bob = store.owned_by("alice"), store.owned_by("bob")
    alice.nodes.put_app(SECRET)
    bob.nodes.put_app(SECRET, untrusted=True)
    assert (alice.nodes.is_trusted(SECRET.hash), bob.nodes.is_trusted(SECRET.hash)) == (True, False)

    bob.nodes.trust(SECRET.hash)

    assert bob.nodes.is_trusted(SECRET.hash)


def test_a_row_of_a_batch_is_computed_for_each_owner(store: Store) -> None:
    alice, bob = store.owned_by("alice"), store.owned_by("bob")
    for each in (alice, store):
        each.batches.begin("a" * 32)
        each.batches.finish("a" * 32, {"price": "12,000 yen"})

    assert bob.batches.get("a" * 32) is None
    assert bob.batches.clear() == 0
    assert alice.batches.clear() == 1
    assert store.batches.get("a" * 32) is not None


def test_gc_keeps_what_any_owner_can_reach(store: Store) -> None:
    alice = store.owned_by("alice")
    tip = begin(alice, "hers", "a")

    store.gc(keep=0)

    assert alice.nodes.get(tip).user == "a"


def test_another_process_that_moves_a_session_of_the_same_name_is_no_conflict(place: str) -> None:
    with Store.open(place, owner="alice") as alice, Store.open(place, owner="bob") as bob:
        tip = begin(alice, "main", "a")
        begin(bob, "main", "b", "c")
        alice.commit("main", [turn(tip, "d")], expected=tip)
        with pytest.raises(ConflictError):
            alice.commit("main", [turn(tip, "e")], expected=tip)
        assert bob.refs.list()[0].turns == 2


@pytest.mark.parametrize("owner", ["a\nb", "\0", "x" * 101, "\x1b[2J"])
def test_an_owner_is_one_line(owner: str) -> None:
    with pytest.raises(InputError, match="invalid owner"), Store.open(":memory:", owner=owner):
        pass


def test_owners_are_compared_character_by_character(store: Store) -> None:
    begin(store.owned_by("Ann"), "main", "a")

    for other in ("ann", "Ann ", " Ann", "Ａnn", "An", "Anne", "%", "A_n", ""):
        with suppress(InputError):
            assert store.owned_by(other).refs.list() == (), other
