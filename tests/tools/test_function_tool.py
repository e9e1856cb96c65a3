import asyncio
import datetime
import enum
import json
import threading
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import numpy
import pytest
from pydantic import Field

from taiwa import tool
from taiwa.kernel.errors import InputError, LimitError, ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.kernel.runtime import AsyncTool, Tool
from taiwa.kernel.serialization import Json
from taiwa.tools.function_tool import FunctionTool


@dataclass(frozen=True)
class Place:
    city: str
    floor: int = 0


@tool
def describe(place: Place, style: Literal["short", "long"] = "short") -> str:
    """Describe a place.

    In a few words.
    """
    return f"{place.city}:{place.floor}:{style}"


def failing(error: Exception) -> FunctionTool[[], str]:
    def fail() -> str:
        """Fail."""
        raise error

    return tool(fail)


def test_the_signature_gives_the_specification() -> None:
    spec = describe.spec

    assert (spec.name, spec.description) == ("describe", "Describe a place.\n\nIn a few words.")
    assert spec.parameters["required"] == ["place"]
    assert spec.parameters["additionalProperties"] is False
    properties = spec.parameters["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["place", "style"]


def test_a_tool_may_have_another_name_and_description_than_its_function() -> None:
    @tool(name="plus", description="Add two numbers.", isolated=False)
    def add(a: int, b: int) -> int:
        return a + b

    assert (add.spec.name, add.spec.description) == ("plus", "Add two numbers.")
    assert (add.preset(b=1).spec.name, add.preset(b=1).spec.description) == ("plus", "Add two numbers.")
    assert add.call({"a": 1, "b": 2}) == ToolResult("3", "plus", value=3)


def test_a_function_tool_is_a_tool() -> None:
    one: Tool = describe

    assert one.spec.name == "describe"


def test_json_arguments_become_the_types_of_the_parameters() -> None:
    assert describe.call({"place": {"city": "Nara", "floor": 2}}).text == "Nara:2:short"


def test_the_function_can_still_be_called_as_one() -> None:
    assert describe(Place("Nara"), style="long") == "Nara:0:long"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({}, "$.place"),
        ({"place": {"city": 1}}, "$.place.city"),
        ({"place": {"city": "Nara"}, "style": "loud"}, "$.style"),
        ({"place": {"city": "Nara"}, "extra": 1}, "$.extra"),
        ({"place": "Nara"}, "$.place"),
    ],
)
def test_arguments_that_do_not_fit_are_told_with_their_place(arguments: dict[str, Json], where: str) -> None:
    with pytest.raises(ToolError) as caught:
        describe.call(arguments)

    assert caught.value.code == "bad_arguments"
    assert where in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint == "parameters: place, style"


@pytest.mark.parametrize(
    "given", ["x" * 1_000_001, ["x"] * 600_000, {"x" * 999_999: {"y": "z"}}, json.loads("[" * 900 + "]" * 900)]
)
def test_arguments_that_are_too_long_are_not_even_checked(given: Json) -> None:
    with pytest.raises(ToolError) as caught:
        describe.call({"place": given})

    assert caught.value.code == "too_long"


def test_constraints_on_a_parameter_hold() -> None:
    @tool
    def roll(sides: Annotated[int, Field(ge=2)]) -> int:
        """Roll a die."""
        return sides

    with pytest.raises(ToolError, match=r"\$\.sides"):
        roll.call({"sides": 1})


@pytest.mark.parametrize(
    ("given_value", "kind", "result"),
    [
        ("words", str, ToolResult("words", "give", value="words")),
        (3, int, ToolResult("3", "give", value=3)),
        ([1, 2], list[int], ToolResult("[1,2]", "give", value=[1, 2])),
        (Place("奈良"), Place, ToolResult('{"city":"奈良","floor":0}', "give", value={"city": "奈良", "floor": 0})),
        (None, None, ToolResult("null", "give")),
        (ToolResult("x", value="y"), ToolResult, ToolResult("x", "give", value="y")),
    ],
)
def test_a_result_is_text_and_value(given_value: object, kind: Any, result: ToolResult) -> None:
    def give() -> object:
        """Give something."""
        return given_value

    give.__annotations__["return"] = kind

    assert tool(give).call({}) == result


