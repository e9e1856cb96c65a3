"""Values: usage that adds up, and chunks that are joined into a response."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.messages import (
    Chunk,
    JsonSchema,
    Message,
    Request,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    Usage,
    assistant,
    collect_response,
    system,
    user,
)
from taiwa.kernel.serialization import canonical, parse_json, record, restore
from taiwa.kernel.usage_limits import RunUsage
from tests.strategies import chunks, requests, responses, usages

costs = st.none() | st.integers(0, 10**12)
bills = st.builds(
    RunUsage, st.integers(0, 99), st.integers(0, 99), usages, st.integers(0, 9), costs, st.integers(0, 99)
)


@given(usages, usages, usages)
def test_usage_is_a_monoid(left: Usage, middle: Usage, right: Usage) -> None:
    assert (left + middle) + right == left + (middle + right)
    assert left + Usage() == left == Usage() + left


@given(bills, bills, bills)
def test_bills_are_a_monoid(left: RunUsage, middle: RunUsage, right: RunUsage) -> None:
    assert (left + middle) + right == left + (middle + right)
    assert left + RunUsage() == left == RunUsage() + left


def test_a_cost_that_is_not_known_makes_the_sum_unknown() -> None:
    assert (RunUsage(cost=5) + RunUsage(cost=None)).cost is None


def test_chunks_are_joined_into_a_response() -> None:
    call = ToolCall("now", "{}", "1")
    end = StreamEnd("tool_calls", None, Usage(3, 4), "m", (call,))

    response = collect_response(
        [ThinkingDelta("Let me "), TextDelta("One "), ThinkingDelta("see."), TextDelta("moment."), end]
    )

    assert response.message == Message("assistant", (Thinking("Let me see."), Text("One moment."), call))
    assert response.text == "One moment."
    assert response.message.tool_calls == (call,)
    assert (response.finish, response.usage, response.model) == ("tool_calls", Usage(3, 4), "m")


@given(st.lists(chunks, max_size=6))
def test_a_stream_without_an_end_is_interrupted_and_its_usage_unknown(stream: list[Chunk]) -> None:
    cut = [chunk for chunk in stream if not isinstance(chunk, StreamEnd)]

    response = collect_response(cut)

    assert (response.finish, response.usage) == ("interrupted", None)
    assert response.text == "".join(chunk.text for chunk in cut if isinstance(chunk, TextDelta))


@given(st.lists(st.text(max_size=5), max_size=6))
def test_how_a_stream_was_cut_into_chunks_makes_no_difference(pieces: list[str]) -> None:
    whole = reduce(lambda left, right: left + right, pieces, "")

    assert collect_response([*(TextDelta(piece) for piece in pieces), StreamEnd()]) == collect_response(
        [TextDelta(whole), StreamEnd()]
    )


@given(requests)
def test_equal_requests_have_equal_digests(request: Request) -> None:
    twin = copy.deepcopy(request)

    assert twin == request
    assert twin.digest == request.digest
    assert replace(request, prefix=f"{request.prefix}x").digest != request.digest


@given(responses)
def test_values_can_be_copied_and_pickled(item: object) -> None:
    assert copy.copy(item) == copy.deepcopy(item) == pickle.loads(pickle.dumps(item)) == item


def test_a_value_cannot_be_changed() -> None:
    message = user("hello")

    with pytest.raises(FrozenInstanceError, match=r"dataclasses\.replace"):
        message.role = "system"  # type: ignore[misc]


def test_messages_are_made_by_the_name_of_their_role() -> None:
    assert [make("x").role for make in (system, user, assistant)] == ["system", "user", "assistant"]


def test_a_schema_keeps_the_order_of_its_members_in_a_record() -> None:
    schema = JsonSchema({"properties": {"reason": {"type": "string"}, "answer": {"type": "string"}}})

    restored = restore(parse_json(canonical(record(schema))))

    assert restored == schema
    assert list(restored.schema["properties"]) == ["reason", "answer"]
    assert replace(restored, schema={"b": 1, "a": 2}).schema == {"b": 1, "a": 2}
