"""The codecs against exchanges that others recorded with real providers; each is also read here, in another way."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.errors import ModelError
from taiwa.kernel.messages import (
    Message,
    Part,
    Request,
    Response,
    Role,
    Sampling,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    collect_response,
)
from taiwa.models.http_api.errors import error_from_status
from taiwa.models.http_api.provider_interface import Codec
from taiwa.models.providers import resolve
from tests.conftest import SHARED_DATA
from tests.models.pieces import cut

FOLDER = SHARED_DATA / "replay_tools" / "pydantic-ai-cassettes"
HOSTS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "openrouter.ai": "openrouter",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "generativelanguage.googleapis.com": "gemini",
    "api.cerebras.ai": "cerebras",
    "router.huggingface.co": "huggingface",
}


class Exchange(NamedTuple):
    """One recorded exchange."""

    name: str
    uri: str
    asked: dict[str, Any]
    status: int
    answered: dict[str, Any]

    @property
    def codec(self) -> Codec:
        """The codec that our name for the model leads to."""
        wire = "?wire=responses" if self.protocol == "responses" else ""
        return resolve(f"{HOSTS[self.uri.split('/')[2]]}:{self.asked['model']}{wire}").codec

    @property
    def protocol(self) -> str:
        """The last word of its path: `completions` (of chat), `messages` or `responses`."""
        return self.uri.partition("?")[0].rpartition("/")[2]

    @property
    def streamed(self) -> bool:
        """Whether the answer is a stream of events."""
        return "string" in self.answered

    @property
    def body(self) -> bytes:
        """The answer as it came."""
        return (self.answered["string"] if self.streamed else json.dumps(self.answered)).encode()

    @property
    def content_type(self) -> str:
        """What the server said that it sends."""
        return "text/event-stream; charset=utf-8" if self.streamed else "application/json"


def recorded() -> Iterator[Exchange]:
    for path in sorted(FOLDER.glob("test_*.json")):
        for number, entry in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            address = entry["uri"].partition("?")[0]
            if address.endswith(("/chat/completions", "/v1/messages", "/v1/responses")):
                name = f"{path.stem.partition('__')[2]}-{number}"
                yield Exchange(name, entry["uri"], entry["request"], entry["status"]["code"], entry["response"])


EXCHANGES = list(recorded())
ABSENT = pytest.param(None, marks=pytest.mark.skip(reason=f"shared data absent: no folder {FOLDER}"))


def each(*, answered: bool = True, protocol: str = "") -> pytest.MarkDecorator:
    fitting = [
        pytest.param(exchange, id=exchange.name)
        for exchange in EXCHANGES
        if (exchange.status == 200) == answered and (not protocol or exchange.protocol == protocol)
    ]
    return pytest.mark.parametrize("exchange", fitting or [ABSENT])


def decode(exchange: Exchange, *pieces: bytes) -> Response:
    decoder = exchange.codec.decoder(exchange.content_type)
    chunks = [chunk for piece in pieces or (exchange.body,) for chunk in decoder.feed(piece)]
    return collect_response(chunks + decoder.close())


def events(exchange: Exchange) -> list[dict[str, Any]]:
    """The JSON of a recorded stream, read line by line."""
    return [json.loads(line[5:]) for line in exchange.answered["string"].split("\n") if line.startswith("data: {")]


def calls_of(response: Response) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in response.message.tool_calls]


def thoughts_of(response: Response) -> str:
    return "".join(part.text for part in response.message.parts if isinstance(part, Thinking))


def chat_message(exchange: Exchange) -> dict[str, Any]:
    """The recorded message; that of a stream is put together here."""
    if not exchange.streamed:
        message: dict[str, Any] = exchange.answered["choices"][0]["message"]
        return message
    deltas = [choice["delta"] for event in events(exchange) for choice in event["choices"]]
    assert not any("tool_calls" in delta for delta in deltas)
    return {"content": "".join(delta.get("content") or "" for delta in deltas)}


def chat_usage(exchange: Exchange) -> Usage:
    usage = events(exchange)[-1]["usage"] if exchange.streamed else exchange.answered["usage"]
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", usage.get("num_cached_tokens", 0))
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens", 0)
    return Usage(usage["prompt_tokens"], usage["completion_tokens"], cached, 0, thought)


@each(protocol="completions")
def test_a_recorded_chat_completion_is_read_whole(exchange: Exchange) -> None:
    message = chat_message(exchange)

    response = decode(exchange)

    recorded_calls = message.get("tool_calls") or []
    assert response.text == (message.get("content") or "")
    assert thoughts_of(response) == (message.get("reasoning_content") or message.get("reasoning") or "")
    assert calls_of(response) == [
        (call["function"]["name"], json.loads(call["function"].get("arguments", "{}"))) for call in recorded_calls
    ]
    assert [call.id for call in response.message.tool_calls] == [call["id"] for call in recorded_calls]
    assert response.usage == chat_usage(exchange)


@each(protocol="completions")
def test_a_recorded_chat_completion_tells_its_end_and_its_model(exchange: Exchange) -> None:
    said = events(exchange)[-1] if exchange.streamed else exchange.answered

    response = decode(exchange)

    assert response.finish == said["choices"][0]["finish_reason"]
    assert response.model == said["model"]
    assert response.stop is None


def claude_blocks(exchange: Exchange) -> list[dict[str, Any]]:
    """The recorded blocks; those of a stream are put together here."""
    if not exchange.streamed:
        blocks: list[dict[str, Any]] = exchange.answered["content"]
        return blocks
    joined: dict[int, dict[str, Any]] = {}
    for event in events(exchange):
        if event["type"] == "content_block_start":
            joined[event["index"]] = dict(event["content_block"])
        elif event["type"] == "content_block_delta":
            for key, value in event["delta"].items():
                if key in ("text", "thinking"):
                    joined[event["index"]][key] += value
    return list(joined.values())


@each(protocol="messages")
def test_a_recorded_claude_message_is_read_whole(exchange: Exchange) -> None:
    blocks = claude_blocks(exchange)

    response = decode(exchange)

    assert response.text == "".join(block["text"] for block in blocks if block["type"] == "text")
    assert thoughts_of(response) == "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    assert [(call.id, call.name, json.loads(call.arguments)) for call in response.message.tool_calls] == [
        (block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"
    ]


@each(protocol="messages")
def test_a_recorded_claude_message_tells_its_end_its_bill_and_its_model(exchange: Exchange) -> None:
    if exchange.streamed:
        (end,) = [event for event in events(exchange) if event["type"] == "message_delta"]
        reason, usage, model = end["delta"]["stop_reason"], end["usage"], events(exchange)[0]["message"]["model"]
    else:
        reason, usage, model = (exchange.answered[key] for key in ("stop_reason", "usage", "model"))
    thought = usage.get("output_tokens_details", {}).get("thinking_tokens", 0)
    cached = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]

    response = decode(exchange)

    assert response.finish == {"end_turn": "stop", "tool_use": "tool_calls"}[reason]
    assert response.usage == Usage(usage["input_tokens"] + sum(cached), usage["output_tokens"], *cached, thought)
    assert response.model == model


@pytest.mark.skipif(not EXCHANGES, reason=f"shared data absent: no folder {FOLDER}")
@given(st.data())
def test_a_recorded_answer_reads_the_same_however_it_is_cut(data: st.DataObject) -> None:
    exchange = data.draw(st.sampled_from([one for one in EXCHANGES if one.status == 200]))
    places = data.draw(st.lists(st.integers(0, len(exchange.body)), max_size=12))

    response = decode(exchange, *cut(exchange.body, places))

    assert response == decode(exchange)


@each(answered=False)
def test_a_recorded_failure_keeps_the_server_s_words(exchange: Exchange) -> None:
    error = error_from_status(
        exchange.status, {"content-type": "application/json"}, exchange.body, exchange.codec.server
    )

    assert type(error) is ModelError
    assert error.status == exchange.status
    assert exchange.answered["error"]["message"][:100] in error.message
    assert "\n" not in error.message


# --- the other way: what was asked ------------------------------------------------------------------------------------


def parts_of_chat(message: dict[str, Any]) -> tuple[Part, ...]:
    if message["role"] == "tool":
        return (ToolResult(message["content"], call=message["tool_call_id"]),)
    words: tuple[Part, ...] = (Text(message["content"]),) if message.get("content") else ()
    calls = (
        ToolCall(call["function"]["name"], call["function"]["arguments"], call["id"])
        for call in message.get("tool_calls") or []
    )
    return (*words, *calls)


def parts_of_claude(content: str | list[dict[str, Any]]) -> Iterator[Part]:
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if block["type"] == "text":
            yield Text(block["text"])
        elif block["type"] == "tool_use":
            yield ToolCall(block["name"], json.dumps(block["input"]), block["id"])
        else:
            assert block["type"] == "tool_result"
            yield ToolResult(block["content"], call=block["tool_use_id"], error="failed" if block["is_error"] else "")


def functions(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools of ours; those that run on the server have a type of their own."""
    return [tool["function"] for tool in asked.get("tools", []) if tool.get("type", "function") == "function"]