@pytest.mark.parametrize(
    "error", [KeyError("secret"), ZeroDivisionError("secret"), OSError("secret"), LimitError("requests", 1, 1)]
)
def test_a_failure_tells_that_it_failed_and_never_why(error: Exception) -> None:
    with pytest.raises(ToolError) as caught:
        failing(error).call({})

    assert (caught.value.message, caught.value.code, caught.value.hint) == ("fail failed", "internal", "")
    assert caught.value.__cause__ is error


def test_a_tool_error_of_the_function_is_passed_on() -> None:
    error = ToolError("too hot", code="heat", hint="wait")

    with pytest.raises(ToolError) as caught:
        failing(error).call({})

    assert caught.value is error


def test_a_result_of_another_type_is_a_failure() -> None:
    @tool
    def count() -> int:
        """Count."""
        return cast("int", "many")

    with pytest.raises(ToolError, match="count failed"):
        count.call({})


def untyped(number, other: int) -> str:  # type: ignore[no-untyped-def]
    """Have no type."""
    return str(number)


def without_result(number: int):  # type: ignore[no-untyped-def]
    """Have no result."""


def silent(number: int) -> int:
    return number


def many(*numbers: int) -> int:
    """Take any number."""
    return sum(numbers)


def unknown(number: int) -> int:
    """Name what is not there."""
    return number


unknown.__annotations__["number"] = "Missing"


