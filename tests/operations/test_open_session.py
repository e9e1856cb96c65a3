from pathlib import Path

import pytest

from taiwa.apps.catalog import load_app, load_text
from taiwa.conversation.app import App
from taiwa.conversation.history import begin
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import JsonSchema, Request, Text, ToolSpec, user
from taiwa.kernel.text import estimate_tokens
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.scripted import scripted_model
from taiwa.operations.open_session import open_interrupted
from taiwa.operations.request_preview import known_tools, preview_turn, request_text, request_tokens
from taiwa.sessions.commit_turn import PricedModel, TurnInput, TurnOptions, begin_turn
from taiwa.sessions.repository import Repository
from taiwa.settings import load
from taiwa.store import Store

TEXT = """\
---
taiwa: 1
params: { lang: { default: Thai } }
state: { mood: str }
---
Speak {{lang}}.
"""
APP = load_text(TEXT, "a.md", "a")


def first_request(app: App, text: str) -> Request:
    opened = app if app.values or not app.params else app.with_params({})
    return preview_turn(begin(opened), text, known_tools(opened)).request


def test_the_request_of_a_first_turn_is_the_one_that_would_be_sent() -> None:
    request = first_request(APP, "Hello {{lang}}")

    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[0].text.startswith("Speak Thai.\n\n")
    assert request.messages[1].parts == (
        Text("Hello {{lang}}"),
        Text('<state>\n{"mood":null}\n</state>', transient=True),
    )


def test_a_missing_parameter_is_an_error() -> None:
    needy = load_text(TEXT.replace("{ default: Thai }", "str"), "a.md", "a")

    with pytest.raises(InputError, match="requires the parameter 'lang'"):
        first_request(needy, "Hello")


def test_a_json_app_shows_its_constraint() -> None:
    request = first_request(load_text(TEXT.replace("state:", "reply: json\nstate:"), "a.md", "a"), "Hello")

    assert isinstance(request.constraint, JsonSchema)
    assert "── constraint: JSON Schema 'reply' ──" in request_text(request)


def test_the_text_of_a_request_has_every_part_and_marks_transient_ones() -> None:
    request = Request((user("Hi"),), tools=(ToolSpec("look", "", {}),))

    assert request_text(request) == (
        "── user (about 1 token) ──\nHi\n\n── tools: look ──\n\n── about 5 tokens in 1 message ──"
    )
    assert request_text(first_request(APP, "Hello")).endswith(
        "── user (about 2 tokens) ──\n"
        "Hello\n"
        "── user, not kept (about 8 tokens) ──\n"
        '<state>\n{"mood":null}\n</state>\n\n'
        "── constraint: JSON Schema 'reply' ──\n\n"
        f"── about {request_tokens(first_request(APP, 'Hello'))} tokens in 2 messages ──"
    )


def test_tokens_are_those_of_all_words_and_a_few_for_each_message() -> None:
    request = first_request(APP, "文" * 30)

    words = sum(
        estimate_tokens(part.text) for message in request.messages for part in message.parts if isinstance(part, Text)
    )
    assert request_tokens(request) == words + 4 * 2


def test_an_app_shows_its_tools() -> None:
    request = first_request(
        load_text(TEXT.replace("state:", "tools: [calculator, mine]\nstate:"), "a.md", "a"), "Hello"
    )

    assert "── tools: calculator ──" in request_text(request)


def test_a_resumed_turn_has_the_cost_limit_that_it_was_begun_with(tmp_path: Path) -> None:
    settings = load({"store": str(tmp_path / "taiwa.db"), "model": "ollama:x"})
    repository = Repository(Store.open(settings.store))
    model = PricedModel(scripted_model("Hello!"))
    limited = TurnOptions(limits=UsageLimits(cost=5))
    turn = begin_turn(repository, "s", TurnInput(repository.start(load_app("plain")), "Hi"), model, limited)
    repository.store.runs.release(turn.run)

    kept, _ = open_interrupted(repository, settings, TurnOptions())
    named, _ = open_interrupted(repository, settings, TurnOptions(limits=UsageLimits(cost=7)))

    assert (kept.options.limits.cost, named.options.limits.cost) == (5, 7)
