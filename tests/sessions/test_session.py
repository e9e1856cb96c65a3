"""Sessions with a real store, blocking and asynchronous."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import cast

import pytest

from taiwa import open as open_session
from taiwa.apps.catalog import load_app, load_text
from taiwa.conversation.app import NO_OPTIONS, AnswerOptions, App, RequestParts
from taiwa.conversation.history import AnsweredBy, Node
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import (
    ConflictError,
    InputError,
    LimitError,
    ModelError,
    OutputValidationError,
    OverloadedError,
    StoreError,
)
from taiwa.kernel.messages import JsonSchema, Request, Response, TextDelta, Usage, assistant
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import Prices, UsageLimits
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.sessions.commit_turn import PricedModel, TurnInput, TurnOptions, TurnResult
from taiwa.sessions.replay import replay_history
from taiwa.sessions.repository import SNAPSHOT_EVERY, Repository
from taiwa.sessions.session import LONGEST_AT_ONCE, Session, rerun, writes_little
from taiwa.sql.sqlite import SqliteDatabase
from taiwa.store import Store
from tests.sessions.twins import Face, awaited, blocking, twin_of


@pytest.fixture(params=[blocking, awaited], ids=["blocking", "asynchronous"])
def face(request: pytest.FixtureRequest) -> Face:
    chosen: Face = request.param
    return chosen


@pytest.fixture
def store() -> Store:
    return Store.open(":memory:")


TRANSLATE = load_app("translate").with_params({"target_lang": "English"})
PLAIN = load_app("plain")


def turn(answer: str, delta: str = "{}") -> str:
    return f"{answer}\n@@delta\n{delta}"


def session_with(
    store: Store, model: ScriptedModel, session: str = "t", options: TurnOptions | None = None, app: App = TRANSLATE
) -> Session:
    repository = Repository(store)
    start = repository.at(session) if store.refs.has(session) else repository.start(app)
    return Session(repository, session, start, PricedModel(model), options=options)


def test_a_turn_is_answered_reduced_and_stored(store: Store, face: Face) -> None:
    session = session_with(store, scripted_model(turn("This is a sentence.", '{"dictionary":{"文":"sentence"}}')))

    said = face(session, "文(sentence)です。")

    assert (said.text, said.delta) == ("This is a sentence.", {"dictionary": {"文": "sentence"}})
    assert session.state["dictionary"] == {"文": "sentence"}
    assert store.refs.tip("t") == said.node
    assert Repository(store).at("t").state == session.state


def test_a_failed_turn_leaves_the_conversation_where_it_was_and_its_bill_in_the_store(store: Store, face: Face) -> None:
    session = session_with(store, scripted_model(turn("One"), OverloadedError("the server is busy"), turn("Two")))
    face(session, "first")
    before = session.conversation

    with pytest.raises(OverloadedError):
        face(session, "second")

    assert session.conversation == before
    assert store.refs.tip("t") == before.tip
    assert sum(line.requests for line in store.costs("session")) == 2
    assert face(session, "second again").text == "Two"


def test_a_first_turn_that_fails_leaves_no_conversation_behind(store: Store, face: Face) -> None:
    session = session_with(store, scripted_model(ModelError("no")))

    with pytest.raises(ModelError):
        face(session, "hello")

    assert not store.refs.has("t")


def test_undo_and_redo_move_message_state_and_window_together(store: Store) -> None:
    session = session_with(
        store, scripted_model(turn("a", '{"dictionary":{"x":"1"}}'), turn("b", '{"dictionary":{"y":"2"}}'))
    )
    session.say("one")
    after_one = session.conversation
    session.say("two")
    after_two = session.conversation

    assert session.undo() == after_one
    assert session.redo() == after_two


def test_a_retry_replaces_the_answer_and_keeps_the_old_one_in_the_log(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a"), turn("b", '{"dictionary":{"x":"1"}}')))
    old = session.say("one")

    *_, new = list(session.stream_retry())

    assert isinstance(new, TurnResult)
    assert (new.text, new.parent, session.conversation.count) == ("b", old.parent, 1)
    assert old.node in {moved.old for moved in store.refs.reflog("t")}


def test_an_edit_goes_back_some_turns_and_continues_with_another_text(store: Store) -> None:
    session = session_with(store, scripted_model(*(turn(word) for word in "abcd")))
    for word in ("one", "two", "three"):
        session.say(word)

    list(session.stream_edit("else", turn=-2))

    assert [past.user for past in session.conversation.turns] == ["one", "else"]


def test_a_retry_without_a_turn_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="no turn yet"):
        session_with(store, scripted_model()).retry()


def test_a_fork_changes_nothing_of_the_other_branch(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a"), turn("b", '{"dictionary":{"x":"1"}}')))
    session.say("one")
    here = session.conversation

    other = session.fork("other")
    other.say("two")

    assert Repository(store).at("t") == here
    assert Repository(store).at("other").state["dictionary"] == {"x": "1"}


def test_a_conversation_is_forked_before_its_first_turn(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a"), turn("b")))

    other = session.fork("other")

    assert session.say("one").text == "a"
    assert other.say("two").text == "b"
    assert Repository(store).at("other").count == 1


def test_of_two_writers_one_commits_and_the_calls_of_both_are_stored(store: Store, face: Face) -> None:
    session_with(store, scripted_model(turn("a"))).say("one")
    other = session_with(store, scripted_model(turn("theirs")))

    def interrupted(_: Request) -> str:
        other.say("theirs")
        return turn("mine")

    mine = session_with(store, scripted_model(interrupted))
    with pytest.raises(ConflictError, match="another program changed it first; this turn is kept as session 't-1'"):
        face(mine, "mine")

    assert store.refs.tip("t") == other.conversation.tip
    assert sum(line.requests for line in store.costs("session")) == 3
    assert [past.user for past in Repository(store).at("t-1").turns] == ["one", "mine"]


def test_a_session_that_another_writer_moved_makes_no_call(store: Store, face: Face) -> None:
    session_with(store, scripted_model(turn("a"))).say("one")
    mine, other = session_with(store, scripted_model(turn("mine"))), session_with(store, scripted_model(turn("theirs")))
    other.say("theirs")

    with pytest.raises(ConflictError, match="another program changed it first"):
        face(mine, "mine")

    assert sum(line.requests for line in store.costs("session")) == 2


def test_an_edit_by_hand_has_its_own_node_and_why_finds_it(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a", '{"dictionary":{"x":"1"}}')))
    first = session.say("one")

    session.set_state({"dictionary": {"x": "2"}})

    origin = session.repository.origin(session.conversation.tip, ("dictionary", "x"))
    assert (origin.node.kind, origin.before, origin.after) == ("edit", "1", "2")
    assert session.repository.origin(first.node, ("dictionary", "x")).turn == 1


def test_a_change_of_app_keeps_the_values_that_fit(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a", '{"dictionary":{"x":"1"}}')))
    session.say("one")

    session.change_app(load_app("translate").with_params({"target_lang": "日本語"}))

    assert session.state["dictionary"] == {"x": "1"}
    assert "日本語" in session.app.instructions
    assert Repository(store).at("t") == session.conversation
    assert session.change_app("chat").app.name == "chat"
    with pytest.raises(InputError, match="requires the parameter 'target_lang'"):
        session.change_app("translate")


def test_streamed_words_come_before_the_committed_turn(store: Store) -> None:
    session = session_with(store, scripted_model(turn("one two three")))

    *words, said = list(session.stream("go"))

    assert "".join(event.text for event in words if isinstance(event, TextDelta)) == "one two three"
    assert isinstance(said, TurnResult)


def test_strict_fails_a_turn_whose_delta_cannot_be_read(store: Store, face: Face) -> None:
    answers = (turn("a", '{"dictionary": 3}'), '{"dictionary": 4}')

    with pytest.raises(OutputValidationError):
        face(session_with(store, scripted_model(*answers), options=TurnOptions(strict=True)), "one")
    loose = session_with(store, scripted_model(*answers), session="loose")
    said = face(loose, "one")

    assert (said.text, said.delta) == ("a", {})
    assert "the state is unchanged: $.dictionary = 3" in said.warnings[0]
    assert not store.refs.has("t")


def test_a_cost_limit_counts_all_turns_of_a_session(store: Store) -> None:
    usage = Usage(1000, 1000)
    model = scripted_model(*(Response(assistant(turn(word)), usage=usage) for word in "abc"))
    session = session_with(store, model, options=TurnOptions(limits=UsageLimits(cost=4_100_000)))
    session.priced_model = PricedModel(model, Prices("1", "1"))

    session.say("one")
    session.say("two")

    with pytest.raises(LimitError, match=r"on cost would be exceeded: 0\.004 of 0\.0041 is used"):
        session.say("three")
    assert session.spent.cost == 4_000_000


def test_calls_without_reported_usage_count_for_a_cost_limit_as_what_they_reserved(store: Store, face: Face) -> None:
    session = session_with(store, scripted_model(), options=TurnOptions(limits=UsageLimits(cost=30_000_000)))
    session.priced_model = PricedModel(
        scripted_model(*(Response(assistant(turn(word))) for word in "abc")), Prices("1", "1")
    )
    face(session, "one")
    face(session, "two")

    with pytest.raises(LimitError, match=r"of 0\.03"):
        face(session, "three")

    assert session.conversation.count == 2


def test_an_interrupted_turn_is_finished_without_repeating_its_calls(tmp_path: Path) -> None:
    """The end of the process is played by a run whose process is gone; `tests/cli` kills a real one."""
    store = Store.open(tmp_path / "s.db")
    session = session_with(store, scripted_model(turn("a", '{"dictionary": 3}'), _killed))
    with pytest.raises(KeyboardInterrupt):
        session.say("one")
    run = _gone(store)

    again = session_with(store, scripted_model('{"dictionary":{"x":"1"}}'))
    *_, said = list(again.stream_resume())

    assert run == 1
    assert isinstance(said, TurnResult)
    assert (said.text, said.delta) == ("a", {"dictionary": {"x": "1"}})


def test_an_interrupted_turn_can_be_resumed_at_once(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a", '{"dictionary": 3}'), _killed, '{"dictionary":{"x":"1"}}'))
    with pytest.raises(KeyboardInterrupt):
        session.say("one")

    *_, said = list(session.stream_resume())

    assert isinstance(said, TurnResult)
    assert (said.text, said.delta) == ("a", {"dictionary": {"x": "1"}})


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_stream_resumes_a_turn_on_an_event_loop_and_is_empty_without_one(store: Store, *, interrupted: bool) -> None:
    session = session_with(store, scripted_model(turn("a", '{"dictionary": 3}'), _killed, '{"dictionary":{"x":"1"}}'))
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            session.say("one")

    async def resumed() -> TurnResult | None:
        return await twin_of(session).stream_resume().result()

    said = asyncio.run(resumed())

    assert (said and said.text) == ("a" if interrupted else None)


def test_a_stream_without_a_turn_to_resume_is_empty(store: Store) -> None:
    with session_with(store, scripted_model()).stream_resume() as events:
        assert (list(events), events.result) == ([], None)


def test_a_stream_that_is_closed_early_leaves_a_turn_to_resume(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a long answer"), turn("another")))
    events = session.stream("one")
    next(events)

    events.close()  # type: ignore[attr-defined]  # a generator

    assert [run.text for run in store.runs.open_runs("t")] == ["one"]


@pytest.mark.parametrize("why", ["retry", "edit"])
def test_an_interrupted_retry_or_edit_is_finished_too(store: Store, why: str) -> None:
    session = session_with(store, scripted_model(turn("a"), turn("b"), turn("c", '{"dictionary": 3}'), _killed, "{}"))
    session.say("one")
    old = session.say("two")
    with pytest.raises(KeyboardInterrupt):
        list(session.stream_retry() if why == "retry" else session.stream_edit("else"))

    *_, said = list(session.stream_resume())

    assert isinstance(said, TurnResult)
    assert (said.text, said.parent, session.conversation.count) == ("c", old.parent, 2)
    assert store.refs.reflog("t")[0].reason == why


def _killed(_: Request) -> str:
    raise KeyboardInterrupt


def _gone(store: Store) -> int:
    return store._db.run("UPDATE run SET pid = 999999999 WHERE status = 'open'")


def test_an_interrupted_call_is_on_the_bill(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a"), _killed))
    session.say("one")
    with pytest.raises(KeyboardInterrupt):
        session.say("two")

    for axis in ("session", "model", "app", "day"):
        (line,) = store.costs(axis)

        assert (line.requests, line.failed, line.calls_without_usage, line.cost_nano) == (2, 1, 2, None)
    assert store.costs("model")[0].name == "scripted"


def test_a_turn_before_which_a_field_was_compressed_is_replayed(store: Store) -> None:
    app = load_text(
        "---\ntaiwa: 1\nname: notes\nstate:\n  gist: { type: str, reduce: summary(20) }\n---\nNote.\n",
        "notes.md",
        "notes",
    )
    answers = [turn("a", json.dumps({"gist": "word " * 30})), "thirty words", turn("b"), turn("c")]
    repository = Repository(store)
    session = Session(repository, "t", repository.start(app), PricedModel(scripted_model(*answers)))
    session.say("one")
    session.say("two")
    session.set_state({"gist": ""})
    session.say("three")

    rows = tuple(replay_history(repository, "t"))

    assert [(row.kind, row.calls, row.difference) for row in rows] == [
        ("root", 0, ""), ("turn", 1, ""), ("edit", 0, ""), ("turn", 2, ""), ("edit", 0, ""), ("turn", 1, ""),
    ]  # fmt: skip


def test_replay_uses_every_recorded_answer_and_no_model(store: Store) -> None:
    answers = [turn("a", '{"dictionary": 3}'), '{"dictionary":{"x":"1"}}', turn("b"), turn("c")]
    session = session_with(store, scripted_model(*answers))
    for word in ("one", "two", "three"):
        session.say(word)
    session.set_state({"dictionary": {}})

    rows = tuple(replay_history(session.repository, "t"))

    assert [(row.kind, row.difference) for row in rows] == [
        ("root", ""), ("turn", ""), ("turn", ""), ("turn", ""), ("edit", ""),
    ]  # fmt: skip
    assert sum(row.calls for row in rows) >= len(answers)


def test_a_rerun_repeats_every_turn_on_a_new_branch(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a"), turn("b")))
    session.say("one")
    session.say("two")

    said = list(
        rerun(session.repository, "t", "other", PricedModel(scripted_model(turn("x"), turn("y"))), None, TurnOptions())
    )

    assert [one.text for one in said] == ["x", "y"]
    assert [past.user for past in Repository(store).at("other").turns] == ["one", "two"]
    assert [past.answer for past in Repository(store).at("t").turns] == ["a", "b"]


def test_a_rerun_with_an_existing_name_makes_no_call(store: Store) -> None:
    session = session_with(store, scripted_model(turn("a")))
    session.say("A")
    model = scripted_model(turn("x"))

    with pytest.raises(ConflictError, match="choose another name"):
        list(rerun(session.repository, "t", "t", PricedModel(model), None, TurnOptions()))

    assert not model.requests


def test_a_checkout_from_a_snapshot_equals_the_conversation_as_it_was_held(store: Store) -> None:
    turns = SNAPSHOT_EVERY + 7
    session = session_with(
        store, scripted_model(*(turn(f"a{n}", f'{{"dictionary":{{"k{n % 5}":"v{n}"}}}}') for n in range(turns)))
    )
    for n in range(turns):
        session.say(f"u{n}")

    assert store.snapshots.checkout(session.conversation.tip).near is not None
    assert Repository(store).at("t") == session.conversation


@pytest.mark.parametrize("damaged", [{"app": 5}, {"state": {"dictionary": {"forged": "x"}}}, {"turns": ["ab"]}])
def test_a_damaged_snapshot_is_ignored(store: Store, damaged: dict[str, Json]) -> None:
    session = session_with(store, scripted_model(*(turn(f"a{n}") for n in range(SNAPSHOT_EVERY))))
    for n in range(SNAPSHOT_EVERY):
        session.say(f"u{n}")
    near = store.snapshots.checkout(session.conversation.tip).near
    assert near is not None
    store.snapshots.put(session.conversation.tip, {**cast("dict[str, Json]", near[1]), **damaged})

    assert Repository(store).at("t") == session.conversation


def test_a_history_without_snapshots_gets_one_when_it_is_checked_out(store: Store, tmp_path: Path) -> None:
    turns = SNAPSHOT_EVERY + 7
    session = session_with(store, scripted_model(*(turn(f"a{n}") for n in range(turns))))
    for n in range(turns):
        session.say(f"u{n}")
    copy = Store.open(tmp_path / "copy.db")
    copy.import_lines(store.export("t"), "copy")
    assert copy.snapshots.checkout(session.conversation.tip).near is None

    first = Repository(copy).at("copy")

    assert copy.snapshots.checkout(first.tip).near is not None
    assert first == session.conversation


def exported(store: Store, **forged: object) -> list[str]:
    """A conversation of one turn, its turn forged under a hash that fits."""
    lines = [json.loads(line) for line in store.export("t")]
    made = lines[-1] | forged
    texts = made["user"], made["answer"], made["delta"]
    node = Node(made["parent"], "turn", made["of"], *texts, made["state"], by=AnsweredBy(made["model"]))
    return [json.dumps(line) for line in (lines[0] | {"tip": node.hash}, *lines[1:-1], made | {"node": node.hash})]


@pytest.mark.parametrize(
    ("forged", "complaint"),
    [
        ({"state": "0" * 32}, "leads to another state than it recorded"),
        ({"delta": {"dictionary": {"x": "2"}}}, "leads to another state than it recorded"),
        ({"delta": ["dictionary"]}, "its delta must be an object, got list"),
    ],
)
def test_a_history_with_an_invalid_node_is_not_imported(
    store: Store, forged: dict[str, object], complaint: str
) -> None:
    session_with(store, scripted_model(turn("a", '{"dictionary":{"x":"1"}}'))).say("one")
    other = Store.open(":memory:")

    assert Repository(other).import_lines(exported(store)).state["dictionary"] == {"x": "1"}
    with pytest.raises(InputError, match=f"{complaint}.*nothing was imported"):
        Repository(other).import_lines(exported(store, **forged), "forged")

    assert not other.refs.has("forged")
    assert other.nodes.count() == 2


def test_equal_answers_of_one_model_on_two_hosts_are_different_turns(store: Store) -> None:
    tips: list[str] = []
    for name, host in (("a", "one.example"), ("b", "two.example"), ("c", "one.example")):
        model = scripted_model("Hello!")
        model.host = host  # type: ignore[attr-defined]
        talk = open_session(model=model, store=store, session=name)
        tips.append(talk.say("Hi").node)

    assert tips[0] == tips[2] != tips[1]
    assert [store.nodes.get(tip).by.host for tip in tips] == ["one.example", "two.example", "one.example"]


def test_a_check_of_the_store_follows_every_state(store: Store) -> None:
    session_with(store, scripted_model(turn("a"))).say("one")
    assert Repository(store).fsck() == ()

    tip = store.import_lines(exported(store, state="0" * 32), "forged")

    assert [fault.where for fault in Repository(store).fsck()] == [f"node {tip}"]


def test_the_loop_goes_on_while_another_writer_holds_the_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    talk = session_with(Store.open(path), scripted_model(turn("Hello.")))
    other = sqlite3.connect(path, isolation_level=None)

    async def main() -> TurnResult:
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(twin_of(talk).say("こんにちは"))
        for _ in range(10):
            await asyncio.sleep(0)
        other.execute("ROLLBACK")
        return await task

    assert asyncio.run(main()).text == "Hello."
    other.close()


def test_a_turn_whose_commit_fails_leaves_the_conversation_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = twin_of(session_with(Store.open(tmp_path / "store.db"), scripted_model("Hello.", "Again."), app=PLAIN))
    before, run, commits = session.conversation, SqliteDatabase.run, list[str]()

    def failing(self: SqliteDatabase, statement: str, *values: object) -> int:
        commits.extend([statement] * (statement == "COMMIT"))
        if len(commits) == 2 and statement == "COMMIT":
            raise StoreError("the disk is full")
        return run(self, statement, *values)

    monkeypatch.setattr(SqliteDatabase, "run", failing)
    with pytest.raises(StoreError, match="the disk is full"):
        asyncio.run(session.perform(TurnInput(before, "Hi"), lambda _: None))
    assert session.conversation is before
    again = asyncio.run(session.perform(TurnInput(before, "Hi"), lambda _: None))

    assert again is not None
    assert (again.text, len(session.turns)) == ("Again.", 1)
    assert [line.requests for line in session.repository.store.costs("app")] == [2]


def test_a_turn_whose_commit_fails_fails_even_if_its_task_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = twin_of(session_with(Store.open(tmp_path / "store.db"), scripted_model("Hello."), app=PLAIN))
    before, run, commits = session.conversation, SqliteDatabase.run, list[str]()

    async def main() -> None:
        task = asyncio.create_task(session.perform(TurnInput(before, "Hi"), lambda _: None))

        def failing(self: SqliteDatabase, statement: str, *values: object) -> int:
            commits.extend([statement] * (statement == "COMMIT"))
            if len(commits) == 2 and statement == "COMMIT":
                asyncio.get_running_loop().call_soon(task.cancel)
                raise StoreError("the disk is full")
            return run(self, statement, *values)

        monkeypatch.setattr(SqliteDatabase, "run", failing)
        await task

    with pytest.raises(StoreError, match="the disk is full"):
        asyncio.run(main())
    assert session.conversation is before


def test_only_turns_that_write_some_short_rows_are_begun_on_the_loop() -> None:
    def little(head: str = "", text: str = "Hi", *files: Attachment, options: AnswerOptions = NO_OPTIONS) -> bool:
        app = load_text(f"---\ntaiwa: 1\nname: a\n{head}---\nAnswer.\n", "a.md", "a").with_options(options)
        return writes_little(TurnInput(Repository(Store.open(":memory:")).start(app), text, attachments=files))

    assert little()
    assert not little("state: {n: int}\n")
    assert not little("tools: [calculator]\n")
    assert not little("documents: {}\n")
    assert not little("", "Hi", Attachment.from_bytes(b"a", "a.txt"))
    assert not little("", "a" * (LONGEST_AT_ONCE + 1))
    assert not little(options=AnswerOptions(schema=JsonSchema({"type": "object"})))
    assert not little(
        options=AnswerOptions(request=AnswerOptions(parts=RequestParts(constraint=JsonSchema({"type": "object"}))))
    )


def test_a_turn_is_the_same_where_its_steps_had_to_wait(tmp_path: Path) -> None:
    """A step that would wait for another writer is made in a thread."""
    path = tmp_path / "store.db"
    session = twin_of(session_with(Store.open(path), scripted_model("Hello.", "Again."), app=PLAIN))
    other = sqlite3.connect(path, isolation_level=None)

    async def main() -> tuple[TurnResult | None, TurnResult | None]:
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(session.perform(TurnInput(session.conversation, "Hi"), lambda _: None))
        await asyncio.sleep(0)
        other.execute("ROLLBACK")
        return await task, await session.perform(TurnInput(session.conversation, "And now?"), lambda _: None)

    first, second = asyncio.run(main())
    other.close()

    assert first is not None
    assert second is not None
    assert (first.text, second.text, second.parent) == ("Hello.", "Again.", first.node)


def test_a_notebook_shows_the_answer_and_the_state(store: Store) -> None:
    session = session_with(store, scripted_model(turn("A **sentence**.", '{"dictionary":{"文":"a|b"}}')))

    shown = session.say("文です。")._repr_markdown_()

    assert shown.startswith("A **sentence**.\n\n| state | value |\n| --- | --- |\n")
    assert '| dictionary | {"文": "a\\|b"} |' in shown
    assert session._repr_markdown_().startswith("**t** · translate · turn 1\n\n| state | value |")


def test_turns_are_logged(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    session = session_with(store, scripted_model("Hello."), app=PLAIN)

    with caplog.at_level("INFO", "taiwa"):
        session.say("Hi")

    records = [(record.name, record.getMessage()) for record in caplog.records if record.name == "taiwa.sessions"]
    assert records == [("taiwa.sessions", f"turn of t: turn 1, node {session.conversation.tip[:12]}")]


def test_the_apps_of_many_requests_do_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taiwa.sessions.repository.MOST_APPS", 3)
    repository = Repository(Store.open(":memory:"))
    for number in range(9):
        app = load_app("plain").with_options(AnswerOptions(system=f"Today is day {number}."))
        repository.trust(app.hash)
        assert repository.start(app).app is app

    assert max(len(repository._apps), len(repository._trusted)) <= 4
