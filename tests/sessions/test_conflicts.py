"""Two at one conversation: the first commits, and the answer of the second, which was paid for, becomes a branch."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import taiwa
from taiwa.kernel.messages import Chunk, Request
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel, scripted_model

SAY = """
import sys
import taiwa

def answer(request):
    print("asked", flush=True)
    input()
    return f"to {sys.argv[2]}"

with taiwa.Client(taiwa.function_model(answer), store=sys.argv[1]) as client:
    try:
        print(client.session(name="t").say(sys.argv[2]).text)
    except taiwa.ConflictError as error:
        print(error)
"""


BOOK = """
import sys
from pathlib import Path

import taiwa
from taiwa.programs import AskUser, CallTool, perform, Complete
from taiwa.kernel.messages import Request, user

store, text, approve = sys.argv[1:]

@taiwa.tool(confirm=True)
def book(room: str) -> str:
    "Book a room."
    with Path(store + ".booked").open("a") as booked:
        booked.write(room)
    return "booked"

def turn(conversation, said):
    room = yield AskUser("Which room?")
    found = yield from perform(CallTool("book", {"room": room}))
    return (yield from perform(Complete(Request((user(found.text),))))).text

def answer(request):
    print("asked", flush=True)
    return input()

with taiwa.Client(taiwa.function_model(answer), store=store, tools=[book]) as client:
    try:
        print(client.session(name="t").run(turn, text, approve=approve or None).text)
    except taiwa.TaiwaError as error:
        print(type(error).__name__, error)
"""


def started(program: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start a process, and return it with the first line that it prints."""
    command = [sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline()


def saying(store: Path, text: str) -> subprocess.Popen[str]:
    """Start a process that says a text, and wait until it has asked its model."""
    process, line = started(SAY, str(store), text)
    assert line == "asked\n"
    return process


def said(store: Path, session: str) -> list[tuple[str | None, str | None]]:
    with taiwa.Client(scripted_model(), store=store) as client:
        return [(turn.user, turn.answer) for turn in client.session(name=session).turns]


def test_of_two_processes_the_second_is_told_the_branch_that_keeps_its_answer(tmp_path: Path) -> None:
    store = tmp_path / "taiwa.db"
    with taiwa.Client(scripted_model("to one"), store=store) as client:
        client.session(name="t").say("one")
    first, second = (saying(store, text) for text in ("two", "three"))  # both have asked before one is answered

    printed = [process.communicate("\n")[0] for process in (first, second)]

    message = "session 't': another program changed it first; this turn is kept as session 't-1'\n"
    assert printed == ["to two\n", message]
    assert said(store, "t") == [("one", "to one"), ("two", "to two")]
    assert said(store, "t-1") == [("one", "to one"), ("three", "to three")]
    with taiwa.Client(scripted_model(), store=store) as client:
        assert not any(turn.difference for turn in client.session(name="t-1").replay())


def test_of_two_tasks_the_second_is_told_the_branch_that_keeps_its_answer(tmp_path: Path) -> None:
    store = tmp_path / "taiwa.db"

    class Waits(ScriptedModel):
        async def astream(self, request: Request) -> AsyncIterator[Chunk]:
            if request.messages[-1].text == "next":
                await both_ask.wait()
            async for chunk in super().astream(request):
                yield chunk

    both_ask = asyncio.Barrier(2)

    async def talk() -> list[object]:
        model = Waits(("to one", "A", "B"), "scripted", ALL_CAPABILITIES, 7, None)
        async with taiwa.AsyncClient(model, store=store) as client:
            await (await client.session(name="t")).say("one")
            both = [await client.session(name="t") for _ in range(2)]
            return await asyncio.gather(*(session.say("next") for session in both), return_exceptions=True)

    results = asyncio.run(talk())

    (won,) = [result for result in results if isinstance(result, taiwa.TurnResult)]
    (lost,) = [result for result in results if isinstance(result, taiwa.ConflictError)]
    assert "this turn is kept as session 't-1'" in str(lost)
    assert {said(store, "t")[-1], said(store, "t-1")[-1]} == {("next", "A"), ("next", "B")}
    assert said(store, "t")[-1] == ("next", won.text)


def test_two_that_begin_a_conversation_of_one_name_both_keep_their_answers(tmp_path: Path) -> None:
    store = tmp_path / "taiwa.db"

    def meanwhile(_: Request) -> str:
        with taiwa.Client(scripted_model("first"), store=store) as other:
            other.session(name="t").say("theirs")
        return "second"

    with (
        taiwa.Client(scripted_model(meanwhile), store=store) as client,
        pytest.raises(taiwa.ConflictError, match="kept as session 't-1'"),
    ):
        client.session(name="t").say("mine")

    assert said(store, "t") == [("theirs", "first")]
    assert said(store, "t-1") == [("mine", "second")]


@pytest.mark.parametrize("paused", [True, False])
def test_a_call_that_two_processes_approve_or_answer_is_made_by_one(tmp_path: Path, paused: bool) -> None:
    store = str(tmp_path / "taiwa.db")
    lines = [started(BOOK, store, "Hello", "")]
    if paused:  # at the call, after the question was answered
        lines.append(started(BOOK, store, "A", ""))

    first, asked = started(BOOK, store, "A", "always")
    second, refused = started(BOOK, store, "A", "always")

    assert [line for _, line in lines[:1]] == ["Which room?\n"]
    assert all(line.startswith("ApprovalRequiredError") for _, line in lines[1:])
    assert (asked, refused) == (
        "asked\n",
        "ConflictError session 't': another program completes a turn; wait for its end\n",
    )
    assert first.communicate("Done.\n")[0] == "Done.\n"
    assert Path(f"{store}.booked").read_text() == "A"
    for process in (second, *(each for each, _ in lines)):
        process.communicate()
