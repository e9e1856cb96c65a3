"""Attachments in conversations: sent again with every later turn, kept by every move, read from the store after a restart."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import taiwa
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Chunk, Request
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.sessions.batch import BatchInput, TurnBatch, committed_rows, run_in_one_session
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session, rerun
from taiwa.store import Store
from tests.files import PDF, PNG, TEXT, png

CAT = Attachment.from_bytes(PNG, "cat.png")
BLUE = Attachment.from_bytes(png(0, 0, 255), "blue.png")


def sent(model: ScriptedModel, number: int = -1) -> list[tuple[str, tuple[bytes, ...]]]:
    """The texts of the user in a request, each with the bytes that came with it."""
    messages = model.requests[number].messages
    return [
        (message.text, tuple(each.data for each in message.attachments))
        for message in messages
        if message.role == "user"
    ]


def conversation(model: ScriptedModel, store: Store | str = ":memory:", name: str = "t") -> Session:
    return taiwa.open(model=model, store=store, session=name)


def test_paths_bytes_and_objects_are_sent_and_again_with_the_next_turn(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(TEXT)
    model = scripted_model("a", "b")
    session = conversation(model)

    session.say("one", [tmp_path / "notes.txt", PDF, CAT])
    session.say("two")

    assert sent(model) == [("one", (TEXT, PDF, PNG)), ("two", ())]
    assert [each.label for each in session.turns[0].attachments][::2] == ["notes.txt", "cat.png"]
    assert session.messages[0].attachments == session.turns[0].attachments


def test_a_conversation_goes_on_with_its_attachments_after_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "taiwa.db")
    conversation(scripted_model("a"), place).say("one", [CAT])
    model = scripted_model("b")

    conversation(model, place).say("two")

    assert sent(model) == [("one", (PNG,)), ("two", ())]


def test_an_old_conversation_is_restored_from_a_snapshot_with_its_attachments(tmp_path: Path) -> None:
    place = str(tmp_path / "taiwa.db")
    session = conversation(scripted_model(*"abcd"), place)
    session.say("one", [CAT])
    with session.repository.store as store:
        store.snapshots.put(
            session.conversation.tip,
            {"app": session.app.hash, "state": {}, "turns": [session.conversation.tip], "summary": "", "count": 1},
        )
    model = scripted_model("b")

    conversation(model, place).say("two")

    assert sent(model) == [("one", (PNG,)), ("two", ())]


def test_an_app_that_searches_documents_takes_no_attachments() -> None:
    session = conversation(scripted_model())
    asking = taiwa.Client(scripted_model("no"), store=session.repository.store).session("ask")

    with pytest.raises(
        InputError, match=r"the app 'ask' does not take attachments; index the files: taiwa index FOLDER"
    ):
        asking.say("What is this?", [CAT])


def test_the_messages_of_a_conversation_can_be_sent_again() -> None:
    session = conversation(scripted_model("a"))
    session.say("one", [CAT])
    model = scripted_model("b")

    taiwa.Client(model).generate((*session.messages, taiwa.user("two", [PDF])))

    assert sent(model) == [("one", (PNG,)), ("two", (PDF,))]


def test_a_message_may_be_an_attachment_alone() -> None:
    model = scripted_model("a cat")

    conversation(model).say("", [CAT])

    assert sent(model) == [("", (PNG,))]


def test_a_retry_and_an_edit_keep_the_attachments_unless_others_are_given() -> None:
    model = scripted_model(*"abcd")
    session = conversation(model)
    session.say("one", [CAT])

    session.retry()
    assert sent(model) == [("one", (PNG,))]
    session.edit("uno")
    assert sent(model) == [("uno", (PNG,))]
    session.edit("eins", attachments=[BLUE])
    assert sent(model) == [("eins", (BLUE.data,))]
    assert session.turns[0].attachments == (BLUE,)


def test_a_fork_and_a_rerun_have_the_attachments() -> None:
    model = scripted_model("a", "b")
    session = conversation(model)
    session.say("one", [CAT])

    session.fork("other").say("two")
    assert sent(model) == [("one", (PNG,)), ("two", ())]

    again = scripted_model("x", "y")
    tuple(rerun(session.repository, "other", "new", PricedModel(again), None, TurnOptions()))
    assert sent(again) == [("one", (PNG,)), ("two", ())]


def test_a_replay_needs_no_bytes() -> None:
    session = conversation(scripted_model("a", "b"))
    session.say("one", [CAT])
    session.say("two")
    session.repository.store._db.run("UPDATE blob SET data = NULL")

    assert [row.difference for row in session.replay()] == ["", "", ""]


def test_a_conversation_imported_without_its_attachments_says_so_before_the_call() -> None:
    session = conversation(scripted_model("a"))
    session.say("one", [Attachment.from_bytes(TEXT, "notes.txt")])
    lines = list(session.repository.store.export("t", attachments=False))
    with Store.open(":memory:") as store:
        Repository(store).import_lines(lines)
        model = taiwa.Client("http://127.0.0.1:9/v1#m?wire=completions").model

        with pytest.raises(InputError, match=r"the bytes of the attachment notes\.txt are missing"):
            taiwa.open(model=model, store=store, session="t").say("two")


class Cut(ScriptedModel):
    """Is interrupted before its first answer, as by a crash."""

    def stream(self, request: Request) -> Iterator[Chunk]:
        if not self.requests:
            self.requests.append(request)
            raise KeyboardInterrupt
        return super().stream(request)

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        for chunk in self.stream(request):
            yield chunk


def cut(*answers: str) -> Cut:
    model = scripted_model("", *answers)
    return Cut(model.entries, model.name, model.capabilities, model.chunk, model.usage)


def test_an_interrupted_turn_is_resumed_with_its_attachments(tmp_path: Path) -> None:
    place = str(tmp_path / "taiwa.db")
    session = conversation(cut(), place)
    with pytest.raises(KeyboardInterrupt):
        session.say("one", [CAT])
    session.close()
    model = scripted_model("a")
    again = conversation(model, place)
    again.repository.store.gc(0)

    assert again.resume()

    assert sent(model) == [("one", (PNG,))]
    assert again.turns[0].attachments == (CAT,)


def test_an_async_session_sends_the_same() -> None:
    model = scripted_model("a", "b", "c")

    async def talk() -> None:
        async with taiwa.AsyncClient(model, store=":memory:") as client:
            session = await client.session()
            await session.say("one", [CAT])
            await session.edit("uno")
            async for _ in session.stream("two", [PDF]):
                pass

    asyncio.run(talk())

    assert sent(model) == [("uno", (PNG,)), ("two", (PDF,))]


def test_a_summary_names_the_attachments_of_the_turns_that_leave(tmp_path: Path) -> None:
    app = tmp_path / "short.md"
    app.write_text("---\ntaiwa: 1\nname: short\nwindow: { max_size: 1, keep: 0, summarize: true }\n---\nBe brief.\n")
    model = scripted_model("a", "they looked at a cat", "b")
    session = taiwa.open(str(app), model=model, store=":memory:")
    session.say("one", [CAT])

    session.say("two")

    assert '"attachments":["cat.png"]' in model.requests[1].messages[-1].text
    assert [files for _, files in sent(model)] == [()]


# --- batches ----------------------------------------------------------------------------------------------------------


def row(index: int, *files: Attachment) -> BatchInput:
    return BatchInput(index, "what is this?", attachments=files)


def test_rows_that_differ_in_their_attachments_are_different_rows() -> None:
    store, model = Store.open(":memory:"), scripted_model("red", "blue")

    def job() -> TurnBatch:
        app = taiwa.load_app("plain").with_params({})
        return TurnBatch(
            Repository(store), PricedModel(model), TurnOptions(), opened=lambda _: app, width=1, resume=True
        )

    async def answers() -> list[str | None]:
        return [each.answer async for each in job().rows([row(1, CAT), row(2, BLUE)])]

    assert asyncio.run(answers()) == ["red", "blue"]
    assert asyncio.run(answers()) == ["red", "blue"]
    assert [files for request in (0, 1) for _, files in sent(model, request)] == [(PNG,), (BLUE.data,)]


def test_a_batch_in_one_session_knows_the_turns_that_it_made() -> None:
    session = conversation(scripted_model("red", "blue"))
    rows = [row(1, CAT), row(2, BLUE)]

    assert [each.answer for each in run_in_one_session(session, rows)] == ["red", "blue"]
    before = committed_rows(session, rows)
    assert [each.reused for each in run_in_one_session(session, rows, before)] == [True, True]
    with pytest.raises(InputError, match="holds a turn that is not a row of this batch"):
        committed_rows(session, [row(1, CAT), row(2)])
