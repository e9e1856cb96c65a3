"""What a program sees of its runtime, on both drivers."""

from contextlib import suppress
from itertools import repeat

import pytest

from taiwa.kernel.effects import (
    CallTool,
    Complete,
    Effect,
    GetCapabilities,
    Program,
    Retrieve,
    notify,
    perform,
)
from taiwa.kernel.errors import ConfigError, InputError, LimitError, ModelError, TaiwaError, ToolError, UnknownToolError
from taiwa.kernel.execution import Journal, replay
from taiwa.kernel.messages import Notice, Passage, Request, Response, ToolResult, ToolSpec, Usage, assistant, user
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import Billing, RunUsage, UsageLimits
from taiwa.models.scripted import scripted_model
from tests.kernel.fakes import Double, Drive, Echo, ask, call


class Shout:
    """A tool."""

    spec = ToolSpec("shout", "Say it louder.", {"type": "object"})

    def call(self, arguments: "dict[str, Json]") -> ToolResult:
        if "text" not in arguments:
            raise ToolError("there is no text", code="missing", hint="give text")
        return ToolResult(str(arguments["text"]).upper(), "shout")


class Shelf:
    """A retriever."""

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        return (Passage("book", query),) * k


def test_a_program_is_sent_the_answers_of_its_effects(drive: Drive) -> None:
    def program() -> Program[tuple[str, str]]:
        first = yield from ask("one")
        return first, (yield from ask(f"{first}two"))

    assert drive.run(program(), model=Echo()) == ("one!", "one!two!")


def test_a_program_without_effects_needs_no_edges(drive: Drive) -> None:
    def program() -> Program[int]:
        return 3
        yield

    assert drive.run(program()) == 3


def test_tools_and_passages_come_from_their_edges(drive: Drive) -> None:
    def program() -> Program[tuple[str, int]]:
        result = yield from call("shout", text="hey")
        found = yield from perform(Retrieve("hey", 2))
        return result.text, len(found.passages)

    assert drive.run(program(), tools=[Shout()], retriever=Shelf()) == ("HEY", 2)


def test_abilities_are_those_of_the_model(drive: Drive) -> None:
    def program() -> Program[frozenset[str]]:
        return (yield from perform(GetCapabilities()))

    assert drive.run(program(), model=Echo()) == {"stop"}


def test_notices_reach_observers_and_the_program_continues(drive: Drive) -> None:
    seen: list[object] = []

    def program() -> Program[str]:
        yield from notify("look", code="test", warning=True)
        return "done"

    assert drive.run(program(), observers=[seen.append]) == "done"
    assert seen == [Notice("look", "warning", "test")]


def test_a_handler_answers_an_effect_of_ones_own(drive: Drive) -> None:
    def program() -> Program[int]:
        return (yield from perform(Double(4))) + (yield from perform(Double(5)))

    assert drive.run(program(), handlers={Double: lambda effect: effect.number * 2}) == 18


