"""Agents of strands over OpenAI's and Anthropic's protocols: tools, types, several turns, errors."""

import os

from pydantic import BaseModel
from refusals import refused
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel


class Person(BaseModel):
    name: str
    age: int


@tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


MODEL = os.environ["MODEL"]
for model in (
    OpenAIModel(model_id=MODEL),
    OpenAIResponsesModel(model_id=MODEL),
    AnthropicModel(model_id=MODEL, max_tokens=99),
):
    assert (
        str(Agent(model=model, tools=[get_weather], callback_handler=None)("Weather?")).strip()
        == "The tool says rain in Nara."
    )
    agent = Agent(model=model, system_prompt="Be brief.", callback_handler=None)
    assert [str(agent(text)).strip() for text in ("a", "b")] == ["Read: a", "Read: a | b"]
    assert agent("Who?", structured_output_model=Person).structured_output == Person(name="Nara", age=3)
    with refused():
        Agent(model=model, callback_handler=None)("status 400")