def odd(number: Callable[[int], int]) -> int:
    """Take what JSON cannot say."""
    return number(0)


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (untyped, "untyped: 'number' needs a type"),
        (without_result, "'return' needs a type"),
        (silent, "needs a docstring"),
        (many, "'numbers' must be an ordinary parameter"),
        (unknown, "cannot resolve the types of unknown: name 'Missing'"),
        (odd, "cannot be an output type"),
        (lambda: 1, "'return' needs a type"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(function: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        tool(function)


@pytest.mark.parametrize("name", ["a b", "<<", "é", "9lives", "x" * 65])
def test_a_name_that_a_model_could_not_call_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="invalid tool name"):
        named(name)


def named(name: str) -> FunctionTool[[], str]:
    def give() -> str:
        """Give."""
        return ""

    return FunctionTool(give, name)


@tool
async def later(number: int, plus: int = 1) -> int:
    """Come later."""
    await asyncio.sleep(0)
    return number + plus


def test_an_asynchronous_function_is_a_tool_on_a_loop_of_its_own_and_on_one_that_runs() -> None:
    wanted = ToolResult("3", "later", value=3)
    assert later.call({"number": 2}) == wanted
    assert later.preset(plus=5).call({"number": 2}).value == 7

    async def play() -> list[object]:
        assert isinstance(later, AsyncTool)
        return [later.call({"number": 2}), await later.acall({"number": 2}), await later(2)]

    assert asyncio.run(play()) == [wanted, wanted, 3]


def test_arguments_and_failures_of_an_asynchronous_function_are_those_of_a_plain_one() -> None:
    @tool(characters=3)
    async def fail(how: str) -> str:
        """Fail."""
        if how == "long":
            return "more than three"
        raise {"own": ToolError("sold out", code="sold_out"), "late": TimeoutError("of its own")}[how]

    for how, code in (("own", "sold_out"), ("late", "internal"), ("long", "too_large"), ("other", "internal")):
        with pytest.raises(ToolError) as caught:
            fail.call({"how": how})
        assert caught.value.code == code
    with pytest.raises(ToolError) as caught:
        fail.call({})
    assert caught.value.code == "bad_arguments"
    with pytest.raises(InputError, match="is asynchronous and runs in this process"):
        tool(isolated=True)(later.function)


def test_an_asynchronous_function_is_cancelled_at_its_deadline() -> None:
    ended: list[str] = []

    @tool(seconds=0.01)
    async def wait() -> str:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return ""

    for _ in range(2):
        with pytest.raises(ToolError, match="wait timed out"):
            wait.call({})
    assert ended == ["cancelled", "cancelled"]


def test_an_asynchronous_function_that_blocks_its_loop_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taiwa.tools.function_tool.BLOCKED_SECONDS", 0.0)
    go = threading.Event()

    @tool(seconds=0.01)
    async def block() -> str:
        """Block."""
        go.wait()
        return ""

    with pytest.raises(ToolError, match="block timed out"):
        block.call({})
    go.set()


def test_a_tool_that_needs_approval_keeps_that_in_its_presets() -> None:
    @tool(confirm=True)
    def send(to: str, text: str) -> str:
        """Send a mail."""
        return to + text

    assert send.confirm
    assert send.preset(to="a").confirm
    assert not tool(send.function).confirm


class Town(typing.TypedDict):
    city: str
    zip: typing.NotRequired[str]


def test_a_plain_typed_dict_is_a_parameter_and_a_result() -> None:
    @tool(isolated=False)
    def move(place: Town, more: list[Town]) -> Town:
        """Move to a place."""
        return more[0] if more else place

    assert move.call({"place": {"city": "Nara"}, "more": [{"city": "Kobe"}]}).value == {"city": "Kobe"}
    with pytest.raises(ToolError, match="city"):
        move.call({"place": {}, "more": []})


def test_the_default_of_a_parameter_is_in_its_schema() -> None:
    @tool(isolated=False)
    def book(
        seats: int = 2, note: str | None = None, when: datetime.date = datetime.date(2026, 1, 2), by: object = ...
    ) -> str:
        """Book seats."""
        return str(seats)

    properties = cast("dict[str, dict[str, Any]]", book.spec.parameters["properties"])
    assert [each.get("default", "none") for each in properties.values()] == [2, None, "2026-01-02", "none"]
    assert book.call({"seats": 3.0}).text == "3"


class Unit(enum.Enum):
    CM = "cm"
    M = "m"


def test_the_default_of_a_parameter_with_a_named_type_is_in_its_schema() -> None:
    @tool(isolated=False)
    def measure(unit: Unit = Unit.M, other: list[Unit] | None = None) -> str:
        """Measure."""
        return unit.value

    @tool(isolated=False)
    def show(unit: Unit = Unit.M) -> str:
        """Show."""
        return unit.value

    unit = {"type": "string", "enum": ["cm", "m"], "default": "m"}
    assert cast("dict[str, Any]", measure.spec.parameters)["properties"]["unit"] == unit
    assert "$defs" in measure.spec.parameters
    assert cast("dict[str, Any]", show.spec.parameters)["properties"] == {"unit": unit}
    assert not show.spec.parameters.get("$defs")


def test_the_numbers_and_arrays_of_numpy_are_results() -> None:
    @tool(isolated=False)
    def count() -> int:
        """Count."""
        return cast("int", numpy.int64(3))

    @tool(isolated=False)
    def table() -> dict[str, Any]:
        """Make a table."""
        return {"rows": [numpy.array([1, 2])], "sum": numpy.float32(1.5), "full": numpy.bool_(True)}

    @dataclass
    class Point:
        x: float

    @tool(isolated=False)
    def points() -> Any:
        """List points by number."""
        return {numpy.int64(1): Point(numpy.float32(1.5)), 2: {numpy.int64(3)}}

    @tool(isolated=False)
    def point() -> Point:
        """Return a point."""
        return Point(numpy.float32(1.5))

    @tool(isolated=False)
    def array() -> numpy.ndarray[Any, Any]:
        """Return an array."""
        return numpy.array([1.5, 2])

    @tool(isolated=False)
    def scalar() -> numpy.float32:
        """Return a number."""
        return numpy.float32(1.5)

    @tool(isolated=False)
    def word() -> int:
        """Return a word."""
        return cast("int", "three")

    with pytest.raises(ToolError, match="word failed"):
        word.call({})
    assert points.call({}).value == {"1": {"x": 1.5}, "2": [3]}
    assert point.call({}).value == {"x": 1.5}
    assert (array.call({}).value, scalar.call({}).value) == ([1.5, 2.0], 1.5)
    assert count.call({}).value == 3
    assert table.call({}).value == {"rows": [[1, 2]], "sum": 1.5, "full": True}


def test_a_tool_in_this_process_cannot_end_it() -> None:
    @tool(isolated=False)
    def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    @tool
    async def leave_later() -> str:
        """Leave."""
        raise SystemExit(3)

    for call in (lambda: leave.call({}), lambda: asyncio.run(cast("AsyncTool", leave_later).acall({}))):
        with pytest.raises(ToolError) as caught:
            call()
        assert caught.value.code == "crashed"
