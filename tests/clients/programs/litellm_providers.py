"""LiteLLM by its providers for four protocols: texts, streams, two rounds of tools, types, errors."""

import os

import litellm
from pydantic import BaseModel
from refusals import refused


class Person(BaseModel):
    name: str
    age: int


PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": "Tell the weather.", "parameters": PARAMETERS},
    }
]
litellm.suppress_debug_info = True
for provider, base in (
    ("openai", "OPENAI_BASE_URL"),
    ("openai/responses", "OPENAI_BASE_URL"),
    ("hosted_vllm", "OPENAI_BASE_URL"),
    ("anthropic", "SERVER"),
    ("ollama_chat", "SERVER"),
):
    called = {
        "model": f"{provider}/{os.environ['MODEL']}",
        "api_base": os.environ[base],
        "api_key": os.environ["OPENAI_API_KEY"],
    }

    def complete(said, called=called, **more):
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        return litellm.completion(messages=messages, **called, **more)

    answer = complete("a", temperature=0.5, max_tokens=9)
    assert (answer.choices[0].message.content, answer.usage.total_tokens) == ("Read: a", 10), answer
    pieces = [chunk.choices[0].delta.content or "" for chunk in complete("b", stream=True) if chunk.choices]
    assert "".join(pieces) == "Read: b"
    assert (
        Person.model_validate_json(complete("Who?", response_format=Person).choices[0].message.content).name == "Nara"
    )
    history, ids = [{"role": "user", "content": "Weather?"}], set()
    for _ in range(2):
        message = complete(history, tools=TOOLS).choices[0].message
        (call,) = message.tool_calls
        ids.add(call.id)
        result = {"role": "tool", "tool_call_id": call.id, "name": "get_weather", "content": "rain"}
        history += [message.model_dump(), result]
        assert complete(history, tools=TOOLS).choices[0].message.content == "The tool says rain."
        history += [{"role": "assistant", "content": "The tool says rain."}, {"role": "user", "content": "Again?"}]
    assert len(ids) == 2
    built = litellm.stream_chunk_builder([*complete("Weather?", tools=TOOLS, stream=True)])
    assert built.choices[0].message.tool_calls[0].function.name == "get_weather"
    with refused():
        complete("status 400", num_retries=0)
