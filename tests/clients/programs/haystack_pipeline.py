"""Generators and agents of haystack over both protocols: tools, types, streams, several turns."""

import os

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


@tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


for make in (OpenAIChatGenerator, OpenAIResponsesChatGenerator):
    model = make(model=os.environ["MODEL"])
    agent = Agent(chat_generator=model, tools=[get_weather], system_prompt="Be brief.")
    ended = agent.run(messages=[ChatMessage.from_user("Weather?")])
    assert ended["last_message"].text == "The tool says rain in Nara."
    first = model.run([ChatMessage.from_user("a")])["replies"][0]
    history = [ChatMessage.from_user("a"), first, ChatMessage.from_user("b")]
    assert model.run(history)["replies"][0].text == "Read: a | b"
    pieces = []
    streamed = make(model=os.environ["MODEL"], streaming_callback=pieces.append)
    assert streamed.run([ChatMessage.from_user("c")])["replies"][0].text == "Read: c"
    assert "".join(piece.content for piece in pieces) == "Read: c"
    key = "response_format" if make is OpenAIChatGenerator else "text_format"
    typed = make(model=os.environ["MODEL"], generation_kwargs={key: Person})
    reply = typed.run([ChatMessage.from_user("Who?")])["replies"][0]
    assert Person.model_validate_json(reply.text) == Person(name="Nara", age=3)
