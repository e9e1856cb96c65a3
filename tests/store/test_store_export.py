"""A conversation leaves and comes back with the same hashes, or not at all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node
from taiwa.kernel.errors import ConflictError, InputError, StoreError
from taiwa.kernel.serialization import Json, canonical
from taiwa.store import Store
from tests.store.test_nodes_encoding import jsons, texts
from tests.store.turns import APP, answered, begin, turn


def exported(*said: str) -> list[str]:
    with Store.open(":memory:") as store:
        begin(store, "main", *said)
        return list(store.export("main"))


@given(st.lists(st.tuples(st.none() | texts, st.none() | texts, jsons), max_size=4))
def test_what_is_exported_is_imported_with_the_same_hashes(steps: list[tuple[str | None, str | None, Json]]) -> None:
    with Store.open(":memory:") as store, Store.open(":memory:") as other:
        tip = begin(store)
        for user, answer, delta in steps:
            tip = store.commit("main", [Node(tip, "turn", APP.hash, user, answer, delta)], expected=tip)
        lines = list(store.export("main"))

        assert other.import_lines(lines) == tip
        assert [name for name, _ in other.nodes.path(tip)] == [name for name, _ in store.nodes.path(tip)]
        assert list(other.export("main")) == lines
        assert other.fsck() == ()


def test_equal_conversations_are_exported_to_equal_bytes() -> None:
    with Store.open(":memory:", clock=lambda: 0) as early, Store.open(":memory:", clock=lambda: 10**15) as late:
        for store in (early, late):
            begin(store, "main", "a", "b")

        assert list(early.export("main")) == list(late.export("main"))


def test_importing_again_changes_nothing(store: Store) -> None:
    lines = exported("a", "b")
    tip = store.import_lines(lines)
    log = store.refs.reflog("main")

    assert store.import_lines(lines) == tip
    assert store.refs.reflog("main") == log
    assert store.import_lines(lines, "again") == tip
    assert store.nodes.count() == 3


def test_what_was_committed_together_is_undone_together_after_an_import(store: Store) -> None:
    before = begin(store, "main", "a")
    fold = Node(before, "summary", APP.hash, answer="summary")
    store.commit("main", [fold, turn(fold.hash, "b")], expected=before)

    with Store.open(":memory:") as other:
        other.import_lines(store.export("main"))

        assert other.undo("main") == before


def test_calls_are_exported_for_reading_and_not_billed_again(store: Store) -> None:
    tip = begin(store)
    run = store.runs.begin("main", tip, APP.hash, "x")
    store.runs.sink(run, model="m", price=lambda *_: 7)(answered("x", "y"))
    store.commit("main", [turn(tip, "x")], expected=tip, run=run)

    lines = list(store.export("main", calls=True))

    (call,) = [json.loads(line) for line in lines if "call" in json.loads(line)]
    assert (call["call"], call["model"], call["cost_nano"]) == (store.refs.tip("main"), "m", 7)
    with Store.open(":memory:") as other:
        other.import_lines(lines)
        assert other.costs("app") == ()


def test_the_latest_session_is_exported_with_its_name(store: Store) -> None:
    begin(store, "main", "a")

    assert list(store.export("")) == list(store.export("@")) == list(store.export("main"))


def test_a_revision_without_a_name_is_imported_under_the_name_of_the_argument(store: Store) -> None:
    tip = begin(store, "main", "a", "b")
    lines = list(store.export("main~1"))

    with Store.open(":memory:") as other:
        with pytest.raises(InputError, match="name must have 1 to 100 characters"):
            other.import_lines(lines)
        other.import_lines(lines, "part")

        assert other.refs.list()[0].turns == 1
        assert not other.nodes.has(tip)


def edited(line: str, **fields: object) -> str:
    said = json.loads(line) | fields
    return canonical({name: part for name, part in said.items() if part != "gone"}).decode()


SECRET = "秘密のことば"
LINES = exported(SECRET, "b")
BAD_LINES = [
    (0, '{"taiwa":"conversation"}', "line 1: neither an exported"),
    (0, edited(LINES[0], format=9), "line 1: the file has format 9 and this version of taiwa reads 1; update taiwa"),
    (0, edited(LINES[0], format="gone", version=1), "line 1: the file was written by an unreleased version of taiwa"),
    (0, LINES[1], "line 1: neither an exported"),
    (1, edited(LINES[1], source=SECRET), "line 2: the content does not match its hash"),
    (1, edited(LINES[1], name=5), "line 2: an app must have a name and a source"),
    (1, "", "line 3: app .* of the node not found in the store"),
    (2, "", "line 4: parent .* of the node not found in the store"),
    (3, edited(LINES[3], user=SECRET + "!"), "line 4: the content does not match its hash"),
    (3, edited(LINES[3], user=["x"]), "line 4: a field of the node is missing or has the wrong type"),
    (3, edited(LINES[3], kind="edict"), "line 4: a field of the node is missing or has the wrong type"),
    (3, edited(LINES[3], parent=7), "line 4: a field of the node is missing or has the wrong type"),
    (3, edited(LINES[3], state="gone"), "line 4: a field of the node is missing or has the wrong type"),
    (3, edited(LINES[3], delta={"~": "text", "text": SECRET}), "line 4: the content does not match its hash"),
    (3, edited(LINES[3], findings=[SECRET]), "line 4: the findings of a node cannot be read"),
    (3, edited(LINES[3], findings={"calls": [SECRET]}), "line 4: the findings of a node cannot be read"),
    (3, edited(LINES[3], findings={"documents": {"answer": SECRET}}), "line 4: cannot read the findings of a turn"),
    (3, edited(LINES[3], findings={"calls": [{"attachments": [1]}]}), "line 4: the content does not match its hash"),
    (3, LINES[3][:-9], "line 4: not JSON"),
    (3, "[" * 100_000, "line 4: not JSON"),
    (3, f'["{SECRET}"]', "line 4: not a JSON object"),
    (3, f'{{"letter":"{SECRET}"}}', "line 4: expected an app, a node, an attachment or a call"),
    (3, edited(LINES[3])[:-1] + ',"delta":NaN}', "line 4: .*nothing was imported"),
    (3, edited(LINES[3])[:-1] + ',"user":"\\ud800"}', "line 4: the text contains half a character"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "line", "complaint"), BAD_LINES)
def test_a_bad_line_is_named_and_nothing_is_imported(store: Store, place: int, line: str, complaint: str) -> None:
    lines = [*LINES[:place], line, *LINES[place + 1 :]]

    with pytest.raises(InputError, match=complaint) as caught:
        store.import_lines(lines)

    assert caught.value.message.endswith(("nothing was imported", "update taiwa; nothing was imported"))
    assert SECRET not in caught.value.message
    assert store.nodes.count() == 0
    assert store.refs.list() == ()


@pytest.mark.parametrize(
    ("lines", "complaint"), [([], "file is empty"), (["", " "], "file is empty"), (LINES[:-1], "ends before")]
)
def test_a_truncated_file_is_not_imported(store: Store, lines: list[str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        store.import_lines(lines)

    assert store.nodes.count() == 0


def test_another_session_of_that_name_is_not_overwritten(store: Store) -> None:
    tip = begin(store, "main", "mine")

    with pytest.raises(ConflictError, match="another session 'main' already exists; import under another name"):
        store.import_lines(LINES)

    assert store.refs.tip("main") == tip
    assert store.nodes.count() == 2


def test_a_file_that_is_not_utf8_is_refused_by_its_line(store: Store) -> None:
    raw = [line.encode() for line in LINES]
    raw[3] = raw[3].replace("秘".encode(), b"\xff\xfe")

    with pytest.raises(InputError, match="line 4: not UTF-8; nothing was imported"):
        store.import_lines(line.decode("utf-8") for line in raw)

    assert store.nodes.count() == 0


def test_an_imported_node_cannot_make_undo_leave_its_history(store: Store) -> None:
    foreign = begin(store, "other", "x", "y")
    lines = [edited(line, base=foreign) if "parent" in json.loads(line) else line for line in LINES]

    store.import_lines(lines)

    assert store.undo("main") == json.loads(LINES[3])["node"]
    assert store.fsck() == ()


def test_exporting_an_unknown_session_fails(store: Store) -> None:
    begin(store)

    with pytest.raises((InputError, StoreError)):
        list(store.export("mein"))


OTHER = AppSource("other", "---\ntaiwa: 1\nname: other\n---\nYou talk.\n", {})


def test_an_imported_session_is_not_the_latest_until_it_moves(store: Store) -> None:
    lines = exported("a")
    store.import_lines(lines, "foreign")
    assert store.refs.latest() is None
    with pytest.raises(InputError, match="only imported conversations, which are continued by name: foreign"):
        store.resolve("")

    begin(store, "own", "b")
    store.import_lines(lines, "again")
    assert store.refs.latest() == "own"
    assert [ref.name for ref in store.refs.list()] == ["again", "own", "foreign"]

    tip = store.refs.tip("foreign")
    store.commit("foreign", [turn(tip, "c")], expected=tip)
    assert store.refs.latest() == "foreign"


def test_an_imported_app_is_untrusted_until_the_user_trusts_it(place: str) -> None:
    lines = exported("a")
    with Store.open(place) as store:
        store.import_lines(lines, "foreign")
        assert not store.nodes.is_trusted(APP.hash)
        assert store.nodes.untrusted_apps() == (APP,)
        store.nodes.put_app(APP)  # as a rerun of the conversation does
        store.gc()
    with Store.open(place) as store:
        assert not store.nodes.is_trusted(APP.hash)
        store.nodes.trust(APP.hash)
    with Store.open(place) as store:
        assert store.nodes.is_trusted(APP.hash)
        store.import_lines(lines, "again")
        assert store.nodes.is_trusted(APP.hash)
        with pytest.raises(StoreError, match="app abababab not found"):
            store.nodes.trust("ab" * 16)


def test_an_app_that_the_store_had_before_an_import_stays_trusted(store: Store) -> None:
    begin(store, "own", "b")
    store.import_lines(exported("a"), "foreign")

    assert store.nodes.is_trusted(APP.hash)
    assert store.nodes.untrusted_apps() == ()


def test_an_import_can_be_trusted_at_once(store: Store) -> None:
    store.import_lines(exported("a"), "foreign")
    store.import_lines(exported("a", "b"), "trusted", trusted=True)

    assert store.nodes.is_trusted(APP.hash)


def test_a_failed_import_leaves_no_mark_of_trust(store: Store) -> None:
    store.import_lines(exported("a"), "foreign")
    lines = exported("a", "b")

    with pytest.raises(InputError):
        store.import_lines([*lines[:-1], "{"], "broken", trusted=True)

    assert not store.nodes.is_trusted(APP.hash)
    assert store.nodes.is_trusted(OTHER.hash)
