"""Agents of openai-agents over both protocols: tools, types, streams, sessions, errors."""

import asyncio
import os

import openai
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from pydantic import BaseModel
from refusals import refused


class Person(BaseModel):
    name: str
    age: int


@function_tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


async def run() -> None:
    client = openai.AsyncOpenAI()
    for make in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        model = make(os.environ["MODEL"], client)
        agent = Agent("guide", model=model, instructions="Be brief.", tools=[get_weather])
        assert (await Runner.run(agent, "Weather?")).final_output == "The tool says rain in Nara."
        typed = Agent("typed", model=model, output_type=Person)
        assert (await Runner.run(typed, "Who?")).final_output == Person(name="Nara", age=3)
        plain = Agent("plain", model=model)
        streamed = Runner.run_streamed(plain, "a")
        events = [event.type async for event in streamed.stream_events()]
        assert "raw_response_event" in events
        assert streamed.final_output == "Read: a"
        history = [*streamed.to_input_list(), {"role": "user", "content": "b"}]
        assert (await Runner.run(plain, history)).final_output == "Read: a | b"
        desk = Agent("desk", model=model, handoffs=[plain])
        assert (await Runner.run(desk, "c")).last_agent is plain
        with refused():
            await Runner.run(plain, "status 400")
    session = OpenAIConversationsSession(openai_client=client)
    for text in ("x", "y"):
        ended = await Runner.run(plain, text, session=session)
    assert ended.final_output == "Read: x | y"
    assert len(await session.get_items()) == 4
    await session.clear_session()
    first = await Runner.run(plain, "x")
    again = await Runner.run(plain, "y", previous_response_id=first.last_response_id)
    assert again.final_output == "Read: x | y"


set_tracing_disabled(True)
asyncio.run(run())