def asked_of_chat(asked: dict[str, Any]) -> Request:
    roles: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
    messages = tuple(Message(roles[message["role"]], parts_of_chat(message)) for message in asked["messages"])
    tools = functions(asked)
    choice: str = asked.get("tool_choice", "auto")
    choice = "required" if choice == "any" else choice
    specs = tuple(ToolSpec(tool["name"], tool.get("description") or "", tool["parameters"]) for tool in tools)
    return Request(messages, tools=specs, tool_choice=choice, sampling=Sampling(None))


def asked_of_claude(asked: dict[str, Any]) -> Request:
    system = (Message("system", tuple(parts_of_claude(asked["system"]))),) if "system" in asked else ()
    turns = tuple(Message(turn["role"], tuple(parts_of_claude(turn["content"]))) for turn in asked["messages"])
    tools = [tool for tool in asked.get("tools", []) if "input_schema" in tool]
    choice = {"any": "required"}.get(asked.get("tool_choice", {}).get("type", "auto"), "auto")
    specs = tuple(ToolSpec(tool["name"], tool["description"], tool["input_schema"]) for tool in tools)
    sampling = Sampling(None, max_tokens=asked["max_tokens"])
    return Request(system + turns, tools=specs, tool_choice=choice if specs else "auto", sampling=sampling)


