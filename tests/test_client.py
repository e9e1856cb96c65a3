import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, computed_field, field_validator

import taiwa
from taiwa.apps.catalog import load_text
from taiwa.client.clients import AsyncClient, Client
from taiwa.flows.route import NeedsClarification, Routed
from taiwa.kernel.effects import CallTool, Complete, Effect, Program, Retrieve, perform
from taiwa.kernel.errors import (
    ConfigError,
    InputError,
    LimitError,
    ModelError,
    OutputValidationError,
    RefusalError,
    ToolError,
)
from taiwa.kernel.messages import (
    Choice,
    Grammar,
    JsonSchema,
    Message,
    PartialValue,
    Passage,
    Regex,
    Request,
    Response,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    system,
    user,
)
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.usage_limits import Limits, Prices, UsageLimits
from taiwa.models.scripted import Entry, scripted_model
from taiwa.store import Store
from taiwa.store.nodes import Nodes
from taiwa.structured import OutputType
from taiwa.tools.function_tool import tool
from tests.files import PNG, TEXT
from tests.peers.faults import FaultServer, speech, status

Call = Callable[..., Any]


@dataclass
class Order:
    drink: str
    cups: int


@dataclass
class Booking:
    guests: int


@tool(isolated=False)
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


class Blocking:
    """The methods of a client, called on one that blocks."""

    def __init__(self, *entries: Entry, **arguments: Any) -> None:
        self.client = Client(scripted_model(*entries, usage=Usage(10, 5)), **arguments)

    def __getattr__(self, name: str) -> Call:
        return getattr(self.client, name)

    def events(self, stream: Any) -> tuple[list[Any], Any]:
        with stream:
            return list(stream), stream.result


class OnLoop:
    """The same methods on an event loop."""

    def __init__(self, *entries: Entry, **arguments: Any) -> None:
        self.client = AsyncClient(scripted_model(*entries, usage=Usage(10, 5)), **arguments)

    def __getattr__(self, name: str) -> Call:
        found = getattr(self.client, name)
        if not callable(found):
            return found

        def call(*given: Any, **named: Any) -> Any:
            made = found(*given, **named)
            return asyncio.run(made) if asyncio.iscoroutine(made) else made

        return call

    def events(self, stream: Any) -> tuple[list[Any], Any]:
        async def play() -> tuple[list[Any], Any]:
            async with stream:
                return [event async for event in stream], await stream.result()

        return asyncio.run(play())


