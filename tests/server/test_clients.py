"""Clients that others wrote, against the running server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taiwa.kernel.messages import JsonSchema, Message, Request, Response, ToolCall, ToolResult, Usage, assistant
from tests.server.serving import KEY, Serving, serving

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
BIN = Path(sys.executable).parent


def answer(request: Request) -> Response:
    """Calls a tool once, answers in JSON where it must, and says what it read."""
    if request.tools and not any(isinstance(part, ToolResult) for part in request.messages[-1].parts):
        name = request.tools[0].name
        return Response(
            Message("assistant", (ToolCall(name, '{"city": "Nara"}', "call_1"),)), "tool_calls", usage=Usage(5, 5)
        )
    if isinstance(request.constraint, JsonSchema):
        return Response(assistant('{"name": "Ann", "age": 3}'), usage=Usage(5, 5))
    said = [message.text for message in request.messages if message.role == "user"]
    last = request.messages[-1].parts[-1]
    text = f"The tool says {last.text}." if isinstance(last, ToolResult) else f"Read: {' | '.join(said)}"
    return Response(assistant(text), usage=Usage(5, 5))


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving(*[answer] * 100) as running:
        yield running


@pytest.mark.parametrize("form", ["openai-chat", "open-responses", "anthropic"])
def test_llm_comply_finds_no_departure_from_the_specification(served: Serving, form: str) -> None:
    words = [BIN / "llm-comply", "-u", served.url, "-k", KEY, "-m", "scripted", "--format", form, "--json"]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]


def test_openai_parses_streams_and_forks(served: Serving) -> None:
    openai = pytest.importorskip("openai")
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str
        age: int

    with openai.OpenAI(base_url=served.url, api_key=KEY, max_retries=0) as client:
        said = [{"role": "user", "content": "Who?"}]
        parsed = client.chat.completions.parse(model="scripted", messages=said, response_format=Person)
        assert parsed.choices[0].message.parsed == Person(name="Ann", age=3)
        assert client.responses.parse(model="scripted", input="Who?", text_format=Person).output_parsed.age == 3
        with client.chat.completions.stream(model="scripted", messages=said) as stream:
            assert stream.get_final_completion().choices[0].message.content == "Read: Who?"
        with client.responses.stream(model="scripted", input="b") as stream:
            assert stream.get_final_response().output_text == "Read: b"
        first = client.responses.create(model="scripted", input="a")
        forks = [
            client.responses.create(model="scripted", input=text, previous_response_id=first.id) for text in ("b", "c")
        ]
        assert [each.output_text for each in forks] == ["Read: a | b", "Read: a | c"]
        assert client.responses.retrieve(first.id).output_text == "Read: a"
        conversation = client.conversations.create()
        for text in ("x", "y"):
            client.responses.create(model="scripted", input=text, conversation=conversation.id)
        assert len(client.conversations.items.list(conversation.id).data) == 4
        assert "scripted" in {model.id for model in client.models.list()}
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve("resp_unknown")
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="scripted", messages=[])


def test_the_client_of_azure_names_its_deployment_in_the_path(served: Serving) -> None:
    openai = pytest.importorskip("openai")
    hi: list[Any] = [{"role": "user", "content": "Hi"}]
    for place in ({"azure_endpoint": served.server.url}, {"base_url": served.url}):
        with openai.AzureOpenAI(**place, api_key=KEY, api_version="2024-10-21", max_retries=0) as client:
            create = client.chat.completions.create
            assert create(model="scripted", messages=hi).choices[0].message.content == "Read: Hi"
            assert client.responses.create(model="scripted", input="Hi").output_text == "Read: Hi"
            with pytest.raises(openai.NotFoundError, match="the model 'other' does not exist here"):
                create(model="other", messages=hi)
            file = client.files.create(file=("notes.txt", b"Tea at five."), purpose="user_data")
            assert client.files.content(file.id).read() == b"Tea at five."
    path = "/openai/deployments/scripted/chat/completions?api-version=2024-10-21"
    for named in (None, "gpt-4o"):  # of LangChain, which may send another name in the body
        assert served.client.post(path, json={"model": named, "messages": hi}).json()["model"] == "scripted"


def test_anthropic_creates_streams_parses_calls_tools_and_counts(served: Serving) -> None:
    anthropic = pytest.importorskip("anthropic")
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str
        age: int

    tool = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
    with anthropic.Anthropic(base_url=served.server.url, api_key=KEY, max_retries=0) as client:
        said: list[dict[str, Any]] = [{"role": "user", "content": "Who?"}]
        ask: dict[str, Any] = {"model": "scripted", "max_tokens": 100}
        assert client.messages.create(messages=said, **ask).content[0].text == "Read: Who?"
        with client.messages.stream(messages=said, **ask) as stream:
            assert "".join(stream.text_stream) == "Read: Who?"
            assert stream.get_final_message().usage.output_tokens == 5
        assert client.messages.parse(messages=said, output_format=Person, **ask).parsed_output == Person(
            name="Ann", age=3
        )
        assert client.messages.count_tokens(model="scripted", messages=said).input_tokens > 0
        with client.messages.stream(messages=said, tools=[tool], **ask) as stream:
            called = stream.get_final_message()
        assert called.stop_reason == "tool_use"
        result = {"type": "tool_result", "tool_use_id": called.content[-1].id, "content": "rain"}
        said += [{"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
        assert client.messages.create(messages=said, tools=[tool], **ask).content[0].text == "The tool says rain."
        assert "scripted" in {model.id for model in client.models.list()}
        assert client.models.retrieve("scripted").display_name == "scripted"
        with pytest.raises(anthropic.NotFoundError, match="does not exist here"):
            client.messages.create(messages=said, max_tokens=9, model="unknown")
        with pytest.raises(anthropic.BadRequestError, match="at least one message"):
            client.messages.create(messages=[], **ask)
    with (
        anthropic.Anthropic(base_url=served.server.url, api_key="wrong", max_retries=0) as client,
        pytest.raises(anthropic.AuthenticationError) as refused,
    ):
        client.messages.create(messages=said, **ask)
    assert refused.value.body["error"]["type"] == "authentication_error"


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_pydantic_ai_calls_its_tools(served: Serving, wire: str) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=served.url, api_key=KEY)
    make = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}[wire]
    agent = Agent(make("scripted", provider=provider))

    @agent.tool_plain
    def get_weather(city: str) -> str:
        return f"rain in {city}"

    assert agent.run_sync("Weather?").output == "The tool says rain in Nara."


@pytest.mark.parametrize("options", [{}, {"use_responses_api": True, "use_previous_response_id": True}])
def test_langchain_goes_on_in_a_conversation(served: Serving, options: dict[str, Any]) -> None:
    chat_openai = pytest.importorskip("langchain_openai").ChatOpenAI
    model = chat_openai(model="scripted", base_url=served.url, api_key=KEY, **options)
    first = model.invoke([("user", "a")])
    second = model.invoke([("user", "a"), first, ("user", "b")])
    assert second.text == "Read: a | b"
    assert served.turns()[0] == ["a", "b"]
    assert "".join(chunk.text for chunk in model.stream([("user", "c")])) == "Read: c"


def test_llm_goes_on_in_a_conversation(served: Serving, tmp_path: Path) -> None:
    pytest.importorskip("llm")
    models = [{"model_id": "taiwa", "model_name": "scripted", "api_base": served.url, "api_key_name": "taiwa"}]
    (tmp_path / "extra-openai-models.yaml").write_text(json.dumps(models))
    (tmp_path / "keys.json").write_text(json.dumps({"taiwa": KEY}))

    def run(*words: str) -> str:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LLM_USER_PATH": str(tmp_path)}
        ended = subprocess.run(
            [BIN / "llm", *words], capture_output=True, text=True, timeout=300, env=environ, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    assert run("-m", "taiwa", "a") == "Read: a"
    assert run("-c", "b") == "Read: a | b"
    assert served.turns()[0] == ["a", "b"]
