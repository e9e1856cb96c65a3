"""Conversations of foreign clients of the server on the page: live in the list, with the breaks of their prompt caches."""

from itertools import takewhile
from typing import Any

import pytest

from taiwa.kernel.messages import Request, Usage
from taiwa.models.scripted import function_model
from taiwa.server.page.branches import forest_of
from taiwa.server.page.transcript import CacheBreak, cache_breaks
from tests.server.api_client import ApiClient
from tests.server.page.conftest import OpenTab, Serve
from tests.server.page.tab import GatedModel
from tests.server.serving import Serving

LONG = "tea " * 400


def echo(request: Request) -> str:
    return f"Answer to: {request.messages[-1].text[:40]}"


def openai_client(server: Serving) -> Any:
    from openai import OpenAI

    key = server.client.headers["authorization"].removeprefix("Bearer ")
    return OpenAI(base_url=server.url, api_key=key, max_retries=0)


def chat(client: Any, *texts: str, system: str = "Be brief.", model: str = "function", **more: Any) -> str:
    """Send a history, in which the user speaks first, and return the answer."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    sent = [{"role": "system", "content": system}, *messages]
    made = client.chat.completions.create(model=model, messages=sent, **more)
    return str(made.choices[0].message.content)


@pytest.fixture
def recorded(serve: Serve) -> Serving:
    """A server for a client that says two things, and says the first one anew with all that followed."""
    return serve(function_model(echo, usage=Usage(450, 9, cache_read_tokens=12)))


def breaks(server: Serving) -> list[CacheBreak]:
    """The breaks on the way to the newest conversation."""
    ref = server.repository.store.refs.list()[0]
    entries = tuple(server.repository.walk(ref.tip))
    return list(cache_breaks(server.repository, forest_of(server.repository, ref.name), entries))


def test_a_conversation_of_a_client_appears_while_the_list_is_open(open_tab: OpenTab, recorded: Serving) -> None:
    tab = open_tab(recorded)
    tab.has("#list", "No conversation yet.")
    with openai_client(recorded) as client:
        first = chat(client, "Which tea?")
        tab.has("#list li:first-child", "Which tea?")
        tab.has("#list li:first-child", "Answer to: Which tea?")
        tab.has("#list li:first-child small:last-child", "1 turn · function")
        assert "OpenAI/Python" in tab.page.inner_text("#list li:first-child")
        chat(client, "Which tea?", first, LONG)
        tab.has("#list li:first-child", "2 turns")
        tab.page.click("#list a")
        tab.count(".turn", 2)
        chat(client, "Which green tea?", first, "And coffee?")
        tab.has("#list li:first-child", "Which green tea?")
        # The second message is another one, and what it was is read by the model no more.
        chat(client, "Which tea?", first, f"No, {LONG}")

    tab.has("#list .breaks", "1 break of the prompt cache")
    tab.page.click("#list li:has(.breaks) a")
    tab.has(".cache", "at message 4 (user): about 40")
    tab.has(".cache", "12 of 450 were billed as cached")
    tab.has(".elsewhere", "1 turn continues elsewhere")


def test_an_answer_to_a_client_is_seen_while_it_is_written_and_can_be_stopped(open_tab: OpenTab, serve: Serve) -> None:
    model = GatedModel()
    server = serve(model)
    tab = open_tab(server)
    with openai_client(server) as client:
        model.gate.set()
        first = chat(client, "one", model="gated")
        model.gate.clear()
        tab.page.click("#list a")
        tab.count(".turn", 1)
        messages = [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"},
            {"role": "assistant", "content": first}, {"role": "user", "content": "two"},
        ]  # fmt: skip
        stream = client.chat.completions.create(model="gated", messages=messages, stream=True)
        tab.has("#live", "The first part.")
        tab.has("#list .answering", "one", ready=False)
        tab.page.click("#stop")
        tab.has(".turn:last-child .answer", "The first part.")
        assert "".join(part.choices[0].delta.content or "" for part in stream) == "The first part.\n\n"
        tab.count("#list .answering", 0)


def test_what_departs_from_the_request_before_breaks_the_prompt_cache(recorded: Serving) -> None:
    with openai_client(recorded) as client:
        first = chat(client, "one")
        second = chat(client, "one", first, "two")
        assert breaks(recorded) == []
        chat(client, "one", first, "two", second, "three", system="Be kind.")

        (system,) = breaks(recorded)
        assert (system.message, system.role) == (1, "system")
        tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
        fourth = chat(client, "one", first, "two", second, "another three", system="Be kind.", tools=[tool])
        assert fourth
        assert [each.role for each in breaks(recorded)][-1] == "tools"


def test_the_same_request_and_a_shorter_one_break_no_prompt_cache(recorded: Serving) -> None:
    with openai_client(recorded) as client:
        first = chat(client, "one")
        chat(client, "one", first, "two")
        chat(client, "one", first, "two")
        assert breaks(recorded) == []
        chat(client, "one")
        assert breaks(recorded) == []


def test_two_conversations_of_a_client_side_by_side_break_nothing_after_they_parted(recorded: Serving) -> None:
    with openai_client(recorded) as client:
        first = chat(client, "one")
        here = chat(client, "one", first, "here")
        there = chat(client, "one", first, "there")
        assert [each.message for each in breaks(recorded)] == [4]
        for number in range(2):
            chat(client, "one", first, "here", here, f"more {number}")
        chat(client, "one", first, "there", there, "more")

        assert [each.message for each in breaks(recorded)] == [4]


def test_events_tell_which_conversations_move_and_are_deleted(recorded: Serving) -> None:
    key = recorded.client.headers["authorization"].removeprefix("Bearer ")
    with ApiClient(recorded.server.url, key) as client:
        run = client.begin(app="plain", text="one", name="tea")["run"]
        list(client.events(run))
        changes = client.changes(after=0)
        before = list(takewhile(lambda change: change[0] != "ready", changes))
        client.delete("tea")

        assert ("conversation", "tea") in [(kind, data.get("session")) for kind, data in before]
        assert next(changes) == ("deleted", {"session": "tea"})
        changes.close()


def test_an_own_conversation_has_no_marks(serve: Serve) -> None:
    server = serve(function_model(lambda _: "Answer"))
    made = server.client.post("/api/conversations", json={"app": "chat", "text": "one"}).json()
    server.client.get(f"/api/runs/{made['run']}/events")

    assert server.repository.at(made["session"]).count == 1
    assert breaks(server) == []
