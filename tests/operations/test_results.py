"""Every result of an operation has one JSON form, and it is JSON."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from taiwa.apps.output_types import load_output_type
from taiwa.kernel.messages import Usage
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import RunUsage
from taiwa.models.scripted import scripted_model
from taiwa.operations import log, open_session, request_preview, state_values
from taiwa.operations.batch import BatchOptions, Counts, open_rows, preview_turns, run_turns
from taiwa.operations.documents import (
    FindOptions,
    IndexOptions,
    find,
    index_folder,
    open_ask_app,
    open_library,
)
from taiwa.operations.export import export
from taiwa.operations.generate import ExplainOptions, explain, parse, render_schema
from taiwa.operations.json_shape import members_of
from taiwa.operations.result_json import (
    SHAPES,
    ask_to_json,
    reported_usage_to_json,
    to_json,
    usage_to_json,
)
from taiwa.operations.results import CostResult
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session
from taiwa.settings import Settings, load
from taiwa.store import Store


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return load({"store": str(tmp_path / "taiwa.db")})


@pytest.fixture
def repository(settings: Settings) -> Repository:
    return Repository(Store.open(settings.store))


def opened(repository: Repository, *answers: str, session: str = "s") -> Session:
    name, conversation = open_session.find_or_create_session(repository, open_session.SayOptions("chat", session))
    return Session(repository, name, conversation, PricedModel(scripted_model(*answers)), options=TurnOptions())


def keys(found: Json) -> list[str]:
    assert isinstance(found, dict)
    json.dumps(found)
    return list(found)


@pytest.mark.parametrize("name", SHAPES)
def test_the_members_of_a_shape_are_read_from_attributes_of_its_type(name: str) -> None:
    module, _, cls = name.rpartition(".")
    found = getattr(import_module(f"taiwa.{module}"), cls)

    assert (found.__module__, found.__qualname__) == (f"taiwa.{module}", cls)
    for member in members_of(SHAPES[name]):
        assert hasattr(found, member.path[0]), member.name


def test_a_turn_has_its_place_and_its_bill(repository: Repository) -> None:
    turn = opened(repository, 'Hello!\n@@delta\n{"topics": ["tea"]}').say("Hi")

    assert keys(to_json(turn)) == [
        "session", "node", "parent", "text", "value", "delta", "findings", "state_read", "warnings", "usage", "cost", "seconds",
    ]  # fmt: skip
    assert to_json(turn)["text"] == "Hello!"
    assert turn.ask is None


def test_what_is_inspected_is_json(repository: Repository) -> None:
    talk = opened(repository, 'Hello!\n@@delta\n{"topics": ["tea"]}', 'Yes.\n@@delta\n{"topics": ["milk"]}')
    talk.say("Hi")
    talk.say("And milk?")

    assert [each.turn for each in log.log(repository, "s", 9)] == [0, 1, 2]
    assert keys(to_json(log.show(repository, "s")))[-2:] == ["state", "calls"]
    assert keys(to_json(log.diff(repository, "s~1", "s"))) == [
        "before", "after", "state", "before_models", "after_models", "text",
    ]  # fmt: skip
    assert keys(to_json(state_values.why(repository, "topics", "s")))[:3] == ["path", "node", "kind"]
    assert keys(to_json(repository.at("s"))) == ["node", "turn", "app", "state"]
    assert json.dumps(to_json(log.tree(repository)))
    assert json.dumps(to_json(state_values.value_history(repository, "topics", "s")))
    assert json.dumps(to_json(CostResult("app", repository.store.costs("app"))))
    found, changes = state_values.set_value(repository, "s", "topics", ["coffee"])
    assert keys(to_json(found)) == ["session", "node", "parent", "state"]
    assert [state_values.describe_change(change) for change in changes]
    for form in ("jsonl", "md", "html", "verifiable"):
        assert "And milk?" in export(repository, "s", form)


def test_a_preview_knows_what_a_cache_holds(repository: Repository) -> None:
    talk = opened(repository, "Hello!\n@@delta\n{}")

    assert request_preview.preview_turn(talk.conversation, "Hi").cached_tokens == 0
    talk.say("Hi")
    preview = request_preview.preview_turn(talk.conversation, "And?")
    assert preview.cached_tokens is not None
    assert 0 < preview.cached_tokens < preview.tokens
    assert keys(to_json(preview)) == ["digest", "tokens", "cached_tokens", "messages"]


def test_a_question_to_documents_is_one_object(repository: Repository, settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nEverybody has ten days of paid leave.\n")
    with open_library(settings) as library:
        first, embeddings = index_folder(library, settings, IndexOptions(str(folder)))
        assert isinstance(first, tuple)
        summary, _done = first
        found = find(library, settings, FindOptions("paid leave"))
    assert (summary.documents, embeddings) == (1, None)
    assert found.passages[0].passage.source == "leave.md"
    assert found.passages[0].marks
    app = open_ask_app(settings, {"in": [str(folder)], "assess_by": "no-model", "max_questions": 0})
    assert app.values["max_questions"] == 0
    repository.place, repository.settings = settings.store, settings
    turn = Session(repository, "q", repository.start(app), PricedModel(scripted_model())).say(
        "how many days of paid leave does everybody have"
    )

    assert turn.ask is not None
    assert turn.ask.is_answered
    data = ask_to_json("how many days", turn)
    assert (data["act"], data["answer"], data["source"]) == (
        "search",
        "Everybody has ten days of paid leave.",
        "extractive",
    )
    assert data["is_uncertain"] is None


def test_types_and_constraints_are_json(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.write_text('{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}')
    order = load_output_type(str(path))

    parsed = to_json(parse(order, 'Sure: {"n": 3,}'))
    assert isinstance(parsed, dict)
    assert parsed["value"] == {"n": 3}
    assert keys(to_json(render_schema(order, "typescript"))) == ["style", "text", "tokens", "relaxed", "unsupported"]
    walked = to_json(explain(ExplainOptions("regex", "[0-9]{1,3}%"), "42%"))
    assert isinstance(walked, dict)
    assert walked["accepted"] is True


def test_rows_of_a_batch_are_json(
    repository: Repository, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\n")
    model = scripted_model("1\n@@delta\n{}", "2\n@@delta\n{}")
    monkeypatch.setattr("taiwa.operations.batch.model_of", lambda *_: PricedModel(model))
    rows: list[Json] = []

    def add(row: object, _: Counts) -> None:
        rows.append(to_json(row))

    with open_rows(str(file)) as given:
        assert preview_turns(settings, BatchOptions("chat", "fold"), given).rows == 2
        counts = run_turns(repository, settings, TurnOptions(), BatchOptions("chat", "fold"), given, add)

    assert [row["answer"] for row in rows if isinstance(row, dict)] == ["1", "2"]
    assert (counts.session, counts.done, counts.failed, counts.kept) == ("chat-lines", 2, 0, 0)


def test_usage_that_a_call_did_not_report_is_not_known() -> None:
    cut = RunUsage(2, usage=Usage(3, 4), calls_without_usage=1, cost=None, estimated=Usage(5, 6))

    assert usage_to_json(cut) is None
    data = reported_usage_to_json(cut)
    assert (data["input_tokens"], data["calls_without_usage"], data["max_unreported_output_tokens"]) == (3, 1, 6)


def test_anything_else_is_not_a_result() -> None:
    with pytest.raises(TypeError, match="object is not a result"):
        to_json(object())
