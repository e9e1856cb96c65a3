"""Calls in the text of an answer: a streamed answer is the text that a whole one is, so a client that resends it is known again."""

import json
from pathlib import Path
from typing import Any

import pytest

from taiwa.kernel.messages import Capability, Message, Response, Text, ToolCall
from taiwa.models.scripted import scripted_model
from tests.server.serving import serving

CALL = ToolCall("calculator", '{"expression": "12*12"}', "a")
CALLED = Response(Message("assistant", (Text("Let me see."), CALL)), "tool_calls")
IN_TEXT = ("First, <<calculator: 12*12>>", " so it is 144.")


def streamed(response: Any) -> str:
    chunks = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    return "".join(each["delta"].get("content") or "" for chunk in chunks for each in chunk["choices"])


@pytest.mark.parametrize(
    ("app", "capabilities", "answers"),
    [
        ("desk", [], IN_TEXT), ("desk", ["prefix"], IN_TEXT), ("desk", ["tools"], (CALLED, "It is 144.")),
        ("solve", [], (*IN_TEXT, "144")), ("solve", ["tools"], (CALLED, "It is 144.", "144")),
        ("solve", ["prefix"], ("First, <<calculator: 12*12>>", " so it is that.", " 144")),
    ],
)  # fmt: skip
def test_a_streamed_answer_with_calls_is_the_stored_one_and_known_again(
    tmp_path: Path, app: str, capabilities: list[Capability], answers: tuple[Any, ...]
) -> None:
    path = tmp_path / "desk.md"
    path.write_text("---\ntaiwa: 1\ntools: [calculator]\nstate: { total: int }\nreply: text+delta\n---\nHelp.\n")
    said: list[dict[str, Any]] = [{"role": "user", "content": "What is 12*12?"}]
    model = scripted_model(*answers, *["Again: 144."] * 5, capabilities=frozenset(capabilities))

    with serving(apps=(str(path), "solve"), model=model) as server:
        text = streamed(
            server.client.post("/v1/chat/completions", json={"model": app, "messages": said, "stream": True})
        )
        (ref,) = server.repository.store.refs.list()
        stored = server.repository.store.nodes.get(ref.tip).answer
        said += [{"role": "assistant", "content": text}, {"role": "user", "content": "And again?"}]
        again = server.client.post("/v1/chat/completions", json={"model": app, "messages": said, "taiwa": {}}).json()

    assert text == stored
    assert (again["taiwa"]["parent"], again["taiwa"]["session"]) == (ref.tip, ref.name)
