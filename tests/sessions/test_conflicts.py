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


def saying(store: Path, text: str) -> subprocess.Popen[str]:
    """Start a process that says a text, and wait until it has asked its model."""
    command = [sys.executable, "-c", SAY, str(store), text]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
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
