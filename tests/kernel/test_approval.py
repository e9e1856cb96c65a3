"""Calls of tools that need approval, on both runtimes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from taiwa.kernel.approval import ApprovalRequest, Approve
from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Program, gather
from taiwa.kernel.errors import ApprovalRequiredError, ConfigError, InputError, ToolError
from taiwa.kernel.execution import Entry, Journal
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json, read_exact_json
from tests.kernel.fakes import Drive, call


@dataclass
class Deleting:
    """A tool that needs approval, and remembers what it was called with."""

    name: str = "delete"
    confirm: bool = True
    called: list[Mapping[str, Json]] = field(default_factory=list[Mapping[str, Json]])

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, "Delete a file.", {"type": "object"})

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        self.called.append(arguments)
        return ToolResult(f"deleted {arguments['file']}", self.name)


class AsyncDeleting(Deleting):
    """The same on an event loop."""

    async def acall(self, arguments: Mapping[str, Json]) -> ToolResult:
        return self.call(arguments)


KINDS = [Deleting, AsyncDeleting]


def delete(*files: str) -> Program[tuple[ToolResult, ...]]:
    """Delete files at the same time."""
    return (yield from gather(call("delete", file=each) for each in files))


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_needs_approval_is_made_only_if_it_is_approved(drive: Drive, kind: type[Deleting]) -> None:
    tool, asked = kind(), list[ApprovalRequest]()

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return request.arguments["file"] == "a"

    assert drive.run(call("delete", file="a"), tools=[tool], approve=approve).text == "deleted a"
    with pytest.raises(ToolError, match="the user refused the call of delete") as refused:
        drive.run(call("delete", file="b"), tools=[tool], approve=approve)
    assert refused.value.code == "not_approved"
    assert tool.called == [{"file": "a"}]
    assert asked[0] == ApprovalRequest("delete", {"file": "a"}, "Delete a file.")


def test_the_call_to_approve_is_shown_with_its_digits() -> None:
    arguments = cast("dict[str, Json]", read_exact_json('{"amount": 12345678901234567890.10}'))

    assert str(ApprovalRequest("pay", arguments)) == 'pay({"amount": 12345678901234567890.10})'


@pytest.mark.parametrize("kind", KINDS)
def test_all_calls_or_none_may_be_approved(drive: Drive, kind: type[Deleting]) -> None:
    tool = kind()

    assert drive.run(call("delete", file="a"), tools=[tool], approve="always").text == "deleted a"
    with pytest.raises(ToolError):
        drive.run(call("delete", file="b"), tools=[tool], approve="never")
    assert tool.called == [{"file": "a"}]


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_decision_the_run_ends_before_the_calls_and_can_be_continued(
    drive: Drive, kind: type[Deleting]
) -> None:
    tool, plain, entries = kind(), kind(confirm=False), list[Entry]()

    def program() -> Program[str]:
        first = yield from call("read", file="x")
        results = yield from delete("a", "b")
        return " ".join(each.text for each in (first, *results))

    plain.name = "read"
    with pytest.raises(ApprovalRequiredError) as waiting:
        drive.run(program(), Journal((), entries.append), tools=[tool, plain])
    assert [each.arguments for each in waiting.value.calls] == [{"file": "a"}, {"file": "b"}]
    assert str(waiting.value).startswith('approval is required for delete({"file": "a"}), delete({"file": "b"})')
    assert (tool.called, len(entries)) == ([], 1)

    text = drive.run(program(), Journal(tuple(entries)), tools=[tool, plain], approve="always")

    assert text == "deleted x deleted a deleted b"
    assert plain.called == [{"file": "x"}]


def test_calls_that_need_no_approval_are_finished_before_the_run_ends(drive: Drive) -> None:
    tool, plain, entries = Deleting(), Deleting("read", confirm=False), list[Entry]()

    def program() -> Program[int]:
        return len((yield from gather([call("delete", file="a"), call("read", file="b"), call("read", file="c")])))

    with pytest.raises(ApprovalRequiredError):
        drive.run(program(), Journal((), entries.append), tools=[tool, plain])

    assert (len(plain.called), len(entries)) == (2, 2)


def test_a_waiting_call_is_dropped_with_its_group(drive: Drive) -> None:
    def program() -> Program[str]:
        try:
            yield from gather([call("delete", file="a"), call("unknown")])
        except ToolError:
            return (yield from call("read", file="b")).text
        return ""

    assert drive.run(program(), tools=[Deleting(), Deleting("read", confirm=False)]) == "deleted b"


def test_an_asynchronous_function_may_approve_on_an_event_loop() -> None:
    async def approve(request: ApprovalRequest) -> bool | None:
        await asyncio.sleep(0)
        return request.arguments["file"] == "a"

    runtime = AsyncRuntime(tools=[Deleting()], approve=approve)

    assert asyncio.run(runtime.run(call("delete", file="a"))).text == "deleted a"
    with pytest.raises(ConfigError, match="asynchronous"):
        Runtime(tools=[Deleting()], approve=approve).run(call("delete", file="a"))


@pytest.mark.parametrize("wrong", ["ask", True, 1])
def test_what_is_not_a_decision_is_refused(wrong: Any) -> None:
    approve: Approve = wrong

    with pytest.raises(InputError, match="approve must be a function"):
        Runtime(approve=approve)
