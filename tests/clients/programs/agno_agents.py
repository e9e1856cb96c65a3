"""Agents of agno over three protocols: tools, types, streams, usage, errors."""

import os

from agno.agent import Agent
from agno.models.anthropic import Claude
from agno.models.openai import OpenAIChat, OpenAIResponses
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


for model in (OpenAIChat, OpenAIResponses, Claude):
    own = {"id": os.environ["MODEL"], "retries": 0}
    answer = Agent(model=model(**own), telemetry=False).run("a")
    assert (answer.content, answer.metrics.output_tokens) == ("Read: a", 3)
    events = Agent(model=model(**own), telemetry=False).run("b", stream=True)
    assert "".join(each.content or "" for each in events if each.event == "RunContent") == "Read: b"
    told = Agent(model=model(**own), tools=[get_weather], telemetry=False).run("Weather?")
    assert told.content == "The tool says rain in Nara."
    typed = Agent(model=model(**own), output_schema=Person, telemetry=False).run("Who?")
    assert typed.content == Person(name="Nara", age=3)
    failed = Agent(model=model(**own), telemetry=False).run("status 400")
    assert "as you wish" in failed.content