def test_a_handler_takes_the_place_of_an_edge(drive: Drive) -> None:
    handlers = {Complete: lambda _: Response(assistant("from the handler"))}

    assert drive.run(ask("hi"), model=Echo(), handlers=handlers) == "from the handler"


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        (lambda: ask("hi"), "pass the runtime `model=`"),
        (lambda: perform(GetCapabilities()), "pass the runtime `model=`"),
        (lambda: perform(Retrieve("hi")), "`retriever=`"),
        (lambda: perform(Double(1)), "no handler for effect Double"),
        (lambda: repeat_effect("no effect"), "no handler for effect str"),
    ],
)
def test_an_edge_that_is_missing_is_named(drive: Drive, program: object, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        drive.run(program())  # type: ignore[operator]


def repeat_effect(item: object) -> Program[object]:
    return (yield item)  # type: ignore[misc]


def test_the_error_of_a_handler_is_thrown_into_the_program(drive: Drive) -> None:
    def program() -> Program[str]:
        try:
            yield from call("shout")
        except ToolError as error:
            return f"{error.code}: {error.hint}"
        return "no error"

    assert drive.run(program(), tools=[Shout()]) == "missing: give text"


class Broken:
    """A tool that fails in a way of its own."""

    spec = ToolSpec("broken", "Fail.", {"type": "object"})

    def __init__(self, gives: object) -> None:
        self._gives = gives

    def call(self, arguments: "dict[str, Json]") -> ToolResult:
        if isinstance(self._gives, Exception):
            raise self._gives
        return self._gives  # type: ignore[return-value]  # that is what is wrong with it


@pytest.mark.parametrize(("gives", "told"), [(ValueError("secret"), "ValueError: secret"), ("text", "returned a str")])
def test_the_trace_of_a_failed_tool_is_hidden_from_the_model(drive: Drive, gives: object, told: str) -> None:
    journal = Journal()

    with pytest.raises(ToolError) as caught:
        drive.run(call("broken"), journal, tools=[Broken(gives)])

    assert (caught.value.message, caught.value.code, caught.value.hint) == ("broken failed", "internal", "")
    assert told in caught.value.trace
    assert told in str(journal.entries[0].record())


def test_an_error_of_ours_that_comes_out_of_a_tool_stays_what_it_is(drive: Drive) -> None:
    with pytest.raises(ConfigError, match="set up"):
        drive.run(call("broken"), tools=[Broken(ConfigError("set up something"))])


def test_an_unknown_tool_is_an_error_that_names_the_known_ones(drive: Drive) -> None:
    with pytest.raises(UnknownToolError) as caught:
        drive.run(call("whisper"), tools=[Shout()])

    assert caught.value.hint == "tools: shout"


def test_the_error_of_a_model_in_mid_answer_is_thrown_into_the_program(drive: Drive) -> None:
    def program() -> Program[str]:
        try:
            return (yield from ask("please fail"))
        except ValueError as error:
            return f"caught {error}"

    assert drive.run(program(), model=Echo()) == "caught please fail"


def test_an_error_that_no_program_catches_ends_the_run(drive: Drive) -> None:
    model = scripted_model(ModelError("down"))

    with pytest.raises(ModelError, match="down"):
        drive.run(ask("hi"), model=model)


def test_an_error_of_the_program_itself_ends_the_run(drive: Drive) -> None:
    def program() -> Program[str]:
        answer = yield from ask("hi")
        raise InputError(f"not {answer}")

    with pytest.raises(InputError, match="not hi!"):
        drive.run(program(), model=Echo())


@pytest.mark.parametrize("wrong", [StopIteration, StopAsyncIteration])
def test_an_error_that_means_the_end_elsewhere_does_not_end_a_program_silently(
    drive: Drive, wrong: type[Exception]
) -> None:
    def handler(_: Effect[object]) -> object:
        raise wrong

    with pytest.raises((RuntimeError, StopAsyncIteration)):
        drive.run(perform(Double(1)), handlers={Double: handler})


def test_an_error_carries_the_bill_of_its_run(drive: Drive) -> None:
    def program() -> Program[str]:
        yield from ask("one")
        yield from call("shout", text="two")
        return (yield from call("whisper"))  # type: ignore[return-value]

    with pytest.raises(TaiwaError) as caught:
        drive.run(
            program(),
            model=Echo(usage=Usage(3, 4)),
            tools=[Shout()],
            billing=Billing(lambda _, usage: usage.output_tokens),
        )

    spent = caught.value.spent
    assert isinstance(spent, RunUsage)
    assert (spent.requests, spent.tool_calls, spent.usage, spent.cost) == (1, 2, Usage(3, 4), 4)


def test_a_thousand_effects_in_a_row_are_a_loop(drive: Drive) -> None:
    def program() -> Program[int]:
        total = 0
        for number in range(1000):
            total += yield from perform(Double(number))
        return total

    assert drive.run(program(), handlers={Double: lambda effect: effect.number * 2}) == 999_000


def test_a_finally_block_runs_when_the_run_ends_by_an_error(drive: Drive) -> None:
    closed: list[str] = []

    def program() -> Program[str]:
        try:
            return (yield from ask("please fail"))
        finally:
            closed.append("yes")

    with pytest.raises(ValueError, match="please fail"):
        drive.run(program(), model=Echo())

    assert closed == ["yes"]


def test_an_error_that_was_raised_can_be_answered_by_another_effect(drive: Drive) -> None:
    def program() -> Program[str]:
        try:
            return (yield from ask("please fail"))
        except ValueError:
            return (yield from ask("again"))

    journal = Journal()

    assert drive.run(program(), journal, model=Echo()) == "again!"
    assert replay(program(), journal) == "again!"


def test_a_model_that_says_nothing_gives_an_empty_answer_of_unknown_cost(drive: Drive) -> None:
    def program() -> Program[Response]:
        return (yield from perform(Complete(Request((user(""),)))))

    response = drive.run(program(), model=scripted_model(""))

    assert (response.text, response.usage, response.finish) == ("", None, "stop")


def test_an_endless_program_is_ended_by_its_limits(drive: Drive) -> None:
    def program() -> Program[str]:
        for text in repeat("more"):
            yield from ask(text)
        return "never"

    with pytest.raises(LimitError, match="limit on requests is reached: 7 of 7"):
        drive.run(program(), model=Echo(), limits=UsageLimits(requests=7))


def test_a_call_that_names_a_tool_is_counted_before_it_is_known(drive: Drive) -> None:
    def program() -> Program[str]:
        for _ in range(3):
            with suppress(UnknownToolError):
                yield from perform(CallTool("nothing", {}))
        return "done"

    with pytest.raises(LimitError, match="tool calls"):
        drive.run(program(), limits=UsageLimits(tool_calls=2))


def test_a_blocking_run_refuses_an_asynchronous_handler() -> None:
    async def double(effect: Double) -> int:
        return effect.number * 2

    with pytest.raises(ConfigError, match="the handler of Double is asynchronous; run the program on an AsyncRuntime"):
        Runtime(handlers={Double: double}).run(perform(Double(1)))


def test_calls_and_searches_are_logged_without_what_they_say(drive: Drive, caplog: pytest.LogCaptureFixture) -> None:
    def program() -> Program[None]:
        yield from ask("a secret")
        yield from perform(Retrieve("a secret", 2))
        yield from call("shout", text="a secret")
        with suppress(ToolError):
            yield from call("shout")
        yield from notify("a secret")

    with caplog.at_level("INFO", "taiwa"):
        drive.stream(program(), model=Echo(), tools=[Shout()], retriever=Shelf())
        drive.run(program(), model=Echo(), tools=[Shout()], retriever=Shelf())

    records = [(record.name, record.getMessage().split(", 0.")[0]) for record in caplog.records]
    assert (
        records
        == [
            ("taiwa.effects", "complete echo: 1 input and 1 output tokens"),
            ("taiwa.effects", "retrieve: 2 passages"),
            ("taiwa.effects", "call-tool shout"),
            ("taiwa.effects", "call-tool shout"),
        ]
        * 2
    )
    assert "failed (tool)" in caplog.text
    assert "secret" not in caplog.text
