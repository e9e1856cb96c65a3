from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.messages import ToolCall, ToolResult
from taiwa.models.http_api.stream_decoder import CallIds

CALLS = st.lists(
    st.builds(ToolCall, st.sampled_from("ab"), st.just("{}"), st.sampled_from(["", "x", "call_0", "call_1", "é"]))
)


def test_an_id_that_the_wire_takes_is_kept() -> None:
    ids = CallIds("[a-z]+", "call_{}")

    assert ids.of_call(ToolCall("clock", "{}", "abc")) == "abc"
    assert ids.of_result(ToolResult("noon", call="abc")) == "abc"


def test_a_call_without_an_id_gets_one_from_its_place() -> None:
    ids = CallIds(".+", "call_{}")

    assert [ids.of_call(ToolCall(name, "{}")) for name in ("clock", "dice")] == ["call_0", "call_1"]
    assert ids.of_result(ToolResult("5", name="dice")) == "call_1"
    assert ids.of_result(ToolResult("noon")) == "call_0"


def test_a_result_may_have_the_id_that_its_call_has_lost() -> None:
    ids = CallIds(".+", "call_{}")

    assert [ids.of_call(ToolCall("clock", "{}", name)) for name in ("abc", "")] == ["abc", "call_1"]
    assert ids.of_result(ToolResult("noon", call="lost")) == "call_1"


def test_a_result_belongs_to_the_call_of_its_tool_where_calls_have_lost_their_ids() -> None:
    ids = CallIds(".+", "call_{}")

    assert [ids.of_call(ToolCall(name, "{}")) for name in ("clock", "dice")] == ["call_0", "call_1"]
    assert ids.of_result(ToolResult("5", name="dice", call="x2")) == "call_1"
    assert ids.of_result(ToolResult("noon", name="clock", call="x1")) == "call_0"


def test_two_turns_with_the_same_ids_get_different_ids() -> None:
    ids = CallIds(".+", "call_{}")

    first = ids.of_call(ToolCall("clock", "{}", "call_0"))
    answer = ids.of_result(ToolResult("noon", call="call_0"))
    second = ids.of_call(ToolCall("clock", "{}", "call_0"))

    assert (first, answer, second) == ("call_0", "call_0", "call_1")
    assert ids.of_result(ToolResult("one", call="call_0")) == "call_1"


def test_an_id_of_another_form_is_replaced_in_call_and_result() -> None:
    ids = CallIds("[A-Za-z0-9]{9}", "call{:05d}")

    assert ids.of_call(ToolCall("clock", "{}", "functions.clock:0")) == "call00000"
    assert ids.of_result(ToolResult("noon", call="functions.clock:0")) == "call00000"


def test_a_result_that_answers_no_call_keeps_its_id() -> None:
    ids = CallIds(".+", "call_{}")

    assert ids.of_result(ToolResult("noon", call="lost")) == "lost"
    assert ids.of_result(ToolResult("noon")) == "call_0"


@given(CALLS, CALLS)
def test_ids_are_unique_and_the_same_in_every_later_request(calls: list[ToolCall], more: list[ToolCall]) -> None:
    earlier, later = CallIds("[a-z_0-9]+", "call_{}"), CallIds("[a-z_0-9]+", "call_{}")

    first = [earlier.of_call(call) for call in calls]
    second = [later.of_call(call) for call in calls + more]

    assert second[: len(first)] == first
    assert len(set(second)) == len(second)
