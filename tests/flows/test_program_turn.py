"""A turn that is a program: what it returns, what it may not do, and that a question pauses it."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from taiwa.apps.catalog import load_text
from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, add_turn, begin, summarize_window
from taiwa.flows.program_turn import AskUser, DefaultTurn, earlier_messages, run_turn, show
from taiwa.flows.turn import Reply, say
from taiwa.kernel.effects import CallTool, Complete, Program, Retrieve, gather, notify, perform
from taiwa.kernel.errors import ApprovalRequiredError, ConfigError, InputError, OutputValidationError, TaiwaError
from taiwa.kernel.messages import Notice, Passage, Request, TextDelta, ToolCall, user
from taiwa.kernel.runtime import Runtime
from taiwa.models.scripted import scripted_model
from taiwa.retrieval import InMemoryRetriever
from taiwa.sessions.session import Session
from taiwa.tools.calculator import calculator
from taiwa.tools.function_tool import tool
from tests.flows.driving import Drive


@tool
def price(item: str) -> int:
    """Return the price of an item."""
    return len(item)


FIELDS = {"inn": "str | null", "city": "str | null", "size": "str | null", "cost": "int | null"}


def app(front: str = "state: { item: str, cost: int }\n") -> App:
    return load_text(f"---\ntaiwa: 1\n{front}---\nSell.\n", "shop.md", "shop")


def selling(_: Conversation, text: str) -> Program[Reply]:
    found = yield from perform(CallTool("price", {"item": text}))
    return Reply(f"{text} costs {found.text}.", {"item": text, "cost": int(found.text)})


def asking(_: Conversation, text: str) -> Program[str]:
    found = yield from perform(CallTool("price", {"item": text}))
    size = yield AskUser("Which size?", ("small", "large"))
    often = yield AskUser("How often?")
    return f"{text}, {size}, {often}, {found.text}"


def test_a_program_calls_tools_and_changes_the_state(drive: Drive) -> None:
    done = drive(lambda: run_turn(selling, "tea")(begin(app())), scripted_model(), tools=[price])

    reply, after = done.value
    assert (reply.text, after.state) == ("tea costs 3.", {"item": "tea", "cost": 3})
    assert after.turns[-1].findings == {
        "program": "selling", "calls": [{"name": "price", "input": '{"item": "tea"}', "result": "3", "error": ""}],
    }  # fmt: skip


def test_what_programs_within_gather_do_is_noted_in_their_order(drive: Drive) -> None:
    def both(_: Conversation, text: str) -> Program[str]:
        items = (text, f"{text}s")
        nested = (gather([perform(CallTool("price", {"item": item})), perform(Retrieve(item))]) for item in items)
        yield from gather(nested)
        return "Done."

    shelf = InMemoryRetriever([Passage("a.md", "A tea costs 3."), Passage("b.md", "Two teas cost 5.")])

    done = drive(lambda: run_turn(both, "tea")(begin(app())), scripted_model(), tools=[price], retriever=shelf)

    findings = done.value[1].turns[-1].findings
    assert isinstance(findings, dict)
    assert findings["calls"] == [
        {"name": "price", "input": '{"item": "tea"}', "result": "3", "error": ""},
        {"name": "price", "input": '{"item": "teas"}', "result": "4", "error": ""},
    ]


def test_a_program_can_take_the_default_turn_as_a_part(drive: Drive) -> None:
    def twice(conversation: Conversation, text: str) -> Program[Reply]:
        first, after = yield from say(text)(conversation)
        second, _ = yield from say("And then?")(after)
        return Reply(f"{first.text} {second.text}", second.delta)

    model = scripted_model("One.\n@@delta\n{}", 'Two.\n@@delta\n{"cost": 2}')

    reply, after = drive(lambda: run_turn(twice, "Count")(begin(app())), model).value

    assert (reply.text, after.state["cost"], after.count) == ("One. Two.", 2, 1)


def test_a_program_passes_on_a_default_turn_whose_state_could_not_be_read(drive: Drive) -> None:
    def passing(_: Conversation, text: str) -> Program[Reply]:
        reply = yield DefaultTurn(text)
        return replace(reply, text=reply.text.upper())

    of = app("state: { item: { type: str, required: true } }\n")

    reply, after = drive(lambda: run_turn(passing, "Hi")(begin(of)), scripted_model("Hello.", "No.")).value

    assert (reply.text, reply.state_read, after.state) == ("HELLO.", False, {"item": None})


def test_a_program_reads_the_summary_of_the_turns_before_the_window() -> None:
    before = summarize_window(add_turn(begin(app()), "I am Aiko.", "Hello.", {}), (), "The user is Aiko.")
    after = add_turn(before, "Tea.", "Yes.", {})

    assert [["Aiko" in each.text for each in earlier_messages(past)] for past in (before, after)] == [
        [True],
        [True, False],
    ]
    assert earlier_messages(after)[0].text.endswith("Tea.")


@pytest.mark.parametrize("shows", [False, True])
def test_what_models_write_in_a_program_is_not_shown_as_its_reply(shows: bool) -> None:
    def drafting(conversation: Conversation, text: str) -> Program[str]:
        first, _ = yield from say(text)(conversation)
        (second,) = yield from gather([say("And then?")(conversation)])
        return f"{len(first.text)} and {len(second[0].text)}"

    turn = run_turn(drafting, "Count", shows=shows)(begin(app("")))
    events = list(Runtime(scripted_model("One.", "Two.")).stream(turn))

    assert bool([event for event in events if isinstance(event, TextDelta)]) == shows
    assert events[-1].value[0].text == "4 and 4"


def reply_of(text: str) -> Program[str]:
    """What a model writes on a text."""
    response = yield from perform(Complete(Request((user(text),))))
    return response.text


def test_what_a_program_shows_streams_as_it_is_written_and_begins_its_reply(
    open_session: Callable[..., Session],
) -> None:
    def guiding(_: Conversation, text: str) -> Program[Reply]:
        yield from reply_of("Is that a question?")
        yield from show(reply_of(text))
        yield from show(reply_of("More."))
        answer = yield AskUser("Go on?", ("yes", "no"))
        reply = yield from show(perform(DefaultTurn(answer)))
        return replace(reply, text=f"{reply.text}!")

    model = scripted_model("No.", "The old town first.\n", "Then the castle.\n\n", 'To the port.\n@@delta\n{"cost": 3}')
    session = open_session(app("state: { cost: int }\nreply: text+delta\n"), model)

    streamed = [list(session.stream_run(guiding, text)) for text in ("Where to?", "1")]

    texts = [[event.text for event in events if isinstance(event, TextDelta)] for events in streamed]
    assert ["".join(pieces) for pieces in texts] == [turn.answer for turn in session.turns]
    assert texts[0][0] == "The old"  # before the model has written all of it
    assert [turn.answer for turn in session.turns] == [
        "The old town first.\n\nThen the castle.\n\nGo on?\n1. yes\n2. no", "To the port.!",
    ]  # fmt: skip
    assert session.state["cost"] == 3
    assert not any(each.difference for each in session.replay())


@pytest.mark.parametrize(
    ("returned", "reply"),
    [("", " It rains. "), ("It rains.\n", " It rains. "), ("It rains. Stay.", " It rains. Stay."), ("Stay.", " It rains. \n\nStay.")],
)  # fmt: skip
def test_a_reply_begins_with_what_was_shown_whatever_the_program_returns(returned: str, reply: str) -> None:
    def advising(_: Conversation, text: str) -> Program[Reply]:
        yield from show(reply_of(text))
        return Reply(returned)

    events = list(Runtime(scripted_model(" It rains. ")).stream(run_turn(advising, "Today?")(begin(app("")))))

    streamed = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert events[-1].value[0].text == reply
    assert streamed.split() == reply.split()


@pytest.mark.parametrize("found", [True, False])
def test_an_answer_from_documents_is_shown_once(open_session: Callable[..., Session], *, found: bool) -> None:
    def asked(_: Conversation, text: str) -> Program[Reply]:
        return (yield from show(perform(DefaultTurn(text))))

    retriever = InMemoryRetriever([Passage("inns.md", "The Seaview has rooms.", id="p1")] if found else [])
    front = "tools: [calculator]\ndocuments: { policy: never }\n"
    session = open_session(app(front), scripted_model("The Seaview has rooms."), (calculator,), retriever=retriever)

    *events, turn = session.stream_run(asked, "rooms?")

    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == turn.text
    assert turn.text == "The Seaview has rooms."


def test_a_typed_answer_of_a_program_is_not_begun_by_what_it_shows(drive: Drive) -> None:
    def counting(_: Conversation, text: str) -> Program[int]:
        return len((yield from show(reply_of(text))))

    reply, _ = drive(lambda: run_turn(counting, "Count")(begin(app("answer: int\n"))), scripted_model("Four")).value

    assert (reply.text, reply.value) == ("4", 4)


def test_a_value_of_the_type_of_the_answers_is_the_answer(drive: Drive) -> None:
    def typed(_: Conversation, text: str) -> Program[Any]:
        yield from gather(())
        return {"days": len(text), "reason": text}

    typed_app = app("answer: { days: int, reason: str }\n")
    reply, _ = drive(lambda: run_turn(typed, "rest")(begin(typed_app)), scripted_model()).value
    assert (reply.value, reply.text) == ({"days": 4, "reason": "rest"}, '{"days": 4, "reason": "rest"}')

    def wrong(_: Conversation, text: str) -> Program[Any]:
        yield from gather(())
        return {"days": text}

    with pytest.raises(OutputValidationError, match=r"program of .shop. is not of the type Answer: .*days"):
        drive(lambda: run_turn(wrong, "rest")(begin(typed_app)), scripted_model())


def raising(_: Conversation, text: str) -> Program[str]:
    yield from gather(())
    raise KeyError(text)


def leaving(_: Conversation, text: str) -> Program[str]:
    yield from gather(())
    raise SystemExit(f"no\n{text}")


def odd(_: Conversation, text: str) -> Program[str]:
    yield text  # type: ignore[misc]
    return text


def nested(_: Conversation, text: str) -> Program[str]:
    yield asking(begin(app()), text)  # type: ignore[misc]
    return text


def nothing(_: Conversation, text: str) -> Program[object]:
    yield from gather(())
    return len(text)


async def waiting(_: Conversation, text: str) -> str:
    return text


def stubborn(_: Conversation, text: str) -> Program[str]:
    try:
        yield AskUser("Which size?")
    except GeneratorExit:
        yield AskUser("Which size?")
    return text


def late(_: Conversation, text: str) -> Program[str]:
    try:
        yield AskUser("Which size?")
    finally:
        raise ValueError("late")
    return text


def within(program: Callable[[Conversation, str], Program[str]]) -> Callable[[Conversation, str], Program[str]]:
    def gathering(conversation: Conversation, text: str) -> Program[str]:
        return str((yield from gather([program(conversation, text)])))

    return gathering


def unfit(_: Conversation, text: str) -> Program[Reply]:
    yield from gather(())
    return Reply(text, {"cost": "much"})


def unknown(_: Conversation, text: str) -> Program[Reply]:
    yield from gather(())
    return Reply(text, {"price": 1})


def changing(conversation: Conversation, text: str) -> Program[str]:
    yield from gather(())
    conversation.state["cost"] = 3
    return text


def staying(_: Conversation, text: str) -> Program[str]:
    try:
        yield AskUser("Which?")
    finally:
        yield AskUser("And which?")
    return text


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        (changing, ConfigError, "the program changing changed conversation.state; return the change in a reply"),
        (staying, ConfigError, "the program staying failed: RuntimeError: generator ignored GeneratorExit"),
        (raising, ConfigError, "the program raising failed: KeyError: 'tea'"),
        (leaving, ConfigError, "the program leaving failed: SystemExit: no tea"),
        (odd, ConfigError, "the program odd yielded a str; yield an effect"),
        (nested, ConfigError, "the program nested yielded a generator; write `yield from`"),
        (waiting, ConfigError, "write `def` and `yield from` instead of `async def` and `await`"),
        (stubborn, ConfigError, "the program stubborn failed: RuntimeError: generator ignored GeneratorExit"),
        (late, ConfigError, "the program late failed: ValueError: late"),
        (within(raising), ConfigError, "the program raising failed: KeyError: 'tea'"),
        (within(odd), ConfigError, "the program odd yielded a str; yield an effect"),
        (len, ConfigError, "the program len failed: TypeError"),
        (lambda *_: 1, ConfigError, "must yield effects and return a reply; it returned an int at once"),
        (nothing, ConfigError, "must return a reply or a text, not an int"),
        (unfit, InputError, "the state delta of the program of 'shop' does not fit: "),
        (unknown, InputError, "the state delta of the program of 'shop' does not fit: "),
    ],
)
def test_what_a_program_may_not_do_is_one_line(
    drive: Drive, program: Callable[..., Any], error: type[TaiwaError], message: str
) -> None:
    with pytest.raises(error) as caught:
        drive(lambda: run_turn(program, "tea")(begin(app())), scripted_model())

    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_a_question_ends_the_turn_and_the_answer_continues_it_without_a_second_call(
    open_session: Callable[..., Session],
) -> None:
    counted: list[str] = []

    @tool
    def price(item: str) -> int:
        """Return the price of an item."""
        counted.append(item)
        return len(item)

    session = open_session(app(), tools=(price,))

    first = session.run(asking, "tea")
    second = session.run(asking, "2")
    last = session.run(asking, "daily")

    assert first.text == "Which size?\n1. small\n2. large"
    assert (second.text, last.text, counted) == ("How often?", "tea, large, daily, 3", ["tea"])
    session.undo()
    assert session.run(asking, "weekly").text == "tea, large, weekly, 3"
    session.undo(3)
    assert session.run(asking, "cake").text == first.text
    assert counted == ["tea", "cake"]


def test_another_program_with_the_same_text_leaves_alone_what_waits_for_an_approval(
    open_session: Callable[..., Session],
) -> None:
    @tool(confirm=True)
    def order(item: str) -> str:
        """Order an item."""
        return f"one {item}"

    def ordering(_: Conversation, text: str) -> Program[str]:
        written = yield from perform(Complete(Request((user(text),))))
        ordered = yield from perform(CallTool("order", {"item": text}))
        return f"{written.text}, {ordered.text}"

    session = open_session(app(), scripted_model("Hi", "Paid", "Paid again"), tools=(order,))
    session.say("Hello")
    with pytest.raises(ApprovalRequiredError):
        session.run(ordering, "tea")

    with pytest.raises(ConfigError, match="the program odd"):
        session.run(odd, "tea")

    assert session.run(ordering, "tea", approve=lambda _: True).text == "Paid, one tea"


def test_a_program_that_waited_before_other_turns_does_not_keep_a_session_from_resuming(
    open_session: Callable[..., Session],
) -> None:
    @tool(confirm=True)
    def order(item: str) -> str:
        """Order an item."""
        return item

    def ordering(_: Conversation, text: str) -> Program[str]:
        return (yield from perform(CallTool("order", {"item": text}))).text

    session = open_session(app(), scripted_model("Hi", "Well"), tools=(order,))
    session.say("Hello")
    with pytest.raises(ApprovalRequiredError):
        session.run(ordering, "tea")
    with pytest.raises(InputError, match="made by a program"):
        session.resume()

    session.say("Something else")

    assert session.resume() is None


def test_a_notice_of_an_earlier_turn_of_a_program_is_not_sent_again(open_session: Callable[..., Session]) -> None:
    def asking_twice(_: Conversation, text: str) -> Program[str]:
        yield from notify("reading")
        reply = yield DefaultTurn(text)
        first = yield AskUser(reply.text)
        yield from notify("writing")
        return first

    session = open_session(app("state: { cost: int }\nreply: text+delta\n"), scripted_model("Which?", "Which?"))

    turns = [list(session.stream_run(asking_twice, text)) for text in ("tea", "green")]

    notices = [[event.text for event in events if isinstance(event, Notice)] for events in turns]
    assert notices[0][0] == "reading"
    assert "the model wrote no state" in notices[0][1]
    assert notices[1] == ["writing"]


def test_what_an_earlier_turn_paid_is_not_counted_again(open_session: Callable[..., Session]) -> None:
    def drafting(conversation: Conversation, text: str) -> Program[str]:
        draft, _ = yield from say(text)(conversation)
        fine = yield AskUser("Is it fine?", ("yes", "no"))
        return f"{draft.text} {fine}"

    session = open_session(app(""), scripted_model("A poem."))

    asked = session.run(drafting, "Write")
    done = session.run(drafting, "1")

    assert (asked.spent.requests, done.spent.requests, done.text) == (1, 0, "A poem. yes")


def test_the_sources_of_a_program_that_asked_are_all_that_it_was_told_and_retrieved(
    open_session: Callable[..., Session],
) -> None:
    def booking(_: Conversation, text: str) -> Program[Reply]:
        yield from perform(Retrieve("rooms", 3))
        size = yield AskUser("Which size?", ("small", "large"))
        return Reply(text, {"inn": "Seaview", "city": "Brenbay", "size": size, "cost": 7})

    fields = "".join(f"  {name}: {{ type: {of}, cite: true }}\n" for name, of in FIELDS.items())
    retriever = InMemoryRetriever([Passage("inns.md", "The Seaview has rooms.", id="p1")])
    session = open_session(app(f"documents: {{}}\nstate:\n{fields}"), retriever=retriever)

    session.run(booking, "A room in Brenbay, please.")
    done = session.run(booking, "1")

    assert done.state == {"inn": "Seaview", "city": "Brenbay", "size": "small", "cost": None}
    assert done.warnings == ("cost: no source holds 7, so it was left out",)
    assert [(each.kind, each.words) for name in ("inn", "city", "size") for each in session.why(name).sources] == [
        ("passage", "The Seaview has rooms."), ("user", "A room in Brenbay, please."), ("answer", "small"),
    ]  # fmt: skip


def test_an_option_that_the_user_chose_by_its_number_is_what_the_user_said(
    open_session: Callable[..., Session],
) -> None:
    def choosing(_: Conversation, text: str) -> Program[Reply]:
        size = yield AskUser("Which size?", ("small", "large"))
        return Reply(f"{text}, {size}", {"size": size})

    session = open_session(app("state: { size: { type: str, cite: true, from: user } }\n"))
    session.run(choosing, "tea")

    assert session.run(choosing, "2").state == {"size": "large"}


def test_a_program_takes_the_turn_of_its_app_with_tools_documents_and_state_as_a_part(
    open_session: Callable[..., Session],
) -> None:
    def drafting(_: Conversation, text: str) -> Program[Reply]:
        reply = yield DefaultTurn(text)
        sent = yield AskUser(f"{reply.text} Send it?", ("yes", "no"))
        done = yield from perform(CallTool("price", {"item": sent}))
        return replace(reply, text=f"{sent}: {done.text}")

    front = "tools: [calculator]\ndocuments: { policy: never }\nstate:\n"
    fields = "".join(f"  {name}: {{ type: {of}, cite: true }}\n" for name, of in FIELDS.items())
    delta = json.dumps({"inn": "Seaview", "cost": 42, "city": "Brenbay"})
    model = scripted_model(ToolCall("calculator", '{"expression": "6 * 7"}'), f"The Seaview, 42.\n@@delta\n{delta}")
    retriever = InMemoryRetriever([Passage("inns.md", "The Seaview has rooms.", id="p1")])
    session = open_session(app(front + fields), model, (price, calculator), retriever=retriever)

    asked = session.run(drafting, "A room with rooms?")
    done = session.run(drafting, "1")

    assert asked.text == "The Seaview, 42. Send it?\n1. yes\n2. no"
    assert (done.text, done.state["inn"], done.state["cost"], done.state["city"]) == ("yes: 3", "Seaview", 42, None)
    assert [(session.why(name).sources[0].kind) for name in ("inn", "cost")] == ["passage", "tool"]
    assert [spec.name for spec in model.requests[0].tools] == ["calculator", "price"]
    assert [turn.said for turn in session.conversation.turns] == [asked.text, done.text]
    assert [each.difference for each in session.replay()] == ["", "", ""]
    assert len(model.requests) == 2


@pytest.mark.parametrize("effect", [AskUser, DefaultTurn])
def test_what_only_the_turn_itself_may_do_is_refused_within_gather(drive: Drive, effect: Any) -> None:
    def both(_: Conversation, text: str) -> Program[str]:
        yield from gather([perform(effect(text))])
        return text

    with pytest.raises(ConfigError, match=f"no handler for effect {effect.__name__}; only the program of a turn"):
        drive(lambda: run_turn(both, "tea")(begin(app())), scripted_model())


@pytest.fixture
def open_session() -> Callable[..., Session]:
    import taiwa

    def opened(of: App, model: Any = None, tools: tuple[Any, ...] = (), retriever: Any = None) -> Session:
        client = taiwa.Client(model or scripted_model(), store=":memory:", retriever=retriever)
        return client.session(of, tools=list(tools))

    return opened


def test_only_the_program_that_asked_gets_the_answer(open_session: Callable[..., Session]) -> None:
    def counting(_: Conversation, text: str) -> Program[Reply]:
        found = yield from perform(CallTool("price", {"item": text}))
        often = yield AskUser("How often?")
        return Reply(f"{text}: {int(found.text) * int(often)}")

    session = open_session(app("tools: [price]\n"), scripted_model("A chat.", "More."), (price,))

    texts = [session.run(asking, "tea").text, session.run(counting, "rice").text, session.run(counting, "2").text]
    texts += [session.run(asking, "cake").text, session.say("Hello").text, session.run(asking, "milk").text]

    assert texts[0] == texts[3] == texts[5] == "Which size?\n1. small\n2. large"
    assert texts[1:3] + texts[4:5] == ["How often?", "rice: 8", "A chat."]
    assert not [each.difference for each in session.replay() if each.difference]