def essence_of_chat(messages: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            message["role"],
            message.get("content") or "",
            message.get("tool_call_id"),
            [(call["id"], call["function"]) for call in message.get("tool_calls") or []],
        )
        for message in messages
    ]


def without_marks(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: without_marks(value) for key, value in node.items() if key != "cache_control"}
    return [without_marks(item) for item in node] if isinstance(node, list) else node


@each(protocol="completions")
def test_a_recorded_chat_request_is_written_again(exchange: Exchange) -> None:
    asked = exchange.asked

    body = json.loads(exchange.codec.encode(asked_of_chat(asked)).body)

    assert body["model"] == asked["model"]
    assert essence_of_chat(body["messages"]) == essence_of_chat(asked["messages"])
    assert [(tool["name"], tool["parameters"]) for tool in functions(body)] == [
        (tool["name"], tool["parameters"]) for tool in functions(asked)
    ]
    assert body.get("tool_choice", "auto") == {"any": "required"}.get(
        choice := asked.get("tool_choice", "auto"), choice
    )


@each(protocol="messages")
def test_a_recorded_claude_request_is_written_again(exchange: Exchange) -> None:
    asked = exchange.asked

    body = without_marks(json.loads(exchange.codec.encode(asked_of_claude(asked)).body))

    for turn in (turn for turn in asked["messages"] if turn["role"] == "user"):
        for block in turn["content"]:
            if block.get("is_error") is False:
                del block["is_error"]
    system = asked.get("system", [])
    assert body["messages"] == asked["messages"]
    assert body.get("system", []) == ([{"type": "text", "text": system}] if isinstance(system, str) else system)
    assert body["max_tokens"] == asked["max_tokens"]
    assert body.get("tools", []) == [tool for tool in asked.get("tools", []) if "input_schema" in tool]
    if "tools" in body:
        assert body.get("tool_choice", {"type": "auto"}) == asked["tool_choice"]


# --- Responses ----------------------------------------------------------------------------------------------------------


def asked_of_responses(asked: dict[str, Any]) -> Request:
    """The request of ours; a call follows the words of its turn as an item of its own."""
    messages = [Message("system", (Text(asked["instructions"]),))] if asked.get("instructions") else []
    for item in asked["input"]:
        match item.get("type", "message"):
            case "message":
                messages.append(Message(item["role"], (Text(item["content"]),)))
            case "function_call":
                messages.append(Message("assistant", (ToolCall(item["name"], item["arguments"], item["call_id"]),)))
            case "function_call_output":
                messages.append(Message("tool", (ToolResult(item["output"], call=item["call_id"]),)))
    tools = tuple(ToolSpec(tool["name"], tool["description"] or "", tool["parameters"]) for tool in asked["tools"])
    return Request(tuple(messages), tools=tools, tool_choice=asked["tool_choice"], sampling=Sampling(None))


@each(protocol="responses")
def test_a_recorded_response_is_read_whole(exchange: Exchange) -> None:
    output, usage = exchange.answered["output"], exchange.answered["usage"]
    texts = [part["text"] for item in output if item["type"] == "message" for part in item["content"]]
    calls = [item for item in output if item["type"] == "function_call"]

    response = decode(exchange)

    assert response.text == "".join(texts)
    assert [(call.id, call.name, call.arguments) for call in response.message.tool_calls] == [
        (call["call_id"], call["name"], call["arguments"]) for call in calls
    ]
    assert response.finish == ("tool_calls" if calls else "stop")
    assert response.model == exchange.answered["model"]
    assert response.usage == Usage(usage["input_tokens"], usage["output_tokens"])


@each(protocol="responses")
def test_a_recorded_request_for_a_response_is_written_again(exchange: Exchange) -> None:
    asked = exchange.asked

    body = json.loads(exchange.codec.encode(asked_of_responses(asked)).body)

    assert body["model"] == asked["model"]
    assert body["input"] == [item for item in asked["input"] if item.get("content") != ""]
    assert body.get("tool_choice", "auto") == asked["tool_choice"]
    assert [(tool["name"], tool["parameters"]) for tool in body["tools"]] == [
        (tool["name"], tool["parameters"]) for tool in asked["tools"]
    ]