@pytest.fixture(params=[Blocking, OnLoop])
def connect(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_question_is_answered_with_its_bill(connect: Any) -> None:
    client = connect("Hello!", prices=Prices("1", "2"))
    answer = client.generate("Hi", system="Be brief.", stop=["."], max_tokens=9, temperature=0.5)
    assert (answer.text, answer.value, str(answer), answer.finish) == ("Hello!", "Hello!", "Hello!", "stop")
    assert (answer.usage, answer.cost) == (Usage(10, 5), Decimal("0.00002"))
    request = client.client.model.requests[0]
    assert request.messages == (system("Be brief."), user("Hi"))
    assert (request.stop, request.sampling.max_tokens, request.sampling.temperature) == ((".",), 9, 0.5)


def test_a_call_may_name_another_model(connect: Any) -> None:
    client, other = connect("own"), scripted_model("1", "[2]", "3", "4", "5", usage=Usage(10, 5))

    assert client.generate("x", model=other).text == "1"
    assert client.extract(list[int], "x", model=other) == [2]
    assert client.events(client.stream("x", model=other))[1].text == "3"
    assert client.solve("x", model=other, tools=[]).text == "4"
    session = client.session(model=other)
    assert session.priced_model.model is other
    assert client.generate("x").text == "own"
    assert (len(other.requests), client.spent.usage) == (4, Usage(50, 25))


def test_prices_of_a_client_are_not_those_of_the_model_of_a_call(connect: Any) -> None:
    client = connect("own", prices=Prices("1", "2"))

    assert client.generate("x", model=scripted_model("other", usage=Usage(10, 5))).cost is None
    assert client.generate("x").cost == Decimal("0.00002")


def test_a_model_of_a_call_may_be_given_by_name(connect: Any) -> None:
    with FaultServer() as server:
        server.plays(speech("named"))
        client = connect("own")

        assert client.generate("x", model=f"{server.base_url}#m").text == "named"
        assert client.generate("x").text == "own"


def test_a_wrong_model_of_a_call_is_refused(connect: Any) -> None:
    with pytest.raises(InputError, match=r"model must be a name, or a model with .*, got an int"):
        connect("own").generate("x", model=3)


def test_the_functions_of_the_package_take_a_model() -> None:
    assert taiwa.generate("x", model=scripted_model("1")).text == "1"
    assert taiwa.extract(list[int], "x", model=scripted_model("[2]")) == [2]


def test_a_question_may_be_a_dialogue(connect: Any) -> None:
    client = connect("Nara.")
    dialogue = (user("Kyoto?"), assistant("Full."), user("Elsewhere?"))
    assert client.generate(dialogue).text == "Nara."
    assert client.client.model.requests[0].messages == dialogue


def test_a_message_may_be_a_dict_as_others_write_it(connect: Any) -> None:
    client = connect("Nara.", "Nara.")

    client.generate([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Kyoto?"}])
    client.generate(user("Kyoto?"))

    assert [request.messages for request in client.client.model.requests] == [
        (system("Be brief."), user("Kyoto?")),
        (user("Kyoto?"),),
    ]


def test_messages_of_openai_and_anthropic_with_parts_and_calls_are_sent(connect: Any) -> None:
    client = connect("Nara.", "Nara.")
    call = ToolCall("double", '{"number": 2}', "a")
    openai = [
        {"role": "user", "content": [{"type": "text", "text": "Twice 2?"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "double", "arguments": '{"number": 2}'}}
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "4"},
    ]  # fmt: skip
    anthropic = [
        {"role": "user", "content": "Twice 2?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "double", "input": {"number": 2}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "4"}]},
    ]

    client.generate(openai)
    client.generate(anthropic)

    for request in client.client.model.requests:
        assert request.messages == (
            user("Twice 2?"), Message("assistant", (call,)), Message("tool", (ToolResult("4", "double", "a"),))
        )  # fmt: skip


def test_every_question_takes_attachments(connect: Any, tmp_path: Any) -> None:
    (tmp_path / "notes.txt").write_bytes(TEXT)
    files = [tmp_path / "notes.txt", PNG]
    order = '{"drink": "tea", "cups": 2}'
    client = connect("A cat.", "A cat.", order, order, order)

    client.generate("What is this?", attachments=files)
    client.events(client.stream("What is this?", attachments=files))
    client.extract(Order, "", attachments=files)
    client.try_extract(Order, "Read it.", attachments=files)
    client.events(client.stream_extract(Order, "Read it.", attachments=files))

    for request in client.client.model.requests:
        assert [each.data for each in request.messages[-1].attachments] == [TEXT, PNG]
    with pytest.raises(InputError, match=r"give messages theirs: taiwa\.user\(text, attachments\)"):
        client.generate((user("What is this?"),), attachments=files)


def test_a_repaired_extraction_sends_the_attachments_again(connect: Any) -> None:
    client = connect('{"drink": "tea"}', '{"drink": "tea", "cups": 2}')

    client.extract(Order, "Read it.", attachments=[PNG])

    sent = [message.attachments for request in client.client.model.requests for message in request.messages]
    assert sum(map(bool, sent)) == 2


@pytest.mark.parametrize(
    ("constraint", "fits", "wanted", "wrong"),
    [
        (Choice("red", "blue"), "red", "red", "green"),
        (Choice("red", "blue"), '"Red."\n', "red", "red or blue"),
        (Choice("*", "x"), "x", "x", '"'),
        (Regex("r[a-z]+"), " red\n", "red", "so red"),
        (Choice(["red", "blue"]), "red", "red", "green"),
        ({"type": "object", "required": ["a"]}, '{"a": 1}', {"a": 1}, '{"b": 1}'),
        (Regex("[0-9]{4}"), "1603", "1603", "16o3"),
        (Grammar('start: "a"+'), "aaa", "aaa", "aab"),
        (JsonSchema({"type": "object", "required": ["a"]}), '{"a": 1}', {"a": 1}, '{"b": 1}'),
        (Order, '{"drink": "tea", "cups": 2}', Order("tea", 2), '{"drink": "tea"}'),
        (list[int], "[1, 2]", [1, 2], '["a"]'),
    ],
)
def test_a_constraint_decides_the_value_of_an_answer(
    connect: Any, constraint: object, fits: str, wanted: object, wrong: str
) -> None:
    cut, refused = Response(assistant(fits), finish="length"), Response(assistant(""), finish="refusal")
    client = connect(fits, fits, wrong, cut, refused)
    assert client.generate("?", constraint).value == wanted
    assert client.events(client.stream("?", constraint))[1].value == wanted
    for error, message in (OutputValidationError, None), (OutputValidationError, "cut off"), (RefusalError, "refused"):
        with pytest.raises(error, match=message):
            client.generate("?", constraint)


def test_json_with_space_around_it_is_data_where_only_a_guide_checks_it(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise ConfigError("the extra `schema` is not installed")

    monkeypatch.setattr(OutputType, "from_json_schema", missing)
    client = connect(' {"a": 1}\n\n')

    assert client.generate("?", JsonSchema({"type": "object", "required": ["a"]})).value == {"a": 1}


def test_an_answer_is_streamed_and_then_whole(connect: Any) -> None:
    client = connect("It is a burrito.")
    texts, done = client.events(client.stream("A monad?"))
    assert texts == ["It is a", " burrit", "o."]
    assert done.text == "It is a burrito."
    assert client.spent.requests == 1


def test_a_closed_stream_cancels_the_call_and_has_no_result() -> None:
    client = Client(scripted_model("It is a burrito."))
    stream = client.stream("A monad?")
    assert next(stream) == "It is a"
    stream.close()
    with pytest.raises(InputError, match="closed before its end"):
        _ = stream.result


def test_a_value_is_extracted(connect: Any) -> None:
    assert connect('{"drink": "tea", "cups": 2}').extract(Order, "Two teas") == Order("tea", 2)


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "object", "properties": {"drink": {"type": "string"}, "cups": {"type": "integer"}}},
        JsonSchema({"type": "object", "properties": {"drink": {"type": "string"}, "cups": {"type": "integer"}}}),
        "drink, cups int",
    ],
)
def test_a_value_is_extracted_by_a_schema_or_by_fields(connect: Any, wanted: Any) -> None:
    tea = {"drink": "tea", "cups": 2}
    client = connect(*['{"drink": "tea", "cups": 2}'] * 3)

    assert client.extract(wanted, "Two teas, please.", system="Read.", temperature=0.5, max_tokens=50) == tea
    assert client.try_extract(wanted, "Two teas, please.").value == tea
    assert client.events(client.stream_extract(wanted, "Two teas, please."))[1] == tea

    first = client.client.model.requests[0]
    assert first.messages[-1] == user("Two teas, please.")
    assert "Read." in first.messages[0].text
    assert (first.sampling.temperature, first.sampling.max_tokens) == (0.5, 50)


def test_an_extraction_tells_its_attempts_and_never_raises_for_a_misfit(connect: Any) -> None:
    client = connect('{"drink": "tea"}', '{drink: "tea", "cups": 3}', "no", "no", "no", prices=Prices("1", "1"))
    repaired = client.try_extract(Order, "Three teas")
    assert (repaired.value, repaired.error, len(repaired.attempts)) == (Order("tea", 3), None, 2)
    assert [fix.code for fix in repaired.fixes] == ["unquoted-key"]
    assert (repaired.usage, repaired.cost) == (Usage(20, 10), Decimal("0.00003"))
    failed = client.try_extract(Order, "Three teas")
    assert failed.value is None
    assert "no Order could be read" in str(failed.error)
    assert failed.cost == Decimal("0.000015") * len(failed.attempts)


def test_a_value_is_streamed_while_it_is_written(connect: Any) -> None:
    client = connect('{"drink": "oolong tea", "cups": 2}')
    partials, order = client.events(client.stream_extract(Order, "Two teas"))
    assert order == Order("oolong tea", 2)
    assert partials[-1] == {"drink": "oolong tea", "cups": 2}
    assert {"drink": "oolong tea"} in partials
    sizes = [len(str(partial)) for partial in partials]
    assert sizes == sorted(sizes)


def test_a_repaired_answer_is_not_streamed_again(connect: Any) -> None:
    client = connect('{"drink": "tea"}', '{"drink": "tea", "cups": 3}')
    partials, order = client.events(client.stream_extract(Order, "Three teas"))
    assert order == Order("tea", 3)
    assert partials[-1] == {"drink": "tea", "cups": 3}


def test_a_text_is_routed_to_a_type_by_its_name(connect: Any) -> None:
    client = connect('{"to": "Booking", "content": {"guests": 2}}', '{"to": "none", "question": "For how many?"}')
    assert client.route("A table for two", Order, Booking) == Routed("Booking", Booking(2))
    assert client.route("A table", Order, Booking) == NeedsClarification("For how many?")
    with pytest.raises(InputError, match="same name"):
        client.route("A table", Order, Order)


def test_a_route_leads_to_json_schemas_and_fields() -> None:
    schema = {"type": "object", "title": "Table", "properties": {"seats": {"type": "integer"}}}
    client = Client(scripted_model('{"to": "Table", "content": {"seats": 2}}'), store=":memory:")

    assert client.route("A table for two", schema, "drink str") == Routed("Table", {"seats": 2})
    with pytest.raises(InputError, match="not a JSON Schema"):
        client.route("A table", {"type": "int"})


def test_a_question_is_solved_with_the_tools_of_the_client(connect: Any) -> None:
    client = connect("Twice: <<double: 21>>", " So the answer is 42.", tools=[double])
    rationale = client.solve("What is twice 21?")
    assert (rationale.answer, rationale.calls[0].name) == ("42", "double")


class Shelf:
    """A retriever of one passage."""

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        return (Passage(query, "A burrito."),)[:k]


def triple(number: int) -> int:
    """Triple a number."""
    return 3 * number


def test_a_function_is_a_tool_as_it_is(connect: Any) -> None:
    client = connect("<<triple: 2>>", " The answer is 6.", tools=[triple])

    assert str(client.solve("What is three times two?")).startswith("<<triple: 2>> 6")


class Scale:
    """A class whose methods are tools."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def scaled(self, number: int) -> int:
        """Scale a number."""
        return self.factor * number


def test_a_method_of_an_object_is_a_tool_as_it_is(connect: Any) -> None:
    client = connect("<<scaled: 2>>", " The answer is 10.", tools=[Scale(5).scaled])

    assert str(client.solve("What is five times two?")).startswith("<<scaled: 2>> 10")


def test_a_question_is_answered_with_tools_and_one_bill(connect: Any) -> None:
    called = Response(
        Message("assistant", (ToolCall("double", '{"number": 2}', "c1"),)), "tool_calls", usage=Usage(10, 5)
    )
    client = connect(called, "It is 4.")

    answer = client.generate("Twice two?", tools=[double])

    assert (answer.text, answer.value, answer.usage) == ("It is 4.", "It is 4.", Usage(20, 10))
    assert client.client.model.requests[1].messages[-1].role == "tool"


def test_tools_of_the_client_are_those_of_one_answer_too_unless_it_is_constrained(connect: Any) -> None:
    called = Response(Message("assistant", (ToolCall("double", '{"number": 2}', "c1"),)), "tool_calls")
    client = connect(called, "It is 4.", "4", tools=[double])

    assert client.generate("Twice two?").text == "It is 4."
    assert client.generate("Twice two?", int).value == 4
    assert [len(request.tools) for request in client.client.model.requests] == [1, 1, 0]


def test_tools_and_a_constraint_exclude_each_other(connect: Any) -> None:
    with pytest.raises(InputError, match="give tools or a constraint"):
        connect().generate("Twice two?", int, tools=[double])


def test_conversations_are_listed_and_deleted(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connect("One.", "Two.", store=":memory:", prices=Prices("1", "1"))
    for name in ("a", "b"):
        said = client.session(name=name).say(f"Hi {name}")
        if asyncio.iscoroutine(said):
            asyncio.run(said)

    read: list[str] = []
    get = Nodes.get
    monkeypatch.setattr(Nodes, "get", lambda nodes, name: read.append(name) or get(nodes, name))
    listed = client.sessions()
    assert len(read) == len(listed)  # the first turn of each; the last ones are read together
    client.delete("b")

    assert [(each.name, each.app, each.turns, each.text, each.cost) for each in listed] == [
        ("b", "plain", 1, "Hi b", Decimal("0.000015")),
        ("a", "plain", 1, "Hi a", Decimal("0.000015")),
    ]
    assert [each.name for each in client.sessions()] == ["a"]
    with pytest.raises(InputError, match="session 'b' not found"):
        client.delete("b")


def test_a_conversation_keeps_limits_until_they_are_lifted(tmp_path: Any) -> None:
    model = scripted_model("1", "2", "3", usage=Usage(10, 5))
    with Client(model, store=tmp_path / "t.db", prices=Prices("1", "1"), limits=Limits(cost=0)) as client:
        client.session(name="k", limits=Limits(cost="0.5")).say("Hi")
        again = client.session(name="k")
        again.say("Hi again")
        with pytest.raises(LimitError):
            client.session(name="k", limits=Limits(cost=0)).say("No more")
        client.session(name="k", limits=Limits()).say("Hi")

        assert again.options.limits == UsageLimits(cost=500_000_000)
        with pytest.raises(LimitError):
            client.session(name="k").say("No more")


@pytest.mark.parametrize(
    ("model", "origin"),
    [("qwen3", ""), ("qwen3:8b", ""), ("openai:gpt-x", "openai"), ("vendor/model?effort=low", "")],
)
def test_a_model_has_the_address_and_the_key_that_are_given(model: str, origin: str) -> None:
    with FaultServer() as server:
        server.plays(speech("Hello!"))
        with Client(model, base_url=server.base_url, api_key="sk-own") as client:
            assert client.generate("Hi").text == "Hello!"

    assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer sk-own"}
    sent: Any = server.seen[-1].json
    assert sent["model"] == model.removeprefix(f"{origin}:").partition("?")[0]


def test_a_llama_cpp_server_at_an_address_is_constrained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    listed = status(200, b'{"data": [{"id": "m", "owned_by": "llamacpp"}]}')
    with FaultServer() as server:
        server.plays(listed, speech("tea"))
        with Client(f"{server.base_url}#m") as client:
            assert client.generate("Which?", Choice("tea", "coffee")).text == "tea"
        with Client(f"{server.base_url}#other") as client:
            client.generate("Which?", Choice("tea", "coffee"))

    sent: list[Any] = [seen.json for seen in server.seen[1:]]
    assert [seen.method for seen in server.seen] == ["GET", "POST", "POST"]
    assert all("grammar" in body for body in sent)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base_url": "http://127.0.0.1:9/v1"}, "base_url is the address of a named model"),
        ({"model": "http://127.0.0.1:9/v1#x", "base_url": "http://127.0.0.1:9/v1"}, "not both"),
        ({"model": scripted_model(), "api_key": "sk"}, "go with the name of a model"),
        ({"model": "openai:gpt-x", "api_key": 3}, "api_key must be a text"),
        ({"model": "openai:gpt-x", "api_key": " "}, "api_key is empty"),
    ],
)
def test_an_address_or_a_key_without_its_model_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(taiwa.TaiwaError, match=message):
        Client(**arguments)


def test_sampling_can_be_set_for_solve_and_ask(connect: Any) -> None:
    client = connect("The answer is 4.")
    client.solve("Twice two?", tools=[], temperature=0.5, max_tokens=99, system="Be brief.")

    request = client.client.model.requests[0]
    assert (request.sampling.temperature, request.sampling.max_tokens) == (0.5, 99)
    assert request.messages[0].text.startswith("Be brief.")


def test_a_session_offers_tools_and_keeps_what_is_set_for_its_answers(tmp_path: Any) -> None:
    model = scripted_model("One.", '{"drink": "tea", "cups": 2}', "Three.")
    with Client(model, store=tmp_path / "a.db", tools=[double]) as client:
        session = client.session(name="a", system="Be brief.", temperature=0.5, max_tokens=9)
        assert str(session.say("Hi")) == "One."
        client.session(name="a", schema=Order).say("Two teas")
        client.session("chat", tools=[triple]).say("Hi")

    first, second, third = model.requests
    assert first.messages == (system("Be brief."), user("Hi"))
    assert (first.sampling.temperature, first.sampling.max_tokens) == (0.5, 9)
    assert [each.name for each in first.tools] == [each.name for each in second.tools] == ["double"]
    assert second.messages[0].text.startswith("Be brief.")
    assert "type Order = {" in second.messages[0].text
    assert [each.name for each in third.tools] == ["triple"]
    with pytest.raises(InputError, match="its own instructions; a system prompt requires an app without"):
        Client(model, store=":memory:").session("translate", params={"target_lang": "English"}, system="Be brief.")


@pytest.mark.parametrize("app", ["plain", "extract"])
def test_a_session_with_a_type_answers_with_its_values_and_yields_what_is_certain_of_them(
    connect: Any, app: str
) -> None:
    client = connect('{"drink": "tea", "cups": 2}', '{"drink": "tea"}', '{"drink": "tea", "cups": 3}', store=":memory:")
    session = client.session(app, schema=Order)

    events, first = client.events(session.stream("Two teas"))
    _, second = client.events(session.stream("One more"))

    partial = [event.value for event in events if isinstance(event, PartialValue)]
    assert (first.value, first.reply.value) == (Order("tea", 2), {"drink": "tea", "cups": 2})
    assert {"drink": "tea"} in partial
    assert partial[-1] == {"drink": "tea", "cups": 2}
    assert all(before != after for before, after in pairwise(partial))
    assert second.value == Order("tea", 3)


@dataclass
class Priced:
    """A price and a number."""

    of: Decimal
    n: int


class Counted(BaseModel):
    """A type whose JSON is not of the type."""

    cups: int

    @field_validator("cups")
    @classmethod
    def with_one_for_the_pot(cls, cups: int) -> int:
        """Add one."""
        return cups + 1

    @computed_field
    def litres(self) -> float:
        """The litres of the cups."""
        return self.cups / 4


@pytest.mark.parametrize("front", ["", "state: { note: str }\nreply: json\n"])
def test_the_value_of_a_turn_is_read_from_the_answer_and_not_from_its_json(front: str) -> None:
    answer = '{"cups": 1}'
    if front:
        answer = f'{{"answer": {answer}, "delta": {{"note": "x"}}}}'
    app = load_text(f"---\ntaiwa: 1\n{front}---\nCount.\n", "count.md", "count")
    session = taiwa.open(app, model=scripted_model(answer), store=":memory:", schema=Counted)

    turn = session.say("One cup")

    assert turn.value == Counted.model_construct(cups=2)
    assert turn.reply.value == {"cups": 2, "litres": 0.5}


@pytest.mark.parametrize(
    "reply", ['{"of": 1.10, "n": 3.0}', '{"answer": {"of": 1.10, "n": 3}, "delta": {"note": "x"}}']
)
def test_the_price_of_a_typed_turn_has_its_digits(reply: str, tmp_path: Path) -> None:
    front = "state: { note: str }\nreply: json\n" if "delta" in reply else ""
    app = load_text(f"---\ntaiwa: 1\n{front}---\nPrice.\n", "price.md", "price")
    store = tmp_path / "a.db"

    with taiwa.open(app, model=scripted_model(reply), store=store, session="s", schema=Priced) as session:
        turn = session.say("How much?")

    assert (str(turn.value.of), turn.value.n) == ("1.10", 3)
    assert turn.reply.value == {"of": "1.10", "n": 3}
    with taiwa.open(model=scripted_model(), store=store, session="s", schema=Priced) as again:
        assert again.messages[-1].text == turn.text
        assert [node.difference for node in again.replay()] == ["", ""]


def test_a_reply_is_not_read_by_the_type_of_another_session() -> None:
    app = load_text("---\ntaiwa: 1\n---\nCount.\n", "count.md", "count")
    schemas = (Counted, OutputType(Counted).json_schema)

    typed, plain = (
        taiwa.open(app, model=scripted_model('{"cups": 1}'), store=":memory:", schema=each).say("One cup")
        for each in schemas
    )

    assert (typed.reply.value, plain.reply.value) == ({"cups": 2, "litres": 0.5}, {"cups": 1})


def test_the_type_of_a_session_is_that_of_its_values() -> None:
    with Client(scripted_model('{"drink": "tea", "cups": 2}', "{}", "One."), store=":memory:") as client:
        order: Order = client.session(schema=Order).say("Two teas").value
        mapping: Json = client.session(schema={"type": "object"}).say("Two teas").value
        text: Json = client.session().say("Two teas").value

    assert (order, mapping, text) == (Order("tea", 2), {}, None)


def test_a_session_on_an_event_loop_takes_the_same_settings() -> None:
    async def talk() -> Request:
        model = scripted_model("One.")
        async with AsyncClient(model, store=":memory:") as client:
            session = await client.session(system="Be brief.", tools=[triple], temperature=0.5)
            await session.say("Hi")
        return model.requests[0]

    request = asyncio.run(talk())
    assert request.messages[0] == system("Be brief.")
    assert [each.name for each in request.tools] == ["triple"]


def test_a_new_session_has_no_turn_to_take_back() -> None:
    session = Client(scripted_model(), store=":memory:").session()
    for move in session.undo, session.redo, session.retry:
        with pytest.raises(InputError, match="there is no turn yet"):
            move()


def test_passages_come_from_the_own_retriever(connect: Any) -> None:
    assert connect(retriever=Shelf()).find("monad", limit=1)[0].text == "A burrito."


class Trains:
    """A retriever of one passage about trains."""

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        return (Passage("notes.txt", "The last train leaves at 23:10. The bar closes at noon."),)[:k]


def test_a_refusal_in_words_is_no_value_of_a_constraint() -> None:
    with pytest.raises(OutputValidationError):
        Client(scripted_model("I cannot approve this."), store=":memory:").generate("Well?", Literal["approve", "deny"])


def test_a_question_is_answered_from_the_own_retriever() -> None:
    answer = Client(retriever=Trains(), store=":memory:").ask("When does the last train leave?")
    assert (answer.answer_text, answer.citations[0].source) == ("The last train leaves at 23:10.", "notes.txt")

    async def play() -> str:
        async with AsyncClient(retriever=Trains(), store=":memory:") as client:
            await client.ask("When does the last train leave?", session="s")
            return (await client.ask("When does the bar close?", session="s")).answer_text

    assert "The bar closes at noon." in asyncio.run(play())


def test_passages_come_from_an_indexed_folder(connect: Any, tmp_path: Any) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tea.md").write_text("# Tea\n\nOolong costs 4 euros.\n", encoding="utf-8")
    client = connect(store=tmp_path / "taiwa.db")
    assert "4 euros" in client.find("oolong", documents=[tmp_path / "notes"])[0].text


def test_a_question_is_answered_from_the_documents_for_the_audience_and_by_the_policy_that_are_named(
    tmp_path: Path,
) -> None:
    for name, price in (("here", 4), ("there", 9)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tea.md").write_text(f"# Tea\n\nOolong costs {price} euros.\n", encoding="utf-8")
    rules = tmp_path / "here" / "pay.md"
    rules.write_text("---\naccess: [group:hr]\n---\n# Pay\n\nA gardener earns 40 euros.\n", encoding="utf-8")
    client = Client(store=tmp_path / "taiwa.db")
    client.ask("What does oolong cost?", documents=[tmp_path / "there"])

    found = client.ask("What does oolong cost?", documents=[tmp_path / "here"])
    pay = client.ask("What does a gardener earn?", documents=[tmp_path / "here"], audience=["group:hr"])

    assert found.answer is not None
    assert [each.text for each in found.answer.claims] == ["Oolong costs 4 euros."]
    assert [each.source for each in pay.passages] == ["pay.md"]
    with pytest.raises(ConfigError, match="requires the scores of a model"):
        client.ask("What does oolong cost?", documents=[tmp_path / "here"], policy="functions")


def test_documents_are_asked_in_a_dialogue_of_a_name(tmp_path: Any) -> None:
    client = Client(store=tmp_path / "taiwa.db")
    back = client.ask("I have a question about leave.", documents=["taiwa:handbook"], session="leave")
    assert back.act_name == "ask"
    answer = client.ask("1", session="leave")
    assert answer.answer is not None
    assert answer.answer.claims[0].citations[0].source == "en/leave.md"
    with pytest.raises(InputError, match="neither an index nor a folder"):
        client.ask("What is the price of oolong?", documents=["nowhere"])


@value(tag="test-client-weather")
class Weather(Effect[str]):
    city: str


def forecast(city: str) -> Program[str]:
    sky = yield from perform(Weather(city))
    answer = yield from perform(Complete(Request((user(sky),))))
    return answer.text


def test_a_program_runs_with_handlers_of_its_own_effects(connect: Any) -> None:
    client = connect("Stay in.", "Stay in.", handlers={Weather: lambda effect: f"rain in {effect.city}"})
    assert client.run(forecast("Nara")) == "Stay in."
    texts, result = client.events(client.stream_run(forecast("Nara")))
    assert ("".join(event.text for event in texts), result) == ("Stay in.", "Stay in.")


def test_the_usage_of_failed_calls_counts(connect: Any) -> None:
    client = connect("one", limits=Limits(calls=1))

    def twice() -> Program[None]:
        for _ in range(2):
            yield from perform(Complete(Request((user("Go on."),))))

    with pytest.raises(LimitError):
        client.run(twice())
    assert client.spent.requests == 1
    with pytest.raises(ModelError, match="exhausted"):
        client.generate("again")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": Blocking}, "got the class Blocking; make an instance"),
        ({"model": 3}, "got an int"),
        ({"tools": [3]}, "got an int; decorate a function with @taiwa.tool"),
        ({"tools": [len]}, "len: 'obj' must be an ordinary parameter"),
        ({"tools": "calculator"}, r"tools must be a list of tools, got a str; write tools=\[…\]"),
        ({"tools": double}, "tools must be a list of tools, got a FunctionTool"),
        ({"tools": ["calculater"]}, "unknown tool 'calculater'; choose one of calculator"),
        ({"tools": [double, double]}, "two tools have the name 'double'"),
        ({"limits": Limits}, r"limits must be taiwa.Limits\(…\), got the class Limits"),
        ({"limits": 5}, r"limits must be taiwa.Limits\(…\), got an int"),
        ({"retriever": Shelf}, "got the class Shelf"),
    ],
)
def test_a_wrong_argument_fails_at_once(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Client(**arguments)


def test_a_function_is_not_a_program(connect: Any) -> None:
    with pytest.raises(InputError, match=r"got the function forecast; call it: forecast\(…\)"):
        connect().run(forecast)


@pytest.mark.parametrize("method", ["generate", "stream", "extract", "try_extract", "route", "solve"])
def test_an_empty_text_is_refused(connect: Any, method: str) -> None:
    client = connect()
    arguments = {"extract": (Order, " "), "try_extract": (Order, " "), "route": (" ", Order)}.get(method, (" ",))
    with pytest.raises(InputError, match="empty"):
        getattr(client, method)(*arguments)


def test_a_session_keeps_its_conversation_in_the_store(tmp_path: Any) -> None:
    with Client(scripted_model("Hello!", "Again."), store=tmp_path / "taiwa.db") as client:
        session = client.session("chat", "s1")
        assert session.say("Hi").text == "Hello!"
        assert client.session(name="s1").conversation.count == 1
        with pytest.raises(InputError, match="has the app 'chat', not 'novel'"):
            client.session("novel", "s1")
        with pytest.raises(InputError, match="has its parameters"):
            client.session(name="s1", params={"language": "ja"})


def test_a_wrong_model_name_fails_when_the_client_is_made() -> None:
    with pytest.raises(taiwa.TaiwaError, match="unknown provider"):
        Client("nobody:x")
    with pytest.raises(taiwa.TaiwaError, match="does not name a provider"):
        AsyncClient("gpt-x")


def test_a_session_on_an_event_loop_does_the_same(tmp_path: Any) -> None:
    async def play() -> None:
        model = scripted_model(
            'Noted.\n@@delta\n{"topics": ["tea"]}',
            'And coffee.\n@@delta\n{"topics": ["coffee"]}',
            "Cocoa.\n@@delta\n{}",
            usage=Usage(1, 1),
        )
        async with AsyncClient(model, store=tmp_path / "taiwa.db", prices=Prices("1", "1")) as client:
            session = await client.session("chat", "s1")
            assert (await session.say("Tea")).text == "Noted."
            async with session.stream("Coffee") as events:
                assert [event.text async for event in events][-1] == "And coffee."
                assert (await events.result()).text == "And coffee."
            other = await session.fork("other")
            await other.undo()
            assert next(change.path for change in await session.diff(other)) == ("topics", 1)
            assert (await other.redo()).count == 2
            assert (await session.edit("Cocoa", turn=2)).text == "Cocoa."
            assert [turn.user for turn in session.turns] == ["Tea", "Cocoa"]
            assert (await session.why("topics.0")).turn == 1
            assert [node.difference for node in await session.replay()] == ["", "", ""]
            assert await session.resume() is None
            assert (await session.export()).count("\n") > 3
            assert session.cost == Decimal("0.000006")

    asyncio.run(play())


def test_a_wrong_turn_number_names_how_many_there_are(tmp_path: Any) -> None:
    with Client(scripted_model("Hello!"), store=tmp_path / "taiwa.db") as client:
        session = client.session("chat")
        with pytest.raises(InputError, match="there is no turn yet"):
            session.retry()
        session.say("Hi")
        with pytest.raises(InputError, match="turn 2 not found; the conversation has 1"):
            session.edit("x", turn=2)


def test_prices_of_the_configured_model_hold_in_its_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    model = scripted_model("Hello!", name="openai:x", usage=Usage(3, 2))
    monkeypatch.setenv("TAIWA_MODEL", "openai:x")
    monkeypatch.setattr("taiwa.models.providers.open_model", lambda *_: model)
    with Client(store=":memory:", prices=Prices("1000", "1000")) as client:
        session = client.session("plain")
        session.say("Hi")
        assert session.cost is not None
        assert session.cost > 0
        assert session.priced_model.model is client.model


class Connected:
    """A model with connections on an event loop."""

    name = "connected"
    capabilities = scripted_model().capabilities
    loop: asyncio.AbstractEventLoop | None = None

    def stream(self, request: Request) -> Any:
        return scripted_model("Hello!").stream(request)

    def astream(self, request: Request) -> Any:
        return scripted_model("Hello!").astream(request)

    async def aclose(self) -> None:
        self.loop = asyncio.get_running_loop()


def test_the_connections_of_a_loop_are_closed_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Connected()
    monkeypatch.setattr("taiwa.models.providers.open_model", lambda target, settings: opened)

    async def play() -> bool:
        async with AsyncClient("ollama:m") as client:
            await client.generate("Hi")
        return opened.loop is asyncio.get_running_loop()

    assert asyncio.run(play())


def test_a_model_of_the_caller_stays_open() -> None:
    own = Connected()

    async def play() -> None:
        async with AsyncClient(own) as client:
            await client.generate("Hi")

    asyncio.run(play())
    assert own.loop is None


def test_a_session_of_its_own_is_opened_and_closed_with_its_store(tmp_path: Any) -> None:
    with taiwa.open("chat", model=scripted_model("Hello!"), session="s1", store=tmp_path / "taiwa.db") as session:
        assert session.say("Hi").text == "Hello!"
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        session.say("Again?")
    with pytest.raises(InputError, match="has the app 'chat', not 'novel'"):
        taiwa.open("novel", session="s1", store=tmp_path / "taiwa.db", params={"nonsense": 1})
    with pytest.raises(InputError, match="has its parameters"):
        taiwa.open("chat", session="s1", store=tmp_path / "taiwa.db", params={"nonsense": 1})


def test_an_app_file_opens_its_session_again(tmp_path: Any) -> None:
    (tmp_path / "haiku.md").write_text("---\ntaiwa: 1\n---\nWrite a haiku.\n", encoding="utf-8")
    with Client(scripted_model("Rain.", "Snow."), store=tmp_path / "taiwa.db") as client:
        client.session(str(tmp_path / "haiku.md"), "s1").say("June")
        assert client.session(str(tmp_path / "haiku.md"), "s1").say("January").text == "Snow."


@pytest.mark.parametrize("constraint", [Regex("(["), Grammar("start: nothing"), JsonSchema({"type": "thing"})])
def test_a_constraint_that_is_not_valid_costs_no_call(connect: Any, constraint: object) -> None:
    client = connect("a")
    with pytest.raises(InputError):
        client.generate("?", constraint)
    assert client.client.model.requests == []


@pytest.mark.parametrize("text", [3, None, b"bytes", ["Kyoto?"], {"role": "user"}])
def test_a_text_is_a_str_or_messages(connect: Any, text: object) -> None:
    client = connect()
    for call in (lambda: client.generate(text), lambda: client.stream(text), lambda: client.extract(Order, text)):
        with pytest.raises(InputError, match="the text must be a str, or a list of messages, got"):
            call()


def calls_of(*names: str) -> Response:
    """A response that calls these tools side by side, without arguments."""
    return Response(Message("assistant", tuple(ToolCall(name, "{}", name) for name in names)), "tool_calls")


def test_blocking_tools_run_side_by_side_on_an_event_loop(connect: Any) -> None:
    together = threading.Barrier(3)

    def waiting(name: str) -> Any:
        def wait() -> int:
            return together.wait(300)

        wait.__name__, wait.__doc__ = name, "Wait for the others."
        return tool(wait)

    tools = [waiting(name) for name in ("one", "two", "three")]
    client = connect(calls_of("one", "two", "three"), "So the answer is 3.", tools=tools)
    assert client.solve("How many?", options=taiwa.SolveOptions(tool_mode="native")).answer == "3"


def test_an_asynchronous_tool_is_called_by_solve_sessions_and_programs(connect: Any, tmp_path: Any) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @tool
    async def price(drink: str = "tea") -> float:
        """Return the price of a drink."""
        loops.append(asyncio.get_running_loop())
        return 3.5

    client = connect(
        "It costs <<price: tea>>", " So the answer is 3.5.", calls_of("price"), "It is 3.5.",
        tools=[price], store=tmp_path / "taiwa.db",
    )  # fmt: skip
    assert client.solve("What does tea cost?").answer == "3.5"
    app = load_text("---\ntaiwa: 1\ntools: [price]\n---\nAnswer.\n", "desk.md", "desk")

    async def say() -> str:
        return (await (await client.client.session(app)).say("Tea?")).text

    assert (
        client.session(app).say("Tea?").text if isinstance(client, Blocking) else asyncio.run(say())
    ) == "It is 3.5."

    def priced() -> Program[str]:
        return (yield from perform(CallTool("price", {"drink": "tea"}))).text

    assert client.run(priced()) == "3.5"
    assert len(loops) == 3


def test_an_asynchronous_tool_runs_on_the_loop_of_its_client() -> None:
    @tool
    async def here() -> int:
        """Name the loop."""
        return id(asyncio.get_running_loop())

    def called() -> Program[object]:
        return (yield from perform(CallTool("here", {}))).value

    async def play() -> bool:
        async with AsyncClient(scripted_model(), tools=[here]) as client:
            return await client.run(called()) == id(asyncio.get_running_loop())

    assert asyncio.run(play())


def test_a_retriever_that_blocks_lets_the_loop_go_on() -> None:
    met = threading.Event()

    class Slow:
        def find(self, query: str, k: int) -> tuple[Passage, ...]:
            assert met.wait(300)
            return (Passage("notes.txt", query),)

    async def play() -> str:
        async with AsyncClient(scripted_model(), retriever=Slow()) as client:
            found = asyncio.create_task(client.find("tea"))
            await asyncio.sleep(0)
            met.set()
            return (await found)[0].text

    assert asyncio.run(play()) == "tea"


def test_a_call_has_limits_of_its_own(connect: Any) -> None:
    client = connect("Hello!", "Bye!", store=":memory:", tools=[double], limits=Limits(calls=1))
    none = Limits(calls=0)
    calls = {
        "generate": lambda: client.generate("Hi", limits=none),
        "stream": lambda: client.events(client.stream("Hi", limits=none)),
        "extract": lambda: client.extract(Order, "Hi", limits=none),
        "try_extract": lambda: client.try_extract(Order, "Hi", limits=none),
        "stream_extract": lambda: client.events(client.stream_extract(Order, "Hi", limits=none)),
        "route": lambda: client.route("Hi", Order, Booking, limits=none),
        "solve": lambda: client.solve("Hi", limits=none),
        "run": lambda: client.run(asked(), limits=none),
        "stream_run": lambda: client.events(client.stream_run(asked(), limits=none)),
    }
    for call in calls.values():
        with pytest.raises(LimitError):
            call()
    assert client.generate("Hi").text == "Hello!"
    with pytest.raises(InputError, match="got a UsageLimits"):
        client.generate("Hi", limits=UsageLimits(requests=0))


def asked() -> Program[str]:
    return (yield from perform(Complete(Request((user("Hi"),))))).text


def test_a_conversation_has_limits_of_its_own() -> None:
    with Client(
        scripted_model("One.", "Two.", usage=Usage(1, 90)), prices=Prices("1", "1"), store=":memory:"
    ) as client:
        session = client.session(limits=Limits(cost="0.0001"))
        session.say("Hi")
        with pytest.raises(LimitError):
            session.say("Again")
        assert client.session(limits=Limits(cost=1)).say("Hi").text == "Two."


def test_a_call_that_is_not_stored_is_refused_under_a_limit_of_a_day() -> None:
    limits = Limits(day_cost=1)
    with Client(scripted_model("One."), prices=Prices("1", "1"), store=":memory:", limits=limits) as client:
        with pytest.raises(InputError, match="day_cost limits the stored turns"):
            client.generate("Hi")
        assert client.session().say("Hi").text == "One."


def test_threads_that_use_a_client_at_once_share_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    started, opened = threading.Barrier(2), list[Store]()

    def open_slowly(*_: object) -> Store:
        with suppress(threading.BrokenBarrierError):  # the second thread, if it gets here as well
            started.wait(0.2)
        opened.append(Store.open(":memory:"))
        return opened[-1]

    monkeypatch.setattr("taiwa.client.base.open_store", open_slowly)
    client = Client(scripted_model("One."), store=":memory:")
    with ThreadPoolExecutor(2) as threads:
        stores = {id(each) for each in threads.map(lambda _: client.store, range(2))}

    assert (len(stores), len(opened)) == (1, 1)
    client.close()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"cost": "a lot"}, "cost must be a number, zero or more, got 'a lot'"),
        ({"cost": -1}, "cost must be"),
        ({"calls": 1.5}, "calls must be a whole number"),
        ({"tokens": "9"}, "tokens must be a whole number"),
        ({"seconds": float("inf")}, "seconds must be a number"),
        ({"tool_calls": True}, "tool_calls must be a whole number"),
    ],
)
def test_a_limit_is_a_number(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Limits(**limits)


def test_a_turn_has_its_state_calls_citations_and_cost() -> None:
    prices = Prices("1", "1")
    app = load_text("---\ntaiwa: 1\ntools: [double]\nstate:\n  n: int\n---\nCount.\n", "count.md", "count")
    call = Response(Message("assistant", (ToolCall("double", '{"number": 21}', "a"),)), "tool_calls", usage=Usage(1, 1))
    model = scripted_model(call, '42.\n@@delta\n{"n": 42}', usage=Usage(1, 1))
    with Client(model, tools=[double], prices=prices, store=":memory:") as client:
        turn = client.session(app).say("Twice 21?")
    assert turn.state["n"] == 42
    assert [(result.name, result.value) for result in turn.calls] == [("double", 42)]
    assert (turn.citations, turn.usage, turn.cost) == ((), Usage(2, 2), Decimal("0.000004"))
    with Client(retriever=Trains(), store=":memory:") as client:
        asked = client.session("ask").say("When does the last train leave?")
    assert [citation.source for citation in asked.citations] == ["notes.txt"]


class AsyncShelf:
    async def find(self, query: str, k: int) -> tuple[Passage, ...]:
        return ()


def test_what_a_client_cannot_call_is_refused_when_it_is_made() -> None:
    with pytest.raises(InputError, match="find of a retriever must be a plain function"):
        AsyncClient(retriever=AsyncShelf())
    with pytest.raises(InputError, match=r"a model with astream\(request\), got an OnlyBlocking"):
        AsyncClient(OnlyBlocking())
    assert Client(OnlyBlocking()).generate("Hi").text == "Hello!"


class OnlyBlocking:
    """A model without asynchronous calls."""

    name = "only-blocking"
    capabilities = scripted_model().capabilities

    def stream(self, request: Request) -> Any:
        return scripted_model("Hello!").stream(request)


def test_a_tool_that_hangs_is_left_at_its_deadline(connect: Any) -> None:
    go = threading.Event()

    @tool(seconds=0.01)
    def hang() -> int:
        """Wait for ever."""
        go.wait()
        return 1

    def called() -> Program[object]:
        return (yield from perform(CallTool("hang", {}))).value

    try:
        with pytest.raises(ToolError, match="hang timed out"):
            connect(tools=[hang]).run(called())
    finally:
        go.set()


def test_a_limit_of_seconds_holds_while_a_retriever_blocks() -> None:
    go = threading.Event()

    class Stuck:
        def find(self, query: str, k: int) -> tuple[Passage, ...]:
            go.wait()
            return ()

    def searched() -> Program[object]:
        return (yield from perform(Retrieve("tea", 1)))

    async def play() -> None:
        async with AsyncClient(scripted_model(), retriever=Stuck(), limits=Limits(seconds=0.01)) as client:
            await client.run(searched())

    try:
        with pytest.raises(LimitError, match="seconds"):
            asyncio.run(play())
    finally:
        go.set()


def test_results_are_shown_in_a_line_at_a_prompt() -> None:
    client = Client(scripted_model(*"a" * 2, "x" * 500, "Sum. " * 99 + "#### 42"), store=":memory:")
    session = client.session(name="b")

    said = session.say("one")
    session.say("two")
    undone, long = session.undo(), session.say("three")
    solved = client.solve("?", tools=[])

    assert repr(undone) == f"Conversation(app 'plain', turn 1, tip {undone.tip[:8]})"
    assert repr(undone.app) == "App('plain')"
    assert repr(said) == f"TurnResult('a', session 'b', node {said.node[:8]})"
    assert repr(long) == f"TurnResult({'x' * 59 + '…'!r}, session 'b', node {long.node[:8]})"
    assert repr(solved) == f"Rationale(answer {solved.answer!r}, calls 0, ending 'end')"
    assert undone == session.repository.checkout(undone.tip)


def test_a_notebook_shows_attempts_turns_origins_bills_and_sources_as_text_for_people(tmp_path: Path) -> None:
    answers = ("{drink: 'tea'}", '{"drink": "tea", "cups": 2}', 'Sure!\n@@delta\n{"topics": ["tea"]}')
    with Client(scripted_model(*answers), store=":memory:") as client:
        found, session = client.try_extract(Order, "Two teas."), client.session("chat", name="t")
        session.say("Tea?")

        shown = [each._repr_markdown_() for each in (found, session.why("topics"), client.spent)]

    assert "Order(drink='tea', cups=2)" in shown[0]
    assert "$.cups: missing" in shown[0]
    assert shown[1].startswith(
        '**turn 1**: `` [] → ["tea"] ``\n\n- 0, user: `` Tea? ``\n\n> Tea?\n\nSure!\n\n```json\n{"topics": ["tea"]}\n```'
    )
    assert shown[2].startswith("2 calls · 0 in + 0 out tokens (2 calls not reported) · cost unknown · ")
    (tmp_path / "leave.md").write_text("# Leave\n\nIn Leith you have 28 days of annual leave.\n", encoding="utf-8")
    with Client(scripted_model("28 days [1]."), store=":memory:") as client:
        asked = client.ask("How many days of annual leave do I have in Leith?", documents=[tmp_path])
        assert "\n\n[1] " in asked._repr_markdown_(), asked.evidence
        (found,) = client.find("annual leave", documents=[tmp_path])
        assert found._repr_markdown_().startswith("**leave.md › Leave** · ")
