"""Images of the results of tools: sent to the model, kept with the turn, and shown."""

from pathlib import Path

import pytest

import taiwa
from taiwa import tool
from taiwa.apps.catalog import load_text
from taiwa.kernel.attachments import MAX_COUNT, Attachment
from taiwa.kernel.messages import Message, Request, Response, ToolCall, ToolResult
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.operations.export import export
from taiwa.operations.traces import trace
from taiwa.sessions.replay import replay_history
from taiwa.sessions.session import Session
from taiwa.store import Store
from tests.files import PNG, png

SCREEN = Attachment.from_bytes(PNG, "screen.png")


@tool
def shoot() -> Attachment:
    """Take a picture of the screen."""
    return SCREEN


@tool
def many() -> ToolResult:
    """Take many pictures."""
    return ToolResult("", attachments=tuple(Attachment.from_bytes(png(blue=at)) for at in range(MAX_COUNT - 2)))


def calling(name: str, *more: str) -> ScriptedModel:
    call = Response(Message("assistant", (ToolCall(name, "{}", "a"),)), "tool_calls")
    return scripted_model(call, "It is red.", *more, capabilities=frozenset({"tools"}))


def interrupt(_: Request) -> str:
    raise KeyboardInterrupt


def conversation(model: ScriptedModel, store: Path) -> Session:
    options = taiwa.TurnOptions(tools=(shoot, many))
    app = load_text("---\ntaiwa: 1\ntools: [shoot, many]\n---\nLook.\n", "eyes.md", "repository")
    return taiwa.open(app, model=model, store=store, session="t", options=options)


def result_of(model: ScriptedModel) -> ToolResult:
    (found,) = model.requests[1].messages[-1].parts
    assert isinstance(found, ToolResult)
    return found


def test_a_model_gets_the_bytes_of_an_image_that_a_tool_returned(tmp_path: Path) -> None:
    model = calling("shoot")
    talk = conversation(model, tmp_path / "s.db")

    talk.say("What colour?")

    assert [each.data for each in result_of(model).attachments] == [PNG]
    assert result_of(model).text == ""
    assert talk.turns[0].call_files == (SCREEN,)
    assert [each.difference for each in replay_history(talk.repository, talk.name)] == ["", ""]


def test_the_image_of_a_result_stays_with_its_turn(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    conversation(calling("shoot"), place).say("What colour?")

    with Store.open(place) as store:
        store.gc()
        kept = store.blobs.data(SCREEN.sha256)
        found = store.fsck()

    assert kept == PNG
    assert found == ()


def test_the_image_of_a_result_is_in_exports_and_in_the_trace(tmp_path: Path) -> None:
    talk = conversation(calling("shoot"), tmp_path / "s.db")
    talk.say("What colour?")

    html = export(talk.repository, "t", "html")
    lines = export(talk.repository, "t", "jsonl", app=True)
    with Store.open(":memory:") as other:
        other.import_lines(lines.splitlines())
        copied = other.blobs.data(SCREEN.sha256)
    steps = trace(talk.repository, "t").steps

    assert SCREEN.data_uri in html
    assert copied == PNG
    assert [each["attachments"][0]["name"] for each in steps if each["kind"] == "tool"] == ["screen.png"]


def test_a_turn_has_no_more_images_of_results_than_a_message_may_have(tmp_path: Path) -> None:
    calls = (ToolCall("many", "{}", "a"), ToolCall("shoot", "{}", "b"), ToolCall("many", "{}", "c"))
    call = Response(Message("assistant", calls), "tool_calls")
    model = scripted_model(call, "It is red.", capabilities=frozenset({"tools"}))

    conversation(model, tmp_path / "s.db").say("?")

    results = [part for part in model.requests[1].messages[-1].parts if isinstance(part, ToolResult)]
    assert [len(each.attachments) for each in results] == [MAX_COUNT - 2, 1, 1]
    assert results[2].text.count("[image that cannot be shown as text]") == MAX_COUNT - 3


def test_a_turn_that_was_cut_off_behind_its_call_is_resumed_with_the_image(tmp_path: Path) -> None:
    place, call = tmp_path / "s.db", calling("shoot").entries[0]
    interrupted = scripted_model(call, interrupt, capabilities=frozenset({"tools"}))
    with pytest.raises(KeyboardInterrupt):
        conversation(interrupted, place).say("What colour?")
    model = scripted_model("It is red.", capabilities=frozenset({"tools"}))

    resumed = conversation(model, place).resume()

    assert resumed is not None
    assert [part.attachments[0].data for part in model.requests[0].messages[-1].parts] == [PNG]
