"""Values of a type as turns of the app `extract`."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pydantic import BaseModel, model_validator

from taiwa.apps.catalog import load_app, load_text
from taiwa.conversation.app import AnswerOptions, App
from taiwa.flows.extract import ExtractError
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.messages import Request
from taiwa.kernel.serialization import Json
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session
from taiwa.store import Store
from taiwa.structured import OutputType
from taiwa.tools.registry import find_in_code, remember_type

TEAS, MORE = '{"drink": "tea", "cups": 2}', '{"drink": "tea", "cups": 3}'
ORDER = OutputType.of("drink, cups int")
FOLDED = """
from pydantic import BaseModel, model_validator


class Span(BaseModel):
    first: int
    last: int

    @model_validator(mode="after")
    def in_order(self):
        if self.last < self.first:
            raise ValueError("last comes before first")
        return self
"""


class Span(BaseModel):
    """Two numbers in order, which no schema says."""

    first: int
    last: int

    @model_validator(mode="after")
    def in_order(self) -> "Span":
        if self.last < self.first:
            raise ValueError("last comes before first")
        return self


@pytest.fixture
def repository() -> Iterator[Repository]:
    with Store.open(":memory:") as store:
        yield Repository(store)


def app_of(output_type: OutputType[object], **params: Json) -> App:
    return load_app("extract").with_params(params).with_options(AnswerOptions(schema=output_type.json_schema))


def begin(repository: Repository, model: ScriptedModel, **params: Json) -> Session:
    return Session(repository, "", repository.start(app_of(ORDER, **params)), PricedModel(model))


def texts(request: Request) -> list[str]:
    return [message.text for message in request.messages if message.role != "system"]


def test_a_value_is_a_turn_that_the_next_text_changes(repository: Repository) -> None:
    model = scripted_model(TEAS, MORE)
    session = begin(repository, model)

    first, second = session.say("Two teas."), session.say("One more.")

    assert (first.value, second.value) == ({"drink": "tea", "cups": 2}, {"drink": "tea", "cups": 3})
    assert texts(model.requests[1]) == ["Two teas.", TEAS, "One more."]
    assert cast("dict[str, Json]", second.findings)["extracted"] == {"attempts": 1, "mode": "native"}
    assert (second.session, [turn.answer for turn in session.turns]) == ("extract-1", [TEAS, MORE])


def test_undo_edit_retry_fork_and_replay_are_those_of_any_conversation(repository: Repository) -> None:
    model = scripted_model(TEAS, MORE, '{"drink": "cocoa", "cups": 1}', TEAS, MORE)
    session = begin(repository, model)
    session.say("Two teas.")
    session.say("One more.")

    session.undo()
    assert session.say("No, a cocoa.").value == {"drink": "cocoa", "cups": 1}
    assert session.retry().value == {"drink": "tea", "cups": 2}
    fork = session.fork("other")
    assert fork.edit("Three teas.", turn=1).value == {"drink": "tea", "cups": 3}

    assert len(session.turns) == 2
    assert all(not each.difference for each in (*session.replay(), *fork.replay()))


def test_a_repaired_answer_is_the_turn_and_its_attempts_belong_to_the_result(repository: Repository) -> None:
    session = begin(repository, scripted_model('{"drink": "tea"}', TEAS))

    turn = session.say("Two teas.")

    assert (turn.text, [bool(each.diagnostics) for each in turn.reply.findings.attempts]) == (TEAS, [True, False])
    assert turn.spent.requests == 2
    assert all(not each.difference for each in session.replay())


def test_a_turn_without_a_valid_answer_fails_and_stays_on_the_bill(repository: Repository) -> None:
    session = begin(repository, scripted_model("none", "none"))

    with pytest.raises(ExtractError, match="no Answer could be read in 2 attempts"):
        session.say("Two teas.")

    assert session.turns == ()
    assert repository.store.costs("model")[0].requests == 2


def test_parameters_set_the_repair_and_the_mode(repository: Repository) -> None:
    model = scripted_model('{"drink": "tea"}', TEAS)
    session = begin(repository, model, max_repairs=0, mode="prompt")

    with pytest.raises(ExtractError):
        session.say("Two teas.")

    assert model.requests[0].constraint is None
    assert len(model.requests) == 1


def test_an_app_of_ones_own_extracts_with_its_instructions_type_and_examples(repository: Repository) -> None:
    text = (
        "---\ntaiwa: 1\nname: bar\nflow: extract\nanswer: 'drink str, cups int'\n---\nDrinks are in English.\n\n"
        '## example\nuser: "ein Wasser"\nanswer: \'{"drink": "water", "cups": 1}\'\n'
    )
    model = scripted_model(TEAS)
    session = Session(repository, "", repository.start(load_text(text, "bar.md", "bar")), PricedModel(model))

    assert session.say("zwei Tees").value == {"drink": "tea", "cups": 2}
    assert model.requests[0].messages[0].text.startswith("Drinks are in English.")
    assert texts(model.requests[0]) == ["ein Wasser", '{"drink": "water", "cups": 1}', "zwei Tees"]


@pytest.mark.parametrize("key", ["state: { a: int }", "documents: { in: guides }", "tools: [calculator]"])
def test_what_extracting_does_not_use_is_an_error(key: str) -> None:
    text = f"---\ntaiwa: 1\nname: bar\nflow: extract\n{key}\n---\nYou serve.\n"

    with pytest.raises(ConfigError, match=r"bar\.md:5: .* has no effect with `flow: extract`"):
        load_text(text, "bar.md", "bar")


def test_an_app_without_a_type_costs_nothing(repository: Repository) -> None:
    model = scripted_model(TEAS)
    session = Session(repository, "", repository.start(load_app("extract").with_params({})), PricedModel(model))

    with pytest.raises(InputError, match="the app 'extract' requires a type"):
        session.say("Two teas.")
    assert not model.requests
    assert repository.store.runs.unfinished("extract-1") is None


def test_a_text_is_read_with_its_attachments(repository: Repository) -> None:
    model = scripted_model(TEAS, MORE)
    session = begin(repository, model)
    note = Attachment.from_bytes(b"two teas", "note.txt")

    session.say("Read it.", [note])
    session.say("One more.")

    assert [message.attachments for message in model.requests[1].messages if message.attachments] == [(note,)]


def test_a_type_in_code_checks_what_its_schema_cannot_say(repository: Repository) -> None:
    spans = OutputType[object](Span)
    model = scripted_model('{"first": 3, "last": 1}', '{"first": 1, "last": 3}')
    session = Session(
        repository, "", repository.start(app_of(spans)), PricedModel(model), options=TurnOptions(types=(spans,))
    )

    turn = session.say("From one to three.")

    assert turn.reply.value == {"first": 1, "last": 3}
    assert "last comes before first" in turn.reply.findings.attempts[0].diagnostics[0]


def test_a_type_of_a_file_is_found_again_by_its_unchanged_file(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    file = tmp_path / "spans_of_extract.py"
    file.write_text(FOLDED)
    address = f"{file}:Span"
    spans = OutputType[object](find_in_code(str(file), "Span"))
    options = AnswerOptions(schema=spans.json_schema, tool_files=(remember_type(address),))
    model = scripted_model('{"first": 3, "last": 1}', '{"first": 1, "last": 3}')
    session = Session(
        repository, "", repository.start(load_app("extract").with_params({}).with_options(options)), PricedModel(model)
    )
    repository.may_load_tools = True

    assert len(session.say("From one to three.").reply.findings.attempts) == 2

    again = Repository(repository.store)
    again.may_load_tools = True
    replayed = Session(again, session.name, again.at(session.name), PricedModel(scripted_model()))
    assert all(not each.difference for each in replayed.replay())
    file.write_text(f"{FOLDED}\n# other\n")
    other = Repository(repository.store)
    other.may_load_tools = True
    with pytest.raises(
        ConfigError, match=r"the type 'Span' is in .*, which has changed; to use it as it is now: --type"
    ):
        Session(other, session.name, other.at(session.name), PricedModel(scripted_model())).say("And so on.")


def routing(repository: Repository, model: ScriptedModel, answer: str) -> Session:
    text = f"---\ntaiwa: 1\nname: desk\nflow: route\nanswer: {answer}\n---\nYou serve a café.\n"
    return Session(repository, "", repository.start(load_text(text, "desk.md", "desk")), PricedModel(model))


def test_a_text_becomes_a_value_of_one_of_several_types_or_a_question(repository: Repository) -> None:
    asked = '{"to": "none", "question": "For how many?"}'
    booked = '{"to": "booking", "content": {"day": "Friday", "people": 2}}'
    model = scripted_model(asked, booked)
    session = routing(
        repository, model, "{ order: { drink: str, cups: int }, booking: { day: str, people: 'int(1..20)' } }"
    )

    question, value = session.say("A table on Friday."), session.say("Two.")

    assert (question.text, question.value) == ("For how many?", None)
    assert value.value == {"to": "booking", "content": {"day": "Friday", "people": 2}}
    assert texts(model.requests[1]) == ["A table on Friday.", "For how many?", "Two."]
    assert all(not each.difference for each in session.replay())


def test_a_type_without_members_has_nothing_to_choose_from(repository: Repository) -> None:
    model = scripted_model("{}")

    with pytest.raises(InputError, match="requires types to choose from"):
        routing(repository, model, "list[str]").say("Hi")
    assert not model.requests
