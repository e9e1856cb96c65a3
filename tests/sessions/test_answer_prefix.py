"""An answer that the model is made to begin with a text: a branch beside the other answer, recorded, replayed and exported."""

import pytest

import taiwa
from taiwa.kernel.effects import GO_ON
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import Request, Response
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel, scripted_model
from taiwa.sessions.replay import recorded_requests, replay_history
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session
from taiwa.store import Store

DELTA = '\n@@delta\n{"topics": ["tea"], "summary": "about tea"}'


class NoPrefill(ScriptedModel):
    """A scripted model that refuses a prefix."""

    def _next(self, request: Request) -> str | Response:
        if request.prefix:
            raise UnsupportedError("no prefill", capability="prefix")
        return super()._next(request)


def requests(session: Session) -> list[str]:
    model = session.priced_model.model
    assert isinstance(model, ScriptedModel)
    return [request.prefix for request in model.requests]


@pytest.mark.parametrize("app", ["chat", "plain"])
def test_the_model_goes_on_behind_the_prefix_in_a_branch_that_replays(app: str) -> None:
    delta = DELTA if app == "chat" else ""
    with taiwa.open(
        app, model=scripted_model(f"I prefer coffee.{delta}", f"green tea.{delta}"), store=":memory:"
    ) as session:
        first = session.say("What do you like?")
        second = session.retry(prefix="I like ")

        assert second.text == "I like green tea."
        assert second.parent == first.parent
        assert requests(session) == ["", "I like "]
        assert [node.difference for node in replay_history(session.repository, session.name)] == ["", ""]
        assert recorded_requests(session.repository, second.node)[-1].prefix == "I like "


@pytest.mark.parametrize("app", ["chat", "plain"])
def test_a_model_that_cannot_prefill_is_asked_to_go_on(app: str) -> None:
    model = NoPrefill(("I prefer coffee.", "green tea."), "no prefill", frozenset(), 7, None)
    with taiwa.open(app, model=model, store=":memory:") as session:
        session.say("What do you like?")
        second = session.retry(prefix="I like ")

        assert second.text == "I like green tea."
        assert [message.text for message in model.requests[-1].messages[-2:]] == ["I like", GO_ON]
        assert [node.difference for node in replay_history(session.repository, session.name)] == ["", ""]


def test_a_prefix_may_reach_into_the_state() -> None:
    begun = 'Tea.\n@@delta\n{"topics": ["'
    model = scripted_model(f"Tea.{DELTA}", 'coffee"], "summary": "s"}')
    with taiwa.open("chat", model=model, store=":memory:") as session:
        session.say("What do you like?")

        assert session.retry(prefix=begun).state["topics"] == ["coffee"]


def test_calls_in_a_prefix_were_answered_before() -> None:
    begun = "That is <<calculator: 2*4>> 8, and <<calculator: 3*"
    model = scripted_model("That is 8.", "4>>", " in all.", capabilities=ALL_CAPABILITIES - {"tools"})
    with taiwa.open("order", model=model, store=":memory:") as session:
        session.say("How much is it?")
        result = session.retry(prefix=begun)

        assert result.text == f"{begun}4>> 12 in all."
        assert [call.text for call in result.calls] == ["12"]
        assert [node.difference for node in replay_history(session.repository, session.name)] == ["", ""]


def test_a_prefix_is_stored_and_exported_with_its_turn() -> None:
    with taiwa.open("plain", model=scripted_model("No.", "tea."), store=":memory:") as session:
        session.say("What do you like?")
        made = session.retry(prefix="I like ")
        lines = list(session.repository.store.export(session.name))
    repository = Repository(Store.open(":memory:"))
    repository.import_lines(lines)

    assert repository.store.nodes.get(made.node).parts.prefix == "I like "
    assert [node.difference for node in replay_history(repository, made.session)] == ["", ""]
    repository.store.close()


def test_a_model_that_calls_functions_takes_no_prefix() -> None:
    with taiwa.open("order", model=scripted_model("No.", "tea."), store=":memory:") as session:
        session.say("What do you like?")

        with pytest.raises((InputError, UnsupportedError), match="calls functions"):
            session.retry(prefix="I like ")
